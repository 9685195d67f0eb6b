"""Words of a shell program, as values that are known in part: variables, lists, here-documents, what commands print."""

from __future__ import annotations

import contextlib
import os.path
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mapper.code import shell_values, spare_words
from mapper.code.abstract_values import (
    UNKNOWN,
    Json,
    Listed,
    Lit,
    OneOf,
    Stream,
    Text,
    Value,
    bounded,
    choices,
    is_whole,
    joined,
    of_source,
    parts_of,
    text,
    weight,
)
from mapper.code.interpreter import Left
from mapper.code.libraries import environment
from mapper.code.sent_requests import Enough, Seen
from mapper.code.shell_values import PATH, together, unescaped
from mapper.code.spare_words import SEVERAL
from mapper.code.variables import Around, Names, meet

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_STEPS = 20_000
# What the grammar takes for plain text in a here-document: `$1`, `$?`, commands in backticks.
_IN_DOCUMENT = re.compile(r"(\\.)|\$(?:([1-9])|[0@*#?$!-])|`(?:[^`\\]|\\.)*`?", re.DOTALL)
_UNREAD = re.compile(r"(?<!\\)`|[<>]\(")  # where the grammar takes commands for plain text
_FILE = "\0file:"  # before a file's path, as a name
_CHANGES = re.compile(
    r"(?:\+\+|--)\s*+(\w++)|(?<!\w)(\w++)(?:\[[^\]]{0,200}\])?\s*+(?:\+\+|--|(?:<<|>>|[-+*/%&|^])?=(?!=))"
)
_ATTRIBUTES = re.compile(r"[-+]\w*[Ailnuc]\w*")  # by which a variable is no plain text or list
_GIVEN = re.compile(r"([A-Za-z_]\w*)(?:(\+?=)(.*))?", re.DOTALL | re.ASCII)


@dataclass(slots=True)
class Expansions(ABC):
    """What the words of one program are."""

    seen: Seen
    data: bytes
    names: Names = field(default_factory=Names)
    steps: int = 0
    paths: int = 0  # that `mktemp` made
    written: set[str] = field(default_factory=set)  # paths of files of which something is known
    exported: set[str] = field(default_factory=set)  # variables, and functions, that programs started here have
    perhaps: set[str] = field(default_factory=set)  # those that they have on some way
    marked: set[str] = field(default_factory=set)  # variables by whose attributes what they are given is changed
    around: list[Around] = field(default_factory=list)  # the functions and loops that run in this shell
    local: list[dict[str, Value | None]] = field(default_factory=list)  # by function: what its names are outside
    chosen: dict[str, bool] = field(default_factory=dict)  # of the command that is read: whether `name:+` holds

    @abstractmethod
    def block(self, node: Node) -> None:
        """Follow the statements in a node."""

    @abstractmethod
    def outcome(self, node: Node) -> Value | None:
        """Follow one statement; what it prints, where that is known."""

    def source(self, node: Node) -> str:
        self.seen.spend((node.end_byte - node.start_byte) // 500)
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def plain_word(self, node: Node) -> Value:
        return of_source(re.sub(r"\\(.)", r"\1", self.source(node).replace("\\\n", ""), flags=re.DOTALL))

    # ---- variables and files

    def put(self, name: str, value: Value) -> None:
        """A variable is given a value."""
        self.names[name] = UNKNOWN if name in self.marked else bounded(value)

    def lost(self) -> None:
        """Something is changed of which the name isn't known."""
        names = [name for name, _ in self.names.items()]
        self.seen.spend(len(names))
        self.names.update(dict.fromkeys(names, UNKNOWN))

    def cleared(self, names: Iterable[Value]) -> None:
        """Variables of these names may be anything now."""
        for one in names:
            name = str(one.value).partition("[")[0] if isinstance(one, Lit) else ""
            if name in self.names or name.isidentifier():
                self.names[name] = UNKNOWN
            elif not isinstance(one, Lit):
                self.lost()

    def file(self, name: Value) -> Value:
        """What is in a file of that name."""
        return (
            self.names.get(_FILE + os.path.normpath(str(name.value))) or UNKNOWN if isinstance(name, Lit) else UNKNOWN
        )

    def write(self, name: Value, value: Value) -> None:
        """A file has this in it now; one whose name isn't known may be any."""
        if not isinstance(name, Lit):
            self.forget()
            return
        path = os.path.normpath(str(name.value))
        self.written.add(path)
        self.names[_FILE + path] = bounded(value)

    def fresh_path(self) -> Value:
        """A path that nothing else has: what it is isn't known, and no text that it is in is whole."""
        self.paths += 1
        path = Lit(f"{PATH}{self.paths}{PATH}")
        self.write(path, Lit(""))
        return path

    def forget(self, args: list[Value] | None = None) -> None:
        """What is in files isn't known any more: in those that these arguments may name, or in all."""
        self.seen.spend(len(self.written) * (1 + sum(map(weight, args or ()))))
        known = [str(arg.value) for arg in args or () if isinstance(arg, Lit)]
        for path in self.written:
            named = any(
                path.rpartition("/")[2] in one or path.startswith(f"{one.rstrip('/')}/") for one in known if one
            )
            if args is None or len(known) < len(args) or named:
                self.names[_FILE + path] = UNKNOWN

    def join(self, before: Names, ways: list[Names]) -> None:
        """Go on where ways meet that parted from `before`."""
        for way in ways:
            for name in way.since(before):
                if name.startswith(_FILE) and name not in before:
                    before[name] = UNKNOWN
        self.seen.spend(meet(before, ways))
        self.names = before

    def apart(self, node: Node) -> None:
        """Follow the statements of a subshell: of what it changes, files alone stay so."""
        before, exported = self.names, set(self.exported)
        self.names = before.layer()
        around, self.around = self.around, []
        with contextlib.suppress(Left):
            self.block(node)
        self.around = around
        self.leave(before)
        self.exported = exported

    def leave(self, before: Names) -> None:
        since = self.names.since(before)
        self.names = before
        self.names.update({name: value for name, value in since.items() if name.startswith(_FILE)})

    def computed(self, written: str) -> None:
        """Arithmetic: what it changes isn't known any more."""
        self.seen.spend(len(written) // 50)
        for found in _CHANGES.finditer(written):
            self.names[found[1] or found[2]] = UNKNOWN

    def inside(self, node: Node) -> None:
        """Follow what is run, and changed, within a word or a test."""
        for child in node.named_children:
            if child.type in ("command_substitution", "arithmetic_expansion", "process_substitution", "expansion"):
                self.word(child)
            elif child.named_child_count:
                self.inside(child)
            elif child.type in ("word", "regex") and _UNREAD.search(self.source(child)):
                self.seen.note("What commands in backticks or `<(…)` within `${…}` do isn't read.")

    def declared(self, node: Node) -> None:
        """`local`, `declare` and their like, with their assignments."""
        first = self.source(node.children[0])
        flags = [self.source(child) for child in node.named_children if child.type == "word"]
        flags = [flag for flag in flags if flag.startswith(("-", "+"))]
        kept_back = any("n" in flag if first == "export" else "+" in flag and "x" in flag for flag in flags)
        flags = flags if first != "export" else []
        own = bool(self.local) and first in ("local", "declare", "typeset") and not any("g" in flag for flag in flags)
        for child in node.named_children:
            if child.type == "word" and self.source(child).startswith(("-", "+")):
                continue
            name = child.child_by_field_name("name") if child.type == "variable_assignment" else child
            given: Value = Lit("") if first == "local" else UNKNOWN
            if name is not None and name.type == "variable_name":
                known = self.source(name)
            elif child.type == "variable_assignment":
                self.assign(child)
                continue
            else:
                words = self.split(child)
                word = words[0] if len(words) == 1 else UNKNOWN
                found = _GIVEN.fullmatch(str(word.value)) if isinstance(word, Lit) else None
                if found is None:  # it may be any
                    self.lost()
                    continue
                known = found[1]
                given = Lit(found[3]) if found[2] == "=" else UNKNOWN
            if own:
                self.local[-1].setdefault(known, self.names.get(known))
            if kept_back:
                self.exported.discard(known)
            elif first == "export" or any("x" in flag for flag in flags):
                self.exported.add(known)
            if self.names.on_a_way and (first == "export" or any("x" in flag for flag in flags)):
                self.perhaps.add(known)
            if any(map(_ATTRIBUTES.match, flags)):
                self.marked.add(known)
                self.names[known] = UNKNOWN
            if child.type == "variable_assignment":
                self.assign(child)
            elif child.type != "variable_name" or first == "local":
                self.put(known, given)
        if any("n" in flag for flag in flags) and first in ("local", "declare", "typeset"):
            self.seen.note(f"Line {node.start_point[0] + 1}: gives a variable a second name, which isn't followed.")

    def assign(self, node: Node) -> None:
        """One assignment."""
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return
        if name.type == "subscript":  # an item of a list
            self.inside(name)
            self.computed(self.source(name))
            if value is not None:
                self.word(value)
            self.names[re.split(r"\[", self.source(name))[0]] = UNKNOWN
            return
        added = self.data[name.end_byte : name.end_byte + 2] == b"+="
        known = self.array(value) if value is not None and value.type == "array" else self.whole(value)
        own = self.source(name)
        if added:
            before = self.names.get(own)
            if isinstance(before, Listed) and isinstance(known, Listed):
                known = shell_values.array((*before.items, *known.items))
            elif isinstance(before, Lit | Text) and isinstance(known, Lit | Text):
                known = text((*parts_of(before), *parts_of(known)))
            else:
                known = UNKNOWN
        self.seen.spend(weight(known) // 8)
        self.put(own, known)

    # ---- words

    def split(self, node: Node) -> list[Value]:
        """A word as the arguments that it becomes: a variable without quotes may become several, or none."""
        listed = self.listed(node)
        if listed is not None:
            return listed
        condition = spare_words.condition(self, node)
        if (
            condition
            and (holds := spare_words.holds(self, condition)) is not None
            and (spare := spare_words.words(self, node)) is not None
        ):
            return list(map(together, spare)) if holds else []
        found = self.whole(node)
        if node.type in ("simple_expansion", "expansion") and isinstance(found, Lit):
            parts = self.parted(found, patterns=True)
            return parts if parts is not None else [shell_values.WORDS]
        if isinstance(found, OneOf) and node.type in ("simple_expansion", "expansion"):
            return [found] if self.single(found, patterns=True) else [shell_values.WORDS]
        if node.type == "concatenation" and isinstance(found, Lit | OneOf) and not self.joint(node, patterns=True):
            return [shell_values.WORDS]
        return [found]

    def parted(self, found: Value, *, patterns: bool = False) -> list[Value] | None:
        """The words that a value without quotes becomes; None where that isn't known. `patterns`: also where a file may
        be named so."""
        if not isinstance(found, Lit) or "IFS" in self.names:
            return None
        known = str(found.value)
        self.seen.spend(len(known) // 50)
        if not patterns and re.search(r"[*?\[\\]", known):
            return None
        return [Lit(one) for one in re.findall(r"[^ \t\n]+", known)]

    def single(self, found: Value, *, patterns: bool = False) -> bool:
        """Whether a value without quotes is surely one word, and as it is."""
        return all(self.parted(one, patterns=patterns) == [one] for one in choices(found))

    def joint(self, node: Node, *, patterns: bool = False) -> bool:
        """Whether the parts of a word without quotes are surely parts of one word."""
        for child in node.named_children:
            if child.type == "command_substitution":
                return False
            if child.type in ("simple_expansion", "expansion"):
                found = self.word(child)
                if not self.single(found, patterns=patterns):
                    return False
        return True

    def sure(self, node: Node, words: list[Value]) -> bool:
        """Whether a word becomes as many arguments as these."""
        if any(isinstance(one, Stream) for one in words):
            return False
        written = self.source(node)
        match node.type:
            case "raw_string" | "ansi_c_string" | "number" | "process_substitution":
                return True
            case "string":
                return (
                    "@" not in written or self.listed(node) is not None or not re.search(r"\$\{?!?@|\[@\]|@\}", written)
                )
            case "word":
                return not node.named_children and not SEVERAL.search(written)
            case "simple_expansion" | "expansion" if self.listed(node) is None:
                found = self.word(node)
                one_word = isinstance(found, OneOf) and self.single(found)
                return written in ("$#", "$?", "$$") or one_word or self.parted(found) is not None
            case "simple_expansion" | "expansion":
                return all(self.parted(one) is not None for one in words)
            case "concatenation":
                plainly = all(self.sure(one, []) for one in node.named_children if one.type in ("word", "string"))
                return plainly and "{" not in re.sub(r"\$\{", "", written) and self.joint(node)
        return False

    def listed(self, node: Node) -> list[Value] | None:
        """The words that a list is expanded to; None for any other word."""
        written = self.source(node)
        named = shell_values.list_named(written.removeprefix('"').removesuffix('"')) if "@" in written else None
        if named is None or node.type not in ("string", "simple_expansion", "expansion"):
            return None
        found = shell_values.words_of(self.names.get(named[0]), named[1])
        self.seen.spend(len(found))
        self.steps += len(found) // 8
        if node.type == "string":
            return found
        apart = [self.parted(one, patterns=True) for one in found]
        return [each for parts in apart for each in ([shell_values.WORDS] if parts is None else parts)]

    def whole(self, node: Node | None) -> Value:
        """A word, also where it is what a command prints and nothing else."""
        if node is None:
            return Lit("")
        inner = node.named_children
        if (
            node.type == "string"
            and len(inner) == 1
            and inner[0].type != "string_content"
            and self.source(node) == f'"{self.source(inner[0])}"'
        ):
            found = self.word(inner[0])
            return bounded(found if isinstance(found, Json) else together([found]))
        return bounded(self.word(node))

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
                return of_source(self.source(node)[1:-1])
            case "ansi_c_string":
                try:
                    made = self.source(node)[2:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")
                except UnicodeDecodeError:
                    return UNKNOWN
                return of_source(made) if is_whole(made) else UNKNOWN
            case "string":
                return self.pieces(node, quoted=True)
            case "concatenation" | "command_name":
                return together([self.word(child) for child in node.named_children])
            case "simple_expansion":
                return self.variable(self.source(node).lstrip("$"))
            case "expansion":
                return self.expansion(node)
            case "command_substitution":
                return self.substituted(node)
            case "process_substitution":
                printed = self.substituted(node)
                path = self.fresh_path()
                self.write(path, printed)
                return path
            case "arithmetic_expansion":
                self.inside(node)
                self.computed(self.source(node))
        return UNKNOWN

    def heredoc(self, node: Node) -> Value:
        start = next((one for one in node.children if one.type == "heredoc_start"), None)
        body = next((one for one in node.children if one.type == "heredoc_body"), None)
        if body is None:
            return UNKNOWN
        if start is not None and self.source(start)[:1] in ("'", '"', "\\"):
            return of_source(self.source(body))
        return self.pieces(body, held=True)

    def pieces(self, node: Node, quoted: bool = False, held: bool = False) -> Value:
        """A text with expansions in it. `held`: it is a here-document's."""
        made: list[Value] = []
        place = node.start_byte + quoted
        end = node.end_byte - quoted
        for child in node.named_children:
            if child.type in ("string_content", "heredoc_content", "heredoc_end"):
                continue
            made += self._between(place, child.start_byte, held)
            made.append(self.word(child))
            place = child.end_byte
        made += self._between(place, end, held)
        found = together(made)
        self.seen.spend(weight(found) // 8)
        return found

    def _between(self, start: int, end: int, held: bool) -> list[Value]:
        self.seen.spend((end - start) // 100)
        raw = self.data[start:end].decode("utf-8", "replace")
        made: list[Value] = []
        place = 0
        for found in _IN_DOCUMENT.finditer(raw) if held else ():
            if found[1]:
                continue
            made += [
                of_source(unescaped(raw[place : found.start()])),
                self.variable(found[2]) if found[2] else UNKNOWN,
            ]
            place = found.end()
            if found[0][0] == "`":
                self.seen.note("What commands in backticks in a here-document do isn't read.")
        return [*made, of_source(unescaped(raw[place:]))]

    def variable(self, name: str) -> Value:
        if name in self.names:
            found = self.names[name]
            if isinstance(found, Listed):  # its first word
                return found.items[0] if found.items and name not in "@*" else UNKNOWN
            return found
        return environment(name) if name.isidentifier() else UNKNOWN

    def expansion(self, node: Node) -> Value:
        inner = self.source(node)[2:-1]
        self.inside(node)
        match = re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*|[0-9@*#])(?:(:?[-=?+])(.*))?", inner, re.DOTALL)
        if match is None:
            item = re.fullmatch(r"(\w+)(?:\[(0|[1-9]\d{0,2})\]|(:\d.*|[#%^,].*))", inner, re.DOTALL | re.ASCII)
            known = self.names.get(item[1]) if item is not None else None
            if item is not None and item[2] and isinstance(known, Listed) and not known.more:
                return known.items[int(item[2])] if int(item[2]) < len(known.items) else Lit("")
            if item is not None and item[3] and isinstance(known, Lit):
                self.seen.spend(len(str(known.value)) // 20)
                return shell_values.changed(str(known.value), item[3])
            self.computed(inner)
            return UNKNOWN
        if condition := spare_words.condition(self, node):
            holds, found = spare_words.holds(self, condition), together(spare_words.quoted(self, node))
            return joined([Lit(""), found]) if holds is None else found if holds else Lit("")
        name, operator, default = match[1], match[2] or "", match[3] or ""
        known = self.names.get(name)
        if not operator or (known is not None and known != Lit("")):
            return self.variable(name) if operator[-1:] != "+" else UNKNOWN
        if operator[-1] in "-=":
            if known is not None and operator[0] != ":":  # it is set, though empty
                return known
            value: Value = of_source(default.strip("\"'")) if "$" not in default and "`" not in default else UNKNOWN
            value = environment(name, value)
            if operator[-1] == "=":
                self.put(name, value)
            return value
        return UNKNOWN

    def substituted(self, node: Node) -> Value:
        """What a command prints: known only of a text that is handed through."""
        words = node.named_children
        if len(words) != 1:
            self.apart(node)
            return UNKNOWN
        before, exported = self.names, set(self.exported)
        self.names = before.layer()
        found: Value | None = None
        around, self.around = self.around, []
        with contextlib.suppress(Left):
            found = self.outcome(words[0])
        self.around = around
        self.leave(before)
        self.exported = exported
        if isinstance(found, Lit):
            return Lit(str(found.value).rstrip("\n"))
        return found if isinstance(found, Text | Json) else UNKNOWN

    def array(self, node: Node) -> Value:
        items: list[Value] = []
        for child in node.named_children:
            words = self.split(child)
            items.extend(words if self.sure(child, words) else [shell_values.WORDS])
        return shell_values.array(items)
