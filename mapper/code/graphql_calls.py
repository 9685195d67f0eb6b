"""A program's GraphQL requests as calls of the methods of their root fields.

Rules: a document is written in the program, whole. What it asks for must be among what the method's own document asks
for, which GoEx printed at import, and shows: a root field alone says little, since its answer leads on
(`repository { owner { … } }`). A request holds one document, and nothing that could stand for another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from mapper.catalog import Catalog
from mapper.code.abstract_values import Fields, Lit, choices, plain
from mapper.code.found_calls import FoundCall, How
from mapper.code.sent_requests import Request
from policies.graphql import paths_of

if TYPE_CHECKING:
    from mapper.code.graphql_documents import Asked

MAX_CHARACTERS = 40_000  # of all documents of one program
_FIELDS = ("query", "variables", "operationName")


class Documents:
    """The documents of one program. What is wrong with the last request's is had from `wrong`."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[str, Asked | str] = {}
        self._left = MAX_CHARACTERS
        self._wrong: list[str] = []

    def calls(
        self, request: Request, verb: str, query: Fields, methods: Mapping[str, str], base: str, how: How
    ) -> Iterator[FoundCall]:
        """A call for each root field of each document that the request may send. `methods` are the service's, by
        what they are (`query.issue`)."""
        self._wrong = []
        if verb != "POST" or query.items or query.more or request.kind != "json":
            self._wrong.append("a GraphQL document is sent by POST, as JSON")
            return
        body = dict(request.body.items)
        if "query" not in body or body.keys() - set(_FIELDS):
            more = sorted(body.keys() - set(_FIELDS))
            self._wrong.append(
                f"a GraphQL request with {more[0][:60]!r}, which could ask for something else"
                if more
                else "a GraphQL document that isn't written in the program, one to a request"
            )
            return
        rest = {name: plain(value) for name, value in request.body.items if name != "query"}
        for one in choices(body["query"]):
            if not isinstance(one, Lit) or not isinstance(one.value, str):
                self._wrong.append("a GraphQL document that isn't written in the program as it is sent")
                continue
            asked = self._asked(one.value)
            if isinstance(asked, str):
                self._wrong.append(f"its document {asked}")
                continue
            ids = [methods.get(f"{asked.operation}.{root}", "") for root in asked.paths]
            if wrong := self._refused(asked, ids):
                self._wrong.append(f"its document {wrong}")
                continue
            for id in ids:
                yield FoundCall(
                    method_id=id,
                    line=request.line,
                    how=how,
                    http="POST",
                    fields={"query": one.value, **{name: value for name, (known, value) in rest.items() if known}},
                    open=tuple(name for name, (known, _) in rest.items() if not known),
                    body="json",
                    base=base,
                )

    def wrong(self) -> tuple[str, ...]:
        """Why documents of the last request can't be sent."""
        return tuple(dict.fromkeys(self._wrong))

    def _asked(self, document: str) -> Asked | str:
        from mapper.code.graphql_documents import NotTaken, read  # graphql-core is seldom needed, and not small

        if document not in self._known:
            self._left -= len(document)
            try:
                if self._left < 0:
                    raise NotTaken(
                        f"is beyond the {MAX_CHARACTERS:,} characters of documents that one program may hold"
                    )
                self._known[document] = read(document)
            except NotTaken as bad:
                self._known[document] = str(bad)
        return self._known[document]

    def _refused(self, asked: Asked, ids: list[str]) -> str:
        """Why a document isn't one of these methods, in words; "" when it is."""
        for id, (root, paths) in zip(ids, asked.paths.items(), strict=True):
            if not id:
                return f"has the {asked.operation} {root[:60]}, which isn't in the catalog"
            if more := beyond(paths, self._catalog.method(id).document):
                return f"asks for {more[:200]}, which isn't among what {id} was imported with"
        return ""


def beyond(paths: set[str], printed: str) -> str:
    """A path that isn't among those of a printed document, nor a type's name there; "" where all are."""
    known = set(paths_of(printed))
    parents = {path[:end] for path in known for end in range(len(path)) if path[end] == "."}
    more = (
        path
        for path in sorted(paths)
        if path not in known and not (path.endswith(".__typename") and path.removesuffix(".__typename") in parents)
    )
    return next(more, "")
