"""What the daemon's log may hold: GoEx's own words, and nothing that a library was given to send."""

from __future__ import annotations

import contextlib
import gc
import logging
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator

import pytest

from goex import logs
from goex.daemon.logind import Logind
from goex.daemon.logs import log_to_stderr
from goex.logs import OURS
from goex.rpc import goex_pb2 as pb
from policies.errors import Unavailable
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.page import add_shop, ask_for_update

TOKEN = "syt_TOKEN_of_the_room"
SECONDS = 30.0


@pytest.fixture
def echo() -> Iterator[tuple[int, list[bytes]]]:
    """A homeserver that says what it was sent, where a header belongs; and what it was sent."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    link, _ = server.accept()
                    with link, contextlib.suppress(OSError):
                        heard.append(link.recv(65_536))
                        lines = heard[-1].split(b"\r\n")
                        said = [line for line in lines if line.lower().startswith(b"authorization")]
                        link.sendall(
                            b"\r\n".join(
                                (b"HTTP/1.1 200 OK", b"X-A: a", lines[0], *said, b"Content-Length: 0", b"", b"")
                            )
                        )

        threading.Thread(target=answer, daemon=True).start()
        yield server.getsockname()[1], heard
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.promise(39)
@pytest.mark.parametrize("level", [pytest.param("info", marks=pytest.mark.thorough), "debug"])
def test_what_was_sent_to_a_hostile_homeserver_is_not_in_the_log(echo: tuple[int, list[bytes]], level: str) -> None:
    port, heard = echo
    config = f'[log]\nlevel = "{level}"\n[notify]\nmatrix_room = "!room:x"\nmatrix_after = 0\n'
    with Daemon(config=config) as daemon:
        daemon.person("VaultPut", pb.VaultPutRequest(
            service="matrix", account="mine", secret=TOKEN.encode(), base_url=f"http://127.0.0.1:{port}", private=True,
            passphrase=APPROVAL_PASSPHRASE,
        ))  # fmt: skip
        add_shop(daemon)
        ask_for_update(daemon, daemon.add_agent("bot"), "x")
        until = time.monotonic() + SECONDS
        while "the room was" not in daemon.tail(1_000_000):
            assert time.monotonic() < until, daemon.tail()
            time.sleep(0.1)
        assert any(TOKEN.encode() in one for one in heard)
        written = daemon.tail(1_000_000)
        assert TOKEN not in written and "urllib3" not in written and "INFO goex.daemon" in written


@pytest.fixture
def own_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, hooks = root.handlers[:], root.level, (sys.excepthook, sys.unraisablehook, threading.excepthook)
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in OURS:
        logging.getLogger(name).setLevel(logging.NOTSET)
    sys.excepthook, sys.unraisablehook, threading.excepthook = hooks
    logging.captureWarnings(False)
    logging.raiseExceptions = True


def library() -> None:
    raise ValueError(TOKEN)


def test_at_debug_only_goex_is_heard(own_logging: None, capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("debug")
    logging.getLogger("runtimes.mongo").debug("ours %d", 1)
    foreign = logging.getLogger("pymongo.command")
    foreign.setLevel(logging.DEBUG)  # as a library may by itself
    for write in (foreign.debug, foreign.info, foreign.warning, foreign.error, logging.warning):
        write("sent: %s", TOKEN)
    try:
        library()
    except ValueError:
        logging.getLogger("asyncio").exception("lost: %s", TOKEN, stack_info=True)
    written = capsys.readouterr().err
    assert TOKEN not in written and "DEBUG runtimes.mongo ours 1" in written
    assert "ERROR pymongo.command met an error" in written
    assert "ERROR asyncio met an error" in written and "\nValueError\n" in written
    assert f"at library ({__file__}:" in written  # where it was is no secret


class Ends:
    def __del__(self) -> None:
        library()


def by_a_thread() -> None:
    thread = threading.Thread(target=library)
    thread.start()
    thread.join()


def by_goex() -> None:
    try:
        library()
    except ValueError:
        logging.getLogger("goex.engine").exception("it met a defect")


def at_the_end() -> None:
    try:
        library()
    except ValueError as error:
        sys.excepthook(ValueError, error, error.__traceback__)


@pytest.mark.promise(39)
@pytest.mark.parametrize("way", [by_a_thread, by_goex, at_the_end, Ends])
def test_a_librarys_words_come_by_no_other_way(
    own_logging: None, capsys: pytest.CaptureFixture[str], way: Callable[[], object]
) -> None:
    log_to_stderr("debug")
    way()
    gc.collect()
    written = capsys.readouterr().err
    assert TOKEN not in written
    assert "ValueError\n" in written and f"at library ({__file__}:" in written


def test_nor_as_warnings_or_as_what_could_not_be_written(own_logging: None, capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("debug")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn(TOKEN, stacklevel=1)
    logging.getLogger("goex.engine").info("%d", TOKEN)
    assert not capsys.readouterr().err


def test_goexs_own_errors_are_told_with_what_they_came_of(
    own_logging: None, capsys: pytest.CaptureFixture[str]
) -> None:
    log_to_stderr("info")
    try:
        try:
            library()
        except ValueError as error:
            raise Unavailable("The server is away.", next_step="Start it.") from error
    except Unavailable:
        logging.getLogger("goex.engine").exception("it ended")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("ERROR goex.engine it ended") and lines[1] == "ValueError"
    assert "Unavailable: The server is away. Start it." in lines and TOKEN not in "".join(lines)


@pytest.mark.promise(39)
def test_a_librarys_words_are_no_argument_either(own_logging: None, capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("info")
    ours = logging.getLogger("goex.engine")
    ours.error("it failed: %s, %r, %s", ValueError(TOKEN), OSError(TOKEN), Unavailable("The server is away."))
    written = capsys.readouterr().err
    assert written.endswith("ERROR goex.engine it failed: ValueError, 'OSError', The server is away.\n")


@pytest.mark.promise(39)
def test_nor_in_what_is_an_argument(own_logging: None, capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("info")
    ours, error = logging.getLogger("goex.engine"), ValueError(TOKEN)
    ours.error(error)
    ours.error("%(a)s", {"a": error})
    ours.error("%s of %s", [error, (error, 1)], {"b": {error: {error}}})
    ours.error("%s", [Unavailable("The server is away."), {("c",): "d"}])
    endless: list[object] = [error]
    endless.append(endless)
    ours.error("%s", endless)
    written = capsys.readouterr().err
    assert TOKEN not in written
    assert [line.partition("goex.engine ")[2] for line in written.splitlines()] == [
        "ValueError",
        "ValueError",
        "['ValueError', ('ValueError', 1)] of {'b': {'ValueError': ('ValueError',)}}",
        "[Unavailable('The server is away.'), {'tuple': 'd'}]",
        "['ValueError', ['ValueError', ['ValueError', ['ValueError', 'list']]]]",
    ]


@pytest.mark.promise(39)
async def test_why_it_was_not_sealed_is_told_without_what_was_written(
    own_logging: None, capsys: pytest.CaptureFixture[str]
) -> None:
    async def told() -> None:
        library()

    log_to_stderr("info")
    await Logind(told, told)._within(told)
    written = capsys.readouterr().err
    assert TOKEN not in written and "goex.daemon sealing failed\nValueError\n  at " in written
    assert f"at library ({__file__}:" in written


@pytest.mark.promise(39)
def test_nobody_else_writes_a_line(own_logging: None, capsys: pytest.CaptureFixture[str]) -> None:
    forged = "x\n2026-11-28 10:00:00,000 INFO goex.daemon the vault was opened\r\x1b[2J"
    log_to_stderr("info")
    ours = logging.getLogger("goex.engine")
    ours.warning("the folder %s isn't there", forged)
    try:
        raise Unavailable(forged)
    except Unavailable as error:
        ours.error("it ended: %s", error, exc_info=error)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[3] for line in lines[:2]] == ["goex.engine", "goex.engine"]
    assert lines[2].startswith("Unavailable: x\\u{a}2026") and lines[3].startswith("  at ") and len(lines) == 4
    assert "\x1b" not in "".join(lines) and "\\u{1b}[2J" in lines[0]


@pytest.mark.promise(16)
def test_an_error_of_a_librarys_that_comes_again_and_again_is_told_once(
    own_logging: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(name: str) -> None:
        try:
            int(name) if name else library()
        except ValueError as error:
            logging.getLogger("grpc").error("x", exc_info=error)

    log_to_stderr("info")
    for _ in range(100):
        fails("")
    fails("no number")  # another one
    monkeypatch.setattr(logs, "TOLD_EVERY", 0.0)
    fails("")
    lines = [line for line in capsys.readouterr().err.splitlines() if " grpc met an error" in line]
    assert len(lines) == 3 and lines[2].endswith("; 99 times more since the last time")
