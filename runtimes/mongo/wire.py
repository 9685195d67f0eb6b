"""A MongoDB server over its wire protocol, by pymongo. Documents stay BSON bytes in both directions."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import islice
from typing import Any

import pymongo
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient, ReadPreference, ReturnDocument, errors
from pymongo.client_session import ClientSession
from pymongo.collection import Collection as MongoCollection
from pymongo.database import Database
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from policies.errors import Conflict, GoexError
from runtimes.mongo.backend import Collection, Facts, Unit
from runtimes.mongo.errors import commit_failed, told
from runtimes.mongo.extjson import decode, encode
from runtimes.mongo.operations import Filter, Read
from runtimes.sql.contract import Limits
from runtimes.sql.reads_through import ANY

_RAW: CodecOptions[RawBSONDocument] = CodecOptions(
    document_class=RawBSONDocument, tz_aware=True, datetime_conversion=DatetimeConversion.DATETIME_MS
)
Raw = RawBSONDocument
_SCRIPTS = frozenset({"$function", "$accumulator", "$where"})
_WRITE_SECONDS = 10.0  # for one document, outside of a transaction: somebody's open transaction may hold it


class WireBackend:
    """`Backend` for one database of a connected client, which it closes."""

    def __init__(self, client: MongoClient[Any], database: str, facts: Facts, limits: Limits) -> None:
        self._client = client
        self._facts = facts
        self._limits = limits
        self._stopped = threading.Event()
        concern = WriteConcern("majority", wtimeout=int(limits.seconds * 1000), j=True)
        self._concern = concern
        self._database: Database[Raw] = client.get_database(
            database,
            codec_options=_RAW,
            read_preference=ReadPreference.PRIMARY,
            write_concern=concern,
            read_concern=ReadConcern("majority" if facts.transactions else "local"),
        )

    @property
    def facts(self) -> Facts:
        return self._facts

    def collections(self, looked_into: Sequence[str] = ()) -> Mapping[str, Collection]:
        found: dict[str, Collection] = {}
        with told(transaction=False):
            for raw in self._database.list_collections():
                options = raw.get("options") or {}
                name, kind = str(raw["name"]), str(raw.get("type", "collection"))
                if name.startswith("system."):
                    continue
                expires = "expireAfterSeconds" in options  # a clustered one: others have an index for it
                if name in looked_into and kind == "collection":
                    expires = expires or any(
                        "expireAfterSeconds" in index for index in self._database[name].list_indexes()
                    )
                found[name] = Collection(
                    name=name,
                    kind="collection" if kind == "collection" else "view" if kind == "view" else "other",
                    refusal=_refusal(kind, options),
                    stands_on=view_reads(options) if kind == "view" else frozenset(),
                    script=kind == "view" and runs_script(options),
                    rule=_rule(options),
                    expires=expires,
                )
        return found

    def make(self, collection: str) -> None:
        with told(transaction=False), suppress(errors.CollectionInvalid):
            if collection not in self._database.list_collection_names(filter={"name": collection}):
                try:
                    self._database.create_collection(collection, check_exists=False)
                except errors.OperationFailure as error:
                    if error.code != 48:  # somebody else made it
                        raise

    def begin(self) -> Unit:
        if not self._facts.transactions:
            return self.plain()
        with told(transaction=False):
            session = self._client.start_session()
            session.start_transaction(
                read_concern=ReadConcern("snapshot"),
                write_concern=self._concern,
                read_preference=ReadPreference.PRIMARY,
                max_commit_time_ms=int(self._limits.seconds * 1000),
            )
        return WireUnit(self._database, session, self._limits, self._stopped)

    def plain(self, *, through: bool = False) -> Unit:
        return WireUnit(self._database, None, self._limits, threading.Event() if through else self._stopped)

    def end(self, session: bytes) -> None:
        with suppress(errors.PyMongoError, GoexError), pymongo.timeout(_WRITE_SECONDS):
            self._client.admin.command("killSessions", [decode(session)])

    def interrupt(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        with suppress(errors.PyMongoError, OSError):
            self._client.close()


class WireUnit:
    """`Unit` over pymongo."""

    def __init__(
        self, database: Database[Raw], session: ClientSession | None, limits: Limits, stopped: threading.Event
    ) -> None:
        self._database = database
        self._session = session
        self._ms = int(limits.seconds * 1000)
        self._stopped = stopped

    @property
    def session(self) -> bytes:
        return b"" if self._session is None else encode(dict(self._session.session_id))

    def find(
        self, collection: str, filter: Filter, *, sort: Mapping[str, Any] | None = None, limit: int = 0
    ) -> Iterator[bytes]:
        return self._rows(Read(how="find", collection=collection, filter=filter, sort=sort or {}, limit=limit))

    def _rows(self, read: Read) -> Iterator[bytes]:
        with self._told():
            cursor = self._in(read.collection).find(
                read.filter,
                read.projection,
                session=self._session,
                sort=list(read.sort.items()) or None,
                skip=read.skip,
                limit=read.limit,
                max_time_ms=self._ms,
            )
            with cursor:
                for document in cursor:
                    yield bytes(document.raw)

    def read(self, read: Read, most: int) -> Iterator[bytes]:
        if read.how == "find":
            yield from islice(self._rows(read), most)
            return
        with self._told():
            collection = self._in(read.collection)
            if read.how == "count":
                number = collection.count_documents(read.filter, session=self._session, maxTimeMS=self._ms)
                yield encode({"count": number})
            elif read.how == "distinct":
                values = collection.distinct(read.key, read.filter, session=self._session, maxTimeMS=self._ms)
                yield encode({"values": values})
            else:
                pipeline = [dict(stage) for stage in read.pipeline]
                with collection.aggregate(pipeline, session=self._session, maxTimeMS=self._ms) as cursor:
                    for document in islice(cursor, most):
                        yield bytes(document.raw)

    def count(self, collection: str, filter: Filter, most: int) -> int:
        with self._told():
            into = self._in(collection)
            if not filter and self._session is None:  # all of them: the server has that number written down
                return min(most, into.estimated_document_count(maxTimeMS=self._ms))
            return into.count_documents(filter, session=self._session, limit=most, maxTimeMS=self._ms)

    def insert(self, collection: str, documents: Sequence[bytes]) -> None:
        with self._told(writes=True):
            self._in(collection).insert_many([RawBSONDocument(one) for one in documents], session=self._session)

    def update(
        self,
        collection: str,
        filter: Filter,
        change: Mapping[str, Any] | list[Any],
        *,
        array_filters: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        with self._told(writes=True):
            filters = list(array_filters) or None
            self._in(collection).update_many(filter, change, array_filters=filters, session=self._session)

    def replace(self, collection: str, filter: Filter, document: bytes) -> int:
        with self._told(writes=True):
            done = self._in(collection).replace_one(filter, RawBSONDocument(document), session=self._session)
            return done.matched_count

    def delete(self, collection: str, filter: Filter) -> int:
        with self._told(writes=True):
            return self._in(collection).delete_many(filter, session=self._session).deleted_count

    def change(
        self,
        collection: str,
        filter: Filter,
        change: Mapping[str, Any] | list[Any] | bytes,
        *,
        array_filters: Sequence[Mapping[str, Any]] = (),
        upsert: bool = False,
    ) -> bytes | None:
        with self._told(writes=True):
            into, after = self._in(collection), ReturnDocument.AFTER
            if isinstance(change, bytes):
                found = into.find_one_and_replace(
                    filter, RawBSONDocument(change), upsert=upsert, return_document=after, session=self._session
                )
            else:
                found = into.find_one_and_update(
                    filter,
                    change,
                    array_filters=list(array_filters) or None,
                    upsert=upsert,
                    return_document=after,
                    session=self._session,
                )
            return None if found is None else bytes(found.raw)

    def commit(self) -> None:
        if self._session is None:
            return
        try:
            self._session.commit_transaction()
        except errors.PyMongoError as error:
            commit_failed(error)

    def abort(self) -> None:
        if self._session is None:
            return
        with suppress(errors.PyMongoError):
            if self._session.in_transaction:
                self._session.abort_transaction()
        with suppress(errors.PyMongoError):
            self._session.end_session()

    def _in(self, collection: str) -> MongoCollection[Raw]:
        if self._stopped.is_set():
            raise Conflict("It was cancelled.")
        return self._database[collection]

    @contextmanager
    def _told(self, *, writes: bool = False) -> Iterator[None]:
        alone = writes and self._session is None
        limited = pymongo.timeout(_WRITE_SECONDS) if alone else nullcontext()
        with told(transaction=self._session is not None, writes=writes), limited:
            yield


def _rule(options: Mapping[str, Any]) -> Filter:
    """The validator by which the server refuses documents; {} when it has none, or only warns."""
    rule = options.get("validator")
    if not rule or options.get("validationLevel") == "off" or options.get("validationAction") == "warn":
        return {}
    return decode(bytes(rule.raw)) if isinstance(rule, RawBSONDocument) else dict(rule)


def view_reads(definition: Any) -> frozenset[str]:
    """The collections that a view's definition names, in any of its stages."""
    found: set[str] = set()
    if isinstance(definition, Mapping):
        for key, inner in definition.items():
            if key in ("$lookup", "$graphLookup", "$unionWith"):
                other = inner.get("from", inner.get("coll", "")) if isinstance(inner, Mapping) else inner
                found |= {other if isinstance(other, str) else ANY} - {""}
            elif key == "viewOn":
                found.add(str(inner))
            found |= view_reads(inner)
    elif isinstance(definition, Sequence) and not isinstance(definition, str | bytes):
        for one in definition:
            found |= view_reads(one)
    return frozenset(found)


def runs_script(definition: Any) -> bool:
    """Whether a view's definition has the server run JavaScript, in any of its stages."""
    if isinstance(definition, Mapping):
        return any(key in _SCRIPTS or (key != "$literal" and runs_script(inner)) for key, inner in definition.items())
    listed = isinstance(definition, Sequence) and not isinstance(definition, str | bytes)
    return listed and any(map(runs_script, definition))


def _refusal(kind: str, options: Mapping[str, Any]) -> str:
    """Why the documents of a collection can't be written so that it could be taken back."""
    if kind == "view":
        return "it is a view"
    if kind == "timeseries" or "timeseries" in options:
        return "it is a time series: its documents can't be put back one by one"
    if kind != "collection":
        return "it isn't a plain collection"
    if options.get("capped"):
        return "it is capped: the server drops its oldest documents by itself"
    if "encryptedFields" in options:
        return "its fields are encrypted by the client"
    return ""
