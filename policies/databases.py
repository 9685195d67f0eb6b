"""Databases as the person's entries name them: the address, without its secret, and how what is done there is undone.

Rules: an address is read once and has one spelling; no error quotes any of it, since a password that isn't escaped may
stand anywhere in it. What an entry doesn't say is the strictest: TLS with a checked certificate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args
from urllib.parse import quote, unquote

from policies.errors import InvalidInput, Unsupported
from policies.host_names import normal_host
from policies.services import Risk

Engine = Literal["postgresql", "mariadb", "sqlite", "mongodb"]
SERVICE = "db"  # of accounts, needs and grants
# What can be done with a table or a collection: the methods of that service, and the end of each scope.
RISKS: Mapping[str, Risk] = {
    "select": Risk.READ,
    "find": Risk.READ,
    "insert": Risk.WRITE,
    "update": Risk.WRITE,
    "delete": Risk.DELETE,
    "truncate": Risk.DELETE,
    "drop": Risk.DELETE,
    "create": Risk.ADMIN,
    "alter": Risk.ADMIN,
}
PAIRS = "pairs"  # the method and scope of letting a model's statements take a change back
OTHERWISE = "other-way-back"  # of doing at once what the entry asks to be held
POLICIES: tuple[str, ...] = ("versioning", "reversal", "pairs")
DefaultPolicy = Literal["versioning", "reversal", "pairs"]
LONGEST_HOLD = 24 * 30  # hours

_SCHEMES: Mapping[str, Engine] = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mariadb": "mariadb",
    "mysql": "mariadb",
    "sqlite": "sqlite",
    "sqlite3": "sqlite",
    "mongodb": "mongodb",
}
_PORTS: Mapping[Engine, int] = {"postgresql": 5432, "mariadb": 3306, "sqlite": 0, "mongodb": 27017}
_SOCKETS: Mapping[Engine, str] = {"postgresql": "host", "mariadb": "unix_socket"}
_OPTIONS: Mapping[Engine, frozenset[str]] = {
    "mongodb": frozenset({"replicaSet", "authSource", "authMechanism", "directConnection"})
}
_TLS = frozenset({"sslmode", "ssl", "tls", "ssl_ca", "sslrootcert", "tlsCAFile", "ssl_mode"})
_LIKE = "Write it like postgresql://user@db.example.org/shop; special characters in it as %XX."


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a database is. `socket` is PostgreSQL's folder (`port` names the one in it) or MariaDB's file; `path` is
    SQLite's file."""

    engine: Engine
    user: str = ""
    hosts: tuple[tuple[str, int], ...] = ()  # one, but of MongoDB
    socket: str = ""
    port: int = 0
    path: str = ""
    database: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> tuple[Address, str]:
        """The address and the password in it ("": none). Raises InvalidInput, which quotes neither."""
        scheme, found, rest = text.partition("://")
        scheme = scheme.lower().partition("+")[0] if "srv" not in scheme.lower() else scheme.lower()
        if scheme == "mongodb+srv":
            raise Unsupported(
                "mongodb+srv:// leaves it to the name server which servers these are.",
                next_step="Name them: mongodb://user@one.example.org,two.example.org/shop?replicaSet=rs0",
            )
        engine = _SCHEMES.get(scheme)
        if engine is None or not found:
            raise InvalidInput(
                "That isn't the URL of a database that GoEx can drive.",
                next_step="It begins with postgresql://, mariadb://, mysql://, sqlite:/// or mongodb://.",
            )
        if "#" in rest or any(ord(char) < 0x21 or ord(char) == 0x7F for char in rest):
            raise InvalidInput("There is a #, a space or a control character in the URL.", next_step=_LIKE)
        rest, _, query = rest.partition("?")
        authority, slash, path = rest.partition("/")
        options = _options(query, engine)
        if engine == "sqlite":
            return _file(authority, path if slash else "", options), ""
        credentials, _, where = authority.rpartition("@")
        user, _, password = credentials.partition(":")
        socket, port = options.pop(_SOCKETS.get(engine, ""), ""), 0
        hosts: list[tuple[str, int]] = []
        for one in where.split(",") if where else ():
            if "%2f" in one.lower():
                socket, port = _socket(one)
            else:
                hosts.append(_host(one, _PORTS[engine]))
        if socket and hosts == [("localhost", _PORTS[engine])]:
            hosts.clear()
        database = _decoded(path)
        if bool(hosts) == bool(socket) or (len(hosts) > 1 and engine != "mongodb"):
            raise InvalidInput("The URL doesn't say on which one server the database is.", next_step=_LIKE)
        if socket and not socket.startswith("/"):
            raise InvalidInput("A Unix socket is named by its whole path.", next_step=_LIKE)
        if not database or "/" in database:
            raise InvalidInput("The URL doesn't say which database it is.", next_step=_LIKE)
        made = cls(
            engine=engine,
            user=_decoded(user),
            hosts=tuple(hosts),
            socket=socket,
            port=(port or _PORTS[engine]) if socket and engine == "postgresql" else 0,
            database=database,
            options=dict(sorted(options.items())),
        )
        return made, _decoded(password)

    @property
    def url(self) -> str:
        """Its one spelling, without a password."""
        if self.engine == "sqlite":
            return f"sqlite:///{quote(self.path)}"
        user = f"{quote(self.user, safe='')}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        where = quote(self.socket, safe="") + port or ",".join(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts
        )
        options = "&".join(f"{name}={quote(value, safe='')}" for name, value in sorted(self.options.items()))
        return f"{self.engine}://{user}{where}/{quote(self.database, safe='')}{'?' * bool(options)}{options}"

    @property
    def on_this_machine(self) -> bool:
        """Whether nothing of it can leave the machine."""
        return bool(self.path or self.socket) or all(
            host in ("localhost", "::1") or host.startswith("127.") for host, _ in self.hosts
        )


def _options(query: str, engine: Engine) -> dict[str, str]:
    options: dict[str, str] = {}
    known = _OPTIONS.get(engine, frozenset()) | {_SOCKETS.get(engine, "")}
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        if name in _TLS:
            raise InvalidInput(
                "How the connection is secured isn't said in the URL.",
                next_step="It is TLS with a checked certificate; --ca FILE trusts another authority, --no-tls is for "
                "this machine and its network.",
            )
        if not name or name not in known or name in options:
            raise InvalidInput("The URL has an option that isn't taken.", next_step="Leave out what follows the ?.")
        options[name] = _decoded(value)
    return options


def _file(authority: str, path: str, options: Mapping[str, str]) -> Address:
    if authority or options:
        raise InvalidInput("SQLite's file is named alone.", next_step="Write it like sqlite:////home/you/notes.db.")
    decoded = _decoded(path)
    if not decoded.startswith("/"):
        raise InvalidInput(
            "SQLite's file is named by its whole path.", next_step="Write it like sqlite:////home/you/notes.db."
        )
    return Address(engine="sqlite", path="/" + decoded.lstrip("/"))


def _host(text: str, default: int) -> tuple[str, int]:
    bare, _, port = text.rpartition(":") if ":" in text.rpartition("]")[2] else (text, "", "")
    number = default
    if port:
        if not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536):
            raise InvalidInput("What stands for the port isn't one.", next_step=_LIKE)
        number = int(port)
    try:
        return normal_host(_decoded(bare)), number
    except InvalidInput:
        pass
    raise InvalidInput("What stands for the host isn't the name of one.", next_step=_LIKE)


def _socket(text: str) -> tuple[str, int]:
    path, _, port = text.rpartition(":")
    if path and port.isascii() and port.isdigit() and len(port) < 6:
        return _decoded(path), int(port)
    return _decoded(text), 0


def _decoded(text: str) -> str:
    try:
        decoded = unquote(text, errors="strict")
    except UnicodeDecodeError:
        decoded = "\0"
    if "\0" in decoded:
        raise InvalidInput("The URL isn't UTF-8, or holds a NUL.", next_step=_LIKE)
    return decoded


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How what is done in a database is taken back: by default, and table by table. `hold_hours`: how long a held
    transaction waits at most before GoEx rolls it back."""

    policy: DefaultPolicy = "reversal"
    hold_hours: int = 24
    tables: Mapping[str, DefaultPolicy] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for policy in (self.policy, *self.tables.values()):
            if policy not in get_args(DefaultPolicy):
                raise InvalidInput(
                    f"{str(policy)[:40]!r} isn't a way to take back.", next_step=f"These are: {', '.join(POLICIES)}."
                )
        if not 1 <= self.hold_hours <= LONGEST_HOLD:
            raise InvalidInput(
                f"A transaction is held for 1 to {LONGEST_HOLD} hours.", next_step="Say how many: --hold-hours 24"
            )

    def applies(self, tables: frozenset[str]) -> DefaultPolicy:
        """What applies to a change of these tables: what one of them wants, where they don't want two things.

        Raises InvalidInput where they do: nothing is chosen for the person.
        """
        wanted = self.wanted(tables) or {self.policy}
        if len(wanted) > 1:
            said = ", ".join(f"{table}: {self.tables.get(table, self.policy)}" for table in sorted(tables))
            raise InvalidInput(
                f"These tables are taken back in different ways ({said}).",
                next_step="Say which is meant with --policy, or change them one at a time.",
            )
        return next(iter(wanted))

    def wanted(self, tables: frozenset[str]) -> frozenset[DefaultPolicy]:
        """What these tables ask for."""
        return frozenset(self.tables.get(table, self.policy) for table in tables)
