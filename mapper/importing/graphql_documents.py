"""The GraphQL document of one root field, printed at import: what of its answer is asked for, and the variables. Pure.

Rules: one operation, one root field, every argument a variable, no alias, no text. Asked for are the plain values of
the result and of the objects in it, the nearest first, to a fixed depth and number (the parts of a connection are no
depth of their own); of a connection the items and the
page. A field that takes an argument which it can't do without is left out, and so is an object's field that takes any:
what it holds may be a list without end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mapper.importing.graphql_types import COMPOSITE, Argument, Field, Kind, Schema

MAX_VALUES = 100  # plain values that one document asks for
MAX_OBJECTS = 60
OF_LEVEL = (MAX_VALUES, 40, 10)  # of each object: of the result, of those in it, of those in these
TELLING = ("id", "name", "title", "number", "key", "code", "message", "field", "url")  # taken first where not all are
MAX_MEMBERS = 20  # of a union
_DEEPEST = 7
_LOOKED_AT = 300  # fields of one type
_PARTS = ("nodes", "edges", "node", "pageInfo")  # of a connection


@dataclass(slots=True)
class _Asked:
    """What is asked for of one object: plain fields, objects, and by type where it may be one of several."""

    type: str
    level: int
    depth: int
    values: list[str] = field(default_factory=list)
    objects: dict[str, _Asked] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)

    def lines(self, indent: str) -> list[str]:
        made = [f"{indent}{name}" for name in self.values]
        for name, inner in [*self.objects.items()]:
            below = inner.lines(f"{indent}  ")
            if below:
                made += [f"{indent}{name} {{", *below, f"{indent}}}"]
        for name, values in self.members.items():
            made += [f"{indent}... on {name} {{", *(f"{indent}  {one}" for one in values), f"{indent}}}"]
        return made


class Documents:
    """Prints the documents of one schema. What it finds of a type is kept, since most fields lead to few types."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._plain: dict[str, dict[str, Field]] = {}
        self._inner: dict[str, dict[str, str]] = {}

    def document(self, operation: str, root: Field, arguments: tuple[Argument, ...]) -> str:
        """The document of a root field with these of its arguments, each a variable of its name."""
        variables = ", ".join(f"${one.name}: {_variable(one)}" for one in arguments)
        passed = ", ".join(f"{one.name}: ${one.name}" for one in arguments)
        head = f"{operation} {root.name}{f'({variables})' if variables else ''} {{"
        lines = self._selected(root.type.name) if self._schema.is_composite(root.type.name) else []
        call = f"  {root.name}{f'({passed})' if passed else ''}"
        return "\n".join([head, f"{call} {{", *lines, "  }", "}"] if lines else [head, call, "}"])

    def _selected(self, name: str) -> list[str]:
        """The lines of what is asked for of an object, the nearest values first."""
        root = _Asked(name, 0, 0)
        queue, left, objects = [root], MAX_VALUES, 0
        for asked in queue:  # it grows on the way
            kind = self._schema.types[asked.type]
            if kind.kind != "object":
                asked.values.append("__typename")
            taken = list(self._values(kind))[: min(left, OF_LEVEL[asked.level])]
            asked.values += taken
            left -= len(taken)
            for member, values in self._members(kind).items():
                asked.members[member] = values[:left]
                left -= len(asked.members[member])
                if not asked.members[member]:
                    del asked.members[member]
            for inner, type_name in self._objects(kind).items():
                part = inner in _PARTS and self._is_part(kind)
                level = asked.level + (not part)
                if level < len(OF_LEVEL) and asked.depth < _DEEPEST and objects < MAX_OBJECTS and left > 0:
                    objects += 1
                    asked.objects[inner] = _Asked(type_name, level, asked.depth + 1)
                    queue.append(asked.objects[inner])
        return root.lines("    ") or ["    __typename"]

    def _values(self, kind: Kind) -> dict[str, Field]:
        """The plain fields that can be asked for without an argument."""
        if kind.name not in self._plain:
            known = sorted(kind.fields.values(), key=lambda one: one.name not in TELLING)[:_LOOKED_AT]
            self._plain[kind.name] = {
                one.name: one
                for one in known
                if one.type.name in self._schema.types
                and self._schema.types[one.type.name].kind in ("scalar", "enum")
                and not one.deprecated
                and not any(argument.needed for argument in one.arguments)
            }
        return self._plain[kind.name]

    def _objects(self, kind: Kind) -> dict[str, str]:
        """The fields that lead to an object, and its type. Of a connection, its items and its page alone."""
        if kind.name not in self._inner:
            found = {
                one.name: one.type.name
                for one in [*kind.fields.values()][:_LOOKED_AT]
                if self._schema.is_composite(one.type.name) and not one.arguments and not one.deprecated
            }
            if self._is_connection(kind):
                found = {name: type_name for name, type_name in found.items() if name in _PARTS}
                if "nodes" in found:
                    found.pop("edges", None)
            self._inner[kind.name] = {
                name: type_name
                for name, type_name in found.items()
                if not self._is_connection(self._schema.types[type_name])
            }
        return self._inner[kind.name]

    def _members(self, kind: Kind) -> dict[str, list[str]]:
        """The plain fields of each type that a union may be. Of fields of one name with different types, the first."""
        made: dict[str, list[str]] = {}
        types: dict[str, str] = {}
        for name in [*kind.members][:MAX_MEMBERS]:
            member = self._schema.types.get(name)
            if member is None or member.kind not in COMPOSITE:
                continue
            made[name] = [
                one.name
                for one in self._values(member).values()
                if types.setdefault(one.name, str(one.type)) == str(one.type)
            ]
        return made

    def _is_connection(self, kind: Kind) -> bool:
        return "pageInfo" in kind.fields and ("nodes" in kind.fields or "edges" in kind.fields)

    def _is_part(self, kind: Kind) -> bool:
        return self._is_connection(kind) or "cursor" in kind.fields


def _variable(one: Argument) -> str:
    """A variable's type. One with a default may be left out, also where the argument itself may not be null."""
    text = str(one.type)
    return text.removesuffix("!") if one.has_default else text
