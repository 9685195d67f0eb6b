"""What isn't seen in a transcript: what is sent, how it ends, and what is loaded for it."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from google.protobuf.message import Message

from goex.cli import doctor, follow
from goex.cli.output import Output
from goex.cli.vault_app import chosen_key
from goex.client import Client
from goex.paths import Paths
from goex.rpc import goex_pb2 as pb
from policies.errors import ExitStatus
from tests.goex.cli.conftest import GOEX, Goex, Inside
from tests.goex.cli.fake import PASSPHRASE, Fake, finished, mapped, problem, state, view
from tests.support.command import run
from tests.support.person import QUESTION
from tests.support.terminal import Terminal

# ---- what is sent


def test_calls_arrive_with_their_arguments(inside: Inside, fake: Fake) -> None:
    fake.events = [finished()]
    words = "exec --account work --call slack.chat.postMessage channel=#ops n:=5 --call slack.pins.add ts=@0.$.ts"
    assert inside(*words.split()).code == 0
    first, second = fake.requests[0].calls.calls
    assert (first.service, first.method, first.account) == ("slack", "chat.postMessage", "work")
    assert first.arguments_json == '{"channel": "#ops", "n": 5}'
    assert second.arguments_json == '{"ts": {"$from": 0, "path": "$.ts"}}'


def test_a_program_on_a_folder(inside: Inside, fake: Fake, tmp_path: Path) -> None:
    fake.events = [finished()]
    (tmp_path / "f.py").write_text("print('ü')")
    assert inside("exec", "--python", "f.py", "--folder", "notes").code == 0
    assert inside("exec", "--shell", "ls", "--folder", "/etc/../tmp", "--ask", "7").code == 0
    python, shell = (request.files for request in fake.requests)
    assert (python.language, python.program, python.folder) == ("python", "print('ü')", str(tmp_path / "notes"))
    assert (shell.language, shell.program, shell.folder) == ("shell", "ls", "/etc/../tmp")
    assert fake.requests[1].ask_seconds == 7


@pytest.mark.parametrize(
    "what",
    [
        ("--call", "slack.pins.add"),
        ("--db", "shop", "--sql", "SELECT 1"),
        ("--code", "f.py", "--service", "slack"),
        ("x",),
    ],
)
def test_what_has_no_copy_of_a_folder_keeps_none(
    inside: Inside, fake: Fake, tmp_path: Path, what: tuple[str, ...]
) -> None:
    (tmp_path / "f.py").write_text("print()")
    ran = inside("exec", *what, "--dry-run", "--keep")
    assert ran.code == 2 and "--keep keeps a copy of a folder" in ran.err
    assert fake.requests == []


@pytest.mark.parametrize(
    ("data", "says"),
    [(b"x" * 10_000_000, "longer than"), (b"a\0b", "NUL byte"), (b"\xff\xfe", "isn't UTF-8")],
)
def test_bad_text_is_refused_here(inside: Inside, fake: Fake, tmp_path: Path, data: bytes, says: str) -> None:
    (tmp_path / "bad").write_bytes(data)
    for args in (("--proposal", "bad"), ("--python", "bad", "--folder", ".")):
        ran = inside("exec", *args)
        assert ran.code == 2
        assert says in ran.err
    ran = inside("exec", "--proposal", "-", stdin=data)
    assert ran.code == 2
    assert fake.requests == []


def test_an_argument_that_isnt_utf8(env: dict[str, str], fake: Fake) -> None:
    done = subprocess.run([*GOEX, "show", b"\xff"], env=env, capture_output=True, timeout=300)
    assert done.returncode == 2
    assert b"isn't UTF-8" in done.stderr


def test_a_detached_action_is_left(inside: Inside, fake: Fake) -> None:
    fake.events = [
        state("received", "assess", "assessed"),
        state("assessed", "allow", "allowed"),
        Fake.WAIT,
        finished(),
    ]
    ran = inside("exec", "--detach", "x")
    assert (ran.code, ran.out) == (0, "ac-0001\n")
    assert fake.requests[0].detach


def test_one_that_fails_before_it_is_left_says_so(inside: Inside, fake: Fake) -> None:
    fake.events = [state("received", "map", "mapped"), finished(problem=problem("invalid", 2, "No such method."))]
    ran = inside("exec", "--detach", "x")
    assert ran.code == 2
    assert "No such method" in ran.err


def test_last_is_the_newest_that_fits(inside: Inside, fake: Fake) -> None:
    fake.events = [finished()]
    fake.list = [
        view(id="c", undo_class="nothing", can_undo=False, can_redo=False),
        view(id="b", state="undone", can_undo=False, can_redo=True),
        view(id="a", can_undo=True),
    ]
    for verb, target in (("undo", "a"), ("redo", "b"), ("commit", "a")):
        assert inside(verb).code == 0
        assert (fake.requests[-1].verb, fake.requests[-1].action_id) == (verb, target)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("undo", ""), "The action's id is empty."),
        (("commit", ""), "The action's id is empty."),
        (("undo", "q-123456789abc"), "is the id of a request for approval"),
        (("show", "g-123456789abc"), "is the id of a grant"),
        (("catalog", "show", ""), "The service's name is empty."),
        (("catalog", "show", ".x"), "The service's name is empty."),
    ],
)
def test_an_empty_id_or_that_of_another_kind_is_said_and_means_nothing_else(
    inside: Inside, fake: Fake, command: tuple[str, ...], said: str
) -> None:
    ran = inside(*command)
    assert ran.code == 2 and said in ran.err and "Internal error" not in ran.err
    assert not fake.requests


# ---- how it ends


@pytest.mark.parametrize("status", [one for one in ExitStatus if one])
def test_the_exit_status_is_the_problems(inside: Inside, fake: Fake, status: ExitStatus) -> None:
    code = "ambiguous" if status is ExitStatus.AMBIGUOUS else "x"
    fake.events = [finished(problem=problem(code, int(status)))]
    assert inside("exec", "x").code == status
    assert inside("undo", "x", "--json").code == status


def test_without_a_daemon_that_can_start(goex: Goex, paths: Paths) -> None:
    paths.run_dir.chmod(0o755)
    ran = goex("log", "--json")
    assert ran.code == 8
    assert '"code": "unsafe-place"' in ran.out
    assert "chmod 700" in ran.err


def test_an_unforeseen_error_is_two_lines_and_no_traceback(
    inside: Inside, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boo\x1b[2J")

    monkeypatch.setattr("goex.cli.connect.connect", broken)
    ran = inside("log")
    assert ran.code == 1
    assert "Traceback" not in ran.err
    assert "RuntimeError: boo\\u{1b}[2J" in ran.err
    assert len(ran.err.splitlines()) == 2


def test_every_command_has_json_and_none_can_approve() -> None:
    from typer.main import get_command

    from goex.cli.main import app

    def walk(command: object, name: str) -> dict[str, object]:
        inner = getattr(command, "commands", None)
        if inner is None:
            return {name: command}
        return {k: v for key, sub in inner.items() for k, v in walk(sub, f"{name} {key}").items()}

    for name, command in walk(get_command(app), "goex").items():
        options = {option for param in command.params for option in param.opts}  # type: ignore[attr-defined]
        # The first is a server; what the second answers is JSON in any case.
        assert "--json" in options or name in ("goex daemon run", "goex hook"), name
        assert not options & {"--yes", "-y", "--force", "--approve", "--passphrase-file", "--password"}, name
        assert not any(getattr(param, "envvar", None) for param in command.params), name  # type: ignore[attr-defined]


# ---- secrets


def test_a_piped_secret_arrives_whole(inside: Inside, fake: Fake, tmp_path: Path) -> None:
    inside("vault", "put", "slack", stdin=b"xoxb-1\n")
    inside("vault", "put", "slack", stdin=b" two\nlines \r\n")
    text = "[default]\r\ntoken = [[secret:ä b]]\r\n\n".encode("utf-8-sig")
    (tmp_path / "key").write_bytes(text)
    inside("vault", "put", "slack", "--file", "key")
    assert [(one.secret, one.format) for one in fake.requests] == [
        (b"xoxb-1", "string"),
        (b" two\nlines ", "string"),
        (text, "file"),
    ]


def test_a_credential_file_comes_from_a_pipe_too(env: dict[str, str], fake: Fake, tmp_path: Path) -> None:
    command = "printf 'from a pipe' | " + " ".join(f"'{word}'" for word in GOEX) + " vault put slack --file /dev/stdin"
    done = run(["/bin/sh", "-c", command], env=env, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert fake.requests[0].secret == b"from a pipe"


BAD_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a PKCS#12": (lambda file: file.write_bytes(b"0\x82\x0a\x01\x02\x01\x03\x30\xff"), "isn't text in UTF-8"),
    "a NUL byte": (lambda file: file.write_bytes(b"token\0\n"), "isn't text in UTF-8"),
    "UTF-16": (lambda file: file.write_bytes("token".encode("utf-16")), "isn't text in UTF-8"),
    "a byte order mark": (lambda file: file.write_bytes(b"\xef\xbb\xbftoken\r\n"), "byte order mark"),
    "nothing": (lambda file: file.touch(), "is empty"),
    "100001 bytes": (lambda file: file.write_bytes(b"x" * 100_001), "longer than 100000 bytes"),
    "a huge file": (lambda file: (file.touch(), os.truncate(file, 1 << 40)), "longer than"),
    "a pipe": (os.mkfifo, "is a pipe, and nothing was written to it"),
    "a socket": (lambda file: os.mknod(file, stat.S_IFSOCK | 0o600), "can't be read"),
    "a folder": (lambda file: file.mkdir(), "can't be read: Is a directory"),
    "a device": (lambda file: file.symlink_to("/dev/zero"), "isn't a file"),
    "a link to nothing": (lambda file: file.symlink_to("nothing"), "can't be read: No such file"),
}


@pytest.mark.timeout(300)  # which only a hang reaches
@pytest.mark.parametrize("what", BAD_FILES)
def test_a_file_that_is_no_credential_is_refused_before_anything_is_asked(
    inside: Inside, fake: Fake, tmp_path: Path, what: str
) -> None:
    """Even of a sealed vault, whose passphrase would be asked for."""
    fake.status.vault = "sealed"
    make, says = BAD_FILES[what]
    make(tmp_path / "credential")
    ran = inside("vault", "put", "slack", "--file", "credential")
    assert (ran.code, fake.requests) == (2, [])
    assert says in " ".join(ran.err.split()) and "sealed" not in ran.err
    assert len(ran.err.splitlines()) >= 2, "it says what to do"


@pytest.mark.timeout(300)  # which only a hang reaches
@pytest.mark.parametrize(
    "command",
    [
        ("vault", "put", "slack", "--ca", "pipe"),
        ("db", "add", "till", "postgresql://me@db.example/till", "--password-file", "pipe"),
        ("images", "add", "mine", "--requirements", "pipe"),
        ("undo-pairs", "add", "pipe"),
        ("exec", "--proposal", "pipe"),
        ("mcp", "--token-file", "pipe"),
    ],
)
def test_no_other_file_that_is_named_keeps_a_command_waiting(
    inside: Inside, fake: Fake, tmp_path: Path, command: tuple[str, ...]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    ran = inside(*command)
    assert ran.code == 2 and "pipe is a pipe, and nothing was written to it" in " ".join(ran.err.split())


@pytest.mark.parametrize("holds", [b"", b" \n", b"goex_a goex_b", "goex_\u00e9".encode(), b"\xff\xfe", b"\0" * 4])
def test_a_file_without_an_agents_token_is_refused(inside: Inside, tmp_path: Path, holds: bytes) -> None:
    """It isn't served as `anonymous` instead."""
    (tmp_path / "token").write_bytes(holds)
    ran = inside("mcp", "--token-file", "token")
    assert ran.code == 2 and "token holds no agent's token" in " ".join(ran.err.split())


def test_everything_about_an_account_arrives(inside: Inside, fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("PEM")
    args = "--account w --base-url http://127.0.0.1:1 --origin https://a --origin https://b --private --ca ca.pem"
    assert inside("vault", "put", "matrix", *args.split(), "--replace", stdin=b"t").code == 0
    (sent,) = fake.requests
    assert (sent.service, sent.account, sent.base_url) == ("matrix", "w", "http://127.0.0.1:1")
    assert list(sent.origins) == ["https://a", "https://b"]
    assert (sent.private, sent.ca_pem, sent.replace) == (True, "PEM", True)


def test_no_option_takes_a_secret(inside: Inside, fake: Fake) -> None:
    for option in ("--secret", "--token", "--value"):
        assert inside("vault", "put", "slack", option, "x", stdin=b"t").code == 2
    assert inside("vault", "put", "slack", "xoxb-1").code == 2
    assert fake.requests == []


def test_passphrases_come_in_order_from_a_pipe(inside: Inside, fake: Fake) -> None:
    fake.status.vault = "absent"
    assert inside("vault", "init", "--passphrase", stdin="gehe ïm!\nzweite Worte\n".encode()).code == 0
    (sent,) = fake.requests
    assert (sent.keyed_by, sent.passphrase, sent.approval_passphrase) == ("passphrase", "gehe ïm!", "zweite Worte")


def test_the_keyring_is_never_chosen_when_it_cant_keep_secrets(inside: Inside, fake: Fake) -> None:
    fake.status.vault = "absent"
    inside.env["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
    ran = inside("vault", "init", stdin=b"one passphrase\nanother one\n")
    assert fake.requests[0].keyed_by == "passphrase"
    assert "No keyring that can be used" in ran.err


@pytest.mark.parametrize("named", [True, False])
def test_who_may_have_a_keyrings_key_is_said(
    named: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "keyring", lambda: doctor.Check(name="keyring", ok=True, says="KWallet answers"))
    assert chosen_key(Output(False), named, False) == "keyring"
    said = " ".join(capsys.readouterr().err.split())
    assert "any program of your user" in said and "keeps the vault's key: KWallet answers." in said


@pytest.mark.parametrize(
    ("backend", "says"),
    [
        ("keyring.backends.null.Keyring", "would keep the key in a plain file, or nowhere"),
        ("keyring.backends.fail.Keyring", "There is no keyring service here"),
        ("no.such.Keyring", "There is no keyring service here"),
    ],
)
def test_a_keyring_that_cant_keep_a_key_is_refused_before_anything_is_typed(
    inside: Inside, fake: Fake, backend: str, says: str
) -> None:
    fake.status.vault = "absent"
    inside.env["PYTHON_KEYRING_BACKEND"] = backend
    ran = inside("vault", "init", "--keyring", stdin=b"an approval passphrase\n")
    assert (ran.code, fake.requests) == (ExitStatus.UNAVAILABLE, [])
    said = " ".join(ran.err.split())
    assert says in said and "goex vault init --passphrase" in said


def test_a_vault_that_is_there_is_named_before_anything_is_typed(env: dict[str, str], fake: Fake) -> None:
    with Terminal([*GOEX, "vault", "init", "--passphrase"], env=env) as terminal:
        terminal.expect("There is a vault already.")
        assert terminal.wait() == 2
    assert fake.requests == []


def test_a_typed_secret_isnt_echoed_and_presence_is_asked_for(env: dict[str, str], fake: Fake) -> None:
    fake.presence = True
    raw: list[str] = []
    with Terminal([*GOEX, "vault", "put", "slack"], env=env, shown=raw.append) as terminal:
        terminal.expect("Credential for slack/default: ")
        terminal.type("xoxb-typed")
        terminal.expect("Approval passphrase: ")
        terminal.type(PASSPHRASE)
        terminal.expect("Sealed")
        assert terminal.wait() == 0
    assert "xoxb-typed" not in "".join(raw)
    assert PASSPHRASE not in "".join(raw)
    assert (fake.requests[0].secret, fake.requests[0].passphrase) == (b"xoxb-typed", PASSPHRASE)


def test_presence_comes_from_the_terminal_when_the_secret_is_piped(env: dict[str, str], fake: Fake) -> None:
    fake.presence = True
    command = "printf 'xoxb-piped\\nopen sesame\\n' | " + " ".join(f"'{word}'" for word in GOEX) + " vault put slack"
    with Terminal(["/bin/sh", "-c", command], env=env) as terminal:
        terminal.expect("Approval passphrase: ")
        terminal.type(PASSPHRASE)
        terminal.expect("Sealed")
    assert fake.requests[0].secret == b"xoxb-piped\nopen sesame"


def test_two_different_new_passphrases(env: dict[str, str], fake: Fake) -> None:
    fake.status.vault = "absent"
    with Terminal([*GOEX, "vault", "init", "--passphrase"], env=env) as terminal:
        for _ in range(3):  # each time it is asked for again
            terminal.expect("Vault passphrase: ")
            terminal.type("first one")
            terminal.expect("The same again: ")
            terminal.type("first two")
            terminal.expect("two different ways")
        assert terminal.wait() == 2
    assert fake.requests == []


# ---- watching


def test_watching_asks_about_each_once(env: dict[str, str], fake: Fake) -> None:
    first, second = fake.pending[0], pb.Approval()
    second.CopyFrom(first)
    second.id = "ap-0002"
    fake.pending = [first, second]
    fake.watched = [first, first, second]
    with Terminal([*GOEX, "approve", "--watch"], env=env) as terminal:
        for _ in range(2):
            terminal.expect(QUESTION)
            terminal.type("")
            terminal.expect("Denied")
        assert terminal.wait() == 0
    assert [one.approval_id for one in fake.decided] == ["ap-0001", "ap-0002"]


def test_what_is_settled_elsewhere_while_it_is_shown_is_left(env: dict[str, str], fake: Fake) -> None:
    settled = pb.Approval()
    settled.CopyFrom(fake.pending[0])
    settled.state = "denied"
    fake.watched = [fake.pending[0], Fake.WAIT, settled]
    with Terminal([*GOEX, "approve", "--watch"], env=env) as terminal:
        terminal.expect(QUESTION)
        fake.settled.put(pb.DecideRequest())
        terminal.expect("settled elsewhere: denied")
        assert terminal.wait() == 0
    assert fake.decided == []


def some(fake: Fake, count: int, **changes: object) -> list[pb.Approval]:
    made = []
    for number in range(count):
        one = pb.Approval()
        one.CopyFrom(fake.pending[0])
        one.id, one.action_id, one.place, one.waiting = f"ap-{number:04}", f"ac-{number:04}", number + 1, count
        made.append(one)
    return made


def test_what_waits_is_listed_and_then_asked_for_in_that_order(env: dict[str, str], fake: Fake) -> None:
    fake.pending = some(fake, 3)
    fake.pending[1].count, fake.pending[1].agent = 4, "flood"
    with Terminal([*GOEX, "approve"], env=env) as terminal:
        terminal.expect(r"3 requests wait for you \(6 with the identical ones\)")
        terminal.expect("goex deny --agent flood")
        for number in range(3):
            terminal.expect(f"Asks .*, ap-{number:04}")
            terminal.expect(QUESTION)
            terminal.type("no")
            terminal.expect("Denied")
        assert terminal.wait() == 0
    assert [one.approval_id for one in fake.decided] == ["ap-0000", "ap-0001", "ap-0002"]


def test_one_that_was_settled_meanwhile_is_passed_over(env: dict[str, str], fake: Fake) -> None:
    fake.pending = some(fake, 2)
    fake.pending[0].state, fake.pending[0].settled_by = "approved", "grant g-\x1b[31m1"
    with Terminal([*GOEX, "approve"], env=env) as terminal:
        terminal.expect(r"ap-0000 is approved already, by grant g-\\u\{1b\}\[31m1")
        terminal.expect("Asks .*, ap-0001")
        terminal.expect(QUESTION)
        terminal.type("no")
        assert terminal.wait() == 0
    assert [one.approval_id for one in fake.decided] == ["ap-0001"]


@pytest.mark.parametrize(("said", "seen"), [("no", 1), ("yes", 2), ("", 2)])
def test_after_one_that_was_left_open_the_person_says_whether_to_go_on(
    env: dict[str, str], fake: Fake, said: str, seen: int
) -> None:
    fake.pending = some(fake, 2)
    with Terminal([*GOEX, "approve"], env=env) as terminal:
        terminal.expect(QUESTION)
        terminal.type("later")
        terminal.expect("Go on with the next one")
        terminal.type(said)
        if seen == 2:
            terminal.expect(QUESTION)
            terminal.type("no")
        assert terminal.wait() == 0
    assert len(fake.decided) == seen - 1


def test_what_is_shown_is_fetched_whole_whatever_was_listed(env: dict[str, str], fake: Fake) -> None:
    """A list is cut, so nothing is decided on what it said."""
    with Terminal([*GOEX, "approve", "ap-00"], env=env) as terminal:
        terminal.expect(QUESTION)
        terminal.type("no")
        assert terminal.wait() == 0
    assert [(one.brief, one.approval_id) for one in fake.looked] == [(True, ""), (False, "ap-0001")]


def test_a_grant_says_who_may_do_what_how_often_it_was_used_and_when_it_ends(env: dict[str, str], fake: Fake) -> None:
    with Terminal([*GOEX, "grants"], env={**env, "TERM": "xterm"}) as terminal:
        assert terminal.wait() == 0
    for piece in ("gr-1  live  permanent  helper  slack:chat:write", "on account work", "only when", "never used yet"):
        assert piece in terminal.text


def test_watching_needs_a_terminal(goex: Goex, fake: Fake) -> None:
    assert goex("approve", "--watch").code == 3
    assert len(goex("approve", "--watch", "--json").out.splitlines()) == 1


# ---- doctor


def names(found: list[doctor.Check]) -> dict[str, doctor.Check]:
    return {check.name: check for check in found}


def test_doctor_without_anything(inside: Inside, env: dict[str, str]) -> None:
    found = names(doctor.checks(env, quick=True))
    assert not found["vault"].ok
    assert found["vault"].mend == "goex vault init"
    assert not found["daemon"].ok
    assert found["daemon"].mend == "goex daemon start"
    assert found["python"].ok
    assert not Path(env["XDG_STATE_HOME"]).exists(), "it changes nothing"
    assert inside("doctor", "--quick").code == 8


def test_doctor_with_a_daemon(inside: Inside, fake: Fake, env: dict[str, str]) -> None:
    found = names(doctor.checks(env, quick=True))
    assert found["daemon"].ok
    assert found["vault"].ok
    fake.status.vault = "sealed"
    assert names(doctor.checks(env, quick=True))["vault"].mend == "goex vault unlock"
    ran = inside("doctor", "--quick", "--json")
    assert ran.code == 8
    assert '"mend": "goex vault unlock"' in ran.out


def test_what_isnt_there_is_made_not_opened(inside: Inside, fake: Fake) -> None:
    fake.status.vault = "absent"
    said = inside("log", "--verify").err
    assert "goex vault init" in said and "goex vault unlock" not in said


def test_an_image_isnt_called_built_without_docker(inside: Inside, fake: Fake) -> None:
    assert "built" in inside("daemon", "status").out
    fake.status.docker = "Docker isn't running."
    assert "built" not in inside("daemon", "status").out


def test_doctor_says_that_the_daemon_alone_cant_reach_docker(
    fake: Fake, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that was started before its user was put into Docker's group: what mends it isn't Docker's."""
    monkeypatch.setattr(doctor, "_docker", lambda: [doctor.Check(name="docker", ok=True, says="answers")])
    monkeypatch.setattr(doctor, "_profiles", lambda paths: [])
    assert names(doctor.checks(env))["daemon"].ok
    fake.status.docker = "This user may not speak to Docker's socket."
    found = names(doctor.checks(env))["daemon"]
    assert not found.ok and found.mend.startswith("goex daemon stop")


def test_doctor_names_what_is_open_or_misspelt(fake: Fake, paths: Paths, env: dict[str, str]) -> None:
    paths.config_file.write_text("[aks]\n")
    paths.config_file.chmod(0o600)
    paths.state_dir.chmod(0o755)
    found = names(doctor.checks(env, quick=True))
    assert "chmod 700" in found["folders"].mend
    assert "Did you mean ask" in found["config"].mend
    paths.run_dir.chmod(0o755)
    assert not names(doctor.checks(env, quick=True))["daemon"].ok
    assert stat.S_IMODE(paths.state_dir.stat().st_mode) == 0o755, "it mends nothing itself"


def test_doctor_closes_a_vault_that_is_open_to_others_and_puts_no_backup_in_its_place(
    inside: Inside, fake: Fake, paths: Paths, env: dict[str, str]
) -> None:
    paths.vault_db.touch(mode=0o600)
    paths.vault_db.chmod(0o644)
    for fake.status.vault in ("broken", "unsealed"):
        found = names(doctor.checks(env, quick=True))
        assert not found["vault"].ok
        assert found["vault"].mend == f"If nobody changed it, close with: chmod 600 {paths.vault_db}"
        assert not found["folders"].ok


def test_doctor_looks_where_the_sockets_for_others_lie(
    fake: Fake, paths: Paths, env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    paths.config_file.write_text(f'[[agent_socket]]\npath = "{tmp_path}/open/agent.sock"\nusers = [65534]\n')
    paths.config_file.chmod(0o600)
    found = names(doctor.checks(env, quick=True))["config"]
    assert not found.ok
    assert f"chmod go-w {tmp_path}/open" in found.mend


def test_doctor_says_why_the_daemon_ended(env: dict[str, str], paths: Paths) -> None:
    paths.create()
    paths.log_file.touch(mode=0o600)
    at = "2026-11-24 03:01:21,851"
    ended = f"{at} INFO goex.daemon hardening\n{at} ERROR goex.daemon The disk holds 'v'. Put back a copy.\n"
    paths.log_file.write_text(ended)
    found = names(doctor.checks(env, quick=True))["daemon"]
    assert not found.ok and found.says == "isn't running; its log ends with: The disk holds 'v'. Put back a copy."
    paths.log_file.write_text(f"{ended}{at} INFO goex.daemon stopping\n")
    assert names(doctor.checks(env, quick=True))["daemon"].says == "isn't running"
    paths.log_file.unlink()
    os.mkfifo(paths.log_file, 0o600)  # to read one would take for ever
    assert "isn't a regular file" in names(doctor.checks(env, quick=True))["daemon"].says


def test_doctor_without_git(inside: Inside, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    check = names(doctor.checks(env, quick=True))["git"]
    assert not check.ok
    assert "git" in check.mend


def test_doctor_without_docker(env: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing.sock")
    found = names(doctor.checks(env))
    assert not found["docker"].ok
    assert found["docker"].mend
    assert "image" not in found


@pytest.mark.docker
def test_doctor_with_docker(env: dict[str, str]) -> None:
    found = names(doctor.checks(env))
    assert found["docker"].ok, found["docker"].says
    assert found["image"].ok or found["image"].mend == "goex images build"


@pytest.mark.docker
def test_doctor_with_profiles(env: dict[str, str]) -> None:
    paths = Paths.from_env(env)
    before = names(doctor.checks(env))
    assert "profiles" not in before
    assert before["code"].ok or before["code"].mend == "goex images build code"
    paths.config_dir.mkdir(parents=True, mode=0o700, exist_ok=True)
    paths.config_file.write_text("[sandbox.profiles.cod]\nruntime = 'runsc'\n")
    paths.config_file.chmod(0o600)
    found = [check for check in doctor.checks(env) if check.name == "profiles"]
    assert "[sandbox.profiles.cod]" in found[0].says
    if "runsc" not in docker.from_env().info()["Runtimes"]:
        assert "runsc" in found[1].says


@pytest.mark.docker
def test_images_list(inside: Inside) -> None:
    ran = inside("images", "list", "--json")
    assert ran.code == 0
    assert '"name": "base"' in ran.out


def test_a_broken_check_doesnt_end_the_others(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> doctor.Check:
        raise RuntimeError("boo")

    monkeypatch.setattr(doctor, "_git", broken)
    found = names(doctor.checks(env, quick=True))
    assert not found["git"].ok
    assert "RuntimeError" in found["git"].says
    assert found["python"].ok


# ---- the daemon by hand


def test_stopping_what_doesnt_run(inside: Inside, paths: Paths) -> None:
    assert inside("daemon", "stop", "--json").out == '{"stopped": false}\n'
    assert inside("daemon", "status").code == 8
    assert inside("daemon", "status", "--json").out == '{"running": false}\n'


# ---- what is loaded


def loaded(env: dict[str, str], *args: str) -> set[str]:
    code = f"import sys; sys.argv = ['goex', *{list(args)!r}]\nfrom goex.cli.main import main\n"
    code += "try:\n    main()\nexcept SystemExit:\n    pass\nprint('\\n@'.join(['', *sys.modules]), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300)
    return {line[1:].partition(".")[0] for line in done.stderr.splitlines() if line.startswith("@")}


HEAVY = {"grpc", "google", "docker", "requests", "sqlalchemy", "cryptography", "rich", "openai", "asyncio", "keyring"}


@pytest.mark.parametrize("args", [("--help",), ("--version",), ("exec", "--help"), ("vault", "--help")])
def test_help_loads_nothing_heavy(env: dict[str, str], args: tuple[str, ...]) -> None:
    modules = loaded(env, *args)
    assert "typer" in modules
    assert not modules & HEAVY


def test_completion_works(env: dict[str, str]) -> None:
    completing = {**env, "_GOEX_COMPLETE": "complete_bash", "COMP_WORDS": "goex va", "COMP_CWORD": "1"}
    code = "import sys; sys.argv = ['goex']; from goex.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=completing, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "vault"


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user_cant_reach_the_persons_socket(env: dict[str, str], fake: Fake, paths: Paths) -> None:
    for folder in paths.run_dir.parents:
        if folder.stat().st_uid == os.geteuid() and folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o055)
    command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *GOEX, "log", "--json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, cwd="/")
    assert done.returncode == 8
    assert '"code": "unsafe-place"' in done.stdout
    assert "belongs to user 0" in done.stdout


# ---- text from outside


TRICK = "x\x1b[2J\x9b1m\u202ey\r\x07\u200b[bold]z"


def poison(message: Message) -> None:
    """Every text of the message becomes the trick."""
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None:
            for item in value if field.is_repeated else [value] if message.HasField(field.name) else []:
                poison(item)
        elif field.type == field.TYPE_STRING and field.is_repeated:
            value[:] = [TRICK] * max(len(value), 1)
        elif field.type == field.TYPE_STRING and (field.containing_oneof is None or message.HasField(field.name)):
            setattr(message, field.name, TRICK)


LISTING = (
    "log",
    "log --rows",
    "log --scopes",
    "log --verify",
    "show ac-0001",
    "grants",
    "agents list",
    "agents add x",
    "approve",
    "vault list",
    "vault seal",
    "map x",
    "daemon status",
    "exec x",
    "undo x",
    "doctor --quick",
)


@pytest.mark.parametrize("flag", ["", " --json"])
@pytest.mark.parametrize("command", LISTING)
def test_no_answer_can_trick_the_terminal(
    inside: Inside, fake: Fake, monkeypatch: pytest.MonkeyPatch, command: str, flag: str
) -> None:
    original = Client.call

    def call(self: Client, *args: Any, **more: Any) -> Any:
        reply = original(self, *args, **more)
        poison(reply)
        return reply

    streamed = Client.streamed

    def stream(self: Client, *args: Any, **more: Any) -> Iterator[Any]:
        for reply in streamed(self, *args, **more):
            poison(reply)
            yield reply

    monkeypatch.setattr(Client, "call", call)
    monkeypatch.setattr(Client, "streamed", stream)
    bad = problem("x", 1)
    bad.details.append("x")
    fake.verify.good = False
    fake.events = [mapped(sure=True), pb.Event(action_id="a", progress="x"), finished(problem=bad, answer="x")]
    for event in fake.events:
        poison(event)
    ran = inside(*command.split(), *flag.split())
    assert "[bold]z" in ran.out + ran.err
    said = re.sub(r"\n", "", ran.out + ran.err)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u200b\u202e]", said)
    if flag:
        assert ran.out.isascii()


@pytest.mark.parametrize("rows", [[], [[1, "", None]]])
def test_what_a_select_gave_back_has_all_its_columns(rows: list[list[Any]], capsys: pytest.CaptureFixture[str]) -> None:
    result = {"columns": ["id", "note", "until"], "rows": rows, "cut": 0}
    outcome = json.dumps({"summary": "It read.", "results": [result]})
    follow.show_outcome(Output(False), pb.ActionView(id="a-1", outcome_json=outcome), printed=False)
    assert [line.split() for line in capsys.readouterr().out.splitlines()][1] == result["columns"]
