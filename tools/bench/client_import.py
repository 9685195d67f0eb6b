"""`client.import_ms`: `import goex_client`, in a process of its own, without starting the interpreter.

The floor is `import grpc`, which it stands on.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools.bench.measure import Row, Timings, row

NAME = "client.import_ms"
CLIENT = Path(__file__).resolve().parents[2] / "clients" / "python"
_CODE = """import sys, time
sys.path.insert(0, sys.argv[1])
began = time.perf_counter()
import {}
print(time.perf_counter() - began)"""


async def measure(rounds: int = 10) -> tuple[Row, ...]:
    values, floors = [], []
    for _ in range(rounds):
        values.append(_import("goex_client"))
        floors.append(_import("grpc"))
    return (row(NAME, Timings(tuple(values)), "import grpc", Timings(tuple(floors))),)


def _import(module: str) -> float:
    command = [sys.executable, "-I", "-c", _CODE.format(module), str(CLIENT)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(said) * 1e3
