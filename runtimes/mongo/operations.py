"""What an action on MongoDB asks for, parsed once: a program of operations, in order.

An operation is an object whose first word names what is done and the collection, like
`{"updateMany": "orders", "filter": {"paid": false}, "update": {"$set": {"open": true}}}`. Names are those of MongoDB's
shell; the ones with underlines are read as well. Unknown keys are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bson.regex import Regex

from policies.errors import InvalidInput, Unsupported
from runtimes.mongo import allowed
from runtimes.mongo.extjson import encode, has_unset, read

MOST_OPERATIONS = 1000
MOST_DOCUMENTS = 10_000  # to insert, in all
MOST_BYTES = 16 * 2**20  # of one document, as the server has it

Verb = Literal["find", "insert", "update", "delete"]
Document = dict[str, Any]
Filter = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """`how` is one of find, count, distinct, aggregate. `others` are further collections that its pipeline reads."""

    how: Literal["find", "count", "distinct", "aggregate"]
    collection: str
    filter: Filter = field(default_factory=dict)
    projection: Mapping[str, Any] | None = None
    sort: Mapping[str, Any] = field(default_factory=dict)
    skip: int = 0
    limit: int = 0
    key: str = ""
    pipeline: tuple[Mapping[str, Any], ...] = ()
    others: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """Documents that don't name their `_id` get one when the action is prepared."""

    collection: str
    documents: tuple[Document, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A change of documents that a filter finds. Exactly one of them is set: `change` (operators, or a pipeline that
    changes one document by itself), `document` (what takes its place); neither deletes. `upsert_id`: the `_id` of what
    an upsert would insert, where that is known."""

    collection: str
    filter: Filter
    many: bool
    change: Mapping[str, Any] | list[Any] | None = None
    document: Document | None = None
    upsert: bool = False
    upsert_id: Any = None
    array_filters: tuple[Mapping[str, Any], ...] = ()
    sort: Mapping[str, Any] = field(default_factory=dict)

    @property
    def deletes(self) -> bool:
        return self.change is None and self.document is None

    @property
    def everywhere(self) -> bool:
        """Whether its own text keeps out nothing. Only one document: it isn't known which."""
        return allowed.is_everywhere(self.filter)

    @property
    def lacking(self) -> bool:
        """Whether it keeps out nothing where no document has the fields that it asks to be lacking."""
        return not self.everywhere and allowed.is_everywhere(self.filter, lacking=True)

    @property
    def verb(self) -> Verb:
        return "delete" if self.deletes else "update"


Operation = Read | Insert | Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Operations that run in order: in one transaction, where the server has them."""

    operations: tuple[Operation, ...]

    @property
    def reads_only(self) -> bool:
        return all(isinstance(operation, Read) for operation in self.operations)

    @property
    def written(self) -> tuple[str, ...]:
        """The collections that it may write, by name."""
        return tuple(sorted({one.collection for one in self.operations if not isinstance(one, Read)}))

    def uses(self) -> dict[tuple[str, Verb], list[Operation]]:
        """What is done to which collection, and by which operations, in order."""
        found: dict[tuple[str, Verb], list[Operation]] = {}
        for operation in self.operations:
            for use in _uses(operation):
                found.setdefault(use, []).append(operation)
        return found


def _uses(operation: Operation) -> Iterator[tuple[str, Verb]]:
    if isinstance(operation, Read):
        yield operation.collection, "find"
        for other in sorted(operation.others):
            yield other, "find"
    elif isinstance(operation, Insert):
        yield operation.collection, "insert"
    else:
        yield operation.collection, operation.verb
        if operation.upsert:
            yield operation.collection, "insert"


# ---- parsing


def parse(texts: Sequence[str]) -> Program:
    """The program that these texts of Extended JSON make. Raises InvalidInput, Unsupported."""
    if not texts:
        raise InvalidInput(
            "There is no operation in this request.", next_step='Write {"find": "orders", "filter": {}}.'
        )
    made: list[Operation] = []
    for number, text in enumerate(texts, 1):
        found = read(text, what=f"Operation {number}")
        if not isinstance(found, dict) or not found:
            raise InvalidInput(f"Operation {number} isn't an object.", next_step='Write {"find": "orders"}.')
        made.extend(_operations(found))
    if len(made) > MOST_OPERATIONS:
        raise InvalidInput(f"That are {len(made)} operations; at most {MOST_OPERATIONS} run at once.")
    inserted = sum(len(one.documents) for one in made if isinstance(one, Insert))
    if inserted > MOST_DOCUMENTS:
        raise InvalidInput(f"That are {inserted} documents; at most {MOST_DOCUMENTS} are inserted at once.")
    return Program(operations=tuple(made))


def _operations(found: Mapping[str, Any]) -> Iterator[Operation]:
    name, collection = next(iter(found.items()))
    spelled = _SPELLED.get(name, name)
    if spelled == "bulkWrite":
        yield from _bulk(found, collection)
        return
    if spelled not in _KEYS:
        raise Unsupported(
            f"{name[:60]!r} isn't an operation that runs here.",
            next_step=f"These do: {', '.join((*_KEYS, 'bulkWrite'))}.",
        )
    yield _one(spelled, allowed.check_collection(collection), {k: v for k, v in found.items() if k != name})


def _bulk(found: Mapping[str, Any], collection: Any) -> Iterator[Operation]:
    """The parts of a bulk, in order: GoEx stops at the first that fails, whether it is `ordered` or not."""
    listed = found.get("operations")
    if set(found) - {next(iter(found)), "operations", "ordered"} or not isinstance(listed, list) or not listed:
        raise InvalidInput("A bulk has a list of operations, and nothing else but ordered.")
    if found.get("ordered", True) is not True:
        raise Unsupported("An unordered bulk goes on after a failure.", next_step="Leave ordered out.")
    for part in listed:
        if not isinstance(part, dict) or len(part) != 1:
            raise InvalidInput('A part of a bulk is an object like {"insertOne": {"document": {…}}}.')
        name, rest = next(iter(part.items()))
        spelled = _SPELLED.get(name, name)
        if spelled not in _IN_BULK or not isinstance(rest, dict):
            raise Unsupported(f"{name[:60]!r} isn't part of a bulk.", next_step=f"These are: {', '.join(_IN_BULK)}.")
        yield _one(spelled, allowed.check_collection(collection), rest)


def _one(name: str, collection: str, rest: Mapping[str, Any]) -> Operation:
    unknown = [key for key in rest if key not in _KEYS[name]]
    if unknown:
        raise InvalidInput(
            f"{name} doesn't take {unknown[0][:60]!r}.", next_step=f"It takes: {', '.join(_KEYS[name])}."
        )
    if name in ("insertOne", "insertMany"):
        listed = [rest.get("document")] if name == "insertOne" else rest.get("documents")
        if not isinstance(listed, list) or not listed:
            raise InvalidInput(f"{name} has nothing to insert.")
        return Insert(collection=collection, documents=tuple(_document(one) for one in listed))
    if name == "aggregate":
        pipeline = rest.get("pipeline", [])
        others = allowed.check_pipeline(pipeline)
        return Read(how="aggregate", collection=collection, pipeline=tuple(pipeline), others=others)
    condition = rest.get("filter", {} if name in _READS else None)
    if condition is None:
        raise InvalidInput(f"{name} has no filter.", next_step='Write "filter": {} for all documents.')
    allowed.check_filter(condition)
    sort = _sort(rest.get("sort", {}))
    if name in _READS:
        return _reading(name, collection, condition, sort, rest)
    many = name.endswith("Many")
    if name.startswith("delete"):
        return Write(collection=collection, filter=condition, many=many, sort=sort)
    upsert = rest.get("upsert", False)
    if not isinstance(upsert, bool):
        raise InvalidInput("upsert is true or false.")
    if name == "replaceOne":
        document = _document(rest.get("replacement"))
        return Write(
            collection=collection, filter=condition, many=False, document=document, upsert=upsert, sort=sort,
            upsert_id=document.get("_id", equal_id(condition)),
        )  # fmt: skip
    change = rest.get("update")
    allowed.check_update(change)
    for step in change if isinstance(change, list) else [change or {}]:
        for name, fields in step.items():
            if isinstance(fields, Mapping) and name not in ("$unset", "$pull", "$pullAll"):  # these set nothing
                _refuse_unset({path: value for path, value in fields.items() if "." not in path})
    array_filters = rest.get("arrayFilters", [])
    if not isinstance(array_filters, list) or (array_filters and isinstance(change, list)):
        raise InvalidInput("arrayFilters is a list of filters, and goes with operators.")
    for one in array_filters:
        allowed.check_filter(one, "An array filter")
    fixed = change.get("$setOnInsert", {}).get("_id") if isinstance(change, Mapping) else None
    known = equal_id(condition)
    return Write(
        collection=collection, filter=condition, many=many, change=change, upsert=upsert, sort=sort,
        array_filters=tuple(array_filters), upsert_id=fixed if known is None else known,
    )  # fmt: skip


def _reading(name: str, collection: str, condition: Filter, sort: Mapping[str, Any], rest: Mapping[str, Any]) -> Read:
    if name == "count":
        return Read(how="count", collection=collection, filter=condition)
    if name == "distinct":
        key = rest.get("key")
        if not isinstance(key, str) or not key or key.startswith("$"):
            raise InvalidInput("distinct wants the name of a field as key.")
        return Read(how="distinct", collection=collection, filter=condition, key=key)
    projection = rest.get("projection")
    if projection is not None:
        if not isinstance(projection, dict):
            raise InvalidInput("The projection isn't an object.")
        allowed.check_expression(projection)
    return Read(
        how="find",
        collection=collection,
        filter=condition,
        projection=projection,
        sort=sort,
        skip=_number(rest.get("skip", 0), "skip"),
        limit=1 if name == "findOne" else _number(rest.get("limit", 0), "limit"),
    )


def _document(found: Any) -> Document:
    document = allowed.check_document(found)
    _refuse_unset(document)
    if len(encode(document)) > MOST_BYTES:
        raise InvalidInput("A document is larger than 16 MB.")
    return {"_id": document["_id"], **document} if "_id" in document else document  # where the server puts it


def _refuse_unset(fields: Mapping[str, Any]) -> None:
    if has_unset(fields):
        raise Unsupported("An empty timestamp is filled in by the server: write the time.")


def _sort(found: Any) -> Mapping[str, Any]:
    if not isinstance(found, dict) or not all(
        not key.startswith("$") and isinstance(way, int) and not isinstance(way, bool) and way in (1, -1)
        for key, way in found.items()
    ):
        raise InvalidInput("sort is an object of fields with 1 or -1.")
    return found


def _number(found: Any, what: str) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < 2**31:
        raise InvalidInput(f"{what} is a number from 0.")
    return found


def equal_id(condition: Filter) -> Any:
    """The `_id` that a filter demands, as an upsert takes it over; None where it doesn't demand one."""
    for key, inner in condition.items():
        if key == "_id":
            if isinstance(inner, Regex):
                return None
            if not isinstance(inner, Mapping) or not any(one.startswith("$") for one in inner):
                return inner
            if "$eq" in inner:
                return inner["$eq"]
        elif key == "$and":
            found = next((one for one in map(equal_id, inner) if one is not None), None)
            if found is not None:
                return found
    return None


def named_ids(condition: Filter) -> int | None:
    """How many values of `_id` a filter demands one of; None where it doesn't."""
    for key, inner in condition.items():
        if key == "$and":
            found = [number for number in map(named_ids, inner) if number is not None]
            if found:
                return min(found)
        elif key == "_id" and isinstance(inner, Mapping):
            listed = inner.get("$in")
            if isinstance(listed, list) and not any(isinstance(one, Regex) for one in listed):
                return len(listed)
    return None if equal_id(condition) is None else 1


# ---- ids


def lacking_ids(program: Program) -> int:
    """How many `_id`s have to be made before it runs."""
    return sum(1 for _ in _slots(program))


def _slots(program: Program) -> Iterator[None]:
    for one in program.operations:
        if isinstance(one, Insert):
            yield from (None for document in one.documents if "_id" not in document)
        elif isinstance(one, Write) and _takes_id(one):
            yield None


def _takes_id(one: Write) -> bool:
    return one.upsert and one.upsert_id is None


def with_ids(program: Program, ids: Sequence[Any]) -> Program:
    """The program with these `_id`s where it lacks them."""
    if len(ids) != lacking_ids(program):
        raise InvalidInput("These aren't the ids that were made for this action.")
    left = iter(ids)
    made: list[Operation] = []
    for one in program.operations:
        if isinstance(one, Insert):
            documents = tuple(
                document if "_id" in document else {"_id": next(left), **document} for document in one.documents
            )
            made.append(replace(one, documents=documents))
        elif isinstance(one, Write) and _takes_id(one):
            made.append(replace(one, upsert_id=next(left)))
        else:
            made.append(one)
    return Program(operations=tuple(made))


_READS = ("find", "findOne", "count", "distinct")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "find": ("filter", "projection", "sort", "skip", "limit"),
    "findOne": ("filter", "projection", "sort", "skip"),
    "count": ("filter",),
    "distinct": ("key", "filter"),
    "aggregate": ("pipeline",),
    "insertOne": ("document",),
    "insertMany": ("documents",),
    "updateOne": ("filter", "update", "upsert", "arrayFilters", "sort"),
    "updateMany": ("filter", "update", "upsert", "arrayFilters"),
    "replaceOne": ("filter", "replacement", "upsert", "sort"),
    "deleteOne": ("filter", "sort"),
    "deleteMany": ("filter",),
}
_IN_BULK = ("insertOne", "updateOne", "updateMany", "replaceOne", "deleteOne", "deleteMany")
_SPELLED = {
    "find_one": "findOne",
    "countDocuments": "count",
    "count_documents": "count",
    "insert_one": "insertOne",
    "insert_many": "insertMany",
    "update_one": "updateOne",
    "update_many": "updateMany",
    "replace_one": "replaceOne",
    "delete_one": "deleteOne",
    "delete_many": "deleteMany",
    "bulk_write": "bulkWrite",
    "bulk": "bulkWrite",
}
