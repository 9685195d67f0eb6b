"""A MongoDB in memory, behind the interface that the runtime uses, which can be made to fail at every step.

It has snapshots, write conflicts, unique indexes, transactions whose commit may be lost, all of BSON's types; of the
languages of filters and updates it knows what the tests speak. `tests/runtimes/mongo/test_backend.py` holds it to the
same contract as a server over the wire.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from bson import ObjectId
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.regex import Regex
from bson.timestamp import Timestamp

from policies.errors import Conflict, InvalidInput
from runtimes.mongo.backend import Collection, Duplicate, Facts, Transient
from runtimes.mongo.extjson import decode, encode, has_dollar, has_unset
from runtimes.mongo.operations import Read, equal_id
from runtimes.mongo.records import id_key, id_of

Documents = dict[tuple[str, bytes], bytes]
_MISSING = object()
_LARGEST_STATEMENT = 16 * 2**20 + 16_384


class Crash(BaseException):
    """The process is gone: nothing of it runs on."""


@dataclass
class Server:
    """What survives its clients. `hook` is called before and after each call with its name."""

    transactions: bool = True
    documents: Documents = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    unique: dict[str, list[str]] = field(default_factory=dict)
    special: dict[str, Collection] = field(default_factory=dict)
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)  # validators, by collection
    hook: Callable[[str, str], None] = lambda moment, name: None
    versions: dict[tuple[str, bytes], int] = field(default_factory=dict)
    clock: int = 0
    opened: list[FakeUnit] = field(default_factory=list)
    sessions: int = 0
    ends: bool = True  # a transaction when it is asked to
    can_compare: bool = True  # whole documents, in a filter
    looks_into_and: bool = True  # for what an upsert takes over from its filter
    stores: Callable[[bytes], bytes] = lambda document: document  # what becomes of a document that is sent

    def backend(self) -> FakeBackend:
        return FakeBackend(self)

    def drop_clients(self) -> None:
        """Their connections are gone: the server rolls back what they had open."""
        for unit in list(self.opened):
            unit.end()

    def put(self, collection: str, *documents: Mapping[str, Any]) -> None:
        """As somebody else would."""
        for document in documents:
            raw = encode(document)
            self.write((collection, id_key(id_of(raw))), raw)

    def remove(self, collection: str, id: Any) -> None:
        self.write((collection, id_key(encode({"_id": id}))), None)

    def all(self) -> Documents:
        """Every document but GoEx's own."""
        return {key: raw for key, raw in self.documents.items() if not key[0].startswith("goex_")}

    def write(self, key: tuple[str, bytes], document: bytes | None) -> None:
        self.clock += 1
        self.versions[key] = self.clock
        self.names.add(key[0])
        if document is None:
            self.documents.pop(key, None)
        else:
            self.documents[key] = document

    def check_unique(self, documents: Documents, key: tuple[str, bytes], document: bytes) -> None:
        for name in self.unique.get(key[0], ()):
            value = canon(decode(document).get(name))
            for other, raw in documents.items():
                if other != key and other[0] == key[0] and canon(decode(raw).get(name)) == value:
                    raise Duplicate(f"{name}_1")

    def taken(self, document: bytes) -> bytes:
        """What becomes of a document that is inserted, or takes another's place."""
        if has_unset(decode(document)):
            self.clock += 1
            fields = {
                key: Timestamp(self.clock, 1) if has_unset({key: v}) else v for key, v in decode(document).items()
            }
            document = encode(fields)
        return self.stores(document)


class FakeBackend:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.stopped: list[bool] = []

    @property
    def facts(self) -> Facts:
        return Facts(transactions=self.server.transactions, version="8.0.0")

    def collections(self, looked_into: Sequence[str] = ()) -> Mapping[str, Collection]:
        self.server.hook("before", "collections")
        plain = {
            name: Collection(name=name, rule=self.server.rules.get(name, {})) for name in sorted(self.server.names)
        }
        return {**plain, **self.server.special}

    def make(self, collection: str) -> None:
        self.server.hook("before", f"make {collection}")
        self.server.names.add(collection)
        self.server.hook("after", f"make {collection}")

    def begin(self) -> FakeUnit:
        return FakeUnit(self.server, transaction=self.server.transactions, stopped=self.stopped)

    def plain(self, *, through: bool = False) -> FakeUnit:
        return FakeUnit(self.server, transaction=False, stopped=[] if through else self.stopped)

    def end(self, session: bytes) -> None:
        for unit in list(self.server.opened):
            if unit.session == session and self.server.ends:
                unit.end()

    def interrupt(self) -> None:
        self.stopped.append(True)

    def close(self) -> None:
        pass


class FakeUnit:
    def __init__(self, server: Server, *, transaction: bool, stopped: Sequence[bool] = ()) -> None:
        self.server = server
        self.stopped = stopped
        self.transaction = transaction
        self.state = "open"
        server.sessions += 1
        self.number = server.sessions
        self.began = server.clock
        self.view: Documents = dict(server.documents) if transaction else server.documents
        self.wrote: dict[tuple[str, bytes], bytes | None] = {}
        if transaction:
            server.opened.append(self)

    @property
    def session(self) -> bytes:
        return b"%d" % self.number if self.transaction else b""

    # ---- reading

    def find(
        self, collection: str, filter: Mapping[str, Any], *, sort: Mapping[str, Any] | None = None, limit: int = 0
    ) -> Iterator[bytes]:
        self._before(f"find {collection}")
        found = list(self._matching(collection, filter))
        for name, way in reversed(list((sort or {}).items())):
            found.sort(key=lambda raw: canon(decode(raw).get(name)), reverse=way == -1)
        yield from found[:limit] if limit else found

    def read(self, read: Read, most: int) -> Iterator[bytes]:
        if read.how == "count":
            yield encode({"count": len(list(self._matching(read.collection, read.filter)))})
        elif read.how == "distinct":
            values = [decode(raw).get(read.key) for raw in self._matching(read.collection, read.filter)]
            yield encode({"values": list({canon(value): value for value in values if value is not None}.values())})
        elif read.how == "aggregate":
            raise InvalidInput("The stand-in has no pipelines.")
        else:
            found = list(self.find(read.collection, read.filter, sort=read.sort))[read.skip :]
            yield from found[: min(most, read.limit or most)]

    def count(self, collection: str, filter: Mapping[str, Any], most: int) -> int:
        self._before(f"count {collection}")
        return min(most, len(list(self._matching(collection, filter))))

    # ---- writing

    def insert(self, collection: str, documents: Sequence[bytes]) -> None:
        self._before(f"insert {collection}")
        for raw in documents:
            key = (collection, id_key(id_of(raw)))
            self._lock(key)
            if key in self.view:
                raise self._failed(Duplicate("_id_"))
            self._set(key, self.server.taken(raw))
        self._after(f"insert {collection}")

    def update(
        self,
        collection: str,
        filter: Mapping[str, Any],
        change: Any,
        *,
        array_filters: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._before(f"update {collection}")
        for raw in list(self._matching(collection, filter)):
            self._changed(collection, raw, change)
        self._after(f"update {collection}")

    def replace(self, collection: str, filter: Mapping[str, Any], document: bytes) -> int:
        self._before(f"replace {collection}")
        if len(encode(dict(filter))) + len(document) > _LARGEST_STATEMENT:
            raise self._failed(InvalidInput("The server can't be asked this: it is too large."))
        if has_dollar(document):
            raise self._failed(InvalidInput("The server refused it: DollarPrefixedFieldName."))
        found = list(self._matching(collection, filter))[:1]
        for raw in found:
            key = (collection, id_key(id_of(raw)))
            self._lock(key)
            self._set(key, self.server.taken(document))
        self._after(f"replace {collection}")
        return len(found)

    def delete(self, collection: str, filter: Mapping[str, Any]) -> int:
        self._before(f"delete {collection}")
        found = list(self._matching(collection, filter))
        for raw in found:
            key = (collection, id_key(id_of(raw)))
            self._lock(key)
            self._set(key, None)
        self._after(f"delete {collection}")
        return len(found)

    def change(
        self,
        collection: str,
        filter: Mapping[str, Any],
        change: Any,
        *,
        array_filters: Sequence[Mapping[str, Any]] = (),
        upsert: bool = False,
    ) -> bytes | None:
        called = f"{'upsert' if upsert else 'replace' if isinstance(change, bytes) else 'change'} {collection}"
        self._before(called)
        if isinstance(change, bytes) and len(encode(dict(filter))) + len(change) > _LARGEST_STATEMENT:
            raise self._failed(InvalidInput("The server can't be asked this: it is too large."))
        found = next(iter(self._matching(collection, filter)), None)
        if found is not None:
            after: bytes | None = self._changed(collection, found, change)
        else:
            after = self._made(collection, filter, change) if upsert else None
        self._after(called)
        return after

    # ---- ending

    def commit(self) -> None:
        if not self.transaction or self.state == "committed":
            return
        self.server.hook("before", "commit")
        if self.state != "open":
            raise Transient("The transaction is gone.")
        rest = {key: raw for key, raw in self.server.documents.items() if key not in self.wrote}
        for key, raw in self.wrote.items():
            if raw is not None:
                try:
                    self.server.check_unique({**rest, **{k: r for k, r in self.wrote.items() if r}}, key, raw)
                except Duplicate:
                    self.end()
                    raise Transient("Somebody wrote the same key.") from None
        for key, raw in self.wrote.items():
            self.server.write(key, raw)
        self.state = "committed"
        self.server.opened.remove(self)
        self.server.hook("after", "commit")

    def abort(self) -> None:
        if isinstance(sys.exc_info()[1], Crash):
            return  # a dead process asks for nothing: the server finds out by itself
        if self.transaction and self.state == "open":
            self.end()

    def end(self) -> None:
        self.state = "aborted"
        if self in self.server.opened:
            self.server.opened.remove(self)

    # ---- inside

    def _matching(self, collection: str, filter: Mapping[str, Any]) -> Iterator[bytes]:
        for key, raw in list(self.view.items()):
            if key[0] == collection and matches(filter, raw, self.server):
                yield raw

    def _made(self, collection: str, filter: Mapping[str, Any], change: Any) -> bytes:
        if not self.server.looks_into_and:
            filter = {key: wanted for key, wanted in filter.items() if key != "$and"}
        base = {"_id": equal_id(filter), **dict(_demanded(filter))}
        document = apply(change, base, self.server, inserting=True)
        if document.get("_id") is None:
            document = {**document, "_id": ObjectId()}
        raw = encode({"_id": document["_id"], **document})
        key = (collection, id_key(id_of(raw)))
        self._lock(key)
        if key in self.view:
            raise self._failed(Duplicate("_id_"))
        self._set(key, after := self.server.taken(raw))
        return after

    def _changed(self, collection: str, raw: bytes, change: Any) -> bytes:
        key = (collection, id_key(id_of(raw)))
        self._lock(key)
        try:
            if isinstance(change, bytes):
                after = self.server.taken(change)
            else:
                after = encode(apply(change, decode(raw), self.server, inserting=False))
        except InvalidInput as error:
            raise self._failed(error) from None
        self._set(key, after)
        return after

    def _lock(self, key: tuple[str, bytes]) -> None:
        if self.transaction and self.state != "open":
            raise Transient("The transaction is gone.")
        others = any(unit is not self and key in unit.wrote for unit in self.server.opened)
        if not self.transaction:
            if others:
                raise Conflict("The server took too long: a transaction holds the document.")
        elif others or self.server.versions.get(key, 0) > self.began:
            self.end()
            raise Transient("Somebody else wrote the same document.")

    def _set(self, key: tuple[str, bytes], document: bytes | None) -> None:
        if document is not None:
            try:
                self.server.check_unique(self.view, key, document)
            except Duplicate as error:
                raise self._failed(error) from None
            rule = self.server.rules.get(key[0])
            if rule and not matches(rule, document, self.server):
                raise self._failed(InvalidInput("The collection's own rules (its validator) refuse a document."))
        if not self.transaction:
            self.server.write(key, document)
            return
        self.wrote[key] = document
        if document is None:
            self.view.pop(key, None)
        else:
            self.view[key] = document

    def _failed(self, error: Exception) -> Exception:
        """A statement that fails ends its transaction."""
        if self.transaction:
            self.end()
        return error

    def _before(self, name: str) -> None:
        if self.stopped:
            raise Conflict("It was cancelled.")
        self.server.hook("before", name)

    def _after(self, name: str) -> None:
        self.server.hook("after", name)


# ---- the languages, as far as the tests speak them


def canon(value: Any) -> Any:
    """Equal for what the server holds to be equal; documents with the order of their keys."""
    if isinstance(value, bool) or value is None:
        return ("bool" if value is not None else "null", value)
    if isinstance(value, Decimal128):
        value = value.to_decimal()
    if isinstance(value, int | float | Decimal):
        number = Decimal(value) if not isinstance(value, float) or value == value else Decimal("NaN")
        return ("number", "NaN" if number.is_nan() else number)
    if isinstance(value, str):
        return ("text", value)
    if isinstance(value, Mapping):
        return ("document", tuple((key, canon(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(map(canon, value)))
    return (type(value).__name__, encode({"": value}))


def matches(filter: Mapping[str, Any], raw: bytes, server: Server) -> bool:
    document = decode(raw)
    return all(_holds(key, wanted, document, raw, server) for key, wanted in filter.items())


def _holds(key: str, wanted: Any, document: Mapping[str, Any], raw: bytes, server: Server) -> bool:
    if key == "$and":
        return all(matches(one, raw, server) for one in wanted)
    if key == "$or":
        return any(matches(one, raw, server) for one in wanted)
    if key == "$nor":
        return not any(matches(one, raw, server) for one in wanted)
    if key == "$expr":
        return _guarded(wanted, document, raw, server)
    if key == "$comment":
        return True
    found = _at(document, key)
    conditions = wanted if _operators(wanted) else {"$eq": wanted}
    return all(_condition(name, value, found) for name, value in conditions.items())


def _guarded(expression: Any, document: Mapping[str, Any], raw: bytes, server: Server) -> bool:
    if not server.can_compare:
        raise InvalidInput("The server refused it: $expr.")
    same, size = expression["$and"]
    return canon(document) == canon(same["$eq"][1]["$literal"]) and len(raw) == size["$eq"][1]


def _demanded(filter: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields that an upsert takes over from its filter."""
    for key, wanted in filter.items():
        if key == "$and":
            for one in wanted:
                yield from _demanded(one)
        elif key != "_id" and not key.startswith("$"):
            if not _operators(wanted):
                yield key, wanted
            elif "$eq" in wanted:
                yield key, wanted["$eq"]


def _operators(wanted: Any) -> bool:
    return isinstance(wanted, Mapping) and any(str(key).startswith("$") for key in wanted)


def _at(document: Any, path: str) -> Any:
    for part in path.split("."):
        if not isinstance(document, Mapping) or part not in document:
            return _MISSING
        document = document[part]
    return document


def _condition(name: str, wanted: Any, found: Any) -> bool:
    each = [found, *found] if isinstance(found, list) else [found]
    if name == "$exists":
        return (found is not _MISSING) is bool(wanted)
    if name == "$eq":
        return any(_equal(one, wanted) for one in each)
    if name == "$ne":
        return not any(_equal(one, wanted) for one in each)
    if name == "$in":
        return any(_equal(one, want) for one in each for want in wanted)
    if name in ("$gt", "$gte", "$lt", "$lte"):
        return any(one is not _MISSING and _ordered(name, canon(one), canon(wanted)) for one in each)
    raise InvalidInput(f"The server refused it: {name}.")


def _equal(found: Any, wanted: Any) -> bool:
    if found is _MISSING:
        return wanted is None
    if isinstance(wanted, Regex):
        return isinstance(found, str) and wanted.try_compile().search(found) is not None
    return bool(canon(found) == canon(wanted))


def _ordered(name: str, found: Any, wanted: Any) -> bool:
    if found[0] != wanted[0] or found[0] not in ("number", "text") or "NaN" in (found[1], wanted[1]):
        return False
    a, b = found[1], wanted[1]
    return bool({"$gt": a > b, "$gte": a >= b, "$lt": a < b, "$lte": a <= b}[name])


def apply(change: Any, document: dict[str, Any], server: Server, *, inserting: bool) -> dict[str, Any]:
    """The document after an update."""
    after = dict(document)
    if isinstance(change, list):
        for stage in change:
            for name, inner in stage.items():
                if name in ("$set", "$addFields"):
                    after |= {key: _evaluated(value, after, server) for key, value in inner.items()}
                elif name == "$unset":
                    for key in [inner] if isinstance(inner, str) else inner:
                        after.pop(key, None)
                else:
                    raise InvalidInput(f"The server refused it: {name}.")
    else:
        for name, inner in change.items():
            for key, value in inner.items():
                _operate(name, after, key, value, server, inserting)
    if not inserting and canon(after.get("_id")) != canon(document.get("_id")):
        raise InvalidInput("A document's _id can't be changed.")
    return after


def _evaluated(value: Any, document: Mapping[str, Any], server: Server) -> Any:
    if isinstance(value, Mapping) and set(value) == {"$rand"}:
        server.clock += 1
        return server.clock / 1000
    if isinstance(value, str) and value.startswith("$"):
        found = _at(document, value[1:])
        return None if found is _MISSING else found
    return value


def _operate(name: str, after: dict[str, Any], path: str, value: Any, server: Server, inserting: bool) -> None:
    *parents, key = path.split(".")
    target = after
    for parent in parents:
        below = target.get(parent, _MISSING)
        if below is _MISSING:
            below = {}
        if not isinstance(below, dict):
            raise InvalidInput("The server refused it: 28.")
        target[parent] = target = dict(below)
    if name == "$set" or (name == "$setOnInsert" and inserting):
        target[key] = value
    elif name == "$unset":
        target.pop(key, None)
    elif name == "$inc":
        was = target.get(key, 0)
        if not isinstance(was, int | float) or isinstance(was, bool):
            raise InvalidInput("The server refused it: 14.")
        made = was + value
        target[key] = Int64(made) if isinstance(was, Int64) else made
    elif name == "$push":
        was = target.get(key, [])
        if not isinstance(was, list):
            raise InvalidInput("The server refused it: 2.")
        target[key] = [*was, *(value["$each"] if _operators(value) else [value])]
    elif name == "$rename":
        if key in target:
            after[value] = target.pop(key)
    elif name == "$currentDate":
        server.clock += 1
        target[key] = DatetimeMS(server.clock)
    elif name != "$setOnInsert":
        raise InvalidInput(f"The server refused it: {name}.")
