"""Programs that give others rights with the rights of root, and agents that want to know what is in a folder."""

# Small calls on a test's own folders.

from __future__ import annotations

import os
import stat
import struct
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from policies.actions import Outcome, Revert
from runtimes.files import rights, workcopy
from runtimes.files.tree import Entry, Manifest
from tests.adversarial.folder_attacks import RIGHTS
from tests.runtimes.files.conftest import owned, place, roots, state
from tests.runtimes.files.desk import Way, runtime
from tests.runtimes.files.photo import photo
from tests.runtimes.files.test_unprivileged import as_user
from tests.support.daemon import Daemon
from tests.support.journey import Journey, decide, problem, shell, undo

__all__ = ["owned", "place", "roots", "state"]

OTHER = 12345
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whose rights are lent")

ACL = f"""
import os, struct
def acl(*entries):
    rows = [(1, 7, -1), *entries, (4, 5, -1), (16, 7, -1), (32, 0, -1)]
    rows.sort(key=lambda row: row[0])
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", t, p, i & 0xffffffff) for t, p, i in rows)
OTHER = {OTHER}
"""


def acl(user_bits: int, *, group: int = 5, mask: int = 7, other: int = 0) -> bytes:
    """An ACL with an entry for OTHER."""
    rows = [(1, 7, -1), (2, user_bits, OTHER), (4, group, -1), (16, mask, -1), (32, other, -1)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", t, p, i & 0xFFFFFFFF) for t, p, i in rows)


def reach(folder: Path, groups: tuple[int, ...] = ()) -> set[tuple[str, str]]:
    """What OTHER, who owns nothing of it, can read and write in a folder, as the kernel says; as one of `groups`."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setgroups(groups)
        os.setresgid(OTHER, OTHER, OTHER)
        os.setresuid(OTHER, OTHER, OTHER)
        found = [
            f"{path.relative_to(folder)}\0{letter}"
            for path in (folder, *folder.rglob("*"))
            for letter, bit in (("r", os.R_OK), ("w", os.W_OK))
            if os.access(path, bit)
        ]
        os.write(writing, "\n".join(found).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        lines = said.read().split("\n")
    os.wait()
    return {(path, letter) for path, _, letter in (line.partition("\0") for line in lines if line)}


@dataclass(frozen=True)
class Rights:
    """`program` runs on a copy of what `furnish` made; `got` says what it gained."""

    program: str
    got: Callable[[Path], object] = reach
    furnish: Callable[[Path], object] = lambda folder: None


def furnish(folder: Path) -> None:
    folder.chmod(0o755)
    (folder / "z-secret").write_text("precious")
    (folder / "z-secret").chmod(0o600)
    (folder / "file").write_text("plain")
    (folder / "file").chmod(0o644)
    (folder / "private").mkdir(mode=0o700)
    (folder / "private" / "key").write_text("in a private folder")
    (folder / "private" / "key").chmod(0o644)
    (folder / "sub").mkdir(mode=0o755)


def of_other(folder: Path) -> None:
    (folder / "a-mine").write_text("of another user")
    os.chown(folder / "a-mine", OTHER, OTHER)


ATTACKS: dict[str, Rights] = {
    "acl_for_another_user": Rights(
        f"{ACL}os.setxattr('z-secret', '{rights.ACCESS}', acl((2, 7, OTHER)))",
    ),
    "default_acl": Rights(
        f"{ACL}os.setxattr('.', '{rights.DEFAULT}', acl((2, 7, OTHER)))",
        lambda folder: rights.DEFAULT in os.listxattr(folder),
    ),
    "world_writable": Rights("import os; os.chmod('file', 0o666); os.chmod('sub', 0o777)"),
    "private_made_readable": Rights("import os; os.chmod('z-secret', 0o644)"),
    "private_under_a_new_name": Rights("import os; os.rename('z-secret', 'b'); os.chmod('b', 0o644)"),
    "out_of_a_private_folder": Rights("import os; os.rename('private/key', 'key')"),
    "mask_lifted": Rights(
        "import os; os.chmod('file', 0o664)",
        furnish=lambda folder: os.setxattr(folder / "file", rights.ACCESS, acl(7, mask=4, other=4)),
    ),
    "denied_user_forgotten": Rights(
        f"import os; os.removexattr('file', '{rights.ACCESS}'); os.chmod('file', 0o644)",
        furnish=lambda folder: os.setxattr(folder / "file", rights.ACCESS, acl(0, other=4)),
    ),
    "linked_to_anothers_file": Rights(
        "import os; os.unlink('a-mine'); os.link('z-secret', 'a-mine')",
        lambda folder: (folder / "z-secret").stat().st_uid,
        of_other,
    ),
    "linked_under_an_earlier_name": Rights("import os; os.chmod('z-secret', 0o644); os.link('z-secret', 'a')"),
    "sticky_bit_off": Rights(
        "import os; os.chmod('sub', 0o777)",
        lambda folder: not stat.S_IMODE((folder / "sub").stat().st_mode) & 0o1000,
        lambda folder: (folder / "sub").chmod(0o1777),
    ),
    "set_group_id_folder": Rights(
        "import os; os.chmod('sub', 0o2755)", lambda folder: bool((folder / "sub").stat().st_mode & 0o2000)
    ),
    "attribute_read_as_owner": Rights(
        "import os; os.setxattr('file', 'user.virtfs.uid', b'0000')",
        lambda folder: "user.virtfs.uid" in os.listxattr(folder / "file"),
    ),
}
assert ATTACKS.keys() == RIGHTS.keys()


async def attacked(attack: Rights, folder: Path, state: Path) -> tuple[object, object, Outcome]:
    """What was to be had before, and is after the program on a copy; undone and redone on the way."""
    furnish(folder)
    attack.furnish(folder)
    before = attack.got(folder)
    as_it_was = photo(folder)
    way = Way(runtime(state), folder, attack.program, language="python")
    outcome = await way.do()
    assert way.plan is not None and way.plan.resolved["mode"] == "copy"
    assert outcome.ok, outcome
    after = attack.got(folder)
    if outcome.touched:
        left = photo(folder)
        await way.revert("undo")
        assert photo(folder) == as_it_was
        await way.revert("redo")
        assert photo(folder) == left
    return before, after, outcome


def more(before: object, after: object) -> object:
    return after - before if isinstance(before, set) and isinstance(after, set) else before != after


@pytest.mark.promise(59)
@pytest.mark.sampled(6)
@needs_root
@pytest.mark.parametrize("name", ATTACKS)
async def test_refused(name: str, roots: Path, state: Path) -> None:
    before, after, outcome = await attacked(ATTACKS[name], roots, state)
    assert not more(before, after)
    assert any(line.startswith("not applied: ") for line in outcome.changes)


@pytest.mark.sampled(2)
@needs_root
@pytest.mark.parametrize("name", ATTACKS)
async def test_control(name: str, roots: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same programs where the copy's rights are taken over as the program left them."""
    monkeypatch.setattr(workcopy, "target", taken_over)
    before, after, _ = await attacked(ATTACKS[name], roots, state)
    assert more(before, after)


def taken_over(before: Manifest, handed: Manifest, left: Manifest) -> tuple[Manifest, list[str]]:
    """The copy's state with the owners that were there, names of one inode as the first of them is."""
    owner = before.entries[b""]
    made = {}
    for path, entry in left.entries.items():
        old = before.entries.get(path, owner)
        made[path] = entry._replace(uid=old.uid, gid=old.gid)
    for path, entry in left.entries.items():
        if entry.group:
            made[path] = made[entry.group]
    return Manifest(entries=made, taken=left.taken, settled=False), []


# ---- what belongs there stays possible


@pytest.mark.promise(59)
@needs_root
async def test_rights_that_were_there_are_kept(roots: Path, state: Path) -> None:
    furnish(roots)
    os.setxattr(roots / "sub", rights.DEFAULT, acl(7))
    os.setxattr(roots / "sub", rights.ACCESS, acl(7))
    program = (
        "import os; open('sub/new', 'w').write('x'); os.mkdir('sub/below'); open('new', 'w').write('y');"
        "open('run', 'w').write('#!/bin/sh'); os.chmod('run', 0o755); os.chmod('file', 0o755)"
    )
    outcome = await Way(runtime(state), roots, program, language="python").do()
    assert outcome.ok and not any("not applied" in line for line in outcome.changes), outcome
    assert ("sub/new", "w") in reach(roots), "made in a folder whose default ACL says so"
    assert rights.DEFAULT in os.listxattr(roots / "sub" / "below")
    assert {("new", "r"), ("run", "r")} <= reach(roots)
    assert stat.S_IMODE((roots / "file").stat().st_mode) == 0o755
    assert (roots / "new").stat().st_uid == 0


# ---- a folder of the person's own: each grant is told

TOLD: dict[str, tuple[str, str]] = {
    "acl": (
        f"{ACL}os.setxattr('file', '{rights.ACCESS}', acl((2, 7, 65534)))",
        "grants rwx to user nobody (65534): file",
    ),
    "acl of nobody known": (
        f"{ACL}os.setxattr('file', '{rights.ACCESS}', acl((2, 6, OTHER)))",
        f"grants rw to user {OTHER}: file",
    ),
    "default acl": (
        f"{ACL}os.setxattr('sub', '{rights.DEFAULT}', acl((2, 7, 65534)))",
        "grants rwx to user nobody (65534) by default ACL: sub",
    ),
    "world": ("import os; os.chmod('file', 0o666); os.chmod('sub', 0o777)", "writable by everyone: file, sub"),
    "new": ("import os; os.umask(0); open('new', 'w').close()", "writable by everyone: new"),
    "private": ("import os; os.chmod('z-secret', 0o644)", "readable by everyone: z-secret"),
    "set-group-id": (
        "import os; os.chmod('sub', 0o2755)",
        "set-group-id, which gives its group to what is made in it: sub",
    ),
    "attribute": ("import os; os.setxattr('file', 'user.overlay.opaque', b'y')", "attribute user.overlay.opaque: file"),
}


def give_away(folder: Path) -> None:
    """Make a folder, with all in it, an ordinary user's."""
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, 1000, 1000)


HIDDEN = "import os; [open('a%03d' % n, 'w').close() for n in range(300)];"


@pytest.mark.promise(59)
@pytest.mark.sampled(5)
@pytest.mark.parametrize("hidden", [False, True], ids=["alone", "behind 300 changes"])
@pytest.mark.parametrize("name", TOLD)
async def test_in_a_folder_of_ones_own_each_grant_is_told(name: str, hidden: bool, owned: Path, state: Path) -> None:
    furnish(owned)
    give_away(owned)
    as_it_was = photo(owned)
    program, line = TOLD[name]
    way = Way(runtime(state), owned, (HIDDEN if hidden else "") + program, language="python")
    outcome = await way.do()
    assert way.plan is not None and way.plan.resolved["mode"] == "direct"
    assert line in outcome.changes[:5] and outcome.summary.endswith("It granted rights to others.")
    assert any("grant others rights" in said for said in way.plan.lines)
    left = photo(owned)
    await way.revert("undo")
    assert photo(owned) == as_it_was
    revert = await way.runtime.assess_revert(_redo(way), way.plan, way.context)
    assert line in revert.lines, "bringing it back grants it again, and says so before"
    await way.revert("redo")
    assert photo(owned) == left


def _redo(way: Way) -> Revert:
    return Revert(verb="redo", target=way.context.action_id)


@pytest.mark.promise(59)
@pytest.mark.sampled(3)
@needs_root
@pytest.mark.parametrize("name", TOLD)
def test_each_grant_is_told_to_an_ordinary_user(name: str) -> None:
    """GoEx as the folder's own user, without root."""
    with tempfile.TemporaryDirectory(prefix="mine-") as top:
        folder, state = Path(top) / "folder", Path(top) / "state"
        folder.mkdir()
        state.mkdir(mode=0o700)
        furnish(folder)
        give_away(Path(top))
        program, line = TOLD[name]

        async def work() -> None:
            before = photo(folder)
            way = Way(runtime(state), folder, program, language="python")
            outcome = await way.do()
            assert line in outcome.changes
            await way.revert("undo")
            assert photo(folder) == before

        as_user(work, uid=1000)


@pytest.mark.promise(59)
def test_what_only_groups_or_the_system_read_is_told() -> None:
    """What the test's program can't do by itself, by two states alone."""
    root = Entry("d", 0o755, 1000, 1000, 0)
    old = Entry("f", 0o640, 1000, 1000, 0, 1, "oid")
    cases = {
        "grants rw to group": old._replace(mode=0o660),
        "grants rw to group 4242": old._replace(gid=4242, mode=0o660),
        "grants rwx to user 4242": old._replace(uid=4242),
        "attribute security.capability": old._replace(xattrs=(("security.capability", b"x"),)),
        "attribute system.nfs4_acl": old._replace(xattrs=(("system.nfs4_acl", b"x"),)),
        "set-user-id or -group-id": old._replace(mode=0o4750),
    }
    for said, new in cases.items():
        lines = rights.told({b"": root, b"f": old}, {b"": root, b"f": new})
        assert any(line.startswith(said) for line in lines), (said, lines)
    assert rights.told({b"": root, b"f": old}, {b"": root, b"f": old._replace(mode=0o600)}) == []


# ---- names in a folder, and whether a path is there


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon() as running:
        yield running


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of an ordinary user's, with something in it."""
    with tempfile.TemporaryDirectory(prefix="desk-", dir="/tmp") as top:
        made = Path(top) / "desk"
        made.mkdir(mode=0o755)
        (made / "mine").write_text("x")
        Path(top).chmod(0o755)
        for path in (made, made / "mine"):
            if os.geteuid() == 0:
                os.chown(path, 65534, 65534)
        yield made


def all_of(daemon: Daemon, journey: Journey, token: str) -> str:
    """Everything that an agent can see of an action: what it was told, and what it can ask for."""
    seen = [*journey.seen]
    for method, request in (
        ("Get", pb.ActionId(id=journey.action_id)),
        ("List", pb.ListRequest(limit=3)),
        ("WayBack", pb.WayBackRequest(action_id=journey.action_id, verb="undo")),
    ):
        try:
            seen.append(daemon.actions(method, request, token=token))
        except grpc.RpcError as error:
            seen.append(problem(error))
    watched = Journey(daemon, pb.ActionId(id=journey.action_id), token=token)
    watched.finished()
    return "\n".join(str(message) for message in (*seen, *watched.seen))


def told_of(daemon: Daemon, path: str, token: str) -> tuple[object, ...]:
    """All that differs, between two paths, in what whoever asked is told of the refusal."""
    journey = Journey(daemon, shell(Path(path), "true"), token=token, person=not token)
    end = journey.finished()
    kinds = [(event.WhichOneof("what"), event.state.to) for event in journey.seen[:-1]]
    view, said = end.action, end.problem
    view.request_json = view.id = view.created = view.updated = view.session = ""
    text = f"{view}{said}".replace(journey.action_id, "ID")
    listed = str(daemon.actions("Get", pb.ActionId(id=journey.action_id), token=token)) if token else ""
    return tuple(kinds), text, listed.count("failed")


@pytest.fixture
def paths(folder: Path) -> list[str]:
    """Paths of every kind that GoEx refuses: what an agent asks about with the rights of root."""
    top = folder.parent
    (top / "file").write_text("x")
    (top / "link").symlink_to(folder)
    (top / "closed").mkdir(mode=0o000)
    (top / "shared").mkdir()
    (top / "shared").chmod(0o777)
    (top / "shared" / "inside").mkdir()
    os.mkfifo(top / "fifo")
    (top / "deep").mkdir()
    inner = top / "deep"
    for _ in range(205):
        inner = inner / "d"
        inner.mkdir()
    return [
        "/nowhere/at/all",
        f"{top}/absent",
        f"{top}/file",
        f"{top}/file/below",
        f"{top}/link",
        f"{top}/fifo",
        f"{top}/deep",
        f"{top}/shared/inside",
        "/root",
        "/root" + "/absent",  # in two, so that it isn't taken for somebody's folder
        "/root" + "/.ssh/id_rsa",
        "/etc/shadow",
        "/etc/absent",
        "/etc",
        "/proc/1/root",
        "/",
        "/tmp",
        "relative",
    ]


@pytest.mark.promise(74)
@pytest.mark.docker
def test_not_told_paths_apart(daemon: Daemon, paths: list[str]) -> None:
    token = daemon.add_agent(f"a{os.urandom(3).hex()}")
    refusals = {path: told_of(daemon, path, token) for path in paths}
    assert len(set(refusals.values())) == 1, refusals
    assert all("can't be found" not in str(told) for told in refusals.values())


@pytest.mark.docker
def test_the_person_is_told_paths_apart(daemon: Daemon, paths: list[str]) -> None:
    refusals = {path: told_of(daemon, path, "") for path in paths}
    assert len(set(refusals.values())) > 8


def changed_by_the_person(daemon: Daemon, folder: Path, token: str) -> str:
    """An agent's action ran, and the person has put something where it undoes. Returns its id."""
    done = Journey(daemon, shell(folder, "mkdir own"), token=token).approve()
    assert done.action.state == "done"
    (folder / "own" / "divorce-papers").write_text("private")
    return done.action.id


@pytest.mark.promise(74)
@pytest.mark.docker
def test_not_told_names_by_polling_undo(daemon: Daemon, folder: Path) -> None:
    token = daemon.add_agent(f"a{os.urandom(3).hex()}")
    id = changed_by_the_person(daemon, folder, token)
    journey = Journey(daemon, undo(id), token=token)
    end = journey.finished()
    assert end.problem.code == "conflict" and "divorce" not in all_of(daemon, journey, token)
    person = Journey(daemon, undo(id), person=True).finished()
    assert any("divorce-papers" in line for line in person.problem.details), "the control: the person is told"


@pytest.mark.promise(74)
@pytest.mark.docker
def test_not_told_names_by_a_plan(daemon: Daemon, folder: Path) -> None:
    """A program that changes what was there: the plan of its undo names it, and what the folder holds."""
    token = daemon.add_agent(f"a{os.urandom(3).hex()}")
    os.mkfifo(folder / "fifo-of-the-person")
    journey = Journey(daemon, shell(folder, "echo x >> *mine"), token=token)
    question = journey.asked()
    seen = "\n".join(str(event) for event in journey.seen)
    mine = str(daemon.actions("Get", pb.ActionId(id=journey.action_id), token=token))
    assert not question.lines and not question.digest and not question.needs
    assert "fifo-of-the-person" not in seen + mine
    shown = daemon.person("Approvals", pb.ApprovalsRequest(approval_id=question.id)).approvals[0]
    assert any("fifo-of-the-person" in line for line in shown.lines), "the control: the person is told"
    decide(daemon, shown)
    done = journey.finished()
    assert done.action.lines, "once it has run it is told"
    back = Journey(daemon, undo(done.action.id), token=token)
    question = back.asked()
    seen = "\n".join(str(event) for event in back.seen)
    assert "mine" not in seen and not question.lines
    shown = daemon.person("Approvals", pb.ApprovalsRequest(approval_id=question.id)).approvals[0]
    assert any("mine" in line for line in shown.lines)
    decide(daemon, shown)
    assert back.finished().action.state == "done"


@pytest.mark.promise(74)
@pytest.mark.docker
def test_not_told_actions_of_others(daemon: Daemon, folder: Path) -> None:
    token, other = (daemon.add_agent(f"a{os.urandom(3).hex()}") for _ in range(2))
    own = Journey(daemon, shell(folder, "echo x > own"), token=token).approve().action.id
    inside = folder / "private-project"
    inside.mkdir()
    if os.geteuid() == 0:
        os.chown(inside, 65534, 65534)
    theirs = Journey(daemon, shell(inside, "echo y > theirs"), token=other).approve().action.id
    journey = Journey(daemon, undo(own), token=token)
    assert journey.finished().problem.code == "conflict"
    seen = all_of(daemon, journey, token)
    way = daemon.actions("WayBack", pb.WayBackRequest(action_id=own, verb="undo"), token=token)
    assert theirs not in f"{seen}{way}" and "private-project" not in f"{seen}{way}"
    person = Journey(daemon, undo(own), person=True).finished().problem
    assert theirs in f"{person}" and "private-project" in f"{person}", "the control: the person is told"


@pytest.mark.promise(74)
@pytest.mark.docker
def test_a_folder_that_rules_forbid_is_refused_as_one_that_is_not_there(folder: Path) -> None:
    with Daemon(config='[confine]\nfolders = ["/srv/allowed"]\n') as daemon:
        token = daemon.add_agent("guesser")
        there, not_there = (told_of(daemon, path, token) for path in (str(folder), f"{folder}-absent"))
        assert there == not_there
        assert "confined" in str(told_of(daemon, str(folder), ""))
