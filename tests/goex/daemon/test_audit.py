"""The journal as the person reads it, by the real command from a real daemon that holds twenty thousand rows."""

from __future__ import annotations

import io
import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import grpc
import pytest

from goex.client import Client, Refused
from goex.daemon import audit_service
from goex.journal.verify import Altered, check
from goex.rpc import audit_pb2 as audit
from goex.rpc import goex_pb2 as pb
from policies.actions import Action
from policies.errors import InvalidInput, Unsupported
from policies.rules import facts
from tests.goex.daemon.test_bad_text import EVIL, PATH_EVIL, SEEN, harmless, screen
from tests.support.daemon import GOEX, Daemon
from tools.bench import journals

ACTIONS, ROWS = 400, 20_000


def test_each_kind_of_action_can_be_looked_for_and_ruled_on() -> None:
    kinds = {field.default for kind in get_args(Action) for field in fields(kind) if field.name == "kind"}
    assert len(kinds) == len(get_args(Action))
    assert set(audit_service._KINDS) == kinds | {"intent"}
    # A revert is ruled on by its verb, a task by what it allows.
    assert set(facts.KINDS) == kinds - {"calls", "revert", "task"} | {"call", facts.TOOL, *facts.REVERTS}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon() as made:
        with journals.behind(made) as journal:
            journals.fill(journal, ACTIONS * journals.ROWS_OF_AN_ACTION)
            with journal.transaction() as transaction:
                for number in range(ROWS - journal.count):
                    facts = {"request": f"call-{number}", "text": EVIL if number % 1000 == 0 else "plain", "n": number}
                    transaction.append(
                        "request", action_id="a-many", agent=EVIL if number % 1000 == 0 else "m", facts=facts
                    )
        yield made


def whole(text: str | bytes, head: str = "") -> Any:
    return check(io.BytesIO(text.encode() if isinstance(text, str) else text), head)


def head_of(daemon: Daemon) -> str:
    done = daemon.goex("log", "--verify", "--json")
    assert done.returncode == 0, done
    return str(json.loads(done.stdout)["head"])


def test_all_of_it_is_exported_and_checks(daemon: Daemon, tmp_path: Path) -> None:
    file, head = tmp_path / "journal.jsonl", head_of(daemon)
    done = daemon.goex("log", "--export", str(file))
    assert done.returncode == 0, done
    assert file.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == [file.name]
    found = whole(file.read_bytes(), head)
    assert found.rows >= ROWS and found.whole and found.authenticated
    assert f"Wrote {found.rows:,} rows" in done.stdout
    checked = daemon.goex("log", "--verify-export", str(file), "--head", head)
    assert (checked.returncode, checked.stderr) == (0, ""), checked
    with file.open("r+b") as opened:
        opened.seek(file.stat().st_size // 2)
        opened.write(b"~")
    altered = daemon.goex("log", "--verify-export", str(file))
    assert altered.returncode == 1
    assert "altered" in altered.stdout


def test_two_exports_at_once_while_rows_are_written(daemon: Daemon, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one", "two")]
    both = [
        subprocess.Popen(
            [str(GOEX), "log", "--export", str(file)], env=daemon.env, cwd=daemon.home, stdout=subprocess.PIPE
        )
        for file in files
    ]
    named = 0
    while any(export.poll() is None for export in both):
        daemon.add_agent(f"while-{named}")
        named += 1
    for export, file in zip(both, files, strict=True):
        export.communicate()
        assert export.returncode == 0
        assert whole(file.read_bytes()).rows >= ROWS
    assert named > 0


def test_what_is_chosen_is_exported_to_stdout(daemon: Daemon) -> None:
    done = daemon.goex("log", "--export", "-", "--agent", "agent-3", "--kind", "finish", "--risk", "write")
    assert done.returncode == 0, done
    found = whole(done.stdout)
    assert not found.whole
    assert found.rows == len([number for number in range(ACTIONS) if number % 7 == 3])
    assert {json.loads(line)["kind"] for line in done.stdout.splitlines()[1:-1]} == {"finish"}


@pytest.mark.promise(82)
@pytest.mark.parametrize("there", ["file", "link", "dangling link", "folder"])
def test_what_is_there_is_never_overwritten(daemon: Daemon, tmp_path: Path, there: str) -> None:
    file, other = tmp_path / "it", tmp_path / "other"
    if there == "folder":
        file.mkdir()
    elif there == "file":
        file.write_text("mine")
    else:
        file.symlink_to(other)
        if there == "link":
            other.write_text("mine")
    before = sorted(entry.name for entry in tmp_path.iterdir())
    done = daemon.goex("log", "--export", str(file), "--limit", "1")
    assert done.returncode == 2
    assert "not overwritten" in done.stderr
    assert sorted(entry.name for entry in tmp_path.iterdir()) == before
    if "link" in there:
        assert other.exists() == (there == "link")
    if there in ("file", "link"):
        assert file.read_text() == "mine"


def test_a_name_that_is_taken_meanwhile_stays_the_others(daemon: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "it"
    export = subprocess.Popen(
        [str(GOEX), "log", "--export", str(file)], env=daemon.env, cwd=daemon.home, stderr=subprocess.PIPE
    )
    _wait_for_part(tmp_path)
    file.write_text("mine")
    _, said = export.communicate()
    assert export.returncode == 2, said
    assert b"not overwritten" in said
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("it", "mine")]


def test_ctrl_c_leaves_nothing(daemon: Daemon, tmp_path: Path) -> None:
    export = subprocess.Popen(
        [str(GOEX), "log", "--export", str(tmp_path / "it")], env=daemon.env, cwd=daemon.home, stderr=subprocess.PIPE
    )
    _wait_for_part(tmp_path)
    export.send_signal(signal.SIGINT)
    export.communicate()
    assert export.returncode == 130
    assert list(tmp_path.iterdir()) == []


def test_a_part_is_readable_by_nobody_else(daemon: Daemon, tmp_path: Path) -> None:
    export = subprocess.Popen([str(GOEX), "log", "--export", str(tmp_path / "it")], env=daemon.env, cwd=daemon.home)
    assert _wait_for_part(tmp_path).stat().st_mode & 0o777 == 0o600
    export.communicate()
    assert export.returncode == 0


def _wait_for_part(folder: Path) -> Path:
    deadline = time.monotonic() + 300
    while True:
        for entry in folder.iterdir():
            if entry.name.endswith(".partial") and entry.stat().st_size:
                return entry
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.promise(82)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_disk_is_said_and_leaves_nothing(daemon: Daemon, tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(tmp_path)]
    if subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("mounting isn't permitted here")
    try:
        done = daemon.goex("log", "--export", str(tmp_path / "it"))
        assert done.returncode == 8, done
        assert "no space" in done.stderr
        assert list(tmp_path.iterdir()) == []
        small = daemon.goex("log", "--export", str(tmp_path / "it"), "--kind", "agent-add")  # the control
        assert small.returncode == 0, small
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_where_one_may_not_write_is_said(tmp_path: Path) -> None:
    """As an ordinary user, whom modes stop."""
    for mode in (0o500, 0o700):
        folder = tmp_path / f"{mode:o}"
        folder.mkdir()
        os.chown(folder, 65534, 65534)
        folder.chmod(mode)
        probe = (
            "import os, sys; from pathlib import Path; from goex.cli.log_export import _whole\n"
            "os.setgid(65534); os.setuid(65534)\n"
            "with _whole(Path(sys.argv[1])) as file: file.write(b'x')\n"
        )
        command = [str(GOEX.with_name("python")), "-c", probe, str(folder / "it")]
        for parent in folder.parents:
            if parent != Path("/tmp") and parent.is_relative_to("/tmp"):
                parent.chmod(0o711)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if mode == 0o500:
            assert "can't be written: Permission denied" in done.stderr
        else:
            assert done.returncode == 0, done
            assert (folder / "it").stat().st_uid == 65534
            assert (folder / "it").stat().st_mode & 0o777 == 0o600


def test_a_place_that_is_not_there_is_said(daemon: Daemon, tmp_path: Path) -> None:
    done = daemon.goex("log", "--export", str(tmp_path / "no" / "it"))
    assert done.returncode == 8
    assert "No such file" in done.stderr


def test_a_reader_that_goes_away_ends_it(daemon: Daemon) -> None:
    command = f"{GOEX} log --export - | head -c 100"
    done = subprocess.run(["sh", "-c", command], env=daemon.env, cwd=daemon.home, capture_output=True, check=False)
    assert len(done.stdout) == 100
    assert b"Traceback" not in done.stderr


# ---- the list


def test_the_first_page_is_the_newest_and_the_next_follows(daemon: Daemon) -> None:
    first = json.loads(daemon.goex("log", "--limit", "30", "--json").stdout)
    second = json.loads(daemon.goex("log", "--limit", "30", "--before", str(first["before"]), "--json").stdout)
    numbers = [action["number"] for page in (first, second) for action in page["actions"]]
    assert len(set(numbers)) == 60
    assert numbers == sorted(numbers, reverse=True)
    assert first["actions"][0]["decided"]["person"] is True
    assert first["actions"][0]["decided"]["grants"][0]["width"] == "once"


def test_one_action_is_told_whole(daemon: Daemon) -> None:
    last = json.loads(daemon.goex("log", "--limit", "1", "--json").stdout)["actions"][0]
    story = json.loads(daemon.goex("show", last["id"], "--json").stdout)
    assert story["decided"]["by"] == last["decided"]["by"] != ""
    assert [(each["call"], each["status"], each["bytes"]) for each in story["requests"]] == [
        (f"{last['services'][0]}.{last['what'].split('.', 1)[1].split()[0]}", 200, 321)
    ]
    assert [row["kind"] for row in reversed(story["log"])] == [
        "receive", "assess", "ask", "grant", "allow", "prepare", "run", "request", "answer", "finish",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--risk", "terrible"), "isn't a risk"),
        (("--state", "gone"), "isn't a state"),
        (("--rows", "--state", "gone"), "isn't a state"),
        (("--kind", "finish"), "With --rows"),
        (("--since", "when?"), "isn't a time"),
        (("--since", "9999999w"), "isn't a time"),
        (("--before", "-1"), "isn't a number"),
        (("--action", "a-nobody"), "no action"),
    ],
)
def test_what_can_not_be_looked_for_is_said(daemon: Daemon, options: tuple[str, ...], words: str) -> None:
    done = daemon.goex("log", *options)
    if options[0] == "--action":
        assert done.stdout == "Nothing that was done is like that.\n"
        return
    assert done.returncode == 2, done
    assert words in done.stderr


def test_text_in_every_field_is_harmless_on_a_terminal(daemon: Daemon) -> None:
    harmless(screen(daemon, "log", "--rows", "--limit", "2000", "--grep", "\u202e"), *SEEN)
    for option in ("--agent", "--service", "--session", "--grep"):
        harmless(screen(daemon, "log", option, EVIL))
    for option in ("--risk", "--state", "--kind", "--since", "--before"):
        harmless(screen(daemon, "log", option, EVIL, status=2))
    harmless(screen(daemon, "log", "--export", f"/tmp/none/{PATH_EVIL}", status=8))
    harmless(screen(daemon, "log", "--verify-export", f"/tmp/none/{PATH_EVIL}", status=2))


# ---- who may


def test_an_agent_reaches_none_of_it(daemon: Daemon) -> None:
    with Client(daemon.agent_socket) as client:
        for method, request, reply in (
            ("Actions", audit.Wanted(), audit.ActionsPage),
            ("Rows", audit.Wanted(), pb.LogReply),
            ("Story", pb.ActionId(id="a-1"), audit.StoryReply),
            ("Scopes", audit.ScopesRequest(), audit.ScopesReply),
        ):
            with pytest.raises(Unsupported):
                client.call(f"Audit/{method}", request, reply)
        for method in ("Verify", "Export"):
            with pytest.raises(Unsupported):
                list(client.streamed(f"Audit/{method}", audit.Wanted(), audit.ExportChunk))


def test_a_client_that_leaves_an_export_costs_nothing(daemon: Daemon) -> None:
    with Client(daemon.user_socket) as client:
        for _ in range(20):
            for chunk in client.streamed("Audit/Export", audit.Wanted(), audit.ExportChunk):
                assert chunk.lines
                break
        assert client.call("Audit/Actions", audit.Wanted(limit=1), audit.ActionsPage).actions


def test_bad_times_are_said_on_the_wire(daemon: Daemon) -> None:
    with Client(daemon.user_socket) as client:
        for text in ("x", "2026-01-01T00:00:00", "\u0661\u0662", "2026-13-01T00:00:00Z"):
            with pytest.raises((InvalidInput, grpc.RpcError, Exception), match="isn't a time"):
                client.call("Audit/Actions", audit.Wanted(since=text), audit.ActionsPage)


def test_rows_are_not_looked_for_by_a_task_which_would_be_passed_over(daemon: Daemon) -> None:
    with Client(daemon.user_socket) as client:
        with pytest.raises(Refused, match="not rows"):
            client.call("Audit/Rows", audit.Wanted(task="a-1"), pb.LogReply)
        with pytest.raises(Refused, match="not rows"):
            list(client.streamed("Audit/Export", audit.Wanted(task="a-1"), audit.ExportChunk))


# ---- altered; last, since nothing mends it


def test_an_edit_under_the_daemon_shows_in_check_and_export(daemon: Daemon, tmp_path: Path) -> None:
    with sqlite3.connect(daemon.state_dir / "state.db") as database:
        database.execute("update journal set agent = 'person' where number = 15000")
    database.close()
    done = daemon.goex("log", "--verify")
    assert done.returncode == 1
    assert "Row 15000 isn't what was written" in done.stdout
    assert daemon.goex("log", "--export", str(tmp_path / "it")).returncode == 0
    with pytest.raises(Altered, match="row 15000 isn't what was written"):
        whole((tmp_path / "it").read_bytes())
