"""Files actions in the real sandbox: what the program sees, as whom it runs, and that it is taken back."""

# ruff: noqa: ASYNC240

from __future__ import annotations

import os
from pathlib import Path

import pytest

from policies.actions import Ended, Files
from runtimes.sandbox.contract import OPEN_FILES, Limits, Profile, Sandbox
from tests.runtimes.files.desk import Way, runtime
from tests.runtimes.files.photo import photo
from tests.runtimes.files.test_round import PROGRAM, furnish

pytestmark = pytest.mark.docker


@pytest.fixture(params=["owned", "roots"])
def folder(request: pytest.FixtureRequest) -> Path:
    return Path(request.getfixturevalue(request.param))


async def test_run_undo_redo(folder: Path, state: Path, sandbox: Sandbox) -> None:
    furnish(folder)
    before = photo(folder)
    way = Way(runtime(state, sandbox), folder, PROGRAM)
    outcome = await way.do()
    assert outcome.ok, (outcome.summary, outcome.stderr)
    after = photo(folder)
    assert after[b"/made/in/file"][4] == b"hello\n"
    assert all(facts[1] == folder.stat().st_uid for facts in after.values())
    assert (await way.revert("undo")).ok
    assert photo(folder) == before
    assert (await way.revert("redo")).ok
    assert photo(folder) == after


async def test_the_program_sees_its_folder_alone_and_is_not_root(folder: Path, state: Path, sandbox: Sandbox) -> None:
    (folder / "a").write_text("a")
    (folder.parent / "beside").write_text("not yours")
    program = (
        "import os\n"
        "assert os.getcwd() == '/work' and os.listdir('.') == ['a'], os.listdir('.')\n"
        "assert os.getuid() != 0 and os.getgid() != 0\n"
        f"assert not os.path.exists({str(folder)!r}) and os.listdir('/work/..') == os.listdir('/')\n"
        "print('seen')\n"
    )
    outcome = await Way(runtime(state, sandbox), folder, program, language="python").do()
    assert outcome.ok, outcome.stderr
    assert outcome.stdout == "seen\n" and not outcome.touched


async def test_a_failing_program_is_an_outcome_and_can_be_undone(folder: Path, state: Path, sandbox: Sandbox) -> None:
    before = photo(folder)
    way = Way(runtime(state, sandbox), folder, "echo x > half; echo why >&2; exit 3")
    outcome = await way.do()
    assert not outcome.ok and outcome.exit_code == 3 and outcome.stderr == "why\n"
    assert outcome.changes == ("created half",) and outcome.touched
    assert (await way.revert("undo")).ok
    assert photo(folder) == before


async def test_a_program_that_takes_too_long(owned: Path, state: Path, sandbox: Sandbox) -> None:
    before = photo(owned)
    profile = Profile(limits=Limits(seconds=2.0))
    way = Way(runtime(state, sandbox, profile=profile), owned, "echo x > half; sleep 60")
    outcome = await way.do()
    assert not outcome.ok and outcome.ended is Ended.TIMEOUT and outcome.changes == ("created half",)
    assert (await way.revert("undo")).ok
    assert photo(owned) == before


@pytest.mark.parametrize("owner", [1000, 0], ids=["direct", "copy"])
async def test_a_program_sees_each_of_several_folders_and_undo_takes_back_all(
    place: Path, state: Path, sandbox: Sandbox, owner: int
) -> None:
    pair = [place / "my docs", place / "photos"]
    for folder in pair:
        folder.mkdir()
        (folder / "a").write_text(folder.name)
        for path in (folder, folder / "a"):
            os.chown(path, owner if os.geteuid() == 0 else -1, owner if os.geteuid() == 0 else -1)
    (place / "beside").write_text("not yours")
    before = [photo(folder) for folder in pair]
    program = "set -e; pwd; ls /work; test ! -e /work/beside; mv my_docs/a photos/b; rm photos/a; ! touch /work/x"
    way = Way(runtime(state, sandbox), pair[0])
    way.action = Files(folder=str(pair[0]), language="shell", program=program, more=(str(pair[1]),))
    outcome = await way.do()
    assert outcome.ok, (outcome.summary, outcome.stderr)
    assert outcome.stdout.split() == ["/work", "my_docs", "photos"]
    assert (pair[1] / "b").read_text() == "my docs" and not (pair[0] / "a").exists()
    assert (await way.revert("undo")).ok
    assert [photo(folder) for folder in pair] == before


async def test_too_many_open_files_are_said(folder: Path, state: Path, sandbox: Sandbox) -> None:
    program = "kept = [open(f'/tmp/{each}', 'w') for each in range(2000)]\n"
    outcome = await Way(runtime(state, sandbox), folder, program, language="python").do()
    assert not outcome.ok and f"{OPEN_FILES} files" in outcome.summary, outcome.stderr
