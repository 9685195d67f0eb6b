"""All of Google's documents, as the installed package has them, against what a plain count of them says.

Skipped where the package isn't installed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mapper import lint as lint_module
from mapper.catalog import Catalog
from mapper.importing.google import package_folder
from mapper.importing.import_report import Report
from mapper.importing.install import import_google
from mapper.method_search import search
from policies.actions import Call
from policies.errors import Unavailable
from policies.services import Risk
from tests import google

try:
    FOLDER = package_folder()
except Unavailable:
    pytest.skip("google-api-python-client isn't installed", allow_module_level=True)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    made, report = google.imported()
    folder = tmp_path_factory.mktemp("google")
    folder.chmod(0o700)
    return Path(shutil.copy(made, folder / "catalog.db")), report


@pytest.fixture(scope="module")
def catalog(imported: tuple[Path, Report]) -> Catalog:
    return Catalog.open(imported[0])


@pytest.fixture(scope="module")
def raw() -> dict[tuple[str, str], dict[str, Any]]:
    """Every document once, by name and version."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for file in sorted(FOLDER.glob("*.json")):
        if file.name != "index.json":
            document = json.loads(file.read_text(encoding="utf-8"))
            found.setdefault((document["name"], document["version"]), document)
    return found


def methods(holder: Any) -> Iterator[dict[str, Any]]:
    yield from holder.get("methods", {}).values()
    for resource_ in holder.get("resources", {}).values():
        yield from methods(resource_)


def test_everything_is_there(
    imported: tuple[Path, Report], catalog: Catalog, raw: dict[tuple[str, str], dict[str, Any]]
) -> None:
    path, report = imported
    facts = catalog.store.facts() if catalog.store is not None else ()
    wanted = sum(len(list(methods(document))) for document in raw.values())

    assert report.problems == () and {one.file for one in report.skipped} <= {
        "admin.datatransferv1.json",
        "admin.directoryv1.json",
        "admin.reportsv1.json",
    }
    assert {fact.provider_name for fact in facts} == {name for name, _ in raw} and len(raw) > 500
    assert sum(fact.methods for fact in facts) == wanted > 25_000
    scopes = {name for d in raw.values() for name in d.get("auth", {}).get("oauth2", {}).get("scopes", {})}
    assert {
        scope.name for name in catalog.services for scope in catalog.services[name].scopes.values()
        if catalog.services[name].source == "imported" and not scope.virtual
    } == scopes  # fmt: skip
    taken = Catalog.bundled().services
    assert {fact.name for fact in facts if fact.main} == {
        name if name not in taken else f"{name}-{catalog.services[f'{name}-v1'].version}" for name, _ in raw
    }
    assert path.stat().st_size < 60e6  # how long it took is a bench: catalog.import_s


def test_every_method_is_found_by_its_own_id(
    catalog: Catalog, raw: dict[tuple[str, str], dict[str, Any]], thorough: bool
) -> None:
    random = Random(7)
    for (name, version), document in random.sample(sorted(raw.items(), key=lambda item: item[0]), 60):
        for number, method in enumerate(random.sample(found := list(methods(document)), min(12, len(found)))):
            made = catalog.of_origin(name, method["id"], version)
            assert made is not None and made.origin_id == method["id"] and made.http == method["httpMethod"]
            assert set(made.scopes) == set(method.get("scopes", ())) or len(made.scopes) == 1
            assert catalog.scope(made.service, made.scopes[0]).risk >= made.risk
            assert made.name in catalog.unlocks(made.service, made.scopes[0])
            if thorough or number == 0:  # it takes most of the time
                Draft202012Validator.check_schema(dict(made.parameters))
            properties = made.parameters["properties"]
            assert set(re.findall(r"\{\+?([^}]+)\}", made.path)) == {
                name for name, place in made.locations.items() if place == "path"
            }
            assert set(made.locations) == set(properties) and set(made.parameters["required"]) <= set(properties)
            assert ("body" in properties) == ("request" in method)


KNOWN = [
    ("gmail", "gmail.users.messages.send", {"userId": "me", "body": {"raw": "QQ"}}, Risk.WRITE),
    ("gmail", "gmail.users.messages.delete", {"userId": "me", "id": "1"}, Risk.DELETE),
    ("calendar", "calendar.events.insert",
     {"calendarId": "primary", "body": {"start": {"date": "2026-01-01"}, "end": {"date": "2026-01-02"}}}, Risk.WRITE),
    ("calendar", "calendar.acl.insert", {"calendarId": "primary", "body": {"role": "reader", "scope": {"type": "a"}}},
     Risk.ADMIN),
    ("admin", "directory.users.makeAdmin", {"userKey": "a@example.org", "body": {"status": True}}, Risk.ADMIN),
    ("sheets", "sheets.spreadsheets.values.clear", {"spreadsheetId": "1", "range": "A1", "body": {}}, Risk.DELETE),
    ("bigquery", "bigquery.jobs.query", {"projectId": "p", "body": {"query": "SELECT 1"}}, Risk.READ),
    ("secretmanager", "secretmanager.projects.secrets.get", {"name": "projects/p/secrets/s"}, Risk.READ),
    ("pubsub", "pubsub.projects.topics.setIamPolicy", {"resource": "projects/p/topics/t"}, Risk.ADMIN),
]  # fmt: skip


@pytest.mark.parametrize(("api", "origin_id", "arguments", "risk"), KNOWN, ids=[row[1] for row in KNOWN])
def test_well_known_methods(catalog: Catalog, api: str, origin_id: str, arguments: dict[str, Any], risk: Risk) -> None:
    method = catalog.of_origin(api, origin_id)
    assert method is not None and method.risk is risk
    assert catalog.validate(Call(service=method.service, method=method.name, arguments=arguments))


def test_admin_is_one_service(catalog: Catalog) -> None:
    for id in ("directory.users.insert", "reports.activities.list", "datatransfer.transfers.insert"):
        method = catalog.of_origin("admin", id)
        assert method is not None and method.id == f"admin.{id}"


@pytest.mark.parametrize(
    ("api", "version"),
    [
        ("cloudresourcemanager", "v3"),
        ("run", "v2"),
        ("cloudfunctions", "v2"),
        ("gmailpostmastertools", "v2"),
        ("iam", "v1"),
        ("dns", "v1"),
        ("cloudbuild", "v1"),
        ("drive", "v3"),
    ],
)
def test_the_main_version_is_what_people_mean_today(catalog: Catalog, api: str, version: str) -> None:
    assert catalog.service(api).version == version


@pytest.mark.thorough
def test_importing_again_is_the_same(imported: tuple[Path, Report], catalog: Catalog, tmp_path: Path) -> None:
    path, _ = imported
    names = set(catalog.services)
    some = [
        f"{service}.{method}"
        for service in ("drive", "admin", "youtube")
        for method in catalog.services[service].methods
    ]
    before, size = catalog.entry_hash(some), path.stat().st_size
    import_google(path, index=False)

    assert set(catalog.services) == names and catalog.entry_hash(some) == before
    assert path.stat().st_size < size * 1.3


def test_cold_in_a_process_of_its_own(imported: tuple[Path, Report]) -> None:
    program = """
        import sys
        from pathlib import Path
        from mapper.catalog import Catalog
        catalog = Catalog.open(Path(sys.argv[1]))
        catalog.method("drive.files.list")
        catalog.unlocks("compute", "https://www.googleapis.com/auth/cloud-platform")
        peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
        print(int(peak.split()[1]) / 1024)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(imported[0])]
    assert float(subprocess.run(command, capture_output=True, check=True).stdout) < 80


def test_searching_all_of_it() -> None:
    found = [one.id for one in search(Catalog.open(google.indexed()), "calendar.events.insert", limit=5)]
    assert "calendar.events.insert" in found


def test_linting_all_of_it(catalog: Catalog, monkeypatch: pytest.MonkeyPatch, thorough: bool) -> None:
    assert catalog.store is not None
    read, some = lint_module._schemas, set(catalog.store.names()[:: 1 if thorough else 8])
    monkeypatch.setattr(lint_module, "_schemas", lambda store, name: read(store, name) if name in some else ())
    imported = [
        finding for finding in lint_module.lint(catalog) if finding.name.split(".")[0] not in Catalog.bundled().services
    ]
    assert {finding.kind for finding in imported} <= {
        "no-description",
        "no-methods",
        "unsupported",
        "risk",
        "same-path",
    }
    # The few that change something by a GET, or say so in their own words, of 28,000.
    assert 0 < sum(finding.kind == "risk" for finding in imported) < 60
