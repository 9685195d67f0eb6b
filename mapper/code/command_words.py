"""Which words of a command are texts, by what the table says that it takes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mapper.code.command_table import Takes

CUT = re.compile(r"[\s;&|<>()$`\\'\"]")  # by which a shell parts words, or makes others of them
IS_PROGRAM = re.compile(r"(?:data|javascript):", re.IGNORECASE)  # an address that is one itself
_INPUT = re.compile(r"-\w+-|--[\w-]+=-")  # an option of which the value is that
_OPTION = re.compile(r"-(?!\d+$|\s|$)")  # and not a number, the input or a list's mark
_RUNS = re.compile(r"-*(?:\S*:|tool)?exec\b")  # of mvn and go: so, too
_PROMPTS = frozenset({  # words of such tools with which they read a program, or are given a command
    "shell", "console", "repl", "dbshell", "shell_plus", "exec", "dlx", "tinker", "ghci", "iex", "fsi", "eval",
    "runner", "inspect", "debug", "--pd", "--pdb", "--repl", "--trace", "--interactive",
})  # fmt: skip


@dataclass(slots=True)
class Words:
    """`at`: behind the options that were read; `seen`: those; `plain`: the places of the words that are none."""

    at: int
    known: bool = True
    seen: set[str] = field(default_factory=set)
    found: set[int] = field(default_factory=set)
    plain: list[int] = field(default_factory=list)

    def texts(self) -> frozenset[int] | None:
        return frozenset(self.found) if self.known else None


def read_words(takes: Takes, texts: list[str], at: int, *, ends: bool = False, last: str = "") -> Words:
    """Which words are texts, from this one on. `ends`: options end with the first other word; `last`: letters behind
    which they end, too."""
    read, free = Words(at), "*" in takes.marks
    prompts = "~" in takes.marks and not free

    is_sure = not takes.letters and "~" not in takes.marks  # find: its options take what is said, whatever it is

    def refuses(said: str) -> bool:
        return any(each.fullmatch(said) for each in takes.refused)

    def take(how: str, place: int) -> None:
        given = texts[place] if place < len(texts) else None
        if given is None or (place == read.at and how and not is_sure and _OPTION.match(given)):
            read.known = False  # what takes it for an option, in some version or tool, reads all else otherwise
        elif how == "#":
            read.found.add(place)
        elif how and place == read.at and refuses(f"{texts[place - 1]}={given}"):
            read.known = False
        elif not free and (given == "-" or (how and _INPUT.fullmatch(given))):
            read.known = False  # it may take its input for a program
        elif not free and (CUT.search(given) or IS_PROGRAM.search(given)):
            read.known = False

    while read.known and read.at < len(texts):
        said, here = texts[read.at], read.at
        read.known = not (prompts and (said in _PROMPTS or _RUNS.match(said))) and not refuses(said)
        if said == "-" or not said.startswith("-"):
            if ends:
                return read
            read.plain.append(here)
            take("", here)
            read.at += 1
            continue
        read.at += 1
        if said == "--" and "~" not in takes.marks:
            if ends:
                return read
            for each in range(read.at, len(texts)):
                read.plain.append(each)
                read.known = read.known and not refuses(texts[each])
                take("", each)
            return read
        option, equals, _ = said.partition("=")
        if "~" in takes.marks or option in takes.words:
            read.seen.add(option)
            how = takes.words.get(option, "")
            is_here = bool(equals) or how in ("", "?")
            take(how, here if is_here else read.at)
            read.at += not is_here
        elif not (takes.letters and re.fullmatch(r"-\d+", said)):
            read.known = read.known and not said.startswith("--") and bool(takes.letters)
            for place, letter in enumerate(said[1:], 2):
                kind = takes.letters.get(letter)
                read.known = read.known and kind is not None
                read.seen.add(letter)
                if kind:
                    is_here = kind == "?" or bool(said[place:])
                    take(kind, here if is_here else read.at)
                    read.at += not is_here
                    break
            if read.seen & {*last}:
                return read
    return read
