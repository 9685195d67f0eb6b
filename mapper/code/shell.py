"""Shell programs, read by their grammar (tree-sitter's for Bash) and never run.

Rules: variables, loops over written words and functions are followed as in `mapper.code.python`, by the same kinds of
values; what a command prints is unknown, but for `echo`, `printf`, `mktemp`, an object that `jq` makes, and a function
that ends with one of these. Of commands, curl, wget and `gh api` are understood, and Python and JavaScript that the
program holds itself: in a here-document, after `-c`, in a file that it wrote. `eval`, `source` and their like are said
in a note, and what they run isn't known.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mapper.code import curl, shell_unread, shell_values, spare_words
from mapper.code.abstract_values import (
    UNKNOWN,
    Json,
    Lit,
    OneOf,
    Stream,
    Text,
    Value,
    choices,
    is_whole,
    parts_of,
    weight,
)
from mapper.code.interpreter import Left
from mapper.code.python import TOO_MUCH
from mapper.code.sent_requests import Enough, Seen
from mapper.code.shell_expansions import MAX_STEPS
from mapper.code.shell_programs import LEFT, NODE_INSIDE, PYTHON, PYTHON_INSIDE, Programs
from mapper.code.shell_values import together
from mapper.code.variables import Names

if TYPE_CHECKING:
    from tree_sitter import Node

UNROLLED = 24
LONGEST = 100_000  # characters

_SENDING = ("curl", "wget", "gh", "http", "https", "xh", "bash", "sh", "python", "python3", "node")
_ENDING = ("return", "exit", "break", "continue")
_PREFIXES = frozenset({"sudo", "time", "nohup", "command", "exec", "env", "nice", "timeout", "stdbuf", "xargs", "then",
                       "builtin", "setsid", "coproc", "watch"})  # fmt: skip
_HIDING = {"eval": "runs text as a program", "source": "reads another program", ".": "reads another program",
           "bash": "runs another shell program", "sh": "runs another shell program"}  # fmt: skip
_BODIES = frozenset({"program", "compound_statement", "do_group", "list", "pipeline", "subshell", "negated_command",
                     "else_clause", "elif_clause", "case_item"})  # fmt: skip
_ITEMS = ("word", "string", "raw_string", "concatenation", "number")
# Options after which a value follows that is no variable's name.
_VALUED = {"read": re.compile(r"-\w*[ptnNdiu]"), "unset": re.compile("(?!)"), "wait": re.compile("-[fn]*")}
_LISTED = re.compile(r"-\w*[dnOsucC]")  # of `mapfile`
_REDIRECTED = re.compile(r"(\d*|&|\{\w+\})(>>|>\||>&|<>|<&|>|<(?!<))")
# Commands that change no file that is named to them, and those that change files that aren't.
_READERS = frozenset(
    {
        "echo", "printf", "jq", "cat", "test", "[", "true", "false", ":", "sleep", "date", "grep", "egrep", "fgrep",
        "head", "tail", "wc", "ls", "stat", "du", "file", "chmod", "mkdir", "exit", "return", "break", "continue",
        "read", "set", "shift", "let", "getopts", "cut", "tr", "basename", "dirname", "realpath", "pwd", "id",
        "hostname", "seq", "which", "type", "diff", "cmp", "md5sum", "sha256sum", "base64", "trap", "wait", "kill",
        "curl", "tee", "mktemp",
    }
)  # fmt: skip
_MOVERS = frozenset({"cp", "mv", "rsync", "tar", "unzip", "patch", "ln", "install", "dd", "git", "cd", "pushd", "popd",
                     "find", "make", "eval", "source", ".", "bash", "sh", "zsh", "ssh", "exec"})  # fmt: skip


def read_shell(program: str, seen: Seen, names: Names | None = None, args: list[Value] | None = None) -> None:
    """Add to `seen` what a shell program sends; `names` and `args` are the variables and arguments that it is given."""
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
        shell = _Shell(seen, data, names or Names(), exported={name for name, _ in (names or Names()).items()})
        shell.names.ever = {name: [value] for name, value in shell.names.items()}
        if args is not None:
            shell.places(args)
        with contextlib.suppress(Left):
            shell.block(tree.root_node)
        shell.trapped()
    except (Enough, RecursionError):
        seen.note(TOO_MUCH)


@dataclass(slots=True)
class _Shell(Programs):
    """Follows one program."""

    def started(self, program: str, names: Names, args: list[Value] | None) -> None:
        read_shell(program, self.seen, names, args)

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
            case "declaration_command":
                self.declared(node)
            case "unset_command":
                if "-f" in self.source(node).split():
                    self.seen.note(f"Line {node.start_point[0] + 1}: what unset takes away isn't followed.")
                for one in node.named_children:
                    plainly = one.type in ("variable_name", "subscript")
                    self.cleared([Lit(self.source(one))] if plainly else self.split(one))
            case "variable_assignments":
                self.block(node)
            case "command":
                self.command(node, {}, [])
            case "redirected_statement":
                self.redirected(node)
            case "function_definition":
                name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
                if name is not None and body is not None:
                    top = node.parent is not None and node.parent.type == "program"
                    if not top or self.functions.setdefault(self.source(name), body) != body:
                        self.several.add(self.source(name))
                    self.functions[self.source(name)] = body
            case "for_statement":
                self.loop(node)
            case "while_statement":
                self.rounds(node.named_children)
            case "c_style_for_statement":
                for child in node.named_children:
                    self.inside(child)
                    self.computed(self.source(child))
                if (body := node.child_by_field_name("body")) is not None:
                    self.rounds([body])
            case "pipeline":
                self.piped(node.named_children, {}, [])
            case "if_statement" | "case_statement":
                self.branch(node)
            case "list":
                self.chain(node)
            case "subshell":
                self.apart(node)
            case "test_command":
                if self.source(node)[:2] == "((":
                    self.computed(self.source(node))
                self.inside(node)
            case kind if kind in _BODIES:
                if self.source(node)[:2] == "((":
                    self.computed(self.source(node))
                self.block(node)
            case "command_substitution":
                self.apart(node)

    def loop(self, node: Node) -> None:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if variable is None or body is None:
            return
        name = self.source(variable)
        items: list[Value] = []
        for value in node.children_by_field_name("value"):
            listed = self.listed(value)
            if listed is not None:
                items.extend(listed)
                continue
            found = self.word(value)
            items.append(found if value.type in _ITEMS and self.sure(value, [found]) else UNKNOWN)
        if items and len(items) <= UNROLLED and all(isinstance(item, Lit) for item in items):
            if LEFT.search(self.source(body)):
                self.gone_through(partial(self.put, name), items, body)
                return
            for item in items:
                self.put(name, item)
                self.block(body)
            return
        self.names[name] = UNKNOWN
        self.rounds([body])

    # ---- commands

    def outcome(self, node: Node) -> Value | None:
        """Follow one statement; what it prints, where that is known."""
        match node.type:
            case "command":
                return self.command(node, {}, [])
            case "redirected_statement":
                return self.redirected(node)
            case "pipeline":
                return self.piped(node.named_children, {}, [])
        self.statement(node)
        return None

    def redirected(self, node: Node) -> Value | None:
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
        printed: Value | None = None
        if body is not None:
            if body.type == "command":
                printed = self.command(body, to, text_in)
            elif body.type == "pipeline":
                printed = self.piped(body.named_children, to, text_in)
            else:
                if "file" in to:  # it may be left early
                    self.write(to["file"], UNKNOWN)
                self.statement(body)
        # What follows a here-document's mark gets what the command before it prints.
        handed = text_in[-1:] if body is not None and self.source(body) == "cat" else []
        for each in rest:
            printed = self.piped([each], {}, [], handed)
        if "file" in to and (body is None or body.type != "command"):
            self.write(to["file"], UNKNOWN)
            return None
        return printed if len(rest) < 2 else None

    def piped(
        self, nodes: list[Node], to: dict[str, Value], last: list[Value], first: list[Value] | None = None
    ) -> Value | None:
        """Commands of which each reads what the one before it prints; `first` is what the first of them reads, and
        `to` and `last` where the last one writes, and what it reads instead. Returns what the last one prints."""
        handed = first or []
        while nodes and nodes[0].type == "pipeline":
            nodes = [*nodes[0].named_children, *nodes[1:]]
        for node in nodes:
            is_last = node == nodes[-1]
            before, exported = self.names, set(self.exported)
            if len(nodes) > 1:  # each of them is a subshell
                self.names = before.layer()
            around, self.around = self.around, self.around if len(nodes) == 1 else []
            printed: Value | None = None
            try:
                if node.type == "command":
                    printed = self.command(node, to if is_last else {}, [*handed, *(last if is_last else [])])
                else:
                    self.statement(node)
            except Left:
                if len(nodes) == 1:
                    raise
            self.around = around
            handed = [printed] if printed is not None else []
            if len(nodes) > 1:
                self.leave(before)
                self.exported = exported
        return handed[0] if handed and nodes else None

    def _into(self, node: Node, to: dict[str, Value]) -> None:
        target = node.child_by_field_name("destination")
        if target is not None and target.type == "process_substitution":
            self.apart(target)
            return
        mark = _REDIRECTED.match(self.source(node))
        if target is None or mark is None:
            self.forget()
            return
        name = self.word(target)
        if str(parts_of(name)[0]).startswith(("/dev/tcp/", "/dev/udp/")):
            self.seen.note(f"Line {node.start_point[0] + 1}: opens a connection of its own, which isn't followed.")
        if mark[2] in (">&", "<&") and isinstance(name, Lit) and re.fullmatch(r"\d+-?|-", str(name.value)):
            if mark[1] in ("", "1") and mark[2] == ">&":
                to["file"] = Lit("/dev/null")  # it is printed elsewhere
        elif mark[2] == "<":
            if mark[1] in ("", "0"):
                to["from"] = self.file(name)
        elif mark[1] in ("", "1", "&") and mark[2] != "<>":
            if "file" in to:
                self.write(to["file"], UNKNOWN)
            to["file"] = name
            if mark[2] in (">>", ">&") or mark[1] == "&":
                to["after"] = UNKNOWN  # what is there already, or is written beside it
        else:
            self.write(name, UNKNOWN)

    def command(self, node: Node, to: dict[str, Value], text_in: list[Value]) -> Value | None:
        """Follow one command; what it prints, where that is known."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Enough
        if (name := self.one_of_several(node)) is not None:
            several = [partial(self.put, name, one) for one in choices(self.names[name])]
            return self.each_way(several, node, to, text_in)
        if (spare := spare_words.undecided(self, node, UNROLLED)) is not None:
            ways = [partial(self.chosen.__setitem__, spare, one) for one in (True, False)]
            printed = self.each_way(ways, node, to, text_in)
            del self.chosen[spare]
            return printed
        kept = self.names
        words: list[Value] = []
        loose = 0  # so many words at the end aren't known to be as many
        for child in node.named_children:
            if child.type == "variable_assignment":
                continue
            if child.type == "herestring_redirect":
                text_in.append(self.word(child.named_children[0]) if child.named_children else UNKNOWN)
            elif child.type == "file_redirect":
                self._into(child, to)
            elif child.type == "process_substitution" and words and self.data[child.start_byte - 1 :][:1].strip():
                words[-1] = together([words[-1], self.word(child)])  # the grammar cuts `@<(…)`
            else:
                word = child.named_children[0] if child.type == "command_name" and child.named_children else child
                found = self.split(word) if word.type != "command_name" else [self.plain_word(word)]
                words.extend(found)
                sure = word.type == "command_name" or self.sure(word, found)
                loose = loose + len(found) if loose or not sure else 0
        line = node.start_point[0] + 1
        own = [one for one in node.named_children if one.type == "variable_assignment"]
        exported = set(self.exported)
        if own:  # they are set for this command alone
            self.names = kept.layer()
            self.exported |= {re.split(r"\[|\+?=", self.source(one))[0] for one in own}
            for one in own:
                self.assign(one)
        try:
            text_in = [to["from"]] if "from" in to else text_in[-1:]  # the last redirection counts
            with spare_words.unchosen(self):
                printed = self.run(words, line, to, text_in, loose)
        finally:
            self.exported &= exported
            if own:
                since = self.names.since(kept)
                given = {re.split(r"\[|\+?=", self.source(one))[0] for one in own}
                self.names = kept
                self.names.update({name: value for name, value in since.items() if name not in given})
        printed = printed if printed is not None else self.printed(words, text_in)
        if "file" in to:
            self.write(to["file"], UNKNOWN if printed is None or "after" in to else printed)
        return printed if "file" not in to else None

    def one_of_several(self, node: Node) -> str | None:
        """The first list among a command's words that is one of a few; None where there is none, or too many ways."""
        found: dict[str, int] = {}
        for child in node.named_children:
            named = shell_values.list_named(self.source(child).strip('"')) if child.type == "string" else None
            if named is not None and isinstance(known := self.names.get(named[0]), OneOf):
                found[named[0]] = len(known.values)
        return next(iter(found), None) if math.prod(found.values()) <= UNROLLED else None

    def each_way(
        self, choosing: Sequence[Callable[[], None]], node: Node, to: dict[str, Value], text_in: list[Value]
    ) -> Value | None:
        """Follow a command in each of several ways."""
        before = self.names
        ways: list[Names] = []
        printed: list[Value | None] = []
        for choose in choosing:
            self.names = before.layer()
            way = self.names
            choose()
            with contextlib.suppress(Left):
                printed.append(self.command(node, dict(to), list(text_in)))
                ways.append(way)
        self.meet(before, ways)
        return printed[0] if all(one == printed[0] for one in printed) else None

    def printed(self, words: list[Value], text_in: list[Value]) -> Value | None:
        """What a command prints; None where that isn't known."""
        name = str(words[0].value) if words and isinstance(words[0], Lit) else ""
        if name in self.functions:
            return None
        found: Value | None = None
        match name, words[1:]:
            case "echo", [one] if one not in (Lit("-n"), Lit("-e")) and not isinstance(one, Stream):
                found = one
            case "printf", args:
                found = shell_values.printf(args)
            case "jq", args:
                self.seen.spend(sum(len(str(arg.value)) // 2 if isinstance(arg, Lit) else weight(arg) for arg in args))
                found = shell_values.jq(args)
            case ("cat", []) | ("tee", _):
                found = text_in[-1] if text_in else None
            case "cat", [one]:
                found = self.file(one)
            case "mktemp", _:
                found = self.fresh_path()
        slashed = name == "echo" and any("\\" in part for part in parts_of(found or UNKNOWN) if isinstance(part, str))
        return found if isinstance(found, Lit | Text | Json) and not slashed else None

    def run(
        self, words: list[Value], line: int, to: dict[str, Value], text_in: list[Value], loose: int = 0
    ) -> Value | None:
        """Run a command; what it prints, where that is a function's."""
        whole = words
        while words and isinstance(words[0], Lit) and str(words[0].value) in _PREFIXES:
            if words[0] in (Lit("xargs"), Lit("exec")):  # what it is given besides isn't known
                self.forget()
            if words[0] == Lit("xargs"):
                found = shell_values.xargs(words[1:])
                if found is None:
                    self.seen.note(f"Line {line}: what xargs runs isn't read.")
                words, loose = found or [], 0
                continue
            if words[0] == Lit("env") and shell_unread.splits(words):
                self.seen.note(f"Line {line}: what env runs isn't read.")
                return None
            words = words[1:]
            while words and isinstance(words[0], Lit) and re.match(r"-|\d+[smh]?$|\w+=", str(words[0].value)):
                words = words[1:]
        if not words:
            return None
        if not isinstance(words[0], Lit) or not is_whole(str(words[0].value)):
            self.seen.note(f"Line {line}: runs a command whose name is made while it runs.")
            self.forget()
            return None
        name, args = str(words[0].value), words[1:]
        base = name.rpartition("/")[2]
        counted = [*args[: max(len(args) - loose, 0)], shell_values.WORDS] if loose else args
        if name in self.functions and whole[0] in (words[0], Lit("time")):  # `command curl` is no function
            printed = self.function(name, counted)
            return printed if words is whole and name not in self.several else None
        if not PYTHON.fullmatch(name) and shell_unread.unread(name, args):
            self.seen.note(f"Line {line}: what {base if name == base else 'another file'} does isn't read.")
        if base in _MOVERS and not (base in ("bash", "sh") and args[:1] == [Lit("-c")]):
            self.forget()
        elif PYTHON.fullmatch(name) or base in ("node", "nodejs"):
            self.forget([arg for arg in [*args[1:], *text_in] if isinstance(arg, Lit)])
        elif base not in _READERS:
            self.forget(args)
        if base == "curl":
            curl.curl(self.seen, line, args, text_in[0] if text_in else None, self.file)
            for one in curl.written(args):
                self.write(one, UNKNOWN)
        elif base == "wget":
            curl.wget(self.seen, line, args)
        elif base in ("find", "parallel") and any(isinstance(arg, Lit) and arg.value in _SENDING for arg in args):
            self.seen.note(f"Line {line}: what {base} runs isn't read.")
        elif base == "gh":
            curl.gh(self.seen, line, args, text_in[0] if text_in else None)
        elif base in ("http", "https", "xh") and any(isinstance(arg, Lit) for arg in args):
            curl.httpie(self.seen, line, base, args)
        elif PYTHON.fullmatch(name):
            self.inner(line, PYTHON_INSIDE, args, text_in)
        elif base in ("node", "nodejs"):
            self.inner(line, NODE_INSIDE, args, text_in)
        elif base == "tee":
            for arg in args:
                self.write(arg, text_in[-1] if text_in and len(args) == 1 else UNKNOWN)
        elif base == "printf" and args and args[0] == Lit("-v"):
            if len(args) > 1 and isinstance(args[1], Lit) and str(args[1].value).isidentifier():
                self.put(str(args[1].value), shell_values.printf(args[2:]))
            else:
                self.cleared(args[1:2])
        elif name in _ENDING:
            self.ended(name, args[0] if args else UNKNOWN)
        elif base in ("shift", "set"):
            self.moved(base, counted)
        elif base == "let":
            self.computed(" ; ".join(str(arg.value) for arg in args if isinstance(arg, Lit)))
            self.cleared(arg for arg in args if not isinstance(arg, Lit))
        elif base == "getopts":
            self.cleared((Lit("OPTARG"), Lit("OPTIND"), *args[1:2]))
        elif base in ("bash", "sh") and args and isinstance(args[0], Lit) and args[0].value == "-c":
            given = any(one in (Lit("env"), Lit("sudo")) for one in whole[: len(whole) - len(words)])
            self.nested(line, args[1] if len(args) > 1 else UNKNOWN, args[3:], given)
        elif base in ("read", "mapfile", "readarray", "unset", "wait"):
            asked = _VALUED.get(base, _LISTED)
            kept = [arg for place, arg in enumerate(args)
                    if not place or not asked.fullmatch(str(getattr(args[place - 1], "value", "")))]  # fmt: skip
            attached = [re.fullmatch(r"-\w*?[ap](\w+)", str(arg.value)) for arg in args if isinstance(arg, Lit)]
            self.cleared([*kept, Lit("REPLY"), Lit("MAPFILE"), *(Lit(one[1]) for one in attached if one)])
        elif base == "trap" and not {Lit("DEBUG"), Lit("ERR"), Lit("RETURN")}.isdisjoint(args):
            self.seen.note(f"Line {line}: trap runs text as a program, which isn't followed.")
        elif base == "trap" and len(args) > 1 and args[0] not in (Lit("-"), Lit(""), Lit("-p"), Lit("-l")):
            self.traps.append((line, args[0]))
        elif name in _HIDING:
            self.seen.note(f"Line {line}: {name} {_HIDING[name]}, which isn't followed.")
        return None
