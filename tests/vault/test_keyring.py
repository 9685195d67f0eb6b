"""The keyring: a real gnome-keyring on a session bus of its own, and every way in which it can fail.

Each case has an environment of its own, since the bus is found by environment; with a bus it runs
`tests/vault/keyring_probe.py` beside it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.vault import keyring_probe
from vault import keyring_child
from vault.keyring_child import Refused, choose

ALT_INSTALLED = find_spec("keyrings") is not None and find_spec("keyrings.alt") is not None
PROBE = Path(keyring_probe.__file__)

needs_gnome = pytest.mark.skipif(
    shutil.which("gnome-keyring-daemon") is None or shutil.which("dbus-run-session") is None,
    reason="gnome-keyring and dbus-run-session are not installed",
)


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment with a home of its own, and without any desktop."""
    for name in ("home", "run"):
        (tmp_path / name).mkdir(mode=0o700)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "DBUS_SESSION_BUS_ADDRESS": f"unix:path={tmp_path}/no-bus-here",
    }


def probe(env: dict[str, str], what: str, *, timeout: float = 60, session: str = "") -> dict[str, Any]:
    """What came of one thing that is done with the keyring."""
    return probes(env, [what], timeout=timeout, session=session)[what]


def probes(
    env: dict[str, str], what: list[str], *, timeout: float = 60, session: str = ""
) -> dict[str, dict[str, Any]]:
    """What came of each, under `session` (a shell prelude) on a fresh bus if it is given. The environment of what asks
    the keyring is that of its parent, whichever process that is."""
    if not session:
        with patch.dict(os.environ, env, clear=True):
            return {each: keyring_probe.done(each, timeout) for each in what}
    env = {name: value for name, value in env.items() if name != "DBUS_SESSION_BUS_ADDRESS"}
    command = [
        "dbus-run-session",
        "--",
        "sh",
        "-c",
        session + '; "$@"; result=$?; kill -9 $ring; exit $result',
        "sh",
        *(sys.executable, str(PROBE), str(timeout), *what),
    ]
    done = subprocess.run(command, env=env, capture_output=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return dict(zip(what, map(json.loads, done.stdout.splitlines()[-len(what) :]), strict=True))


RING = "gnome-keyring-daemon --foreground --components=secrets"
UNLOCKED = f"printf 'a login password' | {RING} --unlock >/dev/null 2>&1 & ring=$!; sleep 1"
# The login collection is made with a password by one daemon, and found locked by the next.
LOCKED = UNLOCKED + f"; kill $ring; wait $ring; {RING} </dev/null >/dev/null 2>&1 & ring=$!; sleep 1"
FROZEN = UNLOCKED + "; kill -STOP $ring"
# Somebody shows the unlock dialog, and the person isn't there.
PROMPTER = """
import sys, time
from jeepney import DBusAddress, new_method_call
from jeepney.io.blocking import open_dbus_connection
bus = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
connection = open_dbus_connection()
connection.send_and_get_reply(new_method_call(bus, "RequestName", "su", ("org.gnome.keyring.SystemPrompter", 0)))
time.sleep(60)
"""


@needs_gnome
def test_a_vault_keyed_by_a_real_keyring(home: dict[str, str]) -> None:
    found = probes(home, ["whole", "look", "missing"], session=UNLOCKED)
    assert found["whole"]["error"] == ""
    assert found["look"]["name"] == "Secret Service"
    assert (found["missing"]["error"], found["missing"]["exit"]) == ("KeyringKeyMissing", "SEALED")


def test_a_keyring_that_isnt_used_isnt_looked_into(home: dict[str, str]) -> None:
    null = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
    assert probe({**home, **null}, "look")["error"] == "KeyringPlaintext"


@pytest.mark.promise(31)
@needs_gnome
def test_a_locked_keyring(home: dict[str, str]) -> None:
    both = probes(home, ["establish", "look"], session=LOCKED)
    found = both["establish"]
    assert (found["error"], found["exit"]) == ("KeyringLocked", "SEALED")
    assert "unlock" in found["next"]
    assert found["took"] < 60
    assert both["look"]["error"] == "KeyringLocked"


@needs_gnome
def test_an_unlock_dialog_that_nobody_answers(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "prompter.py").write_text(PROMPTER)
    dialog = f"{sys.executable} {tmp_path}/prompter.py & dialog=$!; sleep 1"
    found = probe(home, "establish", timeout=3, session=f'{dialog}; {LOCKED}; ring="$ring $dialog"')
    assert (found["error"], found["exit"]) == ("KeyringLocked", "SEALED")
    assert 3 <= found["took"] < 60
    assert "wasn't unlocked within 3 seconds" in found["message"]


@needs_gnome
def test_a_frozen_keyring(home: dict[str, str]) -> None:
    """The daemon is stopped: it is there, and never answers."""
    found = probe(home, "establish", timeout=2, session=FROZEN)
    assert (found["error"], found["exit"]) == ("KeyringHung", "UNAVAILABLE")
    assert 2 <= found["took"] < 60


def test_no_bus(home: dict[str, str]) -> None:
    found = probe(home, "establish")
    # Where the plaintext package is installed it offers itself when nothing better is there: refused just the same.
    error = "KeyringPlaintext" if ALT_INSTALLED else "KeyringAbsent"
    assert (found["error"], found["exit"]) == (error, "UNAVAILABLE")
    assert "passphrase" in found["next"]


@pytest.mark.parametrize(
    ("backend", "error"),
    [
        ("keyring.backends.null.Keyring", "KeyringPlaintext"),
        ("keyring.backends.fail.Keyring", "KeyringAbsent"),
        ("no.such.module.Keyring", "KeyringAbsent"),
    ],
)
def test_backends_that_keep_nothing(home: dict[str, str], backend: str, error: str) -> None:
    assert probe({**home, "PYTHON_KEYRING_BACKEND": backend}, "establish")["error"] == error


def configured(home: dict[str, str], tmp_path: Path, module: str, source: str) -> None:
    """A keyring that the person's own configuration names and brings along."""
    place = tmp_path / "brought"
    file = place.joinpath(*module.split(".")).with_suffix(".py")
    file.parent.mkdir(parents=True)
    file.write_text(source)
    config = Path(home["HOME"]) / ".config" / "python_keyring"
    config.mkdir(parents=True)
    (config / "keyringrc.cfg").write_text(f"[backend]\ndefault-keyring={module}.Keyring\nkeyring-path={place}\n")


IN_A_FILE = """
import json, pathlib
from keyring.backend import KeyringBackend
FILE = pathlib.Path.home() / "plain.json"
class Keyring(KeyringBackend):
    priority = 9
    def get_password(self, service, username):
        return json.loads(FILE.read_text()).get(username) if FILE.exists() else None
    def set_password(self, service, username, password):
        FILE.write_text(json.dumps({username: password}))
    def delete_password(self, service, username):
        FILE.unlink()
"""


@pytest.mark.promise(31)
@pytest.mark.skipif(ALT_INSTALLED, reason="the real package is tested below")
def test_a_plaintext_file_is_refused_and_nothing_is_written(home: dict[str, str], tmp_path: Path) -> None:
    configured(home, tmp_path, "keyrings.alt.plain", IN_A_FILE)
    found = probe(home, "establish")
    assert (found["error"], found["exit"]) == ("KeyringPlaintext", "UNAVAILABLE")
    assert "keyrings.alt.plain.Keyring" in found["message"]
    assert not (Path(home["HOME"]) / "plain.json").exists()


def test_an_unknown_keyring_is_refused_by_name(home: dict[str, str], tmp_path: Path) -> None:
    configured(home, tmp_path, "homemade.ring", IN_A_FILE)
    found = probe(home, "establish")
    assert found["error"] == "KeyringUnknown"
    assert "homemade.ring.Keyring" in found["message"]
    assert not (Path(home["HOME"]) / "plain.json").exists()


@pytest.mark.skipif(not ALT_INSTALLED, reason="keyrings.alt isn't installed; its stand-in is tested above")
def test_the_real_plaintext_package(home: dict[str, str]) -> None:
    backend = {"PYTHON_KEYRING_BACKEND": "keyrings.alt.file.PlaintextKeyring"}
    assert probe({**home, **backend}, "establish")["error"] == "KeyringPlaintext"


def test_a_keyring_that_hangs_is_killed_with_its_children(home: dict[str, str], tmp_path: Path) -> None:
    marker = tmp_path / "pids"
    source = f"""
import os, pathlib, subprocess, time
sleeper = subprocess.Popen(["sleep", "600"])
pathlib.Path({str(marker)!r}).write_text(f"{{os.getpid()}} {{sleeper.pid}}")
time.sleep(600)
"""
    configured(home, tmp_path, "slow.ring", source)
    found = probe(home, "establish", timeout=2)
    assert (found["error"], found["exit"]) == ("KeyringHung", "UNAVAILABLE")
    assert 2 <= found["took"] < 60
    for pid in marker.read_text().split():
        for _ in range(6_000):
            state = _state(pid)
            if state in ("", "Z"):
                break
            time.sleep(0.05)
        assert state in ("", "Z"), f"process {pid} is still there"


def test_a_hanging_keyrings_escaped_child_holds_nobody_up(home: dict[str, str], tmp_path: Path) -> None:
    """It left the process group, and keeps the pipe open."""
    source = 'import subprocess, time\nsubprocess.Popen(["sleep", "300"], start_new_session=True)\ntime.sleep(600)\n'
    configured(home, tmp_path, "slow.ring", source)
    found = probe(home, "establish", timeout=2)
    assert found["error"] == "KeyringHung"
    assert 2 <= found["took"] < 60


@pytest.mark.parametrize(
    "noise", ["print('{}')", "print('not json')", "import sys; sys.exit(3)", "import os; os.abort()"]
)
def test_a_helper_that_dies_or_babbles(home: dict[str, str], tmp_path: Path, noise: str) -> None:
    configured(home, tmp_path, "odd.ring", f"{noise}\nraise SystemExit(0)")
    assert probe(home, "establish")["error"] == "KeyringError"


def test_the_key_is_in_no_argument_and_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from vault import keyring_client
    from vault.errors import KeyringError
    from vault.secret import Secret

    seen: list[Any] = []
    real = subprocess.Popen

    def spy(command: list[str], **options: Any) -> Any:
        seen.append((command, {**os.environ, **(options.get("env") or {})}))
        return real([sys.executable, "-c", "import sys; print(len(sys.stdin.read()))"], **options)

    monkeypatch.setattr(subprocess, "Popen", spy)
    key = Secret(bytes(range(32)))
    with pytest.raises(KeyringError):
        keyring_client.store("goex", "vault x", key, timeout=20)
    assert len(seen) == 1
    assert key.reveal().hex() not in repr(seen)
    assert bytes(range(32)).hex() == key.reveal().hex()  # the planted copy would have been found
    assert "-I" in seen[0][0]


# ---- which backend is used: a pure choice ----


def backend(name: str, *members: object) -> Any:
    module, _, klass = name.rpartition(".")
    made: Any = type(klass, (), {"__module__": module})()
    made.backends = list(members)
    return made


SECURE = "keyring.backends.SecretService.Keyring"
ALT = "keyrings.alt.file.PlaintextKeyring"
NULL = "keyring.backends.null.Keyring"
FAIL = "keyring.backends.fail.Keyring"
CHAIN = "keyring.backends.chainer.ChainerBackend"


@pytest.mark.parametrize("name", sorted(keyring_child.SECURE))
def test_known_backends_are_used(name: str) -> None:
    ring = backend(name)
    assert choose(ring) is ring


@pytest.mark.parametrize("name", sorted(keyring_child.SECURE))
def test_known_backends_are_there_under_these_names(name: str) -> None:
    """A name that no class has would let its keyring be refused as unknown."""
    module, _, klass = name.rpartition(".")
    if find_spec(module) is None:
        pytest.skip(f"{module} isn't in this version of keyring")
    try:
        assert isinstance(getattr(import_module(module), klass), type)
    except ImportError as error:  # macOS's own needs macOS to be loaded at all
        assert module.endswith("macOS")
        found = find_spec(module)
        assert found is not None
        assert found.origin is not None
        assert f"class {klass}(" in Path(found.origin).read_text(), error


def test_of_a_chain_the_secure_member_is_used_alone() -> None:
    ring = backend(SECURE)
    assert choose(backend(CHAIN, backend(ALT), backend("x.Y"), ring)) is ring


@pytest.mark.parametrize(
    ("ring", "status"),
    [
        (backend(ALT), "plaintext"),
        (backend("keyrings.alt.file.EncryptedKeyring"), "plaintext"),
        (backend(NULL), "plaintext"),
        (backend(FAIL), "absent"),
        (backend(CHAIN), "absent"),
        (backend(CHAIN, backend(FAIL)), "absent"),
        (backend(CHAIN, backend(ALT), backend(NULL)), "plaintext"),
        (backend(CHAIN, backend("x.Y"), backend(ALT)), "plaintext"),
        (backend(CHAIN, backend(CHAIN, backend(SECURE))), "unknown"),
        (backend("x.Y"), "unknown"),
        (backend("keyring.backends.SecretService.Keyring.Inner"), "unknown"),
        (backend("keyring.backends.SecretService.NotKeyring"), "unknown"),
    ],
)
def test_everything_else_is_refused(ring: Any, status: str) -> None:
    with pytest.raises(Refused) as caught:
        choose(ring)
    assert caught.value.status == status


def _state(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
