"""Files that a tool of the person's runs by itself, or takes from them what it runs: a git hook, an `.envrc`.

Rules: what is told is what is there afterwards and is another than before, in content, kind or executable mode; of a
repository without a work tree also the part that completes it. Names alone say it, in any case: a folder that
`core.hooksPath`, `commondir` or a link names counts where it bears a usual name, and the change that names it is told
itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from runtimes.files.manifest import apart
from runtimes.files.path_text import named
from runtimes.files.tree import Entry

_GIT = "git may run by itself"
_HG = "Mercurial may run by itself"
_ENTERED = "may run when a shell enters the folder"
_OPENED = "may run when an editor or coding agent opens the folder"
# Folders of which all counts, but for samples.
_FOLDERS = {
    b".husky": _GIT,
    b".githooks": _GIT,
    b".devcontainer": _OPENED,
    b".claude": _OPENED,
    b".cursor": _OPENED,
    b".codex": _OPENED,
    b".gemini": _OPENED,
    b".vscode": _OPENED,
    b".idea": _OPENED,
    b".zed": _OPENED,
    b".helix": _OPENED,
    b".kiro": _OPENED,
    b".opencode": _OPENED,
    b".windsurf": _OPENED,
    b".mise": _ENTERED,
}
_NAMES = {
    b".pre-commit-config.yaml": _GIT,
    b".overcommit.yml": _GIT,
    **{
        dot + b"lefthook" + local + end: _GIT
        for dot in (b"", b".")
        for local in (b"", b"-local")
        for end in (b".yml", b".yaml", b".toml", b".json")
    },
    b".envrc": _ENTERED,
    **{dot + b"mise" + local + b".toml": _ENTERED for dot in (b"", b".") for local in (b"", b".local")},
    b".mcp.json": _OPENED,
    b"opencode.json": _OPENED,
    b"opencode.jsonc": _OPENED,
    b".devcontainer.json": _OPENED,
    b".vimrc": _OPENED,
    b".exrc": _OPENED,
    b".nvimrc": _OPENED,
    b".nvim.lua": _OPENED,
    b".dir-locals.el": _OPENED,
}
# A merge strategy, which a rebase ("strategy") or a cherry-pick ("opts") goes on with, is a program's name or path.
_OF_GIT = frozenset({b"config", b"config.worktree", b"commondir", b"git-rebase-todo", b"strategy", b"opts"})
_OF_HG = frozenset({b"hgrc", b"hgrc-not-shared", b"sharedpath"})
_DATA_OF_GIT = frozenset({b"objects", b"refs", b"logs"})
_HEAD, _PARTS = b"HEAD", (b"objects", b"refs")  # by which git knows a repository without a work tree


def told(before: Mapping[bytes, Entry], after: Mapping[bytes, Entry]) -> list[str]:
    """One line for each kind of tool that may run by itself what `before` hadn't."""
    found: dict[str, list[bytes]] = {_GIT: [], _HG: [], _ENTERED: [], _OPENED: []}
    for path, entry in apart(before, after)[0].items():
        old = before.get(path)
        if entry.kind not in "fld" or (old is not None and _runs_as(old) == _runs_as(entry)):
            continue
        if when := _when(path, entry, before, after):
            found[when].append(path)
    return [f"{when}: {named(sorted(paths))}" for when, paths in found.items() if paths]


def _runs_as(entry: Entry) -> tuple[object, ...]:
    return (*entry.body, entry.mode & 0o111)


def _when(path: bytes, entry: Entry, before: Mapping[bytes, Entry], after: Mapping[bytes, Entry]) -> str:
    """When a file is run by itself; "" for one that isn't."""
    *above, name = path.lower().split(b"/")
    *folders, _ = path.split(b"/")
    if name in _PARTS and b".git" not in above and _in(folders, _HEAD) in before and _is_repository(folders, after):
        return _GIT  # it completes one
    if entry.kind == "d":
        return ""
    within = [*above, name] if entry.kind == "l" else above  # a link stands for a folder, too
    if name == b".git":
        return _GIT  # it names a folder elsewhere
    if b".git" in above:
        inside = within[within.index(b".git") + 1 :]
        return "" if inside and inside[0] in _DATA_OF_GIT else _of_git(name, inside)
    if _of_git(name, within) or (name == b"head" and (path not in before or before[path].kind not in "fl")):
        bare = folders[: above.index(b"hooks")] if b"hooks" in above else folders
        if _is_repository(bare, after):
            return _GIT
    if name == b".hg" or (above[-1:] == [b".hg"] and name in _OF_HG):
        return _HG
    if name in _NAMES:
        return _NAMES[name]
    if above[-2:] == [b".github", b"hooks"]:
        return _OPENED
    return next((_FOLDERS[each] for each in within if each in _FOLDERS), "")


def _is_repository(folders: list[bytes], after: Mapping[bytes, Entry]) -> bool:
    """Whether git takes a folder for a repository without a work tree; the rest of one may lie elsewhere."""
    rest = (_PARTS, (b"commondir",))
    return _in(folders, _HEAD) in after and any(all(_in(folders, part) in after for part in parts) for parts in rest)


def _in(folders: list[bytes], name: bytes) -> bytes:
    return b"/".join((*folders, name))


def _of_git(name: bytes, folders: list[bytes]) -> str:
    """When git runs what lies at this name in these folders of a repository."""
    return _GIT if name in _OF_GIT or (b"hooks" in folders and not name.endswith(b".sample")) else ""
