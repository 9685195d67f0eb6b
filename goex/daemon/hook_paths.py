"""Where paths lead: looked at by a process of its own, for an agent's client names them, and what is mounted there may
never answer. A thread that waits for that holds the sockets and locks of its process beyond its end; this one has none.

Rules: it is run by its file, so it stands on the standard library alone, and little of that. Each path has a thread, so
that none waits for another's. What means something else in every process (the links of /proc, and so /dev/fd) isn't
known; nor is what lies behind a folder where GoEx may not look. A glob is known when all is that it may find.
"""

# ruff: noqa: PTH112, PTH113, PTH115, PTH116, PTH118, PTH120, PTH123

from __future__ import annotations

import fnmatch
import json
import os
import re
import signal
import stat
import sys
import threading
from collections.abc import Iterator

SECONDS = 5.0
_MOST_LINKS = 40  # as the kernel follows
_LONGEST = 4096
_LONGEST_NAME = 255  # bytes
_MOST_ENTRIES = 10_000  # that a glob is compared with
_MOST_FOUND = 64  # links that all globs find
_GLOB = re.compile(r"[*?]")
_TEXT = re.compile(r"[\s'\"`]")  # in what is hardly the name of a folder


def real(path: str, processes: frozenset[str]) -> tuple[str, bool]:
    """Where an absolute path leads, its last part too, and whether all on the way is known. What isn't there leads to
    where it would be. `processes`: the devices of /proc, as mountinfo writes them."""
    here, known, links = "/", True, 0
    rest = path.split("/")[::-1]
    while rest:
        name = rest.pop()
        if name in ("", ".", ".."):
            here = os.path.dirname(here) if name == ".." else here
            continue
        there = os.path.join(here, name)
        try:
            if len(os.fsencode(name)) > _LONGEST_NAME:
                raise FileNotFoundError
            at = os.lstat(there)
            magic = _device(at) in processes
            target = os.readlink(there) if stat.S_ISLNK(at.st_mode) and not magic else ""
        except (FileNotFoundError, NotADirectoryError):
            # It may be there when the tool runs: with `..` behind it, and as a process, that leads anywhere.
            leads = ".." not in rest or (not links and _TEXT.search(name) is not None)
            return _ended(path, there, rest, known and leads and _device(os.stat(here)) not in processes)
        except OSError:
            return _ended(path, there, rest, False)
        if not stat.S_ISLNK(at.st_mode):
            here = there
            continue
        links += 1
        if links > _MOST_LINKS:
            return path, False
        if not magic:
            here = "/" if target.startswith("/") else here
            rest += target.split("/")[::-1]
        elif name in ("root", "self", "thread-self"):
            here, known = "/" if name == "root" else there, False
        else:
            return _ended(path, there, rest, False)
    return here, known


def matches(pattern: str, processes: frozenset[str]) -> Iterator[tuple[str, str, bool]]:
    """What a glob may find, by whichever shell, that leads elsewhere than it says, and where the pattern begins, if it
    does: the path, where it leads, and whether all of that is known. Raises OSError where that can't be found out."""
    parts = pattern.split("/")
    first = next(at for at, part in enumerate(parts) if _GLOB.search(part))
    begin = "/".join(parts[:first]) or "/"
    base, known = real(begin, processes)
    if (base, known) != (begin, True):
        yield begin, base, known
    found, left = [base], _MOST_ENTRIES
    for part in parts[first:]:
        if part in ("", "."):
            continue
        if not _GLOB.search(part):
            found = [os.path.join(each, part) for each in found]
            continue
        fits = re.compile(fnmatch.translate(part), re.IGNORECASE)
        if part.startswith(".") and fits.match(".."):
            raise OSError
        waiting, found = found, found[:] if part == "**" else []
        while waiting:
            folder, known = real(above := waiting.pop(), processes)
            if not known:
                yield above, folder, False
            for name, is_folder in _entries(folder, left):
                left -= 1
                if fits.match(name):
                    found.append(os.path.join(above, name))
                if part == "**" and is_folder:
                    waiting.append(os.path.join(above, name))
    for path in found:
        leads, known = real(path, processes)
        if (leads, known) != (path, True):
            yield path, leads, known


def _entries(folder: str, most: int) -> Iterator[tuple[str, bool]]:
    """The names in a folder, and whether each is a folder itself. Raises OSError for more than that."""
    try:
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                if count >= most:
                    raise OSError
                yield entry.name, entry.is_dir(follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return


def _device(at: os.stat_result) -> str:
    return f"{os.major(at.st_dev)}:{os.minor(at.st_dev)}"


def _ended(path: str, there: str, rest: list[str], known: bool) -> tuple[str, bool]:
    found = os.path.normpath("/".join((there, *rest[::-1])))
    return (found, known) if len(found) <= _LONGEST else (path, False)


def main() -> None:
    """The process: a list of paths and one of globs on standard input; for each, as soon as it is known, a line with
    where it leads, whether that is known, and what is there (`file`, `other`, an empty text where it could be made: its
    folder is there, and isn't the root): for a glob that is itself, behind the lines of what it finds elsewhere."""
    signal.alarm(int(SECONDS) * 2)  # where nobody is left to kill it
    with open("/proc/self/mountinfo", "rb") as lines:
        processes = frozenset(line.split(b" ")[2].decode() for line in lines if b" - proc " in line)
    paths, globs = json.load(sys.stdin)
    writing = threading.Lock()

    found = 0

    def say(path: str, leads: str, known: bool, there: str | None = None) -> None:
        line = json.dumps([path, leads, known, there]) + "\n"
        with writing:
            sys.stdout.write(line)
            sys.stdout.flush()

    def look(path: str) -> None:
        leads, known = real(path, processes)
        above = os.path.dirname(leads)
        there = "" if above != "/" and os.path.isdir(above) else None
        if os.path.lexists(leads):
            there = "file" if os.path.isfile(leads) else "other"
        say(path, leads, known, there)

    def expand(pattern: str) -> None:
        nonlocal found
        known = True
        try:
            for one in matches(pattern, processes):
                with writing:
                    found += 1
                    is_more = found > _MOST_FOUND
                if is_more:
                    raise OSError
                say(*one)
        except OSError:
            known = False
        say(pattern, os.path.normpath(pattern), known)

    threads = [threading.Thread(target=look, args=(path,), daemon=True) for path in paths]
    threads += [threading.Thread(target=expand, args=(pattern,), daemon=True) for pattern in globs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os._exit(0)


if __name__ == "__main__":
    main()
