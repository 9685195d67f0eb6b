"""The catalog's file: what is read back, what a running reader sees, and files that can't be used."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog, UnknownName, tool_name
from mapper.lint import lint
from mapper.method_search import search
from mapper.store.blobs import pack
from mapper.store.catalog_writer import Writer
from mapper.store.database import FORMAT, StoreUnreadable, open_reading
from mapper.store.import_rows import Document, DocumentMethod, DocumentScope
from policies.actions import Call
from policies.errors import InvalidInput
from policies.services import Placement, Risk

SCOPES = (DocumentScope(name="all", description="Everything"), DocumentScope(name="see", description="Look"))


def operation(name: str, **more: Any) -> DocumentMethod:
    facts: dict[str, Any] = {
        "origin_id": f"api.{name}",
        "name": name,
        "description": f"Does {name}.",
        "http": "GET",
        "path": f"/v1/{name}",
        "risk": Risk.READ,
        "scopes": ("all", "see"),
        "properties": {},
        "required": (),
        "locations": {},
    }
    return DocumentMethod(**{**facts, **more})


def document(name: str = "api", version: str = "v1", *names: str, **more: Any) -> Document:
    facts: dict[str, Any] = {
        "provider": "tests",
        "provider_name": name,
        "version": version,
        "title": name.title(),
        "description": "Of the tests.",
        "base_url": "https://api.example.org",
        "file": f"{name}.json",
        "sha256": "00",
        "scopes": SCOPES,
        "methods": tuple(operation(each) for each in names or ("things.list",)),
    }
    return Document(**{**facts, **more})


def written(path: Path, *documents: Document) -> Catalog:
    with Writer(path, taken=Catalog.bundled().services) as writer:
        for each in documents:
            writer.put(each)
        writer.commit()
    return Catalog.open(path)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


def test_without_a_file_there_is_what_comes_with_goex(db: Path) -> None:
    catalog = Catalog.open(db)
    assert set(catalog.services) == set(Catalog.bundled().services) and catalog.generation == 0
    assert catalog.trouble is None and list(catalog.entries()) == []
    assert catalog.method("slack.chat.postMessage") and catalog.by_tool_name("nope") is None
    assert not db.exists()


def test_what_was_written_is_read_back(db: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/B"}}, "additionalProperties": False}
    other = {"type": "object", "properties": {"back": {"$ref": "#/$defs/A"}}}
    method = operation(
        "things.change",
        http="POST",
        path="/v1/{+name}:change",
        risk=Risk.DELETE,
        scopes=("all",),
        properties={"name": {"type": "string"}, "body": {"$ref": "#/$defs/A"}},
        required=("name",),
        locations={"name": "path", "body": "whole"},
        body="json",
        unsupported="",
    )
    catalog = written(
        db, document(methods=(method, operation("things.list")), schemas={"A": schema, "B": other, "C": {}})
    )

    made = catalog.method("api.things.change")
    assert made.parameters == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "body": {"$ref": "#/$defs/A"}},
        "required": ["name"],
        "additionalProperties": False,
        "$defs": {"A": schema, "B": other},
    }
    assert (made.http, made.path, made.risk, made.scopes) == ("POST", "/v1/{+name}:change", Risk.DELETE, ("all",))
    assert (dict(made.locations), made.body, made.origin_id) == (
        {"name": "path", "body": "whole"},
        "json",
        "api.things.change",
    )
    assert "$defs" not in catalog.method("api.things.list").parameters
    service = catalog.service("api")
    assert list(service.methods) == ["things.change", "things.list"] and len(service.methods) == 2
    assert "things.list" in service.methods and "nope" not in service.methods
    assert {name: scope.risk for name, scope in service.scopes.items()} == {"all": Risk.DELETE, "see": Risk.READ}
    assert catalog.unlocks("api", "see") == {"things.list"} and catalog.unlocks("api", "all") == set(service.methods)
    assert catalog.outlines("api", "see") == (("things.list", "Does things.list.", Risk.READ),)
    assert [name for name, _, _ in catalog.outlines("api")] == ["things.change", "things.list"]
    found = catalog.by_tool_name(tool_name("api.things.change"))
    assert found is not None and found.id == "api.things.change"
    assert stat.S_IMODE(db.stat().st_mode) == 0o600


def test_names_are_exact_and_what_is_nearly_right_is_said(db: Path) -> None:
    catalog = written(db, document("calendar", "v3", "events.list", "events.insert"))
    for name, hint in (
        ("calendar.events.lst", "calendar.events.list"),
        ("Calendar.events.list", "calendar"),
        ("calender.events.list", "calendar"),
        ("events.list", ""),
        ("list", "full name"),
        ("calendar.events.list'; DROP TABLE method; --", "calendar.events.list"),
        ("calendar.\0", ""),
        ("\ud800.x", ""),
    ):
        with pytest.raises(UnknownName) as caught:
            catalog.method(name)
        assert hint in str(caught.value)
    with pytest.raises(UnknownName, match="There is no service"):
        catalog.service("CALENDAR")
    with pytest.raises(UnknownName):
        catalog.unlocks("calendar", "ALL")


def test_a_reader_sees_what_is_committed_and_nothing_before(db: Path) -> None:
    catalog = written(db, document("api", "v1", "one"))
    validated = catalog.validate(Call(service="api", method="one", arguments={}))
    before = catalog.generation
    with Writer(db) as writer:
        writer.put(replace(document("api", "v1", "two"), base_url="https://other.example.org"))
        assert list(catalog.service("api").methods) == ["one"]
        writer.commit()

    assert catalog.generation == before + 1
    assert list(catalog.service("api").methods) == ["two"]
    assert catalog.service("api").base_url == "https://other.example.org"
    with pytest.raises(UnknownName):
        catalog.validate(validated)
    with Writer(db) as writer:
        assert writer.remove("api") and not writer.remove("api")
        writer.commit()
    assert "api" not in catalog.services


def test_a_compiled_schema_isnt_used_for_what_replaced_it(db: Path) -> None:
    text = {"properties": {"a": {"type": "string"}}, "locations": {"a": "query"}}
    number = {"properties": {"a": {"type": "integer"}}, "locations": {"a": "query"}}
    catalog = written(db, document(methods=(operation("x", **text),)))
    catalog.validate(Call(service="api", method="x", arguments={"a": "1"}))
    written(db, document(methods=(operation("x", **number),)))
    with pytest.raises(InvalidInput, match="whole number"):
        catalog.validate(Call(service="api", method="x", arguments={"a": "1"}))


def test_an_import_that_stops_changes_nothing(db: Path) -> None:
    written(db, document("api", "v1", "one"))
    with pytest.raises(ZeroDivisionError), Writer(db) as writer:
        writer.put(document("api", "v1", "two"))
        writer.put(document("other"))
        raise ZeroDivisionError
    assert list(Catalog.open(db).service("api").methods) == ["one"] and "other" not in Catalog.open(db).services


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from mapper.store.catalog_writer import Writer
    from tests.mapper.test_store import document

    writer = Writer(Path(sys.argv[1]))
    for number in range(400):
        writer.put(document(f"api{number}", "v1", *(f"m{n}" for n in range(50))))
    writer.name_services()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_an_import_that_is_killed_changes_nothing(db: Path) -> None:
    catalog = written(db, document("api", "v1", "one"))
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(db)], cwd=root, check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL
    for each in (catalog, Catalog.open(db)):
        assert [name for name in each.services if name.startswith("api")] == ["api"]
    written(db, document("later"))  # the lock died with it
    assert "later" in catalog.services


def test_two_methods_of_one_name_take_nothing_of_the_document(db: Path) -> None:
    with Writer(db) as writer:
        writer.put(document("good"))
        with pytest.raises(InvalidInput, match="two methods are called 'x'"):
            writer.put(document("bad", methods=(operation("y"), operation("x"), operation("x"))))
        writer.commit()
    assert [name for name in Catalog.open(db).services if name in ("good", "bad")] == ["good"]


def test_equal_schemas_are_kept_once_and_lost_ones_are_dropped(db: Path) -> None:
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(50)}}
    method = (operation("x", properties={"body": {"$ref": "#/$defs/A"}}, locations={"body": "whole"}, body="json"),)

    def blobs() -> int:
        with sqlite3.connect(db) as connection:
            return int(connection.execute("SELECT count(*) FROM blob").fetchone()[0])

    versions = [document("api", f"v{n}", schemas={"A": schema}, methods=method) for n in range(1, 6)]
    written(db, *versions)
    assert blobs() == 2
    written(db, document("api", "v1", schemas={"A": {"type": "object"}}, methods=method))
    assert blobs() == 3
    with Writer(db) as writer:
        for name in writer.services_of("tests"):
            writer.remove(name)
        writer.commit()
    assert blobs() == 0


def test_two_providers_never_share_a_name_not_even_one_after_the_other(db: Path) -> None:
    others = document("api", "v1", "theirs", provider="others")
    catalog = written(db, document("api", "v1", "ours"))
    written(db, others, document("API", "v1", "loud", provider="others"), document("model", "2"))

    def named() -> dict[str, list[str]]:
        return {name: list(catalog.service(name).methods) for name in catalog.services if "api" in name.lower()}

    for _ in range(2):  # importing again gives the same names
        assert named() == {"api": ["ours"], "API-v1": ["loud"], "others-api-v1": ["theirs"]}
        assert "model-2" in catalog.services and "model" not in catalog.services
        written(db, others)
    with Writer(db) as writer:
        assert writer.services_of("others") == ("API-v1", "others-api-v1")
        writer.remove("api")
        writer.commit()
    # Accounts and grants of the removed service may still be there: its name isn't free.
    written(db, others)
    assert named() == {"API-v1": ["loud"], "others-api-v1": ["theirs"]}
    written(db, document("api", "v1", "ours"))
    assert named()["api"] == ["ours"]


# ---- what a service that comes with GoEx is never hidden by


def test_an_older_import_doesnt_shadow_what_came_with_goex_since(db: Path) -> None:
    with Writer(db) as writer:  # made when there was no slack
        writer.put(document("slack", "v1", "chat.postMessage"))
        writer.commit()
    catalog = Catalog.open(db)
    own = Catalog.bundled()

    assert catalog.service("slack") is own.service("slack") and catalog.services["slack"] is own.services["slack"]
    assert catalog.method("slack.chat.postMessage") is own.method("slack.chat.postMessage")
    assert catalog.unlocks("slack", "chat:write") == own.unlocks("slack", "chat:write")
    assert catalog.by_tool_name("slack-chat-postMessage") is own.method("slack.chat.postMessage")
    assert list(catalog.entries()) == [] and sum(name == "slack" for name in catalog.services) == 1
    assert any(finding.kind == "hidden" for finding in lint(catalog))
    assert all(found.description != "Does chat.postMessage." for found in search(catalog, "chat.postMessage"))


def test_tool_names_that_two_methods_share_lead_to_neither(db: Path) -> None:
    catalog = written(db, document("a", "v1", "b.c"), document("a-b", "v1", "c"))
    assert tool_name("a.b.c") == tool_name("a-b.c")
    assert catalog.by_tool_name("a-b-c") is None
    assert any(finding.kind == "same-tool-name" for finding in lint(catalog))


# ---- files that can't be used


def damaged(db: Path, how: str) -> None:
    written(db, document("api", "v1", *(f"m{n}" for n in range(200))))
    if how == "truncated":
        os.truncate(db, db.stat().st_size // 2)
    elif how == "garbage":
        db.write_bytes(os.urandom(8192))
    elif how == "text":
        db.write_text("[catalog]\n" * 500)
    elif how == "scribbled":
        data = bytearray(db.read_bytes())
        data[4096:] = bytes(len(data) - 4096)
        db.write_bytes(data)
    elif how == "newer":
        with sqlite3.connect(db) as connection:
            connection.execute(f"PRAGMA user_version={FORMAT + 1}")
    elif how == "foreign":
        db.unlink()
        with sqlite3.connect(db) as connection:
            connection.execute("CREATE TABLE cookies (value TEXT)")
        db.chmod(0o600)
    elif how == "open":
        db.chmod(0o644)
    elif how == "link":
        db.rename(db.with_name("elsewhere.db"))
        db.symlink_to("elsewhere.db")
    elif how == "folder":
        db.unlink()
        db.mkdir()
    elif how == "pipe":
        db.unlink()
        os.mkfifo(db)


HOW = ["truncated", "garbage", "text", "scribbled", "newer", "foreign", "open", "link", "folder", "pipe"]


@pytest.mark.parametrize("how", HOW)
def test_a_file_that_cant_be_used(db: Path, how: str) -> None:
    damaged(db, how)
    catalog = Catalog.open(db)

    with pytest.raises(StoreUnreadable) as caught:
        for method in catalog.service("api").methods:
            catalog.method(f"api.{method}")
    assert str(db) in caught.value.message and caught.value.next_step
    # What comes with GoEx works all the same, and what can't be read isn't there.
    assert catalog.validate(Call(service="slack", method="users.list", arguments={}))
    assert catalog.unlocks("matrix", "messages.write") == {"rooms.send"}
    assert set(Catalog.bundled().services) <= set(catalog.services)
    if how not in ("truncated", "scribbled"):
        assert catalog.trouble is not None and "api" not in catalog.services


@pytest.mark.parametrize("how", ["garbage", "text", "newer", "foreign", "open", "link", "folder", "pipe"])
def test_no_import_mends_or_replaces_such_a_file(db: Path, how: str) -> None:
    damaged(db, how)
    before = db.read_bytes() if db.is_file() else b""
    with pytest.raises(StoreUnreadable):
        written(db, document("other"))
    assert (db.read_bytes() if db.is_file() else b"") == before


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    made = tmp_path / "small"
    made.mkdir(mode=0o700)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(made)]).returncode:
        pytest.skip("may not mount here")
    yield made
    subprocess.run(["umount", "-l", str(made)], check=True)


def fill(folder: Path) -> Path:
    """Take all that is free on the file system."""
    with (folder / "fill").open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    return folder / "fill"


def large() -> Document:
    """A document that takes more than the cache of a connection."""
    texts = (os.urandom(4000).hex() for _ in range(1000))
    return document("large", "v1", methods=tuple(operation(f"m{n}", description=text) for n, text in enumerate(texts)))


def test_a_full_disk_isnt_damage(small: Path) -> None:
    db = small / "catalog.db"
    written(db, document("api"))
    with pytest.raises(StoreUnreadable, match="The disk is full") as while_it_is_put:
        written(db, large())
    filled = fill(small)
    with pytest.raises(StoreUnreadable, match=r"The disk (is full|failed to read or write)") as before:
        written(db, document("other"))
    filled.unlink()
    for caught in (while_it_is_put, before):
        assert "rm " not in caught.value.next_step and "space" in caught.value.next_step
    catalog = Catalog.open(db)
    assert catalog.service("api") and not {"large", "other"} & set(catalog.services)
    assert "other" in written(db, document("other")).services


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o604])
def test_a_file_that_a_group_or_others_can_open(db: Path, mode: int) -> None:
    written(db, document("api"))
    db.chmod(mode)
    with pytest.raises(StoreUnreadable, match="open to others"):
        Catalog.open(db).service("api")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user(db: Path) -> None:
    written(db, document("api"))
    os.chown(db, 4242, -1)
    for use in (lambda: Catalog.open(db).service("api"), lambda: written(db, document("other"))):
        with pytest.raises(StoreUnreadable, match="belongs to user 4242"):
            use()


def test_a_link_that_leads_nowhere_makes_no_file_there(db: Path, tmp_path: Path) -> None:
    db.symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(StoreUnreadable):
        written(db, document("api"))
    assert not (tmp_path / "elsewhere.db").exists()


def test_a_document_that_is_refused_leaves_nothing_and_the_others(db: Path) -> None:
    with Writer(db) as writer:
        with pytest.raises(InvalidInput):
            writer.put(document("bad", "v1", "one", "one"))
        writer.put(document("good"))
        writer.commit()
    catalog = Catalog.open(db)
    assert "good" in catalog.services and "bad" not in catalog.services
    assert {entry.service for entry in catalog.entries(main=False)} == {"good"}
    with closing(open_reading(db)) as connection:
        assert connection.execute("SELECT count(*) FROM document").fetchone() == (1,)


def test_parts_whose_credential_goes_elsewhere_are_not_one_service(db: Path) -> None:
    other = Placement(header="X-Key", format="{secret}")
    documents = [document("api", f"{part}_v1", part) for part in ("a", "b")]
    catalog = written(db, *documents, document("api", "c_v1", "c", placement=other))
    assert catalog.service("api").version == "a_v1+b_v1"
    assert catalog.service("api-c_v1").placement == other


def test_a_reader_can_not_write(db: Path) -> None:
    written(db, document("api"))
    with closing(open_reading(db)) as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("UPDATE method SET risk = 1")


def test_another_risk_of_an_entry_or_a_scope_is_another_entry(db: Path) -> None:
    catalog = written(db, document("api", "v1", "one"))
    first = catalog.entry_hash(["api.one"])
    for edit in ("UPDATE method SET risk = 2", "UPDATE scope SET risk = 4 WHERE name = 'see'"):
        with sqlite3.connect(db) as connection:
            connection.execute(edit)
        changed = catalog.entry_hash(["api.one"])
        assert changed != first
        first = changed


def test_a_row_that_was_edited_is_refused_or_said(db: Path) -> None:
    written(db, document("api", "v1", "one", "two"))
    with sqlite3.connect(db) as connection:
        connection.execute("UPDATE blob SET data = x'00ff00ff'")
    catalog = Catalog.open(db)
    with pytest.raises(StoreUnreadable, match="damaged"):
        catalog.method("api.one")


def test_an_unknown_risk_counts_as_deleting(db: Path) -> None:
    written(db, document("api", "v1", "one"))
    with sqlite3.connect(db) as connection:
        connection.execute("UPDATE method SET risk = 0")
        connection.execute("UPDATE scope SET risk = 99")
    catalog = Catalog.open(db)
    assert catalog.method("api.one").risk is Risk.DELETE and catalog.scope("api", "see").risk is Risk.DELETE


STRANGE = [
    ("DROP TABLE scope", "CREATE VIEW scope AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i id,"
     " i document_id, '' name, '' description, 1 risk, 0 virtual FROM n"),
    ("CREATE TRIGGER t AFTER INSERT ON scope BEGIN DELETE FROM owner; END",),
    ("CREATE VIRTUAL TABLE words USING fts5(text)",),
    ("ALTER TABLE service RENAME TO other",),
]  # fmt: skip


@pytest.mark.promise(12)
@pytest.mark.parametrize("statements", STRANGE, ids=["view", "trigger", "virtual", "lost"])
def test_a_file_with_more_or_less_than_our_tables(db: Path, statements: tuple[str, ...]) -> None:
    """A view could be one that never ends, and a trigger do something else than an import does."""
    written(db, document("api", "v1", "one"))
    with sqlite3.connect(db) as connection:
        for statement in statements:
            connection.execute(statement)
    catalog = Catalog.open(db)
    began = time.monotonic()
    with pytest.raises(StoreUnreadable) as caught:
        catalog.method("api.one")
    assert caught.value.next_step and time.monotonic() - began < 30
    with pytest.raises(StoreUnreadable):
        written(db, document("other"))


EDITS = [
    "UPDATE method SET scopes = '77'",
    "UPDATE method SET scopes = 'x'",
    "UPDATE method SET detail = (SELECT blob_id FROM schema)",
    "UPDATE method SET http = 'TRACE'",
    "UPDATE method SET body = 'xml'",
    "UPDATE method SET path = x'2f76'",
    "UPDATE method SET path = '/v1/../admin'",
    "UPDATE method SET path = 'v1'",
    "UPDATE method SET description = x'ff'",
    "UPDATE method SET description = cast(x'ff' AS text)",
    "UPDATE service SET placement = '{}{'",
    "UPDATE service SET placement = '[]'",
    """UPDATE service SET placement = '{"header": 5}'""",
    """UPDATE service SET placement = '{"header": "Host", "format": "x"}'""",
    "UPDATE service SET base_url = x'00'",
    "UPDATE service SET title = zeroblob(60000000)",
    "UPDATE service SET title = replace(hex(zeroblob(30000000)), '0', 'a')",
    "UPDATE scope SET name = x'00' WHERE name = 'see'",
    "UPDATE service SET provider = 'google'",
    "UPDATE service SET provider = 'google', base_url = 'https://googleapis.com.evil.example/v1'",
    "UPDATE service SET provider = 'google', base_url = 'http://www.googleapis.com/v1'",
]


@pytest.mark.sampled(10)
@pytest.mark.promise(12)
@pytest.mark.parametrize("edit", EDITS)
def test_what_no_import_writes_is_refused(db: Path, edit: str) -> None:
    method = operation("one", scopes=("see",), properties={"it": {"$ref": "#/$defs/It"}})
    written(db, document("api", "v1", methods=(method,), schemas={"It": {"type": "string"}}))
    with sqlite3.connect(db) as connection:
        connection.execute(edit)
    catalog = Catalog.open(db)
    with pytest.raises(StoreUnreadable, match="can't be read"):
        catalog.entry_hash(["api.one"])


@pytest.mark.parametrize("detail", [
    {"locations": {"it": "anywhere"}},
    {"locations": {"it": 5}},
    {"properties": {"it": {"$ref": "http://127.0.0.1:9/x"}}},
    {"properties": {"it": {"$ref": "file:///etc/passwd"}}},
    {"properties": {"it": {"anyOf": [{"type": "object", "properties": {"x": {"$dynamicRef": "http://127.0.0.1:9"}}}]}}},
    {"properties": {"it": 5}},
    {"properties": []},
    {"required": 5},
])  # fmt: skip
def test_arguments_that_no_import_writes_are_refused(db: Path, detail: dict[str, Any]) -> None:
    method = operation("one", **{"properties": {"it": {"type": "string"}}, "locations": {"it": "query"}, **detail})
    with Writer(db) as writer:
        number, data = pack({name: getattr(method, name) for name in ("locations", "properties", "required")})
        writer.put(document("api", "v1", methods=(operation("one"),)))
        writer.commit()
    with sqlite3.connect(db) as connection:
        connection.execute("INSERT INTO blob VALUES (?, ?)", (number, data))
        connection.execute("UPDATE method SET detail = ?", (number,))
    began = time.monotonic()
    with pytest.raises(StoreUnreadable, match="can't be read"):
        Catalog.open(db).validate(Call(service="api", method="one", arguments={"it": "a" * 40 + "b"}))
    assert time.monotonic() - began < 30


@pytest.mark.promise(12)
@pytest.mark.parametrize(
    ("http", "least"), [("GET", Risk.READ), ("POST", Risk.READ), ("PATCH", Risk.WRITE), ("PUT", Risk.WRITE),
                        ("DELETE", Risk.DELETE)],
)  # fmt: skip
def test_a_risk_below_what_http_says_isnt_believed(db: Path, http: str, least: Risk) -> None:
    written(db, document("api", "v1", methods=(operation("one", http=http, risk=Risk.READ),)))
    catalog = Catalog.open(db)
    assert catalog.method("api.one").risk is least
    assert [entry.risk for entry in catalog.entries()] == [least]
    assert catalog.outlines("api") == (("one", "Does one.", least),)


def test_a_lock_on_the_file_holds_nobody_up_for_long(db: Path) -> None:
    catalog = written(db, document("one"))
    with closing(sqlite3.connect(db, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode=DELETE")
        other.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        with pytest.raises(StoreUnreadable, match="being written"):
            catalog.service("one")
        assert time.monotonic() - began < 30
        other.execute("ROLLBACK")
    assert catalog.service("one")


def test_a_question_without_end_is_broken_off(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mapper.store.catalog_session.LONGEST", 0.3)
    catalog = written(db, document("api", "v1", *(f"m{number}" for number in range(200))))
    assert catalog.store is not None
    began = time.monotonic()
    with pytest.raises(StoreUnreadable, match="interrupted"), catalog.store._reading() as connection:
        assert connection is not None
        connection.execute("SELECT count(*) FROM method a, method b, method c, method d, method e").fetchone()
    assert time.monotonic() - began < 30
    assert len(catalog.service("api").methods) == 200  # and the next one is answered


def test_a_file_that_is_put_in_its_place_or_taken_away_is_seen(db: Path, tmp_path: Path) -> None:
    catalog = written(db, document("one"))
    assert "one" in catalog.services
    other = tmp_path / "other.db"
    written(other, document("two"))
    other.rename(db)
    assert "two" in catalog.services and "one" not in catalog.services
    db.unlink()
    assert "two" not in catalog.services and catalog.trouble is None


def test_while_another_import_writes(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = written(db, document("one"))
    connect = sqlite3.connect
    monkeypatch.setattr("mapper.store.database.sqlite3.connect", lambda *a, **k: connect(*a, **{**k, "timeout": 0.1}))
    with Writer(db) as writer:
        writer.put(document("two"))
        assert "one" in catalog.services  # reading goes on
        with pytest.raises(StoreUnreadable, match="being written by another goex command"):
            Writer(db)


# ---- sizes and threads


def test_memory_and_time_stay_small(tmp_path: Path) -> None:
    """A process that opens 20,000 methods and looks at a few: measured on its own, from outside."""
    db = tmp_path / "catalog.db"
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string", "description": "d" * 80} for n in range(40)}}
    body = {"properties": {"body": {"$ref": "#/$defs/A"}}, "locations": {"body": "whole"}, "body": "json"}
    written(
        db,
        *(
            document(f"api{n}", methods=tuple(operation(f"m{m}", **body) for m in range(500)), schemas={"A": schema})
            for n in range(40)
        ),
    )
    program = """
        import json, sys, time
        from pathlib import Path
        from mapper.catalog import Catalog

        def resident():
            line = next(line for line in open("/proc/self/status") if line.startswith("VmRSS"))
            return int(line.split()[1])

        Catalog.bundled()
        before = resident()
        began = time.perf_counter()
        catalog = Catalog.open(Path(sys.argv[1]))
        catalog.method("api7.m3")
        cold = time.perf_counter() - began
        for service in list(catalog.services):
            if service.startswith("api"):
                catalog.unlocks(service, "all")
                for method in list(catalog.service(service).methods)[:100]:
                    catalog.method(f"{service}.{method}")
        print(json.dumps([cold, (resident() - before) / 1024]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(db)], capture_output=True, check=True)
    cold, megabytes = json.loads(done.stdout)
    assert cold < 0.2 and megabytes < 60, (cold, megabytes)


def test_threads_share_it(db: Path) -> None:
    catalog = written(db, *(document(f"api{n}", "v1", *(f"m{m}" for m in range(20))) for n in range(5)))
    wrong: list[BaseException] = []
    over = time.monotonic() + 2.0

    def read(number: int) -> None:
        try:
            while time.monotonic() < over:
                for each in range(5):
                    assert catalog.method(f"api{each}.m{number}").name == f"m{number}"
                    assert len(catalog.unlocks(f"api{each}", "all")) == 20
        except BaseException as error:  # told below
            wrong.append(error)

    def write() -> None:
        while time.monotonic() < over:
            written(db, *(document(f"api{n}", "v1", *(f"m{m}" for m in range(20))) for n in range(5)))

    threads = [threading.Thread(target=read, args=(n,)) for n in range(4)] + [threading.Thread(target=write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[0]


# ---- searching and linting


def test_searching(db: Path) -> None:
    catalog = written(
        db,
        document("diary", "v3", "pages.insertLeaf", "pages.list", "acl.insert"),
        document("diary", "v2", "pages.insertLeaf"),
        document("attic", "v1", methods=(operation("upload", unsupported="bytes"),)),
    )

    def ids(text: str, limit: int = 20) -> list[str]:
        return [one.id for one in search(catalog, text, limit=limit)]

    assert ids("insertLeaf")[:2] == ["diary.pages.insertLeaf", "diary-v2.pages.insertLeaf"]
    assert ids("PAGES.insertleaf")[0] == "diary.pages.insertLeaf"
    assert ids("api.pages.list")[0] == "diary.pages.list"  # as its provider calls it
    assert "diary.pages.list" in ids("list the pages of my diary")
    assert ids("post a slack message", 1) == ["slack.chat.postMessage"]
    assert search(catalog, "attic.upload")[0].unsupported == "bytes"
    assert len(ids("pages", 2)) <= 2 and search(catalog, "zzzzqqq") == ()
    for words in ("", "   ", "!!", "\0"):
        with pytest.raises(InvalidInput):
            search(catalog, words)
    assert len(search(catalog, "event " * 5000 + "x" * 100_000)) <= 20
    search(catalog, "%_'\"; DROP TABLE method; --")
    assert "diary" in catalog.services


def test_searching_what_comes_with_goex_without_a_file(db: Path) -> None:
    assert search(Catalog.open(db), "postMessage")[0].id == "slack.chat.postMessage"
    assert search(Catalog.open(db), "create a github issue", limit=3)
    assert not db.exists()


def test_linting(db: Path) -> None:
    catalog = written(
        db,
        document(
            "odd",
            scopes=(*SCOPES, DocumentScope(name="blank", description="")),
            methods=(
                operation("silent", description=""),
                operation("twin", path="/same"),
                operation("other", path="/same"),
                operation("asks", http="POST"),
                operation("writes", risk=Risk.WRITE),
                operation("upload", unsupported="bytes"),
            ),
            schemas={"Bad": {"type": "string", "minLenght": 3}},
        ),
        document("empty", methods=()),
    )
    found = {(finding.kind, finding.name) for finding in lint(catalog)}
    assert found == {
        ("no-description", "odd.silent"),
        ("same-path", "odd.twin"),
        ("risk", "odd.writes"),
        ("unsupported", "odd.upload"),
        ("no-scope-description", "odd: blank"),
        ("idle-scope", "odd: blank"),
        ("idle-scope", "empty: all"),
        ("idle-scope", "empty: see"),
        ("no-methods", "empty"),
        ("schema", "odd: Bad"),
    } | {(finding.kind, finding.name) for finding in lint(Catalog.bundled())}
    assert {finding.name for finding in lint(catalog, "empty")} == {"empty", "empty: all", "empty: see"}
    with pytest.raises(UnknownName):
        list(lint(catalog, "nope"))
