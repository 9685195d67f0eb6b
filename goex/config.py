"""config.toml, parsed once and strictly.

Rules: a missing file means the defaults; an unknown key, a wrong type or a value out of bounds is an error that
names the key and the file, because a setting that is silently ignored is one that someone relies on. No secret
stands in this file: the model's key is a vault record (service `model`). A file that others may write is refused.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import urlsplit

from goex.config_section import BadConfig as BadConfig
from goex.config_section import Section
from policies.databases import LONGEST_HOLD
from policies.limits import BREAKER, NOT_CONFINED, QUOTA, Breaker, Confinement, Quota
from runtimes.sandbox.contract import Limits, Profile, Runtime
from runtimes.sandbox.pool_bounds import NO_POOL, POOLED_BYTES, PoolBounds
from runtimes.sql.limits import Limits as DatabaseLimits

MAX_BYTES = 1_000_000
LONGEST_RESULT = 500_000  # bytes of rows in one outcome: it travels, and is kept, as one message
_SERVERS = ("mariadb", "postgresql")  # images that undo statements are tried in (`runtimes.sql.pair_policy`)
_HOST = r"(?=.*[a-z])[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+"  # no passkey is for a number
LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """`seconds`: the longest that a person may take. `presence_seconds`: how long the approval passphrase is
    remembered for a terminal; 0 asks for it each time. `presence`: with `passkey` the passphrase alone shows no
    presence. `polkit`: whether the system's dialog counts `instead` of the passphrase (`true` in the file), is wanted
    beside it or the passkey (`also`), or is left out (`off`, or `false`)."""

    seconds: int = 300
    presence_seconds: int = 300
    presence: Literal["passphrase", "passkey"] = "passphrase"
    polkit: Literal["off", "instead", "also"] = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealing:
    """When the vault seals itself: after `seal_after` seconds in which no credential was lent and nobody was at a
    terminal (0: never), when the screen is locked, before the machine sleeps.

    Eight hours, as the longest session: a machine that is left for the night is sealed in the morning, one that is left
    for lunch isn't; the lock is for that.
    """

    seal_after: int = 8 * 3600
    seal_on_lock: bool = True
    seal_on_sleep: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The model that maps intents. Without `base_url` and `name` the embedded proposer does it.

    `account` is the vault record `model/<account>` that holds the key; "" asks without one. `method` is how it is asked
    (see mapper/techniques.py). `samples`, at most, and `confidence` belong to the adaptive one, as does `adaptive`:
    when it is false, all the samples are asked for each time. `threshold` is the share of them that must agree.
    `context` names what it is told of the moment and the person (see mapper/context.py; none: nothing), `about_me` is
    what the person wants it to know of them.
    """

    base_url: str = ""
    name: str = ""
    account: str = ""
    method: str = "adaptive"
    samples: int = 10
    adaptive: bool = True
    confidence: float = 0.975
    temperature: float = 0.3
    threshold: float = 0.6
    context: tuple[str, ...] = ("time", "locale", "accounts", "about_me")
    about_me: str = ""

    @property
    def configured(self) -> bool:
        return bool(self.base_url and self.name)

    @property
    def most_samples(self) -> int | None:
        """Of one mapping; None: as many as the method says itself."""
        if self.method == "conversation":
            return min(self.samples, 5)  # each may take several turns
        return self.samples if self.method.startswith("adaptive") else None

    @property
    def calls(self) -> int:
        """Of the model, that one mapping makes at most."""
        from mapper.techniques import TURNS

        return (self.most_samples or self.samples) * (TURNS if self.method == "conversation" else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """Which container runtime, and the limits of one job. Bytes and seconds. `profiles` have others, by their names.
    `waiting` containers wait for a job at least (0: none ever does), `waiting_most` at most, and no more than
    `waiting_memory` bytes have room for."""

    runtime: Runtime = "runc"
    limits: Limits = field(default_factory=Limits)
    profiles: Mapping[str, tuple[Runtime, Limits]] = field(default_factory=dict)
    waiting: int = 2
    waiting_most: int = 16
    waiting_memory: int = 256 * 2**20

    def bounds(self) -> PoolBounds:
        """How many containers wait."""
        if self.waiting == 0 or self.runtime != "runc":  # another runtime's jobs always start cold
            return NO_POOL
        most = min(self.waiting_most, self.waiting_memory // POOLED_BYTES)
        return PoolBounds(least=min(self.waiting, most), most=most, memory=self.waiting_memory)

    def profile(self, image: str = "base") -> Profile:
        """The sandbox profile of that image, with its own runtime and limits where it has them."""
        runtime, limits = self.profiles.get(image, (self.runtime, self.limits))
        return Profile(image=image, limits=limits, runtime=runtime)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSocket:
    """One more agent socket, at `path`, for these user ids (empty: the person's own alone)."""

    path: Path
    uids: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """How large a folder may be for a files action, which takes a snapshot of it first; from how many bytes on a file
    is kept as Git LFS does; what all snapshots may take (0: as much as there is); for how many days an action can be
    undone (0: until it is committed)."""

    max_bytes: int = 2 * 2**30
    max_entries: int = 200_000
    lfs_from: int = 200 * 10**6
    quota: int = 20 * 2**30
    keep_days: int = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Databases:
    """What one action on a database may take: seconds, MB of kept rows, rows handed back. `hold_hours` is how long a
    held transaction waits for commit or undo, in an entry that doesn't say it itself."""

    hold_hours: int = 24
    lock_seconds: float = 3.0
    seconds: float = 60.0
    image_mb: int = 512
    result_rows: int = 1000

    def limits(self) -> DatabaseLimits:
        return DatabaseLimits(
            lock_seconds=self.lock_seconds,
            seconds=self.seconds,
            image_bytes=self.image_mb * 2**20,
            result_rows=self.result_rows,
            result_bytes=LONGEST_RESULT,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """`terminal`: the words that `goex approve ID` is put after, to open a window; empty: found. `most`: how many
    questions are shown at once; the rest is summed up. `matrix_room` is told, with the vault's account
    `matrix/<matrix_account>` ("": the only one), of a question that nobody answered for `matrix_after` seconds;
    with `matrix_sentence` its sentence, else only that one waits."""

    terminal: tuple[str, ...] = ()
    most: int = 4
    matrix_room: str = ""
    matrix_account: str = ""
    matrix_after: int = 60
    matrix_sentence: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """`port`: of the page on this machine. `public_url`: where else the person reaches it, through a tunnel of their
    own; "" for nowhere."""

    port: int = 7464
    public_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """After how many days a permanent grant that nobody used ends; 0: never."""

    unused_days: int = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that the person has set."""

    ask: Ask = field(default_factory=Ask)
    vault: Sealing = field(default_factory=Sealing)
    model: Model = field(default_factory=Model)
    sandbox: Sandbox = field(default_factory=Sandbox)
    agent_sockets: tuple[AgentSocket, ...] = ()
    files: Files = field(default_factory=Files)
    databases: Databases = field(default_factory=Databases)
    grants: Grants = field(default_factory=Grants)
    notify: Notify = field(default_factory=Notify)
    web: Web = field(default_factory=Web)
    confine: Confinement = NOT_CONFINED
    breaker: Breaker = BREAKER
    limits: Quota = QUOTA
    log_level: str = "info"


def load(path: Path) -> Config:
    """The configuration in `path`, or the defaults where there is no such file. Raises BadConfig."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise BadConfig(f"{path} isn't a file.", next_step="Move it away.")
        if found.st_uid not in (os.geteuid(), 0) or found.st_mode & 0o022:
            raise BadConfig(f"Others may write {path}.", next_step=f"Close it with: chmod go-w {path}")
        if found.st_size > MAX_BYTES:
            raise BadConfig(f"{path} is larger than {MAX_BYTES} bytes.")
        data = path.read_bytes()
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise BadConfig(f"{path} can't be read: {error.strerror}.") from error
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadConfig(f"{path} isn't TOML: {error}.", next_step="Mend that line, or move the file away.") from error
    return parse(table, where=str(path))


def parse(table: Mapping[str, Any], *, where: str = "config.toml") -> Config:
    """Check a parsed table and freeze it. Raises BadConfig naming the key and `where`."""
    from mapper.techniques import DEFAULT, NAMES

    top = Section(table, "", where)
    vault = top.section("vault")
    ask, model, sandbox = top.section("ask"), top.section("model"), top.section("sandbox")
    grants = top.section("grants")
    files, log, notify = top.section("files"), top.section("log"), top.section("notify")
    quota = top.section("limits")
    confine, breaker, databases = top.section("confine"), top.section("breaker"), top.section("databases")
    undo, web = top.section("undo"), top.section("web")
    runtime, limits = _runtime(sandbox, "runc"), _limits(sandbox, Limits())
    made = Config(
        vault=Sealing(
            seal_after=vault.integer("seal_after", Sealing().seal_after, 0, 7 * 86_400),
            seal_on_lock=vault.boolean("seal_on_lock", True),
            seal_on_sleep=vault.boolean("seal_on_sleep", True),
        ),
        ask=Ask(
            seconds=ask.integer("seconds", 300, 1, 86_400),
            presence_seconds=ask.integer("presence_seconds", 300, 0, 3600),
            presence=_presence(ask),
            polkit=_polkit(ask),
        ),
        model=Model(
            base_url=model.text("base_url"),
            name=model.text("name"),
            account=model.text("account"),
            method=model.choice("method", DEFAULT, NAMES),
            samples=model.integer("samples", 10, 1, 50),
            adaptive=model.boolean("adaptive", True),
            confidence=model.number("confidence", 0.975, 0.5, 0.999),
            temperature=model.number("temperature", 0.3, 0.0, 2.0),
            threshold=model.number("threshold", 0.6, 0.05, 1.0),
            context=_told(model),
            about_me=_about_me(model),
        ),
        sandbox=Sandbox(
            runtime=runtime,
            limits=limits,
            profiles=_profiles(sandbox, runtime, limits),
            waiting=sandbox.integer("waiting", Sandbox().waiting, 0, 100),
            waiting_most=sandbox.integer("waiting_most", Sandbox().waiting_most, 0, 1000),
            waiting_memory=sandbox.size("waiting_memory", Sandbox().waiting_memory, 0),
        ),
        agent_sockets=tuple(_agent_socket(item) for item in top.sections("agent_socket")),
        files=Files(
            max_bytes=files.size("max_bytes", Files().max_bytes, 2**20),
            max_entries=files.integer("max_entries", Files().max_entries, 100, 10_000_000),
            lfs_from=files.size("lfs_from", Files().lfs_from, 2**20),
            quota=files.size("quota", Files().quota, 0),
            keep_days=files.integer("keep_days", Files().keep_days, 0, 36_500),
        ),
        databases=Databases(
            hold_hours=databases.integer("hold_hours", Databases().hold_hours, 1, LONGEST_HOLD),
            lock_seconds=databases.number("lock_seconds", Databases().lock_seconds, 0.1, 600.0),
            seconds=databases.number("seconds", Databases().seconds, 1.0, 86_400.0),
            image_mb=databases.integer("image_mb", Databases().image_mb, 1, 1_000_000),
            result_rows=databases.integer("result_rows", Databases().result_rows, 1, 100_000),
        ),
        notify=Notify(
            terminal=notify.words("terminal"),
            most=notify.integer("most", Notify().most, 1, 20),
            matrix_room=_matrix_room(notify),
            matrix_account=notify.text("matrix_account"),
            matrix_after=notify.integer("matrix_after", Notify().matrix_after, 0, 86_400),
            matrix_sentence=notify.boolean("matrix_sentence", True),
        ),
        web=Web(port=web.integer("port", Web().port, 1024, 65_535), public_url=_public_url(web)),
        grants=Grants(unused_days=grants.integer("unused_days", Grants().unused_days, 0, 3650)),
        confine=replace(
            _confinement(confine), strict=undo.boolean("strict", False), strict_agents=undo.texts("strict_agents")
        ),
        breaker=Breaker(
            denials=breaker.integer("denials", BREAKER.denials, 0, 100_000),
            seconds=60 * breaker.integer("minutes", BREAKER.seconds // 60, 1, 1440),
            rest_seconds=60 * breaker.integer("rest_minutes", BREAKER.rest_seconds // 60, 1, 10_080),
        ),
        limits=Quota(
            requests=quota.integer("requests", QUOTA.requests, 1, 10**6),
            megabytes=quota.integer("megabytes", QUOTA.megabytes, 1, 10**6),
            model_calls=quota.integer("model_calls", QUOTA.model_calls, 0, 10**6),
            at_once=quota.integer("at_once", QUOTA.at_once, 1, 1000),
        ),
        log_level=log.choice("level", "info", LEVELS),
    )
    sections = (top, vault, ask, model, sandbox, files, databases, grants, log, notify, confine, breaker, undo, quota)
    for section in (*sections, web):
        section.refuse_unknown()
    if made.ask.presence == "passkey" and made.ask.polkit == "instead":
        raise ask.wrong("polkit", 'must be "also" or false where presence = "passkey": a dialog shows no passkey')
    if made.model.method.removesuffix("+scopes") not in ("adaptive", "conversation"):
        for key in ("samples", "adaptive", "confidence"):
            if model.has(key):
                raise BadConfig(
                    f"[model] {key} in {where} doesn't go with the method {made.model.method}, which says it itself.",
                    next_step=f'Remove {key}, or set method = "adaptive".',
                )
    if bool(made.model.base_url) != bool(made.model.name):
        raise BadConfig(
            f"[model] in {where} needs both base_url and name.",
            next_step="Add the one that is missing, or remove both to use the embedded proposer.",
        )
    return made


def _told(model: Section) -> tuple[str, ...]:
    from mapper.context import FACTS

    if not model.has("context"):
        return FACTS
    found = model.texts("context")
    if not set(found) <= set(FACTS):
        raise model.wrong("context", f"may name: {', '.join(FACTS)}; [] tells nothing")
    return found


def _about_me(model: Section) -> str:
    from mapper.context import MAX_ABOUT

    found = model.text("about_me")
    if len(found) > MAX_ABOUT or "\0" in found:
        raise model.wrong("about_me", f"must be a text of at most {MAX_ABOUT} characters")
    return found


def _runtime(section: Section, default: Runtime) -> Runtime:
    return cast(Runtime, section.choice("runtime", default, get_args(Runtime)))


def _limits(section: Section, default: Limits) -> Limits:
    return Limits(
        memory=section.size("memory", default.memory, 16 * 2**20),
        cpus=section.number("cpus", default.cpus, 0.1, 256.0),
        pids=section.integer("pids", default.pids, 4, 32_768),
        tmp=section.size("tmp", default.tmp, 2**20),
        file_size=section.size("file_size", default.file_size, 2**20),
        seconds=section.number("seconds", default.seconds, 1.0, 86_400.0),
        output=section.size("output", default.output, 1024),
    )


def _profiles(sandbox: Section, runtime: Runtime, limits: Limits) -> dict[str, tuple[Runtime, Limits]]:
    """Each profile's own runtime and limits; what it doesn't say is as for all."""
    found: dict[str, tuple[Runtime, Limits]] = {}
    for name, section in sandbox.tables("profiles"):
        if name in _SERVERS:
            raise sandbox.wrong(f"profiles.{name}", "can't be set: it has limits of its own, and [sandbox]'s runtime")
        found[name] = _runtime(section, runtime), _limits(section, limits)
        section.refuse_unknown()
    return found


def _confinement(section: Section) -> Confinement:
    folders = section.texts("folders")
    for folder in folders:
        if not Path(folder).is_absolute() or ".." in Path(folder).parts:
            raise section.wrong("folders", f"must hold absolute folders, like /home/you/docs, not {folder[:60]!r}")
    return Confinement(
        folders=folders,
        hosts=tuple(host.lower() for host in section.texts("hosts")),
        recipients=section.texts("recipients"),
        databases=section.texts("databases"),
        tables=section.texts("tables"),
        rows=section.integer("rows", 0, 0, 2**53),
        session_actions=section.integer("session_actions", 0, 0, 1_000_000),
    )


def _polkit(section: Section) -> Literal["off", "instead", "also"]:
    said = section.either("polkit", "off", ("off", "instead", "also"))
    return cast(Literal["off", "instead", "also"], {True: "instead", False: "off"}.get(cast(bool, said), said))


def _presence(section: Section) -> Literal["passphrase", "passkey"]:
    found = section.choice("presence", "passphrase", ("passphrase", "passkey"))
    return cast(Literal["passphrase", "passkey"], found)


def _public_url(section: Section) -> str:
    """An origin as browsers write it, or ""."""
    found = section.text("public_url").removesuffix("/").lower()
    if not found:
        return ""
    try:
        parts = urlsplit(found)
        plain = parts.hostname is not None and re.fullmatch(_HOST, parts.hostname) and parts.port != 443
    except ValueError:
        plain = False
    if not plain or found != f"https://{parts.netloc}" or "@" in parts.netloc or len(found) > 300:
        raise section.wrong("public_url", "must be an address like https://goex.example.org, with a host's name alone")
    return found


def _matrix_room(section: Section) -> str:
    found = section.text("matrix_room")
    if found and not re.fullmatch(r"![!-~]{1,254}", found):
        raise section.wrong("matrix_room", "must be a room's id, like !abc:example.org (its settings show it)")
    return found


def _agent_socket(section: Section) -> AgentSocket:
    path = Path(section.text("path"))
    users = section.take("users", list, [])
    section.refuse_unknown()
    if not path.is_absolute():
        raise section.wrong("path", "must be an absolute path, like /run/goex/agent.sock")
    return AgentSocket(path=path, uids=frozenset(_uid(section, user) for user in users))


def _uid(section: Section, user: Any) -> int:
    import pwd

    if isinstance(user, int) and not isinstance(user, bool) and 0 <= user < 2**32 - 1:
        return user
    if isinstance(user, str):
        try:
            return pwd.getpwnam(user).pw_uid
        except (KeyError, ValueError):
            raise section.wrong("users", f"names {user[:60]!r}, and there is no such user") from None
    raise section.wrong("users", "must be a list of user names or numbers")
