"""Makes the tables of `mapper.code.library_tables` from installed libraries, by their source: nothing is run.

python -m mapper.code.tabulating
"""

from __future__ import annotations

import ast
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def slack_sdk(folder: Path) -> dict[str, Any]:
    """The names of slack_sdk's functions that hand `json` to its api_call."""
    tree = ast.parse((folder / "web" / "client.py").read_text(encoding="utf-8"))
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            sent = [call for call in ast.walk(node) if isinstance(call, ast.Call)
                    and isinstance(call.func, ast.Attribute) and call.func.attr == "api_call"]  # fmt: skip
            if any(keyword.arg == "json" for call in sent for keyword in call.keywords):
                names.append(node.name)
    return {"json": sorted(names)}


def main() -> None:
    out = Path(__file__).parent / "library_tables"
    for name, make in (("slack_sdk", slack_sdk),):
        spec = find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            raise SystemExit(f"{name} isn't installed")
        made = make(Path(spec.submodule_search_locations[0]))
        (out / f"{name}.json").write_text(json.dumps(made, indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
