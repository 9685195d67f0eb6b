"""Putting an MCP server's tools into the catalog, as the service that the person named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mapper.catalog import Catalog
from mapper.importing.document_files import Source
from mapper.importing.import_report import BadPart, Problem, Report
from mapper.importing.install import Installer, Nothing
from mapper.importing.mcp_tools import PROVIDER
from mapper.importing.reader_process import Apart
from mapper.store import service_names
from mapper.store.catalog_reader import Store
from mapper.store.import_rows import Document
from policies.errors import Conflict, InvalidInput
from policies.services import OAuth, Placement


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
    path: Path,
    source: Source,
    name: str,
    version: str,
    about: str,
    base_url: str,
    placement: Placement,
    oauth: OAuth | None = None,
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
                oauth=oauth,
                preferred=True,
            )
        )
        installer.problems.extend(problems)
        return installer.finish(whole=False)


def announce(
    path: Path, name: str, version: str, about: str, base_url: str, placement: Placement, oauth: OAuth | None
) -> None:
    """Put a server into the catalog whose tools aren't known yet: its account can be connected, and nothing called."""
    document = Document(
        provider=PROVIDER,
        provider_name=name,
        version=version,
        title=name,
        description=about,
        base_url=base_url,
        file=name,
        sha256="",
        scopes=(),
        methods=(),
        placement=placement,
        preferred=True,
        oauth=oauth,
    )
    with Installer(path, PROVIDER) as installer:
        installer.put(document)
        installer.finish(whole=False)
