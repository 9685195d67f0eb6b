"""What is expensive and shared by the whole run: the sandbox image, the homeserver."""

from __future__ import annotations

import compileall
import gc
import importlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from mapper.importing import reader_process
from runtimes.turns import asking
from tests.services.postgres import Postgres, find_binaries
from tests.services.synapse import Synapse, find_python
from tests.support import command
from tests.support.daemon import Daemon
from tests.support.forks import ROOT, ForkServer, start_reader
from tests.support.shared import RUN

pytest_plugins = ["pytester", "tests.unit", "tests.reports", "tests.sampling"]
STARTED = reader_process.start
# No example fails because the machine was slow; whoever gives one a fixture knows that all of them share it.
UNCHECKED = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
settings.register_profile("busy", deadline=None, suppress_health_check=UNCHECKED)
settings.load_profile("busy")


def pytest_configure() -> None:
    """A shell ignores these for what it runs in the background, and every child of the tests would inherit that."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ[RUN] = tempfile.mkdtemp(prefix="goex-run-")
        for package in ("goex", "mapper", "policies", "runtimes", "vault"):  # the tests' processes write none
            compileall.compile_dir(ROOT / package, quiet=2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Whom a test worked for isn't whom the next one works for."""
    token = asking.set(())
    try:
        return (yield)
    finally:
        asking.reset(token)


def _compile_in_turns() -> None:
    """Where several processes take all tests, each begins elsewhere, and finds the rest compiled by the others."""
    worker, count = os.environ.get("PYTEST_XDIST_WORKER", "gw0"), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    found = sorted(ROOT.glob("tests/**/test_*.py"))
    if count == 1:
        return
    first = len(found) * int(worker.removeprefix("gw")) // count
    for path in (*found[first:], *found[:first]):
        with suppress(Exception, pytest.skip.Exception):  # pytest says what is wrong with it, in its turn
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Modules and thousands of tests are no garbage: none is looked for among them, neither now nor later. What they
    are compiled to is kept for other runs: compiling is most of what each process does here."""
    gc.disable()
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    try:
        if [Path(each).resolve() for each in session.config.args] == [ROOT / "tests"]:
            _compile_in_turns()
        return (yield)
    finally:
        sys.dont_write_bytecode = kept
        gc.freeze()
        gc.set_threshold(20_000)  # by Python's own, looking for garbage takes a twentieth of the time
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with a slow test first: processes take file by file, and a slow one at the end leaves the others idle."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_unconfigure() -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(os.environ.pop(RUN, ""), ignore_errors=True)


@pytest.fixture(
    params=[False, pytest.param(True, marks=[pytest.mark.thorough, pytest.mark.timeout(3600)])], ids=["some", "all"]
)
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether to try all that can be tried, or many times as much: then it is a test of `make thorough` alone."""
    return bool(request.param)


@pytest.fixture(scope="session", autouse=True)
def forked() -> Iterator[None]:
    """Daemons, commands and readers of documents are forks of processes that have loaded what they are made of."""
    with (
        ForkServer("daemon") as Daemon.forks,
        ForkServer("goex") as command.forks,
        ForkServer("reader") as readers,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(reader_process, "start", partial(start_reader, readers))
        yield
    Daemon.forks = command.forks = None


@pytest.fixture
def real_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents are read by processes that are started as a person's are."""
    monkeypatch.setattr(reader_process, "start", STARTED)


@pytest.fixture(scope="session")
def sandbox_image() -> str:
    """The content id of the `base` image, built when it isn't there. Fails without Docker."""
    from runtimes.sandbox import images

    return images.build("base")


@pytest.fixture(scope="session")
def code_image() -> str:
    """The content id of the image that programs for services run in, built when it isn't there."""
    from runtimes.sandbox import images

    return images.build("code")


@pytest.fixture(scope="session")
def synapse() -> Iterator[Synapse]:
    """A running homeserver, one for the whole run: tests make their own users and rooms in it."""
    python = find_python()
    if python is None:
        pytest.skip("no homeserver: set GOEX_SYNAPSE_PYTHON, or run make services")
    with Synapse(python) as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A running PostgreSQL, one for the whole run: tests make databases of their own in it, and never kill it."""
    if find_binaries() is None:
        pytest.skip("no PostgreSQL: run make services")
    with Postgres() as server:
        yield server
