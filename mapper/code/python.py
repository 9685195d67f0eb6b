"""Python, followed with values that are known in part (`mapper.code.abstract_values`), and never run.

Rules:
* Statements are followed in order; both ways of a condition, unless it is a constant; a loop's body twice, first as it
  begins, then with what its rounds may have changed. What two ways leave in a variable is one of both.
* A function is followed where it is called, with what it is given, and once with nothing known where its name stands
  for itself (as a callback, in another's list); never where nothing names it.
* What runs at a time that isn't known (a thread, a generator, a coroutine, a callback) finds what was there at any
  time, and what it changes isn't known from then on.
* A method that Python or a library calls without its name (an operator's, a property's, `Thread.run`) may be called at
  any time. A list or an object that is lost from sight, in a slice or a library, isn't known from then on.
* What can't be followed is unknown, and whatever is done with something unknown is unknown again: `getattr` with a name
  that isn't written, `exec`, `eval`, `__import__` and their like are said in a note, and give no call.
* Steps, depth and sizes are bounded; at a bound reading ends, with a note.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Sequence

from mapper import syntax
from mapper.code.abstract_values import UNKNOWN, Fields, Listed, Lit, Value
from mapper.code.interpreter import ARGUMENTS, Left
from mapper.code.sent_requests import Enough, Seen
from mapper.code.statements import Statements

LONGEST = 200_000  # characters
TOO_MUCH = (
    "The program is larger or more entangled than what is read; its end wasn't. Name what it calls beyond this "
    "(--method), or make two programs of it."
)


def read_python(program: str, seen: Seen, arguments: Sequence[Value]) -> None:
    """Add to `seen` what a Python program sends that is run with these arguments."""
    if len(program) > LONGEST:
        seen.note(f"The Python is {len(program)} characters long; at most {LONGEST} are read.")
        return
    body = syntax.statements(program, LONGEST)
    if body is None:
        seen.note("The Python in it can't be read: it isn't valid, or nested too deep.")
        return
    reader = Reader(seen, mentioned(body))
    try:
        seen.spend(len(program) // 10)
        reader.module(body, Listed((UNKNOWN, *arguments)))
    except (Enough, RecursionError):
        seen.note(TOO_MUCH)


class Reader(Statements):
    """Follows one program."""

    def module(self, body: Sequence[ast.stmt], arguments: Value = UNKNOWN) -> None:
        self.stored = stored(body)
        scope = self.top
        self.objects.put(scope, "__name__", Lit("__main__"))
        self.objects.put(scope, "__file__", UNKNOWN)
        self.objects.put(scope, ARGUMENTS, arguments)
        with contextlib.suppress(Left):
            self.block(body, scope)
        # What runs at a time that isn't known finds what was there at any time.
        self.seen.spend(self.objects.logged() // 4)
        for (made, name), value in self.objects.ever(0).items():
            self.objects.put(made, name, value)
        self.ended = True
        for way in self.later:
            with contextlib.suppress(Left):
                way()
        # What is handed on as a value may be called by anybody; what a class has that is named somewhere, too.
        for _ in range(4):
            self.seen.spend(len(self.loose))
            waiting = [one for one in self.loose if one.node not in self.followed]
            self.loose.clear()
            for _ in range(2):
                mark = self.objects.mark()
                for function in waiting:
                    self.followed.add(function.node)
                    begun = self.objects.mark()
                    self.enter(function, (), Fields(more=True), unknown=True)
                    self.objects.loosen(self.objects.since(begun))  # in which order they are called isn't known
                if not self.objects.since(mark):
                    break
            if not waiting:
                # What is called without its name, of objects that the program didn't make itself.
                self.loose = [one for one in self.unmade if one.node not in self.followed]
                if not self.loose:
                    break


def mentioned(body: Sequence[ast.stmt]) -> frozenset[str]:
    """Every name that is read anywhere."""
    found: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.add(node.id)
    return frozenset(found)


def stored(body: Sequence[ast.stmt]) -> dict[str, int]:
    """How often each name is given a value; more than once, where that is in a loop."""
    found: dict[str, int] = {}
    waiting: list[tuple[ast.AST, bool]] = [(one, False) for one in body]
    while waiting:
        node, again = waiting.pop()
        again = again or isinstance(node, ast.For | ast.AsyncFor | ast.While)
        names: list[str] = []
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names = [name]
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names = [name]
            case ast.ClassDef(name=name):
                names = [name]
            case ast.alias(name=name, asname=own):
                names = [own or name.partition(".")[0]]
            case ast.Global(names=shared) | ast.Nonlocal(names=shared):
                names = [*shared, *shared]
            case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name):
                names = [name]
            case ast.MatchStar(name=str() as name) | ast.MatchMapping(rest=str() as name):
                names = [name]
        for name in names:
            found[name] = found.get(name, 0) + (2 if again else 1)
        waiting += [(child, again) for child in ast.iter_child_nodes(node)]
    return found
