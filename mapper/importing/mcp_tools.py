"""The tools of an MCP server as methods of a service: read as function sets are, and called by their own names.

Rules: each tool is a permission of its own. What a tool says of itself makes nothing harmless: whether it only reads is
taken from nobody's annotation, so that each is asked for as a change. A name that a method can't have, or that two
tools have, is left out.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mapper.catalog import Catalog
from mapper.importing.document_files import Source
from mapper.importing.functions import Found, read_functions
from mapper.importing.import_report import BadPart, Problem, Report
from mapper.importing.install import Installer, Nothing
from mapper.importing.reader_process import Apart
from mapper.store import service_names
from mapper.store.catalog_reader import Store
from mapper.store.import_rows import Document, DocumentScope
from policies.errors import Conflict, InvalidInput
from policies.services import Placement, Risk

PROVIDER = "mcp"


def read_tools(found: list[Found], name: str, source: Source) -> tuple[Document, list[Problem]]:
    """The tools as the service `name`, and what couldn't be taken. Raises BadPart when nothing could."""
    document, problems = read_functions(found, name, source)
    methods = tuple(
        replace(
            method,
            http="POST",
            path=f"/{method.name}",
            risk=max(method.risk, Risk.WRITE),
            scopes=(method.name,),
            unsupported="",
        )
        for method in document.methods
        if method.origin_id == method.name
    )
    if not methods:
        raise BadPart("has no tool that can be called")
    scopes = tuple(
        DocumentScope(name=method.name, description=f"Use the tool {method.name}.", virtual=True) for method in methods
    )
    return replace(document, provider=PROVIDER, methods=methods, scopes=scopes), problems


def check_name(path: Path, name: str, *, replace_own: bool) -> None:
    """Raise Conflict for a service's name that is taken: by one of ours, by an imported one, or, without `replace_own`,
    by a server of that name."""
    taken = {one.casefold() for one in (*Catalog.bundled().services, *service_names.RESERVED)}
    others = {fact.name.casefold(): fact.provider for fact in Store(path).facts()}
    provider = others.get(name)
    if name in taken or (provider is not None and (provider != PROVIDER or not replace_own)):
        raise Conflict(
            f"The name {name} is taken.",
            next_step="Choose another, or replace the server of that name with --replace."
            if provider == PROVIDER
            else "Choose another name.",
        )


def install(
    path: Path, source: Source, name: str, version: str, about: str, base_url: str, placement: Placement
) -> Report:
    """Put the tools into the catalog at `path` as the service `name`, in the place of those that it had."""
    with Installer(path, PROVIDER) as installer:
        try:
            with Apart() as apart:
                _, read, problems = apart.read(PROVIDER, source, name)
        except BadPart as bad:
            problem = Problem(file=name, line=0, where=".".join(bad.keys), what=bad.what)
            raise Nothing("No tool could be taken.", [problem], next_step="See what the server says.") from bad
        if read is None:
            raise InvalidInput("The server has no tool that can be called.")
        for fact in Store(path).facts():
            if (fact.provider, fact.name) == (PROVIDER, name):
                installer.drop(name)
        installer.put(
            replace(
                read,
                provider_name=name,
                version=version,
                title=name,
                description=about,
                base_url=base_url,
                placement=placement,
                preferred=True,
            )
        )
        installer.problems.extend(problems)
        return installer.finish(whole=False)
