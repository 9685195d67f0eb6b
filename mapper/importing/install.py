"""Imports as a whole: documents in, a report out, the search index made anew.

Rules: one import is one transaction, so that whoever stops it leaves the catalog as it was; a document that can't be
read leaves its earlier self in place; nothing that comes with GoEx is ever replaced.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mapper.catalog import Catalog
from mapper.importing import google
from mapper.importing.document_files import Source
from mapper.importing.import_report import BadPart, Imported, Problem, Progress, Report, Skipped
from mapper.importing.reader_process import Apart
from mapper.store.catalog_writer import Writer
from mapper.store.import_rows import Document
from policies.errors import InvalidInput

MAX_FILES = 5000


class Nothing(InvalidInput):
    """There was nothing that could be imported; `details` say what is wrong with each document."""

    code = "nothing-imported"

    def __init__(self, message: str, problems: Sequence[Problem], *, next_step: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.details = tuple(str(problem) for problem in problems)


def import_google(
    path: Path, folder: Path | None = None, progress: Progress = lambda *_: None, *, index: bool = True,
    alone: bool = False,
) -> Report:  # fmt: skip
    """Import Google's documents into the catalog at `path`: those of the installed package, or of `folder`.

    `index` False leaves the search index as it was, for whoever makes it anew afterwards. `alone`: into a catalog that
    is read without what comes with GoEx (`Catalog.open`), so that no name of those is taken.

    Raises Unavailable without the package, InvalidInput for a folder that isn't one, Nothing when no document could be
    read, StoreUnreadable when the catalog can't be written.
    """
    place = folder if folder is not None else google.package_folder()
    files = _files(place)
    problems: list[Problem] = []
    preferred: dict[tuple[str, str], bool] = {}
    follow = folder is None  # an installer may link its files; in a stranger's folder a link may lead anywhere
    if (place / "index.json").exists():
        try:
            source = Source.read(place / "index.json", follow=follow)
            try:
                preferred = google.read_index(source)
            except BadPart as bad:
                problems.append(source.problem(bad))
        except BadPart as bad:
            problems.append(Problem(file="index.json", line=0, where="", what=bad.what))
    with Installer(path, google.PROVIDER, alone=alone) as installer, Apart() as apart:
        seen: dict[tuple[str, str], tuple[str, str]] = {}
        for number, file in enumerate(files):
            progress(number, len(files), file.name)
            document = _google(installer, apart, file, preferred, seen, follow=follow)
            if document is not None:
                installer.put(document)
        progress(len(files), len(files), "")
        installer.problems[:0] = problems
        return installer.finish(whole=folder is None, progress=progress, index=index)


class Installer:
    """What all importers share: the transaction, the report, the index afterwards. Use it in a `with`."""

    def __init__(self, path: Path, provider: str, *, alone: bool = False) -> None:
        self.problems: list[Problem] = []
        self.skipped: list[Skipped] = []
        self._began = time.monotonic()
        self._provider = provider
        self._path = path
        self._put: dict[tuple[str, str], Imported] = {}
        self._writer = Writer(path, taken=() if alone else Catalog.bundled().services)
        self._before = self._writer.versions_of(provider)

    def __enter__(self) -> Installer:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.__exit__(None, None, None)

    def put(self, document: Document, progress: Progress = lambda *_: None) -> None:
        """Take in a document; one that can't be becomes a problem."""
        earlier = self._writer.base_url(document)
        try:
            left_out = self._writer.put(document, lambda count: progress(count, len(document.methods), document.title))
        except InvalidInput as error:
            self.problems.append(Problem(file=document.file, line=0, where="", what=error.message))
            return
        self.problems += [
            Problem(file=document.file, line=0, where=name, what=f"left out, since it couldn't be read back: {why}")
            for name, why in left_out
        ]
        key = (document.provider_name, document.version)
        self._put[key] = Imported(
            file=document.file,
            service="",
            version=document.version,
            main=False,
            methods=len(document.methods) - len(left_out),
            scopes=sum(not scope.virtual for scope in document.scopes),
            moved=earlier if earlier != document.base_url else "",
        )

    def drop(self, service: str) -> None:
        """Take out a service of this provider, for one that comes in its place."""
        self._writer.remove(service)

    def finish(self, *, whole: bool, progress: Progress = lambda *_: None, index: bool = True) -> Report:
        """Commit, make the search index, and report. `whole`: the source holds all that the provider has.

        Raises Nothing when no document was taken.
        """
        if not self._put:
            raise Nothing(
                "No document could be imported.", self.problems, next_step="Mend what is said below, then try again."
            )
        named = self._writer.name_services()
        imported = []
        for (api, version), one in self._put.items():
            name, main = named[self._provider, api, version]
            imported.append(replace(one, service=name, main=main))
        left = self._writer.services_of_versions(self._provider, self._before - self._put.keys()) if whole else ()
        self._writer.commit()
        if index:
            rebuild(self._path, progress)
        return Report(
            imported=tuple(imported),
            skipped=tuple(self.skipped),
            problems=tuple(self.problems),
            left=left,
            seconds=time.monotonic() - self._began,
            kept=tuple(self._writer.kept),
        )


def remove(path: Path, name: str, progress: Progress = lambda *_: None, *, index: bool = True) -> tuple[str, ...]:
    """Remove an imported service, or all of a provider ("google"). Returns the names that are gone.

    Raises UnknownName, InvalidInput for what comes with GoEx, StoreUnreadable.
    """
    own = Catalog.bundled()
    if name in own.services:
        raise InvalidInput(f"{name} comes with GoEx, so it can't be removed.", next_step="Imported ones can.")
    if not path.exists():
        own.service(name)  # raises, with what is meant perhaps
    with Writer(path, taken=own.services) as writer:
        names = writer.services_of(name) or (name,)
        for each in names:
            if not writer.remove(each):
                Catalog.open(path).service(name)  # raises, with what is meant perhaps
        writer.commit()
    if index:
        rebuild(path, progress)
    return names


def rebuild(path: Path, progress: Progress = lambda *_: None) -> None:
    """Make the search index of the catalog at `path` anew."""
    from mapper.ranking import index_tables  # numpy comes with it

    index_tables.rebuild(path, progress)


def _google(
    installer: Installer,
    apart: Apart,
    file: Path,
    preferred: dict[tuple[str, str], bool],
    seen: dict[tuple[str, str], tuple[str, str]],
    *,
    follow: bool,
) -> Document | None:
    """The document in a file; None where there is none, which the report then says."""
    try:
        source = Source.read(file, follow=follow)
    except BadPart as bad:
        installer.problems.append(Problem(file=file.name, line=0, where="", what=bad.what))
        return None
    try:
        key, document, problems = apart.read("discovery", source, preferred, set(seen))
        if key in seen:
            twin, content = seen[key]
            if content != source.sha256:
                raise BadPart(f"{twin} is {key[0]} {key[1]} already, and says something else", "version")
            installer.skipped.append(Skipped(file=file.name, why=f"the same document as {twin}"))
            return None
    except BadPart as bad:
        installer.problems.append(source.problem(bad))
        return None
    installer.problems += problems
    if document is not None:
        seen[key] = file.name, source.sha256
    made: Document | None = document
    return made


def _files(folder: Path) -> list[Path]:
    try:
        found = sorted(file for file in folder.iterdir() if file.suffix == ".json" and file.name != "index.json")
    except OSError as error:
        raise InvalidInput(
            f"{folder} can't be read as a folder: {error.strerror}.", next_step="Name a folder of discovery documents."
        ) from error
    if not found:
        raise InvalidInput(f"{folder} holds no .json file.", next_step="Name a folder of discovery documents.")
    if len(found) > MAX_FILES:
        raise InvalidInput(f"{folder} holds {len(found)} files; at most {MAX_FILES} are imported at once.")
    return found
