"""What a call that waits for a passkey shows, and what confirming it covers.

A new field of such a call's request has to be added to `DECIDED`: as one that the person sees, or as a secret, which
`debug_redact` in the proto hides.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

import goex.daemon
from goex.daemon.waiting_calls import PasskeyDue, WaitingCalls, hides
from goex.engine.peers import Peer
from goex.json_text import json_lines
from goex.rpc import accounts_pb2, audit_pb2, databases_pb2, passkeys_pb2, reversions_pb2, rules_pb2, vault_pb2
from goex.rpc import goex_pb2 as pb
from policies.errors import InvalidInput

FILES = (accounts_pb2, audit_pb2, databases_pb2, passkeys_pb2, pb, reversions_pb2, rules_pb2, vault_pb2)
PEER = Peer(socket="user", uid=1, gid=1, pid=7, connection="c", terminal=None, program="x")

# Of each message in the request of a call that can wait: the texts that are shown, and the texts and bytes that aren't.
DECIDED: dict[str, tuple[str, str]] = {
    "AccountPlace": ("base_url origins ca_pem", ""),
    "AddAgentRequest": ("name", "passphrase"),
    "AddDatabaseRequest": ("name ca_pem", "url password passphrase"),
    "AddPairsRequest": ("name text proposal", "passphrase"),
    "AddPasskeyRequest": ("name credential_json", "passphrase assertion_json"),
    "Allowance": ("service method account arguments_json", ""),
    "ApplyRulesRequest": ("compared_with", "passphrase"),
    "ApplySuggestedRulesRequest": ("rules compared_with", "passphrase"),
    "AuthorizationServer": ("issuer authorization_endpoint token_endpoint device_endpoint revocation_endpoint", ""),
    "BackupRequest": ("path", "passphrase approval_passphrase"),
    "Call": ("service method arguments_json account", ""),
    "Calls": ("", ""),
    "ChangeApprovalRequest": ("", "current passphrase"),
    "CodeProgram": ("language program services methods profile again", ""),
    "ExecuteRequest": ("intent proposal database folder code_services key answer account", ""),
    "FilesProgram": ("folder language program undo preview more", ""),
    "LoginRequest": ("service account client_id scopes flow", "client_secret passphrase"),
    "LogoutRequest": ("service account", "passphrase"),
    "MongoProgram": ("database operations_json", ""),
    "PresentRequest": ("", "passphrase assertion_json"),
    "PutCredentialRequest": ("service account kind user", "secret passphrase"),
    "RemoveDatabaseRequest": ("name", "passphrase"),
    "RemovePairRequest": ("hash", "passphrase"),
    "RemovePasskeyRequest": ("id", "passphrase assertion_json"),
    "RestorePairsRequest": ("", "passphrase"),
    "RestoreRequest": ("path keyed_by", "backup_passphrase passphrase approval_passphrase"),
    "RetryPairRequest": ("hash", "passphrase"),
    "RevertRequest": ("action_id verb also key", ""),
    "RotateRequest": ("keyed_by", "passphrase current_passphrase approval_passphrase"),
    "RuleFile": ("name text", ""),
    "SetPolicyRequest": ("name policy table", "passphrase"),
    "SqlProgram": ("database statements policy undo", ""),
    "TablePolicy": ("table policy", ""),
    "Task": ("title agent", ""),
    "Terms": ("policy", ""),
    "VaultPutRequest": ("service account format base_url origins ca_pem file_name file_variable", "secret passphrase"),
    "VaultRemoveRequest": ("service account", "passphrase"),
    "WakeAgentRequest": ("agent", "passphrase"),
}
# Texts and bytes of any of the person's requests that are named like secrets, and are none.
NO_SECRETS = {
    "AccountPlace.base_url",  # one with a password in it is refused
    "AddPasskeyRequest.credential_json",  # a public key
    "AuthorizationServer.token_endpoint",
    "ExecuteRequest.code_services",
    "ExecuteRequest.key",  # the name of a request
    "RestoreRequest.keyed_by",
    "RevertRequest.key",
    "RotateRequest.keyed_by",
    "VaultInitRequest.keyed_by",
    "VaultPutRequest.base_url",
}
SOUNDS = re.compile("secret|pass|pwd|pin|token|code|key|assertion|credential|current|url", re.IGNORECASE)


def _asks(function: ast.AST, methods: dict[str, ast.AST]) -> bool:
    """Whether a call comes to a presence that can be confirmed by a passkey, by itself or by a method of its class."""
    for node in ast.walk(function):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        holder = node.func.value
        if node.func.attr in ("present", "_present") and all(keyword.arg != "waits" for keyword in node.keywords):
            return True
        if node.func.attr == "require" and isinstance(holder, ast.Attribute) and holder.attr == "waiting":
            return True
        own = isinstance(holder, ast.Name) and holder.id == "self" and methods.get(node.func.attr)
        if own and own is not function and _asks(own, methods):
            return True
    return False


def requests() -> set[str]:
    """The names of the requests of the calls that can wait, as the daemon's code has them."""
    found = set()
    for file in sorted(Path(goex.daemon.__file__).parent.glob("*.py")):
        for one in ast.walk(ast.parse(file.read_text())):
            if not isinstance(one, ast.ClassDef) or one.name == "PersonContext":
                continue
            methods: dict[str, ast.AST] = {
                each.name: each for each in one.body if isinstance(each, ast.AsyncFunctionDef | ast.FunctionDef)
            }
            for method in methods.values():
                assert isinstance(method, ast.AsyncFunctionDef | ast.FunctionDef)
                called = {each.id for each in method.decorator_list if isinstance(each, ast.Name)}
                if called & {"unary", "streaming"} and _asks(method, methods):
                    taken = method.args.args[1].annotation
                    assert isinstance(taken, ast.Attribute)
                    found.add(taken.attr)
    return found


def described(name: str) -> Descriptor:
    return descriptor_pool.Default().FindMessageTypeByName(f"goex.v1.{name}")  # type: ignore[no-any-return,no-untyped-call]


def within(names: set[str]) -> set[str]:
    """They, and the messages in them."""
    found: set[str] = set()
    wanted = set(names)
    while wanted:
        name = wanted.pop()
        found.add(name)
        wanted |= {field.message_type.name for field in described(name).fields if field.message_type} - found
    return found


@pytest.mark.promise(87)
def test_of_each_field_it_is_decided_whether_it_is_shown() -> None:
    found = {}
    for name in within(requests() | {"ExecuteRequest", "RevertRequest"}):
        shown, hidden = [], []
        for field in described(name).fields:
            assert field.enum_type is None, field.full_name  # shown as a number, which says nothing
            assert not (field.message_type and field.message_type.GetOptions().map_entry), field.full_name
            if field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
                (hidden if hides(field) else shown).append(field.name)
        found[name] = (" ".join(shown), " ".join(hidden))
    assert found == DECIDED


@pytest.mark.promise(87)
def test_what_is_named_like_a_secret_is_marked_as_one() -> None:
    """In all that a person's call can hold, not only in calls that wait today."""
    taken = {
        method.input_type.name
        for file in FILES
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }
    named = {
        f"{name}.{field.name}"
        for name in within(taken)
        for field in described(name).fields
        if field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
        and SOUNDS.search(field.name)
        and not field.GetOptions().debug_redact
    }
    assert named == NO_SECRETS


class Calls:
    """Calls that wait, at a clock that is set."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.waiting = WaitingCalls(lambda: self.now)

    def asked(self, request: Message, call: str = "Call", peer: Peer = PEER, **more: Any) -> passkeys_pb2.WaitingCall:
        """How a call is shown that is refused."""
        with pytest.raises(PasskeyDue) as refused:
            self.waiting.require(peer, "Doing this", call, request, **more)
        return next(one for one in self.waiting.open() if one.id == refused.value.difference[0])

    def signed(self, request: Message) -> dict[str, Any]:
        return self.waiting.statement(self.asked(request).id)

    def confirm(self, request: Message) -> None:
        self.waiting.confirm(self.signed(request))


@pytest.fixture
def calls() -> Calls:
    return Calls()


SERVER = accounts_pb2.AuthorizationServer(issuer="https://a.example", token_endpoint="https://a.example/token")
EVIL = accounts_pb2.AuthorizationServer(issuer="https://a.example", token_endpoint="https://evil.example/token")


@pytest.mark.promise(87)
def test_what_decides_is_shown_and_signed(calls: Calls) -> None:
    """Though its name holds a word like `token` or `key`."""
    for one, other, says in (
        (
            accounts_pb2.LoginRequest(server=SERVER),
            accounts_pb2.LoginRequest(server=EVIL),
            "https://evil.example/token",
        ),
        (vault_pb2.RotateRequest(keyed_by="keyring"), vault_pb2.RotateRequest(keyed_by="passphrase"), "passphrase"),
    ):
        assert says in calls.asked(other).request_json
        assert calls.signed(one)["request"] != calls.signed(other)["request"]


@pytest.mark.promise(87)
def test_no_secret_is_shown(calls: Calls) -> None:
    for name, (_, hidden) in DECIDED.items():
        for field in hidden.split():
            module = next(file for file in FILES if name in file.DESCRIPTOR.message_types_by_name)
            request = getattr(module, name)()
            kind = described(name).fields_by_name[field].type
            setattr(request, field, b"hunter2" if kind == FieldDescriptor.TYPE_BYTES else "hunter2")
            assert json.loads(calls.asked(request).request_json) == {field: "(not shown)"}


@pytest.mark.promise(87)
def test_a_secret_is_covered_though_it_isnt_shown(calls: Calls) -> None:
    """So whoever got a yes to one can't send another, and what is signed isn't the same."""
    one = vault_pb2.ChangeApprovalRequest(current="the present one", passphrase="the person's new one")
    other = vault_pb2.ChangeApprovalRequest(current="the present one", passphrase="an attacker's")
    assert calls.signed(one)["request"] == calls.signed(other)["request"]
    assert calls.signed(one)["whole"] != calls.signed(other)["whole"]
    calls.confirm(one)
    calls.asked(other)
    calls.waiting.require(PEER, "Doing this", "Call", one)  # the control


@pytest.mark.promise(87)
def test_what_is_signed_of_a_secret_says_nothing_to_whoever_guesses_it(calls: Calls) -> None:
    request = vault_pb2.ChangeApprovalRequest(current="guessed")
    assert calls.signed(request)["whole"] != Calls().signed(request)["whole"]


@pytest.mark.promise(87)
def test_what_is_said_in_other_words_is_covered_both_ways(calls: Calls) -> None:
    """The field itself, and what it led to when it was shown."""
    request = vault_pb2.RestoreRequest(path="/b")
    here = {"path": {"path": "/b", "sha256": "1"}}
    view = calls.asked(request, instead=here)
    assert json.loads(view.request_json) == here
    calls.waiting.confirm(calls.waiting.statement(view.id))
    calls.asked(request, instead={"path": {"path": "/b", "sha256": "2"}})
    calls.asked(vault_pb2.RestoreRequest(path="/c"), instead=here)
    calls.waiting.require(PEER, "Doing this", "Call", request, here)


HOSTILE = "permit (a);\n\u202e;)b( dibrof\n\u2066\u200bforbid (c);\x1b[2K"


@pytest.mark.promise(22, 87)
def test_each_text_is_shown_escaped_and_its_lines_are_lines(calls: Calls) -> None:
    """What is signed is the hash of the exact text."""
    rule = rules_pb2.RuleFile(name="m\u202eine", text=HOSTILE)
    view = calls.asked(rules_pb2.ApplyRulesRequest(files=[rule], compared_with="abc"))
    assert list(view.lines) == [
        "{",
        '  "compared_with": "abc",',
        '  "files": [',
        "    {",
        '      "name": "m\\u{202e}ine",',
        '      "text": (3 lines)',
        "       | permit (a);",
        "       | \\u{202e};)b( dibrof",
        "       | \\u{2066}\\u{200b}forbid (c);\\u{1b}[2K",
        "    }",
        "  ]",
        "}",
    ]
    assert json.loads(view.request_json)["files"][0]["text"] == HOSTILE
    assert hashlib.sha256(view.request_json.encode()).hexdigest() == view.request


@pytest.mark.promise(22, 87)
def test_what_is_done_is_named_escaped(calls: Calls) -> None:
    with pytest.raises(PasskeyDue):
        calls.waiting.require(PEER, "Adding a passkey for \u202egro.live", "Add", pb.AddAgentRequest())
    assert calls.waiting.open()[0].what == "Adding a passkey for \\u{202e}gro.live"


@pytest.mark.promise(22)
def test_no_text_poses_as_what_stands_around_it() -> None:
    for text in ('",', '"\n}', "\n  }\n]", "a\r\n", "(2 lines)", '\n"b": 1', "\\u{202e}", "\u2028x"):
        for one, other in (({"a": text, "b": 2}, {"a": "", "b": 2}), ([text, "x"], ["x", text]), ({text: 1}, {"a": 1})):
            assert json_lines(one) != json_lines(other)
        shown = json_lines({"a": text})
        assert [line[:2] for line in shown] == ["{", *["  "] * (len(shown) - 2), "}"]
        assert all(line.startswith("   | ") for line in shown[2:-1])
        assert all(len(line.splitlines()) <= 1 for line in shown)
    assert json_lines({"a": [], "b": {}, "c": [1, None, True]}) == [
        "{", '  "a": [],', '  "b": {},', '  "c": [', "    1,", "    null,", "    true", "  ]", "}",
    ]  # fmt: skip


@pytest.mark.promise(87)
def test_many_large_calls_are_still_one_reply(calls: Calls) -> None:
    for number in range(24):  # four bytes a character, twice: all of them would be too many for one reply
        last = calls.asked(rules_pb2.RuleFile(name=str(number), text="\U0001f600" * 190_000))
    assert calls.waiting.open()[-1].id == last.id
    assert sum(one.ByteSize() for one in calls.waiting.open()) < 32 * 2**20


@pytest.mark.promise(87)
def test_only_what_was_stated_is_confirmed(calls: Calls) -> None:
    request = pb.AddAgentRequest(name="mine")
    stated = calls.signed(request)
    for name in ("what", "by", "call", "request", "whole"):
        with pytest.raises(InvalidInput):
            calls.waiting.confirm({**stated, name: "other"})
    calls.asked(request, peer=replace(PEER, page_session="s"))
    calls.waiting.confirm(stated)
    calls.asked(request, call="Other")
    calls.waiting.require(PEER, "Doing this", "Call", request)
    calls.now += timedelta(minutes=6)
    assert not calls.waiting.open()
