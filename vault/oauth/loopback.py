"""Where the person's browser comes back to: one address on this machine, for one login (RFC 8252 section 7.3). Or where
it is led from, to a login's address or the page's (`goex/browser.py`).

Rules: it listens on 127.0.0.1 alone, on a port that the system chose, and nothing that it is sent is trusted: whoever
runs on this machine can connect. Where the kernel says whose a connection is, other users' aren't even read: they could
have read the login's address in the browser's command line, and answer with a login of their own. A request is read
within small bounds, and only a GET of the one path, for this very host and port, is handed on. What the login makes of
it is told in plain words, on a page that loads nothing, runs nothing and can't be framed. The server's words, and the
request's, aren't shown on it.
"""

from __future__ import annotations

import contextlib
import html
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from policies.http_heads import h11

HOST = "127.0.0.1"
_MOST_AT_ONCE = 8
_PATIENCE = 5.0  # seconds for a whole visit: nobody keeps a place by sending a byte now and then
_LONGEST_HEAD = 16_384

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6") if sys.byteorder == "little" else ()

_HEADERS = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("Pragma", "no-cache"),
    # `sandbox` and `default-src 'none'`: it is text, and stays text whatever happens.
    (
        "Content-Security-Policy",
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
    ),
    ("X-Frame-Options", "DENY"),
    ("X-Content-Type-Options", "nosniff"),
    # The address of this page has the code in it.
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Connection", "close"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What the browser is told: one heading, one sentence."""

    status: int
    heading: str
    text: str
    location: str = ""  # that the browser goes on to

    def render(self) -> bytes:
        title, text = html.escape(self.heading), html.escape(self.text)
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f"<title>{title}</title></head><body><h1>{title}</h1><p>{text}</p></body></html>\n"
        ).encode()


def tells_users() -> bool:
    """Whether this system says whose a connection is."""
    return any(Path(table).exists() for table in _TABLES)


def strangers(link: socket.socket, own_alone: bool = False) -> bool:
    """Whether a connection to a listener of ours is another user's: not ours, and not root's. Linux alone says so
    (proc(5), /proc/net/tcp); a connection whose other end is closed by then is nobody's, and no browser's.

    Only one from HOST can be a browser's, and both ends are compared whole: a port alone may be that of several.
    `own_alone`: so is one that may be root's, or of which nothing is known.
    """
    from_, to = link.getpeername(), link.getsockname()
    if (from_[0], to[0]) != (HOST, HOST):
        return True
    theirs, ours = _ends(from_[1]), _ends(to[1])
    known = False
    for table in _TABLES * 3:  # what is being changed while it is read may leave a line out
        with contextlib.suppress(OSError), Path(table).open(encoding="ascii") as file:
            for parts in map(str.split, file):
                known = known or parts[1] in ours  # we ourselves: the table is one to go by
                if parts[1] in theirs and parts[2] in ours:
                    uid, inode = int(parts[7]), int(parts[9])
                    return inode == 0 or (uid != os.geteuid() and (own_alone or uid != 0))
    return known or own_alone


def _ends(port: int) -> tuple[str, str]:
    """HOST and a port as the tables write them, of IPv4 and of IPv4 in IPv6."""
    return f"0100007F:{port:04X}", f"0000000000000000FFFF00000100007F:{port:04X}"


class Listener:
    """Listens from the moment it is made until `close`. `answer` is given the query of each visit, in a thread.
    `own_alone`: as of `strangers`."""

    def __init__(self, path: str, answer: Callable[[str], Page], own_alone: bool = False) -> None:
        self._path = path
        self._own_alone = own_alone
        self._answer = answer
        self._closed = threading.Event()
        self._visits: dict[socket.socket, None] = {}  # oldest first
        self._lock = threading.Lock()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._socket.bind((HOST, 0))
            self._socket.listen(16)
        except OSError:
            self._socket.close()
            raise
        self.port = int(self._socket.getsockname()[1])
        threading.Thread(target=self._accept, name="goex-login", daemon=True).start()

    @property
    def url(self) -> str:
        """The redirect URI."""
        return f"http://{HOST}:{self.port}{self._path}"

    def close(self) -> None:
        """Stop listening. A page that is on its way still gets there. Idempotent."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes accept; closing alone doesn't
        self._socket.close()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                link, _ = self._socket.accept()
            except OSError:
                if self._closed.wait(0.05):  # too many files open, say: not a reason to spin
                    return
                continue
            with self._lock:
                if len(self._visits) >= _MOST_AT_ONCE:
                    # Somebody may hold them all open. A browser is done in no time; who came first has had their time.
                    oldest = next(iter(self._visits))
                    del self._visits[oldest]
                    with contextlib.suppress(OSError):
                        oldest.shutdown(socket.SHUT_RDWR)  # its thread closes it
                self._visits[link] = None
            threading.Thread(target=self._serve, args=(link,), name="goex-login-visit", daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        try:
            with contextlib.closing(link), contextlib.suppress(OSError, h11.RemoteProtocolError):
                if strangers(link, self._own_alone):
                    return
                self._visit(link, time.monotonic() + _PATIENCE)
        finally:
            with self._lock:
                self._visits.pop(link, None)

    def _visit(self, link: socket.socket, until: float) -> None:
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_HEAD)
        read = 0
        while (event := http.next_event()) is h11.NEED_DATA:
            link.settimeout(max(until - time.monotonic(), 0.001))
            data = link.recv(4096)
            read += len(data)
            if read > _LONGEST_HEAD:
                return
            http.receive_data(data)
        if not isinstance(event, h11.Request):
            return
        page = self._page(event)
        body = page.render()
        headers = [*_HEADERS, ("Content-Length", str(len(body)))]
        if page.location:
            headers.append(("Location", page.location))
        parts: list[h11.Event] = [h11.Response(status_code=page.status, headers=headers)]
        if event.method != b"HEAD":
            parts.append(h11.Data(data=body))
        for part in (*parts, h11.EndOfMessage()):
            link.sendall(http.send(part) or b"")
        with contextlib.suppress(OSError):
            link.shutdown(socket.SHUT_WR)
            link.recv(4096)  # so that what is unread doesn't reset the connection before the page is there

    def _page(self, request: h11.Request) -> Page:
        hosts = [value for name, value in request.headers if name == b"host"]
        # A page elsewhere whose name was made to lead here would name itself.
        if hosts != [f"{HOST}:{self.port}".encode("ascii")]:
            return Page(status=421, heading="Not here", text="This address belongs to a login of GoEx.")
        try:
            target = urlsplit(request.target.decode("ascii"))
        except (UnicodeError, ValueError):
            return Page(status=400, heading="Not understood", text="GoEx can't read this address.")
        if target.scheme or target.netloc or target.path != self._path:
            return Page(status=404, heading="Nothing here", text="A login of GoEx waits at another address.")
        if request.method != b"GET":
            return Page(status=405, heading="Not like this", text="GoEx expects to be visited, nothing else.")
        return self._answer(target.query)
