"""A login, as the person sees it: what would be used, the address to open, and what came of it.

Rules: the address is always printed, and a browser is opened only where the person's own desktop (or $BROWSER) has one;
what an import says about where tokens go is shown and agreed to first; a client's secret is typed, piped or read from
a file descriptor, never an argument. Ctrl-C ends the login, with nothing stored.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from goex.cli.connect import paths
from goex.cli.output import Output, local, shown, to_json
from goex.cli.prompt import Terminal, with_presence
from goex.cli.question_text import Line
from policies.errors import Denied, InvalidInput

if TYPE_CHECKING:
    from goex.client import Client
    from goex.rpc import accounts_pb2 as ab

_SHOWN_SCOPES = 40
_LONGEST_PASTE = 20_000  # bytes
_OPENED = "Your browser was told to open it. If it shows an error instead, open the address yourself."
_ENDPOINTS = ("issuer", "authorization_endpoint", "token_endpoint", "device_endpoint", "revocation_endpoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginOptions:
    """What the person wants to log in to, and how. `secret`: where the client's secret comes from."""

    service: str
    account: str = "default"
    scopes: tuple[str, ...] = ()
    flow: str = "code"  # or "device", "client_credentials"
    browser: bool = True
    server: dict[str, str] = field(default_factory=dict)  # of AuthorizationServer
    place: dict[str, Any] = field(default_factory=dict)  # of AccountPlace
    client_id: str = ""
    secret: Callable[[], bytes] | None = None


def run(client: Client, options: LoginOptions, out: Output) -> ab.LoginDone:
    """One login, to its end. Raises GoexError when nothing came of it, KeyboardInterrupt after calling it off."""
    from goex.rpc import accounts_pb2 as ab

    terminal = None if out.as_json else Terminal.find()
    request = ab.LoginRequest(
        service=options.service,
        account=options.account,
        server=ab.AuthorizationServer(**options.server),
        place=ab.AccountPlace(**options.place),
        client_id=options.client_id,
        scopes=options.scopes,
        flow=options.flow,
    )
    offer = _agreed(client, request, out, terminal)
    registers = offer.registers and options.flow == "code"
    if not (request.client_id or offer.client_id or registers):
        request.client_id = _client_id(offer, terminal)
    if options.secret is not None:
        request.client_secret = options.secret()
    elif offer.client == "confidential" and not (offer.client_id or registers) and terminal:
        request.client_secret = terminal.secret("Client secret (Enter: it has none): ").encode("utf-8")
    first, events = with_presence(lambda passphrase: _first_event(client, request, passphrase), terminal)
    with ExitStack() as ending:
        ending.callback(events.close)
        return _follow(client, chain([first] if first is not None else [], events), options, out, ending)


def say_done(done: ab.LoginDone, out: Output) -> None:
    """What came of a login, in words."""
    if out.as_json:
        return
    account = done.account
    out.say(shown(f"Connected {account.service}/{account.account}."), "bold")
    out.fields(
        (
            ("logged in as", account.subject),
            ("scopes", ", ".join(account.scopes) or "none"),
            ("goes to", ", ".join(account.origins)),
            ("renews", "by itself" if account.renews else "not at all: log in again when it has run out"),
            ("good until", local(account.expires) if account.expires and not account.renews else ""),
        )
    )
    if done.dropped:
        out.say(
            shown(f"Asked for, and not granted: {', '.join(done.dropped)}. What needs these won't run."),
            "bold yellow",
        )


def offer_scopes(offer: ab.OfferReply, out: Output) -> None:
    """Which scopes there are, in words, on stderr."""
    for scope in offer.scopes[:_SHOWN_SCOPES]:
        state = " (granted)" if scope.granted else ""
        out.progress(f"  {scope.name}{state}  [{scope.risk}] {scope.description}")
        for action in scope.wanted_by:
            out.progress(f"      wanted by {action}")
    if len(offer.scopes) > _SHOWN_SCOPES:
        rest = len(offer.scopes) - _SHOWN_SCOPES
        out.progress(f"  … and {rest} more: goex catalog show {offer.service} --json")


def _first_event(
    client: Client, request: ab.LoginRequest, passphrase: str
) -> tuple[ab.LoginEvent | None, Generator[ab.LoginEvent, None, None]]:
    """A login that the daemon has taken: its first event, which is read at once, and those to come."""
    from goex.rpc import accounts_pb2 as ab

    request.passphrase = passphrase
    events = client.streamed("Accounts/Login", request, ab.LoginEvent)
    return next(events, None), events


def _follow(
    client: Client, events: Iterable[ab.LoginEvent], options: LoginOptions, out: Output, ending: ExitStack
) -> ab.LoginDone:
    for event in events:
        if out.as_json:
            out.json(to_json(event))
        match event.WhichOneof("what"):
            case "progress":
                out.progress(event.progress)
            case "open":
                _open(client, event.open, options, out, ending)
            case "code":
                _enter(event.code, options, out, ending)
            case "done":
                return event.done
    raise Denied("The login ended without a word.", next_step="See daemon.log, whose place goex doctor names.")


def _open(client: Client, opened: ab.OpenBrowser, options: LoginOptions, out: Output, ending: ExitStack) -> None:
    out.progress(f"Asked for: {', '.join(opened.scopes) or 'no scope'}.")
    if not out.as_json:
        out.progress("Log in at this address:")
        _address(opened.url)
    if options.browser and _browse(opened.url, ending):
        out.progress(_OPENED)
    if out.as_json:
        return
    out.progress("If the browser is on another machine, it ends on a page that can't be opened:")
    out.progress("copy that page's address, paste it here and press Enter. Ctrl-C ends the login.")
    pasting = _Pasting()
    ending.callback(pasting.end)
    pasting.begin(client, opened.login_id, out)


def _enter(code: ab.EnterCode, options: LoginOptions, out: Output, ending: ExitStack) -> None:
    out.progress(f"Asked for: {', '.join(code.scopes) or 'no scope'}.")
    if not out.as_json:
        out.progress("Open this address, on any machine:")
        _address(code.verification_url)
        out.progress(f"and enter this code, before {local(code.deadline)}:")
        _address(code.user_code)
    if options.browser and _browse(code.verification_url_complete or code.verification_url, ending):
        out.progress(_OPENED)


def _address(text: str) -> None:
    """On stderr, alone on its line and never folded, so that it can be copied whole."""
    sys.stderr.write(f"    {shown(text)}\n")
    sys.stderr.flush()


def _browse(url: str, ending: ExitStack) -> bool:
    """Open the person's own browser. A browser of the terminal isn't one: it would take the terminal over.

    No other user sees the address: whoever has it could finish this login with an account of their own.
    """
    if not url.startswith(("https://", "http://")):
        return False
    desktop = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if not desktop:
        return False
    from goex.browser import lead_browser

    return lead_browser(paths().login_opening, url, ending)


class _Pasting:
    """Sends on the address that is pasted while a login waits. It lets go of stdin when the login has ended, so that
    the next question isn't answered into it."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, client: Client, login_id: str, out: Output) -> None:
        thread = threading.Thread(target=self._watch, args=(client, login_id, out), daemon=True)
        thread.start()  # before it is known: Ctrl-C may come in between, and only what was started can be waited for
        self._thread = thread

    def end(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join(2.0)

    def _watch(self, client: Client, login_id: str, out: Output) -> None:
        from goex.rpc import accounts_pb2 as ab
        from policies.errors import GoexError

        data = b""
        while not self._ended.is_set():
            try:
                if not select.select([0], [], [], 0.2)[0]:
                    continue
                piece = os.read(0, 4096)
            except (OSError, ValueError):  # there is no stdin
                return
            data += piece
            if not piece or len(data) > _LONGEST_PASTE:
                return
            *lines, data = data.split(b"\n")
            for line in filter(None, (line.strip() for line in lines)):
                try:
                    request = ab.FinishLoginRequest(login_id=login_id, redirect_url=line.decode("utf-8", "replace"))
                    client.call("Accounts/FinishLogin", request, ab.FinishLoginReply)
                    return
                except GoexError as error:
                    out.progress(str(error))


def _agreed(client: Client, request: ab.LoginRequest, out: Output, terminal: Terminal | None) -> ab.OfferReply:
    """What a login would use; what only an import says is shown, and must be agreed to."""
    from goex.rpc import accounts_pb2 as ab

    asked = ab.OfferRequest(
        service=request.service, account=request.account, server=request.server, place=request.place
    )
    placed = bool(request.place.base_url)  # whether the person said, or saw, where the token will go
    for _ in range(4):
        offer = client.call("Accounts/Offer", asked, ab.OfferReply)
        if offer.local:
            _said_private(offer, terminal)
            asked.place.private = request.place.private = placed = True
            continue
        if not offer.confirm:
            break
        out.progress(
            f"Its issuer says of {offer.service}:"
            if asked.confirmed.issuer
            else f"What was imported as {offer.service} says that its tokens come from, and are renewed at:"
        )
        for name in _ENDPOINTS:
            if getattr(offer.server, name):
                out.progress(f"  {name.replace('_', ' ')}: {getattr(offer.server, name)}")
        placed = _say_places(offer, out) or placed
        out.progress("Whoever wrote that chose these places; tokens and the client's secret will go there.")
        if terminal is None or not terminal.agrees("Are they the provider's own? (yes/no) [no]: "):
            raise Denied(
                "Where the tokens would go wasn't confirmed.",
                next_step="Give the provider's own: --issuer https://…; or confirm it in a terminal.",
            )
        asked.confirmed.CopyFrom(offer.server)
        request.confirmed.CopyFrom(offer.server)
    else:
        raise Denied("What the import says changes each time that it is looked at.", next_step="Import it again.")
    if offer.said_by == "":
        raise InvalidInput(
            f"It isn't known where logins to {offer.service} happen.",
            next_step="Say it: --issuer https://…; or seal a key instead: --api-key, --bearer or --basic.",
        )
    if not placed and offer.said_by == "you" and _imported(client, offer.service):
        _agree_to_places(offer, out, terminal)
    if not (request.scopes or any(scope.granted or scope.wanted for scope in offer.scopes)) and offer.scopes:
        out.progress(f"{offer.service} has these scopes:")
        offer_scopes(offer, out)
        raise InvalidInput(
            "Which scopes should be asked for?",
            next_step=f"Name them in the same command: --scope {offer.scopes[0].name}; "
            "or run what you want to have done, and GoEx asks for what that needs.",
        )
    return offer


def _say_places(offer: ab.OfferReply, out: Output) -> bool:
    """Say where the token will be sent, and whether anything was said."""
    for url in offer.base_urls:
        out.progress(f"  calls with the token: {url}")
    return bool(offer.base_urls)


def _imported(client: Client, service: str) -> bool:
    from goex.rpc import goex_pb2 as pb

    reply = client.call("Person/Services", pb.ServicesRequest(service=service), pb.ServicesReply)
    return any(one.source == "imported" for one in reply.services)


def _agree_to_places(offer: ab.OfferReply, out: Output, terminal: Terminal | None) -> None:
    """Where logins happen the person said; where the token then goes only an import says. Raises Denied."""
    out.progress(f"What was imported as {offer.service} says where the token will be sent:")
    _say_places(offer, out)
    if terminal is None or not terminal.agrees("Is that the provider's own? (yes/no) [no]: "):
        raise Denied(
            "Where the token would be sent wasn't confirmed.",
            next_step="Give the service's own address: --base-url https://…; or confirm it in a terminal.",
        )


def _said_private(offer: ab.OfferReply, terminal: Terminal | None) -> None:
    """The person says that a plain http address is on this machine or network. Raises Denied."""
    where = ", ".join(offer.base_urls)
    question = (
        f"{where} is plain http. Is it on this machine or network, and may the credential go there? (yes/no) [no]: "
    )
    if terminal is None or not terminal.agrees(shown(question)):
        raise Denied(
            f"{where} is plain http, which shows the credential to the network.",
            next_step="Use https, or --private for a server on this machine or network.",
        )


def _client_id(offer: ab.OfferReply, terminal: Terminal | None) -> str:
    where = offer.server.issuer or offer.server.token_endpoint
    if terminal is not None:
        for line in (
            f"GoEx needs a client id of yours at {where}: register a desktop (native) app there,",
            "with the redirect address http://127.0.0.1/callback",
        ):
            terminal.write(Line(shown(line)))
        said = terminal.ask("Client id: ")
        if said:
            return said
    raise InvalidInput(
        f"A login at {where} needs a client id.",
        next_step="Register a desktop (native) app there, with the redirect address http://127.0.0.1/callback, "
        "and give its id: --client-id ID",
    )
