"""A shell command that a coding agent's client would run: which paths it names, and whether the sandbox can do it on
its folder alone. It is read by its grammar, and never run.

Rules: only commands of the sandbox's image count, and only words that lie within the folder; what can't be read (an
unknown command, a variable of the environment, an error of syntax) is never said to be within it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 100_000  # characters
_MOST_PATHS = 16
_READING = frozenset({
    "basename", "cat", "cmp", "comm", "cut", "date", "diff", "dirname", "du", "echo", "egrep", "expr", "false",
    "fgrep", "file", "find", "fold", "grep", "head", "join", "ls", "md5sum", "nl", "od", "paste", "printf", "pwd",
    "readlink", "rev", "sed", "seq", "sha256sum", "sort", "stat", "tac", "tail", "test", "tr", "true", "tsort",
    "uniq", "wc", "xargs", "[", "cd", "exit", "set"
})  # fmt: skip
_CHANGING = frozenset({
    "chmod", "cp", "dd", "gzip", "gunzip", "install", "ln", "mkdir", "mktemp", "mv", "rm", "rmdir", "shred",
    "split", "tar", "tee", "touch", "truncate", "unlink"
})  # fmt: skip
_OUTSIDE = re.compile(r"(?:^|[=:,\s'\"])(?:/(?!dev/null\b)|~)|(?:^|/|=)\.\.(?:/|$)")
# In these words stands more than one can see: an escape, another person's home, what a glob finds outside.
_HIDING = re.compile(r"\\|(?:^|[=:,])~[^/=:,]|(?:^|[=:,])(?:/|~|\.\.).*[*?\[{]|[*?\[{].*/\.\.(?:/|$)", re.DOTALL)
_PARTS = re.compile(r"[=:,]")
_ELSEWHERE = frozenset({"cd", "pushd", "popd", "eval", "source", ".", "env", "sudo", "su", "chroot"})
_WORDS = frozenset({"word", "string_content", "raw_string"})
_WRITES = frozenset({">", ">>", ">|", "&>", "&>>"})


@dataclass(frozen=True, slots=True)
class FolderShell:
    """`changes`: it changes files; `within`: all that it does is known, and lies within its folder; `paths`: that it
    names, absolute; `names_all`: its words hide no others (in an expansion, a glob, behind another folder)."""

    changes: bool = False
    within: bool = False
    paths: tuple[str, ...] = ()
    names_all: bool = False


def read_folder_shell(program: str, folder: str) -> FolderShell:
    """What a command does to its folder, as far as it is written out."""
    import tree_sitter
    import tree_sitter_bash

    if len(program) > LONGEST or not program.strip():
        return FolderShell()
    tree = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language())).parse(
        program.encode("utf-8", "replace")
    )
    nodes = list(_all(tree.root_node))
    named = {_text(each.child_by_field_name("name")) for each in nodes if each.type == "variable_assignment"}
    named |= {_text(each.child_by_field_name("variable")) for each in nodes if each.type == "for_statement"}
    changes, within, paths = False, not tree.root_node.has_error, dict[str, None]()
    names_all = not tree.root_node.has_error
    for node in nodes:
        match node.type:
            case "command_name":
                name = _text(node)
                changes = changes or name in _CHANGING
                within = within and name in _READING | _CHANGING
                names_all = names_all and name not in _ELSEWHERE  # its words count from another folder
            case "command":
                words = [_text(each) for each in node.children]
                rewrites = words[:1] == ["sed"] and any(word.startswith(("-i", "--in-place")) for word in words)
                changes = changes or rewrites or (words[:1] == ["find"] and "-delete" in words)
                if words[:1] in (["find"], ["xargs"]) and not {"-exec", "-execdir"}.isdisjoint(words):
                    within = False  # what it runs is an argument
                within = within and words[:1] != ["xargs"]
            case "file_redirect":
                to = node.child_by_field_name("destination")
                writes = any(each.type in _WRITES for each in node.children)
                changes = changes or (writes and to is not None and _text(to) != "/dev/null")
            case "concatenation" | "command_substitution" | "ansi_c_string" | "brace_expression":
                names_all = False
            case "simple_expansion" | "expansion":
                names_all = False
                within = within and any(each.type == "variable_name" and _text(each) in named for each in node.children)
            case "function_definition" | "process_substitution":
                within = False
            case kind if kind in _WORDS:
                word = _text(node).strip("'")
                within = within and not _OUTSIDE.search(word)
                names_all = names_all and not _HIDING.search(word)
                for part in _PARTS.split(word):
                    if part == "~" or part.startswith("~/"):
                        part = posixpath.expanduser(part)
                    if "/" in part or part == "..":
                        paths[posixpath.normpath(posixpath.join(folder, part))] = None
    paths.pop("/dev/null", None)
    return FolderShell(changes, within, tuple(paths)[:_MOST_PATHS], names_all and len(paths) <= _MOST_PATHS)


def _all(node: Node) -> Iterator[Node]:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += one.children


def _text(node: Node | None) -> str:
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""
