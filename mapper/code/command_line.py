"""What argparse gives a program: it is run without arguments, so that each of them is its default, unless the program
itself says what they are (`sys.argv = […]`, `parse_args([…])`).

Rules: the arguments of all parsers of a program are looked at as one parser's; one that several have is any of theirs.
Words that aren't all written there, or that mean more than one option with one value or a switch each, leave only the
functions among the arguments known (`set_defaults(func=…)`).
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
from mapper.code.interpreter import ARGUMENTS, Argument
from mapper.code.objects import Names

if TYPE_CHECKING:
    from mapper.code.interpreter import Following

PARSER = Thing("parser")

_OF = "argparse."  # what the names begin with under which the arguments are kept
_PARTS = frozenset({"add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser"})
_PARSING = frozenset({"parse_args", "parse_intermixed_args", "parse_known_args", "parse_known_intermixed_args"})
_SWITCHES = {"store_true": Lit(False), "store_false": Lit(True)}
_SAID = {"store_true": Lit(True), "store_false": Lit(False)}


def called(reader: Following, name: str, args: list[Value], given: Fields) -> Value:
    """What a function of a parser, or of a part of one, gives."""
    if name in _PARSING:
        found = _parsed(reader, args, given)
        return Listed((found, UNKNOWN)) if "known" in name else found
    if name == "add_argument":
        _keep(reader, _name(args, given), _default(reader, args, given))
        reader.arguments.append(_argument(args, given))
    elif name == "set_defaults":
        for each, value in given.items:
            _keep(reader, each, value)
        if given.more:
            _keep(reader, "", UNKNOWN)
    elif name == "add_subparsers":
        reader.arguments.append(None)
        if given.get("dest") is not None:
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
    reader.seen.spend(len(reader.defaults) + len(reader.arguments))
    if told == Lit(None):
        run_with = reader.shared(Named(ARGUMENTS))
        told = Listed(run_with.items[1:], run_with.more) if isinstance(run_with, Listed) else run_with
    found = {name.removeprefix(_OF): value for name, value in reader.defaults.items() if name.startswith(_OF)}
    said = _said(reader, told)
    if said is not None:
        found |= said
    else:
        found = {
            name: value if all(isinstance(one, Function) for one in choices(value)) else UNKNOWN
            for name, value in found.items()
        }
    return reader.objects.born(Made(Class(ast.ClassDef("Namespace", [], [], [], []), None, Names()), found))


def _argument(args: list[Value], given: Fields) -> Argument | None:
    """An argument, None where what it takes isn't one value, or isn't known."""
    dest, names = _name(args, given), tuple(str(plain(one)[1]) for one in args)
    known, action = plain(given.get("action") or Lit("store"))
    switch = _SAID.get(str(action))
    option = all(one.startswith("-") for one in names)
    counted = given.get("nargs") not in (None, Lit(None), *([] if option else [Lit("?")]))
    if not (dest and known and (action == "store" or switch) and option is any(one.startswith("-") for one in names)):
        return None
    return None if counted or given.more else Argument(dest, names, switch, given.get("type"))


def _said(reader: Following, told: Value) -> dict[str, Value] | None:
    """What words give arguments, None where that isn't known."""
    if not (isinstance(told, Listed) and not told.more):
        return None
    reader.seen.spend(len(told.items))
    words = [one.value for one in told.items if isinstance(one, Lit) and isinstance(one.value, str)]
    known = [one for one in reader.arguments if one is not None]
    if len(words) < len(told.items) or (words and len(known) < len(reader.arguments)):
        return None
    places = iter({one.dest: one for one in known if not one.names[0].startswith("-")}.values())
    options: dict[str, Argument] = {}
    for one in known:
        if any(options.setdefault(name, one) != one for name in one.names if name.startswith("-")):
            return None
    found: dict[str, Value] = {}
    left = list(reversed(words))
    while left:
        word = left.pop()
        name, assigned, value = word.partition("=") if word.startswith("--") else (word, "", "")
        argument = options.get(name) if word.startswith("-") else next(places, None)
        if argument is None or (argument.switch and assigned):
            return None
        if word.startswith("-") and not argument.switch and not assigned:
            if not left or left[-1].startswith("-"):
                return None
            value = left.pop()
        elif not word.startswith("-"):
            value = word
        typed = reader.call(argument.type, [Lit(value)], Fields()) if argument.type is not None else Lit(value)
        found[argument.dest] = argument.switch or typed
    return found
