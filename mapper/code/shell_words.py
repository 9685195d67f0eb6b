"""Words of a shell command, as bash passes them on, and the folders that they count from.

Rules: a word is read only where each letter of it is known; None is one that something is expanded in. The grammar's
tree says what is a word; where the grammar is known to cut words otherwise than bash does, nothing is said to be known.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

# The grammar takes these as blanks; bash drops a newline behind a backslash, and takes the others as letters, and a
# blank behind a backslash at the beginning of a word, and other blanks of Unicode.
CUT_OTHERWISE = re.compile(
    r"(?<=[^ \t\n])\\\n(?=[^ \t\n])|[\x00-\x08\x0b-\x1f\x7f]|(?:^|(?<=[^\w/.,:-]))\\[ \t]"
    r"|[\u00a0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u2060\u3000\ufeff]\$"
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_QUOTED = re.compile(r"\\([\"\\$`])")
_DEEPEST = 80  # lists within lists
_MOST_FOLDERS = 8

Folders = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Word:
    """`text`: as it is passed on; `shown`: what of it stands without quotes, as it is written; `quoted`: some of it
    stands in quotes."""

    text: str
    shown: str
    quoted: bool


def word(node: Node) -> Word | None:
    """The word that a node is; None for one that isn't written out."""
    written = text(node)
    match node.type:
        case "word":
            return Word(_ESCAPED.sub(r"\1", written), written, False)
        case "number" if not node.children:
            return Word(written, written, False)
        case "raw_string":
            return Word(written[1:-1], "", True)
        case "string":
            inner = [each for each in node.children if each.is_named]
            if len(inner) == 1 and (said := _here_text(inner[0])) is not None and written == f'"{text(inner[0])}"':
                return Word(said, "", True)
            if any(each.type != "string_content" for each in inner):
                return None
            return Word(_ESCAPED_QUOTED.sub(r"\1", written[1:-1]), "", True)
        case "concatenation":
            parts = [word(each) for each in node.children]
            known = [each for each in parts if each is not None]
            if len(known) < len(parts):
                return None
            return Word(
                "".join(each.text for each in known),
                "".join(each.shown for each in known),
                any(each.quoted for each in known),
            )
    return None


def _here_text(node: Node) -> str | None:
    """What `$(cat <<'E'…)` passes on; None for anything else."""
    if node.type != "command_substitution":
        return None
    outer = [each for each in node.children if each.is_named]
    parts = [each for each in outer[0].children if each.is_named] if len(outer) == 1 else []
    if [each.type for each in parts] != ["command", "heredoc_redirect"] or text(parts[0]) != "cat":
        return None
    here = [(each.type, text(each)) for each in parts[1].children]
    kinds = [kind for kind, _ in here]
    if kinds != ["<<", "heredoc_start", "heredoc_body", "heredoc_end"] or not re.fullmatch(r"'\w+'", here[1][1]):
        return None
    # As it is written, for the grammar leaves out the blanks that a text begins with.
    return text(parts[1]).partition("\n")[2].rpartition("\n")[0].rstrip("\n")


class Placing:
    """All nodes of a tree, each with the folders that its words may count from: behind `cd X &&` that is X alone,
    behind `cd X;` it may be both. `known` is False where another `cd` may have changed that."""

    def __init__(self, root: Node, folders: Folders) -> None:
        self.nodes: list[tuple[Node, Folders]] = []
        self.known = True
        self._walk(root, folders)

    def _walk(
        self, node: Node, folders: Folders, depth: int = 0, *, piped: bool = False
    ) -> tuple[Folders, Folders, Folders]:
        """The folders behind it where it succeeds, and where it fails, and those of its last command. `piped`: its
        last command has a shell of its own."""
        inner = [each for each in node.children if each.is_named and each.type != "comment"]
        match node.type:
            case _ if depth > _DEEPEST:
                self._take(node, folders, depth)
            case "command":
                self._take(node, folders, depth, is_first=True)
                if (to := goes_to(node)) is not None:
                    self.known = self.known and to != "" and not piped
                    return self._some(moved(each, to) for each in folders), folders, folders
            case "list" if len(inner) == 2:
                done, failed, _ = self._walk(inner[0], folders, depth + 1)
                both = any(each.type == "&&" for each in node.children)
                then, missed, last = self._walk(inner[1], done if both else failed, depth + 1, piped=piped)
                if both:
                    return then, self._some((failed, missed)), last
                return self._some((done, then)), missed, last
            case "pipeline" | "redirected_statement" if inner:
                # The grammar takes `cd a && b | c` as `{ cd a && b; } | c`, and a redirection likewise.
                is_pipe = node.type == "pipeline"
                done, failed, last = self._walk(inner[0], folders, depth + 1, piped=piped or is_pipe)
                for each in inner[1:]:
                    self._walk(each, last, depth + 1, piped=True)
                return done, failed, last
            case "program" | "compound_statement" | "subshell":
                here = folders
                for each in node.children:
                    done, failed, _ = self._walk(each, here, depth + 1)
                    here = self._some((done, failed))
                if node.type != "subshell":
                    return here, here, folders
            case _:
                self._take(node, folders, depth)
        return folders, folders, folders

    def _take(self, node: Node, folders: Folders, depth: int, *, is_first: bool = False) -> None:
        """This node and all in it; what changes the folder in there isn't followed, but in a shell of its own."""
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if one.type == "subshell" and depth < _DEEPEST:
                self._walk(one, folders, depth + 1)
                continue
            self.nodes.append((one, folders))
            if one.type == "command" and not is_first:
                self.known = self.known and goes_to(one) is None
            is_first = False
            waiting += one.children[::-1]

    def _some(self, groups: Iterable[Folders]) -> Folders:
        found = tuple(dict.fromkeys(each for group in groups for each in group))
        self.known = self.known and len(found) <= _MOST_FOLDERS
        return found[:_MOST_FOLDERS]


def moved(folder: str, to: str) -> Folders:
    """The folders that a shell or a tool may go to: it counts `..` by the names, or by where links lead."""
    there = posixpath.join(folder, posixpath.expanduser(to) if re.match("~(?:/|$)", to) else to)
    return tuple(dict.fromkeys((there, posixpath.normpath(there)))) if ".." in to else (there,)


def goes_to(command: Node) -> str | None:
    """Where a `cd` leads; "" where that isn't written out; None for another command."""
    name = command.child_by_field_name("name")
    inner = word(name.children[0]) if name is not None and len(name.children) == 1 else None
    if inner is None or inner.text != "cd":
        return None
    words = [word(each) for each in command.children if name is not None and each.start_byte >= name.end_byte]
    to = words[0] if len(words) == 1 else None
    if to is None or to.text.startswith("-") or re.search(r"[*?\[{]|^~[^/]", to.shown):
        return ""
    return "" if to.quoted and to.text.startswith("~") else to.text


def text(node: Node | None) -> str:
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""
