"""`goex eval export` over a real journal: what was approved, corrected and denied, and nothing of the person's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, decide

pytestmark = pytest.mark.docker

CANARIES = ("Canary 9f3e in quotation", "zkanari@corp.example", "#zkanari-room", "zkanarisecret", "zkanari-account")


@pytest.fixture(scope="module")
def decided() -> Iterator[Daemon]:
    """Three mappings of a service that nobody answers for: approved, denied, and another reading chosen."""
    with Daemon() as daemon:
        request = pb.VaultPutRequest(
            service="slack", account="zkanari-account", secret=b"xoxb-zkanarisecret", base_url="http://127.0.0.1:9",
            private=True, passphrase=APPROVAL_PASSPHRASE,
        )  # fmt: skip
        daemon.person("VaultPut", request)
        approved = ask(daemon, 'send slack message "Canary 9f3e in quotation" to #zkanari-room', 1)
        decide(daemon, approved.asked())
        approved.finished()
        denied = ask(daemon, 'send slack message "zkanari@corp.example has zkanarisecret" to #zkanari-room', 1)
        decide(daemon, denied.asked(), approve=False, reason="zkanarisecret is nobody's business")
        assert denied.finished().action.state == "denied"
        chosen = ask(daemon, "list the channels on slack for zkanarisecret", 2)
        decide(daemon, chosen.asked())
        chosen.finished()
        Journey(daemon, pb.ExecuteRequest(intent="send slack message"), person=True).finished()  # nobody decides
        yield daemon


def ask(daemon: Daemon, words: str, choice: int) -> Journey:
    """Map the words, and choose one of the readings that were shown."""
    shown = daemon.actions("Map", pb.MapRequest(intent=words), socket=daemon.user_socket)
    assert len(shown.candidates) >= choice, shown
    return Journey(daemon, pb.ExecuteRequest(intent=words, choice=choice), person=True)


def exported(daemon: Daemon, *options: str) -> list[dict[str, Any]]:
    done = daemon.goex("eval", "export", *options)
    assert done.returncode == 0, done.stderr
    for canary in CANARIES:
        assert canary.lower() not in (done.stdout + done.stderr).lower()
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_approved_and_corrected_mappings_are_exported_without_what_is_the_persons(decided: Daemon) -> None:
    found = {one["label"]: one for one in exported(decided, "--with-answer", "100")}
    assert set(found) == {"approved", "corrected"}
    approved = found["approved"]
    assert approved["methods"] == ["slack.chat.postMessage"]
    assert approved["question"] == "send slack message <text_1> to <name_1>"
    assert '"arguments": {"channel": "<name_1>", "text": "<text_1>"}' in approved["cot_answer"]
    (documents,) = approved["context"]["sentences"]
    quoted = approved["cot_answer"].split("##begin_quote## ")[1].split(" ##end_quote##")[0]
    assert quoted in approved["oracle_context"]
    assert approved["oracle_context"] in documents and len(documents) == 5
    corrected = found["corrected"]
    assert corrected["rejected_methods"] and corrected["rejected_methods"] != corrected["methods"]


def test_denied_ones_are_negatives_only_when_asked_for(decided: Daemon) -> None:
    (denied,) = (one for one in exported(decided, "--denied") if one["label"] == "denied")
    assert "cot_answer" not in denied
    assert "<text_1>" in denied["rejected_answer"]


def test_a_share_goes_without_the_right_document(decided: Daemon) -> None:
    held = [one["oracle_context"] in one["context"]["sentences"][0] for one in exported(decided, "--with-answer", "50")]
    assert sorted(held) == [False, True]
    assert not any(
        one["context"]["sentences"][0] for one in exported(decided, "--with-answer", "0", "--distractors", "0")
    )


def test_equal_seeds_give_equal_files(decided: Daemon, tmp_path: Path) -> None:
    first = exported(decided, "--seed", "7")
    assert exported(decided, "--seed", "7") == first
    file = tmp_path / "tuning.jsonl"
    done = decided.goex("eval", "export", "--seed", "7", "--out", str(file), "--json")
    assert json.loads(done.stdout) == {"examples": 2, "left_out": 0, "file": str(file)}
    assert file.stat().st_mode & 0o777 == 0o600
    assert [json.loads(line) for line in file.read_text().splitlines()] == first


def test_the_journal_holds_what_the_export_leaves_out(decided: Daemon) -> None:
    """The control: the canaries are there to be found."""
    rows = decided.person("Log", pb.LogRequest(limit=1000)).rows
    text = "".join(row.facts_json for row in rows)
    assert CANARIES[0] in text
    assert "zkanarisecret" in text


def test_an_agents_socket_has_no_journal(decided: Daemon) -> None:
    import grpc

    with pytest.raises(grpc.RpcError) as caught:
        decided.call(decided.agent_socket, "Person", "Log", pb.LogRequest())
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("options", [("--with-answer", "101"), ("--distractors", "21"), ("--out", "/nowhere/at/all")])
def test_bad_options_name_the_next_step(decided: Daemon, options: tuple[str, str]) -> None:
    done = decided.goex("eval", "export", *options, "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["problem"]["next_step"]
