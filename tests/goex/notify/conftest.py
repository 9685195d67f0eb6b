"""A daemon with a service that can be read and written, and a desktop for each notification server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from tests.acceptance.notes_service import CA, NotesService, serving
from tests.support import desktop as desktops
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.desktop import Desktop, Notifying
from tests.support.journey import decide
from tests.support.waiting import until


@pytest.fixture(scope="package")
def notes() -> Iterator[NotesService]:
    with serving() as running:
        yield running


@pytest.fixture(scope="package")
def daemon(notes: NotesService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon() as running:
        file = tmp_path_factory.mktemp("api") / "notes.yaml"
        file.write_text(notes.document())
        done = running.goex("catalog", "import", "openapi", str(file), "--json")
        assert done.returncode == 0, done.stderr
        put = pb.VaultPutRequest(
            service="team_notes", account="mine", format="string", secret=b"secret-of-notes", private=True,
            ca_pem=CA.pem, passphrase=APPROVAL_PASSPHRASE,
        )  # fmt: skip
        running.person("VaultPut", put)
        slack = pb.VaultPutRequest(service="slack", secret=b"xoxb-never-sent", passphrase=APPROVAL_PASSPHRASE)
        running.person("VaultPut", slack)
        yield running


@pytest.fixture(scope="package")
def token(daemon: Daemon) -> str:
    return daemon.add_agent("helper")


@pytest.fixture(scope="package", params=["xfce", "dunst"])
def desktop(request: pytest.FixtureRequest) -> Iterator[Desktop]:
    """One for each server, with the server running."""
    missing = [name for name in desktops.NEEDED if shutil.which(name) is None]
    if not desktops.program(request.param):
        missing.append(request.param)
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; {desktops.INSTALL}")
    with Desktop(request.param) as made:
        made.start_server()
        yield made


@pytest.fixture
def terminal(daemon: Daemon, tmp_path: Path) -> Iterator[Path]:
    """A terminal program that writes down what it is to run; this is the file that it writes."""
    with desktops.recording_terminal(tmp_path) as (words, written):
        daemon.configure(f"[notify]\nterminal = {json.dumps(words)}\n")
        yield written
        daemon.configure("")


@pytest.fixture
def notifying(daemon: Daemon, desktop: Desktop, terminal: Path) -> Iterator[Notifying]:
    with Notifying(daemon, desktop) as running:
        running.until("daemon", running=True)
        yield running
    for approval in daemon.person("Approvals", pb.ApprovalsRequest()).approvals:
        decide(daemon, approval, approve=False)
    until(lambda: not desktop.windows(), "an empty screen")
