"""Imports of one file that a person names: an OpenAPI document, a GraphQL schema, or a set of functions.

Rules: the person may choose the service's name, and a name that is somebody else's is never taken. Importing a service
again replaces it only where it was imported in the same way and its address is the same: a document that says the name
of another one, and leads elsewhere, is refused, so that no account's permissions come to mean something else.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from mapper.catalog import Catalog
from mapper.importing import bundles, functions, openapi
from mapper.importing.document_files import Broken, Source
from mapper.importing.import_report import BadPart, Problem, Progress, Report
from mapper.importing.install import Installer, Nothing
from mapper.importing.reader_process import Apart
from mapper.importing.servers import wrong_with
from mapper.store import service_names
from mapper.store.catalog_reader import Store
from mapper.store.import_rows import Document, ServiceFacts
from policies.accounts import Origin
from policies.errors import Conflict, InvalidInput

_FILLERS = frozenset({"api", "apis", "rest", "the", "openapi", "swagger", "http", "web", "service", "specification"})


def import_openapi(
    path: Path, file: Path, name: str = "", progress: Progress = lambda *_: None, *, index: bool = True
) -> Report:
    """Import an OpenAPI document into the catalog at `path`, as the service `name` or one called after its title.
    `file` may also be a folder or a zip archive, whose documents refer to each other.

    `index` False leaves the search index as it was, for whoever makes it anew afterwards.

    Raises Nothing when it can't be read, InvalidInput for a name that can't be had, Conflict where a service of that
    name is at another address, StoreUnreadable.
    """

    return _install(path, _source(file, many=True), openapi.PROVIDER, name, progress, index=index)


def import_functions(path: Path, file: Path, name: str = "", progress: Progress = lambda *_: None) -> Report:
    """Import the functions of a file into the catalog at `path`, as the service `name` or one called after the file.

    Raises as `import_openapi`.
    """

    return _install(path, _source(file), functions.PROVIDER, name, progress)


def import_graphql(
    path: Path, file: Path, endpoint: str, name: str = "", progress: Progress = lambda *_: None
) -> Report:
    """Import a GraphQL schema into the catalog at `path`, as the service `name` or one called after the `endpoint`,
    which is where its documents are sent.

    Raises as `import_openapi`, and InvalidInput for an endpoint that can't be one.
    """
    if wrong := wrong_with(endpoint):
        raise InvalidInput(
            f"{endpoint[:100]!r} {wrong}.",
            next_step="Name the API's address, like --endpoint https://api.example.com/graphql.",
        )
    from mapper.importing import graphql_schema  # graphql-core is seldom needed, and not small

    return _install(path, _source(file), graphql_schema.PROVIDER, name, progress, endpoint)


_NOTHING = "Nothing could be imported."
_MEND = "Mend what is said below, then try again."


def _source(file: Path, *, many: bool = False) -> Source:
    try:
        return bundles.source(file) if many and bundles.is_bundle(file) else Source.read(file, follow=True)
    except BadPart as bad:
        problem = Problem(file=file.name, line=0, where="", what=bad.what)
        raise Nothing(_NOTHING, [problem], next_step="Name a readable file.") from bad


def _install(
    path: Path, source: Source, provider: str, name: str, progress: Progress, *more: str, index: bool = True
) -> Report:
    """`more`: what the reader wants to know beside the name."""
    if name and not service_names.SERVICE_NAME.fullmatch(name):
        raise InvalidInput(
            f"{name[:60]!r} can't be a service's name.", next_step="Letters, digits, _ and -, like --name petstore."
        )
    with Installer(path, provider) as installer:
        known = {fact.name: fact for fact in Store(path).facts()}

        progress(0, 1, source.name)
        try:
            with Apart() as apart:
                title, read, problems = apart.read(
                    provider, source, name or _slug(source.name.partition(".")[0]), *more
                )
            if read is None:
                raise Nothing(_NOTHING, problems, next_step=_MEND)
            called = _called(name, title, source.name, provider, known)
            document = replace(read, provider_name=called, title=title or called)
        except Broken as bad:
            problem = Problem(file=source.name, line=bad.line, where="", what=bad.what)
            raise Nothing(_NOTHING, [problem], next_step=_MEND) from bad
        except BadPart as bad:
            problem = Problem(file=source.name, line=0, where=".".join(bad.keys), what=bad.what)
            raise Nothing(_NOTHING, [problem], next_step=_MEND) from bad
        earlier = [fact for fact in known.values() if (fact.provider, fact.provider_name) == _identity(document)]
        for fact in earlier:
            if _origin(fact.base_url) != _origin(document.base_url):
                raise Conflict(
                    f"{fact.name} is in the catalog already, at {fact.base_url or 'an address that its account says'};"
                    f" this document leads to {document.base_url or 'no address of its own'}.",
                    next_step=f"If it is another service, name it: --name OTHER. If it has moved: goex catalog remove "
                    f"{fact.name}, then import it again.",
                )
            if fact.version != document.version:
                installer.drop(fact.name)
        installer.put(replace(document, preferred=True), progress)
        installer.problems.extend(problems)
        return installer.finish(whole=False, progress=progress, index=index)


def _called(name: str, title: str, file: str, provider: str, known: dict[str, ServiceFacts]) -> str:
    """The name of the service: the person's, or a free one after the title or the file."""
    taken = {one.casefold() for one in (*Catalog.bundled().services, *service_names.RESERVED)}
    taken |= {
        fact.name.casefold() for fact in known.values() if (fact.provider, fact.provider_name) != (provider, fact.name)
    }
    if name:
        if name.casefold() in taken:
            raise InvalidInput(f"The name {name} is taken.", next_step="Choose another with --name.")
        # One that differs in letters' case alone is the same one.
        return next((one for one in known if one.casefold() == name.casefold()), name)
    own = _slug(title) or _slug(file.partition(".")[0]) or provider
    wanted = (own, f"{provider}-{own}", *(f"{provider}-{own}-{number}" for number in range(2, 10)))
    free = next((one for one in wanted if one.casefold() not in taken), "")
    if not free:
        raise InvalidInput(f"The name {own} is taken.", next_step="Choose one with --name.")
    return free


def _slug(title: str) -> str:
    words = re.findall(r"[a-z0-9]+", title.lower())
    telling = [word for word in words if word not in _FILLERS and not re.fullmatch(r"v?[0-9]+", word)] or words
    slug = "_".join(telling)[:40].strip("_")
    return slug if slug[:1].isalpha() else f"api_{slug}" if slug else ""


def _identity(document: Document) -> tuple[str, str]:
    return document.provider, document.provider_name


def _origin(url: str) -> str:
    return str(Origin.parse(url)) if url else ""
