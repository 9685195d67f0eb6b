"""Addresses that more than one method's path takes: which of them a program's request is."""

from __future__ import annotations

from pathlib import Path

import pytest

from mapper.catalog import Catalog
from mapper.code.method_finder import find
from mapper.importing.install import import_google
from tests.mapper.importing.documents import discovery, method, write

PATHS = {
    "things.runs.steps.get": ("v1/runs/{run}/steps/{step}", {}),
    "things.runs.steps.clusters": ("v1/{+name}:clusters", {"name": "^runs/[^/]+/steps/[^/]+$"}),
    "things.partners.customers.list": ("v1/partners/{+partner}/customers", {"partner": "^[^/]+$"}),
    "things.partners.vendors.customers.list": ("v1/{+parent}/customers", {"parent": "^partners/[^/]+/vendors/[^/]+$"}),
}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    methods = {}
    for id, (path, patterns) in PATHS.items():
        parameters = {
            name: {"type": "string", "location": "path", "required": True}
            | ({"pattern": patterns[name]} if name in patterns else {})
            for name in (part.split("}")[0].lstrip("+") for part in path.split("{")[1:])
        }
        methods[id.removeprefix("things.").replace(".", "_")] = method(id, path=path, parameters=parameters)
    folder = tmp_path / "documents"
    folder.mkdir()
    write(folder, discovery(methods=methods))
    import_google(tmp_path / "catalog.db", folder, index=False)
    return Catalog.open(tmp_path / "catalog.db", alone=True)


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("runs/r1/steps/s1", "runs.steps.get"),
        ("runs/r1/steps/s1:clusters", "runs.steps.clusters"),  # fewer written segments than the other, and its verb
        ("runs/r1/steps/s1:others", "runs.steps.get"),
        ("partners/p1/customers", "partners.customers.list"),
        ("partners/p1/vendors/v1/customers", "partners.vendors.customers.list"),  # as the patterns say
        ("partners/p1/elsewhere/v1/customers", "partners.customers.list"),  # for none of them: what is written decides
    ],
)
def test_the_one_whose_verb_is_written_or_whose_patterns_take_it(catalog: Catalog, address: str, found: str) -> None:
    (base,) = {service.base_url for service in catalog.services.values()}
    program = f"import requests\nrequests.get('{base.rstrip('/')}/v1/{address}')"
    assert [call.method_id for call in find("python", program, catalog, ("things",)).calls] == [f"things.{found}"]
