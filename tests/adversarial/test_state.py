"""Attacks on the state folder by whoever writes its files, against a real daemon; each with its control.

The control takes away what the vault knows of the log, and nothing else: then the same files give back what was taken.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.state_scene import FORGERIES, LOG, Scene, forget, placed, put, record, refusal, runs_unasked
from tests.support.daemon import VAULT_PASSPHRASE

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    place = tmp_path_factory.mktemp("state")
    folder = tmp_path_factory.mktemp("folder")
    yield record(place, folder)


@pytest.mark.promise(7)
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FORGERIES)
def test_it_is_refused_and_gives_nothing_back(scene: Scene, name: str) -> None:
    forgery = FORGERIES[name]
    with placed(scene.today) as daemon:
        daemon.stop()
        forgery.forge(scene, daemon.state_dir)
        daemon.start()
        unlock = pb.VaultUnlockRequest(passphrase=VAULT_PASSPHRASE)
        assert refusal(lambda: daemon.person("VaultUnlock", unlock)) == "journal-behind"
        assert daemon.person("Status", pb.StatusRequest()).vault == "sealed"
        assert not forgery.won(scene, daemon)
        verified = daemon.goex("log", "--verify")
        assert verified.returncode != 0, verified.stdout
        assert "the vault knows" in verified.stdout + verified.stderr


def test_what_was_refused_changed_nothing_and_the_newest_files_are_taken(scene: Scene) -> None:
    with placed(scene.yesterday) as daemon:
        daemon.stop()
        (daemon.state_dir / "vault.db").write_bytes((scene.today / "vault.db").read_bytes())
        daemon.start()
        unlock = pb.VaultUnlockRequest(passphrase=VAULT_PASSPHRASE)
        assert refusal(lambda: daemon.person("VaultUnlock", unlock)) == "journal-behind"
        daemon.stop()
        put(
            daemon.state_dir, {name: (scene.today / name).read_bytes() for name in LOG if (scene.today / name).exists()}
        )
        daemon.start()
        daemon.unlock()
        assert daemon.goex("log", "--verify").returncode == 0
        assert not runs_unasked(scene, daemon)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", FORGERIES)
def test_the_control_without_what_the_vault_knows(scene: Scene, name: str) -> None:
    forgery = FORGERIES[name]
    with placed(scene.today) as daemon:
        daemon.stop()
        forget(daemon.state_dir)
        forgery.forge(scene, daemon.state_dir)
        daemon.start()
        daemon.unlock()
        assert forgery.won(scene, daemon)
