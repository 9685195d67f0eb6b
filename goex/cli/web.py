"""`goex web`: the page on which the person answers, looks back and takes back."""

from __future__ import annotations

import os
import re
import threading
from contextlib import ExitStack, suppress
from typing import Annotated

import typer

from goex.cli.output import Json, Output

_SET_URL = "Set it to the address of your tunnel to this page, like https://goex.example.org."


def web(
    port: Annotated[
        int | None,
        typer.Option(help="The port on this machine; default: [web] port, which a tunnel needs.", min=0, max=65535),
    ] = None,
    as_json: Json = False,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in the browser.")] = True,
    question: Annotated[str, typer.Option(metavar="ID", help="Open it at this question.")] = "",
    phone: Annotated[bool, typer.Option("--phone", help="A link to [web] public_url, to begin there.")] = False,
    old: Annotated[
        bool, typer.Option("--localhost", help="At http://localhost, for passkeys that were registered there.")
    ] = False,
) -> None:
    """Show what waits, what happened and what is allowed on a page in your browser.

    Prints a link that opens the page once, within a minute. Runs until Ctrl-C; called again meanwhile, it prints
    another link to the same page. --phone makes a link for your phone, and a QR code of it where qrencode is installed.
    """
    import asyncio
    from urllib.parse import urlsplit

    from goex.browser import lead_browser
    from goex.cli.connect import connect, paths
    from goex.config import load
    from goex.logs import own_words_to_stderr
    from goex.page_address import OLD_HOST
    from goex.web.access import LINK_SECONDS, KeyFile
    from goex.web.server import link, serve
    from policies.errors import Conflict, InvalidInput

    if question and not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", question):
        raise InvalidInput("That isn't the id of a question.", next_step="See them: goex approve")
    out = Output(as_json)
    places = paths()
    config = load(places.config_file).web
    # Where the page was for all to foresee, another user may have left a script: --localhost takes a free port.
    wanted = port if port is not None else 0 if old else config.port
    at = config.public_url if phone else ""
    if phone and not at:
        raise InvalidInput("There is no [web] public_url in config.toml.", next_step=_SET_URL)
    if phone and wanted != config.port:
        step = "Leave --port and --localhost out, or set [web] port to the tunnel's."
        raise InvalidInput("A tunnel leads to [web] port alone.", next_step=step)

    with ExitStack() as ending:

        def tell(link: str, wait: float = 0) -> None:
            out.json({"link": link})
            if not as_json:
                out.say(link)
            if phone:
                if not as_json:
                    _show_as_picture(link)
            elif browser and not as_json and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
                if wait:
                    out.progress("Waiting a minute at most for your browser. You can open the link, too.")
                asked = places.web_opening, f"{link}/{question}" if question else link, ending, wait
                # A browser that stays in the foreground ends when the person closes it, and the page is served here.
                opening = threading.Thread(target=lead_browser, args=asked, daemon=True)
                opening.start()
                if wait:
                    opening.join()

        if running := KeyFile(places.web_key).of_running():
            key, origin = running
            here = urlsplit(origin)
            elsewhere = here.port != config.port if at else old != (here.hostname == OLD_HOST)
            if elsewhere:
                raise Conflict("The page runs at another address.", next_step="End it where it runs, then try again.")
            tell(link(at or origin, key), LINK_SECONDS)
            return
        connect(out).close()  # so that there is a daemon, and its socket is ours
        public = config.public_url
        if public and wanted != config.port:  # nobody comes through the tunnel but whoever has its port
            out.progress(f"{public} isn't served here: it is at [web] port ({config.port}) alone.")
            public = ""
        own_words_to_stderr("warning")
        with suppress(KeyboardInterrupt):
            asyncio.run(serve(places, wanted, public, tell, at=at, old=old))


def _show_as_picture(link: str) -> None:
    """Show a QR code of it, where the program for that is installed; it reads the link where no other user sees it."""
    import shutil
    import subprocess
    import sys

    if (program := shutil.which("qrencode")) is not None:
        subprocess.run([program, "-t", "ANSIUTF8"], input=link.encode(), stdout=sys.stderr, check=False)
