"""What passkeys signed is in the journal, and whoever has an export can check it: a changed byte shows."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import goex.journal.verify as verify
from goex.rpc import goex_pb2 as pb
from tests.support.authenticator import Authenticator, Page, decoded, encoded
from tests.support.daemon import Daemon
from tests.support.journey import Journey, as_the_person_sees, shell

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def exported(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal with two passkeys, a yes once, a standing one, presence, and a removal."""
    page, key, second = Page(daemon), Authenticator(), Authenticator("EdDSA")
    folder = tmp_path_factory.mktemp("work")
    folder.chmod(0o777)
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
    token = daemon.add_agent("bot")
    page.add(key)
    added = page.add(second, by=key, name="phone")
    for width, by in (("once", key), ("session", second)):
        journey = Journey(daemon, shell(folder, f"echo {width} > x"), token=token)
        page.decide(page.signed(page.yes(as_the_person_sees(daemon, journey.asked()), width=width), by))
        journey.finished()
    page.confirm("", key)
    page.remove(added.id, key)
    made = tmp_path_factory.mktemp("export") / "journal.jsonl"
    done = daemon.goex("log", "--export", str(made))
    assert done.returncode == 0, done.stderr
    return made


def remade(exported: Path, to: Path, change: Callable[[list[dict[str, Any]]], object]) -> Path:
    """The export with a change, and every hash made anew: what whoever can write the file (or has the vault's key) can
    do."""
    first, *rows, end = [json.loads(line) for line in exported.read_text().splitlines()]
    change(rows)
    last = verify.GENESIS
    for number, row in enumerate(rows, 1):
        row["number"], row["previous"] = number, last
        body = [row[name] for name in ("number", "at", "action", "agent", "kind", "from", "to")]
        facts = json.dumps(row["facts"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        text = json.dumps([*body, facts], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        last = row["hash"] = hashlib.sha256(bytes.fromhex(last) + text.encode()).hexdigest()
        row.pop("facts_text", None)
    first["head"] = end["head"] = {"number": len(rows), "hash": last}
    end["rows"] = len(rows)
    lines = [json.dumps(value, separators=(",", ":")) + "\n" for value in (first, *rows)]
    end["sha256"] = hashlib.sha256("".join(lines).encode()).hexdigest()
    to.write_text("".join(lines) + json.dumps(end, separators=(",", ":")) + "\n")
    return to


def checked(path: Path) -> verify.Checked:
    with path.open("rb") as file:
        return verify.check(file)


def signed(rows: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(row for row in rows if row["kind"] == kind and "assertion" in row["facts"])


@pytest.mark.promise(88)
def test_the_daemon_verifies_them(daemon: Daemon, exported: Path) -> None:
    found = daemon.person("VerifyLog", pb.VerifyLogRequest())
    assert found.good, found.problem
    assert found.signed == 5
    said = daemon.goex("log", "--verify").stdout
    assert "5 rows are signed by passkeys" in said


@pytest.mark.promise(88)
def test_an_export_verifies_elsewhere(exported: Path, tmp_path: Path) -> None:
    """With a copy of the one file, run by Python alone, nothing of GoEx in reach."""
    found = checked(exported)
    assert (found.signed, found.unchecked, len(found.signers)) == (5, 0, 2)
    alone = tmp_path / "verify.py"
    alone.write_bytes(Path(verify.__file__).read_bytes())
    done = subprocess.run(
        [sys.executable, "-I", str(alone), str(exported)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "5 rows are signed by passkeys: pk-" in done.stdout


@pytest.mark.promise(88)
def test_without_the_package_it_says_so(exported: Path, tmp_path: Path) -> None:
    alone = tmp_path / "verify.py"
    alone.write_bytes(Path(verify.__file__).read_bytes())
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(alone), str(exported)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr
    assert "5 signatures couldn't be checked" in done.stdout


@pytest.mark.promise(88)
def test_a_selection_says_what_it_couldnt_check(daemon: Daemon, exported: Path, tmp_path: Path) -> None:
    made = tmp_path / "some.jsonl"
    assert daemon.goex("log", "--export", str(made), "--kind", "grant").returncode == 0
    found = checked(made)
    assert (found.signed, found.unchecked) == (0, 2)


@pytest.mark.promise(88)
def test_any_flipped_byte_is_found(exported: Path, tmp_path: Path) -> None:
    """In each field of each assertion, though every hash is made anew: what was signed can't be."""
    names = ("client_data", "authenticator_data", "signature", "credential_id", "statement", "passkey", "rp_id")
    assert checked(remade(exported, tmp_path / "same", lambda rows: None)).signed == 5  # the control
    for kind in ("grant", "presence", "passkey-add", "passkey-remove"):
        for name in names:

            def flip(rows: list[dict[str, Any]], kind: str = kind, name: str = name) -> None:
                said = signed(rows, kind)["facts"]["assertion"]
                raw = bytearray(decoded(said[name]) if name not in ("statement", "passkey", "rp_id") else b"")
                if raw:
                    raw[len(raw) // 2] ^= 1
                    said[name] = encoded(bytes(raw))
                else:
                    at = len(said[name]) // 2
                    said[name] = said[name][:at] + chr(ord(said[name][at]) ^ 1) + said[name][at + 1 :]

            with pytest.raises(verify.Altered):
                checked(remade(exported, tmp_path / "bent", flip))


def widened(rows: list[dict[str, Any]]) -> None:
    signed(rows, "grant")["facts"]["grants"][0]["width"] = "permanent"


def other_plan(rows: list[dict[str, Any]]) -> None:
    action = signed(rows, "grant")["action"]
    next(row for row in rows if row["kind"] == "assess" and row["action"] == action)["facts"]["digest"] = "0" * 64


def other_action(rows: list[dict[str, Any]]) -> None:
    grants = [row for row in rows if row["kind"] == "grant" and "assertion" in row["facts"]]
    one, other = (row["facts"]["assertion"] for row in grants)
    grants[0]["facts"]["assertion"], grants[1]["facts"]["assertion"] = other, one


def used_twice(rows: list[dict[str, Any]]) -> None:
    row = signed(rows, "presence")
    rows.insert(rows.index(row) + 1, json.loads(json.dumps(row)))


def another_key(rows: list[dict[str, Any]]) -> None:
    added = [row for row in rows if row["kind"] == "passkey-add"]
    one, other = (row["facts"] for row in added)
    one["public_key"], one["passkey"]["public_key"] = other["public_key"], other["passkey"]["public_key"]


def unregistered(rows: list[dict[str, Any]]) -> None:
    rows.remove(next(row for row in rows if row["kind"] == "passkey-add"))


def removed_before(rows: list[dict[str, Any]]) -> None:
    """The second one's yes after its removal."""
    yes = [row for row in rows if row["kind"] == "grant" and "assertion" in row["facts"]][1]
    gone = signed(rows, "passkey-remove")
    rows.remove(gone)
    rows.insert(rows.index(yes), gone)


@pytest.mark.promise(88)
def test_a_passkey_that_no_other_signed_is_named(daemon: Daemon, exported: Path, tmp_path: Path) -> None:
    def unsign(rows: list[dict[str, Any]]) -> None:
        del signed(rows, "passkey-add")["facts"]["assertion"]

    done = daemon.goex("log", "--verify-export", str(remade(exported, tmp_path / "bent", unsign)))
    assert done.returncode == 3
    assert "Not proven: Row " in done.stdout and "(phone) though no other passkey signed that" in done.stdout
    assert daemon.goex("log", "--verify-export", str(exported)).returncode == 0  # the control


@pytest.mark.promise(88)
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (widened, "grants more than the passkey approved"),
        (other_plan, "isn't what the passkey approved"),
        (other_action, "the passkey approved"),
        (used_twice, "was used before|its count goes back"),
        (another_key, "isn't what the passkey signed"),
        (unregistered, "isn't registered"),
        (removed_before, "isn't registered|count goes back"),
    ],
)
def test_rows_say_what_was_signed(
    exported: Path, tmp_path: Path, change: Callable[[list[dict[str, Any]]], None], says: str
) -> None:
    with pytest.raises(verify.Altered, match=says):
        checked(remade(exported, tmp_path / "bent", change))
