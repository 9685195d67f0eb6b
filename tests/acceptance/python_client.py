"""An agent's client on stubs that were generated from the proto alone; it imports nothing of GoEx.

python python_client.py STUBS UID SOCKET TOKEN COMMAND ARGUMENT… — prints one JSON object a line. STUBS is the folder
with goex_pb2.py and goex_pb2_grpc.py. With a UID other than "" the process becomes that user after its imports and
before it touches anything. Commands: whoami; execute FOLDER PROGRAM ASK-SECONDS; person [METHOD…] (calls each, or
every method of the Person service with an empty request, and prints how it ended); get ACTION-ID; reach PATH…
(whether this user can list, open or connect to it).
"""

from __future__ import annotations

import json
import os
import socket as sockets
import stat
import sys
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict


def say(**values: Any) -> None:
    print(json.dumps(values), flush=True)


def fields(message: Any) -> dict[str, Any]:
    return dict(MessageToDict(message, preserving_proto_field_name=True))


def become(uid: int) -> None:
    os.chdir("/")
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def reach(path: Path) -> str:
    """What this user gets at `path`: "ok", or the name of the error."""
    try:
        if path.is_dir():
            list(path.iterdir())
        elif stat.S_ISSOCK(path.stat().st_mode):
            with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
                probe.connect(str(path))
        else:
            path.open("rb").close()
    except OSError as error:
        return type(error).__name__
    return "ok"


def execute(stub: Any, pb: Any, metadata: Any, folder: str, program: str, seconds: str) -> None:
    files = pb.FilesProgram(folder=folder, language="shell", program=program)
    for event in stub.Execute(pb.ExecuteRequest(files=files, ask_seconds=int(seconds)), metadata=metadata):
        if event.WhichOneof("what") == "asking":
            say(asking=event.asking.id, action=event.action_id)
        elif event.WhichOneof("what") == "finished":
            done = event.finished
            say(finished=done.action.state, action=done.action.id, problem=done.problem.code, agent=done.action.agent)


def person(channel: Any, pb: Any, metadata: Any, names: list[str]) -> None:
    for method in pb.DESCRIPTOR.services_by_name["Person"].methods:
        if names and method.name not in names:
            continue
        kind = channel.unary_stream if method.server_streaming else channel.unary_unary
        reply = getattr(pb, method.output_type.name)
        call = kind(f"/goex.v1.Person/{method.name}", response_deserializer=reply.FromString)
        code = "OK"
        try:
            answer = call(b"", timeout=300, metadata=metadata)
            if method.server_streaming:
                next(answer)
        except grpc.RpcError as error:
            code = error.code().name
        say(method=method.name, code=code)


def main() -> int:
    stubs, uid, socket, token, command, *rest = sys.argv[1:]
    sys.path.insert(0, stubs)
    import goex_pb2 as pb
    import goex_pb2_grpc as pb_grpc

    # gRPC imports more of itself with the first channel, from a folder that the other user may not be able to read.
    grpc.insecure_channel("unix:/nowhere").close()
    if uid:
        become(int(uid))
    if command == "reach":
        for path in rest:
            say(path=path, reach=reach(Path(path)))
        return 0
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    with grpc.insecure_channel(f"unix:{socket}", options=(("grpc.default_authority", "localhost"),)) as channel:
        stub = pb_grpc.ActionsStub(channel)
        try:
            if command == "execute":
                execute(stub, pb, metadata, *rest)
            elif command == "person":
                person(channel, pb, metadata, rest)
            elif command == "get":
                say(**fields(stub.Get(pb.ActionId(id=rest[0]), timeout=300, metadata=metadata)))
            else:
                say(**fields(stub.Whoami(pb.WhoamiRequest(), timeout=300, metadata=metadata)))
        except grpc.RpcError as error:
            say(error=error.code().name, details=error.details())
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
