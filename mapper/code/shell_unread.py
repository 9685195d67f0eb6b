"""Commands of a shell program that may send requests, or run others that do, and that aren't read.

Rules: a word that isn't known counts as none of the options below. A file that the program names by a path may be
anything; those of the system's folders are what they are called.
"""

from __future__ import annotations

from collections.abc import Sequence

from mapper.code.abstract_values import Lit, Value

_SYSTEM = ("/bin/", "/usr/bin/", "/usr/local/bin/")
_ALWAYS = frozenset({
    "ruby", "perl", "php", "go", "deno", "nc", "ncat", "telnet", "openssl", "ssh", "scp", "git", "rsync", "sftp", "ftp",
    "socat", "make", "busybox", "vim", "vi", "ex", "npm", "npx", "pip", "pip3", "docker", "glab", "aria2c", "compgen",
    "flock", "alias",
})  # fmt: skip
_AWK = ("system", "getline", '| "', '|"', "|&")
# Commands that run others where their words have these in them.
_BY_WORDS = {
    "awk": _AWK, "gawk": _AWK, "mawk": _AWK, "mapfile": ("-C",), "readarray": ("-C",), "hash": ("-p",),
    "tar": ("--to-c", "--checkpoint-a", "--use-c", "-I"), "sort": ("--compress-p",),
}  # fmt: skip
SPLITTING = ("-S", "-vS", "--split-string")  # of `env`, by which one word is a whole command


def unread(name: str, args: Sequence[Value]) -> bool:
    """Whether what a command does isn't known, by its name and the words that follow it."""
    base = name.rpartition("/")[2]
    if base in _ALWAYS or (name != base and not name.startswith(_SYSTEM)):
        return True
    by = _BY_WORDS.get(base, ())
    return any(word in str(arg.value) for arg in args if isinstance(arg, Lit) for word in by)


def splits(args: Sequence[Value]) -> bool:
    """Whether `env` makes a command of one of these words."""
    return any(isinstance(arg, Lit) and str(arg.value).startswith(SPLITTING) for arg in args)
