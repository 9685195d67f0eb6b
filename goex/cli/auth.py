"""`goex auth`: connect accounts, see what they may do, and take them back.

A login shows an address to open; GoEx gets a token for the scopes that were asked for and granted, and keeps it in the
vault alone. Keys and passwords are typed without echo or piped to stdin; they never stand in the command.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from goex.cli.help_text import App, Command
from goex.cli.output import Json, Output, local, shown
from goex.cli.vault_app import DEFAULT_ACCOUNT, AccountName
from policies.errors import InvalidInput

if TYPE_CHECKING:
    from goex.client import Client
    from goex.rpc import accounts_pb2 as ab

app = App(help="Connect and disconnect accounts.")

Service = Annotated[str, typer.Argument(metavar="SERVICE", help="A service of the catalog.")]


class LoginCommand(Command):
    """Groups the options of a login by what they say."""

    groups: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "A login": ("scope", "device", "no_browser", "client_credentials"),
        "Its provider": (
            "issuer",
            "authorization_endpoint",
            "token_endpoint",
            "device_endpoint",
            "revocation_endpoint",
            "client_id",
            "client_secret",
            "client_secret_fd",
        ),
        "A key, a token or a password instead": ("api_key", "bearer", "basic", "user", "replace"),
        "Where the service is": ("base_url", "origin", "private", "ca"),
    }  # fmt: skip


@app.command("login", cls=LoginCommand)
def login(
    service: Service,
    account: AccountName = DEFAULT_ACCOUNT,
    scope: Annotated[
        list[str] | None, typer.Option(metavar="SCOPE", help="Ask for this scope (several: repeat it).")
    ] = None,
    device: Annotated[bool, typer.Option("--device", help="By a code, entered on any machine's browser.")] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    issuer: Annotated[str, typer.Option(metavar="URL", help="Where logins happen, as the provider writes it.")] = "",
    authorization_endpoint: Annotated[str, typer.Option(metavar="URL", help="For a provider without metadata.")] = "",
    token_endpoint: Annotated[str, typer.Option(metavar="URL", help="For a provider without metadata.")] = "",
    device_endpoint: Annotated[str, typer.Option(metavar="URL", help="For a provider without metadata.")] = "",
    revocation_endpoint: Annotated[str, typer.Option(metavar="URL", help="For a provider without metadata.")] = "",
    client_id: Annotated[str, typer.Option(metavar="ID", help="What GoEx is registered as there.")] = "",
    client_secret: Annotated[
        bool, typer.Option("--client-secret", help="The client has a secret: asked for, or a line of stdin.")
    ] = False,
    client_secret_fd: Annotated[
        int, typer.Option(metavar="FD", help="The client's secret is read from this file descriptor.")
    ] = -1,
    api_key: Annotated[bool, typer.Option("--api-key", help="Seal an API key instead: typed, or from stdin.")] = False,
    bearer: Annotated[bool, typer.Option("--bearer", help="Seal a token instead.")] = False,
    basic: Annotated[bool, typer.Option("--basic", help="Seal a user name and password instead.")] = False,
    client_credentials: Annotated[
        bool, typer.Option("--client-credentials", help="As the client itself, without a person.")
    ] = False,
    user: Annotated[str, typer.Option(metavar="NAME", help="The user name for --basic.")] = "",
    base_url: Annotated[str, typer.Option(metavar="URL", help="Where the service is; left out, its own place.")] = "",
    origin: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="One more origin that the credential may be sent to.")
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Service and login are on this machine or network.")
    ] = False,
    ca: Annotated[Path | None, typer.Option(metavar="FILE", help="Trust this CA (PEM) for these places alone.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the account's key, token or password.")] = False,
    as_json: Json = False,
) -> None:
    """Connect an account: log in at its provider, or seal a key.

    Without --scope it asks for what your own refused actions needed, and for what was granted before. With --json each
    event is one JSON object on a line of its own; the last one holds "done".
    """
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.input_text import read_text

    kinds = {"api-key": api_key, "bearer": bearer, "basic": basic}
    kind = next((name for name, chosen in kinds.items() if chosen), "")
    if sum((*kinds.values(), client_credentials, device)) > 1:
        raise InvalidInput(
            "--device, --client-credentials, --api-key, --bearer and --basic exclude each other.",
            next_step="Choose one.",
        )
    endpoints = {
        "issuer": issuer,
        "authorization_endpoint": authorization_endpoint,
        "token_endpoint": token_endpoint,
        "device_endpoint": device_endpoint,
        "revocation_endpoint": revocation_endpoint,
    }
    if kind and (scope or client_id or client_secret or client_secret_fd >= 0 or any(endpoints.values())):
        raise InvalidInput(
            f"--{kind} is sealed as it is: no scopes, client or issuer belong to it.", next_step="Leave them out."
        )
    if (user and not basic) or (replace and not kind):
        raise InvalidInput(
            "--user belongs to --basic, and --replace to --api-key, --bearer and --basic.",
            next_step="A login that is there is widened by another one, and taken back by: goex auth logout",
        )
    place: dict[str, Any] = {
        "base_url": base_url,
        "origins": origin or (),
        "private": private,
        "ca_pem": read_text(ca, "The CA") if ca is not None else "",
    }
    with connect(out) as client:
        if kind:
            from goex.rpc import accounts_pb2 as ab

            request = ab.PutCredentialRequest(
                service=service, account=account, kind=kind, user=user, place=ab.AccountPlace(**place), replace=replace
            )
            _put(client, request, out)
            return
        from goex.cli.login import LoginOptions, run, say_done

        options = LoginOptions(
            service=service,
            account=account,
            scopes=tuple(dict.fromkeys(scope or ())),
            flow="device" if device else "client_credentials" if client_credentials else "code",
            browser=not no_browser,
            server=endpoints,
            place=place,
            client_id=client_id,
            secret=_secret(client_secret or client_credentials, client_secret_fd),
        )
        say_done(run(client, options, out), out)


@app.command("logout")
def logout(
    service: Service,
    account: Annotated[str, typer.Option("--account", metavar="NAME", help="Which account of the service.")] = "",
    as_json: Json = False,
) -> None:
    """Take a login back at its provider, and forget it."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import accounts_pb2 as ab

    request = ab.LogoutRequest(service=service, account=account)
    reply = call(out, "Accounts/Logout", request, ab.LogoutReply, presence=True)
    if as_json:
        return
    label = shown(f"{reply.service}/{reply.account}")
    if reply.revoked:
        out.say(f"Taken back at the provider, and forgotten: {label}.")
        return
    out.say(f"Forgotten: {label}.")
    out.say(shown(reply.why), "bold yellow")
    if reply.next_step:
        out.say(shown(reply.next_step))


@app.command("list")
def list_accounts(
    service: Annotated[str, typer.Argument(metavar="[SERVICE]", help="Only this service.", show_default=False)] = "",
    as_json: Json = False,
) -> None:
    """Which accounts are connected, and what each may do. Never the credentials."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.vault_state import no_use
    from goex.rpc import accounts_pb2 as ab

    with connect(out) as client:
        reply = client.call("Accounts/ListAccounts", ab.ListAccountsRequest(service=service), ab.ListAccountsReply)
        unused = no_use(client)
    out.message(reply)
    if as_json:
        return
    if not reply.accounts:
        out.say("No account is connected.")
        out.progress("Connect one with: goex auth login SERVICE")
        return
    out.table(
        ("service", "account", "kind", "scopes", "expires", "narrowed by", "last used"),
        [
            (
                one.service,
                one.account,
                one.kind,
                ", ".join(one.scopes) or ("none" if one.renews or one.issuer else "not known"),
                _expiry(one),
                _narrowed(one),
                local(one.last_used) or unused,
            )
            for one in reply.accounts
        ],
    )
    for one in reply.accounts:
        label = f"{one.service}/{one.account}"
        if one.subject:
            out.say(shown(f"{label} is logged in as {one.subject} at {one.issuer}."))
        if one.refused:
            out.say(shown(f"{label} was asked for more than was granted: {', '.join(one.refused)}."), "yellow")
        if one.trouble:
            out.say(shown(f"{label} can't be used: {one.trouble}"), "bold yellow")


def _expiry(account: ab.ConnectedAccount) -> str:
    if not account.expires:
        return "renews itself" if account.renews else "not known"
    return f"{local(account.expires)}{' (renews)' if account.renews else ''}"


def _narrowed(account: ab.ConnectedAccount) -> str:
    return {"token": "the provider", "gateway": "GoEx's gateway"}.get(account.narrowed, "not seen yet")


def _put(client: Client, request: ab.PutCredentialRequest, out: Output) -> None:
    from goex.cli.daemon_calls import call_with_presence
    from goex.cli.prompt import Terminal
    from goex.cli.secretinput import read_secret
    from goex.cli.vault import imported_base
    from goex.cli.vault_state import check_first, require_open, say_grants_kept, say_where
    from goex.rpc import accounts_pb2 as ab

    if not request.place.base_url and not request.replace:
        request.place.base_url = imported_base(out, request.service)
    require_open(client, out)
    words = {"api-key": "API key", "bearer": "token", "basic": "password"}[request.kind]
    label = f"{request.service}/{request.account}"
    if request.kind == "basic" and not request.user:
        terminal = Terminal.find()
        request.user = (terminal.ask("User name: ") or "") if terminal is not None else ""
        if not request.user:
            raise InvalidInput("A user name is needed.", next_step="Give it: --user NAME")
    say_where(out, f"The {words}", check_first(client, "Accounts/PutCredential", request, ab.ConnectedAccount))
    question = f"{words[0].upper()}{words[1:]} for {shown(label)}: "
    request.secret = read_secret(question, what=f"The {words}").reveal()
    reply = call_with_presence(client, "Accounts/PutCredential", request, ab.ConnectedAccount)
    out.message(reply)
    if not out.as_json:
        out.say(shown(f"Sealed {label}, for {', '.join(reply.origins)} only."))
        if request.replace:
            say_grants_kept(client, out, request.service, request.account)


def _secret(asked: bool, fd: int) -> Any:
    """How the client's secret is read when it is needed; None where it isn't said that there is one."""
    if fd >= 0:
        return lambda: _from_fd(fd)
    if not asked:
        return None

    def read() -> bytes:
        from goex.cli.secretinput import read_passphrase

        return read_passphrase("Client secret: ", what="The client's secret").encode("utf-8")

    return read


def _from_fd(fd: int) -> bytes:
    from goex.cli.secretinput import MAX_SECRET

    try:
        with open(fd, "rb", closefd=fd > 2) as file:
            value = file.read(MAX_SECRET + 1).removesuffix(b"\n").removesuffix(b"\r")
    except OSError as error:
        raise InvalidInput(
            f"The file descriptor {fd} can't be read: {error.strerror}.", next_step=f"Give it: {fd}<FILE"
        ) from error
    if not value or len(value) > MAX_SECRET:
        raise InvalidInput("The client's secret is empty, or too long.", next_step="Check what the descriptor holds.")
    return value
