"""Attacks on what comes between a question and its yes, or between a yes and its use. Each is refused by the daemon
that is shipped, and succeeds in its control, a daemon with the one defence taken away."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.grant_scene import CA, Scene, call, scene, serving, several
from tests.mapper.importing.openapi_documents import document
from tests.support.daemon import APPROVAL_PASSPHRASE
from tests.support.journey import decide

pytestmark = pytest.mark.docker

Attack = Callable[[Scene, Path], bool]
_numbers = count(1)


def imported(scene: Scene, folder: Path, name: str, paths: dict[str, str]) -> None:
    """Import a document whose methods, by their names, read these paths."""
    found = {path: {"get": {"operationId": id, "summary": "Get it", "responses": {}}} for id, path in paths.items()}
    file = folder / f"{name}.json"
    file.write_text(json.dumps(document(found)))
    done = scene.daemon.goex("catalog", "import", "openapi", str(file), "--name", name)
    assert done.returncode == 0, done.stderr


def shop(scene: Scene, folder: Path) -> str:
    """A new service, as it was imported first, with an account."""
    name = f"shop{next(_numbers)}"
    imported(scene, folder, name, {"getNews": "/news", "getMore": "/more"})
    scene.daemon.person(
        "VaultPut",
        pb.VaultPutRequest(
            service=name, account="work", base_url=scene.service.url, private=True, ca_pem=CA.pem, secret=b"a-token",
            passphrase=APPROVAL_PASSPHRASE,
        ),
    )  # fmt: skip
    return name


def get(name: str, method: str = "getNews") -> pb.ExecuteRequest:
    return several(pb.Call(service=name, method=method, account="work", arguments_json="{}"))


def reached(scene: Scene, path: str) -> bool:
    return any(found == path for _, found, _ in scene.service.got)


def stands(scene: Scene, folder: Path, width: str, after: dict[str, str], used: str) -> bool:
    """A standing yes to what was shown, which a later document is put under before it comes."""
    name = shop(scene, folder)
    journey = scene.ask(get(name))
    asked = journey.asked()
    imported(scene, folder, name, after)
    try:
        decide(scene.daemon, asked, width=width)
    except grpc.RpcError:
        decide(scene.daemon, asked, approve=False)
    assert journey.finished().action.state == "denied"
    return scene.unasked(get(name, used)) and reached(scene, after[used])


def changed_for_good(scene: Scene, folder: Path) -> bool:
    return stands(scene, folder, "permanent", {"getNews": "/salaries", "getMore": "/more"}, "getNews")


def changed_for_the_session(scene: Scene, folder: Path) -> bool:
    return stands(scene, folder, "session", {"getNews": "/salaries", "getMore": "/more"}, "getNews")


def moved_account(scene: Scene, folder: Path) -> bool:
    """What was allowed on an account is used where that leads to later."""
    scene.allow(POST, "permanent")
    with serving() as elsewhere:
        try:
            lead(scene, elsewhere.url)
            return scene.unasked(POST) and bool(elsewhere.posted())
        finally:
            lead(scene, scene.service.url)


POST = several(call("slack.chat.postMessage", channel="C0ALL", text="hello"))


def moved_while_asked(scene: Scene, request: pb.ExecuteRequest, width: str) -> bool:
    """A standing yes for an account that leads elsewhere when it comes."""
    with serving() as elsewhere:
        asked = (journey := scene.ask(request)).asked()
        try:
            lead(scene, elsewhere.url)
            try:
                decide(scene.daemon, asked, width=width)
            except grpc.RpcError:
                decide(scene.daemon, asked, approve=False)
            journey.finished()
            return scene.unasked(POST) and bool(elsewhere.posted())
        finally:
            lead(scene, scene.service.url)


def moved_before_a_yes(scene: Scene, folder: Path) -> bool:
    return moved_while_asked(scene, POST, "permanent")


def moved_before_a_task(scene: Scene, folder: Path) -> bool:
    bounds = json.dumps({"channel": {"is": "C0ALL"}, "text": {"any": True}})
    line = pb.Allowance(service="slack", method="chat.postMessage", account="work", arguments_json=bounds, times=1)
    return moved_while_asked(scene, pb.ExecuteRequest(task=pb.Task(title="Tell", allows=[line])), "once")


def lead(scene: Scene, url: str) -> None:
    """Put another account in the place of the agent's."""
    scene.daemon.person(
        "VaultPut",
        pb.VaultPutRequest(
            service="slack", account="work", base_url=url, private=True, ca_pem=CA.pem, secret=b"another-token",
            replace=True, passphrase=APPROVAL_PASSPHRASE,
        ),
    )  # fmt: skip


ATTACKS: dict[str, Attack] = {
    "changed_for_good": changed_for_good,
    "changed_for_the_session": changed_for_the_session,
    "moved_account": moved_account,
    "moved_before_a_yes": moved_before_a_yes,
    "moved_before_a_task": moved_before_a_task,
}


@pytest.fixture(scope="module")
def control(sandbox_image: str) -> Iterator[Scene]:
    with scene("what was asked for", "grants that end") as made:
        yield made


@pytest.mark.promise(2, 20)
@pytest.mark.parametrize("name", ATTACKS)
def test_what_came_between_runs_unasked(shipped: Scene, tmp_path: Path, name: str) -> None:
    shipped.new_agent()
    assert not ATTACKS[name](shipped, tmp_path)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ATTACKS)
def test_control(control: Scene, tmp_path: Path, name: str) -> None:
    control.new_agent()
    assert ATTACKS[name](control, tmp_path)
