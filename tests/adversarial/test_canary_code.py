"""The canary of test_canary.py, while code runs that a model could have written, and after: the credential is looked
for where the code is, in what it is told and says, and in what its end leaves. The bait is found there each time."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.canary_scene import Scene, scene_fixture  # noqa: F401  a fixture
from tests.adversarial.echo_service import CA, EchoService, echoing
from tests.support.daemon import APPROVAL_PASSPHRASE
from tests.support.journey import Journey

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can look into every process and container"),
]

# What it was told is in its memory, in a file, and in its output; then it waits for an answer that is held.
HELD = (
    "first = send(BAIT)",
    'with open("/tmp/told", "w") as file: file.write(first + json.dumps(dict(os.environ)))',
    "print(first, flush=True)",
    'print(send("hold " + BAIT))',
)


@pytest.fixture
def elsewhere() -> Iterator[EchoService]:
    """Another server, whose address no rule has."""
    with echoing() as made:
        yield made


def outcome(finished: pb.Finished) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(finished.action.outcome_json)
    return made


def told(finished: pb.Finished, journey: Journey) -> list[bytes]:
    """All that a client hears of an action."""
    events = [event.SerializeToString() for event in journey.seen]
    return [finished.SerializeToString(), finished.action.outcome_json.encode(), *events]


def run(scene: Scene, *lines: str, account: str = "work") -> tuple[pb.Finished, Journey]:
    journey = Journey(scene.daemon, scene.program(*lines, account=account), token=scene.agent)
    finished = journey.approve()
    return finished, journey


@pytest.mark.promise(53)
def test_nowhere_while_a_program_runs(scene: Scene) -> None:
    with scene.held(scene.program(*HELD)) as (journey, container):
        hunt = scene.hunt(scene.bait)
        scene.container_is_clean(container)
        assert scene.service.got[-1].headers["authorization"] == f"Bearer {scene.canary}", "it is used at this moment"
        scene.files_are_clean()
        scene.service.release()
        finished = journey.finished()
    assert finished.action.state == "done", finished
    assert "redacted" in outcome(finished)["stdout"] or "*" * 8 in outcome(finished)["stdout"], "the echo came"
    scene.clean(hunt.pieces(*told(finished, journey)), "what is told of it", scene.bait)
    scene.files_are_clean()


@pytest.mark.parametrize("coding", ["gzip", "deflate"])  # plain: above
def test_nowhere_in_what_a_program_is_answered(scene: Scene, coding: str) -> None:
    scene.service.coding = coding
    try:
        finished, journey = run(scene, "print(send(BAIT))")
    finally:
        scene.service.coding = "identity"
    assert outcome(finished)["stdout"].startswith("200 "), finished
    scene.clean(scene.hunt(scene.bait).pieces(*told(finished, journey)), "the outcome", scene.bait)
    scene.files_are_clean()


@pytest.mark.promise(53)
def test_nowhere_where_an_answer_leads(scene: Scene, elsewhere: EchoService) -> None:
    """To a place that no rule has: it isn't told, and nothing arrives there. And to one that a rule has: it is told,
    and the credential in its address isn't."""
    for place in (f"{elsewhere.url}/steal", f"{scene.service.url}/chat.postMessage"):
        scene.service.elsewhere = place
        try:
            finished, journey = run(scene, "print(BAIT, send(BAIT))")
        finally:
            scene.service.elsewhere = ""
        scene.clean(scene.hunt(scene.bait).pieces(*told(finished, journey)), f"what leads to {place}", scene.bait)
    assert elsewhere.got == []
    direct, _ = run(
        scene,
        f'try: urllib.request.urlopen("{elsewhere.url}/x")',
        "except OSError as error: print(error)",
    )
    assert direct.action.state == "done"
    assert elsewhere.got == []
    scene.files_are_clean()


@pytest.mark.promise(53)
def test_nowhere_after_a_program_crashed(scene: Scene) -> None:
    """It asks for a core dump, and for all that the interpreter says at its end."""
    finished, journey = run(
        scene,
        "import faulthandler, resource, signal, sys",
        "faulthandler.enable()",
        "kept = send(BAIT)",
        "print(kept, flush=True)",
        'os.chdir("/tmp")',
        "try: resource.setrlimit(resource.RLIMIT_CORE, (-1, -1))",
        "except (OSError, ValueError) as error: print(error, flush=True)",
        "os.kill(os.getpid(), signal.SIGSEGV)",
    )
    assert finished.action.state != "done", finished
    assert "Segmentation fault" in outcome(finished).get("stderr", ""), outcome(finished)
    scene.clean(scene.hunt(scene.bait).pieces(*told(finished, journey)), "what is told of it", scene.bait)
    assert not list(Path("/").glob("core*"))
    scene.files_are_clean()


@pytest.mark.promise(53)
def test_nowhere_in_an_exception_of_a_program(scene: Scene) -> None:
    """All variables of every frame, as tools that report errors print them."""
    finished, journey = run(
        scene,
        "def fail(said):",
        "    raise RuntimeError(said)",
        "try:",
        "    fail(send(BAIT))",
        "except RuntimeError as error:",
        "    import traceback, sys",
        "    frames = traceback.TracebackException.from_exception(error, capture_locals=True)",
        "    print(''.join(frames.format()), repr(error), vars(), file=sys.stderr)",
        "    raise",
    )
    assert finished.action.state != "done", finished
    scene.clean(scene.hunt(scene.bait).pieces(*told(finished, journey)), "what is told of it", scene.bait)
    scene.files_are_clean()


@pytest.mark.promise(53)
def test_nowhere_after_the_gateway_was_killed_under_a_program(scene: Scene) -> None:
    with scene.held(scene.program(*HELD)) as (journey, _):
        os.kill(scene.gateway, signal.SIGSEGV)  # what would dump core, if anything could
        finished = journey.finished()
        scene.service.release()
    assert finished.action.state in ("unknown", "partial", "failed", "done"), finished
    scene.clean(scene.hunt(scene.bait).pieces(*told(finished, journey)), "what is told of it", scene.bait)
    assert not list(Path("/").glob("core*"))
    scene.files_are_clean()


@pytest.mark.promise(55)
def test_nowhere_where_a_program_reads_it_from_a_file(scene: Scene) -> None:
    """The account's file has the canary; the program's has a placeholder in its stead, which the gateway knows."""
    file = f"[login]\nuser = {scene.bait.tokens['plain']}\ntoken = [[secret:{scene.canary}]]\n"
    put = pb.VaultPutRequest(
        service="slack", account="filed", format="file", base_url=scene.service.url, private=True, ca_pem=CA.pem,
        secret=file.encode(), passphrase=APPROVAL_PASSPHRASE, file_name="login.ini", file_variable="LOGIN_FILE",
    )  # fmt: skip
    scene.daemon.person("VaultPut", put)
    lines = (
        'said = open(os.environ["LOGIN_FILE"]).read()',
        'os.environ["GOEX_TOKEN_SLACK"] = said.rpartition("token = ")[2].strip()',
        'print("user" in said, BAIT, flush=True)',
        *HELD,
    )
    before = len(scene.service.got)
    with scene.held(scene.program(*lines, account="filed")) as (journey, container):
        hunt = scene.hunt(scene.bait)
        scene.container_is_clean(container, "environment", "memory", "mounted filesystems", "inspect")
        scene.service.release()
        finished = journey.finished()
    assert finished.action.state == "done", finished
    used = [one.headers["authorization"] for one in scene.service.got[before:]]
    assert used == [f"Bearer {scene.canary}"] * 2
    scene.clean(hunt.pieces(*told(finished, journey)), "what is told of it", scene.bait)
    scene.files_are_clean()
