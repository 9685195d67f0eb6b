"""Programs that give rights to members of a group by an ACL, or to others by a link out of a closed folder."""

# Small calls on a test's own folders.

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runtimes.files import rights, workcopy
from tests.adversarial.folder_attacks import GROUPS
from tests.adversarial.test_folders import (
    OTHER,
    Rights,
    acl,
    attacked,
    furnish,
    give_away,
    more,
    needs_root,
    reach,
    taken_over,
)
from tests.runtimes.files.conftest import owned, place, roots, state
from tests.runtimes.files.desk import Way, runtime

__all__ = ["owned", "place", "roots", "state"]

GROUP = 4242


def as_member(folder: Path) -> set[tuple[str, str]]:
    return reach(folder, (GROUP,))


def put(name: str, mode: int, access: bytes | None = None) -> None:
    """Write a file of root's and GROUP's."""
    path = Path(name)
    path.write_text("precious")
    os.chown(path, path.parent.stat().st_uid, GROUP)
    path.chmod(mode)
    if access is not None:
        os.setxattr(path, rights.ACCESS, access)


def beside_a_group(folder: Path) -> None:
    put(f"{folder}/of-group", 0o604)


def denied(folder: Path) -> None:
    put(f"{folder}/of-group", 0o640, acl(0, group=4, mask=4))


NAMED = f"import os; os.setxattr('of-group', '{rights.ACCESS}', {acl(4, group=0, mask=4, other=4)!r})"
DROPPED = f"import os; os.removexattr('of-group', '{rights.ACCESS}')"
ATTACKS = {
    "named_beside_a_group": Rights(NAMED, as_member, beside_a_group),
    "denial_dropped_in_a_group": Rights(DROPPED, as_member, denied),
    "denial_lost_by_a_rename": Rights(
        "import os; open('t', 'w').write('other words'); os.chmod('t', 0o640); os.rename('t', 'of-group')",
        lambda folder: {at for at in as_member(folder) if at[0] == "of-group"},
        denied,
    ),
    "linked_out_of_a_private_folder": Rights("import os; os.link('private/key', 'key')"),
    "copied_there_and_linked_out": Rights(
        "import os, shutil; shutil.copy('private/key', 'private/a'); os.link('private/a', 'z')"
    ),
}
assert ATTACKS.keys() == GROUPS.keys()


@pytest.mark.promise(59)
@pytest.mark.sampled(2)
@needs_root
@pytest.mark.parametrize("name", ATTACKS)
async def test_refused(name: str, roots: Path, state: Path) -> None:
    before, after, outcome = await attacked(ATTACKS[name], roots, state)
    assert not more(before, after)
    assert any(line.startswith("not applied: ") for line in outcome.changes)


@pytest.mark.sampled(1)
@needs_root
@pytest.mark.parametrize("name", ATTACKS)
async def test_control(name: str, roots: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same programs where the copy's rights are taken over as the program left them."""
    monkeypatch.setattr(workcopy, "target", taken_over)
    before, after, _ = await attacked(ATTACKS[name], roots, state)
    assert more(before, after)


@pytest.mark.promise(59)
@needs_root
@pytest.mark.parametrize("name", ["named_beside_a_group", "denial_dropped_in_a_group"])
async def test_told_in_a_folder_of_ones_own(name: str, owned: Path, state: Path) -> None:
    furnish(owned)
    give_away(owned)
    ATTACKS[name].furnish(owned)
    assert not {("of-group", "r")} & as_member(owned)
    way = Way(runtime(state), owned, ATTACKS[name].program, language="python")
    outcome = await way.do()
    assert way.plan is not None and way.plan.resolved["mode"] == "direct"
    assert ("of-group", "r") in as_member(owned)
    assert f"grants r to user {OTHER}: of-group" in outcome.changes[:3], outcome.changes


@needs_root
async def test_what_was_there_may_be_linked(roots: Path, state: Path) -> None:
    """A name more of a file that a group writes to, where whoever couldn't get to it can't either."""
    furnish(roots)
    put(f"{roots}/of-group", 0o664)
    outcome = await Way(runtime(state), roots, "import os; os.link('of-group', 'sub/again')", language="python").do()
    assert outcome.ok
    assert (roots / "sub" / "again").stat().st_ino == (roots / "of-group").stat().st_ino
    assert not any("as one file" in line for line in outcome.changes)
