"""The schema that a model is shown against the one that judges what it says."""

from __future__ import annotations

from typing import Any

from mapper import prompts, validation
from mapper.catalog import Catalog
from policies.errors import InvalidInput
from policies.services import Method
from tests.google import google_catalog

__all__ = ["google_catalog"]


def least(shown: Any) -> Any:
    """The fewest arguments that a shown schema seems to want."""
    if shown.get("enum"):
        return shown["enum"][0]
    kind = shown.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object" or "properties" in shown:
        return {name: least(shown["properties"][name]) for name in shown.get("required", ())}
    return {"integer": 1, "number": 1, "boolean": True, "array": []}.get(kind, "x")


def lacking(method: Method) -> str:
    """What validation says is missing from the arguments that the shown schema asks for."""
    try:
        validation.check(method, least(prompts._parameters_of(method)), validation.checker(method))
    except InvalidInput as error:
        return error.message if "must be given" in error.message else ""
    return ""


def test_all_that_is_wanted_is_shown_of_bundled_methods() -> None:
    assert [lacking(method) for method in Catalog.bundled().methods() if lacking(method)] == []


def test_all_that_is_wanted_is_shown_of_googles_methods(google_catalog: Catalog) -> None:
    assert google_catalog.store is not None
    methods = [google_catalog.method(entry.id) for entry in list(google_catalog.store.entries(main=False))[::40]]
    wanted = ["gmail-v1.users.labels.create", "admin.directory.users.insert", "compute.instances.insert"]
    methods += [google_catalog.method(name) for name in wanted]
    assert len(methods) > 600
    assert [lacking(method) for method in methods if lacking(method)] == []
