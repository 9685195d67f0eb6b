"""Games with links in a person's folder: on what the container reaches, and on what the daemon works on afterwards."""

# Descriptors, which pathlib knows nothing of.
from __future__ import annotations

import os
from pathlib import Path

import pytest

from runtimes.files import tree
from runtimes.files.handles import Handles, Moved
from runtimes.sandbox.contract import WORK, Job, Limits, Profile
from runtimes.sandbox.docker import DockerSandbox

PROFILE = Profile(limits=Limits(seconds=90.0))


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with links out of it, beside what they lead to."""
    (desk := tmp_path / "desk").mkdir()
    (outside := tmp_path / "outside").mkdir()
    (outside / "secret").write_text("precious")
    (desk / "by-path").symlink_to(outside / "secret")
    (desk / "by-dots").symlink_to("../outside/secret")
    (desk / "folder").symlink_to(outside)
    for path in (tmp_path, desk, outside):
        path.chmod(0o755)
    return desk


async def read_by(desk: Path, folder: Path) -> bytes:
    sandbox = DockerSandbox(f"links-{os.getpid()}", scratch_dir=desk.parent / "scratch")
    where = f"{WORK}/{desk.relative_to(folder)}" if desk != folder else WORK
    code = f"cd {where}; cat by-path by-dots folder/secret ../outside/secret; cat /proc/self/cwd/../outside/secret"
    try:
        job = Job(action_id="a1", argv=["sh", "-c", code], folder=str(folder))
        return (await sandbox.run(job, PROFILE)).stdout
    finally:
        await sandbox.close()


@pytest.mark.promise(50)
@pytest.mark.docker
async def test_a_link_leads_nowhere_since_the_folder_is_there_alone(sandbox_image: str, desk: Path) -> None:
    assert await read_by(desk, desk) == b""
    assert b"precious" in await read_by(desk, desk.parent), "the control: the folder above is there too"


@pytest.mark.promise(50)
def test_a_link_in_a_folders_place_is_not_gone_through(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write() -> None:
        root = os.open(desk, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with Handles(root) as handles:
                os.close(os.open("planted", os.O_CREAT | os.O_WRONLY, dir_fd=handles.folder(b"folder")))
        finally:
            os.close(root)

    with pytest.raises(Moved):
        write()
    assert not (desk.parent / "outside" / "planted").exists()
    monkeypatch.setattr(os, "O_NOFOLLOW", 0)
    write()
    assert (desk.parent / "outside" / "planted").exists(), "the control"


@pytest.mark.promise(50)
def test_a_link_in_a_files_place_is_not_read(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read() -> bytes:
        root = os.open(desk, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with tree.opened(root, b"by-path", os.O_RDONLY) as file:
                return os.read(file, 100)
        finally:
            os.close(root)

    with pytest.raises(OSError, match="symbolic links"):
        read()
    monkeypatch.setattr(os, "O_NOFOLLOW", 0)
    assert read() == b"precious", "the control"
