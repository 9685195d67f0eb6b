"""Importing discovery documents: what becomes of them, and what hostile ones can't do."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.importing import install
from mapper.importing.google import package_folder
from mapper.importing.import_report import Report
from mapper.importing.install import Nothing
from mapper.store import service_names
from policies.actions import Call
from policies.errors import InvalidInput, Unavailable, Unsupported
from policies.services import Risk
from tests.mapper.importing.documents import FULL, READ, discovery, method, write

# What is tested here is the catalog; the search index over it has tests of its own.
import_google = partial(install.import_google, index=False)
remove = partial(install.remove, index=False)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "documents"
    made.mkdir()
    return made


def one(folder: Path, db: Path, document: dict[str, Any]) -> tuple[Catalog, Report]:
    write(folder, document)
    report = import_google(db, folder)
    return Catalog.open(db), report


THING = {"type": "object", "properties": {"name": {"type": "string"}, "inner": {"$ref": "Thing"}}}


def test_a_method_in_full(folder: Path, db: Path) -> None:
    patch = method(
        "things.things.patch",
        "PATCH",
        "v1/{+name}:change",
        description="Changes a [thing](https://x.example.org).",
        parameters={
            "name": {"type": "string", "location": "path", "required": True, "pattern": "^things/[^/]+$"},
            "ids": {"type": "string", "location": "query", "repeated": True},
            "dryRun": {"type": "boolean", "location": "query", "default": "false"},
            "access_token": {"type": "string", "location": "query"},
            "uploadType": {"type": "string", "location": "query"},
        },
        request={"$ref": "Thing"},
        scopes=[FULL],
    )
    catalog, report = one(folder, db, discovery(methods={"patch": patch}, schemas={"Thing": THING}))

    assert not report.problems
    made = catalog.method("things.things.patch")
    assert (made.origin_id, made.http, made.path) == ("things.things.patch", "PATCH", "/v1/{+name}:change")
    assert (made.risk, made.scopes, made.body) == (Risk.WRITE, (FULL,), "json")
    assert made.description == "Changes a thing."
    assert dict(made.locations) == {"name": "path", "ids": "repeat", "dryRun": "query", "body": "whole"}
    assert made.parameters["required"] == ["name"]
    assert made.parameters["properties"]["body"] == {"$ref": "#/$defs/Thing"}
    assert made.parameters["$defs"]["Thing"]["properties"]["inner"] == {"$ref": "#/$defs/Thing"}
    service = catalog.service("things")
    assert (service.title, service.base_url, service.source) == (
        "Things API",
        "https://things.googleapis.com",
        "imported",
    )
    assert (service.provider, service.provider_name, service.version, service.main) == ("google", "things", "v1", True)
    assert service.scopes[FULL].description == "See, change and delete your things"
    assert catalog.unlocks("things", FULL) == {"things.patch"}


def test_arguments_are_judged_by_the_schema(folder: Path, db: Path) -> None:
    create = method("things.things.create", "POST", request={"$ref": "Thing"})
    catalog, _ = one(folder, db, discovery(methods={"create": create}, schemas={"Thing": THING}))

    def call(body: Any) -> Call:
        return catalog.validate(Call(service="things", method="things.create", arguments={"body": body}))

    assert call({"inner": {"inner": {"name": "x"}}}).arguments["body"]
    wrong: list[Any] = [{"inner": {"inner": {"name": 1}}}, {"nope": 1}, "x", [1], {"inner": {"inner": []}}]
    for bad in wrong:
        with pytest.raises(InvalidInput):
            call(bad)


def test_what_a_body_needs_comes_from_the_annotations(folder: Path, db: Path) -> None:
    thing = {"type": "object", "properties": {
        "start": {"type": "string", "annotations": {"required": ["things.things.insert"]}},
        "end": {"type": "string"},
    }}  # fmt: skip
    insert = method("things.things.insert", "POST", request={"$ref": "Thing"})
    patch = method("things.things.patch", "PATCH", request={"$ref": "Thing"})
    catalog, _ = one(folder, db, discovery(methods={"a": insert, "b": patch}, schemas={"Thing": thing}))

    def missing(name: str) -> str:
        try:
            catalog.validate(Call(service="things", method=name, arguments={"body": {"end": "x"}}))
        except InvalidInput as error:
            return error.message
        return ""

    assert '"start" must be given' in missing("things.insert")
    assert missing("things.patch") == ""
    assert catalog.method("things.things.insert").parameters["required"] == ["body"]


def test_methods_without_scopes_get_virtual_ones_by_their_class(folder: Path, db: Path) -> None:
    methods = {
        "list": method("things.list", scopes=[]),
        "create": method("things.create", "POST", scopes=[]),
        "delete": method("things.delete", "DELETE", scopes=[]),
        "setIamPolicy": method("things.setIamPolicy", "POST", scopes=[]),
        "get": method("things.get"),
    }
    catalog, report = one(folder, db, discovery(methods=methods))

    scopes = catalog.service("things").scopes
    virtual = {name: scope.risk for name, scope in scopes.items() if scope.virtual}
    assert virtual == {"read": Risk.READ, "write": Risk.WRITE, "delete": Risk.DELETE, "admin": Risk.ADMIN}
    assert catalog.unlocks("things", "write") == {"create"}
    assert catalog.method("things.get").scopes == (FULL, READ)
    assert all(scope.description for scope in scopes.values())
    assert report.imported[0].scopes == 2  # the provider's own


def test_a_scope_is_as_risky_as_the_worst_that_it_unlocks(folder: Path, db: Path) -> None:
    methods = {"list": method("things.list"), "delete": method("things.delete", "DELETE", scopes=[FULL])}
    unused = {"https://www.googleapis.com/auth/unused": {"description": "Nothing here"}}
    document = discovery(methods=methods)
    document["auth"]["oauth2"]["scopes"].update(unused)
    catalog, _ = one(folder, db, document)

    assert catalog.scope("things", READ).risk is Risk.READ
    assert catalog.scope("things", FULL).risk is Risk.DELETE
    assert catalog.scope("things", "https://www.googleapis.com/auth/unused").risk is Risk.DELETE


def test_files(folder: Path, db: Path) -> None:
    methods = {
        "upload": method("things.upload", "POST", supportsMediaUpload=True),
        "insert": method("things.insert", "POST", supportsMediaUpload=True, request={"$ref": "Thing"}),
        "export": method("things.export", supportsMediaDownload=True),
    }
    catalog, _ = one(folder, db, discovery(methods=methods, schemas={"Thing": THING}))

    with pytest.raises(Unsupported, match="bytes of a file"):
        catalog.validate(Call(service="things", method="upload", arguments={}))
    assert catalog.validate(Call(service="things", method="insert", arguments={"body": {"name": "x"}}))
    assert "bytes" in catalog.method("things.insert").description
    assert "bytes" in catalog.method("things.export").description


# ---- names and versions


def named(folder: Path, db: Path, *keys: tuple[str, str], preferred: tuple[str, str] | None = None) -> dict[str, str]:
    """The service of each (name, version) after an import of exactly these."""
    for name, version in keys:
        write(folder, discovery(name, version, methods={"list": method(f"{name}.list")}))
    if preferred is not None:
        items = [{"name": n, "version": v, "preferred": (n, v) == preferred} for n, v in keys]
        (folder / "index.json").write_text(json.dumps({"items": items}))
    report = import_google(db, folder)
    return {f"{one.file.removesuffix('.json')}": f"{one.service}{'*' if one.main else ''}" for one in report.imported}


def test_the_preferred_version_has_the_plain_name(folder: Path, db: Path) -> None:
    assert named(folder, db, ("drive", "v2"), ("drive", "v3"), ("drive", "v4beta"), preferred=("drive", "v2")) == {
        "drive.v2": "drive*",
        "drive.v3": "drive-v3",
        "drive.v4beta": "drive-v4beta",
    }


def test_a_preferred_beta_gives_way_to_a_stable_version(folder: Path, db: Path) -> None:
    assert named(folder, db, ("flows", "v1beta"), ("flows", "v1"), preferred=("flows", "v1beta")) == {
        "flows.v1": "flows*",
        "flows.v1beta": "flows-v1beta",
    }


@pytest.mark.parametrize(
    ("versions", "main"),
    [
        (("v1", "v2", "v10"), "v10"),
        (("v1.1", "v1.4", "v1.10"), "v1.10"),
        (("v1", "v2beta1"), "v1"),
        (("v1alpha", "v1beta"), "v1beta"),
        (("v1beta1", "v1beta2"), "v1beta2"),
        (("alpha", "beta", "preview", "v1"), "v1"),
        (("v1p1beta1", "v1"), "v1"),
    ],
)
def test_without_a_word_the_highest_stable_one_is_main(
    folder: Path, db: Path, versions: tuple[str, ...], main: str
) -> None:
    found = named(folder, db, *(("things", version) for version in versions))
    assert [key for key, name in found.items() if name == "things*"] == [f"things.{main}"]
    assert len(set(found.values())) == len(versions)


@pytest.mark.parametrize(
    ("versions", "preferred", "main"),
    [
        # (version, methods), the provider's preferred one, the main one
        ({"v1": "abcd", "v2": "ef", "v3": "abefgh"}, "v2", "v3"),  # its list is older than its documents
        ({"v1": "abcdefgh", "v2": "xyz"}, "v1", "v1"),  # another part of it, by the next number
        ({"v1": "abcdef", "v2": "xyz"}, "v1", "v2"),  # half as many are enough
        ({"v1": "abcdefgh", "v2": "abcdefg"}, "v1", "v1"),  # it adds nothing
        ({"v1": "abcdefgh", "v2": "abcdefgh"}, "v1", "v1"),
        ({"v1": "abcdefgh", "v2": "abcdefgh"}, "v2", "v2"),
        ({"v1": "abcdefgh", "v2": "abcdefg"}, None, "v2"),  # nobody says what v2 adds nothing to
        ({"v1": "abcdefgh", "v2": "abcdefgz", "v3": "xyz"}, "v1", "v2"),
        ({"v1": "abcd", "v2beta": "abcdefgh"}, "v2beta", "v1"),
        ({"v1alpha": "abcd", "v1beta": "ab"}, "v1alpha", "v1alpha"),
        ({"v1": "", "v1beta": "ab"}, "v1", "v1beta"),  # one without methods is nothing to call
        ({"v1": "", "v2": ""}, "v1", "v1"),
        ({"alpha_v1": "abcd", "alpha_v2": "abcdef", "beta_v1": "ab"}, "alpha_v1", "alpha_v2+beta_v1"),
    ],
)
def test_which_version_is_the_main_one(versions: dict[str, str], preferred: str | None, main: str) -> None:
    about = {
        name: service_names.Version(frozenset(methods), None if preferred is None else name == preferred)
        for name, methods in versions.items()
    }
    assert "+".join(service_names.main_versions(about)) == main


@pytest.mark.parametrize(
    ("versions", "kept", "main"),
    [
        ("v1 v2", "v1", "v1"),
        ("v1beta v1", "v1beta", "v1beta"),
        ("a_v1 a_v2 b_v1", "a_v1", "a_v1+b_v1"),
        ("a_v1beta b_v1", "a_v1beta", "a_v1beta+b_v1"),
        ("a_v1 v2", "a_v1", "a_v1"),
        ("a_v1 v2", "v2", "v2"),
    ],
)
def test_what_is_the_main_one_already_stays_that(versions: str, kept: str, main: str) -> None:
    about = {version: service_names.Version(frozenset(version)) for version in versions.split()}
    assert "+".join(service_names.main_versions(about, (kept,))) == main


@pytest.mark.promise(12)
def test_the_plain_name_stays_with_the_version_that_has_it(folder: Path, db: Path) -> None:
    """A grant on `drive` must not come to mean another version because a newer document was imported."""
    named(folder, db, ("drive", "v2"))
    write(folder, discovery("drive", "v3", methods={"list": method("drive.list"), "get": method("drive.get")}))
    report = import_google(db, folder)
    assert {one.version: one.service for one in report.imported} == {"v2": "drive", "v3": "drive-v3"}
    assert report.to_json()["kept"] == [
        {"service": "drive", "version": "v2", "newer": "v3", "newer_service": "drive-v3"}
    ]
    assert import_google(db, folder).kept == report.kept  # and is said as long as it is so

    remove(db, "drive")
    report = import_google(db, folder)
    assert {one.version: one.service for one in report.imported} == {"v2": "drive-v2", "v3": "drive"}
    assert not report.kept


@pytest.mark.parametrize("below", ["v1/../admin", "..", "v1/./x"])
def test_an_address_with_a_dot_segment(folder: Path, db: Path, below: str) -> None:
    write(folder, discovery(servicePath=below))
    assert [problem for problem in problems(folder, db) if "dot segment" in problem or "https address" in problem]


def test_a_parameter_twice_in_a_path(folder: Path, db: Path) -> None:
    one_of_two = {"a": {"type": "string", "location": "path", "required": True}}
    write(folder, discovery(methods={"x": method("things.x", path="v1/{a}/to/{a}", parameters=one_of_two)}))
    assert [problem for problem in problems(folder, db) if "names a parameter twice" in problem]


def test_words_are_one_line_without_commands(folder: Path, db: Path) -> None:
    hostile = "a\x1b[2J\r\nb\x00\x9b1mc"
    catalog, _ = one(folder, db, discovery(title=hostile, methods={"x": method("things.x", description=hostile)}))
    for text in (catalog.service("things").title, catalog.method("things.x").description):
        assert text.isprintable() and text.startswith("a ")


def test_a_new_part_of_an_api_takes_no_name_from_the_others(folder: Path, db: Path) -> None:
    parts = {"directory_v1": "users", "reports_v1": "activities"}
    for version, what in parts.items():
        write(folder, discovery("admin", version, methods={"list": method(f"admin.{what}.list")}))
    import_google(db, folder)
    assert Catalog.open(db).service("admin").version == "directory_v1+reports_v1"

    elsewhere = {"rootUrl": "https://elsewhere.googleapis.com/"}
    write(folder, discovery("admin", "apps_v1", methods={"list": method("admin.apps.list")}, **elsewhere))
    write(folder, discovery("admin", "zones_v1", methods={"list": method("admin.zones.list")}))
    report = import_google(db, folder)

    assert {one.version: one.service for one in report.imported} == {
        "apps_v1": "admin-apps_v1",
        "directory_v1": "admin",
        "reports_v1": "admin",
        "zones_v1": "admin",
    }
    assert Catalog.open(db).service("admin").base_url == "https://admin.googleapis.com"
    # One that is whole comes too late to be what the parts are.
    write(folder, discovery("admin", "v2", methods={"list": method("admin.everything.list")}))
    report = import_google(db, folder)
    assert {one.version: one.service for one in report.imported}["v2"] == "admin-v2"
    assert Catalog.open(db).service("admin").version == "directory_v1+reports_v1+zones_v1"


def test_parts_of_one_api_are_one_service(folder: Path, db: Path) -> None:
    directory = {"insert": method("directory.users.insert", "POST"), "stop": method("admin.channels.stop", "POST")}
    reports = {"list": method("reports.activities.list"), "stop": method("admin.channels.stop", "POST", "v1/stop")}
    write(folder, discovery("admin", "directory_v1", methods=directory))
    write(folder, discovery("admin", "directory_v1", methods=directory), "admin.directoryv1.json")
    write(folder, discovery("admin", "reports_v1", methods=reports))
    write(folder, discovery("admin", "reports_v2beta", methods={"list": method("reports.activities.list")}))
    for _ in range(2):  # and again, which changes nothing
        report = import_google(db, folder)
        catalog = Catalog.open(db)

        assert [skipped.file for skipped in report.skipped] == ["admin.directoryv1.json"]
        assert {one.version: one.service for one in report.imported} == {
            "directory_v1": "admin",
            "reports_v1": "admin",
            "reports_v2beta": "admin-reports_v2beta",
        }
        assert sorted(catalog.service("admin").methods) == [
            "directory.channels.stop",
            "directory.users.insert",
            "reports.activities.list",
            "reports.channels.stop",
        ]
    found = catalog.of_origin("admin", "directory.users.insert")
    assert found is not None and found.id == "admin.directory.users.insert"
    beta = catalog.of_origin("admin", "reports.activities.list", "reports_v2beta")
    assert beta is not None and beta.id == "admin-reports_v2beta.reports.activities.list"
    assert catalog.of_origin("other", "directory.users.insert") is None


def test_a_taken_name_is_never_given(folder: Path, db: Path) -> None:
    found = named(folder, db, ("slack", "v1"), ("Slack", "v2"), ("goex", "v1"), ("SlackX", "v1"), ("slackx", "v3"))
    assert found["slack.v1"] == "slack-v1*" and found["goex.v1"] == "goex-v1*"
    assert len({name.casefold() for name in found.values()}) == len(found)
    assert Catalog.open(db).service("slack").source == "bundled"


def test_a_partial_import_leaves_the_other_versions_and_the_main_one(folder: Path, db: Path, tmp_path: Path) -> None:
    named(folder, db, ("drive", "v2"), ("drive", "v3"), ("drive", "v4"), preferred=("drive", "v3"))
    other = tmp_path / "other"
    other.mkdir()
    assert named(other, db, ("drive", "v4")) == {"drive.v4": "drive-v4"}
    assert {name for name in Catalog.open(db).services if name.startswith("drive")} == {
        "drive",
        "drive-v2",
        "drive-v4",
    }
    assert Catalog.open(db).service("drive").version == "v3"


def test_importing_again_changes_nothing_but_what_changed(folder: Path, db: Path) -> None:
    catalog, _ = one(folder, db, discovery(methods={"list": method("things.list"), "get": method("things.get")}))
    before = catalog.entry_hash(["things.list"])
    catalog, report = one(folder, db, discovery(methods={"list": method("things.list")}))

    assert catalog.entry_hash(["things.list"]) == before
    assert list(catalog.service("things").methods) == ["list"]
    assert not report.imported[0].moved
    _, report = one(folder, db, discovery(rootUrl="https://elsewhere.googleapis.com/"))
    assert report.imported[0].moved == "https://things.googleapis.com"


def test_removing(folder: Path, db: Path) -> None:
    named(folder, db, ("things", "v1"), ("things", "v2"), ("others", "v1"))
    assert remove(db, "things-v1") == ("things-v1",)
    assert {"things", "others"} < set(Catalog.open(db).services)
    assert remove(db, "google") == ("others", "things")
    assert set(Catalog.open(db).services) == set(Catalog.bundled().services)
    with pytest.raises(InvalidInput, match="comes with GoEx"):
        remove(db, "slack")
    with pytest.raises(InvalidInput, match="no service 'things'"):
        remove(db, "things")


# ---- broken and hostile documents

GOOD = "good.v1.json"


def problems(folder: Path, db: Path) -> list[str]:
    """What is said about the other documents, when a good one is among them; which is imported all the same."""
    write(folder, discovery("good"))
    report = import_google(db, folder)
    assert "good" in Catalog.open(db).services and Catalog.open(db).method("good.things.list")
    return [str(problem) for problem in report.problems]


BROKEN: list[tuple[bytes, str]] = [
    (b"", "bad.json:1: it isn't JSON"),
    (b'{\n "name": "x",\n "version": }', "bad.json:3: it isn't JSON"),
    (b"[]", "bad.json:1: isn't a JSON object"),
    (b"null", "isn't a JSON object"),
    (b'{"name": "\xff"}', "isn't UTF-8 text: byte 10 on line 1"),
    (b"\xff\xfe{\x00}\x00", "isn't UTF-8"),
    (b"{" + b'"a":{' * 10_000 + b"}" * 10_001, "nested too deeply"),
    (b"[" * 10_000 + b"]" * 10_000, "nested too deeply"),
    (b'{"a": 1, "a": 2}', "bad.json"),
    (b'{"a": NaN}', "bad.json"),
    (b'{"name": "x", "version": "v1", "kind": "other"}', "bad.json:1: kind: isn't a discovery document"),
    (b'{\n\n"name": "../x", "version": "v1"}', "bad.json:3: name: '../x' isn't the name of an API"),
    (b'{"name": "a.b", "version": "v1"}', "isn't the name"),
    (b'{"name": "a/b", "version": "v1"}', "isn't the name"),
    (b'{"name": "a\\u0000b", "version": "v1"}', "isn't the name"),
    (b'{"name": "a\\u001b[2J", "version": "v1"}', "isn't the name"),
    (b'{"name": "", "version": "v1"}', "isn't the name"),
    (b'{"name": ["x"], "version": "v1"}', "isn't the name"),
    (b'{"name": "x", "version": "v1/../v2"}', "isn't the version"),
    (b'{"name": "x", "version": "v1\\n"}', "isn't the version"),
    (b'{"name": "x", "version": 1}', "isn't the version"),
    (b'{"name": "x"}', "isn't the version"),
    (b'{"name": "x", "version": "v1"}', "rootUrl: must be text"),
]


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("content", "says"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_document(folder: Path, db: Path, content: bytes, says: str) -> None:
    (folder / "bad.json").write_bytes(content)
    (found,) = problems(folder, db)
    assert says in found and len(found) < 400


def test_a_huge_document(folder: Path, db: Path) -> None:
    with (folder / "huge.json").open("wb") as file:
        file.truncate(70_000_000)
    (found,) = problems(folder, db)
    assert "70,000,000 bytes long" in found


def test_what_isnt_a_file(folder: Path, db: Path, tmp_path: Path) -> None:
    secret = write(tmp_path, discovery("outside"))
    (folder / "link.json").symlink_to(secret)
    (folder / "dangling.json").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.json")
    (folder / "folder.json").mkdir()
    (folder / "zero.json").symlink_to("/dev/zero")

    found = problems(folder, db)

    assert len(found) == 5 and sum("link" in one for one in found) >= 3
    assert any("pipe.json: isn't a regular file" in one for one in found)
    assert "outside" not in Catalog.open(db).services


BAD_PARTS: list[tuple[dict[str, Any], str]] = [
    (method("../x"), "isn't a method's id"),
    (method("a" * 300), "isn't a method's id"),
    (method("good.x\0"), "isn't a method's id"),
    (method("good/x"), "isn't a method's id"),
    (method("good..x"), "isn't a method's id"),
    (method("good.x", "CONNECT"), "isn't an HTTP method"),
    (method("good.x", "get"), "isn't an HTTP method"),
    (method("good.x", path="v1/../admin"), "isn't a path segment"),
    (method("good.x", path="v1//x"), "isn't a path segment"),
    (method("good.x", path="v1/{a}{b}"), "isn't a path segment"),
    (method("good.x", path="v1/x?y=z"), "isn't a path segment"),
    (method("good.x", path="https://evil.example.org/"), "isn't a path segment"),
    (method("good.x", path="v1/{name}"), "which is no parameter"),
    (method("good.x", path="v1/\u202ex"), "isn't a path segment"),
    (method("good.x", path=""), "must be a path"),
    (method("good.x", parameters=[]), "must be an object"),
    (method("good.x", parameters={"a": {"type": "string", "location": "header"}}), "in the path exactly where"),
    (method("good.x", parameters={"a": {"type": "string", "location": "path"}}), "in the path exactly where"),
    (method("good.x", parameters={"$httpMethod": {"type": "string", "location": "query"}}), "isn't a parameter's name"),
    (method("good.x", parameters={"body": {"type": "string", "location": "query"}}), "isn't a parameter's name"),
    (method("good.x", request={"$ref": "Nothing"}), "isn't a schema of this document"),
    (method("good.x", request="x"), "must be an object"),
    (method("good.x", scopes=["https://nobody.example.org/scope"]), "isn't among the document's scopes"),
    (method("good.x", scopes="all"), "must be a list of texts"),
    ({"id": 3}, "isn't a method's id"),
    ([], "must be an object"),  # type: ignore[list-item]
]


@pytest.mark.sampled(9)
@pytest.mark.parametrize(("bad", "says"), BAD_PARTS, ids=range(len(BAD_PARTS)))
def test_a_bad_method_leaves_the_others(folder: Path, db: Path, bad: Any, says: str) -> None:
    write(folder, discovery(methods={"list": method("things.list"), "bad": bad}))
    report = import_google(db, folder)

    (found,) = report.problems
    assert says in found.what and found.where.startswith("resources.things.methods.bad")
    lines = (folder / "things.v1.json").read_text().splitlines()
    assert found.line and '"' in lines[found.line - 1]
    assert list(Catalog.open(db).service("things").methods) == ["list"]


def test_a_problem_names_its_very_line(folder: Path, db: Path) -> None:
    write(folder, discovery(methods={"list": method("things.list"), "bad": method("things.bad", "STEAL")}))
    (found,) = import_google(db, folder).problems
    assert "STEAL" in (folder / "things.v1.json").read_text().splitlines()[found.line - 1]
    assert str(found).startswith(f"things.v1.json:{found.line}: resources.things.methods.bad.httpMethod: ")


def test_two_methods_of_one_id(folder: Path, db: Path) -> None:
    write(folder, discovery(methods={"a": method("things.x"), "b": method("things.x", "DELETE")}))
    (found,) = import_google(db, folder).problems
    assert "another method has the id" in found.what
    assert Catalog.open(db).method("things.x").http == "GET"


def test_two_documents_of_one_name(folder: Path, db: Path) -> None:
    write(folder, discovery("things"), "a.json")
    write(folder, discovery("things", description="Another."), "b.json")
    (found,) = import_google(db, folder).problems
    assert found.file == "b.json" and "a.json is things v1 already" in found.what


def test_a_bad_schema_takes_along_what_needs_it_and_nothing_else(folder: Path, db: Path) -> None:
    schemas = {
        "Bad": {"type": "nonsense"},
        "Needs": {"type": "object", "properties": {"x": {"$ref": "Bad"}}},
        "NeedsToo": {"type": "array", "items": {"$ref": "Needs"}},
        "Loop": {"type": "object", "properties": {"x": {"$ref": "Loop"}}},
    }
    methods = {name: method(f"things.{name}", "POST", request={"$ref": name}) for name in ("NeedsToo", "Loop")}
    write(folder, discovery(methods=methods, schemas=schemas))
    report = import_google(db, folder)

    assert [problem.where for problem in report.problems] == [
        "schemas.Bad.type",
        "resources.things.methods.NeedsToo.request.$ref",
    ]
    assert list(Catalog.open(db).service("things").methods) == ["Loop"]


def test_a_document_that_breaks_leaves_its_earlier_self(folder: Path, db: Path) -> None:
    one(folder, db, discovery())
    (folder / "things.v1.json").write_text("{")
    assert problems(folder, db)
    assert Catalog.open(db).method("things.things.list")


def test_nothing_that_could_be_imported(folder: Path, db: Path) -> None:
    (folder / "a.json").write_text("{")
    with pytest.raises(Nothing) as caught:
        import_google(db, folder)
    assert caught.value.details[0].startswith("a.json:1: it isn't JSON")
    assert set(Catalog.open(db).services) == set(Catalog.bundled().services)


@pytest.mark.parametrize("what", ["empty", "absent", "file"])
def test_a_folder_that_isnt_one(folder: Path, db: Path, what: str) -> None:
    place = {"empty": folder, "absent": folder / "nowhere", "file": write(folder, discovery())}[what]
    if what == "empty":
        (folder / "things.v1.json").unlink()
    with pytest.raises(InvalidInput):
        import_google(db, place)


def test_a_broken_index_is_said_and_ignored(folder: Path, db: Path) -> None:
    for content in ("{", "[]", '{"items": 3}', '{"items": [3, {"name": 1}]}'):
        (folder / "index.json").write_text(content)
        write(folder, discovery())
        report = import_google(db, folder)
        assert {problem.file for problem in report.problems} <= {"index.json"}
        assert bool(report.problems) == ("name" not in content)
        assert "things" in Catalog.open(db).services


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "googleapiclient", None)
    with pytest.raises(Unavailable) as caught:
        package_folder()
    assert 'pip install "goex[google]"' in caught.value.next_step


def test_a_thousand_problems_are_not_all_told(folder: Path, db: Path) -> None:
    methods = {f"m{n}": method(f"things.m{n}", "STEAL") for n in range(1000)} | {"list": method("things.list")}
    write(folder, discovery(methods=methods))
    assert len(import_google(db, folder).problems) == 40
