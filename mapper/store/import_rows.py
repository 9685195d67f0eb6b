"""What an importer hands over: one document of a provider, parsed and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from policies.services import BodyFormat, Location, OAuth, Placement, Risk

_KEYS = frozenset({"idempotency-key", "x-idempotency-key"})  # headers that make a repetition harmless


def own_keys(locations: Mapping[str, str]) -> list[str]:
    """The headers among a method's arguments that GoEx gives itself: for a key that was used before, a service answers
    with what is there already, so that whoever calls can't choose it."""
    return [name for name, place in locations.items() if place == "header" and name.lower() in _KEYS]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentScope:
    """One permission that a document declares. Its risk is worked out from what it unlocks."""

    name: str
    description: str
    virtual: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentMethod:
    """One operation. `properties` are the schemas of its arguments, which may refer to the document's schemas."""

    origin_id: str  # as the provider names it
    name: str  # below the service
    description: str
    http: str
    path: str  # begins with a slash
    risk: Risk
    scopes: tuple[str, ...]  # names of the document's scopes, any one of which suffices
    properties: Mapping[str, Any]
    required: tuple[str, ...]
    locations: Mapping[str, Location]
    body: BodyFormat = "none"
    media: str = ""  # as `policies.services.Method.media`
    document: str = ""  # as `policies.services.Method.document`
    unsupported: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One version of one API, as one file describes it.

    `preferred` says whether the provider calls this its main version (None: it doesn't say).
    """

    provider: str  # "google", "openapi", "functions", "graphql", "mcp"
    provider_name: str
    version: str
    title: str
    description: str
    base_url: str  # https
    file: str  # its name, for messages
    sha256: str
    scopes: tuple[DocumentScope, ...]
    methods: tuple[DocumentMethod, ...]
    schemas: Mapping[str, Any] = field(default_factory=dict)  # by name, each a `mapper.json_schema` schema
    placement: Placement = field(default_factory=Placement)
    preferred: bool | None = None
    oauth: OAuth | None = None  # how a login goes, as the document says
    undos: Mapping[str, Any] = field(default_factory=dict)  # by origin id, as `policies.reversions.undo_to_json`


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A service that keeps its version, though `newer`, now called `newer_service`, would be the main one by now."""

    service: str
    version: str
    newer: str
    newer_service: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One method of the file without its arguments' schemas: for those who go through all of them."""

    number: int  # unlike any other's, until the catalog changes
    service: str
    name: str
    origin_id: str
    description: str
    http: str
    path: str
    risk: Risk
    scopes: tuple[str, ...]
    parameters: tuple[str, ...]  # names of the arguments
    fields: tuple[str, ...]  # names in the body's own schema, one level deep
    unsupported: str = ""  # why it can't be called; "": it can

    @property
    def id(self) -> str:
        return f"{self.service}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFacts:
    """One service of the file, without its methods."""

    name: str
    provider: str
    provider_name: str
    version: str
    main: bool
    title: str
    description: str
    base_url: str
    methods: int  # how many
    files: tuple[str, ...]
    imported: str  # UTC, ISO 8601
