"""`goex db`: the databases in which something may be done.

The password is typed without echo, piped to stdin, read with --password-file, or stands in the URL; it is sealed in the
vault, and no command shows it. An entry is kept only after it was connected to.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import quote

import typer

from goex.cli.help_text import App
from goex.cli.output import Json, Output, local, shown
from policies.display_text import counted
from policies.errors import InvalidInput

if TYPE_CHECKING:
    from goex.client import Client
    from goex.rpc import databases_pb2 as db
    from policies.databases import Address

app = App(help="Databases: which there are, and how undo works.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of its entry.")]
Hours = Annotated[
    int,
    typer.Option(
        "--hold-hours",
        metavar="N",
        min=0,
        show_default="[databases] hold_hours",
        help="Roll a held transaction back after N hours.",
    ),
]
PolicyName = Literal["versioning", "reversal", "pairs"]
_SECONDS = 90.0  # that connecting and looking may take
POLICIES = {
    "versioning": "each change is held until you commit or undo it",
    "reversal": "each change is made at once, and the rows are kept as they were",
    "pairs": "each change comes with a model's statements that take it back, tried on a copy",
}
_OF_A_FILE = "each change is made at once, and a copy of the file is kept until you commit or undo it"


@app.command("add")
def add(
    name: Name,
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="Like postgresql://user@host/database, mariadb://…, mongodb://…, sqlite:////path/file.db or a file.",
        ),
    ],
    policy: Annotated[
        PolicyName, typer.Option("--policy", help="The undo policy, where a table or a request names no other.")
    ] = "reversal",
    hold_hours: Hours = 0,
    password_file: Annotated[
        Path | None, typer.Option("--password-file", metavar="FILE", help="Read the password from FILE.")
    ] = None,
    no_password: Annotated[bool, typer.Option("--no-password", help="The database asks for none.")] = False,
    no_tls: Annotated[
        bool, typer.Option("--no-tls", help="Connect unencrypted: only to this machine or a private address.")
    ] = False,
    ca: Annotated[Path | None, typer.Option(metavar="FILE", help="Trust this CA (PEM) for the server.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the entry of that name.")] = False,
    as_json: Json = False,
) -> None:
    """Connect to a database, and seal how it is reached in the vault."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.daemon_calls import call_with_presence
    from goex.cli.input_text import read_text
    from goex.cli.vault_state import require_open
    from goex.rpc import databases_pb2 as db
    from policies.databases import Address

    address, inside = Address.parse(_url(url))
    if inside:
        out.progress("The password stood in the command: your shell's history, and who lists processes, may have it.")
    request = db.AddDatabaseRequest(
        name=name,
        url=address.url,
        no_tls=no_tls,
        ca_pem=read_text(ca, "The CA") if ca is not None else "",
        terms=db.Terms(policy=policy, hold_hours=hold_hours),
        replace=replace,
    )
    with connect(out) as client:
        require_open(client, out)
        _check(client, request, address)
        if address.engine != "sqlite" and not no_password:
            near = address.on_this_machine and ca is None
            how = "unencrypted" if no_tls else "unencrypted, on this machine" if near else "by TLS"
            places = ", ".join(f"{host}:{port}" for host, port in address.hosts)
            out.progress(f"The password will be sent to {address.socket or f'{places}, {how}'} and nowhere else.")
        request.password = _password(address, inside, password_file, no_password)
        reply = call_with_presence(client, "Databases/AddDatabase", request, db.DatabaseView, seconds=_SECONDS)
    out.message(reply)
    if as_json:
        return
    out.say(shown(f"Added {reply.name}: {reply.url}."), "bold")
    out.fields(
        (
            ("server", _server(reply)),
            ("connection", _tls(reply.tls)),
            ("can be seen", counted(reply.tables, "table")),
            ("undo", _policy(reply.terms.policy, reply.terms.hold_hours, reply.engine)),
        )
    )
    for line in reply.can:
        out.block(line, style="")
    example = """--mongo '{"find": "…", "filter": {}}'""" if reply.engine == "mongodb" else '--sql "SELECT …"'
    out.progress(f"Try: goex exec --db {shown(name)} {example} --dry-run")


@app.command("list")
def list_databases(as_json: Json = False) -> None:
    """Which databases there are, and what is held in them."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import databases_pb2 as db

    reply = call(out, "Databases/ListDatabases", db.ListDatabasesRequest(), db.ListDatabasesReply)
    if as_json:
        return
    from goex.cli.vault_state import UNKNOWN

    if not reply.databases:
        out.say("There is no database yet.")
        out.progress("Add one with: goex db add NAME URL")
        return
    out.table(
        ("name", "where", "connection", "undo", "held", "last used"),
        [
            (
                one.name,
                one.url,
                _tls(one.tls),
                one.terms.policy + (f", {counted(len(one.terms.tables), 'table')} else" if one.terms.tables else ""),
                str(len(one.held) or ""),
                local(one.last_used) or ("never" if one.terms.policy else UNKNOWN),
            )
            for one in reply.databases
        ],
    )
    for one in reply.databases:
        _say_held(out, one)


@app.command("show")
def show(name: Name, as_json: Json = False) -> None:
    """Tables and columns of a database, and how changes there are taken back. Never a row."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import databases_pb2 as db

    request = db.ShowDatabaseRequest(name=name)
    reply = call(out, "Databases/ShowDatabase", request, db.ShowDatabaseReply, seconds=_SECONDS)
    if as_json:
        return
    one = reply.database
    out.say(shown(f"{one.name}: {one.url}"), "bold")
    out.fields(
        (
            ("server", _server(one)),
            ("connection", _tls(one.tls)),
            ("undo", _policy(one.terms.policy, one.terms.hold_hours, one.engine)),
        )
    )
    for line in one.can:
        out.block(line, style="")
    for table in reply.tables:
        _say_table(out, table, one.terms.policy)
    _say_held(out, one)


@app.command("policy")
def policy(
    name: Name,
    policy: Annotated[
        str, typer.Argument(metavar="[POLICY]", help="versioning, reversal or pairs.", show_default=False)
    ] = "",
    table: Annotated[str, typer.Option(metavar="TABLE", help="For this table alone.")] = "",
    unset: Annotated[bool, typer.Option("--unset", help="The table has no policy of its own any more.")] = False,
    hold_hours: Hours = 0,
    as_json: Json = False,
) -> None:
    """Choose how changes are taken back where a request doesn't say it."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import databases_pb2 as db

    if unset and (policy or not table):
        raise InvalidInput("--unset is for a table, and takes no policy.", next_step="Add --table TABLE.")
    request = db.SetPolicyRequest(name=name, policy=policy, table=table, unset=unset, hold_hours=hold_hours)
    reply = call(out, "Databases/SetPolicy", request, db.DatabaseView, presence=True)
    if as_json:
        return
    out.say(shown(f"{reply.name}: {_policy(reply.terms.policy, reply.terms.hold_hours, reply.engine)}."))
    for one in reply.terms.tables:
        out.say(shown(f"  {one.table}: {POLICIES.get(one.policy, one.policy)}."))


@app.command("remove")
def remove(name: Name, as_json: Json = False) -> None:
    """Forget a database's entry. The database isn't touched; what was done there can't be undone by GoEx any more."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import databases_pb2 as db

    request = db.RemoveDatabaseRequest(name=name)
    call(out, "Databases/RemoveDatabase", request, db.RemoveDatabaseReply, presence=True)
    if not as_json:
        out.say(shown(f"Removed {name}."))


def _check(client: Client, request: db.AddDatabaseRequest, address: Address) -> None:
    """Raise InvalidInput for what is wrong with an entry, as far as it can be known before its password."""
    from goex.rpc import databases_pb2 as db
    from policies.accounts import Account
    from vault.errors import AccountExists
    from vault.record import check_account

    account = Account(
        service="db",
        name=request.name,
        origins=(),
        base_url=request.url,
        format="database",
        private=request.no_tls or (address.on_this_machine and not request.ca_pem),
        ca_pem=request.ca_pem,
    )
    check_account(account)
    if request.no_tls and request.ca_pem:
        raise InvalidInput("--no-tls and --ca exclude each other.", next_step="Leave one of them out.")
    reply = client.call("Databases/ListDatabases", db.ListDatabasesRequest(), db.ListDatabasesReply)
    if not request.replace and any(one.name == request.name for one in reply.databases):
        raise AccountExists(f"There is a database {request.name} already.", next_step="Use --replace, or another name.")


# ---- words


def _say_table(out: Output, table: db.TableView, policy: str) -> None:
    out.say("")
    kind = "" if table.kind == "table" else f" ({table.kind})"
    other = f", taken back by {table.policy}" if table.policy != policy else ""
    out.say(shown(f"{table.name}{kind}{other}"), "bold")
    for column in table.columns:
        facts = [column.type, "" if column.nullable else "not null"]
        facts += ["key"] if column.name in table.key else []
        facts += ["generated"] if column.generated else []
        facts += ["counter"] if column.counter else []
        out.say(shown(f"  {column.name}  {' '.join(fact for fact in facts if fact)}"))
    for reference in table.references:
        out.say(shown(f"  refers: {reference}"), "dim")
    if table.triggers:
        out.say(shown(f"  triggers: {', '.join(table.triggers)}"), "dim")
    if table.kind == "table" and not table.key:
        out.say("  no primary key", "dim")


def _say_held(out: Output, one: db.DatabaseView) -> None:
    for held in one.held:
        out.say("")
        out.say(shown(f"{one.name} holds {held.action_id} since {local(held.since)}, for {held.agent}"), "bold")
        out.block(held.what)
        out.block(f"GoEx rolls it back at {local(held.until)}, unless you commit or undo it before.", style="")
        if held.trouble:
            out.say(shown(f"  It couldn't be rolled back yet: {held.trouble}"), "bold yellow")


def _server(one: db.DatabaseView) -> str:
    name = {"postgresql": "PostgreSQL", "mariadb": "MariaDB", "mysql": "MySQL", "sqlite": "SQLite"}.get(one.engine, "")
    return one.version if not name or not one.version or name in one.version else f"{name} {one.version}"


def _policy(policy: str, hours: int, engine: str) -> str:
    if not policy:
        return "unknown while the vault is sealed"
    most = f", for {counted(hours, 'hour')} at most" if policy == "versioning" and engine != "sqlite" else ""
    told = _OF_A_FILE if (policy, engine) == ("versioning", "sqlite") else POLICIES.get(policy, policy)
    return f"{policy}: {told}{most}"


def _tls(tls: str) -> str:
    return {
        "verified": "TLS",
        "own CA": "TLS, by its own CA",
        "none": "not encrypted",
        "local": "on this machine",
    }.get(tls, tls)


# ---- what is typed


def _url(text: str) -> str:
    """What was named as a URL: of a file its whole path."""
    if "://" in text and (not text.startswith("sqlite:///") or text.startswith("sqlite:////")):
        return text
    path = Path(text.removeprefix("sqlite:///")).expanduser()
    try:
        absolute = path if path.is_absolute() else Path.cwd() / path
    except OSError as error:
        raise InvalidInput(f"{path} can't be found: {error}.", next_step="Write the whole path.") from error
    return f"sqlite:///{quote(str(absolute))}"


def _password(address: Address, inside: str, file: Path | None, none: bool) -> bytes:
    if sum((bool(inside), file is not None, none)) > 1:
        raise InvalidInput("The password is said twice.", next_step="Say it once, best at the terminal.")
    if inside:
        return inside.encode("utf-8")
    if none or address.engine == "sqlite":
        return b""
    if file is not None:
        return _read(file)
    from goex.cli.prompt import Terminal
    from goex.cli.secretinput import read_secret

    where = address.socket or address.hosts[0][0]
    question = shown(f"Password of {address.user or 'this database'} at {where} (Enter: none): ")
    if sys.stdin.isatty():
        terminal = Terminal.controlling()
        if terminal is not None:
            return terminal.secret(question).encode("utf-8")
    return read_secret(question, what="The password").reveal()


def _read(file: Path) -> bytes:
    from goex.cli.input_text import read_file

    data = read_file(file, 8193).removesuffix(b"\n").removesuffix(b"\r")
    if not data or len(data) > 8192:
        raise InvalidInput(f"{file} is empty, or longer than a password.", next_step="Name the right file.")
    return data
