"""The reversion set in a real daemon: derived, used, proven, strict, failed, altered, killed in the middle."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from goex.rpc import reversions_pb2 as rb
from tests.mapper.importing.undo_specs import document
from tests.runtimes.rest.support import TOKEN, Hit, serving
from tests.services.apis.notes import Notes
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, undo

pytestmark = pytest.mark.docker

REPLIES: dict[str, Any] = {
    "ListPairs": rb.ListPairsReply,
    "ShowPair": rb.ShowPairReply,
    "AddPairs": rb.AddPairsReply,
    "RemovePair": rb.RemovePairReply,
    "RestorePairs": rb.RestorePairsReply,
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notes]:
    made = Notes()
    with serving(made, tmp_path_factory.mktemp("service")):
        yield made


@pytest.fixture
def notes(service: Notes) -> Notes:
    """Two of them, at the same place for every test."""
    kept = {name: vars(service)[name] for name in ("url", "ca_pem", "lock")}
    vars(service).update(vars(Notes()) | kept)
    service.add(title="one", text="first")
    service.add(title="two")
    return service


def connect(daemon: Daemon, service: Notes) -> None:
    """Add an account of the notes."""
    daemon.person(
        "VaultPut",
        pb.VaultPutRequest(
            service="notes", account="mine", format="string", secret=TOKEN.encode(), private=True,
            ca_pem=service.ca_pem, base_url=service.url, passphrase=APPROVAL_PASSPHRASE,
        ),
    )  # fmt: skip


@contextmanager
def copy_of(home: Path) -> Iterator[Daemon]:
    """A daemon that goes on from what one has left that was stopped."""
    copy = Path(tempfile.mkdtemp(prefix="goex-t-", dir="/tmp"))
    shutil.copytree(home, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("run"))
    with Daemon(home=copy, init=False) as running:
        running.unlock()
        yield running


@pytest.fixture(scope="module")
def prepared(sandbox_image: str, service: Notes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What a daemon leaves that has the notes imported and an account of them."""
    file = tmp_path_factory.mktemp("imported") / "notes.json"
    file.write_text(json.dumps(document("notes")))
    with Daemon() as running:
        done = running.goex("catalog", "import", "openapi", str(file), "--name", "notes", "--json")
        assert done.returncode == 0, done.stderr
        connect(running, service)
        running.stop()
        yield running.home


@pytest.fixture
def fresh(prepared: Path, notes: Notes) -> Iterator[Daemon]:
    """A daemon of its own, with the notes imported and an account of them."""
    with copy_of(prepared) as running:
        yield running


def set_(daemon: Daemon, method: str, **facts: Any) -> Any:
    request = getattr(rb, f"{method}Request")(**facts)
    call = daemon.channel(daemon.user_socket).unary_unary(
        f"/goex.v1.Reversions/{method}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=REPLIES[method].FromString,
    )
    return call(request, timeout=300)


def pair_of(daemon: Daemon, call: str) -> rb.PairView:
    found: list[rb.PairView] = [one for one in set_(daemon, "ListPairs", of="notes").pairs if one.method == call]
    assert found, call
    return found[0]


def method(daemon: Daemon, origin: str) -> str:
    """The name of an operation like `PATCH /notes/{id}`."""
    with sqlite3.connect(daemon.state_dir / "catalog.db") as db:
        (name,) = db.execute("SELECT name FROM method WHERE origin_id = ?", (origin,)).fetchone()
    return str(name)


def patch(daemon: Daemon, **body: Any) -> pb.ExecuteRequest:
    return change(daemon, "PATCH /notes/{id}", {"id": "n1", "body": body})


def change(daemon: Daemon, origin: str, arguments: Any) -> pb.ExecuteRequest:
    call = pb.Call(service="notes", method=method(daemon, origin), arguments_json=json.dumps(arguments))
    return pb.ExecuteRequest(calls=pb.Calls(calls=[call]))


def done(daemon: Daemon, request: Any) -> pb.Finished:
    return Journey(daemon, request, person=True).approve()


@pytest.mark.promise(64)
def test_from_derived_to_proven_to_strict(fresh: Daemon, notes: Notes) -> None:
    before = notes.state()
    journey = Journey(fresh, patch(fresh, title="new"), person=True)
    asked = journey.asked()
    assert "derived from the service's document, unproven" in asked.undo_text
    assert asked.undo_class == "compensating"
    fresh.person("Decide", pb.DecideRequest(
        approval_id=asked.id, approve=True, width="once", digest=asked.digest, passphrase=APPROVAL_PASSPHRASE,
    ))  # fmt: skip
    assert journey.finished().action.state == "done"
    assert notes.notes["n1"]["title"] == "new"
    assert done(fresh, undo(journey.action_id)).action.state == "done"
    assert notes.state() == before

    name = f"notes.{method(fresh, 'PATCH /notes/{id}')}"
    view = pair_of(fresh, name)
    assert (view.source, view.standing, view.worked) == ("derived", "proven", 1)
    assert [(one.method, one.standing) for one in set_(fresh, "ListPairs").pairs] == [(name, "proven")]
    fresh.configure('[undo]\nstrict_agents = ["bot*"]\n')
    fresh.restart()
    assert pair_of(fresh, name).standing == "proven"
    assert set_(fresh, "ListPairs").strict == "bot*"
    token = fresh.add_agent("bot-1")
    again = Journey(fresh, patch(fresh, title="newer"), token=token)
    assert "is proven" in again.asked().undo_text  # it is asked for, not refused
    again.leave()
    refused = Journey(fresh, change(fresh, "POST /notes/{id}/archive", {"id": "n1"}), token=token).finished()
    assert refused.action.state == "denied"
    assert "isn't proven here" in refused.problem.message and "goex undo-pairs list" in refused.problem.message
    stuck = Journey(fresh, change(fresh, "POST /notes/{id}/share", {"id": "n1", "body": {"title": "x"}}), token=token)
    assert "can't be taken back" in stuck.finished().problem.message
    read = Journey(fresh, change(fresh, "GET /notes/{id}", {"id": "n1"}), token=token)
    assert read.asked().undo_class == "nothing"
    read.leave()
    assert [hit.method for hit in notes.writes()] == ["PATCH", "PATCH"]


@pytest.mark.promise(64)
def test_a_failure_is_recorded_and_seen_and_survives(fresh: Daemon, notes: Notes) -> None:
    archive = change(fresh, "POST /notes/{id}/archive", {"id": "n1"})
    first = Journey(fresh, archive, person=True)
    assert first.approve().action.state == "done", first.seen[-1]
    notes.override = lambda hit: (200, notes.notes["n1"]) if hit.path.endswith("unarchive") else None
    assert done(fresh, undo(first.action_id)).action.state != "done"
    name = f"notes.{method(fresh, 'POST /notes/{id}/archive')}"
    view = pair_of(fresh, name)
    assert view.standing == "failed" and "archived" in view.failure
    listed = fresh.goex("undo-pairs", "list", "notes", "--failed")
    assert view.hash[:12] in listed.stdout and "failed:" in listed.stdout
    fresh.kill()
    fresh.start()
    fresh.unlock()
    notes.override = lambda hit: None
    asked = Journey(fresh, change(fresh, "POST /notes/{id}/archive", {"id": "n2"}), person=True)
    question = asked.asked()
    assert question.undo_class == "irreversible"
    again = f"goex undo-pairs retry {view.hash[:12]}"
    assert again in question.undo_text
    asked.leave()
    refused = fresh.goex("undo", first.action_id)
    assert refused.returncode and again in refused.stderr


@pytest.mark.promise(64)
def test_a_pair_that_failed_is_used_again_when_the_person_says_so(fresh: Daemon, notes: Notes) -> None:
    archive = change(fresh, "POST /notes/{id}/archive", {"id": "n1"})
    first = Journey(fresh, archive, person=True)
    assert first.approve().action.state == "done", first.seen[-1]
    notes.override = lambda hit: (200, notes.notes["n1"]) if hit.path.endswith("unarchive") else None
    assert done(fresh, undo(first.action_id)).action.state != "done"
    notes.override = lambda hit: None
    hash = pair_of(fresh, f"notes.{method(fresh, 'POST /notes/{id}/archive')}").hash[:12]
    for wrong in (hash[:5], "0123456789ab", ""):
        ran = fresh.goex("undo-pairs", "retry", wrong)
        assert ran.returncode == 2 and "goex undo-pairs list --failed" in ran.stderr
    with fresh.terminal("undo-pairs", "retry", hash) as terminal:
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        terminal.expect(f"The undo pair {hash} is used again")
        assert terminal.wait() == 0
    assert hash not in fresh.goex("undo-pairs", "list", "notes", "--failed").stdout
    assert fresh.goex("log", "--verify").returncode == 0
    fresh.restart()
    asked = Journey(fresh, change(fresh, "POST /notes/{id}/archive", {"id": "n2"}), person=True)
    assert asked.asked().undo_class == "compensating"
    asked.leave()
    assert fresh.goex("undo-pairs", "retry", hash).returncode == 2


OWN = """
method = "notes.{patch}"
when = {{ id = "n*" }}
[undo]
restores = "body"
answered = true
pre = {{ method = "{get}", arguments = {{ id = "$request.id" }} }}
guard = {{ method = "{get}", arguments = {{ id = "$request.id" }} }}
verify = {{ method = "{get}", arguments = {{ id = "$request.id" }} }}
calls = [{{ method = "{patch}", arguments = {{ id = "$request.id" }} }}]
"""


def test_a_developers_pair_wins_and_an_altered_one_is_not_believed(fresh: Daemon, tmp_path: Path) -> None:
    text = OWN.format(patch=method(fresh, "PATCH /notes/{id}"), get=method(fresh, "GET /notes/{id}"))
    (tmp_path / "own.toml").write_text(text)
    added = set_(fresh, "AddPairs", name="own.toml", text=text, passphrase=APPROVAL_PASSPHRASE)
    assert [one.source for one in added.pairs] == ["developer"]

    def says() -> str:
        journey = Journey(fresh, patch(fresh, title="x"), person=True)
        told = journey.asked().undo_text
        journey.leave()
        return told

    assert "added by you, unproven" in says()
    fresh.stop()
    with sqlite3.connect(fresh.state_dir / "state.db") as db:
        db.execute("UPDATE pairs SET body = replace(body, 'n*', '*')")
    fresh.start()
    fresh.unlock()
    assert "altered" in set_(fresh, "ListPairs").trouble
    assert "altered" in says()  # neither the developer's nor the derived one is believed
    assert set_(fresh, "RestorePairs", passphrase=APPROVAL_PASSPHRASE).count == 1
    assert "added by you" in says()
    set_(fresh, "RemovePair", hash=added.pairs[0].hash, passphrase=APPROVAL_PASSPHRASE)
    assert "derived" in says()


HOLD = {
    "before the undo": ["GET"],
    "after the undo": ["GET", "PATCH"],
    "before the read-back": ["GET", "PATCH", "GET"],
}


@pytest.mark.sampled(1)
@pytest.mark.promise(65)
@pytest.mark.parametrize("where", sorted(HOLD))
def test_killed_in_the_middle_of_an_undo(where: str, fresh: Daemon, notes: Notes) -> None:
    """kill -9 of the daemon around the undo's request: settled at the next start, taken back once, recorded once."""
    before = notes.state()
    first = Journey(fresh, patch(fresh, title="new"), person=True)
    assert first.approve().action.state == "done", first.seen[-1]
    reached, go = threading.Event(), threading.Event()
    seen: list[str] = []

    def stops(hit: Hit) -> tuple[int, Any] | None:
        seen.append(hit.method)
        hold = {
            "before the undo": ["GET"],
            "after the undo": ["GET", "PATCH"],
            "before the read-back": ["GET", "PATCH", "GET"],
        }
        if seen == hold[where] and not reached.is_set():
            if where == "after the undo":
                notes.change("n1", **hit.body)
            reached.set()
            notes.lock.release()
            go.wait(300)
            notes.lock.acquire()
        return None

    notes.override = stops
    revert = Journey(fresh, undo(first.action_id), person=True)
    thread = threading.Thread(target=lambda: _quietly(revert), daemon=True)
    thread.start()
    assert reached.wait(300)
    fresh.kill()
    go.set()
    notes.override = lambda hit: None
    fresh.start()
    fresh.unlock()
    state = _settled(fresh, first.action_id)
    assert state == "undone"
    assert notes.state() == before
    view = pair_of(fresh, f"notes.{method(fresh, 'PATCH /notes/{id}')}")
    assert (view.standing, view.worked) == ("proven", 1)


def _quietly(journey: Journey) -> None:
    try:
        journey.approve()
    except Exception:
        return


def _settled(daemon: Daemon, id: str) -> str:
    journey = Journey(daemon, pb.ActionId(id=id), person=True)
    return journey.finished().action.state


def test_what_a_call_only_found_stays_and_undo_is_not_offered(fresh: Daemon, notes: Notes) -> None:
    """The document says 201 of what is made; the service finds a note of that title, and answers 200 with it."""

    def finds(hit: Hit) -> tuple[int, Any] | None:
        return (200, notes.notes["n1"]) if (hit.method, hit.path) == ("POST", "/notes") else None

    made = change(fresh, "POST /notes", {"body": {"title": "new", "text": "t"}})
    offered = done(fresh, made)
    assert offered.action.state == "done" and offered.action.can_undo
    notes.override = finds
    before = notes.state()
    found = done(fresh, change(fresh, "POST /notes", {"body": {"title": "one", "text": "t"}}))
    assert found.action.state == "done" and not found.action.can_undo
    assert "may have been there before" in json.loads(found.action.outcome_json)["summary"]
    refused = Journey(fresh, undo(found.action.id), person=True).finished()
    assert refused.action.state == "failed" and "may have been there before" in refused.problem.message
    assert notes.state() == before
    shown = fresh.goex("show", found.action.id)
    assert "goex undo" not in shown.stdout + shown.stderr
