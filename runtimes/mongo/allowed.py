"""What may stand in a filter, an update, an expression and a pipeline: lists of what is known to be harmless.

Rules: what isn't listed is refused, whatever it would do; nothing here runs JavaScript, writes, or leaves the
database; a filter must say the same twice (`$rand`, `$sampleRate` are refused in it). Literal data aren't looked into.
The lists follow MongoDB 8.0's reference; a name that a server doesn't know it refuses by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bson.max_key import MaxKey
from bson.min_key import MinKey

from policies.errors import InvalidInput, Unsupported
from runtimes.mongo.extjson import encode


def _names(text: str) -> frozenset[str]:
    return frozenset(f"${name}" for name in text.split())


FILTERS = _names(
    "eq ne gt gte lt lte in nin exists type mod regex options all elemMatch size not and or nor expr comment text "
    "bitsAllClear bitsAllSet bitsAnyClear bitsAnySet geoWithin geoIntersects"
)
_LOGICAL = frozenset({"$and", "$or", "$nor"})
_SEARCH = _names("search language caseSensitive diacriticSensitive")
_FOR_VALUES = FILTERS - {"$and", "$or", "$nor", "$expr", "$comment", "$text"}

EXPRESSIONS = _names(
    # arithmetic
    "abs add ceil divide exp floor ln log log10 mod multiply pow round sqrt subtract trunc "
    # arrays
    "arrayElemAt arrayToObject concatArrays filter first firstN in indexOfArray isArray last lastN map maxN minN "
    "objectToArray range reduce reverseArray size slice sortArray zip top topN bottom bottomN "
    # booleans, comparison, conditions
    "and or not cmp eq gt gte lt lte ne cond ifNull switch "
    # bits
    "bitAnd bitNot bitOr bitXor "
    # dates
    "dateAdd dateDiff dateFromParts dateFromString dateSubtract dateToParts dateToString dateTrunc dayOfMonth "
    "dayOfWeek dayOfYear hour isoDayOfWeek isoWeek isoWeekYear millisecond minute month second toDate week year "
    "tsIncrement tsSecond "
    # objects, sets, text
    "getField setField unsetField mergeObjects allElementsTrue anyElementTrue setDifference setEquals "
    "setIntersection setIsSubset setUnion concat indexOfBytes indexOfCP ltrim regexFind regexFindAll regexMatch "
    "replaceOne replaceAll rtrim split strLenBytes strLenCP strcasecmp substrBytes substrCP substr toLower toString "
    "trim toUpper "
    # trigonometry
    "sin cos tan asin acos atan atan2 asinh acosh atanh sinh cosh tanh degreesToRadians radiansToDegrees "
    # types
    "convert isNumber toBool toDecimal toDouble toInt toLong toObjectId toUUID type bsonSize binarySize "
    # accumulators, and others
    "avg sum max min push addToSet count stdDevPop stdDevSamp median percentile let literal meta toHashedIndexKey"
)
_RANDOM = _names("rand sampleRate")
_WINDOWS = _names(
    "covariancePop covarianceSamp denseRank derivative documentNumber expMovingAvg integral linearFill locf rank shift "
    "minMaxScaler"
)
_VARIABLES = frozenset({"ROOT", "CURRENT", "NOW", "CLUSTER_TIME", "REMOVE", "DESCEND", "PRUNE", "KEEP"})

_REFERENCE = _names("ref id db")

UPDATES = _names("set unset inc mul min max rename setOnInsert currentDate push addToSet pop pull pullAll bit")
_CHANGING_STAGES = _names("set addFields unset project replaceRoot replaceWith")


def check_filter(found: Any, what: str = "The filter") -> None:
    """Raise Unsupported for an operator that isn't listed, InvalidInput for what is no filter."""
    if not isinstance(found, Mapping):
        raise InvalidInput(f"{what} isn't an object.")
    for key, inner in found.items():
        if key in _LOGICAL:
            if not isinstance(inner, list) or not inner:
                raise InvalidInput(f"{key} wants a list of filters.")
            for one in inner:
                check_filter(one, what)
        elif key == "$expr":
            check_expression(inner, random=False)
        elif key in ("$text", "$comment"):
            _plain(inner, what, _SEARCH if key == "$text" else frozenset())
        elif key.startswith("$"):
            raise _refused(key, what)
        else:
            _check_condition(inner, what)


def _check_condition(found: Any, what: str) -> None:
    """What stands behind a field's name: a value, or operators."""
    if not isinstance(found, Mapping) or not _has_operator(found):
        _plain(found, what)
        return
    for key, inner in found.items():
        if key not in _FOR_VALUES:
            raise _refused(key, what)
        if key == "$not":
            _check_condition(inner, what)
        elif key == "$elemMatch":
            if isinstance(inner, Mapping) and any(one.startswith("$") and one not in _LOGICAL for one in inner):
                _check_condition(inner, what)
            else:
                check_filter(inner, what)
        elif key == "$all":
            for one in inner if isinstance(inner, list) else []:
                _check_condition(one, what)
        elif key in ("$geoWithin", "$geoIntersects"):
            _check_shape(inner, what)
        else:
            _plain(inner, what)


def _check_shape(found: Any, what: str) -> None:
    if not isinstance(found, Mapping) or not set(found) <= _names("geometry box polygon center centerSphere"):
        raise InvalidInput(f"{what} has a shape that can't be read.")
    for inner in found.values():
        _plain(inner, what)


def _plain(found: Any, what: str, keys: frozenset[str] = frozenset()) -> None:
    """Data: no operator anywhere in it, but for `keys` at its top."""
    if isinstance(found, Mapping):
        keys = _REFERENCE if _is_reference(found) else keys
        for key, inner in found.items():
            if key.startswith("$") and key not in keys:
                raise _refused(key, what)
            _plain(inner, what)
    elif isinstance(found, list):
        for one in found:
            _plain(one, what)


def _has_operator(found: Mapping[str, Any]) -> bool:
    return any(key.startswith("$") for key in found) and not _is_reference(found)


def _is_reference(found: Mapping[str, Any]) -> bool:
    """Whether it names a document of a collection, as drivers store it: `{"$ref": "people", "$id": 5}`."""
    return [*found][:2] == ["$ref", "$id"] and all(isinstance(found.get(key, ""), str) for key in ("$ref", "$db"))


def check_projection(found: Mapping[str, Any]) -> None:
    """What is given back of a document: expressions, and of a list the first item that a filter finds."""
    for key, inner in found.items():
        if not key.startswith("$") and isinstance(inner, Mapping) and inner.keys() == {"$elemMatch"}:
            _check_condition(inner, "The projection")
        else:
            check_expression({key: inner})


def check_expression(found: Any, *, random: bool = True, more: frozenset[str] = frozenset()) -> None:
    """Raise Unsupported for an operator or a variable that isn't listed."""
    if isinstance(found, str):
        _check_variable(found)
    elif isinstance(found, list):
        for one in found:
            check_expression(one, random=random, more=more)
    elif isinstance(found, Mapping):
        for key, inner in found.items():
            if not key.startswith("$"):
                check_expression(inner, random=random, more=more)
            elif len(found) != 1 and not (more and set(found) == {key, "window"}):
                raise InvalidInput(f"{key} must stand alone in its object.")
            elif key == "$literal":
                continue
            elif key in EXPRESSIONS or key in more or (random and key in _RANDOM):
                check_expression(inner, random=random, more=more)
            else:
                raise _refused(key, "The expression")


def _check_variable(text: str) -> None:
    if text.startswith("$$"):
        name = text[2:].split(".", 1)[0]
        if not name or (not (name[0].islower() or ord(name[0]) > 127) and name not in _VARIABLES):
            raise Unsupported(f"The variable $${name[:40]} isn't allowed here.")


def check_update(found: Any, *, id: Any = None) -> None:
    """Operators, or a pipeline of stages that change one document by itself. `id`: what the filter demands of `_id`."""
    if isinstance(found, list):
        if not found:
            raise InvalidInput("The update is an empty pipeline.")
        for stage in found:
            _check_stage(stage, _CHANGING_STAGES, set())
        return
    if not isinstance(found, Mapping) or not found:
        raise InvalidInput("The update isn't an object with operators in it.", next_step='Write {"$set": {…}}.')
    for key, inner in found.items():
        if not key.startswith("$"):
            raise InvalidInput(
                f"The update has the field {key[:60]!r} where an operator belongs.",
                next_step='Write {"$set": {…}}, or use replaceOne for a whole document.',
            )
        if key not in UPDATES:
            raise _refused(key, "The update")
        if not isinstance(inner, Mapping):
            raise InvalidInput(f"{key} wants an object of fields.")
        for field, change in inner.items():
            if (key, field) != ("$set", "_id") or id is None or encode({"": change}) != encode({"": id}):
                _check_change(key, field, change)


def _check_change(operator: str, field: str, change: Any) -> None:
    if operator != "$setOnInsert" and (field == "_id" or field.startswith("_id.")):
        raise InvalidInput("A document's _id can't be changed.", next_step="Insert a new one, and delete the old one.")
    if operator == "$rename" and (not isinstance(change, str) or change == "_id" or change.startswith("_id.")):
        raise InvalidInput("$rename wants another field's name, and not _id.")
    if operator == "$pull":
        _check_pull(change)
    elif operator in ("$push", "$addToSet") and isinstance(change, Mapping) and _has_operator(change):
        allowed = _names("each slice sort position") if operator == "$push" else _names("each")
        if not set(change) <= allowed:
            raise _refused(next(key for key in change if key not in allowed), "The update")
        for inner in change.values():
            _plain(inner, "The update")
    elif operator == "$currentDate":
        if change is not True and change not in ({"$type": "date"}, {"$type": "timestamp"}):
            raise InvalidInput('$currentDate wants true, {"$type": "date"} or {"$type": "timestamp"}.')
    else:
        _plain(change, "The update")


def _check_pull(change: Any) -> None:
    if isinstance(change, Mapping) and any(key in _LOGICAL or not key.startswith("$") for key in change):
        check_filter(change, "The condition of $pull")
    else:
        _check_condition(change, "The condition of $pull")


def check_pipeline(found: Any) -> frozenset[str]:
    """A pipeline that only reads; returns the other collections that it reads. Raises Unsupported, InvalidInput."""
    others: set[str] = set()
    if not isinstance(found, list):
        raise InvalidInput("The pipeline isn't a list of stages.")
    for stage in found:
        _check_stage(stage, _STAGES.keys(), others)
    return frozenset(others)


def _check_stage(stage: Any, allowed: Any, others: set[str]) -> None:
    if not isinstance(stage, Mapping) or len(stage) != 1:
        raise InvalidInput("A stage is an object with one key.")
    name, inner = next(iter(stage.items()))
    if name not in allowed:
        raise _refused(name, "The pipeline")
    _STAGES[name](inner, others)


def _expressions(inner: Any, others: set[str]) -> None:
    check_expression(inner)


def _window_fields(inner: Any, others: set[str]) -> None:
    check_expression(inner, more=_WINDOWS)


def _match(inner: Any, others: set[str]) -> None:
    check_filter(inner, "$match")


def _data(inner: Any, others: set[str]) -> None:
    _plain(inner, "The pipeline")


def _facet(inner: Any, others: set[str]) -> None:
    if not isinstance(inner, Mapping):
        raise InvalidInput("$facet wants an object of pipelines.")
    for one in inner.values():
        others |= check_pipeline(one)


def _lookup(inner: Any, others: set[str]) -> None:
    if not isinstance(inner, Mapping):
        raise InvalidInput("$lookup wants an object.")
    _other(inner.get("from"), others)
    for key, part in inner.items():
        if key == "pipeline":
            others |= check_pipeline(part)
        elif key == "let":
            check_expression(part)
        elif key in ("from", "localField", "foreignField", "as"):
            _plain(part, "$lookup")
        else:
            raise _refused(key, "$lookup")


def _graph_lookup(inner: Any, others: set[str]) -> None:
    if not isinstance(inner, Mapping):
        raise InvalidInput("$graphLookup wants an object.")
    _other(inner.get("from"), others)
    for key, part in inner.items():
        if key == "startWith":
            check_expression(part)
        elif key == "restrictSearchWithMatch":
            check_filter(part)
        elif key in ("from", "connectFromField", "connectToField", "as", "maxDepth", "depthField"):
            _plain(part, "$graphLookup")
        else:
            raise _refused(key, "$graphLookup")


def _union(inner: Any, others: set[str]) -> None:
    if isinstance(inner, str):
        _other(inner, others)
        return
    if not isinstance(inner, Mapping) or not set(inner) <= {"coll", "pipeline"}:
        raise InvalidInput("$unionWith wants a collection, or an object with coll and pipeline.")
    _other(inner.get("coll"), others)
    others |= check_pipeline(inner.get("pipeline", []))


def _other(name: Any, others: set[str]) -> None:
    if not isinstance(name, str):
        raise Unsupported("Only collections of the same database are read.", next_step="Name one, as plain text.")
    check_collection(name)
    others.add(name)


def check_collection(name: Any) -> str:
    """The name of a collection that an action may use. Raises InvalidInput, Unsupported."""
    if not isinstance(name, str) or not name:
        raise InvalidInput("A collection's name is missing.")
    if name.startswith(("system.", "enxcol_.", OWN)) or ".system." in name:
        raise Unsupported(f"{name[:60]!r} is a collection of the system, or of GoEx: no action touches it.")
    if "$" in name or "\0" in name or len(name.encode("utf-8", "replace")) > 200:
        raise InvalidInput(f"{name[:60]!r} isn't a collection's name.")
    return name


OWN = "goex_"  # what GoEx keeps beside the documents begins so


def is_everywhere(found: Mapping[str, Any], *, lacking: bool = False) -> bool:
    """Whether a filter's own text keeps out nothing: it is empty, whatever it is wrapped in. `lacking`: or demands only
    that a field is lacking, which may be one that no document has."""
    return all(
        key == "$comment"
        or (key == "$and" and all(is_everywhere(one, lacking=lacking) for one in inner))
        or (key == "$or" and any(is_everywhere(one, lacking=lacking) for one in inner))
        or (key == "$nor" and all(_keeps_out_nothing(one, lacking=lacking) for one in inner))
        or (key == "$expr" and not _has_field(inner))
        or (key == "_id" and inner in ({"$exists": True}, {"$ne": None}, {"$nin": []}, {"$gte": MinKey()}))
        or (key == "_id" and inner in ({"$not": {"$exists": False}}, {"$not": {"$eq": None}}, {"$not": {"$in": []}}))
        or (key == "_id" and inner in ({"$gt": MinKey()}, {"$lte": MaxKey()}, {"$lt": MaxKey()}))
        or (lacking and not key.startswith("$") and key != "_id" and _is_lacking(inner))
        for key, inner in found.items()
    )


def _is_lacking(condition: Any) -> bool:
    """Whether it demands of a field no more than that it is lacking, or null."""
    if not isinstance(condition, Mapping) or not any(str(key).startswith("$") for key in condition):
        return condition is None
    return all(
        (key == "$exists" and not inner)
        or (key == "$eq" and inner is None)
        or (key == "$in" and isinstance(inner, list) and None in inner)
        or (key == "$not" and _is_there(inner))
        for key, inner in condition.items()
    )


def _is_there(condition: Any) -> bool:
    """Whether it demands that a field is there, or isn't null."""
    return isinstance(condition, Mapping) and any(
        (key == "$exists" and bool(inner))
        or (key == "$ne" and inner is None)
        or (key == "$nin" and isinstance(inner, list) and None in inner)
        or (key == "$not" and _is_lacking(inner))
        for key, inner in condition.items()
    )


def _keeps_out_nothing(filter: Mapping[str, Any], *, lacking: bool) -> bool:
    """Whether nothing fulfils a filter, so that its opposite keeps out nothing. See `is_everywhere`."""
    return any(
        (key == "_id" and inner in ({"$exists": False}, {"$eq": None}, {"$in": []}, None))
        or (lacking and not key.startswith("$") and key != "_id" and _is_there(inner))
        for key, inner in filter.items()
    )


def _has_field(expression: Any) -> bool:
    if isinstance(expression, str):
        return expression.startswith("$")
    if isinstance(expression, Mapping):
        return any(_has_field(one) for one in expression.values())
    return isinstance(expression, list) and any(_has_field(one) for one in expression)


def check_document(found: Any) -> dict[str, Any]:
    """A document to insert or to put in another's place."""
    if not isinstance(found, dict):
        raise InvalidInput("The document isn't an object.")
    if _is_reference(found):
        raise _refused("$ref", "The document")
    _plain(found, "The document")
    if isinstance(found.get("_id"), list):
        raise InvalidInput("A document's _id can't be a list.")
    return found


def _refused(name: str, what: str) -> Unsupported:
    said = _WHY.get(name, "isn't among what is allowed here")
    return Unsupported(f"{what} has {name[:60]!r}, which {said}.")


_WHY = {
    "$where": "runs JavaScript on the server",
    "$function": "runs JavaScript on the server",
    "$accumulator": "runs JavaScript on the server",
    "$out": "writes: an aggregation here only reads",
    "$merge": "writes: an aggregation here only reads",
    "$rand": "gives another answer each time, so what it finds can't be told beforehand",
    "$sampleRate": "gives another answer each time, so what it finds can't be told beforehand",
    "$eval": "runs JavaScript on the server",
}

_STAGES: Mapping[str, Callable[[Any, set[str]], None]] = {
    "$match": _match,
    "$project": _expressions,
    "$addFields": _expressions,
    "$set": _expressions,
    "$unset": _data,
    "$group": _expressions,
    "$sort": _expressions,
    "$limit": _data,
    "$skip": _data,
    "$unwind": _data,
    "$count": _data,
    "$sortByCount": _expressions,
    "$bucket": _expressions,
    "$bucketAuto": _expressions,
    "$facet": _facet,
    "$lookup": _lookup,
    "$graphLookup": _graph_lookup,
    "$unionWith": _union,
    "$replaceRoot": _expressions,
    "$replaceWith": _expressions,
    "$redact": _expressions,
    "$sample": _data,
    "$setWindowFields": _window_fields,
    "$densify": _data,
    "$fill": _expressions,
}
