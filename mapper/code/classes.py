"""Classes of the program's own: objects, what they have of their classes, and of libraries' that they come from.

Rules: an object of a class that comes from a library's client sends as that does, unless the program's own class may
have changed how. A member of an enumeration is one object, however often it is read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from mapper.code import libraries
from mapper.code.abstract_values import (
    UNKNOWN,
    Class,
    Fields,
    Function,
    Listed,
    Lit,
    Made,
    Member,
    Method,
    Named,
    OneOf,
    Stream,
    Thing,
    Unknown,
    Value,
    plain,
    same,
)
from mapper.code.expressions import Expressions
from mapper.code.interpreter import Scope

_ENUMS = frozenset({f"enum.{name}" for name in ("Enum", "StrEnum", "IntEnum", "Flag", "IntFlag", "ReprEnum")})
_TEXTS = frozenset({"enum.StrEnum", "enum.IntEnum", "enum.IntFlag"})  # a member's text is its value
_MIXED = frozenset({"builtins.str", "builtins.int"})  # by which a member is its value, but not its text
# What `__str__` may end with, for a member's text to be its value.
_SHOWN = ("return self.value", "return str(self.value)", "return self._value_", "return str.__str__(self)")
# Clients that a class may come from.
_CLIENTS = frozenset({"requests.Session", "requests.sessions.Session", "httpx.Client", "httpx.AsyncClient"})
_VERBS = frozenset({"get", "post", "put", "patch", "delete", "head", "options"})
# What of such a client is called on the way of a request, beside `request` and these.
_ON_THE_WAY = frozenset({
    "send", "prepare_request", "build_request", "stream", "mount", "get_adapter", "merge_environment_settings",
    "rebuild_auth", "rebuild_method", "rebuild_proxies", "resolve_redirects", "get_redirect_target", "params", "auth",
    "base_url", "headers", "__getattr__", "__getattribute__", "__setattr__", "__new__", "_merge_url",
    "_merge_queryparams", "_merge_headers", "_merge_cookies", "_enforce_trailing_slash", "_build_request_auth",
    "_transport_for_url", "_send_handling_auth", "_send_handling_redirects", "_send_single_request",
    "_build_redirect_request", "_redirect_method", "_redirect_url", "_redirect_headers", "_redirect_stream",
})  # fmt: skip
_CHANGING_OBJECTS = ("__new__", "__setattr__", "__getattribute__")
_LIBRARY = "\0library"  # an object's attribute: the client that it is besides
_CALLED = _VERBS | {"request"}
_OF_OBJECTS = frozenset({"params", "auth", "headers", "base_url"})  # each of requests' sessions has its own
# What httpx gives its `request` beside what the caller gives.
_GIVEN = ("content", "data", "files", "json", "params", "headers", "cookies")


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Methods that are followed where they are called.
_FOLLOWED = frozenset({
    "__init__", "__enter__", "__aenter__", "__exit__", "__aexit__", "__call__", "__post_init__", "__attrs_post_init__",
})  # fmt: skip


class Classes(Expressions):
    """What classes and their objects give."""

    def above(self, node: ast.Call, scope: Scope) -> Value | None:
        """What `super().name(…)` gives; None for any other call."""
        match node.func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=of), attr=name):
                pass
            case _:
                return None
        args: list[Value] = []
        further = False
        for arg in node.args:
            items, more = self.items(self.value(arg, scope)) if isinstance(arg, ast.Starred) else ((), False)
            args += items if isinstance(arg, ast.Starred) else [self.value(arg, scope)]
            further = further or more
        given = Fields(more=further)
        for keyword in node.keywords:
            value = self.value(keyword.value, scope)
            named = Fields(((keyword.arg, value),)) if keyword.arg else value
            given = given.merged(named if isinstance(named, Fields) else Fields(more=True))
        method = next((one for one in reversed(self.running) if not isinstance(one, ast.Lambda)), None)
        while scope.kind == "round" and scope.outer is not None:
            scope = scope.outer
        there = list(scope.attributes.values())
        self.seen.spend(len(there))
        first = next((value for value in there[:1] if isinstance(value, Class)), None)
        owner = next((value for value in there if isinstance(value, Made)), first)
        line = self._line(owner.of if isinstance(owner, Made) else owner) if owner is not None else []
        below: Value | None = next((one for one in line if method in one.node.body), None)
        if of:
            below = self.value(of[0], scope)
        if owner is None or not isinstance(below, Class):
            return UNKNOWN
        if isinstance(owner, Made) and name == "__init__" and self.constructed_above(owner, below, args, given):
            return Lit(None)
        for other in line[line_after(line, below) :]:
            if (function := other.methods.get(name)) is not None:
                return self.enter(replace(function, bound=(owner,)), tuple(args), given)
        client = self._client_of(owner.of) if isinstance(owner, Made) else None
        if client is None or not isinstance(owner, Made):
            return UNKNOWN
        if name != "__init__":
            return self.of_library(owner, name, args, given)
        self._given_library(owner, client, args, given)
        return Lit(None)

    def _line(self, made_of: Class, depth: int = 0) -> list[Class]:
        """A class, and those that it comes from, in the order in which Python looks for what they have."""
        self.seen.spend(1 + len(made_of.node.body) // 8)  # whoever asks goes through it
        if made_of in self._lines:
            self.seen.spend(len(self._lines[made_of]) // 8)
            return self._lines[made_of]
        bases = [one for one in made_of.bases if isinstance(one, Class)] if depth < 8 else []
        found = [made_of, *(self._line(bases[0], depth + 1) if len(bases) == 1 else ())]
        rows = [*[[*self._line(one, depth + 1)] for one in bases], bases] if len(bases) > 1 else []
        while rows := [row for row in rows if row]:
            tails = [one for row in rows for one in row[1:]]
            self.seen.spend(len(tails))
            first = next((row[0] for row in rows if row[0] not in tails), rows[0][0])
            found.append(first)
            rows = [[one for one in row if one is not first] for row in rows]
        self._lines[made_of] = found
        return found

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        """A name that is called: naming it doesn't hand it on."""
        found = scope.find(node.id)
        return found if found is not None else Named(f"builtins.{node.id}")

    def made(self, made_of: Class, args: list[Value], given: Fields) -> Value:
        """An object of a class."""
        members = self.members(made_of)
        if members is not None:  # by the value of one
            return self.either(
                one for one in members.values()
                if not args or not isinstance(args[0], Lit) or not isinstance(_value_of(one), Lit)
                or same(_value_of(one), args[0])
            )  # fmt: skip
        made = Made(made_of)
        for name, value in self._class_values(made_of).items():
            made.attributes[name] = self.given_each(value, made)
        self.objects.born(made)
        found = self.constructed(made, made_of, args, given)
        if found is None:
            self._fielded(made, args, given)
        client = self._client_of(made_of)
        if client is not None and found is None:
            self._given_library(made, client, args, given)
        self.handed_on([replace(one, bound=(made,)) for one in self.implicit(made_of)], Fields())
        # Others may call what this object has, as long as the program names it somewhere.
        self.seen.spend(len(made_of.node.body))
        for name, function in made_of.methods.items():
            if name in self.mentioned:
                self.loose.append(replace(function, bound=(made,)))
        if self._is_changed(made_of):
            self.objects.forget(made)
        return made

    def implicit(self, made_of: Class) -> list[Function]:
        """Methods of a class that are called without their names: by operators, or by its library."""
        if made_of in self._implicit:
            return self._implicit[made_of]
        line = self._line(made_of)
        others = [base for one in line for base in one.bases if not isinstance(base, Class)]
        makes = Named("builtins.type") in others  # it is a class of classes
        library = any(not (isinstance(one, Named) and _calls_none(one.name)) for one in others)
        self.seen.spend(sum(len(one.node.body) for one in line))
        found = {name: one for each in reversed(line) for name, one in each.methods.items()}
        named = {each.id for one in line for node in one.node.body if not isinstance(node, _DEFINITIONS)
                 for each in ast.walk(node) if isinstance(each, ast.Name)}  # fmt: skip
        self._implicit[made_of] = [
            function for name, function in found.items()
            if (library or name in named or re.match(r"__|del:", name)) and (makes or name not in _FOLLOWED)
        ]  # fmt: skip
        return self._implicit[made_of]

    def constructed(self, made: Made, made_of: Class, args: list[Value], given: Fields) -> Function | None:
        """Follow the constructor of a class. Returns it; None where there is none."""
        found = self._of_class(made_of, "__init__")
        if found is not None:
            self.enter(replace(found, bound=(made,)), tuple(args), given)
        return found

    def constructed_above(self, made: Made, made_of: Class, args: list[Value], given: Fields) -> bool:
        """Follow what JavaScript's `super(…)` does in a class's constructor. Returns whether it is that."""
        return False

    def _is_changed(self, made_of: Class) -> bool:
        """Whether a class's objects may have something else than they are given."""
        if any(self._of_class(made_of, name) is not None for name in _CHANGING_OBJECTS):
            return True
        for one in self._line(made_of):
            given = [*one.node.decorator_list, *[each.value for each in one.node.keywords if each.arg == "metaclass"]]
            for each in given:
                found = self._name(each, one.scope) if isinstance(each, ast.Name) else UNKNOWN
                if isinstance(found, Class) or (isinstance(found, Function) and _stores(found.node)):
                    return True
        found_below = self._of_class(made_of, "__init_subclass__")
        return found_below is not None and _stores(found_below.node)

    def _class_values(self, made_of: Class) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for one in reversed(self._line(made_of)):
            found = {name: value for name, value in found.items() if name not in one.methods} | one.body.attributes
        return {name: UNKNOWN if self._changed_below(made_of, name) else value for name, value in found.items()}

    def _changed_below(self, made_of: Class, name: str) -> bool:
        """Whether a class's attribute, or that of one that it comes from, was given another value."""
        if not self.changed:
            return False
        return any((one.node, each) in self.changed for one in self._line(made_of) for each in (name, ""))

    def _of_class(self, made_of: Class, name: str) -> Function | None:
        for one in self._line(made_of):
            if (one.node, name) in self.changed:
                return None
            if name in one.methods:
                return one.methods[name]
        return None

    def _bound(self, made: Made, name: str) -> Function | None:
        """A method of an object."""
        found = self._of_class(made.of, name)
        return replace(found, bound=(made,)) if found is not None else None

    def attribute(self, owner: Value, name: str) -> Value:
        """`owner.name`."""
        match owner:
            case Lit() if name == "value":
                return _value_of(owner)  # an enumeration's, which is its value
            case Named(name=full):
                return Named(f"{full}.{name}")
            case Made(attributes=attributes):
                if name == "__class__":
                    return owner.of
                if name == "__dict__":  # by which they may be changed
                    self.objects.forget(owner)
                    return UNKNOWN
                if name in attributes:
                    return attributes[name] if not self._changed_below(owner.of, name) else UNKNOWN
                client = attributes.get(_LIBRARY)
                if name == "params" and isinstance(client, Thing):
                    return libraries.attribute(self, client, name)
                found = self._of_class(owner.of, name)
                if found is not None and _decorated(found, "property", "cached_property"):
                    return self.enter(replace(found, bound=(owner,)), (), Fields())
                if found is not None and _decorated(found, "staticmethod"):
                    return found
                return Method(owner, name)
            case Class():
                members = self.members(owner)
                if members is not None and name in members:
                    return members[name]
                values = self._class_values(owner)
                if name in values:
                    return values[name]
                found = self._of_class(owner, name)
                if found is None:
                    return UNKNOWN
                classly = _decorated(found, "classmethod")
                made = replace(found, bound=(owner,) if classly else ())
                return self.enter(made, (), Fields()) if classly and _decorated(found, "property") else made
            case Thing():
                return libraries.attribute(self, owner, name)
            case Unknown():
                return owner
            case OneOf(values=values):
                return self.either([self.attribute(value, name) for value in values])
        return Method(owner, name)

    # ---- fields

    def given_each(self, value: Value, made: Made) -> Value:
        """What an object has of a value of its class: `default_factory` makes each of them one of its own."""
        if isinstance(value, Function) and not value.bound:
            return replace(value, bound=(made,))
        return self.call(value["by"], [], Fields()) if isinstance(value, Thing) and value.kind == "field" else value

    def _fielded(self, made: Made, args: list[Value], given: Fields) -> None:
        """An object of a class without a constructor of its own: a dataclass, a named tuple, a model."""
        line = self._line(made.of)
        decorated = any(one.node.decorator_list for one in line)
        bases = {base.name for one in line for base in self._bases(one) if isinstance(base, Named)}
        if not decorated and bases <= {"builtins.object"}:
            return
        placed = [name for each in reversed(line) for name in _placed(each.node)]
        names = [name for name in placed if name is not None]
        if None in placed and args:  # which field is given at which place isn't known
            args, given = [], Fields(given.items, True)
        fields = {**dict(zip(dict.fromkeys(names), args, strict=False)), **dict(given.items)}
        if given.more:
            fields = dict.fromkeys(names, UNKNOWN) | fields
        if any("validator" in ast.dump(how) for one in line for each in one.node.body
               for how in getattr(each, "decorator_list", ())):  # fmt: skip
            fields = dict.fromkeys(fields, UNKNOWN)
        functions = {each.name for one in line for each in one.node.body if isinstance(each, ast.FunctionDef)}
        made.attributes.update({name: value for name, value in fields.items() if name not in functions})
        last = self._of_class(made.of, "__post_init__") or self._of_class(made.of, "__attrs_post_init__")
        if last is not None:
            self.enter(replace(last, bound=(made,)), (), Fields())

    def _bases(self, made_of: Class) -> Iterator[Value]:
        return iter(made_of.bases)

    # ---- enumerations

    def members(self, made_of: Class) -> dict[str, Value] | None:
        """The members of an enumeration, by their names; None for another class."""
        if made_of in self._members:
            return self._members[made_of]
        line = self._line(made_of)
        bases = {base.name for one in line for base in self._bases(one) if isinstance(base, Named)}
        found: dict[str, Value] | None = None
        if bases & _ENUMS:
            self._members[made_of] = found = {}
            written = bool(bases & (_TEXTS | _MIXED))
            functions = {each.name: each for one in line for each in one.node.body if isinstance(each, ast.FunctionDef)}
            shown = functions.pop("__str__", None)
            written = written and (shown is None or ast.unparse(shown.body[-1]) in _SHOWN)
            values = self._class_values(made_of)
            for name, value in values.items():
                if name.startswith("_"):
                    continue
                if isinstance(value, Thing) and value.kind == "enum.auto":
                    plainly = "enum.StrEnum" in bases and "_generate_next_value_" not in functions
                    value = Lit(name.lower()) if plainly else UNKNOWN
                plainly = written and not functions and isinstance(value, Lit)
                if plainly and shown is None and not bases & _TEXTS and isinstance(value, Lit):
                    plainly = type(value.value) is str
                    value = Lit(Member(value.value)) if plainly else value
                alike = next(
                    (one for one in found.values() if isinstance(value, Lit) and same(_value_of(one), value)), None
                )
                found[name] = value if plainly else alike or self._member(made_of, name, value, values)
        self._members[made_of] = found
        return found

    def _member(self, made_of: Class, name: str, value: Value, values: dict[str, Value]) -> Made:
        self.seen.spend(1)
        made = self.objects.born(
            Made(made_of, {"name": Lit(name), "_name_": Lit(name), "value": value, "_value_": value})
        )
        if self._of_class(made_of, "__new__") is not None:
            made.attributes.update({"value": UNKNOWN, "_value_": UNKNOWN})
        for own in ("name", "value"):
            if self._of_class(made_of, own) is not None or own in values:
                del made.attributes[own]
        found = self._bound(made, "__init__")
        if found is not None:
            items, more = self.items(value) if isinstance(value, Listed) else ((value,), False)
            self.enter(found, tuple(items), Fields(more=more), unknown=more)
        return made

    def key(self, value: Value) -> tuple[bool, object]:
        """Whether what names an item of a mapping is known, and then its name."""
        if isinstance(value, Made) and (members := self.members(value.of)) is not None:
            name = next((name for name, one in members.items() if one is value), None)
            written = any(isinstance(base, Named) and base.name in _TEXTS | _MIXED
                          for one in self._line(value.of) for base in self._bases(one))  # fmt: skip
            return plain(_value_of(value)) if written else (name is not None, f"\0{value.of.node.name}.{name}")
        return plain(value)

    # ---- what comes from a library's client

    def _client_of(self, made_of: Class) -> Named | None:
        for one in self._line(made_of):
            for base in self._bases(one):
                if isinstance(base, Named) and base.name in _CLIENTS:
                    return base
        return None

    def _given_library(self, made: Made, client: Named, args: list[Value], given: Fields) -> None:
        """The client that an object is, made with these."""
        own = {each.name for one in self._line(made.of) for each in one.node.body
               if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}  # fmt: skip
        given_names = {each.id for one in self._line(made.of) for each in _targets(one.node)}
        if client.name.startswith("requests"):
            given_names -= _OF_OBJECTS
        if own & _ON_THE_WAY or given_names & (_ON_THE_WAY | _CALLED):
            what = f"a class that changes how {client.name} sends"
            self.seen.unread.append((self.line, what))
            return
        self.objects.put(made, _LIBRARY, libraries.called(self, client, args, given))

    def of_library(self, made: Made, name: str, args: list[Value], given: Fields) -> Value:
        """What a client's own function gives, of an object that comes from one."""
        client = made.attributes.get(_LIBRARY)
        if isinstance(client, Unknown | OneOf):
            self.seen.unread.append((self.line, "a client that may be one of several"))
        if not isinstance(client, Thing):
            return UNKNOWN
        own = self._of_class(made.of, "request") if name in _VERBS else None
        if own is None:
            return libraries.called(self, Method(client, name), args, given)
        # The library's own function calls `request`, which is the program's.
        names: dict[str, Value] = dict.fromkeys(_GIVEN, Lit(None)) if client["lib"] == "httpx" else {}
        if client["lib"] != "httpx":
            named = {"get": ("params",), "post": ("data", "json"), "put": ("data",), "patch": ("data",)}.get(name, ())
            names = dict.fromkeys(("data", "json") if name == "post" else (), Lit(None))
            names |= dict(zip(named, args[1:], strict=False))
        passed = Fields.of(names).merged(given)
        url = passed.get("url") or (args[0] if args else UNKNOWN)
        passed = passed.without("url")
        return self.enter(replace(own, bound=(made,)), (Lit(name.upper()), url), Fields(passed.items, given.more))

    def assigned_to(self, made: Made, name: str, value: Value) -> None:
        """`made.name = value`."""
        found = self._bound(made, f"js:set:{name}")
        if found is not None:  # JavaScript's setter
            self.enter(found, (value,), Fields())
            return
        own = any(self._of_class(made.of, one) is not None for one in _CHANGING_OBJECTS[1:])
        own = own or isinstance(self._class_values(made.of).get(name), Unknown | Made)  # which may be a property
        self.objects.put(made, name, UNKNOWN if own else value)
        client = made.attributes.get(_LIBRARY)
        if client is not None and name in (_ON_THE_WAY | _CALLED) - _OF_OBJECTS:
            self.seen.unread.append((self.line, "an object that changes how its client sends"))
            self.objects.put(made, _LIBRARY, None)
        elif isinstance(client, Thing):
            self.objects.put(made, _LIBRARY, libraries.assigned(client, name, value))

    def entered(self, manager: Value, at_once: bool = False) -> Value:
        """What `with manager as …` gives; `at_once`: it is waited for, as `async with` does."""
        made = manager if isinstance(manager, Made) else None
        if made and (found := self._bound(made, "__enter__") or self._bound(made, "__aenter__")) is not None:
            self.at_once = at_once
            return self.enter(found, (), Fields())
        if isinstance(manager, OneOf):
            return self.either(self.entered(one, at_once) for one in manager.values)
        return manager.of if isinstance(manager, Stream) else manager  # what a `contextmanager` yields


def _calls_none(base: str) -> bool:
    """Whether a library's class calls no methods of those that come from it, but an operator's or a client's."""
    root, _, leaf = base.partition(".")
    return (
        root in ("typing", "abc", "enum", "collections", "pydantic", "types", "dataclasses")
        or base in _CLIENTS
        or (root == "builtins" and leaf != "type")
    )


def line_after(line: list[Class], one: Class) -> int:
    """Where those begin that come after a class."""
    return next((place + 1 for place, other in enumerate(line) if other.node is one.node), len(line))


def _stores(node: ast.AST) -> bool:
    """Whether a function gives something an attribute, or makes a class."""
    return any(
        isinstance(one, ast.ClassDef)
        or (isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store))
        or (isinstance(one, ast.Name) and one.id in ("setattr", "type"))
        for one in ast.walk(node)
    )


def _placed(node: ast.ClassDef) -> Iterator[str | None]:
    """The fields of a class that may be given by their place; None beside one of which that isn't written out."""
    for one in node.body:
        if not isinstance(one, ast.AnnAssign) or not isinstance(one.target, ast.Name):
            continue
        kind = ast.unparse(one.annotation)
        if "KW_ONLY" in kind:
            return
        how = {each.arg: each.value for each in one.value.keywords} if isinstance(one.value, ast.Call) else {}
        said = [(how.get(name, ast.Constant(usual)), usual) for name, usual in (("init", True), ("kw_only", False))]
        if None in how or not all(isinstance(value, ast.Constant) for value, _ in said):
            yield None
        plainly = all(not isinstance(value, ast.Constant) or value.value is usual for value, usual in said)
        if plainly and "ClassVar" not in kind:
            yield one.target.id


def _targets(node: ast.ClassDef) -> Iterator[ast.Name]:
    """The names that a class's body gives values."""
    for one in node.body:
        targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
        yield from (each for each in targets if isinstance(each, ast.Name))


def _decorated(function: Function, *names: str) -> bool:
    """Whether one of these decorates a function."""
    decorators = getattr(function.node, "decorator_list", ())
    return any(getattr(one, "attr", getattr(one, "id", "")) in names for one in decorators)


def _value_of(member: Value) -> Value:
    if isinstance(member, Lit) and isinstance(member.value, Member):
        return Lit(str(member.value))
    return member.attributes.get("value", UNKNOWN) if isinstance(member, Made) else member
