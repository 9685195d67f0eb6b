"""SQL: which statements on foreign schemas GoEx runs, and whether each is taken back exactly.

Each statement runs past the daemon through `runtimes.sql` on a real server: do, dump, undo, dump, redo, dump, undo;
equal each time. It is asked for under reversal, and where that is refused under versioning, as the refusal says. What
the server itself refuses isn't counted. Nothing is to be tuned on the schemas of `sql_schemas.HELD_OUT`.

    python -m tools.acceptance sql -- [--engine ENGINE] [--schema NAME] [--held-out | --open] [--case PATTERN]
    [--sample N] [--verbose]

`--sample 3` takes every third statement, a different third of each schema.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from policies.errors import GoexError
from policies.jsonvalue import JsonObject, JsonValue
from runtimes.sql.contract import Dialect, Policy
from tests.services.mariadb import MariaDb
from tests.services.postgres import Postgres
from tests.support.databases import Asked, Ground, MariaDbGround, PostgresGround, SqliteGround, session
from tools.acceptance import sql_schemas
from tools.acceptance.sql_statements import Case, Filled, cases

_MADE = re.compile(
    r"CREATE (?:OR REPLACE )?(?:VIRTUAL |UNIQUE )?(MATERIALIZED VIEW|TABLE|VIEW|TRIGGER|FUNCTION|SEQUENCE|TYPE|INDEX)"
    r" (\w+_(?:x|y|fts|ai|au|\d)\w*)"
)
Verdict = Literal["ran", "held", "refused", "wrong", "invalid"]


@dataclass
class Tally:
    """What was found on one engine."""

    counts: Counter[tuple[bool, Verdict]] = field(default_factory=Counter)  # held out or not
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    schemas: int = 0

    def share(self, held_out: bool | None = None) -> float:
        counted = {
            verdict: sum(n for (out, one), n in self.counts.items() if one == verdict and held_out in (None, out))
            for verdict in ("ran", "held", "refused", "wrong")
        }
        total = sum(counted.values())
        return round(100 * (counted["ran"] + counted["held"]) / total, 1) if total else 0.0


def measure(options: list[str]) -> JsonObject:
    parser = argparse.ArgumentParser("sql")
    parser.add_argument("--engine", choices=[one.value for one in Dialect])
    parser.add_argument("--schema")
    parser.add_argument("--case")
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args(options)
    sql_schemas.install()
    found: dict[str, JsonValue] = {}
    for dialect in Dialect:
        if asked.engine in (None, dialect.value):
            with _server(dialect) as server:
                tally = _engine(dialect, server, asked)
            _print(dialect, tally)
            found[f"{dialect.value}_pct"] = tally.share()
            found[f"{dialect.value}_held_out_pct"] = tally.share(True)
            found[f"{dialect.value}_wrong"] = len(tally.wrong)
    return found


@contextlib.contextmanager
def _server(dialect: Dialect) -> Iterator[Postgres | MariaDb | None]:
    if dialect is Dialect.SQLITE:
        yield None
        return
    with Postgres() if dialect is Dialect.POSTGRESQL else MariaDb() as server:
        yield server


def _engine(dialect: Dialect, server: Postgres | MariaDb | None, asked: argparse.Namespace) -> Tally:
    tally = Tally()
    names = (asked.schema,) if asked.schema else sql_schemas.NAMES
    for number, (name, dump) in enumerate(sql_schemas.dumps(dialect, server, names)):
        held_out = name in sql_schemas.HELD_OUT
        if (asked.held_out and not held_out) or (asked.open and held_out):
            continue
        with _ground(dialect, server) as ground:
            _load(ground, dump.read_text())
            filled = _fill(ground)
            every = [case for case in cases(filled) if asked.case is None or re.fullmatch(asked.case, case.name)]
            if not every:
                print(f"  {name}: no pair of tables could be filled", file=sys.stderr)
                continue
            tally.schemas += 1
            every = every[number % asked.sample :: asked.sample]
            here: Counter[Verdict] = Counter()
            for case in every:
                verdict, reason = _try(ground, case)
                here[verdict] += 1
                tally.counts[held_out, verdict] += 1
                if verdict == "refused":
                    tally.reasons[f"{case.name}: {reason}"] += 1
                if verdict == "wrong":
                    tally.wrong.append(f"{name}: {case.name}: {reason}: {case.sql}")
                if asked.verbose:
                    print(f"    {verdict:8} {name}: {case.name}: {reason}", flush=True)
            print(f"  {dialect.value} {name}{' (held out)' if held_out else ''}: {dict(here)}", flush=True)
    return tally


@contextlib.contextmanager
def _ground(dialect: Dialect, server: Postgres | MariaDb | None) -> Iterator[Ground]:
    if isinstance(server, Postgres):
        yield PostgresGround(server)
    elif isinstance(server, MariaDb):
        with server.database(user="goex", password=MariaDbGround.password) as name:
            yield MariaDbGround(server, name)
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield SqliteGround(Path(folder))


def _load(ground: Ground, text: str) -> None:
    if isinstance(ground, PostgresGround):
        # psql's own lines, and what only a superuser may.
        lines = [line for line in text.splitlines() if not line.startswith(("\\", "COMMENT ON EXTENSION"))]
        text = "\n".join(lines).replace("SELECT pg_catalog.set_config('search_path', '', false);", "")
        text = re.sub(r"CREATE SCHEMA public;|ALTER SCHEMA .*;|SET transaction_timeout.*;", "", text)
    ground.execute(text)


def _fill(ground: Ground) -> Filled:
    with session(ground) as at:
        filled = Filled(at.schema())
    for name, inserts in filled.inserts():
        kept = []
        for row, sql in zip(filled.values[name], inserts, strict=True):
            with contextlib.suppress(Exception):  # a CHECK that these values break
                ground.execute(sql)
                kept.append(row)
        filled.values[name] = kept
    return filled


def _try(ground: Ground, case: Case) -> tuple[Verdict, str]:
    made, reason = _set_up(ground, case), ""
    try:
        if made is not None:
            return "invalid", made
        before = ground.dump()
        policies: tuple[Policy, ...] = ("reversal", "versioning")
        for policy in policies:
            asked = Asked(ground, case.sql, policy)
            try:
                asked.plan()
                asked.run()
            except GoexError as error:
                if ground.dump() != before:
                    return "wrong", f"refused, and changed something: {error.message}"
                reason = f"{reason}; held: {error.message}" if reason not in ("", error.message) else error.message
                continue
            except Exception as error:
                return "wrong", f"{type(error).__name__}: {error}"
            wrong = _turned(ground, asked, before)
            if wrong:
                return "wrong", wrong
            return ("held" if policy == "versioning" else "ran"), ""
        invalid = _invalid(ground, case)
        return ("invalid", invalid) if invalid else ("refused", reason)
    finally:
        _take_down(ground, case)


def _turned(ground: Ground, asked: Asked, before: object) -> str:
    """Why undo, redo, undo aren't exact; "" where they are."""
    if asked.planned().program.reads_only:
        return "" if ground.dump() == before else "a read changed something"
    held = asked.policy == "versioning"
    locked = held and ground.dialect is not Dialect.SQLITE  # nobody else sees it, and a definition's lock stands
    after = None if locked else ground.dump()
    try:
        if asked.state in ("nothing", "undone") or (not held and after == before):
            return ""
        asked.revert("undo")
        if ground.dump() != before:
            return "undo isn't exact"
        if held and not _again(asked):
            return ""
        asked.revert("redo")
        if not locked and ground.dump() != after:
            return "redo isn't exact"
        asked.revert("undo")
        if ground.dump() != before:
            return "the second undo isn't exact"
    except GoexError as error:
        return f"undo or redo refused: {error.message}"
    return ""


def _again(asked: Asked) -> bool:
    """Whether redo is offered for what was held."""
    try:
        asked.compare("redo")
    except GoexError:
        return False
    return True


def _set_up(ground: Ground, case: Case) -> str | None:
    try:
        for statement in case.setup:
            ground.execute(statement)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:150]}"
    return None


def _invalid(ground: Ground, case: Case) -> str:
    """What the server itself says against the statement, as its owner runs it; rolled back where that can be."""
    try:
        if isinstance(ground, PostgresGround):
            with ground.made.connect(autocommit=False) as db:
                db.execute(case.sql.encode())
                db.execute(b"SET CONSTRAINTS ALL IMMEDIATE")
                db.rollback()
        elif isinstance(ground, SqliteGround):
            with contextlib.closing(ground.connect()) as file:
                if case.sql != "VACUUM":
                    file.execute("PRAGMA foreign_keys = ON; BEGIN")
                    file.execute(case.sql)
                    broken = file.execute("PRAGMA foreign_key_check").fetchall()
                    file.execute("ROLLBACK")
                    return f"{len(broken)} rows would point to none" if broken else ""
        elif isinstance(ground, MariaDbGround) and re.match(r"(?i)insert|update|delete|replace|select|with", case.sql):
            with ground.connect(autocommit=False) as db, db.cursor() as cursor:
                cursor.execute(case.sql)
                while cursor.nextset():
                    pass
                db.rollback()
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:150]}"
    return ""


def _take_down(ground: Ground, case: Case) -> None:
    """Drop what `setup` made, and what the statement may have left."""
    text = " ".join((*case.setup, case.sql))
    quote = {"mariadb": "`{}`"}.get(ground.dialect.value, '"{}"')
    for kind, name in reversed(_MADE.findall(text)):
        sql = f"DROP {kind} IF EXISTS {quote.format(name)}{' CASCADE' if isinstance(ground, PostgresGround) else ''}"
        with contextlib.suppress(Exception):  # a trigger goes with its function or its table
            ground.execute(sql)


def _print(dialect: Dialect, tally: Tally) -> None:
    counted: Counter[Verdict] = Counter()
    for (_, verdict), number in tally.counts.items():
        counted[verdict] += number
    print(f"\n{dialect.value}: {tally.schemas} schemas; {dict(counted)}")
    print(f"  accepted {tally.share()} % (open {tally.share(False)} %, held out {tally.share(True)} %)")
    for reason, number in tally.reasons.most_common(40):
        print(f"  {number:4}  {reason}")
    for one in tally.wrong[:40]:
        print(f"  WRONG {one}")
    sys.stdout.flush()
