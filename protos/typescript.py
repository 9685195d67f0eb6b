"""The agents' service for clients/node: its descriptor as a module of JavaScript, and types for TypeScript.

The descriptor is protoc's own, so nothing of Node is needed to make or check it. Types are written for the messages
that `Actions` reaches, in the shapes that @bufbuild/protobuf gives them.
"""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

_HEAD = "// Made from protos/goex/v1/goex.proto by protos/generate.py. Don't edit.\n"
_BIGINT = {"TYPE_INT64", "TYPE_UINT64"}
_NUMBER = {"TYPE_INT32", "TYPE_UINT32", "TYPE_DOUBLE", "TYPE_FLOAT"}
_PLAIN = {"TYPE_STRING": "string", "TYPE_BOOL": "boolean", "TYPE_BYTES": "Uint8Array"}


def agents_alone(file: FileDescriptorProto) -> FileDescriptorProto:
    """The file with the service `Actions` and what that reaches: an agent has no use for the rest."""
    made, reached = FileDescriptorProto(), _reached(file)
    made.CopyFrom(file)
    del made.service[1:], made.message_type[:]
    made.message_type.extend(message for message in file.message_type if message.name in reached)
    return made


def module(file: FileDescriptorProto) -> str:
    """goex_pb.js: the schemas of the messages, and the service."""
    text = "\n".join(textwrap.wrap(base64.b64encode(file.SerializeToString()).decode(), 110))
    lines = [f"{_HEAD}", 'import { fileDesc, messageDesc, serviceDesc } from "@bufbuild/protobuf/codegenv2";\n']
    lines.append(f"const file = fileDesc(`\n{text}\n`.replaceAll(/\\s/g, ''));\n")
    for index, message in enumerate(file.message_type):
        lines.append(f"export const {message.name}Schema = messageDesc(file, {index});")
    return "\n".join([*lines, "\nexport const Actions = serviceDesc(file, 0);\n"])


def types(file: FileDescriptorProto) -> str:
    """goex_pb.d.ts: what TypeScript knows of it."""
    lines = [_HEAD, 'import type { Message } from "@bufbuild/protobuf";']
    lines.append('import type { GenMessage, GenService } from "@bufbuild/protobuf/codegenv2";\n')
    for message in file.message_type:
        lines += [f'export type {message.name} = Message<"{file.package}.{message.name}"> & {{']
        lines += [*_fields(message), "};", f"export const {message.name}Schema: GenMessage<{message.name}>;\n"]
    lines.append("export const Actions: GenService<{")
    for method in file.service[0].method:
        kind = "server_streaming" if method.server_streaming else "unary"
        ends = f"input: typeof {_last(method.input_type)}Schema; output: typeof {_last(method.output_type)}Schema"
        lines.append(f'  {_lower(method.name)}: {{ methodKind: "{kind}"; {ends} }};')
    return "\n".join([*lines, "}>;\n"])


def _fields(message: DescriptorProto) -> Iterator[str]:
    for field in message.field:
        if not field.HasField("oneof_index"):
            optional = "?" if _kind(field) == "TYPE_MESSAGE" and not _repeated(field) else ""
            yield f"  {field.json_name}{optional}: {_type(field)}{'[]' if _repeated(field) else ''};"
    for index, one in enumerate(message.oneof_decl):
        cases = [f for f in message.field if f.HasField("oneof_index") and f.oneof_index == index]
        yield f"  {one.name}:"
        yield from (f'    | {{ case: "{field.json_name}"; value: {_type(field)} }}' for field in cases)
        yield "    | { case: undefined; value?: undefined };"


def _type(field: FieldDescriptorProto) -> str:
    kind = _kind(field)
    if kind == "TYPE_MESSAGE":
        return _last(field.type_name)
    return "bigint" if kind in _BIGINT else "number" if kind in _NUMBER else _PLAIN[kind]


def _kind(field: FieldDescriptorProto) -> str:
    return FieldDescriptorProto.Type.Name(field.type)


def _repeated(field: FieldDescriptorProto) -> bool:
    return field.label == FieldDescriptorProto.LABEL_REPEATED


def _reached(file: FileDescriptorProto) -> set[str]:
    """The names of the messages that `Actions` takes, answers, or holds in one of these."""
    messages = {message.name: message for message in file.message_type}
    wanted = [_last(name) for method in file.service[0].method for name in (method.input_type, method.output_type)]
    found: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in found:
            found.add(name)
            wanted += [_last(field.type_name) for field in messages[name].field if field.type_name]
    return found


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _lower(name: str) -> str:
    return name[0].lower() + name[1:]
