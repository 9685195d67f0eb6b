"""Commands by their names: what is known of each, without its words. Those of the sandbox's image come first."""

from __future__ import annotations

import re

READING = frozenset({
    "basename", "cat", "cmp", "comm", "cut", "date", "diff", "dirname", "du", "echo", "egrep", "expr", "false",
    "fgrep", "file", "find", "fold", "grep", "head", "join", "ls", "md5sum", "nl", "od", "paste", "printf", "pwd",
    "readlink", "rev", "sed", "seq", "sha256sum", "sort", "stat", "tac", "tail", "test", "tr", "true", "tsort",
    "uniq", "wc", "xargs", "[", "cd", "exit", "set"
})  # fmt: skip
CHANGING = frozenset({
    "chmod", "cp", "dd", "gzip", "gunzip", "install", "ln", "mkdir", "mktemp", "mv", "rm", "rmdir", "shred",
    "split", "tar", "tee", "touch", "truncate", "unlink"
})  # fmt: skip
# What these are given isn't run by a shell of this machine.
RUN_NONE = (READING - {"xargs", "find"}) | CHANGING | frozenset({
    "git", "gh", "glab", "hg", "rg", "ag", "ack", "which", "type", "whereis", "man", "apt", "apt-get", "brew", "dnf",
    "apk", "pip", "pip3", "docker", "podman", "kubectl", "ssh", "scp", "rsync", "curl", "wget", "jq", "awk", "gawk",
    "python", "python3", "node", "make", "cargo", "go", "pytest", "tsc", "eslint", "ruff", "mypy", "psql", "less",
    "ps", "pgrep", "kill", "pkill", "systemctl", "journalctl", "printenv"
})  # fmt: skip
# Others may give to another program what stands behind `--`.
ENDS_OPTIONS = (READING - {"xargs", "find"}) | CHANGING | {"rg", "ag"}
SEPARATED = frozenset({"cut", "sort", "join", "paste", "awk", "gawk", "mawk"})
SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash", "fish"})
WITH_SHELL = frozenset({"flock", "script"})  # which give one what stands behind -c
COPIES = frozenset({"cp", "mv", "ln", "install", "scp", "rsync"})
JOINED = frozenset({"watch", "parallel"})  # their words are a program together
EACH_RUN = frozenset({"hyperfine"})  # and here each is one
TEXTS = frozenset(
    {"echo", "printf", "grep", "egrep", "fgrep", "rg", "gh", "glab", "docker", "podman", "kubectl", "ssh"}
)  # what they are given is text
DATA = frozenset({"cat", "tee"})  # and this, of a here-document
GIT_TEXTS = frozenset({"commit", "tag", "stash", "merge", "notes"})
TAKES_VARIABLES = frozenset({"test", "[", "read", "unset", "getopts", "mapfile", "readarray", "let", "wait"})
SUBSCRIPT = re.compile(r"\[.*(?:\$[({]|`)", re.DOTALL)  # with what bash runs for its value


def evaluates(name: str, texts: list[str]) -> bool:
    """Whether a command takes a word for a variable, and runs what stands in its subscript."""
    if name in ("builtin", "command") and texts:
        name, texts = texts[0], texts[1:]
    takes = name in TAKES_VARIABLES or (name == "printf" and any(each.startswith("-v") for each in texts[:1]))
    return takes and any(SUBSCRIPT.search(each) for each in texts)
