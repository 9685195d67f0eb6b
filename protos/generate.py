"""Generate goex/rpc/, and the messages of both clients, from the protos, or with --check say whether they have drifted.

protoc writes `from goex.v1 import goex_pb2`, which would shadow our own package; the generated modules live in
goex/rpc/ and import each other from there. A file of messages alone has no module for services.
"""

from __future__ import annotations

import importlib.resources
import re
import sys
import tempfile
from pathlib import Path

import typescript
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

PROTOS = Path(__file__).resolve().parent
TARGET = PROTOS.parent / "goex" / "rpc"
CLIENT = PROTOS.parent / "clients" / "python" / "goex_client"  # of the agents' service alone
NODE = PROTOS.parent / "clients" / "node" / "proto"
SOURCES = tuple(sorted(path.relative_to(PROTOS).as_posix() for path in (PROTOS / "goex" / "v1").glob("*.proto")))


def generate(into: Path) -> None:
    well_known = importlib.resources.files("grpc_tools") / "_proto"
    arguments = [
        "protoc",
        f"-I{PROTOS}",
        f"-I{well_known}",
        f"--python_out={into}",
        f"--pyi_out={into}",
        f"--grpc_python_out={into}",
        f"--descriptor_set_out={into / 'descriptors'}",
        *SOURCES,
    ]
    if protoc.main(arguments) != 0:
        raise SystemExit("protoc failed")


def main() -> int:
    check = "--check" in sys.argv[1:]
    drifted = []
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        made_now = {path.name: path.read_text() for path in (Path(scratch) / "goex" / "v1").iterdir()}
        targets = [(TARGET / name, text) for name, text in sorted(made_now.items())]
        targets += [(CLIENT / name, made_now[name]) for name in ("goex_pb2.py", "goex_pb2.pyi")]
        described = FileDescriptorSet.FromString((Path(scratch) / "descriptors").read_bytes()).file
        agents = typescript.agents_alone(next(file for file in described if file.name == "goex/v1/goex.proto"))
        targets += [(NODE / "goex_pb.js", typescript.module(agents)), (NODE / "goex_pb.d.ts", typescript.types(agents))]
        for target, text in targets:
            made = re.sub(r"^from goex\.v1 import (\w+_pb2)", r"from goex.rpc import \1", text, flags=re.MULTILINE)
            if check:
                if not target.exists() or target.read_text() != made:
                    drifted.append(str(target.relative_to(PROTOS.parent)))
            else:
                target.write_text(made)
        if check:
            drifted += sorted(
                path.name for path in TARGET.glob("*_pb2*") if path.suffix != ".pyc" and path.name not in made_now
            )
    if drifted:
        print(f"What is generated has drifted from protos/ ({', '.join(drifted)}): run `make protos`.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
