"""Snapshots: contents and manifests in a private bare git repository for each folder.

Rules:

* Contents are laid into packs (`packs`), large ones beside them (`large`), manifests and their commits into packs of
  their own; where there are large ones `git fast-import` adds what git-lfs knows them by. `git cat-file` reads. git
  never sees the person's folder, their names, their `.git`, their attributes or configuration: contents are filed under
  their own hash.
* git runs with an empty environment but for PATH, without system or user configuration, hooks or filters.
* What `save` returns is on disk: contents before the manifest that names them, that before its label. A process that
  dies half way leaves temporary files only, or contents that nothing names; the next use removes them.
* A manifest says what differs from the one before it where that is little (`manifest`); its commit then has that one's
  commit as its parent, so that a label keeps all that its manifest is made of. What contents are needed is read from
  the labels' manifests (`collect`), not from trees; the repository forbids git to clean it up by itself.
* A content is checked against its hash whenever it is read.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from policies.errors import GoexError, Unavailable
from policies.regular_file import read_regular
from runtimes.files import manifest as manifests
from runtimes.files.collect import collect, reclaimable, tidy
from runtimes.files.content_ids import CHUNK, LARGE, hash_file, hasher, named, object_id
from runtimes.files.gitprocess import Git, ended, stream_of
from runtimes.files.handles import remove_path
from runtimes.files.large import ATTRIBUTES, POINTER, Large, fsync, replace_file
from runtimes.files.manifest import Cache
from runtimes.files.packs import COMMIT, TREE, PackWriter, stored
from runtimes.files.tree import Manifest, Reader, Walk

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_LEFT = re.compile(r"objects/(pack/)?(tmp_|\.tmp).*|fast_import_crash_.*|lfs/tmp/.*|.*\.lock")
_SMALL = 8 << 20
_DEEPEST = 30  # manifests that one is made of
LARGE_FROM = 200 * 10**6  # bytes


# Hears how many bytes are about to be kept, less than none where they needn't be, and raises where they may not be.
Room = Callable[[int], None]


class Repository(Git):
    """The snapshots of one folder. One user at a time: whoever uses it holds the folder's lock.

    `large` is the size from which contents are kept as Git LFS does; a repository stays with that of its beginning.
    """

    def __init__(self, path: Path, *, cache: Cache | None = None, large: int = LARGE_FROM) -> None:
        super().__init__(path)
        self.lfs = Large(path / "lfs")
        self._cache = cache or Cache()
        self._large = large

    @property
    def large(self) -> int:
        """From how many bytes on a content is large, in this repository."""
        try:
            return int(read_regular(self.path / "large"))
        except (OSError, ValueError):
            return self._large

    def hash(self, fd: int, at: os.stat_result, path: bytes) -> str:
        """A `Reader` that only hashes."""
        return hash_file(fd, at, path, large=self.large)

    # ---- writing ----

    def save(self, label: str, walk: Walk, root: int, *, room: Room | None = None) -> tuple[str, Manifest]:
        """Walk the folder open as `root` and keep all of it as `label`. Durable on return.

        Returns the manifest's object id and the manifest. Raises what `room` raises when there is none, Unavailable
        (disk full, git missing) and what a walk raises; then nothing is kept.
        """
        made = self.store(walk, root, room=room)
        return self._commit(label, made), made

    def store(self, walk: Walk, root: int, *, room: Room | None = None, skip: frozenset[str] = frozenset()) -> Manifest:
        """Keep the contents of the folder open as `root`, but for those of `skip`, until the next collection. Durable
        on return."""
        self._open()
        kept: set[str] = set()
        try:
            with PackWriter(self._pack_folder) as pack:
                walk.read = self._reader(pack, room or (lambda size: None), kept, skip)
                made = walk.run(root)
                pack.finish()
        except BaseException:
            for oid in kept:
                self.lfs.path(oid).unlink(missing_ok=True)
            raise
        return made

    def asked(self, walk: Walk, root: int) -> tuple[int, frozenset[str]]:
        """How many bytes `save` of the folder open as `root` would ask room for, and which contents it needs."""
        sizes: dict[str, int] = {}

        def read(fd: int, at: os.stat_result, path: bytes) -> str:
            oid = self.hash(fd, at, path)
            sizes[oid] = self.lfs.takes(fd) if oid[:1] == LARGE else at.st_size
            return oid

        walk.read = read
        made = walk.run(root)
        needed = frozenset(entry.oid for entry in made.entries.values() if entry.oid)
        return sum(sizes.get(oid, 0) for oid in self.missing(set(needed))), needed

    def keep(self, label: str, manifest: Manifest, *, latest: bool = True) -> str:
        """Keep a manifest whose contents are all stored already. Durable on return; returns its object id.

        `latest` False: it isn't the folder's own state, and the next snapshot doesn't go by it."""
        self._open()
        return self._commit(label, manifest, latest)

    def _reader(self, pack: PackWriter, room: Room, kept: set[str], skip: frozenset[str]) -> Reader:
        """A `Reader` that keeps what isn't kept yet, nor in `skip`. `room` hears of it first; what is large goes into
        `kept`."""
        there: set[bytes] | None = None
        large = self.large

        def known(oid: str) -> bool:
            nonlocal there
            if there is None:
                there = stored(self._pack_folder) | {bytes.fromhex(oid) for oid in skip if oid[:1] != LARGE}
            name = bytes.fromhex(oid)
            if name in there:
                return True
            there.add(name)
            return False

        def read(fd: int, at: os.stat_result, path: bytes) -> str:
            size = at.st_size
            if size >= large:
                if skip and (oid := hash_file(fd, at, path, large=large)) in skip:
                    return oid
                os.lseek(fd, 0, os.SEEK_SET)
                return self.lfs.store(fd, size, room, kept)
            if size > _SMALL:
                try:
                    room(size)
                except GoexError:
                    if (oid := hash_file(fd, at, path, large=large)) and known(oid):
                        return oid
                    raise
                oid = pack.stream(size, lambda most: os.read(fd, most))
                if not oid:
                    room(-size)
                elif known(oid):
                    pack.drop_last()
                    room(-size)
                return oid
            data = os.read(fd, size) if size else b""
            while len(data) < size and (more := os.read(fd, size - len(data))):
                data += more
            if len(data) != size:
                return ""
            oid = object_id(data)
            if not known(oid):
                room(size)
                pack.add(oid, data)
            return oid

        return read

    def _commit(self, label: str, manifest: Manifest, latest: bool = True) -> str:
        base = self._latest()
        depth, parent, written = 0, "", None
        if base is not None:
            oid, parent = base
            with suppress(GoexError):
                there, depth = self._loaded(oid)
                if depth < _DEEPEST:
                    written = manifests.encode_on(manifest, there, oid, depth + 1)
        lines = [f"commit {self._ref(label)}\ncommitter GoEx <goex@localhost> 0 +0000\ndata 0\n"]
        if written is None:
            depth, written = 0, manifests.encode(manifest)
        else:
            depth += 1
            lines.append(f"from {parent}\ndeleteall\n")
        oid = object_id(written)
        lines.append(f"M 100644 {oid} manifest\n")
        blobs = [written]
        large = {
            entry.oid.removeprefix(LARGE): entry.size for entry in manifest.entries.values() if entry.oid[:1] == LARGE
        }
        if not large:
            commit = self._labelled(label, written, parent if depth else "")
        else:  # so that git-lfs knows them too
            blobs.append(ATTRIBUTES)
            lines.append(f"M 100644 {object_id(ATTRIBUTES)} .gitattributes\n")
            for name, size in sorted(large.items()):
                blobs.append(POINTER.format(oid=name, size=size).encode("ascii"))
                lines.append(f"M 100644 {object_id(blobs[-1])} large/{name[:2]}/{name}\n")
            with self._import(label) as pipe:
                for blob in blobs:
                    pipe.write(b"blob\ndata %d\n%b\n" % (len(blob), blob))
                pipe.write("".join((*lines, "\ndone\n")).encode("ascii"))
            commit = read_regular(self.path / self._ref(label)).decode("ascii").strip()
        self._cache.put(oid, manifest, depth)
        if latest:
            replace_file(self.path / "latest", f"{oid} {commit}".encode("ascii"))
        tidy(self)
        return oid

    def _labelled(self, label: str, written: bytes, parent: str) -> str:
        """Keep a manifest in a commit on `parent` ("": on none) under `label`, as git would. Durable on return; returns
        the commit's id. A process of git for it takes longer than all else that a small folder's snapshot does."""
        oid = object_id(written)
        tree = b"100644 manifest\0" + bytes.fromhex(oid)
        above = f"parent {parent}\n" if parent else ""
        who = "GoEx <goex@localhost> 0 +0000"
        said = f"tree {object_id(tree, b'tree')}\n{above}author {who}\ncommitter {who}\n\n".encode("ascii")
        commit = object_id(said, b"commit")
        with PackWriter(self._pack_folder) as pack:
            pack.add(oid, written)
            pack.add(object_id(tree, b"tree"), tree, TREE)
            pack.add(commit, said, COMMIT)
            pack.finish()
        ref = self.path / self._ref(label)
        ref.parent.mkdir(parents=True, exist_ok=True)
        replace_file(ref, f"{commit}\n".encode("ascii"), durable=True)
        for folder in ref.parents:
            if folder.is_relative_to(self.path):
                fsync(folder)
        return commit

    @contextmanager
    def _import(self, label: str) -> Iterator[IO[bytes]]:
        before = set(self._pack_folder.iterdir())
        process = self.start("fast-import", "--done", "--quiet", "--force", "--depth=0", "--big-file-threshold=8m")
        pipe = stream_of(process.stdin)
        try:
            try:
                yield pipe
                pipe.close()
            except BrokenPipeError:  # git has ended early, and says why
                process.wait()
            refused = stream_of(process.stderr).read()
            if process.wait() != 0:
                raise self.failed("fast-import", refused)
        except BaseException:
            ended(process)
            self.clean()
            raise
        finally:
            ended(process)
        for made in set(self._pack_folder.iterdir()) - before:
            fsync(made)
        ref = self.path / self._ref(label)
        for folder in (self._pack_folder, *(above for above in ref.parents if above.is_relative_to(self.path))):
            fsync(folder)

    # ---- reading ----

    def load(self, oid: str) -> Manifest:
        """A manifest by its object id. Raises Unavailable when it is missing or isn't what was written."""
        return self._loaded(oid)[0]

    def _loaded(self, oid: str) -> tuple[Manifest, int]:
        """A manifest, and how many it is made of."""
        found = self._cache.get(oid)
        if found is not None and self.path.is_dir():
            return found
        chain: list[tuple[str, manifests.Written]] = []
        base = None
        with self.contents() as copy:
            while base is None:
                parts: list[bytes] = []
                copy(oid, parts.append)
                chain.append((oid, manifests.decode(b"".join(parts))))
                oid = chain[-1][1].base
                if not oid:
                    break
                if len(chain) > _DEEPEST + 1:
                    raise Unavailable("A snapshot's manifest can't be read: it goes back too far.")
                base = self._cache.get(oid)
        made = None if base is None else base[0]
        for name, written in reversed(chain):
            made = written.on(made)
            self._cache.put(name, made, written.depth)
        if made is None:
            raise Unavailable("A snapshot's manifest can't be read.")
        return made, chain[0][1].depth

    @contextmanager
    def contents(self) -> Iterator[Callable[[str, Callable[[bytes], object]], None]]:
        """Gives `copy(oid, write)`, which hands a content on piece by piece and raises Unavailable when it is
        missing or, after the last piece, when it isn't the one of that hash."""
        if not self.path.is_dir():
            raise Unavailable("The snapshot isn't there any more.")
        process = self.start("cat-file", "--batch")
        asking, answering = stream_of(process.stdin), stream_of(process.stdout)

        def copy(oid: str, write: Callable[[bytes], object]) -> None:
            if oid[:1] == LARGE:
                self.lfs.copy(oid, write)
                return
            asking.write(oid.encode("ascii") + b"\n")
            asking.flush()
            head = answering.readline().split()
            if len(head) != 3 or head[1] != b"blob":
                raise Unavailable(f"The snapshot lacks the content {oid[:16]}….")
            left = int(head[2])
            digest = hasher(oid, left)
            while left > 0:
                chunk = answering.read(min(CHUNK, left))
                if not chunk:
                    raise Unavailable("git ended while a snapshot was being read.")
                digest.update(chunk)
                write(chunk)
                left -= len(chunk)
            answering.read(1)
            if not named(oid, digest):
                raise Unavailable(f"The snapshot's content {oid[:16]}… is damaged.")

        try:
            yield copy
        except BrokenPipeError as error:
            raise Unavailable("git ended while a snapshot was being read.") from error
        finally:
            ended(process)

    def clone(self, oid: str, file: int) -> bool:
        """Make `file` share the blocks of that content. False where it can't. Raises Unavailable as `contents`."""
        return oid[:1] == LARGE and self.lfs.clone(oid, file)

    def missing(self, oids: set[str]) -> set[str]:
        """Those of `oids` that aren't stored."""
        if not oids:
            return set()
        if not self.path.is_dir():
            return set(oids)
        gone = {oid for oid in oids if oid[:1] == LARGE and not self.lfs.there(oid)}
        oids = {oid for oid in oids if oid[:1] != LARGE}
        if not oids:
            return gone
        asked = "".join(f"{oid}\n" for oid in sorted(oids)).encode("ascii")
        answer = self.run("cat-file", "--batch-check=%(objectname) %(objecttype)", data=asked)
        there = {line.split()[0] for line in answer.decode().splitlines() if line.endswith(" blob")}
        return gone | (oids - there)

    # ---- upkeep ----

    def labels(self) -> tuple[str, ...]:
        """The labels that are kept."""
        if not self.path.is_dir():
            return ()
        return tuple(self.run("for-each-ref", "--format=%(refname)").decode().split())

    def latest(self) -> Manifest | None:
        """The manifest that was kept last, for its hashes; None when there is none that can be used."""
        noted = self._latest()
        with suppress(OSError, GoexError):
            return None if noted is None else self.load(noted[0])
        return None

    def remembered(self) -> Manifest | None:
        """`latest` where this process has it at hand; reads no manifest, so it may be asked for without the lock."""
        noted = self._latest()
        found = None if noted is None else self._cache.get(noted[0])
        return None if found is None else found[0]

    def _latest(self) -> tuple[str, str] | None:
        """The manifest that was kept last, and its commit."""
        with suppress(OSError, ValueError):
            oid, commit = read_regular(self.path / "latest").decode("ascii").split()
            return oid, commit
        return None

    def drop(self, action_id: str) -> None:
        """Forget an action's states; their contents go with the next collection. Idempotent."""
        if not self.path.is_dir():
            return
        self.clean()
        for state in ("before", "after"):
            self.run("update-ref", "-d", f"refs/goex/{plain(action_id)}/{state}")
        self._settle_latest()

    def reclaimable(self, actions: Set[str], contents: Set[str]) -> int:
        """How many bytes would be free at least if the states of these actions were forgotten and collected, but for
        these contents."""
        if not self.path.is_dir():
            return 0
        gone = {self._ref(f"{action}/{state}") for action in actions for state in ("before", "after")}
        labels = self.run("for-each-ref", "--format=%(objectname) %(refname)").decode("ascii").splitlines()
        commits = [oid for oid, ref in (line.split() for line in labels) if ref not in gone]
        return reclaimable(self, commits, contents)

    def _settle_latest(self) -> None:
        """What was kept last must be a label's: the contents of anything else may be collected, and would be missing
        from a snapshot that goes by it."""
        noted = self._latest()
        labels = [line.split() for line in self.run("for-each-ref", "--format=%(objectname) %(refname)").splitlines()]
        if noted is None or noted[1].encode("ascii") in {commit for commit, _ in labels}:
            return
        (self.path / "latest").unlink(missing_ok=True)
        loose = [(path.stat().st_mtime_ns, commit) for commit, ref in labels if (path := self._at(ref)).is_file()]
        if loose:
            commit = max(loose)[1].decode("ascii")
            oid = self.run("rev-parse", f"{commit}:manifest").decode("ascii").strip()
            replace_file(self.path / "latest", f"{oid} {commit}".encode("ascii"))

    def _at(self, ref: bytes) -> Path:
        return self.path / os.fsdecode(ref)

    def collect(self) -> None:
        """Delete what no label needs; the whole repository when there is none."""
        if self.path.is_dir():
            self.clean()
            if self.labels():
                collect(self)
            else:
                self.destroy()

    def clean(self) -> None:
        """Remove what a process that was killed has left, if there is a repository. Raises as `files`."""
        for file in self.files() if os.path.lexists(self.path) else ():
            if _LEFT.fullmatch(file):
                (self.path / file).unlink(missing_ok=True)

    def destroy(self) -> None:
        """Remove the repository. Idempotent; a crash half way leaves nothing that looks like one."""
        trash = self.path.with_name(f"{self.path.name}.tmp-gone")
        shutil.rmtree(trash, ignore_errors=True)
        if self.path.is_dir():
            self.path.rename(trash)
            shutil.rmtree(trash, ignore_errors=True)

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
                remove_path(left)
            new = self.path.with_name(f"{self.path.name}.tmp-new")
            new.mkdir(mode=0o700)
            self.run("init", "--quiet", "--bare", "--object-format=sha256", "--template=", str(new), here=False)
            (new / "large").write_text(str(self._large), "ascii")
            with (new / "config").open("a", encoding="ascii") as file:
                file.write("[extensions]\n\tpreciousObjects = true\n")  # git itself deletes nothing
            new.rename(self.path)
            fsync(self.path.parent)
        self.check()
        self.clean()


def plain(action_id: str) -> str:
    """An action's id as a file name."""
    return action_id if _PLAIN.fullmatch(action_id) else hashlib.sha256(action_id.encode()).hexdigest()


def make_private(folder: Path) -> None:
    """A folder that only its owner can enter. Raises Unavailable where something else is in its place."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise Unavailable(f"{folder} is a link, or isn't yours, so it isn't used.", next_step="Move it away.")
    if found.st_mode & 0o077:
        folder.chmod(0o700)
