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


ROWS: tuple[Attack, ...] = (
    _row("broad-permit", "run a host command by a rule for GoEx's runs", "a permit names Action::tool", "broad_permit"),
    _row("other-agent", "use the permit of another agent", "a permit is its agent's, by token", "other_agent"),
    _row("no-name", "use a permit for every agent without a name", "no name, no permit", "no_name"),
    _row("link", "write a forbidden folder through a link", "a link is judged as both", "link"),
    _row("dots", "reach out of a permitted folder by ..", "paths are judged in full", "dots"),
    _row("no-daemon", "have the daemon away, so that all passes", "an error allows nothing", "no_daemon"),
    _row("sealed", "ask before the rules are known", "an error allows nothing", "sealed"),
    _row("own-verdict", "say allow in the event itself", "the daemon alone says", "own_verdict"),
    _row("socket", "answer in the daemon's place as a stranger", "only a permit allows", "strange_reply"),
    _row("token", "put a token into a project's configuration", "a token has its own file", "token_kept"),
)
