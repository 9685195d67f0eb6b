"""What a word of a shell command may name: itself, its parts, and what stands behind an option's letters.

Rules: programs cut words in many ways, and all of them are taken. A path that begins within a word (`/…`, `~/…`,
`../…`) is sure, and so has to be permitted, unless the program is known to take it for a part of another value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_LETTERS = 24  # of short options in one word
OPTION = re.compile(r"-[^-][A-Za-z0-9#$!?^]*")
ADDRESS = re.compile(
    r"(?<![^\s=,@:'\"(<\[])(?![A-Za-z0-9+.-]*file:)"
    # Without a host it names a socket or a file, but of a database often a name, or a file of the folder.
    r"(?:(?:sqlite|postgres(?:ql)?|mysql|mariadb)[a-z0-9+]*:///(?!/)|[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>,/])"
    r"(?:(?!=@|(?<!/)@/|;)[^\s'\"<>,])*",  # then a form of curl's goes on
    re.IGNORECASE,
)
_PARTS = re.compile(r"[=:,@]")
_LISTED = re.compile(r"[=:,@;|{}]")  # and as some programs part the values of one argument
_LISTED_BUT_PATTERNS = re.compile(r"[=:,@;{}]")
_CUT = re.compile(r"[=:,@;|{}<>()\[\]#?!&]")
_TEXT = re.compile(r"[\s'\"]")
# A form of curl's: `name=@file,other;type=a/b`, `name=<file`, `name=x;headers=@file`, with quotes and blanks.
_FORM = re.compile(r"[^=\n\"'{]*=[@<(]|.*;\s*headers=", re.DOTALL)
FILE_ADDRESS = re.compile(r"file:(?://[^/\s]*)?(?=/)", re.IGNORECASE)
_FILE = re.compile(FILE_ADDRESS.pattern + r"/*(/[^\s'\";,]*)", re.IGNORECASE)
_WITHOUT_HOST = re.compile(r"(?::///|\bsqlite[a-z0-9+]*://(?!/))([^\s'\";,?#]+)", re.IGNORECASE)
_UP = re.compile(r"(?<=[^A-Za-z0-9./~^])\.\./.*", re.DOTALL)  # behind a mark of whichever kind
_BEGIN = r"(?=/|~(?:/|$)|\.\.(?:/|$))"  # of a path that leads elsewhere
_ATTACHED = re.compile(rf"(?:--?(?:[\w#$!?^%+-]{{0,6}}[:@])?[\w#$!?^%+-]*?|\+[A-Za-z]{{1,2}}){_BEGIN}", re.ASCII)
# Options of which the rest of a word is the value, behind letters that have none; only where each version of the
# program says so, for a path behind them is a guess.
_VALUED = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), re.compile(r"-[A-Za-z0-9]*?[ef]")),
    **dict.fromkeys(("cp", "mv", "ln", "install"), re.compile(r"-[A-Za-z0-9]*?t")),
    **dict.fromkeys(("perl", "ruby", "protoc"), re.compile(r"-I")),
    **dict.fromkeys(("7z", "7za", "7zz"), re.compile(r"-[ow]")),
    **dict.fromkeys(("ld", "nvcc", "rustc"), re.compile(r"-[LIo]")),
    **dict.fromkeys(("flex", "bison"), re.compile(r"-o")),
    **dict.fromkeys(("make", "gmake"), re.compile(r"-[A-Za-z0-9]*?[CfI]")),
    **dict.fromkeys(("ssh", "scp"), re.compile(r"-[A-Za-z0-9]*?[FiJloPpS]")),
    "cmake": re.compile(r"-[SBDCGUAT]"),
    "curl": re.compile(r"-[A-Za-z0-9#]*?[AbcCdDeEFHKmoPQrtTuUwxXyYz]"),
    "dot": re.compile(r"-[oT]"),
    "git": re.compile(r"-[asv]*[CSGmF]"),
    "kubectl": re.compile(r"-f"),
    "ninja": re.compile(r"-[A-Za-z0-9]*?[Cf]"),
    "patch": re.compile(r"-[A-Za-z0-9]*?[dior]"),
    "rg": re.compile(r"-[A-Za-z0-9]*?[efg]"),
    "sort": re.compile(r"-[A-Za-z0-9]*?[okTS]"),
    "tar": re.compile(r"-[A-Za-z0-9]*?[CfTX]"),
    "unzip": re.compile(r"-[A-OQ-Za-z]*?d"),
    "wget": re.compile(r"-[A-Za-z0-9]*?[OPoai]"),
}
_COMPILER = re.compile(r"(?:.*-)?(?:gcc|g\+\+|clang(?:\+\+|-tidy)?|cc|c\+\+|cpp)(?:-[\d.]+)?")
_OF_COMPILER = re.compile(r"-(?:isystem|iquote|idirafter|include|MF|MT|MQ|[IDLUolB])")
# To these a `|` is part of a pattern or of a program, and parts no paths.
_PATTERNS_IN = frozenset({
    "grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "awk", "gawk", "mawk", "perl", "ruby", "git", "jq"
})  # fmt: skip
_RUNS_ANOTHER = frozenset({"timeout", "time", "nice", "nohup", "xargs", "command", "exec", "env", "ccache", "stdbuf"})


def program_of(name: str, texts: list[str]) -> str:
    """The program that takes the options of a command: itself, or what it plainly runs."""
    if name not in _RUNS_ANOTHER:
        return name
    # Another option of these may have the next word for its value.
    return next((each for each in texts if not re.match(r"-n$|-?\d|\w+=", each)), "")


def names(said: str, program: str, *, option: bool, plain: bool) -> Iterator[tuple[str, bool]]:
    """What a word may name, and whether that is more than a guess: among letters anyone may be the last option.
    `option`: it may be one; `plain`: it may be none."""
    found = dict[str, bool]()
    for whole, sure in _wholes(said, program, option=option, plain=plain):
        for name, is_sure in _parts(whole, program):
            found[name] = found.get(name, False) or (sure and is_sure)
    found |= {each[1]: True for each in _FILE.finditer(said)}
    for each in _WITHOUT_HOST.finditer(said):
        found.setdefault(each[1], False)
    return iter(found.items())


def _wholes(said: str, program: str, *, option: bool, plain: bool) -> Iterator[tuple[str, bool]]:
    """A word, or what may be the value of an option that it is."""
    letters = OPTION.match(said) if option else None
    attached = _ATTACHED.match(said) if option else None
    values = _OF_COMPILER if _COMPILER.fullmatch(program) else _VALUED.get(program)
    valued = values.match(said) if letters is not None and values is not None else None
    if letters is not None:
        value = valued.end() if valued is not None else 2
        for at in range(2, min(letters.end(), MOST_LETTERS) + 1):
            yield said[at:], at == value or (valued is None and said.startswith(".", at))
    elif option and said.startswith("--"):
        yield from ((value, True) for value in _PARTS.split(said, maxsplit=1)[1:])
    else:
        yield said, True
    if attached is not None:
        yield said[attached.end() :], valued is None
    if option and plain:
        yield said, False


def _parts(whole: str, program: str) -> Iterator[tuple[str, bool]]:
    """A value, and each of its pieces."""
    for name, sure in _pieces(whole, program):
        yield name, sure
        if given := re.match(r"[\w-]+=(.+)", name, re.DOTALL):
            yield given[1], sure
        if (bare := name.strip(" \t'\"")) != name:
            yield bare, sure and not whole.lstrip().startswith(("{", "["))
        # An option in the value of another, mostly a compiler's.
        if (option := _OF_COMPILER.match(bare) or _ATTACHED.match(bare)) is not None:
            yield bare[option.end() :], sure and name != whole


def _pieces(whole: str, program: str) -> Iterator[tuple[str, bool]]:
    yield whole, True
    cut = [(name, True) for name in _PARTS.split(whole)]
    if program == "tar" and (way := re.match(r"s([^\w\s])", whole)):  # --transform
        cut += [(name, True) for name in whole.split(way[1])]
    if _FORM.match(whole):
        cut += [(name.strip(' \t"@<'), True) for name in re.split("[=;,]", whole)]
    if not _TEXT.search(whole):
        # Behind a closing brace goes on what stands before it, unless one of the choices is nothing.
        on = r"(?<=\})[^=:,@;|{}]+" if not re.search(r"\{,|,[,}]", whole) else r"(?!)"
        marks = _LISTED_BUT_PATTERNS if program in _PATTERNS_IN else _LISTED
        cut += [(name, True) for name in marks.split(re.sub(on, "", whole))]
        cut += [(each[0], True) for each in _UP.finditer(whole)]
        cut += [(name, False) for name in _CUT.split(whole)]
        cut += [(name, False) for mark in "=:,@;|" if mark in whole for name in whole.split(mark)]
    yield from ((name, sure) for name, sure in cut if "/" in name or not re.search(r"\s", name))
