"""What an action on MongoDB asks for, parsed once: a program of operations, in order.

An operation is an object whose first word names what is done and the collection, like
`{"updateMany": "orders", "filter": {"paid": false}, "update": {"$set": {"open": true}}}`. Names are those of MongoDB's
shell; the ones with underlines are read as well, and so are the commands for documents (`insert`, `update`, `delete`,
`findAndModify`). Unknown keys are refused; those that change nothing of what is done are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    an upsert would insert, where that is known. `returns`: which state of its one document it gives back."""

    collection: str
    filter: Filter
    many: bool
    change: Mapping[str, Any] | list[Any] | None = None
    document: Document | None = None
    upsert: bool = False
    upsert_id: Any = None
    array_filters: tuple[Mapping[str, Any], ...] = ()
    sort: Mapping[str, Any] = field(default_factory=dict)
    returns: Literal["", "before", "after"] = ""

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
        if operation.returns:
            yield operation.collection, "find"


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
    rest = {key: value for key, value in found.items() if key != name and key not in _OF_THE_CLIENT}
    spelled = _SPELLED.get(name, name)
    if spelled in _LISTS:
        yield from _listed(spelled, allowed.check_collection(collection), rest)
    elif spelled == "findAndModify":
        yield _one(*_found_and_modified(allowed.check_collection(collection), rest))
    elif spelled in _KEYS:
        if spelled in ("count", "distinct") and "query" in rest and "filter" not in rest:
            rest["filter"] = rest.pop("query")  # as the command has it
        yield _one(spelled, allowed.check_collection(collection), rest)
    elif spelled.startswith(("create", "drop", "rename")) or spelled in ("collMod", "convertToCapped", "reIndex"):
        what = "a user or a role" if _OF_USERS.search(spelled) else "a collection or an index"
        raise Unsupported(
            f"{name[:60]!r} changes what {what} is, instead of single documents: that isn't run here.",
            next_step="Do it with MongoDB's own shell.",
        )
    else:
        raise Unsupported(
            f"{name[:60]!r} isn't an operation that runs here.",
            next_step=f"These do: {', '.join((*_KEYS, 'bulkWrite'))}.",
        )


def _listed(name: str, collection: str, rest: Mapping[str, Any]) -> Iterator[Operation]:
    """The parts of a bulk or of a command, in order: GoEx stops at the first that fails."""
    key, part_of = _LISTS[name]
    listed = rest.get(key)
    if set(rest) - {key, "ordered"} or not isinstance(listed, list) or not listed:
        raise InvalidInput(f"{name} has a list of {key}, and nothing else but ordered.")
    _check_ordered(rest)
    for part in listed:
        if not isinstance(part, dict):
            raise InvalidInput(f"Each of the {key} is an object.")
        yield _one(*part_of(collection, part))


def _check_ordered(rest: Mapping[str, Any]) -> None:
    if rest.get("ordered", True) is not True:
        raise Unsupported("What isn't ordered goes on after a failure.", next_step="Leave ordered out.")


_Part = tuple[str, str, dict[str, Any]]  # an operation's name, its collection, its keys


def _of_bulk(collection: str, part: dict[str, Any]) -> _Part:
    name, rest = next(iter(part.items()), ("", None))
    spelled = _SPELLED.get(name, name)
    if len(part) != 1 or not isinstance(rest, dict):
        raise InvalidInput('A part of a bulk is an object like {"insertOne": {"document": {…}}}.')
    if spelled not in _IN_BULK:
        raise Unsupported(f"{name[:60]!r} isn't part of a bulk.", next_step=f"These are: {', '.join(_IN_BULK)}.")
    return spelled, collection, rest


def _of_updates(collection: str, part: dict[str, Any]) -> _Part:
    _check_keys("A part of update", part, ("q", "u", "multi", "upsert", "arrayFilters", "sort"))
    rest = {"filter": part.get("q"), **{key: value for key, value in part.items() if key not in ("q", "u", "multi")}}
    if part.get("multi", False) not in (False, True):
        raise InvalidInput("multi is true or false.")
    if part.get("multi"):
        return "updateMany", collection, {**rest, "update": part.get("u")}
    return _changing("updateOne", "replaceOne", collection, rest, part.get("u"))


def _of_deletes(collection: str, part: dict[str, Any]) -> _Part:
    _check_keys("A part of delete", part, ("q", "limit"))
    limit = part.get("limit")
    if isinstance(limit, bool) or limit not in (0, 1):
        raise InvalidInput("limit is 1 for one document, 0 for all that the filter finds.")
    return "deleteOne" if limit else "deleteMany", collection, {"filter": part.get("q")}


def _found_and_modified(collection: str, rest: dict[str, Any]) -> _Part:
    _check_keys("findAndModify", rest, ("query", "update", "remove", "upsert", "arrayFilters", "sort", "new"))
    change, removes = rest.pop("update", None), rest.pop("remove", False)
    rest = {"filter": rest.pop("query", None), **rest}
    if removes is True and change is None:
        return "findOneAndDelete", collection, rest
    if removes is not False:
        raise InvalidInput("remove is true, with no update beside it, or false.")
    return _changing("findOneAndUpdate", "findOneAndReplace", collection, rest, change)


def _changing(updates: str, replaces: str, collection: str, rest: dict[str, Any], change: Any) -> _Part:
    """A change of one document, as commands have it: what holds no operator takes the document's place."""
    if isinstance(change, dict) and not any(key.startswith("$") for key in change):
        return replaces, collection, {**rest, "replacement": change}
    return updates, collection, {**rest, "update": change}


def _check_keys(what: str, found: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in found:
        if key not in keys:
            raise InvalidInput(f"{what} doesn't take {key[:60]!r}.", next_step=f"It takes: {', '.join(keys)}.")


def _one(name: str, collection: str, rest: Mapping[str, Any]) -> Operation:
    _check_keys(name, rest, _KEYS[name])
    if name in ("insertOne", "insertMany"):
        _check_ordered(rest)
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
    sort = _sort(rest.get("sort", {}), scored=name in _READS)
    if name in _READS:
        return _reading(name, collection, condition, sort, rest)
    many = name.endswith("Many")
    returns = _returns(name, rest)
    if name in ("deleteOne", "deleteMany", "findOneAndDelete"):
        return Write(collection=collection, filter=condition, many=many, sort=sort, returns=returns)
    upsert = rest.get("upsert", False)
    if not isinstance(upsert, bool):
        raise InvalidInput("upsert is true or false.")
    if name in ("replaceOne", "findOneAndReplace"):
        document = _document(rest.get("replacement"))
        return Write(
            collection=collection, filter=condition, many=False, document=document, upsert=upsert, sort=sort,
            upsert_id=document.get("_id", equal_id(condition)), returns=returns,
        )  # fmt: skip
    change = rest.get("update")
    known = equal_id(condition)
    allowed.check_update(change, id=known)
    change = _without_own_id(change)
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
    return Write(
        collection=collection, filter=condition, many=many, change=change, upsert=upsert, sort=sort,
        array_filters=tuple(array_filters), upsert_id=fixed if known is None else known, returns=returns,
    )  # fmt: skip


def _without_own_id(change: Any) -> Any:
    """A change that sets the `_id` to what the filter demands sets it only where it inserts: 1 finds 1.0, too, which
    would become 1."""
    if not isinstance(change, dict) or "_id" not in change.get("$set", {}):
        return change
    fields = {**change["$set"]}
    inserted = {"_id": fields.pop("_id"), **change.get("$setOnInsert", {})}
    rest = {key: value for key, value in change.items() if key != "$set"}
    return {**({"$set": fields} if fields else {}), **rest, "$setOnInsert": inserted}


def _returns(name: str, rest: Mapping[str, Any]) -> Literal["", "before", "after"]:
    if not name.startswith("findOneAnd"):
        return ""
    said = [rest[key] for key in _GIVES_BACK if key in rest] or [False]
    if len(said) > 1 or said[0] not in (False, True, "before", "after"):
        raise InvalidInput('returnDocument is "before" or "after".')
    return "after" if said[0] in (True, "after") else "before"


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
        allowed.check_projection(projection)
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


def _sort(found: Any, *, scored: bool) -> Mapping[str, Any]:
    """`scored`: by how well a text was found, too."""
    if not isinstance(found, dict) or not all(
        not key.startswith("$")
        and ((isinstance(way, int) and not isinstance(way, bool) and way in (1, -1)) or (scored and way == _SCORE))
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


_OF_USERS = re.compile("User|Role")
_READS = ("find", "findOne", "count", "distinct")
_SCORE = {"$meta": "textScore"}
_GIVES_BACK = ("returnDocument", "returnNewDocument", "new")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "find": ("filter", "projection", "sort", "skip", "limit"),
    "findOne": ("filter", "projection", "sort", "skip"),
    "count": ("filter",),
    "distinct": ("key", "filter"),
    "aggregate": ("pipeline",),
    "insertOne": ("document",),
    "insertMany": ("documents", "ordered"),
    "updateOne": ("filter", "update", "upsert", "arrayFilters", "sort"),
    "updateMany": ("filter", "update", "upsert", "arrayFilters"),
    "replaceOne": ("filter", "replacement", "upsert", "sort"),
    "deleteOne": ("filter", "sort"),
    "deleteMany": ("filter",),
    "findOneAndUpdate": ("filter", "update", "upsert", "arrayFilters", "sort", *_GIVES_BACK),
    "findOneAndReplace": ("filter", "replacement", "upsert", "sort", *_GIVES_BACK),
    "findOneAndDelete": ("filter", "sort"),
}
# How a server goes about it: of no consequence for what is done, within GoEx's own limits.
_OF_THE_CLIENT = frozenset({"cursor", "batchSize", "allowDiskUse", "maxTimeMS", "comment"})
# What holds several operations: the key of their list, and how one of them is read.
_LISTS: Mapping[str, tuple[str, Callable[[str, dict[str, Any]], _Part]]] = {
    "bulkWrite": ("operations", _of_bulk),
    "update": ("updates", _of_updates),
    "delete": ("deletes", _of_deletes),
}
_IN_BULK = ("insertOne", "updateOne", "updateMany", "replaceOne", "deleteOne", "deleteMany")
_SPELLED = {
    "find_one": "findOne",
    "countDocuments": "count",
    "count_documents": "count",
    "estimatedDocumentCount": "count",
    "insert_one": "insertOne",
    "insert_many": "insertMany",
    "insert": "insertMany",
    "update_one": "updateOne",
    "update_many": "updateMany",
    "replace_one": "replaceOne",
    "delete_one": "deleteOne",
    "delete_many": "deleteMany",
    "bulk_write": "bulkWrite",
    "bulk": "bulkWrite",
    "find_one_and_update": "findOneAndUpdate",
    "find_one_and_replace": "findOneAndReplace",
    "find_one_and_delete": "findOneAndDelete",
    "findandmodify": "findAndModify",
}
