"""What is written down of an MCP server stays in its folder, whatever somebody put beside it while nothing ran."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from policies.errors import Unavailable
from runtimes.servers.definition import Servers

pytestmark = pytest.mark.timeout(300)  # which only a hang reaches

TOOLS = ({"name": "read", "inputSchema": {"type": "object"}},)


@pytest.mark.promise(84)
@pytest.mark.parametrize("name", ["seen.json", f"seen.json.{os.getpid()}"], ids=["its own", "a predicted one"])
@pytest.mark.parametrize(
    "put", [lambda file, kept: file.symlink_to(kept), lambda file, kept: os.mkfifo(file)], ids=["link", "pipe"]
)
def test_a_link_or_pipe_beside_it_takes_nothing(name: str, put: Callable[[Path, Path], None], tmp_path: Path) -> None:
    kept, folder = tmp_path / "kept", tmp_path / "servers" / "notes"
    kept.write_text("mine")
    folder.mkdir(parents=True)
    put(folder / name, kept)
    servers = Servers(tmp_path / "servers")
    servers.note_seen("notes", TOOLS)
    assert kept.read_text() == "mine" and servers.seen("notes") == TOOLS
    assert stat.S_IMODE((folder / "seen.json").stat().st_mode) == 0o600


def test_what_cannot_be_written_leaves_nothing_beside_it(tmp_path: Path) -> None:
    in_its_place = tmp_path / "servers" / "notes" / "seen.json" / "x"
    in_its_place.mkdir(parents=True)
    with pytest.raises(Unavailable):
        Servers(tmp_path / "servers").note_seen("notes", TOOLS)
    assert [one.name for one in (tmp_path / "servers" / "notes").iterdir()] == ["seen.json"]
