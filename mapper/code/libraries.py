"""What programs use of others' libraries: how their calls send requests, and what values they give.

`Named` is something imported by its full name, `Thing` an object of a library. Whatever isn't here gives nothing known.
"""

from __future__ import annotations

import ast
import builtins
import json
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mapper.code import command_line, http, library_methods, sdks, texts
from mapper.code.abstract_values import (
    ANSWER,
    UNKNOWN,
    Class,
    Fields,
    Function,
    Json,
    Listed,
    Lit,
    Made,
    Method,
    Named,
    OneOf,
    Stream,
    Thing,
    Unknown,
    Value,
    choices,
    joined,
    of_json,
    parts_of,
    plain,
    text,
    weight,
)
from mapper.code.objects import Names, fresh

if TYPE_CHECKING:
    from mapper.code.interpreter import Following

_ENDING = {"sys.exit", "builtins.exit", "builtins.quit", "os._exit", "os.abort"}
_POOLS = {"ThreadPoolExecutor", "ProcessPoolExecutor", "Pool", "ThreadPool", "get_event_loop", "new_event_loop",
          "get_running_loop", "TaskGroup"}  # fmt: skip
_AS_GIVEN = {
    "builtins.str", "builtins.list", "builtins.tuple", "builtins.iter", "builtins.reversed", "builtins.sorted",
    "asyncio.run", "asyncio.create_task", "asyncio.ensure_future", "asyncio.wait_for", "asyncio.shield", "copy.copy",
    "copy.deepcopy", "tqdm.tqdm", "io.BytesIO", "builtins.bytes", "anyio.run", "contextlib.closing",
    "contextlib.nullcontext",
}  # fmt: skip
_COPYING = {"builtins.list", "builtins.tuple", "builtins.iter", "builtins.reversed", "builtins.sorted", "copy.copy",
            "copy.deepcopy"}  # fmt: skip

# Modules of which a function may give what is in what it is given, and functions that don't.
_HOLDING = frozenset({
    "builtins", "itertools", "functools", "collections", "copy", "random", "operator", "heapq", "types", "queue",
    "dataclasses",
})  # fmt: skip
_TELLING = frozenset({
    "print", "len", "str", "repr", "int", "float", "bool", "sum", "any", "all", "isinstance", "issubclass", "hash",
    "id", "type", "format", "bytes", "open", "input", "round", "abs", "range", "hasattr", "callable", "super", "exit",
    "quit", "index", "count", "keys", "join", "shuffle", "get_page",
})  # fmt: skip
# Libraries, beside the standard one, of which it is known that they don't change what they are given; and functions
# that do.
_KNOWN = frozenset({
    "builtins", "requests", "httpx", "aiohttp", "urllib3", "yaml", "simplejson", "orjson", "ujson", "tqdm", "rich",
    "click", "typer", "dotenv", "tenacity", "tabulate", "pydantic", "numpy", "pandas", "loguru", "structlog", "anyio",
})  # fmt: skip
_CHANGES_GIVEN = frozenset({
    "builtins.exec", "builtins.eval", "builtins.object.__setattr__", "collections.ChainMap", "unittest.mock.patch.dict",
})  # fmt: skip


def called(reader: Following, function: Named | Method | Thing, args: list[Value], given: Fields) -> Value:
    """What a call of a library gives; what it sends is noted in `reader.seen`."""
    for handler in (http.called, sdks.called):
        found = handler(reader, function, args, given)
        if found is not None:
            return found
    if isinstance(function, Named):
        return _named(reader, function.name, args, given)
    if isinstance(function, Method):
        return _method(reader, function, args, given)
    return UNKNOWN


def passed(
    reader: Following, function: Named | Method | Thing, args: list[Value], named: list[Value], made: Value
) -> None:
    """What a library was given that may be in what it gives, or that it may change."""
    lost = isinstance(made, Unknown) and made != ANSWER
    lost = lost or (isinstance(made, Listed | Fields) and made.more and not made.items)
    if isinstance(function, Thing) or not lost or function.name.startswith("js:"):
        return
    root, _, rest = function.name.partition(".")
    if isinstance(function, Method):
        if isinstance(function.of, Listed | Fields | Stream) and function.name not in _TELLING:
            reader.let_go([function.of], inner=not function.name.startswith("__"))
    elif function.name in _CHANGES_GIVEN or not (root in _KNOWN or root in sys.stdlib_module_names):
        reader.given_away([*args, *named])
    elif root in _HOLDING and rest not in _TELLING:
        error = getattr(builtins, rest, None) if root == "builtins" else None
        keeps = rest == "dict.fromkeys" or (isinstance(error, type) and issubclass(error, BaseException))
        reader.let_go(args, inner=not keeps)
        reader.let_go(named)


def attribute(reader: Following, owner: Thing, name: str) -> Value:
    """An attribute of a library's object."""
    if owner.kind == "http" and name == "params" and isinstance(owner["query"], Fields):
        return owner["query"]
    found = sdks.attribute(reader, owner, name)
    return found if found is not None else Method(owner, name)


def assigned(owner: Thing, name: str, value: Value) -> Value:
    """The object after `owner.name = value`."""
    if owner.kind == "table":
        return library_methods.assigned(owner, name, value)
    return http.assigned(owner, name, value)


def changed(owner: Thing, name: str, args: list[Value], given: Fields) -> Value | None:
    """The object after a method that changes it; None for any other method."""
    return http.changed(owner, name, args, given)


def subscript(reader: Following, owner: Named | Thing, place: Any) -> Value:
    """`owner[place]` of something of a library."""
    if isinstance(owner, Named) and owner.name in ("os.environ", "environ") and isinstance(place, str):
        return environment(place)
    if isinstance(owner, Named) and (owner.name == "sys.modules" or owner.name.endswith(".__dict__")):
        what = "sys.modules" if owner.name == "sys.modules" else "__dict__"
        reader.note(f"{what} reaches names by text, which isn't followed")
    return UNKNOWN


def environment(name: str, default: Value | None = None) -> Value:
    """An environment variable. A program runs in an environment of GoEx's own, which has the addresses of its services
    and their tokens, so that what a program falls back to is what it gets for any other."""
    if name.startswith("GOEX_URL_"):
        return Lit(f"goex-url://{name[9:].lower()}")
    secretive = any(word in name.upper() for word in ("TOKEN", "KEY", "SECRET", "PASSWORD", "CREDENTIAL"))
    given = secretive or name.startswith("GOEX_")
    return Unknown(f"the variable {name}", unset=not given) if default is None or given else default


def _named(reader: Following, name: str, args: list[Value], given: Fields) -> Value:
    first = args[0] if args else UNKNOWN
    if name in _ENDING:
        reader.leave()
    if name in ("os.environ.get", "os.getenv", "environ.get"):
        known, wanted = plain(first)
        default = args[1] if len(args) > 1 else given.get("default")
        return environment(wanted, default) if known and isinstance(wanted, str) else UNKNOWN
    if name == "typing.cast":
        return args[1] if len(args) > 1 else UNKNOWN
    if name in _AS_GIVEN:
        if name == "builtins.str":
            return joined(text(parts_of(one)) for one in choices(first)) if args else Lit("")
        if name == "builtins.bytes" and not texts.is_text(first):
            return UNKNOWN
        if name.startswith("builtins.") and name != "builtins.str" and isinstance(first, Fields):
            items, more = reader.items(first)
            return Listed(items, more)
        if name == "builtins.list" and not args:
            return Listed(())
        if name == "contextlib.closing" and isinstance(first, Stream):
            return UNKNOWN  # it gives the generator itself
        if isinstance(first, Function) and name == "anyio.run":
            return reader.call(first, args[1:], Fields())
        if name in ("builtins.sorted", "builtins.reversed") and isinstance(first, Listed):
            return _ordered(first, given) if name.endswith("sorted") else Listed(first.items[::-1], first.more)
        if name.startswith("copy."):
            return _copied(reader, first, name == "copy.deepcopy")
        return fresh(first) if name in _COPYING else first
    if isinstance(first, Stream) and name in ("builtins.enumerate", "builtins.next", "builtins.filter", "builtins.zip"):
        return first.of if name.endswith("next") else Stream(Listed((UNKNOWN, first.of)))
    if name.rpartition(".")[2] in _POOLS:
        return Thing("pool")
    match name:
        case "operator.attrgetter" | "operator.methodcaller" if args:
            return Thing("getter", (("name", first), ("call", name.endswith("caller")), ("args", tuple(args[1:])),
                                    ("given", given)))  # fmt: skip
        case "builtins.dict":
            made = first if isinstance(first, Fields) else Fields(more=bool(args))
            return made.merged(given)
        case "builtins.int" | "builtins.float" if isinstance(first, Lit):
            try:
                return Lit(int(first.value) if name.endswith("int") else float(first.value))
            except (TypeError, ValueError, OverflowError):
                return UNKNOWN
        case "builtins.enumerate":
            items, more = reader.items(first)
            return Listed(tuple(Listed((Lit(place), item)) for place, item in enumerate(items)), more)
        case "builtins.zip":
            found = [reader.items(arg) for arg in args]
            shortest = min((len(items) for items, _ in found), default=0)
            rows = tuple(Listed(tuple(items[row] for items, _ in found)) for row in range(shortest))
            return Listed(rows, any(more for _, more in found))
        case "builtins.range":
            bounds = [plain(arg) for arg in args]
            if bounds and all(ok and isinstance(value, int) for ok, value in bounds):
                try:
                    numbers = range(*[value for _, value in bounds])
                    few = len(numbers) <= 24
                except (TypeError, ValueError, OverflowError):
                    return UNKNOWN
                if few:
                    return Listed(tuple(Lit(number) for number in numbers))
            return Listed((), True)
        case "builtins.map" | "builtins.filter" if len(args) >= 2:
            items, more = reader.items(args[1])
            made_items: list[Value] = []
            for item in (*items[:24], *([UNKNOWN] if more or len(items) > 24 else [])):
                reader.beside(partial(lambda item: made_items.append(reader.call(first, [item], Fields())), item))
            if isinstance(first, Function) and not reader.stays(first, ()):
                reader.let_go(made_items)
                made_items = [UNKNOWN for _ in made_items]
            return Listed(tuple(made_items), more) if name.endswith("map") else Listed(items, more)
        case "builtins.getattr" if len(args) >= 2:
            known, wanted = plain(args[1])
            if known and isinstance(wanted, str):
                return reader.attribute(first, wanted)
            reader.note("getattr reaches what isn't named there")
            reader.let_go([first])
            return UNKNOWN
        case "builtins.setattr":
            reader.note("setattr changes what isn't named there")
            known, wanted = plain(args[1]) if len(args) > 1 else (False, None)
            for one in choices(first):
                if isinstance(one, Class):
                    reader.changed.add((one.node, wanted if known and isinstance(wanted, str) else ""))
                elif isinstance(one, Made) and known and isinstance(wanted, str):
                    reader.assigned_to(one, wanted, UNKNOWN)
                elif isinstance(one, Made):
                    reader.objects.forget(one)
        case "builtins.vars" if isinstance(first, Made):
            reader.objects.forget(first)  # by what it gives they may be changed
        case "builtins.type" if len(args) == 1 and isinstance(first, Made):
            return first.of
        case "builtins.super":
            return UNKNOWN
        case "types.SimpleNamespace" | "argparse.Namespace" if not args:
            of = Class(ast.ClassDef("SimpleNamespace", [], [], [], []), None, Names())
            return reader.objects.born(Made(of, dict(given.items)))
        case "argparse.ArgumentParser":
            return UNKNOWN if given.more or given.get("argument_default") is not None else command_line.PARSER
        case "string.Template":
            return Thing("template", (("text", first),))
        case "contextlib.ExitStack" | "contextlib.AsyncExitStack":
            return Thing("exits")
        case "enum.auto":
            return Thing("enum.auto")
        case "collections.namedtuple" if len(args) == 2 and not given.items and not given.more:
            return _named_tuple(first, args[1])
        case "dataclasses.field":
            made_by = given.get("default_factory")
            return Thing("field", (("by", made_by),)) if made_by is not None else given.get("default") or UNKNOWN
        case "json.dumps" | "simplejson.dumps" | "orjson.dumps" | "ujson.dumps":
            return Json(first)
        case "json.loads" | "simplejson.loads" | "orjson.loads":
            if isinstance(first, Json):
                return fresh(first.value, deep=True)
            if isinstance(first, Lit) and isinstance(first.value, str) and len(first.value) < 100_000:
                try:
                    return of_json(json.loads(first.value))
                except (ValueError, RecursionError):
                    return UNKNOWN
        case "urllib.parse.quote" | "urllib.parse.quote_plus" | "requests.utils.quote" | "requests.compat.quote":
            plus = name.endswith("plus")
            safe = given.get("safe") or (
                args[1] if len(args) > 1 else UNKNOWN if given.more else Lit("" if plus else "/")
            )
            return texts.quoted(first, plus, safe)
        case "urllib.parse.urlencode" | "requests.compat.urlencode":
            return texts.encoded(first)
        case "urllib.parse.urljoin" | "requests.compat.urljoin":
            return texts.under(first, args[1]) if len(args) > 1 else UNKNOWN
        case "asyncio.gather" | "asyncio.wait":
            return Listed(tuple(args))
        case "asyncio.to_thread" | "functools.partial" if args:
            if name == "functools.partial":
                bound = tuple(args[1:])
                if isinstance(first, Function) and not given.items:
                    return replace(first, bound=(*first.bound, *bound))
                return Thing("partial", (("of", first), ("args", bound), ("given", given)))
            begun: list[Value] = []
            reader.beside(lambda: begun.append(reader.call(first, args[1:], given)))
            stays = not isinstance(first, Function) or reader.stays(first, args[1:])
            return begun[0] if begun and stays else UNKNOWN
        case "threading.Thread" | "multiprocessing.Process" | "threading.Timer":
            target = given.get("target") or given.get("function") or (args[1] if len(args) > 1 else None)
            handed = given.get("args") or (args[2] if len(args) > 2 else None)
            if target is not None:
                items, more = reader.items(handed) if handed is not None else ((), False)
                named = given.get("kwargs")
                extra = named if isinstance(named, Fields) else Fields()
                passed = Fields(extra.items, extra.more or more)
                reader.beside(lambda: reader.call(target, list(items), passed))
    return UNKNOWN


def _copied(reader: Following, value: Value, deep: bool, depth: int = 0) -> Value:
    """What `copy` gives; of a list, a mapping or an object another one."""
    if depth > 4:
        reader.let_go([value])
        return UNKNOWN
    match value:
        case Made(of=of, attributes=attributes):
            made = {name: _copied(reader, one, deep, depth + 1) if deep else one for name, one in attributes.items()}
            reader.seen.spend(1 + len(made))
            return reader.objects.born(Made(of, made))
        case Listed(items=items, more=more) if deep:
            return Listed(tuple(_copied(reader, one, deep, depth + 1) for one in items), more)
        case Fields(items=pairs, more=more) if deep:
            return Fields(tuple((key, _copied(reader, one, deep, depth + 1)) for key, one in pairs), more)
        case OneOf(values=values):
            return joined(_copied(reader, one, deep, depth + 1) for one in values)
    return fresh(value, deep)


def _ordered(given: Listed, how: Fields) -> Value:
    """What `sorted` gives."""
    known, found = plain(given)
    if known and all(isinstance(one, str) for one in found) and how == Fields():
        return Listed(tuple(map(Lit, sorted(found))))
    return (
        given if len(given.items) < 2 and not given.more else Stream(joined(given.items) if not given.more else UNKNOWN)
    )


def _named_tuple(name: Value, fields: Value) -> Value:
    """The class that `namedtuple(name, fields)` makes."""
    _, known = plain(fields)
    names = known.replace(",", " ").split() if isinstance(known, str) else known
    if not isinstance(names, list) or not all(isinstance(one, str) and one.isidentifier() for one in names):
        return UNKNOWN
    body: list[ast.stmt] = [ast.AnnAssign(ast.Name(one, ast.Store()), ast.Constant(None), None, 1) for one in names]
    made = ast.ClassDef(str(plain(name)[1]), [], [], body, [])
    return Class(ast.fix_missing_locations(made), None, Names(), (Named("typing.NamedTuple"),))


def _method(reader: Following, function: Method, args: list[Value], given: Fields) -> Value:
    owner, name = function.of, function.name
    if texts.is_text(owner) or isinstance(owner, Lit):
        if isinstance(owner, Json):
            return owner if name in ("encode", "decode", "strip") else UNKNOWN
        return texts.method(owner, name, args, given)
    if isinstance(owner, Fields):
        match name:
            case "get" if args:
                known, key = reader.key(args[0])
                if known:
                    found = owner.get(str(key))
                    if found is not None:
                        return found
                    return UNKNOWN if owner.more else (args[1] if len(args) > 1 else Lit(None))
                return UNKNOWN
            case "items":
                return Listed(tuple(Listed((Lit(key), value)) for key, value in owner.items), owner.more)
            case "keys":
                return Listed(tuple(Lit(key) for key, _ in owner.items), owner.more)
            case "values":
                return Listed(tuple(value for _, value in owner.items), owner.more)
            case "copy":
                return fresh(owner)
    if isinstance(owner, Listed) and name == "copy":
        return fresh(owner)
    if isinstance(owner, Thing) and owner.kind == "exits" and name in ("enter_context", "enter_async_context") and args:
        return reader.entered(args[0])
    if owner == command_line.PARSER:
        return command_line.called(reader, name, args, given)
    if isinstance(owner, Thing) and owner.kind == "template" and name in ("substitute", "safe_substitute"):
        mapping = args[0] if args else Fields()
        reader.seen.spend(weight(owner["text"]) + str(plain(owner["text"])[1]).count("$"))
        return texts.templated(owner["text"], mapping.merged(given)) if isinstance(mapping, Fields) else UNKNOWN
    if isinstance(owner, Stream):
        return fresh(owner) if name in ("get_page", "copy") else UNKNOWN
    # Executors, event loops and schedulers: whoever is given a function with its arguments calls it.
    if name in ("submit", "run_in_executor", "call_soon", "apply_async", "apply") and args:
        rest = args[1:] if name != "run_in_executor" else args[2:]
        target = args[0] if name != "run_in_executor" else (args[1] if len(args) > 1 else UNKNOWN)
        if isinstance(target, Function | Method | Made | Named | OneOf):
            reader.beside(lambda: reader.call(target, rest, given))
        return UNKNOWN
    if name in ("map", "imap", "imap_unordered", "starmap") and len(args) >= 2:
        items, more = reader.items(args[1])
        for item in items[:24] if not more else (UNKNOWN,):
            reader.beside(partial(reader.call, args[0], [item], Fields()))
        return Listed((), True)
    if name in ("run_until_complete", "create_task", "run"):
        return args[0] if args else UNKNOWN
    return UNKNOWN
