"""The images of MCP servers, as `goex mcp add` and `remove` leave them: each server's own, and no other of its."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from goex.cli.connect import paths
from goex.cli.output import Output, shown
from policies.errors import Conflict, GoexError
from runtimes.sandbox import images
from runtimes.servers import packages
from runtimes.servers.definition import Servers


def known(out: Output, name: str, servers: Servers) -> set[str]:
    """The image of a server. One that was altered doesn't say which it is, so that it stays; that is told."""
    try:
        return {servers.get(name).image} if name in servers.names() else set()
    except Conflict as error:
        out.progress(shown(f"{error} Its image stays. See it: docker image ls goex/mcp-{name}"))
        return set()


@contextmanager
def no_other(out: Output, name: str) -> Iterator[list[str]]:
    """Of the images of the server `name`, the one that it has in the end stays: what is built inside (and appended to
    the list) is removed where the server isn't added, and what it had before where it is replaced."""
    before = images.builds(f"mcp-{name}")
    had = known(out, name, Servers(paths().servers))
    built: list[str] = []
    try:
        yield built
    finally:
        forget(out, had | {*built} - before)


def forget(out: Output, names: Iterable[str]) -> tuple[int, list[str]]:
    """Remove these images of servers, unless one has it. Returns how many are gone, and what stays, which is told: all
    else is done by now, so that nothing fails for it."""
    place, gone, left = paths(), 0, list[str]()
    for name in names:
        why = "A container uses it."
        try:
            removed = packages.forget(name, Servers(place.servers), place.run_dir / "waiting")
            gone, stays = gone + removed.gone, removed.left
        except GoexError as error:
            why, stays = str(error), (f"goex/{name}",)
        for image in stays:
            out.progress(shown(f"The image {image} stays. {why} Remove it later: docker image rm {image}"))
        left += stays
    return gone, left
