"""What the repository keeps: whatever is saved, dropped and collected in whatever order, a label that is there has all
that its manifest names, by git's own check and by ours; and many small packs become one."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtimes.files.snapshot import Repository
from runtimes.files.tree import Bounds, Manifest, Walk
from tests.runtimes.files.desk import Way, runtime
from tests.runtimes.files.photo import photo

_NAMES = st.sampled_from(["a", "b", "c", "d/e", "d/f"])
_STEP = st.one_of(
    st.tuples(st.just("write"), _NAMES, st.sampled_from(["", "x", "y", "z" * 3000, "large" * 5000])),
    st.tuples(st.just("remove"), _NAMES, st.just("")),
    st.tuples(st.just("save"), st.sampled_from("0123456"), st.sampled_from(["before", "after"])),
    st.tuples(st.just("drop"), st.sampled_from("0123456"), st.just("")),
    st.tuples(st.just("collect"), st.just(""), st.just("")),
)


def fsck(repository: Path) -> None:
    found = subprocess.run(
        ["git", "--git-dir", str(repository), "fsck", "--full", "--strict"], capture_output=True, check=False
    )
    assert found.returncode == 0, found.stderr


@pytest.mark.promise(66)
def test_a_collection_never_takes_what_a_label_needs(thorough: bool) -> None:
    size = settings(max_examples=400 if thorough else 12, suppress_health_check=list(HealthCheck))
    size(given(steps=st.lists(_STEP, min_size=8, max_size=30))(keeps))()


def keeps(steps: list[tuple[str, str, str]]) -> None:
    """That every label that is there has all of it, after each collection."""
    with tempfile.TemporaryDirectory() as place:
        top, path = Path(place) / "tree", Path(place) / "r.git"
        (top / "d").mkdir(parents=True)
        root = os.open(top, os.O_RDONLY)
        labels: dict[str, tuple[str, Manifest]] = {}
        for what, name, value in steps:
            repository = Repository(path, large=20_000)  # each time as after a restart
            if what == "write":
                (top / name).write_text(value)
            elif what == "remove":
                (top / name).unlink(missing_ok=True)
            elif what == "save":
                walk = Walk(bounds=Bounds(), known=repository.latest(), trusted=True)
                labels[f"a{name}/{value}"] = repository.save(f"a{name}/{value}", walk, root)
            elif what == "drop":
                repository.drop(f"a{name}")
                labels = {label: kept for label, kept in labels.items() if not label.startswith(f"a{name}/")}
            else:
                repository.collect()
                for oid, manifest in labels.values():
                    assert Repository(path).load(oid).entries == manifest.entries
                    with repository.contents() as copy:
                        for wanted in {entry.oid for entry in manifest.entries.values() if entry.oid}:
                            copy(wanted, lambda chunk: None)
                if not labels:
                    assert not path.exists()
        os.close(root)
        if path.exists():
            fsck(path)


async def test_many_small_packs_become_one_and_every_undo_is_still_there(
    owned: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtimes.files.collect._MANY", 16)  # not 48
    made = runtime(state)
    ways, states = [], [photo(owned)]
    most = 0
    for number in range(8):
        way = Way(made, owned, f"echo {number} > f{number % 7}", action_id=f"a{number}")
        assert (await way.do()).ok
        ways.append(way)
        states.append(photo(owned))
        (repository,) = (state / "snapshots").glob("*.git")
        most = max(most, len(list(repository.rglob("*.pack"))))
    assert 13 < most <= 18, "they were made one at least once, and not each time"
    fsck(repository)
    again = runtime(state)
    for way, goal in zip(reversed(ways), reversed(states[:-1]), strict=True):
        way.runtime = again
        assert (await way.revert("undo")).ok
        assert photo(owned) == goal
    for way in ways:
        await way.revert("commit")
    assert not repository.exists()
