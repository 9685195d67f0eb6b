"""Attacks through the hooks of coding agents."""

from __future__ import annotations

from tests.adversarial.registry import Attack, Where

_HERE = "tests/adversarial/test_hook.py::"


def _row(name: str, tries: str, refused_by: str, test: str) -> Attack:
    return Attack(
        name=f"hook-{name}",
        tries=tries,
        where=Where.HOOK,
        refused_by=(refused_by,),
        test=f"{_HERE}test_{test}",
        control=f"{_HERE}test_control_{test}",
    )


_READ = "a tool's work is read as its client reads it"
_WORKED_ON = {
    "patch": "name a forbidden file in a patch's line that begins with a blank",
    "patch-elsewhere": "put the patch where nobody looks for it, so that it counts as one of the folder",
    "pattern": "list a forbidden folder by a pattern",
    "pattern-up": "leave the permitted folder behind a pattern's wild name",
    "many": "read a file of another folder in a list of several",
    "address": "fetch from a host that the client reads and the hook doesn't, by a backslash",
    "address-in-words": "name a second host in the words of a fetch",
    "own-server": "have a server whose name begins with GoEx's pass for GoEx",
}


def _worked_on(name: str, tries: str) -> Attack:
    tests = (f"{_HERE}test_worked_on[{name}]", f"{_HERE}test_control_worked_on[{name}]")
    return Attack(f"hook-{name}", tries, Where.HOOK, (_READ,), *tests)


ROWS: tuple[Attack, ...] = (
    _row("broad-permit", "run a host command by a rule for GoEx's runs", "a permit names Action::tool", "broad_permit"),
    _row("other-agent", "use the permit of another agent", "a permit is its agent's, by token", "other_agent"),
    _row("no-name", "use a permit for every agent without a name", "no name, no permit", "no_name"),
    _row("link", "write a forbidden folder through a link", "a link is judged as both", "link"),
    _row("linked-folder", "run in a forbidden folder through a link", "a link is judged as both", "linked_folder"),
    _row("dots", "reach out of a permitted folder by ..", "paths are judged in full", "dots"),
    _row("no-daemon", "have the daemon away, so that all passes", "an error allows nothing", "no_daemon"),
    _row("sealed", "ask before the rules are known", "an error allows nothing", "sealed"),
    _row("own-verdict", "say allow in the event itself", "the daemon alone says", "own_verdict"),
    _row("socket", "answer in the daemon's place as a stranger", "only a permit allows", "strange_reply"),
    _row("token", "put a token into a project's configuration", "a token has its own file", "token_kept"),
    *(_worked_on(name, tries) for name, tries in _WORKED_ON.items()),
)
