"""No module of the packages stands on one that stands on it, and none on what isn't shipped."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("goex", "vault", "mapper", "runtimes", "policies")

Graph = Mapping[str, Set[str]]
Imports = Mapping[str, Sequence[tuple[str, str]]]


def modules(root: Path) -> dict[str, Path]:
    """The files of the packages by module name."""
    found = {}
    for file in (file for package in PACKAGES for file in (root / package).rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported(file: Path) -> Iterator[tuple[str, str]]:
    """Every import of a file, wherever it stands (in a function, for types alone): the module, and a name of it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{file}:{node.lineno}: a relative import"
            yield from ((node.module, alias.name) for alias in node.names)


def imports(root: Path) -> Imports:
    """Those of every module."""
    return {module: tuple(imported(file)) for module, file in modules(root).items()}


@cache
def our_imports() -> Imports:
    return imports(ROOT)


def graph(found: Imports) -> Graph:
    edges: dict[str, set[str]] = {}
    for module, imports in found.items():
        names = {f"{base}.{name}" if f"{base}.{name}" in found else base for base, name in imports}
        edges[module] = {name for name in names if name in found and name != module}
    return edges


def cycle(edges: Graph) -> list[str]:
    """One cycle, its first module again at its end; [] when there is none. Depth first, without recursion."""
    done: set[str] = set()
    for start in sorted(edges):
        path: list[str] = []
        left = [iter([start])]
        while left:
            module = next(left[-1], None)
            if module is None:
                left.pop()
                if path:
                    done.add(path.pop())
            elif module in path:
                return [*path[path.index(module) :], module]
            elif module not in done:
                path.append(module)
                left.append(iter(sorted(edges[module])))
    return []


def test_no_import_goes_in_a_circle() -> None:
    edges = graph(our_imports())
    assert len(edges) > 400 and sum(map(len, edges.values())) > 1000
    found = cycle(edges)
    assert not found, " → ".join(found)


def test_a_circle_is_found_and_named(tmp_path: Path) -> None:
    for package in PACKAGES:
        (tmp_path / package).mkdir()
    (tmp_path / "goex" / "a.py").write_text("from goex import b\n")
    (tmp_path / "goex" / "b.py").write_text("def late():\n    import vault.c\n")
    (tmp_path / "vault" / "c.py").write_text("if TYPE_CHECKING:\n    from goex.a import Name\n")
    (tmp_path / "vault" / "d.py").write_text("from goex import a, b\nfrom vault.c import Name\n")
    assert cycle(graph(imports(tmp_path))) == ["goex.a", "goex.b", "vault.c", "goex.a"]
    (tmp_path / "vault" / "c.py").write_text("import json\n")
    assert cycle(graph(imports(tmp_path))) == []


def test_the_packages_import_no_test_and_no_tool() -> None:
    bases = {module: {base.split(".")[0] for base, _ in found} for module, found in our_imports().items()}
    assert [module for module, found in bases.items() if found & {"tests", "tools"}] == []
