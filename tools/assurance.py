"""Writes docs/assurance.md: each promise of SECURITY.md with the tests that try to break it.

`python -m tools.assurance [--check]`. A test says what it is for: `@pytest.mark.promise(5)`, or several numbers.
`--check` writes nothing, and ends with 1 where the page isn't what it would write.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "assurance.md"
_PROMISE = re.compile(r"^P(\d+)\. ", re.MULTILINE)
_TOLD = 160  # characters of a promise in the table


def promises(text: str) -> dict[int, str]:
    """Return each promise of SECURITY.md by its number. A promise ends at an empty line, a heading or the next one.

    Raises ValueError for a number that stands there twice."""
    starts = list(_PROMISE.finditer(text))
    ends = [*(match.start() for match in starts[1:]), len(text)]
    found: dict[int, str] = {}
    for match, end in zip(starts, ends, strict=True):
        number = int(match[1])
        if number in found:
            raise ValueError(f"P{number} stands there twice.")
        found[number] = " ".join(re.split(r"\n\s*\n|\n#", text[match.end() : end])[0].split())
    return found


def marked(folder: Path) -> dict[int, list[str]]:
    """Return the tests below `folder` that are marked with each promise, as `path::name`."""
    found: dict[int, list[str]] = {}
    for file in sorted(folder.rglob("test_*.py")):
        if "mark.promise" not in (text := file.read_text()):
            continue
        for name, numbers in _tests(ast.parse(text).body):
            for number in numbers:
                found.setdefault(number, []).append(f"{file.relative_to(folder.parent)}::{name}")
    return found


def _tests(body: list[ast.stmt], within: str = "") -> Iterator[tuple[str, list[int]]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _tests(node.body, f"{within}{node.name}::")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield f"{within}{node.name}", [number for one in node.decorator_list for number in _numbers(one)]


def _numbers(decorator: ast.expr) -> list[int]:
    if not isinstance(decorator, ast.Call) or not ast.unparse(decorator.func).endswith("mark.promise"):
        return []
    return [one.value for one in decorator.args if isinstance(one, ast.Constant) and isinstance(one.value, int)]


def render(said: dict[int, str], tests: dict[int, list[str]]) -> str:
    """Return the page."""
    lines = [
        "# Assurance",
        "",
        "Which tests try to break each promise of [SECURITY.md](../SECURITY.md).",
        "`make reference` writes this page from the tests.",
        "",
        "| | promise | tests |",
        "|---|---|---|",
    ]
    for number, text in sorted(said.items()):
        short = text if len(text) <= _TOLD else text[:_TOLD].rsplit(" ", 1)[0] + " …"
        named = "<br>".join(f"`{one.removeprefix('tests/')}`" for one in tests.get(number, ()))
        lines.append(f"| P{number} | {short.replace('|', chr(92) + '|')} | {named} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the page, or compare it with `--check`."""
    text = render(promises((ROOT / "SECURITY.md").read_text()), marked(ROOT / "tests"))
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    if "--check" in sys.argv[1:]:
        sys.stderr.write("docs/assurance.md isn't up to date. Write it anew: make reference\n")
        return 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
