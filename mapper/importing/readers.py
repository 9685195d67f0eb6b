"""What reads a document of each kind: its text in, the parsed document and its problems out. Run by `apart`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mapper.importing import bundles, functions, google, mcp_tools, openapi
from mapper.importing.document_files import Source
from mapper.importing.import_report import BadPart, Problem
from mapper.importing.trees import Tree, json_lines, read
from mapper.store.import_rows import Document

MAX_PROBLEMS = 200  # that are told one by one

Made = tuple[str, Document | None, list[Problem]]  # its title, what was made, what couldn't be taken


def read_openapi(source: Source, name: str) -> Made:
    """An OpenAPI document, as the service `name` unless it has a title. Raises Broken."""
    tree, file = (read(source), source.name) if source.files is None else bundles.joined(source)
    try:
        title = openapi.about(tree.value).title
        document, bad = openapi.read_document(tree.value, name, source.name, source.sha256)
    except BadPart as part:
        return "", None, _placed([part], tree, file)
    return title, document, _placed(bad, tree, file)


def read_functions(source: Source, name: str) -> Made:
    """A set of functions, as the service `name`. Raises BadPart."""
    found, problems = functions.find(source)
    document, more = functions.read_functions(found, name, source)
    return "", document, [*problems, *more]


def read_discovery(source: Source, preferred: Mapping[tuple[str, str], bool], seen: set[tuple[str, str]]) -> Any:
    """The (name, version) of a discovery document with what was made of it and its problems; without these where it
    is `seen`. Raises BadPart."""
    raw = source.json()
    key = google.identity(raw)
    if key in seen:
        return key, None, []
    try:
        document, parts = google.read_document(source, raw, preferred.get(key))
    except BadPart as bad:
        return key, None, [source.problem(bad)]
    lines = json_lines(source.text, [part.keys for part in parts])  # one pass, however many there are
    return (
        key,
        document,
        [
            Problem(file=source.name, line=line, where=".".join(part.keys), what=part.what)
            for part, line in zip(parts, lines, strict=True)
        ],
    )


def read_mcp(source: Source, name: str) -> Made:
    """What an MCP server says of its tools, as the service `name`. Raises BadPart."""
    found, problems = functions.find(source)
    document, more = mcp_tools.read_tools(found, name, source)
    return "", document, [*problems, *more]


def read_graphql(source: Source, name: str, endpoint: str) -> Made:
    """A GraphQL schema, as the service `name` at `endpoint`. Raises BadPart."""
    from mapper.importing import graphql_schema  # graphql-core loads for longer than most documents are read

    document, bad = graphql_schema.read_document(source, name, endpoint)
    problems = [
        Problem(file=source.name, line=0, where=".".join(part.keys), what=part.what) for part in bad[:MAX_PROBLEMS]
    ]
    if len(bad) > MAX_PROBLEMS:
        what = f"and {len(bad) - MAX_PROBLEMS:,} problems more"
        problems.append(Problem(file=source.name, line=0, where="", what=what))
    return document.title, document, problems


READERS: Mapping[str, Callable[..., Any]] = {
    "openapi": read_openapi,
    "functions": read_functions,
    "discovery": read_discovery,
    "mcp": read_mcp,
    "graphql": read_graphql,
}


def _placed(bad: list[BadPart], tree: Tree, file: str) -> list[Problem]:
    """The problems with their lines, in the order of each file."""
    shown = bad[:MAX_PROBLEMS]
    of: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for part in shown:
        inner = part.keys[1] if len(part.keys) > 1 and part.keys[0] == bundles.PARTS else ""
        at, keys = (inner, part.keys[2:]) if inner in tree.parts else (file, part.keys)
        of.setdefault(at, []).append((keys, part.what))
    problems: list[Problem] = []
    for at, found in of.items():
        lines = tree.parts.get(at, tree).lines([keys for keys, _ in found])
        problems += [
            Problem(file=at, line=line, where=".".join(keys), what=what)
            for (keys, what), line in zip(found, lines, strict=True)
        ]
    problems += [Problem(file=file, line=line, where="", what=what) for line, what in tree.odd[:MAX_PROBLEMS]]
    problems.sort(key=lambda problem: (problem.file != file, problem.file, problem.line))
    rest = len(bad) - len(shown) + max(0, len(tree.odd) - MAX_PROBLEMS)
    if rest:
        problems.append(Problem(file=file, line=0, where="", what=f"and {rest:,} problems more"))
    return problems
