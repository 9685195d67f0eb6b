"""Text that would command a terminal or turn its direction round, in every field that a person is shown.

What `goex` prints on a terminal holds none of it raw, and shows it as a visible escape. Its own colours and cursor
movements are a short list, which none of the hostile ones is on.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.echo_service import CA, EchoService, echoing
from tests.goex.daemon.unbroken import COMMANDING, unbroken
from tests.support.daemon import APPROVAL_PASSPHRASE, GOEX, Daemon
from tests.support.journey import Journey, decide, shell, undo
from tests.support.person import QUESTION
from tests.support.terminal import Terminal, TerminalError

pytestmark = pytest.mark.docker

# Clears the screen, blinks, sets the title, moves up, a C1 introducer, turns direction, isolates, hides, breaks lines;
# then markup of the library that draws, and a line that imitates ours.
EVIL = "\x1b[2J\x1b[5;41m\x1b]0;owned\x07\x1b[9A\x9b2J\u202egpj\u2066\u200b\u2028\u2029\r\x08[blink]x[/blink]\nline"
PATH_EVIL = EVIL.replace("/", "|")
POST = ("exec", "--call", "slack.chat.postMessage", "channel=#ops")
SEEN = ("\\u{1b}[2J", "\\u{202e}", "\\u{9b}2J", "\\u{2028}", "\\u{8}", "[blink]x[")
_COLOUR = r"(?:0|1|2|3|4|7|22|3[1-69]|49)"
OWN = re.compile(rf"\x1b\[(?:(?:{_COLOUR}(?:;{_COLOUR})*)?m|\?25[lh]|2K|1A)|\r\n|\r(?=\x1b\[(?:2K|1A))")
PASSPHRASE = "Approval passphrase: "
WIDE = (400, 3000)  # rows, columns: nothing is paged, and nothing that is looked for is folded


@pytest.fixture(autouse=True, scope="module")
def nothing_was_lost(daemon: Daemon) -> Iterator[None]:
    yield
    unbroken(daemon)


@pytest.fixture(scope="module")
def service(daemon: Daemon) -> Iterator[EchoService]:
    with echoing() as running:
        account = pb.VaultPutRequest(
            service="slack",
            base_url=running.url,
            private=True,
            ca_pem=CA.pem,
            secret=b"xoxb-1",
            passphrase=APPROVAL_PASSPHRASE,
        )
        daemon.person("VaultPut", account)
        yield running


def harmless(raw: str, *seen: str) -> None:
    """No foreign control reached the terminal, and `seen` can be read there."""
    left = OWN.sub(lambda match: "\n" if match[0] == "\r\n" else "", raw)
    found = COMMANDING.search(left)
    assert found is None, repr(left[max(0, found.start() - 80) : found.end() + 80])
    for part in seen:
        assert part in left, (part, left[-4000:])


def screen(daemon: Daemon, *arguments: str, said: str = "", status: int | None = 0, command: Path | None = None) -> str:
    """What a command writes to its terminal, byte for byte; `said` answers the question that it must then ask."""
    raw: list[str] = []
    argv = [str(command or GOEX), *arguments]
    with Terminal(argv, env=daemon.env, cwd=daemon.home, size=WIDE, shown=raw.append) as terminal:
        asked = False
        with suppress(TerminalError):  # it ended, or `wait` says that it hangs
            while True:
                found = terminal.expect(f"{QUESTION}|{PASSPHRASE}", seconds=300)[0]
                if found == PASSPHRASE:
                    terminal.type(APPROVAL_PASSPHRASE)
                    continue
                terminal.type(said if asked else "?")  # the short question and all that is behind it
                asked = True
        ended = terminal.wait(seconds=5)
    assert asked == bool(said), "".join(raw)
    assert status is None or ended == status, "".join(raw)
    return "".join(raw)


def post(text: str) -> pb.ExecuteRequest:
    arguments = json.dumps({"channel": "#ops", "text": text})
    return pb.ExecuteRequest(
        calls=pb.Calls(calls=[pb.Call(service="slack", method="chat.postMessage", arguments_json=arguments)])
    )


def test_the_check_itself_can_fail() -> None:
    for char in (*"\x1b\x07\x08\x9b\r\x00", "\u202e", "\u2066", "\u200b", "\u2028"):
        with pytest.raises(AssertionError):
            harmless(f"a{char}b")
    with pytest.raises(AssertionError):
        harmless("\x1b[5;41mx")
    with pytest.raises(AssertionError):
        harmless("x", "\\u{1b}")


def test_arguments_and_what_the_service_answers(daemon: Daemon, service: EchoService, tmp_path: Path) -> None:
    service.more = {"evil": EVIL, EVIL: 1, "channel": "C0OPS"}
    journey = Journey(daemon, post(EVIL))
    asked = journey.asked()
    harmless(screen(daemon, "approve", asked.id, said="later"), *SEEN)
    harmless(screen(daemon, "approve", asked.id, said="once"), *SEEN)
    assert journey.finished().action.state == "done"
    harmless(screen(daemon, "show", journey.action_id), *SEEN)
    harmless(screen(daemon, "log", "--action", journey.action_id), *SEEN)
    harmless(screen(daemon, "log", "--action", journey.action_id, "--rows"))
    # Asked in place, by a process whose name (15 bytes at most) is hostile too.
    command = tmp_path / "\x1b[2J\u202e[b]x"
    command.symlink_to(GOEX)
    inline = screen(daemon, *POST, f"text={EVIL}", said="once", command=command)
    harmless(inline, *SEEN, "(\\u{1b}[2J\\u{202e}[b]x)")
    # A service that refuses in words of its own.
    service.more = {"ok": False, "error": EVIL}
    harmless(screen(daemon, *POST, "text=x", said="once", status=None), "\\u{202e}", "[blink]x[")
    service.more = {}


def test_a_reason_and_the_words_of_a_grant(daemon: Daemon, service: EchoService) -> None:
    token = daemon.add_agent("texter")
    journey = Journey(daemon, post(EVIL), token=token)
    decide(daemon, journey.asked(), width="permanent", bind_arguments=["channel", "text"])
    assert journey.finished().action.state == "done"
    harmless(screen(daemon, "grants"), "\\u{202e}", "[blink]x[")
    denied = Journey(daemon, undo(journey.action_id), token=token)
    decide(daemon, denied.asked(), approve=False, reason=EVIL)
    harmless(denied.finished().problem.message)
    harmless(screen(daemon, "log", "--scopes"), "chat:write")
    harmless(screen(daemon, "log", "--limit", "60", "--rows"), "\\u{1b}[2J", "\\u{202e}")
    harmless(screen(daemon, "log", "--limit", "60"), "\\u{1b}[2J", "\\u{202e}")
    harmless(screen(daemon, "show", denied.action_id), "\\u{1b}[2J", "\\u{202e}")
    harmless(screen(daemon, "deny", f"p-{EVIL}", status=2))


def test_words(daemon: Daemon, service: EchoService) -> None:
    words = f'send slack msg "{EVIL}" to #ops'
    harmless(screen(daemon, "map", words), "\\u{202e}", "[blink]x[")
    journey = Journey(daemon, pb.ExecuteRequest(intent=words))
    harmless(screen(daemon, "approve", journey.asked().id, said="no"), *SEEN)
    harmless(screen(daemon, "show", journey.action_id), "\\u{1b}[2J", "\\u{202e}")
    harmless(screen(daemon, "map", f"zzzqqq {EVIL} vvvxxx", status=5))


def test_a_program_its_output_its_folder_and_its_files(daemon: Daemon, tmp_path: Path) -> None:
    folder = tmp_path / PATH_EVIL
    folder.mkdir()
    (folder / PATH_EVIL).write_text("was there")
    for path in (folder, folder / PATH_EVIL):
        os.chown(path, 65534, 65534)
    program = (
        f'# {EVIL}\nfor name in *; do printf \'%s\' "$name"; cp "$name" "new $name"; done\n'
        "printf '\\033[2J\\302\\2332J' >&2"
    )
    raw = screen(daemon, "exec", "--shell", program, "--folder", str(folder), said="once", status=None)
    # In the needs too, its line break can't begin a line that looks like ours.
    harmless(raw, *SEEN, "[|blink]\\u{a}line (delete, not granted yet)", "[|blink]\\u{a}line.")
    assert (folder / f"new {PATH_EVIL}").exists(), raw
    last = daemon.actions("List", pb.ListRequest(limit=1), socket=daemon.user_socket).actions[0]
    for command in ("show", "log"):
        harmless(screen(daemon, command, *((last.id,) if command == "show" else ("--action", last.id))))
    (folder / f"new {PATH_EVIL}").write_text("someone changed it since")
    (folder / f"other {PATH_EVIL}").write_text("someone made it since")
    raw = screen(daemon, "undo", last.id, status=6)
    harmless(raw, "\\u{1b}[2J", "\\u{202e}")
    assert (folder / f"other {PATH_EVIL}").exists(), "refused: nothing was touched"


def test_an_agent_can_not_have_such_a_name_nor_see_more_than_text(daemon: Daemon, tmp_path: Path) -> None:
    gone = tmp_path / f"gone-{PATH_EVIL}"
    finished = Journey(daemon, shell(gone, f"echo {EVIL}")).finished()
    assert finished.problem.exit_status == 2
    harmless(screen(daemon, "show", finished.action.id))
    harmless(screen(daemon, "exec", "--shell", "true", "--folder", str(gone), status=2), "[2J")
    harmless(screen(daemon, "agents", "add", f"a{PATH_EVIL}", status=None))
    harmless(screen(daemon, "log", "--agent", EVIL, status=0))


COMMANDS = (
    ("show", EVIL),
    ("catalog", "show", EVIL),
    ("exec", "--proposal", EVIL),
    ("exec", "--call", EVIL),
    ("revoke", EVIL),
    ("approve", EVIL),
    (EVIL,),
    (f"--{EVIL}",),
)


@pytest.mark.parametrize("command", COMMANDS, ids=range(len(COMMANDS)))
def test_what_a_command_says_back(daemon: Daemon, command: tuple[str, ...]) -> None:
    # What quotes it in another way shows it no less: as `repr` does.
    said = screen(daemon, *command, status=2)
    harmless(said, "[2J")
    assert re.search(r"\\(?:u\{202e\}|u202e)", said), said


@pytest.mark.parametrize("command", (COMMANDS[0], COMMANDS[3], ("map", EVIL)), ids=("show", "exec", "map"))
def test_json_is_plain_ascii(daemon: Daemon, command: tuple[str, ...]) -> None:
    done = daemon.goex(*command, "--json")
    assert json.loads(done.stdout)
    assert done.stdout.isascii()
    assert not COMMANDING.search(done.stdout + done.stderr), done
