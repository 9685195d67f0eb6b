"""MongoDB's errors, said in GoEx's words: which is which, and that none of them quotes what the server quoted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

import pytest
from pymongo import errors

from policies.errors import Conflict, GoexError, InvalidInput, Unavailable, Unsupported
from runtimes.mongo.backend import CommitUnknown, Duplicate, Facts, Transient, Vanished
from runtimes.mongo.errors import commit_failed, translated
from runtimes.mongo.extjson import encode
from runtimes.mongo.job import Budget, now
from runtimes.mongo.operations import Write
from runtimes.mongo.records import Change
from runtimes.mongo.wire import WireBackend, WireUnit, _refusal, view_reads
from runtimes.sql.contract import Limits
from runtimes.sql.reads_through import ANY

SAID = "E11000 duplicate key error collection: shop.people index: mail_1 dup key: { mail: 'hunter2@example.org' }"


def failure(code: int, *labels: str, **details: Any) -> errors.OperationFailure:
    return errors.OperationFailure(SAID, code, {"errmsg": SAID, "errorLabels": list(labels), **details})


def lost(*labels: str) -> errors.AutoReconnect:
    return errors.AutoReconnect("hunter2", {"errorLabels": list(labels)})


BULK: dict[str, Any] = {"writeErrors": [{"code": 11000, "errmsg": SAID, "keyPattern": {"mail": 1}}]}
UNCONFIRMED: dict[str, Any] = {"writeErrors": [], "writeConcernErrors": [{"code": 64, "errmsg": SAID}]}
CASES: dict[str, tuple[errors.PyMongoError, bool, bool, type[GoexError]]] = {
    "a key that is taken": (errors.DuplicateKeyError(SAID, 11000, {"keyPattern": {"mail": 1}}), False, True, Duplicate),
    "a key that is taken, of many": (errors.BulkWriteError(BULK), True, True, Duplicate),
    "a write that nobody confirmed": (errors.BulkWriteError(UNCONFIRMED), False, True, Vanished),
    "a write that timed out": (errors.WTimeoutError(SAID, 64, {}), False, True, Vanished),
    "rolled back": (failure(112, "TransientTransactionError"), True, True, Transient),
    "lost in a transaction": (lost("TransientTransactionError"), True, True, Transient),
    "lost while writing": (lost(), False, True, Vanished),
    "lost while reading": (lost(), False, False, Unavailable),
    "nobody there": (errors.ServerSelectionTimeoutError("hunter2"), False, True, Unavailable),
    "too slow": (failure(50), False, False, Conflict),
    "somebody holds it": (failure(112), False, True, Conflict),
    "not allowed": (failure(13), False, False, Unsupported),
    "wrong password": (failure(18), False, False, Unavailable),
    "the validator": (failure(121), True, True, InvalidInput),
    "an id that is changed": (failure(66), True, True, InvalidInput),
    "not in a transaction": (failure(263), True, True, Unsupported),
    "anything else": (failure(2, codeName="BadValue"), False, False, InvalidInput),
}


@pytest.mark.parametrize("name", CASES)
def test_an_error_is_what_it_is_and_quotes_nothing(name: str) -> None:
    error, transaction, writes, kind = CASES[name]
    found = translated(error, transaction=transaction, writes=writes)
    assert type(found) is kind or (kind in (Conflict, Unavailable) and isinstance(found, kind))
    assert "hunter2" not in str(found) and found.message.endswith(".")
    if isinstance(found, Duplicate):
        assert found.index == "mail"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (failure(251, "TransientTransactionError"), Transient),
        (lost("UnknownTransactionCommitResult"), CommitUnknown),
        (failure(64, "UnknownTransactionCommitResult"), CommitUnknown),
        (failure(50), CommitUnknown),  # never taken for a rollback
    ],
)
def test_a_commit_that_failed(error: errors.PyMongoError, kind: type[GoexError]) -> None:
    with pytest.raises(kind) as raised:
        commit_failed(error)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("collection", {}, ""),
        ("collection", {"validator": {"a": 1}, "changeStreamPreAndPostImages": {"enabled": True}}, ""),
        ("collection", {"capped": True, "size": 4096}, "capped"),
        ("collection", {"encryptedFields": {}}, "encrypted"),
        ("timeseries", {"timeseries": {"timeField": "t"}}, "time series"),
        ("view", {"viewOn": "orders", "pipeline": []}, "view"),
        ("something new", {}, "plain collection"),
    ],
)
def test_collections_whose_documents_could_not_be_put_back(kind: str, options: dict[str, Any], says: str) -> None:
    assert (says in _refusal(kind, options)) if says else _refusal(kind, options) == ""


def test_a_clustered_collection_whose_documents_expire_is_told_as_one() -> None:
    listed = [{"name": "o", "options": {"clusteredIndex": {}, "expireAfterSeconds": 60}}, {"name": "p", "options": {}}]
    client = MagicMock()
    client.get_database.return_value.list_collections.return_value = listed
    found = WireBackend(client, "shop", Facts(transactions=True, version="8.0.0"), Limits()).collections()
    assert (found["o"].expires, found["p"].expires) == (True, False)


class _Shards(WireUnit):
    """Of a sharded collection: two of its documents have one `_id`."""

    def __init__(self) -> None:
        pass

    def find(self, *arguments: Any, **named: Any) -> Iterator[bytes]:
        yield from (encode({"_id": 1, "shard": shard}) for shard in "ab")


def test_documents_of_one_id_are_left_alone() -> None:
    write = Write(collection="o", filter={}, many=True)
    with pytest.raises(Conflict, match="found twice"):
        Budget(rows=5, most=1000, rules={}).matched(_Shards(), write)
    change = Change(collection="o", id=encode({"_id": 1}), before=None, after=None)
    with pytest.raises(Conflict, match="found twice"):
        now(_Shards(), [change])


def test_what_the_definition_of_a_view_names() -> None:
    stages = [
        {"$lookup": {"from": "b", "pipeline": [{"$unionWith": "c"}], "as": "x"}},
        {"$facet": {"one": [{"$unionWith": {"coll": "d", "pipeline": []}}], "two": [{"$graphLookup": {"from": "e"}}]}},
        {"$lookup": {"pipeline": [{"$documents": []}], "as": "y"}},
    ]
    assert view_reads({"viewOn": "a", "pipeline": stages}) == {"a", "b", "c", "d", "e"}
    assert ANY in view_reads({"viewOn": "a", "pipeline": [{"$lookup": {"from": {"db": "far", "coll": "b"}}}]})
