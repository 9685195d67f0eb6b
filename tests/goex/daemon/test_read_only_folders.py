"""An agent's programs that only read a folder: asked for as a read, and never more than one."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, as_the_person_sees, problem
from tests.support.person import answer
from tests.support.terminal import TerminalError

pytestmark = pytest.mark.docker


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    made = tmp_path / "docs"
    made.mkdir()
    (made / "a.txt").write_text("one\n")
    if os.geteuid() == 0:
        for file in (made, made / "a.txt"):
            os.chown(file, 65534, 65534)
    return made


def asked(folder: Path, program: str, *, reads: bool = True, **more: object) -> pb.ExecuteRequest:
    files = pb.FilesProgram(folder=str(folder), language="shell", program=program, **more)  # type: ignore[arg-type]
    return pb.ExecuteRequest(files=files, reads_only=reads)


def test_it_is_asked_for_as_a_read_and_a_grant_for_it_covers_no_write(daemon: Daemon, folder: Path) -> None:
    token = daemon.add_agent("reader")
    journey = Journey(daemon, asked(folder, "cat a.txt; echo two > a.txt"), token=token)
    question = journey.asked()
    assert question.risk == "read" and question.undo_class == "nothing"
    assert f"read {folder} by a shell program" in as_the_person_sees(daemon, question).question.sentence
    journey.leave()
    first = Journey(daemon, asked(folder, "cat a.txt; echo two > a.txt"), token=token)
    finished = first.approve("session", bind_arguments=[])
    outcome = json.loads(finished.action.outcome_json)
    assert outcome["stdout"] == "one\n" and finished.action.ending.changed == "no"
    assert (folder / "a.txt").read_text() == "one\n"
    again = Journey(daemon, asked(folder, "ls"), token=token).finished()  # by the grant, unasked
    assert json.loads(again.action.outcome_json)["stdout"] == "a.txt\n"
    write = Journey(daemon, asked(folder, "echo two > a.txt", reads=False), token=token)
    assert write.asked().risk == "delete"
    write.leave()


def test_it_is_not_taken_back(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, asked(folder, "true"), person=True)
    assert journey.approve().action.state == "done"
    with pytest.raises((AssertionError, grpc.RpcError), match=r"nothing|read"):
        Journey(daemon, pb.RevertRequest(action_id=journey.action_id, verb="undo"), person=True).asked()


@pytest.mark.parametrize("more", [{"more": ["/tmp"]}, {"undo": "true"}, {"preview": "dry-1"}])
def test_it_has_one_folder_and_nothing_else(daemon: Daemon, folder: Path, more: dict[str, object]) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        Journey(daemon, asked(folder, "true", **more), person=True).asked()
    assert "one folder" in problem(caught.value).message


def test_from_the_command_line(daemon: Daemon, folder: Path) -> None:
    words = ("exec", "--read-only", "--folder", str(folder), "--shell", "ls")
    with daemon.terminal(*words) as terminal:
        with suppress(TerminalError):
            answer(terminal, "once", APPROVAL_PASSPHRASE, seconds=60)
        assert terminal.wait(seconds=300) == 0, terminal.text
    assert "by a shell program" in terminal.text and "a.txt" in terminal.text
