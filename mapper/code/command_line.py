"""What argparse gives a program: it is run without arguments, so that each of them is its default.

Rules: the arguments of all parsers of a program are looked at as one parser's; one that several have is any of theirs.
Where the program parses arguments of its own, only the functions among them are known (`set_defaults(func=…)`).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from mapper.code import texts
from mapper.code.abstract_values import (
    UNKNOWN,
    Class,
    Fields,
    Function,
    Listed,
    Lit,
    Made,
    Named,
    Thing,
    Value,
    choices,
    joined,
    plain,
)
from mapper.code.objects import Names

if TYPE_CHECKING:
    from mapper.code.interpreter import Following

PARSER = Thing("parser")

_OF = "argparse."  # what the names begin with under which the arguments are kept
_PARTS = frozenset({"add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser"})
_PARSING = frozenset({"parse_args", "parse_intermixed_args", "parse_known_args", "parse_known_intermixed_args"})
_SWITCHES = {"store_true": Lit(False), "store_false": Lit(True)}


def called(reader: Following, name: str, args: list[Value], given: Fields) -> Value:
    """What a function of a parser, or of a part of one, gives."""
    if name in _PARSING:
        found = _parsed(reader, args, given)
        return Listed((found, UNKNOWN)) if "known" in name else found
    if name == "add_argument":
        _keep(reader, _name(args, given), _default(reader, args, given))
    elif name == "set_defaults":
        for each, value in given.items:
            _keep(reader, each, value)
        if given.more:
            _keep(reader, "", UNKNOWN)
    elif name == "add_subparsers" and given.get("dest") is not None:
        _keep(reader, _name([], given), UNKNOWN)
    return PARSER if name in _PARTS else UNKNOWN


def _keep(reader: Following, name: str, value: Value) -> None:
    """Keep an argument's default; "" is the name of one that isn't known."""
    there = reader.defaults.get(_OF + name)
    reader.defaults[_OF + name] = value if there is None else joined([there, value])


def _name(args: list[Value], given: Fields) -> str:
    known, said = plain(given.get("dest") or UNKNOWN)
    if known and isinstance(said, str):
        return said
    names = [name for known, name in map(plain, args) if known and isinstance(name, str)]
    if len(names) < len(args) or given.more or given.get("dest") is not None or not names:
        return ""
    name = next((one for one in names if one.startswith("--")), names[0])
    return name.lstrip("-").replace("-", "_") if name.startswith("-") else name


def _default(reader: Following, args: list[Value], given: Fields) -> Value:
    known, action = plain(given.get("action") or Lit("store"))
    value = given.get("default") or (_SWITCHES.get(action, Lit(None)) if known and isinstance(action, str) else UNKNOWN)
    is_option = all(str(name).startswith("-") for _, name in map(plain, args))
    if given.more or isinstance(value, Named) or given.get("required") not in (None, Lit(False)):
        return UNKNOWN
    if not is_option and given.get("nargs") not in (Lit("?"), Lit("*")):
        return UNKNOWN
    kind = given.get("type")
    return reader.call(kind, [value], Fields()) if kind is not None and texts.is_text(value) else value


def _parsed(reader: Following, args: list[Value], given: Fields) -> Value:
    """The arguments as an object."""
    if len(args) > 1 or given.more or given.get("namespace") is not None or _OF in reader.defaults:
        reader.given_away([*args, *(value for _, value in given.items)])
        return UNKNOWN
    told = args[0] if args else given.get("args") or Lit(None)
    found = {name.removeprefix(_OF): value for name, value in reader.defaults.items() if name.startswith(_OF)}
    if told != Lit(None):
        found = {
            name: value if all(isinstance(one, Function) for one in choices(value)) else UNKNOWN
            for name, value in found.items()
        }
    return reader.objects.born(Made(Class(ast.ClassDef("Namespace", [], [], [], []), None, Names()), found))
