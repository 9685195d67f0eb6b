"""Looking for a value in every form that it may lie about in, wherever bytes can be.

Each search takes a place (bytes, a folder, a process, a container, an image) and says in which forms it found the
value. A search proves something only when it finds a copy where it looks: so a `Planted` value holds a token for each
form, and a test lets the search find all of them before it looks for the real one.
"""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import sqlite3
import stat
import subprocess
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

_CHUNK = 1 << 22
_COMPRESSED = re.compile(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]")
_MOST_INFLATED = 1 << 24
FORMS = ("plain", "url", "hex", "HEX", "base64", "base64url", "utf-16", "backwards")


def token(kind: str = "xoxb", size: int = 9) -> str:
    """A random value whose percent-encoding, hex and base64 all differ from it. `size`: bytes in each half."""
    return f"{kind}-{secrets.token_hex(size)}/+{secrets.token_hex(size)}="


def forms(value: str) -> dict[str, tuple[bytes, ...]]:
    """The bytes to look for, by form. Of base64 the middle, in each of its three alignments."""
    raw = value.encode()
    wrapped = [base64.b64encode(b"\0" * shift + raw)[4 if shift else 0 : -4] for shift in range(3)]
    return {
        "plain": (raw, json.dumps(value).encode()[1:-1].replace(b"/", b"\\/")),
        "url": (quote(value, safe="").encode(), quote(value, safe="").lower().encode()),
        "hex": (raw.hex().encode(),),
        "HEX": (raw.hex().upper().encode(),),
        "base64": tuple(wrapped),
        "base64url": tuple(part.replace(b"+", b"-").replace(b"/", b"_") for part in wrapped),
        "utf-16": (value.encode("utf-16-le"),),
        "backwards": (raw[::-1],),
    }


def written(value: str) -> dict[str, str]:
    """`value` as somebody would write it in each form (text only)."""
    raw = value.encode()
    return {
        "plain": value,
        "url": quote(value, safe=""),
        "hex": raw.hex(),
        "HEX": raw.hex().upper(),
        "base64": base64.b64encode(b"Bearer " + raw).decode(),
        "base64url": base64.urlsafe_b64encode(b"x" + raw).decode(),
        "backwards": value[::-1],
    }


@dataclass(frozen=True)
class Planted:
    """Short tokens of no worth, one for each form; `text` holds all of them, each in its form."""

    tokens: Mapping[str, str] = field(default_factory=lambda: {form: token("b", 3) for form in written("")})

    @property
    def text(self) -> str:
        return " ".join(written(value)[form] for form, value in self.tokens.items())

    def missed(self, found: Mapping[str, Iterable[str]]) -> list[str]:
        """The forms that a search for each of the tokens didn't find. `found`: token to the forms it was found in."""
        return [form for form, value in self.tokens.items() if form not in found[value]]


Found = dict[str, set[str]]


class Hunt:
    """Several values at once, each in every form, and each token of bait in its own, in one pass over what is shown."""

    def __init__(self, *values: str, baits: Iterable[Planted] = ()) -> None:
        sought: dict[str, tuple[str, ...]] = dict.fromkeys(values, FORMS)
        sought |= {value: (form,) for bait in baits for form, value in bait.tokens.items()}
        self.values = tuple(sought)
        self._needles = [
            (value, form, needle) for value, named in sought.items() for form in named for needle in forms(value)[form]
        ]
        self._longest = max(len(needle) for _, _, needle in self._needles)

    def nothing(self) -> Found:
        return {value: set() for value in self.values}

    def pieces(self, *pieces: bytes) -> Found:
        """In each piece, and in whatever is deflated or gzipped within it."""
        found = self.nothing()
        for piece in pieces:
            for data in (piece, *_inflated(piece)):
                for value, form, needle in self._needles:
                    if needle in data:
                        found[value].add(form)
        return found

    def chunks(self, chunks: Iterable[bytes]) -> Found:
        """In a long stream, also across the borders of its chunks."""
        found, tail = self.nothing(), b""
        for chunk in chunks:
            data = tail + chunk
            for value, form, needle in self._needles:
                if form not in found[value] and needle in data:
                    found[value].add(form)
            tail = data[-self._longest :]
        return found

    def tree(self, top: Path, *, within: bool = True) -> Found:
        """In the names and the bytes of everything below a folder; links by where they lead."""
        return self.merge(*(self._entry(path, within) for path in _below(top)))

    def database(self, path: Path) -> Found:
        """In a SQLite file as bytes, and in every value of every table."""
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as opened:
            opened.text_factory = bytes
            tables = [name.decode() for (name,) in opened.execute("select name from sqlite_master where type='table'")]
            values = [
                value if isinstance(value, bytes) else str(value).encode()
                for table in tables
                for row in opened.execute(f'select * from "{table}"')
                for value in row
            ]
        opened.close()
        assert values, f"{path} holds nothing, so nothing could be found in it"
        return self.pieces(*values, path.read_bytes())

    def git(self, top: Path) -> Found:
        """In every object of every git repository below a folder."""
        found = self.nothing()
        for head in top.rglob("HEAD"):
            command = ["git", f"--git-dir={head.parent}", "cat-file", "--batch-all-objects", "--batch"]
            done = subprocess.run(command, capture_output=True, check=False, env={"PATH": os.environ["PATH"]})
            found = self.merge(found, self.pieces(done.stdout))
        return found

    def merge(self, *found: Found) -> Found:
        return {value: set().union(*(one[value] for one in found)) for value in self.values}

    def _entry(self, path: Path, within: bool) -> Found:
        name = os.fsencode(path.name)
        with suppress(OSError):
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                return self.pieces(name, os.fsencode(path.readlink()))
            if stat.S_ISREG(mode) and within:
                return self.merge(self.pieces(name), self.pieces(path.read_bytes()))
        return self.pieces(name)


def _below(top: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(top):
        yield from (Path(folder, name) for name in (*folders, *files))


def _inflated(data: bytes) -> Iterator[bytes]:
    if len(data) > _MOST_INFLATED:
        return
    whole = memoryview(data)  # a copy for each place that looks like a beginning would be gigabytes
    for match in _COMPRESSED.finditer(data):
        with suppress(zlib.error):
            made = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32).decompress(whole[match.start() :], _MOST_INFLATED)
            if made:
                yield made


# ---- processes, as the host's root sees them


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
                )
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def told(pid: int, *files: str) -> bytes:
    """What /proc says about a process in those files, and where its descriptors lead."""
    said = b""
    for name in files or ("environ", "cmdline", "mountinfo", "comm", "status", "maps", "cgroup"):
        with suppress(OSError):
            said += Path(f"/proc/{pid}/{name}").read_bytes() + b"\n"
    for link in ("cwd", "root", "exe"):
        with suppress(OSError):
            said += os.fsencode(Path(f"/proc/{pid}/{link}").readlink()) + b"\n"
    with suppress(OSError):
        for handle in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                said += os.fsencode(handle.readlink()) + b"\n"
    return said


def memory(pid: int) -> Iterator[bytes]:
    """All of a process's memory that can be read, a mapping at a time."""
    mappings = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as file:
        for line in mappings:
            area, rights, _, _, _, *name = line.split(maxsplit=5)
            if not rights.startswith("r") or (name and name[0] in ("[vvar]", "[vsyscall]", "[vvar_vclock]")):
                continue
            start, end = (int(part, 16) for part in area.split("-"))
            while start < end:
                try:
                    file.seek(start)
                    data = file.read(min(_CHUNK, end - start))
                except (OSError, OverflowError, ValueError):
                    break
                if not data:
                    break
                yield data
                start += len(data)
