"""Policy "pairs": a pair of an action and its undo, tried in a container on made-up rows before either may run.

Rules: the container has no network and nothing of the person's but names and types; what the pair says it does proves
nothing, only the states before, between and after, compared here, do; a pair that failed once is never used again
(`pair_key` names it). An undo is right only if it is for every row that its action may meet: one that knows a value
which was there before is refused, and reversal by the rows themselves is what then does it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from policies.errors import InvalidInput, Unavailable
from policies.jsonvalue import JsonObject, canonical
from runtimes.sandbox.contract import Job, Limits, Profile, Result, Sandbox
from runtimes.sql.contract import Dialect, Program, Schema, Table
from runtimes.sql.pairs import compared_values, sample_rows, schema_copy, verdict

SEEDS = 4
_IMAGES: Mapping[Dialect, str] = {
    Dialect.SQLITE: "base",
    Dialect.POSTGRESQL: "postgresql",
    Dialect.MARIADB: "mariadb",
}
_MB = 2**20
_LIMITS: Mapping[Dialect, Limits] = {
    Dialect.SQLITE: Limits(seconds=60.0),
    Dialect.POSTGRESQL: Limits(memory=512 * _MB, tmp=256 * _MB, seconds=90.0, output=8 * _MB),
    Dialect.MARIADB: Limits(memory=768 * _MB, tmp=384 * _MB, seconds=90.0, output=8 * _MB),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What became of trying a pair. `lines` are for the person: evidence, or why not; of made-up rows alone."""

    ok: bool
    key: str  # the pair's, see `pair_key`
    changed: int  # rows that the action changed, over all tries
    seeds: int
    image_id: str
    lines: tuple[str, ...]


def pair_key(action: Program, undo: Program, schema: Schema) -> str:
    """Names a pair: the same statements on tables of the same definitions. What failed is remembered by it."""
    said: JsonObject = {
        "dialect": action.dialect.value,
        "action": [statement.sql for statement in action.statements],
        "undo": [statement.sql for statement in undo.statements],
        "tables": [_described(table) for table in schema_copy.tables(action, undo, schema)],
    }
    return hashlib.sha256(canonical(said)).hexdigest()


def _described(table: Table) -> JsonObject:
    return {
        "name": table.name,
        "columns": [[column.name, column.type, column.nullable, column.default] for column in table.columns],
        "key": list(table.key),
        "unique": [list(columns) for columns in table.unique],
        "foreign": [
            [list(key.columns), key.parent, list(key.parent_columns), key.on_delete, key.on_update]
            for key in table.foreign_keys
        ],
    }


async def prove(
    action: Program,
    undo: Program,
    schema: Schema,
    sandbox: Sandbox,
    *,
    action_id: str,
    runtime: Literal["runc", "runsc"] = "runc",
    seeds: int = SEEDS,
) -> Proof:
    """Try the pair on a copy of its tables. Takes a second for SQLite, a few for a server.

    Raises InvalidInput (no undo, an undo that only reads, a tryout that broke off), Unsupported (what no copy can have)
    and Unavailable (the image isn't built, Docker isn't there). A pair that doesn't hold is a `Proof` that isn't `ok`.
    """
    if not undo.statements or undo.reads_only:
        raise InvalidInput("The pair's undo writes nothing.", next_step="Say the statements that take it back.")
    if action.reads_only:
        raise InvalidInput("The action only reads: there is nothing to take back.")
    work = job(action, undo, schema, seeds)
    profile = Profile(
        image=_IMAGES[schema.dialect],
        limits=_LIMITS[schema.dialect],
        runtime=runtime,
        shared_memory=schema.dialect is Dialect.POSTGRESQL,
    )
    image_id = await sandbox.image_id(profile)
    result = await sandbox.run(
        Job(
            action_id=action_id,
            argv=("python3", "-I", "/goex/bin/try_pair.py", "/goex/job/job.json"),
            files={"job.json": canonical(work)},
        ),
        profile,
    )
    judged = verdict.judge(_output(result), sorted(str(name) for name in _tables(work)), seeds)
    return Proof(
        ok=judged.ok,
        key=pair_key(action, undo, schema),
        changed=judged.changed,
        seeds=seeds,
        image_id=image_id,
        lines=judged.lines,
    )


def _tables(work: JsonObject) -> list[str]:
    look = work["look"]
    assert isinstance(look, Mapping)
    return list(look)


def _output(result: Result) -> bytes:
    if result.cut or result.ended != "exited" or result.exit_code != 0:
        said = result.stderr[-300:].decode("utf-8", "replace").strip().splitlines()
        raise Unavailable(
            f"The pair couldn't be tried out: its container ended ({result.ended}, {result.exit_code})"
            + (f": {said[-1]}" if said else "."),
            next_step="Try again, or use --policy reversal.",
        )
    return result.stdout


def job(action: Program, undo: Program, schema: Schema, seeds: int) -> JsonObject:
    """What the container gets: definitions, made-up rows, both programs, and what to look at. Pure."""
    found = schema_copy.tables(action, undo, schema)
    named = compared_values.named_values(action, undo, found)
    own = {
        name: tuple(
            dict.fromkeys(
                value
                for table in found
                for column in table.columns
                if column.type.removesuffix("[]") == name
                for value in (*named.get((table.name, column.name), ()), "first", "second")
            )
        )
        for name in schema_copy.enum_types(found, schema.dialect)
    }
    mark = "?" if schema.dialect is Dialect.SQLITE else "%s"
    made = []
    for seed in range(seeds):
        inserts: list[list[object]] = []
        for table, row in sample_rows.make(found, named, own, seed):
            columns = ", ".join(schema_copy.quote(name, schema.dialect).replace("%", "%%") for name in row)
            target = schema_copy.qualified(table.name, schema.dialect).replace("%", "%%")
            if schema.dialect is Dialect.POSTGRESQL:  # which takes no number for a truth value
                row = {
                    column.name: str(bool(row[column.name])).lower()
                    if sample_rows.kind_of(column.type, own) == "bool" and row[column.name] is not None
                    else row[column.name]
                    for column in table.columns
                }
            inserts.append(
                [f"INSERT INTO {target} ({columns}) VALUES ({', '.join([mark] * len(row))})", list(row.values())]  # noqa: S608
            )
        made.append(inserts)
    return {
        "engine": schema.dialect.value,
        "definitions": list(schema_copy.definitions(found, schema, own)),
        "seeds": made,
        "action": [statement.sql for statement in action.statements],
        "undo": [statement.sql for statement in undo.statements],
        "look": {table.name: _look(table, schema.dialect) for table in found},
    }


def _look(table: Table, dialect: Dialect) -> str:
    """All of a table, each value so that no two different ones look alike."""
    if dialect is Dialect.POSTGRESQL:
        columns = [f"{schema_copy.quote(column.name, dialect)}::text" for column in table.columns]
    elif dialect is Dialect.SQLITE:
        columns = [f"quote({schema_copy.quote(column.name, dialect)})" for column in table.columns]
    else:
        columns = [schema_copy.quote(column.name, dialect) for column in table.columns]
    return f"SELECT {', '.join(columns)} FROM {schema_copy.qualified(table.name, dialect)}"  # noqa: S608
