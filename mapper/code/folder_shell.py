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
_MOST_PATHS = 32  # and as many globs
_MOST_WORDS = 256
_MOST_LETTERS = 24  # of short options in one word
_LONGEST_NAME = 255  # bytes of a file's name
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
_OUTSIDE = re.compile(
    r"(?:^(?:-[A-Za-z0-9]+)?|[=:,@\s'\"])(?:/(?!dev/null\b)|~)|(?:^(?:-[A-Za-z0-9]+)?|[/=:,@])\.\.(?:/|$)"
)
# In these words stands more than one can see: an escape, another person's home, what a glob finds outside.
_HIDING = re.compile(r"\\|(?:^|[=:,@])~[^/=:,@]|(?:^|[=:,@])(?:/|~|\.\.).*[*?\[{]|[*?\[{].*/\.\.(?:/|$)", re.DOTALL)
_PARTS = re.compile(r"[=:,@]")
_OPTIONS = re.compile(r"-[^-][A-Za-z0-9]*")
_FILE = ("f/", "C/")  # with a file of its own behind other options, as in -xzf/x
_SED_OPTIONS = re.compile(r"-[nEirszue]+(?:\.\w+)?")
_SED_SCRIPT = re.compile(r"'s/[^/]*/[^/]*/[gpIi0-9]*'")
_ELSEWHERE = frozenset({"cd", "pushd", "popd", "eval", "source", ".", "env", "sudo", "su", "chroot"})
_WORDS = frozenset({"word", "number", "string_content", "raw_string"})
_WRITES = frozenset({">", ">>", ">|", "&>", "&>>"})


@dataclass(frozen=True, slots=True)
class FolderShell:
    """`changes`: it changes files; `within`: all that it does is known, and lies within its folder; `paths`: that it
    names, absolute, each `..` where it stands, for it counts from where a link leads; `words`: what may be the name of
    something in its folder, as a path; `globs`: the patterns that the shell expands, as paths; `names_all`: its words
    hide no others (in an expansion, in another folder)."""

    changes: bool = False
    within: bool = False
    paths: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
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
    changes, within = False, not tree.root_node.has_error
    paths, bare, globs = dict[str, None](), dict[str, None](), dict[str, None]()
    files, scripts = set[int](), set[int]()  # words that are no options, and no names
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
                if "--" in words:
                    behind = node.children[words.index("--") + 1 :]
                    files.update(each.id for word in behind for each in (word, *word.children))
                if words[:1] == ["sed"]:
                    first = next((at for at in range(1, len(words)) if not _SED_OPTIONS.fullmatch(words[at])), 0)
                    scripts.update([node.children[first].id] * bool(_SED_SCRIPT.fullmatch(words[first])))
                rewrites = words[:1] == ["sed"] and any(word.startswith(("-i", "--in-place")) for word in words)
                changes = changes or rewrites or (words[:1] == ["find"] and "-delete" in words)
                if words[:1] in (["find"], ["xargs"]) and not {"-exec", "-execdir"}.isdisjoint(words):
                    within = False  # what it runs is an argument
                within = within and words[:1] != ["xargs"]
            case "file_redirect":
                to = node.child_by_field_name("destination")
                writes = any(each.type in _WRITES for each in node.children)
                changes = changes or (writes and to is not None and _text(to) != "/dev/null")
                files.update(each.id for word in node.children for each in (word, *word.children))
            case (
                "concatenation" | "command_substitution" | "ansi_c_string" | "brace_expression" | "arithmetic_expansion"
            ):
                names_all = False
            case "simple_expansion" | "expansion":
                names_all = False
                within = within and any(each.type == "variable_name" and _text(each) in named for each in node.children)
            case "function_definition" | "process_substitution":
                within = False
            case kind if kind in _WORDS:
                word, shown = _text(node).strip("'"), kind == "word"
                within = within and not _OUTSIDE.search(word)
                if node.id in scripts:
                    continue
                option = _OPTIONS.match(word) if node.id not in files else None
                names_all = names_all and not _HIDING.search(word) and not (shown and "[" in word)
                names_all = names_all and (option is None or option.end() <= _MOST_LETTERS)
                for name, sure in _names(word, option, is_file=node.id in files):
                    path = posixpath.join(folder, posixpath.expanduser(name) if re.match("~(?:/|$)", name) else name)
                    if shown and ("*" in name or "?" in name):
                        globs[path] = None
                    if sure and ("/" in name or name == ".."):
                        paths[path] = None
                    elif name not in ("", ".") and (name == word or not re.search(r"\s", name)):
                        bare |= {path: None} if "/" in name or len(name.encode()) <= _LONGEST_NAME else {}
    paths.pop("/dev/null", None)
    names_all = names_all and max(len(paths), len(globs)) <= _MOST_PATHS and len(bare) <= _MOST_WORDS
    found = tuple(paths)[:_MOST_PATHS], tuple(bare)[:_MOST_WORDS], tuple(globs)[:_MOST_PATHS]
    return FolderShell(changes, within, *found, names_all)


def _names(word: str, option: re.Match[str] | None, *, is_file: bool) -> Iterator[tuple[str, bool]]:
    """What a word may name: itself, and each of its pieces; of options what may be their value. And whether it is more
    than a guess: among letters anyone may be the last option."""
    if option is not None:
        last = min(option.end(), _MOST_LETTERS)
        wholes = [
            (word[at:], at == 2 or word[at : at + 1] == "." or word[at - 1 : at + 1] in _FILE)
            for at in range(2, last + 1)
        ]
        wholes = [(whole, sure) for whole, sure in wholes if sure or not whole.startswith("/")]  # not of -Isrc/x
    elif word.startswith("--") and not is_file:
        wholes = [(value, True) for value in _PARTS.split(word, maxsplit=1)[1:]]
    else:
        wholes = [(word, True)]
    for whole, sure in wholes:
        for name in (whole, *_PARTS.split(whole)):
            yield name, sure


def _all(node: Node) -> Iterator[Node]:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += one.children


def _text(node: Node | None) -> str:
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""
