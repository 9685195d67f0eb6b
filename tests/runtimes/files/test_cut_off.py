"""What was cut off, or failed, half way: nothing of it makes an undo impossible later."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from policies.actions import Files, Revert
from policies.errors import Unsupported
from runtimes.files import collect
from runtimes.sandbox.contract import Job, Profile, Result
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Way, runtime

UNDO = Revert(verb="undo", target="a1")


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.promise(67)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root's folders are copied for their programs")
async def test_a_folder_that_cannot_be_applied_takes_the_others_back(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("docs", "photos", "music")]
    for folder in folders:
        folder.mkdir()
        (folder / "x").write_text(folder.name)
    (tmp_path / "state").mkdir()

    class Saving(UnsafeNoSandbox):
        """Somebody saves a file into one of the folders while the program runs on the copies."""

        async def run(self, job: Job, profile: Profile, output: object = None) -> Result:
            result = await super().run(job, profile, output)  # type: ignore[arg-type]
            (folders[1] / "mine").write_text("saved meanwhile")
            return result

    made = runtime(tmp_path / "state", Saving())
    way = Way(made, folders[0], action_id="a1")
    way.action = Files(
        folder=str(folders[0]),
        language="shell",
        program="mv docs/x photos/y; echo n > music/n",
        more=tuple(str(folder) for folder in folders[1:]),
    )
    before = [tree(folder) for folder in folders]
    outcome = await way.do()
    assert not outcome.ok
    after = [before[0], {**before[1], "mine": "saved meanwhile"}, before[2]]
    assert [tree(folder) for folder in folders] == after
    (folders[1] / "mine").unlink()
    with pytest.raises(Unsupported, match="undone already"):
        await made.assess_revert(UNDO, way.plan, way.context)
    assert [tree(folder) for folder in folders] == before  # asking for an undo applied nothing either


@pytest.mark.promise(66)
async def test_a_collection_that_was_cut_off_deletes_no_only_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "keep").write_bytes(os.urandom(20_000))
    (folder / "gone").write_bytes(os.urandom(900_000))
    if os.geteuid() == 0:
        for path in (folder, *folder.iterdir()):
            os.chown(path, 1000, 1000)
    (tmp_path / "state").mkdir()
    made = runtime(tmp_path / "state")
    kept = (folder / "keep").read_bytes()
    assert (await Way(made, folder, "rm gone", action_id="a1").do()).ok
    later = Way(made, folder, "rm keep", action_id="a2")
    assert (await later.do()).ok
    repository = made._repository(str(folder))
    packs = repository.path / "objects" / "pack"
    delete = collect._delete

    class Killed(BaseException):
        pass

    def killed(pack: Path) -> None:
        if pack.stat().st_size > 900_000:
            raise Killed
        delete(pack)

    repository.drop("a1")
    there = set(packs.glob("*.pack"))
    monkeypatch.setattr(collect, "_delete", killed)
    with pytest.raises(Killed):
        repository.collect()
    monkeypatch.setattr(collect, "_delete", delete)
    written = set(packs.glob("*.pack")) - there
    assert written
    for pack in written:
        os.utime(pack, ns=(1, 1))  # as where the clock was set back meanwhile
    made._repository(str(folder)).collect()
    assert (await later.revert("undo")).ok
    assert (folder / "keep").read_bytes() == kept
