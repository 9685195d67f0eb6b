"""The files of jobs on their way into containers: a private folder of the daemon, one folder in it a job.

Rules: the outer folder is the user's alone (0700, checked, never a link), so other users of the machine see nothing;
what is mounted (0755, files 0444) can be read by whatever user the job runs as; nothing secret is put here; folders
of instances that are gone are removed when the daemon reaps.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from runtimes.sandbox.contract import SandboxFailed


class Scratch:
    """Folders below `root/<instance>`. Two daemons of one state don't run at once, so the other instances are dead."""

    def __init__(self, root: Path | None, state_id: str, instance: str) -> None:
        self.root = root or _default(state_id)
        self._mine = self.root / instance

    def put(self, name: str, files: Mapping[str, bytes]) -> Path:
        """Write the files of one job; returns the folder to mount. Raises SandboxFailed when that can't be done."""
        folder = self.empty(name)
        try:
            fill(folder, files)
            folder.chmod(0o755)
        except OSError as error:
            raise self._failed(error) from error
        return folder

    def empty(self, name: str, *folders: str) -> Path:
        """A folder that holds these empty ones, to be mounted now and filled later. Raises SandboxFailed."""
        try:
            _private(self.root)
            _private(self._mine)
            made = self._mine / name
            made.mkdir(mode=0o700)
            for folder in folders:
                (made / folder).mkdir(mode=0o700)
                (made / folder).chmod(0o755)
        except OSError as error:
            raise self._failed(error) from error
        return made

    def drop(self, name: str) -> None:
        """Remove one. Idempotent."""
        shutil.rmtree(self._mine / name, ignore_errors=True)

    def reap(self) -> None:
        """Remove what earlier instances left."""
        if self.root.is_dir() and not self.root.is_symlink():
            for entry in self.root.iterdir():
                if entry != self._mine and entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)

    def _failed(self, error: OSError) -> SandboxFailed:
        return SandboxFailed(
            f"The files of a job can't be written below {self.root}: {error.strerror}.",
            next_step="Free some space there, or check who owns the folder.",
        )

    def close(self) -> None:
        shutil.rmtree(self._mine, ignore_errors=True)


def fill(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files that any user may read and none may change. Raises OSError."""
    for file, data in files.items():
        target = folder / file
        target.write_bytes(data)
        target.chmod(0o444)


def _default(state_id: str) -> Path:
    parent = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(parent, f"goex-{os.getuid()}-{sha256(state_id.encode()).hexdigest()[:16]}")


def _private(folder: Path) -> None:
    """Make it, or be sure that it is this user's own and no link: someone else may have made it first."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise SandboxFailed(f"{folder} belongs to someone else.", next_step="Remove it, or look who put it there.")
    folder.chmod(0o700)
