"""`make acceptance`: run the named parts (all of them by default), print their tables, write acceptance.json.

    python -m tools.acceptance [PART …] [-- OPTION …]

A part is a module beside this one with `measure(options) -> JSON object`. What it returns stands under its name in
acceptance.json; the figures of parts that didn't run stay as they are.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "acceptance.json"
_NAMES = ("openapi", "prism", "sql", "programs")
PARTS = tuple(part for part in _NAMES if (Path(__file__).parent / f"{part}.py").exists())


def main(arguments: list[str]) -> int:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    names, options = arguments[:at] or list(PARTS), arguments[at + 1 :]
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        print(f"Unknown part {', '.join(unknown)}; there are: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    for name in names:
        found = importlib.import_module(f"tools.acceptance.{name}").measure(options)
        figures = json.loads(OUT.read_text()) if OUT.exists() else {}
        OUT.write_text(json.dumps({**figures, name: found}, indent=2, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
