"""What is read as an operation, and what isn't: Extended JSON, operators, stages, names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policies.errors import GoexError, InvalidInput, Unsupported
from runtimes.mongo import allowed
from runtimes.mongo.extjson import read
from runtimes.mongo.operations import Write, lacking_ids, parse, with_ids
from runtimes.mongo.plan_text import operations
from tests.runtimes.mongo.support import operation


def find(filter: Any) -> str:
    return operation("find", "orders", filter=filter)


def aggregate(*stages: Any) -> str:
    return operation("aggregate", "orders", pipeline=list(stages))


def update(change: Any, **rest: Any) -> str:
    return operation("updateMany", "orders", filter={"a": 1}, update=change, **rest)


HOSTILE = {
    "$where": find({"$where": "sleep(1)"}),
    "$where below": find({"$or": [{"a": 1}, {"$and": [{"$where": "1"}]}]}),
    "$where in $elemMatch": find({"a": {"$elemMatch": {"$where": "1"}}}),
    "$where in $not": find({"a": {"$not": {"$where": "1"}}}),
    "$function": find({"$expr": {"$function": {"body": "f", "args": [], "lang": "js"}}}),
    "$function deep": aggregate({"$project": {"x": {"$cond": [True, {"$function": {"body": "f"}}, 1]}}}),
    "$function in a facet": aggregate({"$facet": {"a": [{"$match": {"$expr": {"$function": {}}}}]}}),
    "$function in a lookup": aggregate(
        {"$lookup": {"from": "b", "as": "c", "pipeline": [{"$set": {"x": {"$function": {}}}}]}}
    ),
    "$accumulator": aggregate({"$group": {"_id": None, "x": {"$accumulator": {"init": "f"}}}}),
    "$out": aggregate({"$out": "orders"}),
    "$out in a facet": aggregate({"$facet": {"a": [{"$out": "orders"}]}}),
    "$merge": aggregate({"$merge": {"into": "orders"}}),
    "$merge in a union": aggregate({"$unionWith": {"coll": "b", "pipeline": [{"$merge": "c"}]}}),
    "$currentOp": aggregate({"$currentOp": {"allUsers": True}}),
    "$listSessions": aggregate({"$listSessions": {}}),
    "$indexStats": aggregate({"$indexStats": {}}),
    "$collStats": aggregate({"$collStats": {}}),
    "$changeStream": aggregate({"$changeStream": {}}),
    "$documents": aggregate({"$documents": []}),
    "$geoNear": aggregate({"$geoNear": {}}),
    "$search": aggregate({"$search": {}}),
    "another database by lookup": aggregate({"$lookup": {"from": {"db": "admin", "coll": "x"}, "as": "y"}}),
    "users by lookup": aggregate({"$lookup": {"from": "system.users", "as": "y"}}),
    "users by union": aggregate({"$unionWith": "system.users"}),
    "markers by union": aggregate({"$unionWith": "goex_marks"}),
    "users by graph": aggregate({"$graphLookup": {"from": "system.users", "as": "y"}}),
    "$$USER_ROLES": aggregate({"$project": {"x": "$$USER_ROLES"}}),
    "$$SEARCH_META": aggregate({"$project": {"x": "$$SEARCH_META.count"}}),
    "$rand in a filter": find({"$expr": {"$lt": [{"$rand": {}}, 0.5]}}),
    "$sampleRate": find({"$sampleRate": 0.5}),
    "$near": find({"a": {"$near": [1, 2]}}),
    "$jsonSchema": find({"$jsonSchema": {}}),
    "an operator that nobody knows": find({"a": {"$evil": 1}}),
    "an operator in a value": find({"a": {"$eq": {"$where": "1"}}}),
    "$out in an update": update([{"$out": "x"}]),
    "$function in an update": update([{"$set": {"x": {"$function": {}}}}]),
    "$lookup in an update": update([{"$lookup": {"from": "b", "as": "c"}}]),
    "$function as a lookup's field": aggregate({"$lookup": {"from": "b", "as": "c", "localField": {"$function": {}}}}),
    "$function as a graph's field": aggregate({"$graphLookup": {"from": "b", "as": {"$function": {}}}}),
    "$function for a bit": update({"$bit": {"a": {"or": {"$function": {}}}}}),
    "$where in a pull": update({"$pull": {"a": {"$where": "1"}}}),
    "$where in an array filter": update({"$set": {"a.$[x]": 1}}, arrayFilters=[{"$where": "1"}]),
    "an update that nobody knows": update({"$evil": {"a": 1}}),
    "a dollar in a document": operation("insertOne", "orders", document={"a": {"$where": "1"}}),
    "a dollar on top of a document": operation("insertOne", "orders", document={"$db": "admin"}),
    "a dollar in a replacement": operation("replaceOne", "orders", filter={}, replacement={"$set": {"a": 1}}),
    "the users": operation("find", "system.users"),
    "what a client encrypts": operation("deleteMany", "enxcol_.people.ecoc", filter={}),
    "the profile": operation("deleteMany", "system.profile", filter={}),
    "the views": operation("updateMany", "system.views", filter={}, update={"$set": {"a": 1}}),
    "the markers": operation("deleteMany", "goex_marks", filter={}),
    "buckets": operation("find", "x.system.buckets"),
    "a command as collection": operation("find", "$cmd", filter={}),
    "a NUL": operation("find", "a\0b", filter={}),
    "mapReduce": operation("mapReduce", "orders", map="f", reduce="f"),
    "eval": operation("eval", "1"),
    "drop": operation("drop", "orders"),
    "dropDatabase": json.dumps({"dropDatabase": 1}),
    "createIndex": operation("createIndexes", "orders", indexes=[]),
    "runCommand": operation("runCommand", "shutdown"),
    "findAndModify": operation("findAndModify", "orders", remove=True),
    "let": operation("find", "orders", filter={}, let={"a": 1}),
    "hint": operation("find", "orders", filter={}, hint="x"),
    "a database beside": operation("find", "orders", filter={}, **{"$db": "admin"}),
    "code": '{"find": "orders", "filter": {"a": {"$code": "1"}}}',
    "an id that is changed": update({"$set": {"_id": 1}}),
    "an id that is changed below": update({"$unset": {"_id.a": 1}}),
    "an id that is renamed": update({"$rename": {"a": "_id"}}),
    "a bulk that goes on": operation("bulkWrite", "o", operations=[{"deleteOne": {"filter": {}}}], ordered=False),
    "inserts that go on": operation("insertMany", "o", documents=[{}], ordered=False),
    "a command that goes on": operation("update", "o", updates=[{"q": {}, "u": {"$set": {"a": 1}}}], ordered=False),
    "a command with $where": operation("delete", "o", deletes=[{"q": {"$where": "1"}, "limit": 0}]),
    "a command with two filters": operation("update", "o", updates=[{"q": {"a": 1}, "filter": {}, "u": {"a": 1}}]),
    "a command that deletes by two filters": operation(
        "delete", "o", deletes=[{"q": {"a": 1}, "filter": {}, "limit": 0}]
    ),
    "found and changed by two filters": operation("findAndModify", "o", query={"a": 1}, filter={}, remove=True),
    "replaced by two documents": operation("findAndModify", "o", query={}, update={"a": 1}, replacement={"a": 2}),
    "counted by two filters": operation("count", "o", query={"a": 1}, filter={}),
    "a command without a filter": operation("delete", "o", deletes=[{"limit": 0}]),
    "a command that doesn't say how many": operation("delete", "o", deletes=[{"q": {}}]),
    "a command for the users": operation("update", "system.users", updates=[{"q": {}, "u": {"$set": {"a": 1}}}]),
    "a command's pipeline that writes": operation("update", "o", updates=[{"q": {}, "u": [{"$out": "x"}]}]),
    "a command for another database": operation("insert", "o", documents=[{}], **{"$db": "admin"}),
    "many documents that one replaces": operation("update", "o", updates=[{"q": {}, "u": {"a": 1}, "multi": True}]),
    "a collation, without which it finds others": operation(
        "updateOne", "o", filter={"a": "b"}, update={"$set": {"c": 1}}, collation={"locale": "en", "strength": 1}
    ),
    "$where in what is found and changed": operation("findOneAndDelete", "o", filter={"$where": "1"}),
    "found and changed without a filter": operation("findAndModify", "o", update={"$set": {"a": 1}}),
    "removed and changed": operation("findAndModify", "o", query={}, remove=True, update={"$set": {"a": 1}}),
    "$where in a projection": operation("find", "o", projection={"a": {"$elemMatch": {"$where": "1"}}}),
    "a reference with an operator": update({"$set": {"a": {"$ref": "b", "$id": {"$where": "1"}}}}),
    "a reference with an operator beside it": update({"$set": {"a": {"$ref": "b", "$id": 1, "$where": "1"}}}),
    "a reference that names no collection": find({"a": {"$ref": {"$where": "1"}, "$id": 1}}),
    "a reference in an expression": aggregate({"$project": {"a": {"$ref": "b", "$id": 1}}}),
    "a reference as a document": operation("insertOne", "o", document={"$ref": "b", "$id": 1}),
    "an id that becomes another": operation("updateOne", "o", filter={"_id": 1}, update={"$set": {"_id": 1.0}}),
    "a bulk of commands": operation("bulkWrite", "o", operations=[{"drop": {}}]),
    "an empty timestamp": '{"insertOne": "o", "document": {"a": {"$timestamp": {"t": 0, "i": 0}}}}',
    "a stage of two": aggregate({"$match": {}, "$out": "x"}),
    "an expression of two": aggregate({"$project": {"a": {"$add": [1], "$function": {}}}}),
    "a window's function": aggregate({"$setWindowFields": {"output": {"x": {"$function": {}, "window": {}}}}}),
}


@pytest.mark.promise(70)
@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_not_listed_is_refused(name: str) -> None:
    with pytest.raises((Unsupported, InvalidInput)):
        parse([HOSTILE[name]])


MALFORMED = (
    "",
    "[]",
    "{}",
    "null",
    '"find"',
    '{"find": "orders", "find": "other"}',
    '{"find": "orders", "filter": {"a": 1, "a": 2}}',
    '{"find": "orders", "filter": {"a": NaN}}',
    '{"find": "orders", "filter": {"a": 1e999}}',
    '{"find": "orders", "filter": []}',
    '{"find": 5}',
    '{"find": ""}',
    '{"find": "orders", "limit": -1}',
    '{"find": "orders", "limit": true}',
    '{"find": "orders", "sort": {"a": 2}}',
    '{"find": "orders", "sort": {"$a": 1}}',
    '{"deleteMany": "orders"}',
    '{"updateMany": "orders", "filter": {}}',
    '{"updateMany": "orders", "filter": {}, "update": {}}',
    '{"updateMany": "orders", "filter": {}, "update": []}',
    '{"updateMany": "orders", "filter": {}, "update": {"a": 1}}',
    '{"insertOne": "orders"}',
    '{"insertMany": "orders", "documents": []}',
    '{"insertOne": "orders", "document": {"_id": [1]}}',
    '{"find": "orders", "filter": {"a": {"$oid": "xyz"}}}',
    '{"find": "orders", "filter": {"a": {"$oid": "0123456789abcdef01234567", "b": 1}}}',
    '{"find": "orders", "filter": {"a": {"$date": "2026-01-01T00:00:00"}}}',
    '{"find": "orders", "filter": {"a": {"$numberLong": "9223372036854775808"}}}',
    '{"find": "orders", "filter": {"a": {"$numberLong": 5}}}',
    '{"find": "orders", "filter": {"a": {"$binary": {"base64": "!", "subType": "00"}}}}',
    '{"find": "orders", "filter": {"a": {"$regularExpression": {"pattern": "a", "options": "ii"}}}}',
    '{"find": "orders", "filter": {"a": 123456789012345678901}}',
    '{"find": "orders", "filter": ' + '{"a": ' * 80 + "1" + "}" * 80 + "}",
    '{"find": "orders", "filter": {"a": "\\ud800"}}',
    '{"find": "orders", "filter": {"a\\u0000b": 1}}',
)


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
def test_what_is_malformed_is_refused_in_words(text: str) -> None:
    with pytest.raises(GoexError) as refused:
        parse([text])
    assert refused.value.message.endswith(".") and "Traceback" not in str(refused.value)


FINE = (
    find({"a": {"$gte": 1, "$lt": 5}, "$or": [{"b": None}, {"c": {"$in": [1, {"$oid": "0123456789abcdef01234567"}]}}]}),
    find({"$expr": {"$gt": ["$a", {"$multiply": ["$b", 2]}]}}),
    find({"a": {"$elemMatch": {"x": 1, "y": {"$gt": 2}}}, "b": {"$not": {"$regex": "^a"}}}),
    find({"$text": {"$search": "coffee"}, "where": {"$geoWithin": {"$box": [[0, 0], [1, 1]]}}}),
    aggregate(
        {"$match": {"a": 1}},
        {"$lookup": {"from": "people", "localField": "p", "foreignField": "_id", "as": "p"}},
        {"$group": {"_id": "$b", "n": {"$sum": 1}, "all": {"$push": "$$ROOT"}}},
        {"$sort": {"n": -1}},
        {
            "$project": {
                "n": 1,
                "x": {"$map": {"input": "$all", "as": "one", "in": "$$one.a"}},
                "l": {"$literal": {"$x": 1}},
            }
        },
        {"$setWindowFields": {"sortBy": {"n": 1}, "output": {"r": {"$rank": {}}, "s": {"$sum": "$n", "window": {}}}}},
    ),
    update({"$set": {"a.$[x].b": 1}, "$push": {"l": {"$each": [1], "$slice": -5}}}, arrayFilters=[{"x.c": 1}]),
    update({"$pull": {"l": {"$gte": 5}}, "$currentDate": {"at": {"$type": "timestamp"}}, "$bit": {"f": {"or": 4}}}),
    update([{"$set": {"total": {"$sum": "$items.price"}, "r": {"$rand": {}}}}]),
    operation("insert_one", "orders", document={"": 1, "a.b": 2}),
    operation("count_documents", "orders", filter={}),
    operation("find", "orders", projection={"l": {"$elemMatch": {"a": {"$gt": 1}}}, "m": {"$slice": 2}}),
    operation("find", "orders", filter={"$text": {"$search": "x"}}, sort={"score": {"$meta": "textScore"}}),
    find({"by": {"$ref": "people", "$id": 5}, "by.$id": 5, "made": {"$gt": {"$date": 1700000000000}}}),
    update({"$set": {"by": {"$ref": "people", "$id": 5, "$db": "x"}}, "$push": {"l": {"$ref": "people", "$id": 5}}}),
    operation("updateOne", "orders", filter={"_id": "a"}, update={"$set": {"_id": "a", "b": 1}}, upsert=True),
    operation("insertMany", "orders", documents=[{}], ordered=True),
)


@pytest.mark.parametrize("text", FINE, ids=range(len(FINE)))
def test_what_people_need_is_read(text: str) -> None:
    assert parse([text]).operations


CHANGE = {"$set": {"a": 1}}
SAME = {
    operation("insert", "o", documents=[{"a": 1}], comment="x"): [operation("insertMany", "o", documents=[{"a": 1}])],
    operation("update", "o", updates=[{"q": {"a": 1}, "u": CHANGE}, {"q": {}, "u": CHANGE, "multi": True}]): [
        operation("updateOne", "o", filter={"a": 1}, update=CHANGE),
        operation("updateMany", "o", filter={}, update=CHANGE),
    ],
    operation("update", "o", updates=[{"q": {"a": 1}, "u": {"a": 2}}]): [
        operation("replaceOne", "o", filter={"a": 1}, replacement={"a": 2})
    ],
    operation("delete", "o", deletes=[{"q": {"a": 1}, "limit": 1}, {"q": {"a": 2}, "limit": 0}]): [
        operation("deleteOne", "o", filter={"a": 1}),
        operation("deleteMany", "o", filter={"a": 2}),
    ],
    operation("findAndModify", "o", query={"a": 1}, update=CHANGE, new=True, upsert=True): [
        operation("findOneAndUpdate", "o", filter={"a": 1}, update=CHANGE, returnDocument="after", upsert=True)
    ],
    operation("findAndModify", "o", query={"a": 1}, update={"a": 2}): [
        operation("findOneAndReplace", "o", filter={"a": 1}, replacement={"a": 2}, returnDocument="before")
    ],
    operation("findAndModify", "o", query={"a": 1}, remove=True, sort={"a": 1}): [
        operation("find_one_and_delete", "o", filter={"a": 1}, sort={"a": 1})
    ],
    operation("count", "o", query={"a": 1}): [operation("countDocuments", "o", filter={"a": 1})],
    operation("distinct", "o", key="b", query={"a": 1}): [operation("distinct", "o", key="b", filter={"a": 1})],
    operation("aggregate", "o", pipeline=[], cursor={}, allowDiskUse=True): [operation("aggregate", "o", pipeline=[])],
    operation("estimatedDocumentCount", "o"): [operation("count", "o")],
}  # fmt: skip


@pytest.mark.parametrize("command", SAME, ids=range(len(SAME)))
def test_a_command_is_what_the_shell_calls_otherwise(command: str) -> None:
    assert parse([command]) == parse(SAME[command])


@pytest.mark.parametrize("name", ["createIndex", "dropIndexes", "drop", "renameCollection", "collMod"])
def test_what_changes_a_collection_is_refused_as_that(name: str) -> None:
    with pytest.raises(Unsupported, match="changes what a collection or an index is") as refused:
        parse([operation(name, "orders")])
    assert refused.value.next_step


@pytest.mark.parametrize("name", ["createUser", "dropRole", "dropAllUsersFromDatabase"])
def test_what_changes_users_is_refused_as_that(name: str) -> None:
    with pytest.raises(Unsupported, match="changes what a user or a role is"):
        parse([operation(name, "orders")])


def test_a_lookup_is_a_use_of_the_other_collection_too() -> None:
    uses = parse([FINE[4]]).uses()
    assert set(uses) == {("orders", "find"), ("people", "find")}


@pytest.mark.parametrize(
    ("filter", "everywhere"),
    [
        ("{}", True),
        ('{"$and": [{}, {"$or": [{}, {"a": 1}]}]}', True),
        ('{"$expr": true}', True),
        ('{"$expr": {"$eq": [1, 1]}}', True),
        ('{"$comment": "only mine"}', True),
        ('{"_id": {"$exists": true}}', True),
        ('{"_id": {"$not": {"$exists": false}}}', True),
        ('{"$nor": [{"_id": {"$exists": false}}, {"_id": {"$in": []}}]}', True),
        ('{"$nor": [{"_id": {"$exists": false}}, {"a": 1}]}', False),
        ('{"$nor": [{"a": {"$exists": true}}]}', False),
        ('{"$or": [{"a": 1}, {"b": 1}]}', False),
        ('{"deletedAt": null}', False),
        ('{"email": {"$exists": false}}', False),
        ('{"email": {"$in": [null, ""]}}', False),
        ('{"$or": [{"x": null}, {"n": 1}]}', False),
        ('{"_id": {"$gte": {"$minKey": 1}}}', True),
        ('{"_id": {"$lt": {"$maxKey": 1}}}', True),
        ('{"_id": null}', False),
        ('{"a": null, "b": 1}', False),
        ('{"a": {"$exists": true}}', False),
        ('{"a": {"$in": [1, 2]}}', False),
        ('{"a": {"$exists": false, "$gt": 1}}', False),
        ('{"$expr": {"$eq": ["$a", 1]}}', False),
    ],
)
def test_an_empty_filter_is_seen_through_its_wrapping(filter: str, everywhere: bool) -> None:
    assert allowed.is_everywhere(read(filter)) is everywhere


@pytest.mark.parametrize(
    "lacks",
    [
        '{"email": null}',
        '{"email": {"$exists": false}}',
        '{"email": {"$in": [null, ""]}}',
        '{"email": {"$not": {"$exists": true}}}',
        '{"email": {"$not": {"$ne": null}}}',
        '{"$nor": [{"email": {"$exists": true}}]}',
        '{"$nor": [{"email": {"$nin": [null]}}, {"phone": {"$exists": true}, "a": 1}]}',
    ],
)
def test_a_filter_that_asks_that_a_field_is_lacking_is_told_as_that(lacks: str) -> None:
    text = '{"updateMany": "o", "filter": %s, "update": {"$set": {"a": 1}}}'
    lines = "\n".join(operations([text % lacks], parse([text % lacks])))
    assert "only asks that a field is lacking" in lines and "EMPTY" not in lines
    for other in ("{}", '{"a": null, "b": 1}', '{"_id": null}'):
        assert "lacking" not in "\n".join(operations([text % other], parse([text % other])))


def test_an_empty_timestamp_is_taken_where_nothing_is_set() -> None:
    empty = {"$timestamp": {"t": 0, "i": 0}}
    for change in ("$unset", "$pull"):
        parse([operation("updateOne", "o", filter={}, update={change: {"t": empty}})])
    with pytest.raises(Unsupported, match="empty timestamp"):
        parse([operation("insertOne", "o", document={"a.t": empty})])


def test_ids_are_made_for_what_lacks_one_and_for_nothing_else() -> None:
    program = parse(
        [
            '{"insertMany": "o", "documents": [{"a": 1}, {"_id": 5}]}',
            '{"updateOne": "o", "filter": {"a": 1}, "update": {"$set": {"b": 1}}, "upsert": true}',
            '{"updateOne": "o", "filter": {"$and": [{"_id": 7}]}, "update": {"$set": {"b": 1}}, "upsert": true}',
            '{"replaceOne": "o", "filter": {"a": 2}, "replacement": {"_id": 9}, "upsert": true}',
        ]
    )
    assert lacking_ids(program) == 2
    made = with_ids(program, ["first", "second"]).operations
    assert [list(one.documents) for one in made[:1]] == [[{"_id": "first", "a": 1}, {"_id": 5}]]  # type: ignore[union-attr]
    assert [one.upsert_id for one in made[1:] if isinstance(one, Write)] == ["second", 7, 9]
    assert lacking_ids(with_ids(program, ["first", "second"])) == 0


def test_the_sizes_are_bounded() -> None:
    with pytest.raises(InvalidInput, match="at most"):
        parse(['{"count": "o"}'] * 1001)
    with pytest.raises(InvalidInput, match="at most"):
        parse([operation("insertMany", "o", documents=[{}] * 10_001)])
    with pytest.raises(InvalidInput, match="at most"):
        parse([operation("insertOne", "o", document={"a": "x" * 1_000_001})])
