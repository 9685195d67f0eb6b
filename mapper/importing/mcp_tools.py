"""The tools of an MCP server as methods of a service: read as function sets are, and called by their own names.

Rules: each tool is a permission of its own. What a tool says of itself makes nothing harmless: whether it only reads is
taken from nobody's annotation, so that each is asked for as a change. A name that a method can't have, or that two
tools have, is left out.
"""

from __future__ import annotations

from dataclasses import replace

from mapper.importing.document_files import Source
from mapper.importing.functions import Found, read_functions
from mapper.importing.import_report import BadPart, Problem
from mapper.store.import_rows import Document, DocumentScope
from policies.services import Risk

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
