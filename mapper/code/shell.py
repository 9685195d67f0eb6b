"""Shell programs, read by their grammar (tree-sitter's for Bash) and never run.

Rules: variables, loops over written words and functions are followed as in `mapper.code.python`, by the same kinds of
values; what a command prints is unknown. Of commands, curl, wget and `gh api` are understood, and Python and JavaScript
that the program holds itself: in a here-document, after `-c`, in a file that it wrote. `eval`, `source` and their like
are said in a note, and what they run isn't known.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mapper.code import curl
from mapper.code.abstract_values import UNKNOWN, Lit, Text, Value, parts_of, text, weight
from mapper.code.javascript import read_javascript
from mapper.code.libraries import environment
from mapper.code.python import TOO_MUCH, read_python
from mapper.code.sent_requests import Enough, Seen
from mapper.code.variables import Names, meet

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_STEPS = 20_000
MAX_DEPTH = 12
UNROLLED = 24
LONGEST = 100_000  # characters

_PYTHON = re.compile(r"(?:.*/)?python(?:3(?:\.\d+)?)?")
_PREFIXES = frozenset({"sudo", "time", "nohup", "command", "exec", "env", "nice", "timeout", "stdbuf", "xargs", "then"})
_HIDING = {"eval": "runs text as a program", "source": "reads another program", ".": "reads another program",
           "bash": "runs another shell program", "sh": "runs another shell program"}  # fmt: skip
_OTHERS = frozenset({"ruby", "perl", "php", "go", "deno", "nc", "ncat", "telnet", "openssl", "ssh", "scp", "git"})
_BODIES = frozenset({"program", "compound_statement", "do_group", "list", "pipeline", "subshell", "negated_command",
                     "else_clause", "elif_clause", "case_item"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Inner:
    """How another language's program is started: options that say nothing of it, and those that its text is after."""

    name: str
    read: Callable[[str, Seen], None]
    plain: frozenset[str]
    text: frozenset[str]


_PYTHON_INSIDE = _Inner("Python", read_python, frozenset({"-u", "-I", "-B", "-s", "-E"}), frozenset({"-c"}))
_NODE_INSIDE = _Inner(
    "JavaScript",
    read_javascript,
    frozenset({"--input-type=module", "--no-warnings"}),
    frozenset({"-e", "--eval", "-p", "-pe", "--print"}),
)


def read_shell(program: str, seen: Seen) -> None:
    """Add to `seen` what a shell program sends."""
    import tree_sitter
    import tree_sitter_bash

    if len(program) > LONGEST:
        seen.note(f"The shell program is {len(program)} characters long; at most {LONGEST} are read.")
        return
    data = program.encode("utf-8", "replace")
    tree = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language())).parse(data)
    if tree.root_node.has_error:
        seen.note("A part of the shell program can't be read, so that what it does isn't known.")
    try:
        seen.spend(len(data) // 10)
        _Shell(seen, data).block(tree.root_node)
    except (Enough, RecursionError):
        seen.note(TOO_MUCH)


@dataclass(slots=True)
class _Shell:
    seen: Seen
    data: bytes
    names: Names = field(default_factory=Names)
    functions: dict[str, Node] = field(default_factory=dict)
    files: dict[str, Value] = field(default_factory=dict)
    steps: int = 0
    depth: int = 0

    # ---- statements

    def block(self, node: Node) -> None:
        for child in node.named_children:
            self.statement(child)

    def statement(self, node: Node) -> None:
        self.seen.spend(1)
        self.steps += 1
        self.depth += 1
        if self.steps > MAX_STEPS or self.depth > 150:
            raise Enough
        try:
            self._statement(node)
        finally:
            self.depth -= 1

    def _statement(self, node: Node) -> None:
        match node.type:
            case "variable_assignment":
                self.assign(node)
            case "declaration_command" | "variable_assignments":
                self.block(node)
            case "command":
                self.command(node, {}, [])
            case "redirected_statement":
                self.redirected(node)
            case "function_definition":
                name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
                if name is not None and body is not None:
                    self.functions[self.source(name)] = body
            case "for_statement":
                self.loop(node)
            case "while_statement":
                body = node.child_by_field_name("body")
                for child in node.named_children:
                    if child != body:
                        self.statement(child)
                if body is not None:
                    self.rounds(body)
            case "if_statement" | "case_statement":
                before = self.names
                after = [before.layer()]
                for child in node.named_children:
                    self.names = before.layer()
                    self.statement(child)
                    after.append(self.names)
                self.seen.spend(meet(before, after))
                self.names = before
            case kind if kind in _BODIES:
                self.block(node)
            case "command_substitution":
                self.block(node)

    def assign(self, node: Node) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None:
            known = self.word(value) if value is not None else Lit("")
            added = self.data[name.end_byte : name.end_byte + 2] == b"+="
            self.names[self.source(name)] = UNKNOWN if added else known

    def loop(self, node: Node) -> None:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if variable is None or body is None:
            return
        name = self.source(variable)
        items: list[Value] = []
        for value in node.children_by_field_name("value"):
            found = self.word(value)
            plainly = value.type in ("word", "string", "raw_string", "concatenation", "number")
            items.append(found if plainly and "*" not in self.source(value) else UNKNOWN)
        if items and len(items) <= UNROLLED and all(isinstance(item, Lit) for item in items):
            for item in items:
                self.names[name] = item
                self.block(body)
            return
        self.names[name] = UNKNOWN
        self.rounds(body)

    def rounds(self, body: Node) -> None:
        """A loop's body, as it begins and with what its rounds may have changed."""
        before = self.names
        self.names = before.layer()
        self.block(body)
        since = self.names.since(before)
        self.seen.spend(len(since))
        changed = [name for name, value in since.items() if value is not None and before.get(name) != value]
        self.names = self.names.settle(before)
        if changed:
            self.names.update(dict.fromkeys(changed, UNKNOWN))
            self.block(body)

    # ---- commands

    def redirected(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        text_in: list[Value] = []
        to: dict[str, Value] = {}
        rest: list[Node] = []
        for child in node.named_children:
            if child.type == "heredoc_redirect":
                text_in.append(self.heredoc(child))
                rest.extend(one for one in child.named_children if one.type in ("pipeline", "command", "list"))
                for one in child.named_children:
                    if one.type == "file_redirect":
                        self._into(one, to)
            elif child.type == "herestring_redirect":
                text_in.append(self.word(child.named_children[0]) if child.named_children else UNKNOWN)
            elif child.type == "file_redirect":
                self._into(child, to)
        if body is not None:
            if body.type == "command":
                self.command(body, to, text_in)
            elif body.type == "pipeline" and body.named_children and body.named_children[-1].type == "command":
                for each in body.named_children[:-1]:
                    self.statement(each)
                self.command(body.named_children[-1], to, text_in)
            else:
                self.statement(body)
        for each in rest:
            self.statement(each)

    def _into(self, node: Node, to: dict[str, Value]) -> None:
        target = node.child_by_field_name("destination")
        if target is not None and self.source(node).startswith((">", "1>")):
            to["file"] = self.word(target)

    def heredoc(self, node: Node) -> Value:
        start = next((one for one in node.children if one.type == "heredoc_start"), None)
        body = next((one for one in node.children if one.type == "heredoc_body"), None)
        if body is None:
            return UNKNOWN
        if start is not None and self.source(start)[:1] in ("'", '"', "\\"):
            return Lit(self.source(body))
        return self.pieces(body)

    def command(self, node: Node, to: dict[str, Value], text_in: list[Value]) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Enough
        kept = self.names
        prefixed = False
        words: list[Value] = []
        for child in node.named_children:
            if child.type == "variable_assignment":
                if not prefixed:  # it is set for this command alone
                    self.names, prefixed = kept.layer(), True
                self.assign(child)
            elif child.type == "command_name":
                words.append(self.word(child.named_children[0]) if child.named_children else self.plain_word(child))
            elif child.type == "herestring_redirect":
                text_in.append(self.word(child.named_children[0]) if child.named_children else UNKNOWN)
            elif child.type == "file_redirect":
                self._into(child, to)
            else:
                words.extend(self.split(child))
        line = node.start_point[0] + 1
        try:
            self.run(words, line, to, text_in)
        finally:
            if prefixed:
                self.names = kept

    def run(self, words: list[Value], line: int, to: dict[str, Value], text_in: list[Value]) -> None:
        while words and isinstance(words[0], Lit) and str(words[0].value) in _PREFIXES:
            words = words[1:]
            while words and isinstance(words[0], Lit) and re.match(r"-|\d+[smh]?$|\w+=", str(words[0].value)):
                words = words[1:]
        if not words:
            return
        if not isinstance(words[0], Lit):
            self.seen.note(f"Line {line}: runs a command whose name is made while it runs.")
            return
        name, args = str(words[0].value), words[1:]
        base = name.rpartition("/")[2]
        if name in self.functions:
            self.function(name, args)
        elif base == "curl":
            curl.curl(self.seen, line, args, text_in[0] if text_in else None, self.files)
        elif base == "wget":
            curl.wget(self.seen, line, args)
        elif base == "gh":
            curl.gh(self.seen, line, args, text_in[0] if text_in else None)
        elif base in ("http", "https", "xh") and any(isinstance(arg, Lit) for arg in args):
            curl.httpie(self.seen, line, base, args)
        elif _PYTHON.fullmatch(name):
            self.inner(line, _PYTHON_INSIDE, args, text_in)
        elif base in ("node", "nodejs"):
            self.inner(line, _NODE_INSIDE, args, text_in)
        elif base in ("cat", "tee", "echo", "printf"):
            self.written(base, args, to, text_in)
        elif base in ("bash", "sh") and args and isinstance(args[0], Lit) and args[0].value == "-c":
            self.nested(line, args[1] if len(args) > 1 else UNKNOWN)
        elif base in ("read", "mapfile", "readarray", "unset"):
            for arg in args:
                if (isinstance(arg, Lit) and str(arg.value) in self.names) or (
                    isinstance(arg, Lit) and str(arg.value).isidentifier()
                ):
                    self.names[str(arg.value)] = UNKNOWN
        elif name in _HIDING:
            self.seen.note(f"Line {line}: {name} {_HIDING[name]}, which isn't followed.")
        elif base in _OTHERS:
            self.seen.note(f"Line {line}: what {base} does isn't read.")

    def function(self, name: str, args: list[Value]) -> None:
        if self.depth > MAX_DEPTH * 8:
            return
        kept = {key: self.names.get(key) for key in [*map(str, range(1, 20)), "@", "*", "#"]}
        for place in range(1, 20):
            self.names[str(place)] = args[place - 1] if place <= len(args) else Lit("")
        self.names.update({"@": UNKNOWN, "*": UNKNOWN, "#": Lit(str(len(args)))})
        body = self.functions[name]
        self.depth += 8
        try:
            self.statement(body)
        finally:
            self.depth -= 8
            for key, value in kept.items():
                if value is None:
                    self.names.drop(key)
                else:
                    self.names[key] = value

    def inner(self, line: int, how: _Inner, args: list[Value], text_in: list[Value]) -> None:
        """A program of another language that is started here."""
        rest = [arg for arg in args if not (isinstance(arg, Lit) and str(arg.value) in how.plain)]
        first = str(rest[0].value) if rest and isinstance(rest[0], Lit) else ""
        program: Value
        if first in how.text and len(rest) > 1:
            program = rest[1]
        elif (not rest or first in ("-", "/dev/stdin")) and text_in:
            program = text_in[-1]
        elif first and os.path.normpath(first) in self.files:
            program = self.files[os.path.normpath(first)]
        else:
            self.seen.note(f"Line {line}: runs a {how.name} program that isn't written there.")
            return
        if not isinstance(program, Lit):
            self.seen.note(f"Line {line}: runs a {how.name} program of which parts are made while it runs.")
            return
        before = (len(self.seen.requests), len(self.seen.spoken))
        how.read(str(program.value), self.seen)
        self.shift(before, line)

    def shift(self, before: tuple[int, int], line: int) -> None:
        """Lines of a program within the program, as lines of the whole."""
        from dataclasses import replace

        for place in range(before[0], len(self.seen.requests)):
            request = self.seen.requests[place]
            self.seen.requests[place] = replace(request, line=request.line + line)
        for place in range(before[1], len(self.seen.spoken)):
            spoken = self.seen.spoken[place]
            self.seen.spoken[place] = replace(spoken, line=spoken.line + line)

    def nested(self, line: int, program: Value) -> None:
        if not isinstance(program, Lit) or self.depth > 100:
            self.seen.note(f"Line {line}: runs a shell program that is made while it runs.")
            return
        self.depth += 20
        before = (len(self.seen.requests), len(self.seen.spoken))
        read_shell(str(program.value), self.seen)
        self.shift(before, line - 1)
        self.depth -= 20

    def written(self, base: str, args: list[Value], to: dict[str, Value], text_in: list[Value]) -> None:
        target = to.get("file")
        if base == "tee" and args:
            target = args[-1]
        if isinstance(target, Lit):
            if base in ("cat", "tee"):
                value = text_in[-1] if text_in and (base == "tee" or not args) else UNKNOWN
            else:
                value = args[0] if base == "echo" and len(args) == 1 else UNKNOWN
            self.files[os.path.normpath(str(target.value))] = value

    # ---- words

    def source(self, node: Node) -> str:
        self.seen.spend((node.end_byte - node.start_byte) // 500)
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def plain_word(self, node: Node) -> Value:
        return Lit(re.sub(r"\\(.)", r"\1", self.source(node).replace("\\\n", ""), flags=re.DOTALL))

    def split(self, node: Node) -> list[Value]:
        """A word as the arguments that it becomes: a variable without quotes may become several, or none."""
        found = self.word(node)
        if node.type in ("simple_expansion", "expansion") and isinstance(found, Lit):
            return [Lit(one) for one in str(found.value).split()]
        return [found]

    def word(self, node: Node) -> Value:
        self.seen.spend(1)
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Enough
        match node.type:
            case "word" | "number" | "special_variable_name" | "test_operator":
                if node.named_children:
                    return self.pieces(node)
                return self.plain_word(node)
            case "raw_string":
                return Lit(self.source(node)[1:-1])
            case "ansi_c_string":
                try:
                    return Lit(self.source(node)[2:-1].encode("latin-1", "backslashreplace").decode("unicode_escape"))
                except UnicodeDecodeError:
                    return UNKNOWN
            case "string":
                return self.pieces(node, quoted=True)
            case "concatenation" | "command_name":
                return text(part for child in node.named_children for part in parts_of(self.word(child)))
            case "simple_expansion":
                return self.variable(self.source(node).lstrip("$"))
            case "expansion":
                return self.expansion(node)
            case "command_substitution":
                return self.substituted(node)
        return UNKNOWN

    def pieces(self, node: Node, quoted: bool = False) -> Value:
        """A text with expansions in it."""
        made: list[Value] = []
        place = node.start_byte + quoted
        end = node.end_byte - quoted
        for child in node.named_children:
            if child.type in ("string_content", "heredoc_content", "heredoc_end"):
                continue
            made.append(self._between(place, child.start_byte, quoted))
            made.append(self.word(child))
            place = child.end_byte
        made.append(self._between(place, end, quoted))
        found = text(part for value in made for part in parts_of(value))
        self.seen.spend(weight(found) // 8)
        return found

    def _between(self, start: int, end: int, quoted: bool) -> Value:
        self.seen.spend((end - start) // 100)
        raw = self.data[start:end].decode("utf-8", "replace")
        return Lit(re.sub(r'\\([$`"\\\n])', lambda match: "" if match[1] == "\n" else match[1], raw))

    def variable(self, name: str) -> Value:
        if name in self.names:
            return self.names[name]
        return environment(name) if name.isidentifier() else UNKNOWN

    def expansion(self, node: Node) -> Value:
        inner = self.source(node)[2:-1]
        match = re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*|[0-9@*#])(?:(:?[-=?+])(.*))?", inner, re.DOTALL)
        if match is None:
            return UNKNOWN
        name, operator, default = match[1], match[2] or "", match[3] or ""
        known = self.names.get(name)
        if not operator or (known is not None and known != Lit("")):
            return self.variable(name) if operator[-1:] != "+" else UNKNOWN
        if operator[-1] in "-=":
            value: Value = Lit(default.strip("\"'")) if "$" not in default and "`" not in default else UNKNOWN
            return environment(name, value)
        return UNKNOWN

    def substituted(self, node: Node) -> Value:
        """What a command prints: known only of a text that is handed through."""
        words = node.named_children
        self.block(node)
        if len(words) == 1 and words[0].type == "redirected_statement":
            body = words[0].child_by_field_name("body")
            docs = [one for one in words[0].named_children if one.type == "heredoc_redirect"]
            if body is not None and self.source(body) == "cat" and len(docs) == 1:
                found = self.heredoc(docs[0])
                if isinstance(found, Lit):
                    return Lit(str(found.value).rstrip("\n"))
                return found if isinstance(found, Text) else UNKNOWN
        if len(words) == 1 and words[0].type == "command":
            parts = words[0].named_children
            if len(parts) == 2 and self.source(parts[0]) == "echo":
                return self.word(parts[1])
        return UNKNOWN
