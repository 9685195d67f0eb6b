"""Generate goex/rpc/ from the proto, or with --check say whether it has drifted.

protoc writes `from goex.v1 import goex_pb2`, which would shadow our own package; the generated modules live in
goex/rpc/ and import each other from there.
"""

from __future__ import annotations

import importlib.resources
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

PROTOS = Path(__file__).resolve().parent
TARGET = PROTOS.parent / "goex" / "rpc"
SOURCE = "goex/v1/goex.proto"
MODULES = ("goex_pb2.py", "goex_pb2.pyi", "goex_pb2_grpc.py")


def generate(into: Path) -> None:
    well_known = importlib.resources.files("grpc_tools") / "_proto"
    arguments = [
        "protoc",
        f"-I{PROTOS}",
        f"-I{well_known}",
        f"--python_out={into}",
        f"--pyi_out={into}",
        f"--grpc_python_out={into}",
        SOURCE,
    ]
    if protoc.main(arguments) != 0:
        raise SystemExit("protoc failed")


def main() -> int:
    check = "--check" in sys.argv[1:]
    drifted = []
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        for name in MODULES:
            made = (Path(scratch) / "goex" / "v1" / name).read_text()
            made = made.replace("from goex.v1 import goex_pb2", "from goex.rpc import goex_pb2")
            target = TARGET / name
            if check:
                if not target.exists() or target.read_text() != made:
                    drifted.append(name)
            else:
                target.write_text(made)
    if drifted:
        print(f"goex/rpc has drifted from protos/ ({', '.join(drifted)}): run `make protos`.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
