"""What the hook is told about a use of a tool says nothing of the disk to an agent that couldn't look there itself: one
without a name, of another user, or with another root."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from goex.engine.peers import Peer, look_up, sees_our_files
from goex.rpc import goex_pb2 as pb
from tests.goex.daemon.test_hidden_paths import ALL, home, verdict
from tests.support.daemon import Daemon
from tests.support.hooks import apply_rules

__all__ = ["home"]  # a fixture

# Of each two the first is about what is there, the second is not.
PAIRS = [
    ("cat link", "cat lino"), ("cat l*", "cat q*"), ("cat dir/l*", "cat dir/q*"),
    ("echo link/taxes", "echo link/tuxes"),
    ("cat plain", "cat plaid"),
    ('echo "see {kept}/taxes/x"', 'echo "see {kept}/tuxes/x"'), ("cat link/*", "cat lino/*"),
    ('grep -r "{kept}/taxes/x" .', 'grep -r "{kept}/tuxes/x" .'), ("python {kept}/secret", "python {kept}/sacret"),
    ('git commit -m "{kept}/secret"', 'git commit -m "{kept}/sacret"'),
    ("make 'A {kept}/taxes'", "make 'A {kept}/tuxes'"),
    ("echo 'see ../kept/taxes/x'", "echo 'see ../kept/tuxes/x'"), ("cat {base}/k[e]pt/x", "cat {base}/k[q]pt/x"),
    ("echo {base}/kep*/t*", "echo {base}/kep*/q*"), ("ls {base}/*/taxes", "ls {base}/*/tuxes"),
]  # fmt: skip


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with a link into another one, which is kept."""
    made, kept = tmp_path / "docs", tmp_path / "kept"
    (made / "dir").mkdir(parents=True)
    (kept / "taxes").mkdir(parents=True)
    (kept / "secret").write_text("s")
    (made / "plain").write_text("p")
    for link in (made / "link", made / "dir" / "link"):
        link.symlink_to(kept)
    return made


@contextmanager
def bench(docs: Path, config: str = "") -> Iterator[Daemon]:
    with Daemon(config=config) as daemon:
        rule = f'@id("kept") forbid (principal, action, resource in Folder::"{docs.parent}/kept");'
        permit = '@id("all") permit (principal, action == Action::"tool", resource);'
        apply_rules(daemon, rule + permit)
        yield daemon


def judge(daemon: Daemon, docs: Path, command: str, token: str = "") -> str:
    program = command.format(base=docs.parent, kept=docs.parent / "kept")
    request = pb.JudgeRequest(tool="Bash", kind="shell", folder=str(docs), program=program, home=os.environ["HOME"])
    return str(daemon.actions("Judge", request, token=token).verdict)


def test_an_agent_without_a_name_learns_no_names(docs: Path) -> None:
    with bench(docs) as daemon:
        said = [(judge(daemon, docs, there), judge(daemon, docs, gone)) for there, gone in PAIRS]
        read, token = [], daemon.add_agent("claude")
        for name in ("link", "lino"):
            request = pb.JudgeRequest(tool="Read", kind="read", folder=str(docs), paths=[str(docs / name)])
            read.append(daemon.actions("Judge", request).verdict)
        named = [judge(daemon, docs, command, token) for command in ("cat l*", "cat q*", "cat plain")]
    assert [there for there, _ in said] == [gone for _, gone in said]
    assert read[0] == read[1]
    assert "permit" not in {*read, *(each for pair in said for each in pair)}
    assert named == ["forbid", "permit", "permit"], "its hook knows where links lead"


def test_nor_where_folders_are_confined(docs: Path) -> None:
    with bench(docs, f'[confine]\nfolders = ["{docs}"]\n') as daemon:
        said = [(judge(daemon, docs, there), judge(daemon, docs, gone)) for there, gone in PAIRS]
        outside = judge(daemon, docs, f"rm {docs.parent}/else")
    assert [there for there, _ in said] == [gone for _, gone in said]
    assert {each for pair in said for each in pair} <= {"ask", "forbid"}
    assert outside == "forbid", "what its words say of the folder is judged"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat plain", ""), ("cat {kept}/secret", "forbid"), ("cat ../kept/secret", "forbid"),
        ("python -c 'open(\"{kept}/x\")'", "forbid"), ("make > {kept}/x", "forbid"), ("cat ../kept/se*", "forbid"),
    ],
)  # fmt: skip
async def test_without_a_look_a_command_is_judged_by_its_words(docs: Path, command: str, expected: str) -> None:
    kept = docs.parent / "kept"
    rules = f'{ALL}@id("kept") forbid (principal, action, resource in Folder::"{kept}");'
    asked = command.format(kept=kept)
    assert await verdict(asked, folder=str(docs), rules=rules, looks=False) == expected


@contextmanager
def other(*before: str) -> Iterator[Peer]:
    """The peer that a process is, which these words begin."""
    command = [*before, sys.executable, "-c", "print('ready', flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            pytest.skip(f"{before[0]} doesn't work here")
        try:
            yield look_up("agent", process.pid, os.geteuid(), os.getegid(), "c")
        finally:
            process.communicate(b"\n")


def test_who_sees_the_same_files() -> None:
    with other() as peer:
        assert sees_our_files(peer)
        assert not sees_our_files(replace(peer, uid=peer.uid + 1)), "another user"
        assert not sees_our_files(replace(peer, started=peer.started + 1)), "its id went to another process"
        assert not sees_our_files(replace(peer, started=0)), "/proc said nothing of it"
    assert not sees_our_files(peer), "it is gone"


def test_another_root_shows_other_files() -> None:
    if os.geteuid() != 0:
        pytest.skip("may not make a mount namespace")
    with other("unshare", "--mount") as peer:
        assert not sees_our_files(peer)
