"""Documents in many files: those of a folder or of a zip archive, joined into one where they refer to each other.

Rules: the person names the folder; nothing outside of it is read, and nothing by a link. What is read is bounded in
files and bytes, unpacked as much as packed, and parsed in the reader's process alone. A reference to a file that isn't
there stays what it was, and is refused as any that leads outside of a document.
"""

from __future__ import annotations

import hashlib
import io
import os
import posixpath
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mapper.importing.document_files import MAX_DOCUMENT, Broken, Source
from mapper.importing.import_report import BadPart
from mapper.importing.trees import MAX_NODES, Tree, read

MAX_FILES = 3000
MAX_DEPTH = 12  # folders in folders
PARTS = "x-goex-files"  # where in the joined document the other files are, by their names
_ENDINGS = (".json", ".yaml", ".yml")
_BEGINS = re.compile(r'^\s*(?:\{\s*)?["\']?(?:openapi|swagger)["\']?\s*:', re.MULTILINE)
_ROOTS = ("openapi", "swagger", "index", "root", "main", "api")


def is_bundle(path: Path) -> bool:
    """Whether what a person names is a folder or an archive."""
    return path.is_dir() or path.suffix.lower() == ".zip"


def source(path: Path) -> Source:
    """A folder's documents, or an archive as it is. Raises BadPart."""
    if not path.is_dir():
        data = Source.data(path, follow=True)
        return Source(path.name, "", hashlib.sha256(data).hexdigest(), files={}, packed=data)
    found: dict[str, str] = {}
    left = MAX_DOCUMENT
    for name, folder in _listed(path):
        if len(found) == MAX_FILES:
            raise BadPart(f"holds more than {MAX_FILES:,} documents")
        data = Source.data(Path(posixpath.basename(name)), within=folder)
        left -= len(data)
        if left < 0:
            raise BadPart(f"holds documents of more than {MAX_DOCUMENT:,} bytes")
        found[name] = _text(name, data)
    said = "\0".join(f"{name}\0{text}" for name, text in sorted(found.items()))
    return Source(path.resolve().name, "", hashlib.sha256(said.encode()).hexdigest(), files=found)


def joined(given: Source) -> tuple[Tree, str]:
    """The one document that a folder or an archive holds, all others that it refers to within it, and its file's name.

    Raises BadPart, Broken.
    """
    files = _unpacked(given.packed) if given.packed else given.files or {}
    name = _root(files)
    left = MAX_NODES
    todo, trees = [name], dict[str, Tree]()
    while todo:
        here = todo.pop()
        try:
            tree = trees[here] = read(Source(here, files[here], ""))
        except Broken as bad:
            raise Broken(f"{here[:200]}: {bad.what}", bad.line) from bad
        left -= _refer(tree.value, here, name, files, left)
        if left < 0:
            raise BadPart(f"unfolds to more than {MAX_NODES:,} values")
        todo += [each for each in _referred(tree.value, files) if each not in trees and each not in todo]
    whole = trees.pop(name)
    if trees and isinstance(whole.value, dict):
        whole.value[PARTS] = {each: tree.value for each, tree in trees.items()}
    whole.parts = trees
    return whole, name


def _listed(path: Path) -> Iterator[tuple[str, int]]:
    """The documents in a folder, by their names below it, each with a descriptor of the folder that it is in."""
    for at, folders, names, descriptor in os.fwalk(path):
        below = Path(at).relative_to(path)
        folders[:] = (
            sorted(each for each in folders if not each.startswith(".")) if len(below.parts) < MAX_DEPTH else []
        )
        for each in sorted(names):
            if each.endswith(_ENDINGS) and not each.startswith("."):
                status = os.stat(each, dir_fd=descriptor, follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    yield (below / each).as_posix(), descriptor


def _unpacked(data: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    left = MAX_DOCUMENT
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if len(members) > 10 * MAX_FILES:
                raise BadPart(f"holds more than {10 * MAX_FILES:,} files")
            for member in members:
                name = member.filename
                kind = stat.S_IFMT(member.external_attr >> 16)
                if not name.endswith(_ENDINGS) or kind not in (0, stat.S_IFREG) or not _is_within(name):
                    continue
                if len(found) >= MAX_FILES:
                    raise BadPart(f"holds more than {MAX_FILES:,} documents")
                if name in found:
                    raise BadPart(f"holds {name[:80]!r} twice")
                with archive.open(member) as file:
                    text = file.read(left + 1)
                left -= len(text)
                if left < 0:
                    raise BadPart(f"holds documents of more than {MAX_DOCUMENT:,} bytes")
                found[name] = _text(name, text)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise BadPart(f"isn't an archive that can be read: {str(error)[:80]}") from error
    return found


def _is_within(name: str) -> bool:
    return not name.startswith("/") and "\\" not in name and ".." not in name.split("/")


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadPart(f"{name[:80]!r} isn't UTF-8 text: byte {error.start}") from error


def _root(files: Mapping[str, str]) -> str:
    """The name of the file that is the document. Raises BadPart where that isn't sure."""
    found = [name for name, text in files.items() if _BEGINS.search(text[:20_000])]
    least = min((name.count("/") for name in found), default=0)
    found = sorted(name for name in found if name.count("/") == least)
    if len(found) > 1:
        named = [name for name in found if posixpath.basename(name).partition(".")[0].lower() in _ROOTS]
        found = named if len(named) == 1 else found
    if len(found) == 1:
        return found[0]
    if not found:
        raise BadPart("holds no OpenAPI document: a .json or .yaml file that says openapi or swagger")
    names = ", ".join(found[:5]) + (", …" if len(found) > 5 else "")
    raise BadPart(f"holds {len(found)} documents ({names}); name a folder with one of them, or the file itself")


def _containers(value: Any, most: int) -> Iterator[Any]:
    """Every object and list of a document, each once. Ends after `most`."""
    seen: set[int] = set()
    todo = [value]
    while todo and len(seen) <= most:
        one = todo.pop()
        if id(one) in seen or not isinstance(one, dict | list):
            continue
        seen.add(id(one))
        yield one
        todo.extend(one.values() if isinstance(one, dict) else one)


def _refer(value: Any, here: str, root: str, files: Mapping[str, str], most: int) -> int:
    """Make the references in the file `here` lead to places of the joined document. Returns how much was looked at."""
    count = 0
    for one in _containers(value, most):
        count += 1
        reference = one.get("$ref") if isinstance(one, dict) else None
        if isinstance(reference, str):
            one["$ref"] = _pointer(reference, here, root, files)
    return count


def _pointer(reference: str, here: str, root: str, files: Mapping[str, str]) -> str:
    file, _, inner = reference.partition("#")
    name = posixpath.normpath(posixpath.join(posixpath.dirname(here), unquote(file))) if file else here
    if name not in files or file.startswith("/") or "\\" in file or "://" in file:
        return reference
    if name == root:
        return f"#{inner}"
    spelled = name.replace("~", "~0").replace("/", "~1").replace("%", "%25")
    return f"#/{PARTS}/{spelled}{inner if inner.startswith('/') else ''}"


def _referred(value: Any, files: Mapping[str, str]) -> Iterator[str]:
    before = f"#/{PARTS}/"
    for one in _containers(value, MAX_NODES):
        reference = one.get("$ref") if isinstance(one, dict) else None
        if isinstance(reference, str) and reference.startswith(before):
            name = unquote(reference.removeprefix(before).partition("/")[0]).replace("~1", "/").replace("~0", "~")
            if name in files:
                yield name
