"""What ways back are made of: paths and their holes, the field that names a thing, fields and expectations. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from mapper.importing.operation import Field, Op, Shape
from policies.jsonvalue import JsonObject
from policies.services import Expect

MAX_FIELDS = 60  # of a thing that is compared or made again
HOLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_\-]*)\}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")
VERSIONS = (
    "etag", "eTag", "revision", "resourceVersion", "resource_version", "fingerprint", "updated_at", "updatedAt",
    "updateTime", "updated", "modified", "modified_at", "modifiedAt", "modifiedTime", "lastModified",
    "last_modified", "version",
)  # fmt: skip
# What a service sets by itself: neither written back, nor the same after.
ITS_OWN = frozenset(VERSIONS[:-1]) | frozenset(
    (
        "created", "created_at", "createdAt", "createTime", "createdTime", "creationTime", "creationTimestamp",
        "selfLink", "self_link", "url", "href", "html_url", "links", "_links", "kind",
    )
)  # fmt: skip
# Of these a caller may say what they are all the same, where a body takes them: a hook's url, a customer's kind.
SET_BY_SERVICE = ITS_OWN - {"kind", "url", "href"}
LOCKS = frozenset(
    (
        "etag", "eTag", "revision", "resourceVersion", "resource_version", "fingerprint", "version", "objectVersion",
        "rowVersion", "row_version", "lockVersion", "lock_version", "timestamp",
    )
)  # fmt: skip
# What a read doesn't give back: written again without it, a thing would lose it.
_HIDDEN = re.compile(
    r"(?i)pass(word|phrase)|secret|private|credential|token|certificate|cvc|cvv|\bpem\b|^raw$|_?key(Data)?$"
)
# What a name in a path ends with that is a thing's own field: `{milestone_number}` is its `number`.
_IDS = frozenset({"sid", "uuid", "guid", "gid", "uid", "number", "slug", "key", "name", "code", "pk"})
# A hole that is called so takes a thing's name, and none takes its id.
_NAMES = re.compile(
    r"(?i)(name|slug|mail|code|alias|login|path|ref|type|title|version|date|number|index|sha|hash|url)s?$"
)


def plain(path: str) -> str:
    """A path without the names of its holes: the same thing may be named in several ways."""
    return HOLE.sub("{}", path)


def fixed_parts(path: str) -> list[str]:
    """The words of a path."""
    return [part for part in path.split("/") if part and "{" not in part]


def last_hole(path: str) -> str:
    found = HOLE.fullmatch(path.rpartition("/")[2])
    return found[1] if found else ""


def once(path: str) -> bool:
    """Whether a path ends with a word: what stands there is there once, a part or the settings of another thing."""
    return "{" not in path.rpartition("/")[2]


def parent(path: str) -> str:
    return path.rpartition("/")[0]


def forms_without(op: Op, hole: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, form) for name, form in op.forms.items() if name != hole))


def bare(op: Op) -> frozenset[str]:
    """The arguments in its path."""
    return frozenset(op.holes)


def same_names(op: Op) -> dict[str, str]:
    return {name: f"$request.{name}" for name in sorted(op.holes)}


def verb_of(path: str) -> tuple[str, str, str]:
    """What is before the verb, what parts them, and the verb."""
    for sign in (":", "/"):
        stem, found, verb = path.rpartition(sign)
        if found and verb.isalpha() and stem.endswith("}"):
            return stem, sign, verb.lower() if verb.islower() else verb
    return "", "", ""


def id_of(hole: str, make: Op, item: Op) -> str | None:
    """The field of what is made that names it in the path of its item: a dotted path, where it stands in `metadata`.

    That it is the right one is told by the read before the undo, which compares the whole thing.
    """
    assert make.answer is not None
    fields = make.answer.fields
    spelled = {without_signs(name): name for name in fields}
    last = re.split(r"_|-|(?<=[a-z])(?=[A-Z])", hole)[-1]
    ids = last.lower() in _IDS and (last if last in fields else last.lower())
    one, kind = without_signs(hole), without_signs((fixed_parts(item.path) or [""])[-1])
    things = {kind, kind[:-1], f"{kind[:-3]}y", f"{kind[:-2]}"}
    # A hole that is called like the thing itself (`/customers/{customer}`, `/keys/{id_key}`) takes its id.
    # Django calls it `pk` where it isn't shown as `id`.
    id = spelled.get("id") or spelled.get("pk", "")
    its = id if re.search(r"(?i)id$|^id_", hole) or one in things or not is_name(hole) else ""
    if not its and one in ("id", "uuid", "guid", "pk"):  # `/users/{id}` of a thing that has its `userId`
        named = [name for text, name in spelled.items() if text in {f"{thing}{one}" for thing in things if thing}]
        its = named[0] if len(named) == 1 else ""
    for name in (hole, spelled.get(one, ""), its, ids or ""):
        found = fields.get(name)
        if found is not None and NAME.fullmatch(name):
            kinds = found.kinds & {"string", "integer", "number"}
            return name if kinds and (kinds & {"string", "integer"} or "integer" in item.holes[hole]) else None
    held = fields.get("metadata")
    return f"metadata.{hole}" if held is not None and hole in held.inner else None


def is_name(field: str) -> bool:
    """Whether a field is called like a name that somebody gave."""
    return bool(_NAMES.search(field))


def without_signs(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def same(one: Shape | None, other: Shape | None) -> bool:
    """Whether two answers are the same thing: `one` shows all that `other` shows."""
    if one is None or other is None or not one.fields:
        return False
    if one.name and one.name == other.name:
        return True
    return len(other.fields) > 1 and _shared(one, other) == set(other.fields)


def akin(one: Shape, other: Shape) -> bool:
    """Whether one of two answers shows a part of what the other shows, and more than what it is called."""
    shared = _shared(one, other)
    return shared in (set(one.fields), set(other.fields)) and len(shared - {"id"} - ITS_OWN) > 1


def _shared(one: Shape, other: Shape) -> set[str]:
    kinds = {name: (one.fields[name].kinds, other.fields[name].kinds) for name in one.fields.keys() & other.fields}
    return {name for name, (mine, its) in kinds.items() if not mine or not its or mine & its}


def writable(shape: Shape, *, odd: bool = False) -> list[str]:
    """The fields that may be written; with `odd` names, too, that stand in a path only quoted."""
    return [name for name, each in shape.fields.items() if not each.read_only and (odd or NAME.fullmatch(name))]


def hidden(shape: Shape) -> bool:
    """Whether one of its fields may be shown only when it is made."""
    return hides(shape.fields)


def hides(names: Iterable[str]) -> bool:
    """Whether one of these names is of a secret."""
    return any(_HIDDEN.search(name) for name in names)


def locked(shape: Shape, names: Iterable[str]) -> bool:
    """Whether one of these fields says which version is written: another one by the time of an undo."""
    return any(name in LOCKS or shape.fields[name].inner & LOCKS for name in names)


def reads(answer: Shape, names: Iterable[str], body: Shape) -> bool:
    """Whether all these fields of a body can be read in an answer, as values of the same kind."""
    for name in names:
        found, wanted = answer.fields.get(name), body.fields[name]
        if found is None or found.write_only or wanted.write_only:
            return False
        if _HIDDEN.search(name) and not wanted.kinds & {"boolean", "integer", "number"}:
            return False
        if not fits(found, wanted):
            return False
    return True


def fits(found: Field, wanted: Field) -> bool:
    """Whether a value that is read can be written as it is: of the same kind, made of parts of the same kinds, all of
    those that writing needs among them, and none of those that can be written left out of it."""
    if found.kinds and wanted.kinds and not found.kinds & wanted.kinds:
        return False
    if found.choices and wanted.choices and not found.choices <= wanted.choices:
        return False  # a state that it may be in, and can't be set to
    if found.items is not None and wanted.items is not None and not fits(found.items, wanted.items):
        return False
    made = found.parts or found.items is not None
    if made and wanted.alternatives and not any(_takes(one, found) for one in wanted.alternatives):
        return False  # an owner is shown with all that it has, and written as its number or its name
    if not found.parts or not wanted.parts:
        return True
    written = {name for name, part in wanted.parts.items() if not part.read_only}
    if not written <= found.parts.keys() or any(found.parts[name].write_only for name in written):
        return False
    return all(not wanted.parts[name].write_only and fits(found.parts[name], wanted.parts[name]) for name in written)


def _takes(one: Field, found: Field) -> bool:
    """Whether one of several alternatives may be an object or a list as it is read: with no parts that it doesn't
    have."""
    if one.kinds and ("object" if found.parts else "array") not in one.kinds:
        return False
    if one.items is not None and found.items is not None and found.items.parts:
        return _takes(one.items, found.items)
    return fits(found, one) and (not one.parts or found.parts.keys() <= one.parts.keys())


def is_state(name: str, states: tuple[str, ...], shape: Shape) -> bool:
    plain = re.sub(r"^(is|has)_?(?=[A-Z_a-z])", "", name) if re.match(r"(is|has)[A-Z_]", name) else name
    return plain.lower() in states and shape.fields[name].kinds == {"boolean"}


def body_of(op: Op, read: Op, names: Iterable[str], *, shown: bool = False) -> JsonObject:
    """The arguments that make a body of these fields, with what was read before. `shown`: each must have been."""
    fields: JsonObject = {name: f"$pre.{read.around}{name}{'' if shown else '?-'}" for name in names}
    if op.spread:
        return fields
    return {"body": {op.body_around.removesuffix("."): fields} if op.body_around else fields}


def as_before(read: Op, names: Iterable[str]) -> tuple[Expect, ...]:
    says = "It isn't as it was before"
    return tuple(equals(f"{read.around}{name}", f"$pre.{read.around}{name}?", says) for name in names)


def unchanged(read: Op, made: Op) -> tuple[Expect, ...]:
    """That a thing is as `made` answered it: by its version where it has one, else by all of its fields."""
    assert read.answer is not None
    names = [name for name in read.answer.fields if NAME.fullmatch(name) and not read.answer.fields[name].write_only]
    version = next((name for name in VERSIONS if name in names), "")
    # A fingerprint may be one of what a thing is, a card's for instance, and a version a part of what it is called.
    wanted = [version] if version and version not in ("version", "fingerprint") else names
    if len(wanted) > MAX_FIELDS or len(names) < len(read.answer.fields) - 5:
        return ()
    says = "It was changed since"
    return tuple(equals(f"{read.around}{name}", f"$response.{made.around}{name}?", says) for name in wanted)


def equals(name: str, value: str, says: str) -> Expect:
    return Expect(op="equals", path=f"$.{name}", value=value, says=f"{says} ({name})")


def gone(says: str) -> Expect:
    return Expect(op="status", value=[404, 410], says=says)


def state_is(name: str, op: Literal["equals", "not_equals"]) -> Expect:
    return Expect(op=op, path=f"$.{name}", value=True)
