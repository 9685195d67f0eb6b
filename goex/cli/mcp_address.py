"""`goex mcp add NAME URL`: an MCP server at an address as a service.

Rules: it is asked where logins to it happen, without a credential and at its own origin alone; which authorization
server it names is shown, and confirmed by the person. Its tools are asked for by the daemon, as the account, and are
agreed to as those of any server: nothing is called before.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from goex.cli.output import Output, shown
from goex.cli.vault_app import DEFAULT_ACCOUNT
from policies.errors import InvalidInput

if TYPE_CHECKING:
    from goex.client import Client
    from policies.services import OAuth
    from runtimes.servers.definition import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOptions:
    """What the person wants to add. `bearer`: a token that they have, in the place of a login."""

    name: str
    url: str
    bearer: bool
    header: str
    private: bool
    ca_pem: str
    client_id: str
    scopes: tuple[str, ...]
    browser: bool


def check(options: AddOptions) -> None:
    """Raise InvalidInput or Conflict for an address or a name that can't be taken; nothing is asked for."""
    from goex.cli.connect import paths
    from mapper.importing import mcp_install
    from vault.oauth.provider import check_url

    check_url(options.url, private=options.private, what="The server's address")
    if "?" in options.url:
        raise InvalidInput("A server's address has no query.", next_step="Leave it out.")
    mcp_install.check_name(paths().catalog, options.name, replace_own=False)


def add(out: Output, options: AddOptions) -> Server:
    """Connect its account, ask for its tools, and agree to them. Raises GoexError; nothing stays where nothing was
    connected, and `goex mcp review` goes on where its tools couldn't be asked for."""
    from goex.cli.connect import connect, paths
    from goex.cli.vault_state import require_open
    from mapper.importing import mcp_install
    from mapper.importing.install import remove
    from policies.services import Placement
    from runtimes.sandbox import images
    from runtimes.servers import packages
    from runtimes.servers.definition import Server, Servers

    check(options)
    place = paths()
    images.build(packages.IMAGE, out.progress)
    oauth = None if options.bearer else _logins(out, options)
    draft = Server(
        name=options.name,
        command=(options.url,),
        argv=(),
        image=packages.IMAGE,
        lock="",
        tools=(),
        url=options.url,
    )
    placement = Placement(header=options.header, format="{secret}") if options.header else Placement()
    with connect(out) as client:
        require_open(client, out)
        Servers(place.servers).put(draft)
        about = f"An MCP server: {options.url}"
        mcp_install.announce(place.catalog, options.name, draft.version, about, draft.base_url, placement, oauth)
        try:
            _connect(client, out, options, draft, oauth)
        except BaseException:
            remove(place.catalog, options.name)
            Servers(place.servers).remove(options.name)
            raise
        return draft.having(tools_of(client, options.name))


def tools_of(client: Client, name: str) -> tuple[dict[str, Any], ...]:
    """What a server at an address says of its tools now."""
    from goex.rpc import accounts_pb2 as ab
    from policies.jsonvalue import parse

    reply = client.call("Accounts/ListTools", ab.ListToolsRequest(service=name), ab.ListToolsReply)
    tools: Any = parse(reply.tools_json, limit=16_000_000, what="The list of tools")
    return tuple(tools)


def _logins(out: Output, options: AddOptions) -> OAuth | None:
    """How a login to it goes, as it says itself; None where it says nothing of logins."""
    from policies.services import OAuth
    from vault.oauth import protected_resource
    from vault.oauth.http import Http

    out.progress(shown(f"Asking {options.url} where logins happen."))
    found = protected_resource.find(options.url, Http(private=options.private, ca_pem=options.ca_pem))
    if found is None:
        out.progress("It says nothing of logins: it gets no credential of yours. For a token that you have: --bearer.")
        return None
    scopes = options.scopes or found.scopes
    return OAuth(issuer=found.issuer, always=scopes, resource=found.resource, source="imported")


def _connect(client: Client, out: Output, options: AddOptions, draft: Server, oauth: OAuth | None) -> None:
    """Seal its account: by a login, with a token, or with what is worth nothing where it has none."""
    from goex.cli import login
    from goex.cli.daemon_calls import call_with_presence
    from goex.cli.secretinput import read_secret
    from goex.rpc import goex_pb2 as pb

    where: dict[str, Any] = {
        "base_url": options.url,
        "origins": [draft.mark],
        "private": options.private,
        "ca_pem": options.ca_pem,
    }
    if oauth is not None:
        asked = login.LoginOptions(
            service=options.name, place=where, client_id=options.client_id, browser=options.browser
        )
        login.say_done(login.run(client, asked, out), out)
        return
    secret = secrets.token_urlsafe(32).encode()
    if options.bearer:
        secret = read_secret(f"Credential for {shown(options.name)}: ", what="The credential").reveal()
    request = pb.VaultPutRequest(service=options.name, account=DEFAULT_ACCOUNT, format="string", secret=secret, **where)
    call_with_presence(client, "Person/VaultPut", request, pb.AccountView)
