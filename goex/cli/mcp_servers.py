"""`goex mcp add|list|review|remove`: MCP servers as services.

Rules: what a server says of its tools is shown escaped and whole, and is its own claim; it is agreed to by the sealed
account, which needs presence and a yes to all of it, and by nothing else. Without these the server stays what it was.
Everything is fetched when a server is added, nothing when it runs.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goex.cli.output import Json, Output, fold, shown
from goex.cli.vault_app import DEFAULT_ACCOUNT
from policies.display_text import counted
from policies.errors import Denied, InvalidInput

if TYPE_CHECKING:
    from goex.cli.prompt import Terminal
    from goex.rpc import goex_pb2 as pb
    from policies.services import OAuth, Placement, Service
    from runtimes.servers.definition import Server, Servers

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the service is to be called.")]


def add(
    name: Name,
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="URL | -- npx|uvx PACKAGE …", help="Where a server is, or how a published one is started."
        ),
    ],
    folder: Annotated[
        Path | None, typer.Option("--folder", metavar="DIR", help="The folder that it works on, as /work; no other.")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="A variable of it; no secret.")
    ] = None,
    token: Annotated[
        str, typer.Option("--token", metavar="NAME", help="The variable in which it looks for its credential.")
    ] = "",
    header: Annotated[
        str, typer.Option("--header", metavar="NAME", help="The header that the credential goes into.")
    ] = "",
    origin: Annotated[
        list[str] | None, typer.Option("--origin", metavar="URL", help="Where it, and its credential, may go.")
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="These places are on this machine or network (plain http may be used).")
    ] = False,
    ca: Annotated[Path | None, typer.Option(metavar="FILE", help="Trust this CA (PEM) for these places alone.")] = None,
    package: Annotated[
        list[str] | None, typer.Option("--package", metavar="NAME", help="A Debian package that it needs.")
    ] = None,
    again: Annotated[bool, typer.Option("--replace", help="Replace the server of that name.")] = False,
    bearer: Annotated[bool, typer.Option("--bearer", help="At a URL: seal a token, and don't log in.")] = False,
    client_id: Annotated[
        str, typer.Option(metavar="ID", help="At a URL: what GoEx is registered as where one logs in.")
    ] = "",
    scope: Annotated[
        list[str] | None, typer.Option(metavar="SCOPE", help="At a URL: log in for this scope (several: repeat it).")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address of a login.")] = False,
    as_json: Json = False,
) -> None:
    """Add an MCP server as a service: a published one from npm or PyPI, whose packages are fetched and pinned now, or
    one at a URL (Streamable HTTP), where you log in if it says so.

    Its tools are then asked for like the methods of any service. A published one runs in a container without a
    network; with --origin it reaches these places through the gateway, and finds a placeholder in the variable --token.
    """
    out = Output(as_json)
    from goex.cli import mcp_images
    from goex.cli.connect import paths
    from goex.cli.input_text import read_text
    from goex.config import load
    from goex.rpc import goex_pb2 as pb
    from mapper.importing import mcp_install
    from policies.services import Placement
    from runtimes.files.folder import resolve
    from runtimes.servers import packages
    from runtimes.servers.definition import NAME, Server, Servers
    from runtimes.servers.listing import tools_of

    if not NAME.fullmatch(name):
        raise InvalidInput(f"{name[:40]!r} can't be a server's name.", next_step="Use small letters, digits and -.")
    if len(command) == 1 and command[0].startswith(("https://", "http://")):
        from goex.cli import mcp_address

        if folder is not None or env or token or origin or package or again:
            raise InvalidInput(
                "A server at a URL has no folder, variables, packages or other origins.",
                next_step="Leave them out; one of that name is removed first: goex mcp remove NAME",
            )
        options = mcp_address.AddOptions(
            name=name,
            url=command[0],
            bearer=bearer,
            header=header,
            private=private,
            ca_pem=read_text(ca, "The CA") if ca is not None else "",
            client_id=client_id,
            scopes=tuple(scope or ()),
            browser=not no_browser,
        )
        mcp_address.check(options)
        _check_terminal("Nothing was added.", "Run it where you can answer.")
        server = mcp_address.add(out, options)
        again_later = f"See it again: goex mcp review {name}; or remove it: goex mcp remove {name}"
        _ask(server, "Its tools aren't called.", again_later)
        _agree(out, server)
        _added(out, server)
        return
    if bearer or client_id or scope or no_browser:
        raise InvalidInput(
            "--bearer, --client-id, --scope and --no-browser belong to a server at a URL.", next_step="Leave them out."
        )
    if bool(token) != bool(origin):
        raise InvalidInput(
            "--token and --origin belong together.",
            next_step="Name the variable of the credential, and where it may be sent.",
        )
    if folder is not None and origin:
        raise InvalidInput(
            "A server that works on a folder has no way out, so that nothing of it can leave.",
            next_step="Leave out --folder, or --token and --origin.",
        )
    place, variables = paths(), _variables(env or ())
    if folder is not None:
        resolve(str(folder.absolute()), protected=(place.config_dir, place.run_dir, place.state_dir))
    mcp_install.check_name(place.catalog, name, replace_own=again)
    packages.named(command, package or ())
    _check_terminal("Nothing was added.", "Run it where you can answer.")
    with mcp_images.no_other(out, name) as built:
        made = packages.build(name, command, package or (), out.progress)
        built.append(made.image)
        draft = Server(
            name=name,
            command=tuple(command),
            argv=made.argv,
            image=made.image,
            lock=made.sha256,
            tools=(),
            env=variables,
            variable=token,
            folder=str(folder.absolute()) if folder is not None else "",
        )
        out.progress("Asking it for its tools, in a container without a network.")
        server = draft.having(tools_of(draft, load(place.config_file).sandbox.profile(packages.IMAGE)))
        _ask(server, "Nothing was added.", "Answer y to add it.")
        request = pb.VaultPutRequest(
            base_url=(origin or [server.mark])[0],
            origins=[*(origin or ()), server.mark],
            private=private,
            ca_pem=read_text(ca, "The CA") if ca is not None else "",
        )
        with _put_back(name):
            Servers(place.servers).put(server, made.lock)
            _install(server, Placement(header=header, format="{secret}") if header else Placement())
            _seal(out, server, request)
    _added(out, server)


def list_servers(as_json: Json = False) -> None:
    """The MCP servers that were added."""
    out = Output(as_json)
    from goex.cli.connect import paths
    from policies.errors import GoexError
    from runtimes.servers.definition import Servers

    servers = Servers(paths().servers)
    rows: list[dict[str, Any]] = []
    for name in servers.names():
        try:
            rows.append({**_view(servers.get(name)), "changed": servers.seen(name) is not None})
        except GoexError as error:
            rows.append({"name": name, "tools": (), "trouble": str(error)})
    out.json({"servers": rows})
    if as_json:
        return
    if not rows:
        out.say("No MCP server was added.")
        out.progress("Add one: goex mcp add NAME -- npx PACKAGE …")
        return
    out.table(
        ("service", "command", "tools", "folder", "state"),
        [
            (
                row["name"],
                shown(row.get("command", "")),
                str(len(row["tools"])),
                shown(row.get("folder", "")),
                shown(row.get("trouble", "")) or (f"changed: goex mcp review {row['name']}" if row["changed"] else ""),
            )
            for row in rows
        ],
    )


def review(name: Name, as_json: Json = False) -> None:
    """What a server says of its tools now, beside what you agreed to; and agree to it, if you like.

    Agreeing needs your approval passphrase, and ends the standing permissions on its tools.
    """
    out = Output(as_json)
    from goex.cli.connect import paths
    from goex.cli.prompt import Terminal
    from runtimes.servers.definition import Servers
    from runtimes.servers.difference import difference

    place = paths()
    servers = Servers(place.servers)
    _check_there(name, servers)
    server = servers.get(name)
    if server.url:
        _look(out, name)
    seen = servers.seen(name)
    lines: tuple[str, ...] = ()
    if seen is not None:
        fresh = server.having(seen)
        # What differs is all that is new where the account is sealed for the rest.
        lines = difference(server.tools, seen) if _is_sealed(out, server) else ()
        lines = lines or (*_started(server), *_told(fresh))
    out.json({"name": name, "changed": seen is not None, "difference": list(lines)})
    if seen is None:
        if not as_json:
            out.say(shown(f"{name} says what you agreed to."))
        return
    terminal = None if as_json else Terminal.controlling()
    if terminal is None:
        for line in lines:
            (out.progress if as_json else out.say)(line)
        out.progress("Agree to it in a terminal of your own.")
        return
    # Whole, and seen to its end, before there is anything to agree to.
    question = f"Agree to what {name} says of its tools now? [y/N] "
    if not _is_agreed(lines, question, terminal):
        out.say("Nothing changed: it isn't called while it says something else.")
        return
    _agree(out, fresh)
    out.say(shown(f"Agreed to {name} with {counted(len(fresh.tools), 'tool')}."))


def remove(name: Name, as_json: Json = False) -> None:
    """Remove a server, its image and its account."""
    out = Output(as_json)
    from goex.cli import mcp_images
    from goex.cli.connect import connect, paths
    from goex.cli.daemon_calls import call_with_presence
    from goex.rpc import accounts_pb2 as ab
    from goex.rpc import goex_pb2 as pb
    from mapper.importing.install import remove as remove_service
    from policies.errors import GoexError
    from runtimes.servers.definition import Servers

    place = paths()
    servers = Servers(place.servers)
    _check_there(name, servers)
    own_images = mcp_images.known(out, name, servers)
    with connect(out) as client:
        accounts = client.call("Person/VaultList", pb.VaultListRequest(), pb.VaultListReply).accounts
        own = next((one for one in accounts if one.service == name), None)
        if own is not None and own.format == "oauth":
            done = call_with_presence(client, "Accounts/Logout", ab.LogoutRequest(service=name), ab.LogoutReply)
            if done.why:
                out.progress(shown(done.why))
        elif own is not None:
            request = pb.VaultRemoveRequest(service=name, account=DEFAULT_ACCOUNT)
            call_with_presence(client, "Person/VaultRemove", request, pb.VaultRemoveReply)
    try:
        remove_service(place.catalog, name)
    except GoexError as error:
        out.progress(shown(str(error)))
    servers.remove(name)
    gone, left = mcp_images.forget(out, own_images)
    out.json({"name": name, "images": gone, "left": left})
    if not as_json:
        out.say(shown(f"Removed {name} and {counted(gone, 'image')}."))


# ---- inside


def _added(out: Output, server: Server) -> None:
    out.json(_view(server))
    if not out.as_json:
        tools = counted(len(server.tools), "tool")
        out.say(shown(f"Added {server.name} with {tools}. See them: goex catalog show {server.name}"))


def _look(out: Output, name: str) -> None:
    """Ask a server at an address what it says of its tools now."""
    from goex.cli.connect import connect
    from goex.cli.mcp_address import tools_of

    with connect(out) as client:
        tools_of(client, name)


def _agree(out: Output, server: Server) -> None:
    """Agree to what a server says of its tools: its credential, and where that may go, stay as they are."""
    from goex.cli.connect import connect, paths
    from goex.cli.daemon_calls import call_with_presence
    from goex.rpc import goex_pb2 as pb
    from mapper.catalog import Catalog
    from runtimes.servers.definition import Servers

    place = paths()
    servers, service = Servers(place.servers), Catalog.open(place.catalog).service(server.name)
    request = pb.VaultPutRequest(service=server.name, account=DEFAULT_ACCOUNT, origins=[server.mark], keep=True)
    # The account last: nothing that could fail comes after it, and until it says so, nothing is called.
    with connect(out) as client, _put_back(server.name):
        _install(server, service.placement, service.oauth)
        servers.put(server)
        servers.note_seen(server.name, server.tools)  # whoever is cut off here still has something to review
        call_with_presence(client, "Person/VaultPut", request, pb.AccountView)
    servers.forget_seen(server.name)


@contextmanager
def _put_back(name: str) -> Iterator[None]:
    """Where what follows fails, the server of that name is what it was: another one, or none."""
    from goex.cli.connect import paths
    from mapper.catalog import Catalog, UnknownName
    from policies.errors import Conflict
    from runtimes.servers.definition import Servers

    place = paths()
    servers = Servers(place.servers)
    files = servers.files(name)
    old = service = None
    with suppress(UnknownName, Conflict):  # there is none, or it was altered
        service = Catalog.open(place.catalog).service(name)
        old = servers.get(name, service.version)
    try:
        yield
    except BaseException:
        # It failed already, and that is what is said. The files first: another command may be writing the catalog.
        with suppress(Exception):
            servers.put_back(name, files)
        with suppress(Exception):
            _put_back_tools(name, service, old)
        raise


def _put_back_tools(name: str, service: Service | None, old: Server | None) -> None:
    """What the catalog has of that name is this service again, of this server; or none."""
    from goex.cli.connect import paths
    from mapper.catalog import Catalog
    from mapper.importing import mcp_install
    from mapper.importing.install import remove as remove_service

    catalog = paths().catalog
    if service is None:
        remove_service(catalog, name)
    elif old is not None and old.tools:
        _install(old, service.placement, service.oauth)
    elif old is not None and Catalog.open(catalog).service(name).version != old.version:
        remove_service(catalog, name, index=False)  # what follows makes it
        about = f"An MCP server: {old.way}"
        mcp_install.announce(catalog, name, old.version, about, old.base_url, service.placement, service.oauth)


def _check_there(name: str, servers: Servers) -> None:
    if name not in servers.names():
        raise InvalidInput(f"There is no MCP server {name[:40]!r}.", next_step="See which there are: goex mcp list")


def _variables(given: Sequence[str]) -> dict[str, str]:
    """Variables of a server, as NAME=VALUE. Raises InvalidInput."""
    import re

    made = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name) or "\0" in value:
            raise InvalidInput(f"{one[:60]!r} isn't a variable.", next_step="Write it as: --env NAME=VALUE")
        made[name] = value
    return made


def _ask(server: Server, otherwise: str, next_step: str) -> None:
    """Show all that a server says of its tools, and ask whether that is agreed to. Raises Denied, which says
    `otherwise`."""
    if not _is_agreed(_told(server), "Agree? [y/N] ", _check_terminal(otherwise, next_step)):
        raise Denied(otherwise, next_step=next_step)


def _check_terminal(otherwise: str, next_step: str) -> Terminal:
    """The terminal on which the person is asked. Raises Denied where there is none, which says `otherwise`."""
    from goex.cli.prompt import Terminal

    terminal = Terminal.controlling()
    if terminal is None:
        raise Denied(
            f"What a server says of its tools is agreed to on a terminal alone. {otherwise}", next_step=next_step
        )
    return terminal


def _is_agreed(texts: Iterable[str], question: str, terminal: Terminal) -> bool:
    """Show the texts to their end, and ask."""
    from goex.cli.question_text import Line

    lines = [
        Line(("    ┊ " if index else "") + part)
        for text in texts
        for index, part in enumerate(fold(text, terminal.size[0] - 6))
    ]
    return terminal.show(lines) and terminal.agrees(question)


def _is_sealed(out: Output, server: Server) -> bool:
    """Whether its account says that the person agreed to the server as its file has it."""
    from goex.cli.connect import connect
    from goex.rpc import goex_pb2 as pb

    with connect(out) as client:
        accounts = client.call("Person/VaultList", pb.VaultListRequest(), pb.VaultListReply).accounts
    own = (one for one in accounts if (one.service, one.account) == (server.name, DEFAULT_ACCOUNT))
    return any(server.mark in one.origins for one in own)


def _started(server: Server) -> Iterator[str]:
    """All that is agreed to beside its tools, escaped."""
    from dataclasses import asdict

    from policies.jsonvalue import canonical

    yield shown(f"You didn't agree to {server.name} as it is written down now, which is:")
    for key, value in asdict(server).items():
        if value and key not in ("name", "tools"):
            yield shown(f"  {key}: {canonical(value).decode()}")


def _told(server: Server) -> Iterator[str]:
    """What a server says of its tools, escaped: of each the description, and all else."""
    from policies.jsonvalue import canonical

    yield shown(f"{server.name} says of its {counted(len(server.tools), 'tool')} (its own claim):")
    for tool in server.tools:
        yield shown(f"  {tool.get('name')}: {' '.join(str(tool.get('description') or '').split())}")
        rest = {key: value for key, value in tool.items() if key not in ("name", "description")}
        if rest:
            yield shown(f"    {canonical(rest).decode()}")


def _install(server: Server, placement: Placement, oauth: OAuth | None = None) -> None:
    """Put its tools into the catalog."""
    import hashlib
    import json

    from goex.cli.connect import paths
    from mapper.importing import mcp_install
    from mapper.importing.document_files import Source

    text = json.dumps({"tools": list(server.tools)})
    source = Source(server.name, text, hashlib.sha256(text.encode()).hexdigest())
    about = f"An MCP server: {server.way}"
    mcp_install.install(paths().catalog, source, server.name, server.version, about, server.base_url, placement, oauth)


def _seal(out: Output, server: Server, request: pb.VaultPutRequest) -> None:
    """Seal the account that says that the person agreed to the server as it is: with its credential, or with one that
    is worth nothing where it needs none."""
    from goex.cli.connect import connect
    from goex.cli.daemon_calls import call_with_presence
    from goex.cli.secretinput import read_secret
    from goex.cli.vault_state import require_open
    from goex.rpc import goex_pb2 as pb

    request.service, request.account, request.format, request.replace = server.name, DEFAULT_ACCOUNT, "string", True
    with connect(out) as client:
        require_open(client, out)
        if server.variable:
            credential = read_secret(f"Credential for {shown(server.name)}: ", what="The credential")
            request.secret = credential.reveal()
        else:
            request.secret = secrets.token_urlsafe(32).encode()
        call_with_presence(client, "Person/VaultPut", request, pb.AccountView)


def _view(server: Server) -> dict[str, object]:
    return {
        "name": server.name,
        "command": server.way,
        "image": server.image,
        "lock": server.lock,
        "folder": server.folder,
        "tools": [str(tool.get("name")) for tool in server.tools],
    }
