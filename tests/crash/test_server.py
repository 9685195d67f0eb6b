"""The service is killed with -9 in the middle of a call, and of its undo: what is said of it is true, and nothing is
doubled. More of it in `make crash`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.rounds import CallsRounds
from tests.services.synapse import Synapse, find_python
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.docker, pytest.mark.synapse, pytest.mark.slow]

DELAYS = (0.0, 0.01, 0.03, 0.08)  # seconds after the request was written down


@pytest.fixture(scope="module")
def rounds() -> Iterator[CallsRounds]:
    """A homeserver of its own, since the others' must live."""
    python = find_python()
    if python is None:
        pytest.skip("no homeserver: set GOEX_SYNAPSE_PYTHON, or run make services")
    with Daemon() as daemon, Synapse(python) as server:
        yield CallsRounds(daemon, server)


@pytest.mark.parametrize("reverting", [False, True], ids=["a message", "its undo"])
def test_a_homeserver_that_is_killed(rounds: CallsRounds, reverting: bool, thorough: bool) -> None:
    for delay in DELAYS if thorough else [DELAYS[reverting]]:
        found = rounds.without_server(delay, reverting=reverting)
        assert found.problems == [], found
