"""git, as the snapshots use it: by GitPython, in one repository, hearing of nothing but what it is told.

Rules: a repository's own files can name programs that git runs (hooks, remotes that it fetches from, another
configuration). Whoever could once write there isn't obeyed: hooks are off, and one that isn't configured as it was made
isn't used at all, nor one that leads elsewhere: neither git nor GoEx makes a link in one.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import IO

from policies.errors import Unavailable
from policies.regular_file import read_regular
from runtimes.files.workers import translated

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.compression=1",
    "core.fsync=all",
    "core.fsyncMethod=fsync",
    "core.bigFileThreshold=8m",
    "fastimport.unpackLimit=0",
    "gc.auto=0",
    "maintenance.auto=false",
)
_OPTIONS = tuple(part for setting in _SETTINGS for part in ("-c", setting))
# What `git init` writes, and what snapshots add to it: what kind of repository it is, and nothing that it does. Its
# refs are files, for snapshots write them themselves: git would see none of those in a table.
_CONFIG = re.compile(
    r"(?:[ \t]*(?:\[(?:core|extensions)\]|(?:repositoryformatversion|filemode|bare|symlinks|ignorecase|objectformat|"
    r"preciousobjects) = [a-z0-9]+|refstorage = files)?\n)*",
    re.IGNORECASE,
)
_LONGEST_CONFIG = 4096
# What is written to or deleted in, below what lies in the repository itself.
_PLACES = ("objects", "objects/pack", "refs", "refs/goex", "lfs", "lfs/tmp", "lfs/objects")
_LITTLE = 1 << 18  # bytes free on a disk that is as good as full


class Git:
    """git in the repository at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, *arguments: str, data: bytes = b"", here: bool = True) -> bytes:
        """Run one git command to its end and return what it says. Raises Unavailable when it fails."""
        process = self.start(*arguments, here=here)
        output, refused = process.communicate(data)
        if process.returncode != 0:
            raise self.failed(arguments[0], refused)
        return bytes(output)

    def failed(self, command: str, refused: bytes) -> Unavailable:
        """git's failure in GoEx's words. git doesn't always say that the disk is full, so that is looked at."""
        text = refused.decode("utf-8", "replace")
        at = os.statvfs(self.path.parent)
        if "No space left" in text or "Disk quota" in text or at.f_bavail * at.f_frsize < _LITTLE or not at.f_favail:
            return translated(OSError(errno.ENOSPC, "No space left on device"), str(self.path.parent))
        return Unavailable(f"git {command} failed: {text.strip()[-300:]}")

    def start(self, *arguments: str, here: bool = True) -> subprocess.Popen[bytes]:
        """Start one git command, with pipes. Raises Unavailable where it can't be."""
        try:
            from git.cmd import Git
            from git.exc import GitError
        except ImportError as error:  # GitPython looks for git when it is imported
            raise _NO_GIT from error
        if here:
            self.check()
        where = (f"--git-dir={self.path}",) if here else ()
        # GitPython hands the daemon's environment on, where GIT_* variables could point anywhere: env -i ends that.
        command = ["env", "-i", f"PATH={os.environ.get('PATH', os.defpath)}", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1"]
        command += ["GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1", "GIT_NO_REPLACE_OBJECTS=1"]
        command += ["GIT_DEFAULT_REF_FORMAT=files"]  # git 3 makes tables of them by itself
        command += ["git", *where, *_OPTIONS, *arguments]
        try:
            held = Git(str(self.path.parent)).execute(command, istream=subprocess.PIPE, as_process=True)
        except GitError as error:
            raise self.failed(arguments[0], str(error).encode()) from error
        process, held.proc = held.proc, None  # it would end the process when it is collected
        if process is None:
            raise self.failed(arguments[0], b"it has ended")
        return process

    def check(self) -> None:
        """Raise Unavailable where the repository isn't configured as it was made, or lies elsewhere."""
        try:
            config = read_regular(self.path / "config", _LONGEST_CONFIG + 1).decode("ascii", "replace")
            plain = len(config) <= _LONGEST_CONFIG and _CONFIG.fullmatch(config)
            with os.scandir(self.path) as found:
                linked = any(entry.is_symlink() for entry in found)
        except OSError:
            plain, linked = None, True
        places = (self.path, *map(self.path.joinpath, _PLACES))
        if not plain or linked or os.path.lexists(self.path / "commondir") or not all(map(_is_ours, places)):
            raise self._changed()

    def files(self) -> list[str]:
        """All files of the repository, from it on. Raises Unavailable as `check`, and for a link wherever it is."""
        self.check()
        files, folders, own = [], [str(self.path)], len(str(self.path)) + 1
        while folders:
            with suppress(FileNotFoundError), os.scandir(folders.pop()) as found:
                for entry in found:
                    if entry.is_symlink():
                        raise self._changed()
                    if entry.is_dir():
                        folders.append(entry.path)
                    else:
                        files.append(entry.path[own:])
        return files

    def _changed(self) -> Unavailable:
        return Unavailable(
            f"Somebody changed how the snapshots in {self.path} are kept, so they aren't used.",
            next_step="Put the folder back from a backup, or move it away: what it kept can't be undone then.",
        )


def _is_ours(folder: Path) -> bool:
    """Whether it is a folder of our own, and no link to one; or isn't there."""
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return True
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def stream_of(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise Unavailable("git has no pipes.")
    return stream


def ended(process: subprocess.Popen[bytes]) -> None:
    """End a process if it hasn't ended, and close its pipes."""
    if process.poll() is None:
        process.kill()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    process.wait()


_NO_GIT = Unavailable("git isn't installed, and snapshots are kept by it.", next_step="Install it: apt-get install git")
