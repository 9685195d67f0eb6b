"""Python, read as syntax and never run: what every reader of code shares.

Rules: a text is bounded before the parser sees it, and whatever the parser can't take (too deep, too long, no Python)
is None, never an exception. Warnings about foreign code are nobody's business.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass

MAX_CODE = 50_000  # characters


def statements(code: str, limit: int = MAX_CODE) -> list[ast.stmt] | None:
    """The statements of a program; None when it is none, or longer than `limit` characters."""
    tree = _parsed(code, limit, "exec")
    return tree.body if isinstance(tree, ast.Module) else None


def expression(code: str, limit: int = MAX_CODE) -> ast.expr | None:
    """One expression; None when it is none, or longer than `limit` characters."""
    tree = _parsed(code, limit, "eval")
    return tree.body if isinstance(tree, ast.Expression) else None


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` as written; None for anything but names and dots."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


@dataclass(frozen=True)
class Shape:
    """What is compared of a call: its function, and its arguments as syntax."""

    function: str
    positional: frozenset[str] = frozenset()
    named: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, node: ast.expr | None) -> Shape | None:
        """The shape of a call; None for what isn't one."""
        if not isinstance(node, ast.Call):
            return None
        try:
            return cls(
                function=ast.unparse(node.func),
                positional=frozenset(map(ast.dump, node.args)),
                named=frozenset((keyword.arg or "**", ast.dump(keyword.value)) for keyword in node.keywords),
            )
        except RecursionError:
            return None

    def within(self, call: Shape) -> bool:
        """Whether this reference is a sub-tree of `call`: the same function, and each argument of the reference among
        the call's. A reference without arguments is in every call of its function."""
        values = call.positional | {value for _, value in call.named}
        return self.function == call.function and self.positional <= values and self.named <= call.named

    def is_literal(self, literal: str) -> bool:
        """Whether `literal` is all that this reference's call is given."""
        return not self.named and self.positional == {literal}


def _parsed(code: str, limit: int, mode: str) -> ast.AST | None:
    if len(code) > limit:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code, mode=mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
