"""Programs that only read a folder, in the real sandbox: whatever they try, nothing of it changes."""

# ruff: noqa: ASYNC240

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from policies.actions import Files, UndoClass
from policies.errors import Conflict
from policies.services import Risk
from runtimes.files import workcopy
from runtimes.files.runtime import FilesRuntime
from runtimes.sandbox.contract import Sandbox
from tests.runtimes.files.desk import Way, runtime
from tests.runtimes.files.photo import photo

pytestmark = pytest.mark.docker

ATTACKS = r"""
import json, os
ran = {"read": open("a").read()}
def attempt(name, deed):
    try:
        deed()
        ran[name] = "done"
    except OSError as error:
        ran[name] = error.strerror
attempt("write", lambda: open("a", "w").write("x"))
attempt("append", lambda: open("a", "a").write("x"))
attempt("make", lambda: open("new", "w"))
attempt("another way to it", lambda: open("/proc/self/cwd/a", "w").write("x"))
attempt("unlink", lambda: os.unlink("a"))
attempt("rename", lambda: os.rename("a", "b"))
attempt("mkdir", lambda: os.mkdir("d"))
attempt("chmod", lambda: os.chmod("a", 0o777))
attempt("utime", lambda: os.utime("a"))
attempt("link", lambda: os.link("a", "c"))
attempt("symlink", lambda: os.symlink("a", "e"))
attempt("xattr", lambda: os.setxattr("a", "user.x", b"y"))
attempt("truncate", lambda: os.truncate("a", 0))
attempt("through proc", lambda: open(f"/proc/self/fd/{os.open('a', os.O_RDONLY)}", "w").write("x"))
print(json.dumps(ran))
"""


def reading(made: FilesRuntime, folder: Path, program: str, language: str = "python") -> Way:
    way = Way(made, folder, program, language=language)
    assert isinstance(way.action, Files)
    way.action = replace(way.action, reads=True)
    return way


async def test_nothing_can_be_written(owned: Path, state: Path, sandbox: Sandbox) -> None:
    (owned / "a").write_text("text\n")
    os.chown(owned / "a", owned.stat().st_uid, owned.stat().st_gid)
    before = photo(owned)
    way = reading(runtime(state, sandbox), owned, ATTACKS)
    outcome = await way.do()
    assert outcome.ok and not outcome.touched, (outcome.summary, outcome.stderr)
    ran = json.loads(outcome.stdout)
    assert ran.pop("read") == "text\n"
    assert "done" not in ran.values(), ran
    assert photo(owned) == before
    plan = way.plan
    assert plan is not None and plan.resolved["mode"] == "direct"
    assert (plan.risk, plan.undo_class, plan.needs[0].scope) == (Risk.READ, UndoClass.NOTHING, "files.read")
    assert not list((state / "snapshots").glob("*.git/objects/*/*")), "a snapshot was taken"
    control = Way(runtime(state, sandbox), owned, ATTACKS, language="python")  # the same program, as a change
    assert "done" in json.loads((await control.do()).stdout).values()
    assert photo(owned) != before


async def test_a_dry_run_says_what_the_run_would_do(owned: Path, state: Path, sandbox: Sandbox) -> None:
    (owned / "a").write_text("text\n")
    os.chown(owned / "a", owned.stat().st_uid, owned.stat().st_gid)
    way = reading(runtime(state, sandbox), owned, "echo new > a", "shell")
    plan = await way.runtime.assess(way.action, way.context)
    dry = await way.runtime.dry_run(plan, way.context)
    assert not dry.ok
    said = [line.text for line in dry.lines]
    assert "Nothing in the folder would change." in said and any("Read-only" in line for line in said), said
    outcome = await way.do()
    assert not outcome.ok and "Read-only" in outcome.stderr


async def test_a_root_s_folder_is_read_on_a_copy(roots: Path, state: Path, sandbox: Sandbox) -> None:
    (roots / "a").write_text("text\n")
    (roots / "a").chmod(0o600)
    before = photo(roots)
    outcome = await reading(runtime(state, sandbox), roots, "cat a; echo new > a; echo b > b", "shell").do()
    assert outcome.ok and outcome.stdout == "text\n", (outcome.summary, outcome.stderr)
    assert photo(roots) == before
    assert not list((state / "snapshots" / "dry").glob("*")), "the copy was left"


async def test_a_pipe_in_it_is_none_of_the_person_s(
    owned: Path, state: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only mount lets one write into a pipe or connect to a socket: such a folder is copied."""

    async def got() -> tuple[str, bytes]:
        way = reading(runtime(state, sandbox), owned, "echo out > pipe & sleep 2; kill $! || true", "shell")
        await way.do()
        assert way.plan is not None
        with suppress(BlockingIOError):  # somebody has it open, and wrote nothing
            return str(way.plan.resolved["mode"]), os.read(handle, 10)
        return str(way.plan.resolved["mode"]), b""

    os.mkfifo(owned / "pipe")
    os.chown(owned / "pipe", owned.stat().st_uid, owned.stat().st_gid)
    handle = os.open(owned / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert await got() == ("copy", b"")
        monkeypatch.setattr(workcopy, "special", lambda found: "")
        assert await got() == ("direct", b"out\n")  # the control
    finally:
        os.close(handle)


async def test_another_folder_in_its_place_is_refused(owned: Path, state: Path, sandbox: Sandbox) -> None:
    way = await reading(runtime(state, sandbox), owned, "cat *", "shell").prepared()
    assert way.plan is not None
    owned.rename(owned.with_name("moved"))
    owned.mkdir()
    (owned / "other").write_text("secret")
    with pytest.raises(Conflict):
        await way.runtime.execute(way.plan, way.context)
    owned.joinpath("other").unlink()
    owned.rmdir()
    owned.with_name("moved").rename(owned)
    assert (await way.runtime.execute(way.plan, way.context)).touched is False  # the control
