"""Snapshots: contents and manifests in a private bare git repository for each folder.

Rules:

* `git fast-import` writes, `git cat-file` reads; git never sees the person's folder, their names, their `.git`, their
  attributes or configuration: contents come in by a pipe and are filed under their own hash.
* git runs with an empty environment but for PATH, without system or user configuration, hooks or filters.
* What `save` returns is on disk. A process that dies half way leaves temporary files only; the next use removes them.
* A content is checked against its hash whenever it is read.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from policies.errors import GoexError, Unavailable
from runtimes.files import manifest as manifests
from runtimes.files.collect import collect
from runtimes.files.threads import translated
from runtimes.files.tree import CHUNK, Manifest, Walk, object_id

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SETTINGS = (
    "core.compression=1",
    "core.fsync=all",
    "core.fsyncMethod=fsync",
    "core.bigFileThreshold=8m",
    "fastimport.unpackLimit=0",
    "gc.auto=0",
    "maintenance.auto=false",
)
_OPTIONS = tuple(part for setting in _SETTINGS for part in ("-c", setting))
_SMALL = 8 << 20
_LITTLE = 1 << 18  # bytes free on a disk that is as good as full


class Repository:
    """The snapshots of one folder. One user at a time: whoever uses it holds the folder's lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._objects: set[str] | None = None

    # ---- writing ----

    def save(self, label: str, walk: Walk, root: int) -> tuple[str, Manifest]:
        """Walk the folder open as `root` and keep all of it as `label`. Durable on return.

        Returns the manifest's object id and the manifest. Raises Unavailable (disk full, git missing) and what a
        walk raises; then nothing is kept.
        """
        self._open()
        with self._import() as pipe:
            sent: set[str] = set()

            def read(fd: int, at: os.stat_result, path: bytes) -> str:
                return _stream(pipe, sent, fd, at)

            walk.read = read
            made = walk.run(root)
            oid = self._commit(pipe, label, made)
        (self.path / "latest").write_text(oid, "ascii")
        return oid, made

    def keep(self, label: str, manifest: Manifest) -> str:
        """Keep a manifest whose contents are all stored already. Durable on return; returns its object id."""
        self._open()
        with self._import() as pipe:
            return self._commit(pipe, label, manifest)

    def _commit(self, pipe: IO[bytes], label: str, manifest: Manifest) -> str:
        written = manifests.encode(manifest)
        oid = object_id(written)
        contents = sorted({entry.oid for entry in manifest.entries.values() if entry.oid})
        pipe.write(b"blob\ndata %d\n%b\n" % (len(written), written))
        lines = [
            f"commit {self._ref(label)}\ncommitter GoEx <goex@localhost> 0 +0000\ndata 0\n",
            f"M 100644 {oid} manifest\n",
            *(f"M 100644 {content} contents/{content[:2]}/{content[2:]}\n" for content in contents),
            "\ndone\n",
        ]
        pipe.write("".join(lines).encode("ascii"))
        return oid

    @contextmanager
    def _import(self) -> Iterator[IO[bytes]]:
        before = set(self._pack_folder.iterdir())
        process = self._git("fast-import", "--done", "--quiet", "--force", "--depth=0", "--big-file-threshold=8m")
        pipe = _stream_of(process.stdin)
        try:
            try:
                yield pipe
                pipe.close()
            except BrokenPipeError:  # git has ended early, and says why
                process.wait()
            refused = _stream_of(process.stderr).read()
            if process.wait() != 0:
                raise self._failed("fast-import", refused)
        except BaseException:
            _ended(process)
            self.clean()
            raise
        finally:
            _ended(process)
        for made in set(self._pack_folder.iterdir()) - before:
            fsync(made)
        for folder in (self._pack_folder, *_folders(self.path / "refs"), self.path):
            fsync(folder)

    # ---- reading ----

    def load(self, oid: str) -> Manifest:
        """A manifest by its object id. Raises Unavailable when it is missing or isn't what was written."""
        found: list[bytes] = []
        with self.contents() as copy:
            copy(oid, found.append)
        return manifests.decode(b"".join(found))

    @contextmanager
    def contents(self) -> Iterator[Callable[[str, Callable[[bytes], object]], None]]:
        """Gives `copy(oid, write)`, which hands a content on piece by piece and raises Unavailable when it is
        missing or, after the last piece, when it isn't the one of that hash."""
        if not self.path.is_dir():
            raise Unavailable("The snapshot isn't there any more.")
        process = self._git("cat-file", "--batch")
        asking, answering = _stream_of(process.stdin), _stream_of(process.stdout)

        def copy(oid: str, write: Callable[[bytes], object]) -> None:
            asking.write(oid.encode("ascii") + b"\n")
            asking.flush()
            head = answering.readline().split()
            if len(head) != 3 or head[1] != b"blob":
                raise Unavailable(f"The snapshot lacks the content {oid[:16]}….")
            left = int(head[2])
            digest = hashlib.sha256(b"blob %d\0" % left)
            while left > 0:
                chunk = answering.read(min(CHUNK, left))
                if not chunk:
                    raise Unavailable("git ended while a snapshot was being read.")
                digest.update(chunk)
                write(chunk)
                left -= len(chunk)
            answering.read(1)
            if digest.hexdigest() != oid:
                raise Unavailable(f"The snapshot's content {oid[:16]}… is damaged.")

        try:
            yield copy
        except BrokenPipeError as error:
            raise Unavailable("git ended while a snapshot was being read.") from error
        finally:
            _ended(process)

    def missing(self, oids: set[str]) -> set[str]:
        """Those of `oids` that aren't stored."""
        if not oids:
            return set()
        if not self.path.is_dir():
            return set(oids)
        asked = "".join(f"{oid}\n" for oid in sorted(oids)).encode("ascii")
        answer = self.run("cat-file", "--batch-check=%(objectname) %(objecttype)", data=asked)
        there = {line.split()[0] for line in answer.decode().splitlines() if line.endswith(" blob")}
        return oids - there

    # ---- upkeep ----

    def labels(self) -> tuple[str, ...]:
        """The labels that are kept."""
        if not self.path.is_dir():
            return ()
        return tuple(self.run("for-each-ref", "--format=%(refname)").decode().split())

    def latest(self) -> Manifest | None:
        """The manifest that was saved last, for its hashes; None when there is none that can be used."""
        with suppress(OSError, GoexError):
            return self.load((self.path / "latest").read_text("ascii").strip())
        return None

    def drop(self, action_id: str) -> None:
        """Forget an action's states; their contents go with the next collection. Idempotent."""
        if self.path.is_dir():
            self.clean()
            (self.path / "latest").unlink(missing_ok=True)
            for state in ("before", "after", "left"):
                self.run("update-ref", "-d", f"refs/goex/{plain(action_id)}/{state}")

    def collect(self) -> None:
        """Delete what no label needs; the whole repository when there is none."""
        if self.path.is_dir():
            if self.labels():
                collect(self)
            else:
                self.destroy()

    def clean(self) -> None:
        """Remove what a process that was killed has left."""
        for pattern in ("objects/pack/tmp_*", "objects/tmp_*", "objects/pack/.tmp*", "fast_import_crash_*", "*.lock"):
            for left in self.path.glob(pattern):
                left.unlink(missing_ok=True)
        for left in (self.path / "refs").rglob("*.lock"):
            left.unlink(missing_ok=True)

    def destroy(self) -> None:
        """Remove the repository. Idempotent; a crash half way leaves nothing that looks like one."""
        trash = self.path.with_name(f"{self.path.name}.tmp-gone")
        shutil.rmtree(trash, ignore_errors=True)
        if self.path.is_dir():
            self.path.rename(trash)
            shutil.rmtree(trash, ignore_errors=True)

    def run(self, *arguments: str, data: bytes = b"", here: bool = True) -> bytes:
        """Run one git command to its end and return what it says. Raises Unavailable when it fails."""
        process = self._git(*arguments, here=here)
        output, refused = process.communicate(data)
        if process.returncode != 0:
            raise self._failed(arguments[0], refused)
        return bytes(output)

    def _failed(self, command: str, refused: bytes) -> Unavailable:
        """git's failure in GoEx's words. git doesn't always say that the disk is full, so that is looked at."""
        text = refused.decode("utf-8", "replace")
        at = os.statvfs(self.path.parent)
        if "No space left" in text or "Disk quota" in text or at.f_bavail * at.f_frsize < _LITTLE or not at.f_favail:
            return translated(OSError(errno.ENOSPC, "No space left on device"))
        return Unavailable(f"git {command} failed: {text.strip()[-300:]}")

    @property
    def _pack_folder(self) -> Path:
        return self.path / "objects" / "pack"

    def _ref(self, label: str) -> str:
        action, _, state = label.rpartition("/")
        return f"refs/goex/{plain(action)}/{state}"

    def _open(self) -> None:
        if not self.path.is_dir():
            make_private(self.path.parent)
            for left in self.path.parent.glob(f"{self.path.name}.tmp-*"):
                shutil.rmtree(left, ignore_errors=True)
            new = self.path.with_name(f"{self.path.name}.tmp-new")
            self.run("init", "--quiet", "--bare", "--object-format=sha256", "--template=", str(new), here=False)
            new.chmod(0o700)
            new.rename(self.path)
            fsync(self.path.parent)
        self.clean()

    def _git(self, *arguments: str, here: bool = True) -> subprocess.Popen[bytes]:
        try:
            from git.cmd import Git
            from git.exc import GitError
        except ImportError as error:  # GitPython looks for git when it is imported
            raise _NO_GIT from error
        where = (f"--git-dir={self.path}",) if here else ()
        # GitPython hands the daemon's environment on, where GIT_* variables could point anywhere: env -i ends that.
        command = ["env", "-i", f"PATH={os.environ.get('PATH', os.defpath)}", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1"]
        command += ["GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1", "git", *where, *_OPTIONS, *arguments]
        try:
            held = Git(str(self.path.parent)).execute(command, istream=subprocess.PIPE, as_process=True)
        except GitError as error:
            raise self._failed(arguments[0], str(error).encode()) from error
        process, held.proc = held.proc, None  # it would end the process when it is collected
        if process is None:
            raise self._failed(arguments[0], b"it has ended")
        return process


def _stream_of(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise Unavailable("git has no pipes.")
    return stream


def _ended(process: subprocess.Popen[bytes]) -> None:
    """End a process if it hasn't ended, and close its pipes."""
    if process.poll() is None:
        process.kill()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    process.wait()


def _stream(pipe: IO[bytes], sent: set[str], fd: int, at: os.stat_result) -> str:
    """Send one file to fast-import. Returns its object id, "" when it isn't as long as it was."""
    size = at.st_size
    if size <= _SMALL:
        data = os.read(fd, size + 1) if size else b""
        while 0 < len(data) < size:
            more = os.read(fd, size - len(data))
            if not more:
                return ""
            data += more
        if len(data) != size:
            return ""
        oid = object_id(data)
        if oid not in sent:
            sent.add(oid)
            pipe.write(b"blob\ndata %d\n" % size)
            pipe.write(data)
            pipe.write(b"\n")
        return oid
    digest = hashlib.sha256(b"blob %d\0" % size)
    pipe.write(b"blob\ndata %d\n" % size)
    left, whole = size, True
    while left > 0:
        chunk = os.read(fd, min(CHUNK, left)) if whole else b"\0" * min(CHUNK, left)
        if not chunk:
            whole = False  # it has shrunk: what was promised to git is filled up, and never named
            continue
        digest.update(chunk)
        pipe.write(chunk)
        left -= len(chunk)
    pipe.write(b"\n")
    return digest.hexdigest() if whole else ""


def plain(action_id: str) -> str:
    """An action's id as a file name."""
    return action_id if _PLAIN.fullmatch(action_id) else hashlib.sha256(action_id.encode()).hexdigest()


def make_private(folder: Path) -> None:
    """A folder that only its owner can enter."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def fsync(path: Path) -> None:
    """Bring a file or folder to the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _folders(top: Path) -> list[Path]:
    return [Path(folder) for folder, _, _ in os.walk(top)] + [
        Path(folder) / name for folder, _, names in os.walk(top) for name in names
    ]


_NO_GIT = Unavailable("git isn't installed, and snapshots are kept by it.", next_step="Install it: apt-get install git")
