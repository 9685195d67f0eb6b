"""What `goex rules check` says of a file: where, how bad, and what was nearly meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from mapper.catalog import Catalog
from policies.rules.book import default_text
from policies.rules.drafts import changes, read_folder
from policies.rules.rule_errors import check
from policies.rules.source import read
from policies.services import Method, Risk, Scope, Service
from tests.policies.rules.table import FOLDER

CATALOG = Catalog.bundled()
E, W = True, False
POST = 'resource == Method::"slack.chat.postMessage"'

# The rule after its @id; what is found: error or warning, what it stands at, what is said, what is to be done.
FOUND: dict[str, tuple[str, bool, str, str, str]] = {
    "an action": ('forbid (principal, action == Action::"cal", resource);', E, "cal", 'no action \'cal\'', "call"),
    "a type": ('forbid (principal, action, resource in Servic::"slack");', E, "Servic", "no type Servic", "Service"),
    "a fact": ("forbid (principal, action, resource) when { context.riks_level > 2 };", E, "riks_level",
               "no context.riks_level", "risk_level"),
    "a fact behind has": ("forbid (principal, action, resource) when { context has acount };", E, "acount",
                          "no context.acount", "account"),
    "a part of a fact": ("forbid (principal, action, resource) when { context.time.huor > 2 };", E, "huor",
                         "no context.time.huor", ""),
    "a risk": ('forbid (principal, action, resource) when { context.risk == Risk::"amdin" };', E, "amdin",
               'no Risk::"amdin"', "admin"),
    "a weekday": ('forbid (principal, action, resource) when { context.time.weekday == Weekday::"sundey" };', E,
                  "sundey", 'no Weekday::"sundey"', "sunday"),
    "an argument": (f'forbid (principal, action, {POST}) when {{ context.arguments.chanel == "#a" }};', E, "chanel",
                    "no argument 'chanel' of slack.chat.postMessage", "channel"),
    "an argument behind has": (f"forbid (principal, action, {POST}) when {{ context.arguments has chanel }};", E,
                               "chanel", "no argument 'chanel'", "channel"),
    "an argument of a service": ('forbid (principal, action, resource in Service::"slack")'
                                 " when { context.arguments has chanel };", E, "chanel", "of slack", "channel"),
    "an argument of anything": ("forbid (principal, action, resource) when { context.arguments has chanell };", E,
                                "chanell", "of any service", "channel"),
    "one that may be missing": (f'forbid (principal, action, {POST}) when {{ context.arguments.thread_ts == "1" }};',
                                E, "thread_ts", "may be missing", "context.arguments has thread_ts"),
    "a bound that may be missing": ("forbid (principal, action, resource) when { context.bounds.rows > 5 };", E,
                                    "rows", "may be missing", "context.bounds has rows"),
    "another type": (f"forbid (principal, action, {POST}) when {{ context.arguments.text > 5 }};", E, "", "Long", ""),
    "types that differ": ('forbid (principal, action, resource in Service::"discord")'
                          ' when { context.arguments has limit && context.arguments.limit == "x" };', E, "",
                          "Long", ""),
    "all arguments": ("forbid (principal, action, resource) when { context.arguments == {} };", E, "arguments",
                      "all arguments at once", "one by one"),
    "all facts": ("forbid (principal, action, resource) when { context == {} };", E, "",
                  "all arguments at once", "one by one"),
    "an agent": ('forbid (principal == Agent::"bto", action, resource);', W, "bto", "no agent 'bto'", "bot"),
    "a service": ('forbid (principal, action, resource in Service::"slak");', W, "slak", "no service", "slack"),
    "a method": ('forbid (principal, action, resource == Method::"slack.chat.postMesage");', W,
                 "slack.chat.postMesage", "no method", "slack.chat.postMessage"),
    "a method of no service": ('forbid (principal, action, resource == Method::"slak.x");', W, "slak.x", "no method",
                               "slack"),
    "a service itself": ('forbid (principal, action, resource == Service::"slack");', W, "", "itself a service", "in"),
    "a folder": ('forbid (principal, action, resource in Folder::"~/work");', W, "~/work", "whole path", "/home"),
    "a folder with a slash": ('forbid (principal, action, resource in Folder::"/srv/");', W, "/srv/", "whole path", ""),
    "files of a service": ('forbid (principal, action == Action::"files", resource in Service::"slack");', W, "",
                           "never applies", ""),
    "a group as an action": ('forbid (principal, action == Action::"revert", resource);', W, "", "never applies", ""),
    "a permit for nobody": ('permit (principal == Agent::"anonymous", action, resource);', W, "anonymous",
                            "asked about each time", "goex agents add"),
    "never": ("forbid (principal, action, resource) when { false };", W, "false", "never holds", ""),
    "a scope": ('forbid (principal, action, resource in Service::"slack")'
                ' when { context.scopes.contains("chat:wirte") };', W, "chat:wirte", "no scope", "chat:write"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found(name: str) -> None:
    text, error, at, says, step = FOUND[name]
    _, findings = check({"f.cedar": f'// a line before\n@id("x")\n{text}'}, CATALOG, {"bot"})
    found = [one for one in findings if says in one.says]
    assert found, findings
    one = found[0]
    assert (one.file, one.rule, one.error) == ("f.cedar", "x", error)
    assert step in one.next_step
    assert (one.line, one.column) == ((3, text.index(at) + 1) if at else (2, 1)) or not at
    assert any(one.error for one in findings) == error, findings


def test_good_rules_are_found_good() -> None:
    rules = (FOLDER / "rules.cedar").read_text(encoding="utf-8")
    good = rules[: rules.index('@id("trap")')]
    assert check({"rules.cedar": good, "default.cedar": default_text()}, CATALOG, {"bot", "helper"})[1] == ()


def test_a_name_of_a_default_rule_is_taken() -> None:
    text = '@id("admin-asks") permit (principal, action, resource);'
    (found,) = check({"mine.cedar": text}, CATALOG)[1]
    assert "called admin-asks already (default.cedar:" in found.says
    assert check({"default.cedar": text}, CATALOG)[1] == ()


def _service(kind: str) -> Service:
    method = Method(
        service="shop",
        name="pay",
        description="",
        http="POST",
        path="/pay",
        parameters={
            "type": "object",
            "properties": {
                "amount": {"type": kind},
                "to": {"type": "string"},
                "__extn": {"type": "string"},
                "when": {"type": ["string", "null"]},
                "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "whom": {"$ref": "#/$defs/whom"},
                "loop": {"$ref": "#/$defs/loop"},
            },
            "required": ["amount", "when", "whom"],
            "$defs": {
                "whom": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
                "loop": {"type": "object", "properties": {"next": {"$ref": "#/$defs/loop"}}},
            },
        },
        locations={},
        scopes=("pay",),
        risk=Risk.WRITE,
    )
    scope = Scope(service="shop", name="pay", description="", risk=Risk.WRITE)
    return Service(
        name="shop", title="Shop", description="", base_url="", methods={"pay": method}, scopes={"pay": scope},
        source="imported",
    )  # fmt: skip


PAY = 'forbid (principal, action, resource == Method::"shop.pay") when { %s };'
TYPED = {
    'context.arguments.amount.greaterThan(decimal("10.5"))': ("number", True),
    "context.arguments.amount > 10": ("integer", True),
    'context.arguments.amount > 10 || context.arguments.amount.lessThan(decimal("1.0"))': ("integer", False),
    'context.arguments.amount == "x"': ("integer", False),
    'context.arguments.when == "x"': ("integer", True),  # where it is null, no rule that reads it is evaluated
    'context.arguments has when && context.arguments.when == "x"': ("integer", True),
    'context.arguments has either && context.arguments.either == "5"': ("integer", True),
    'context.arguments.whom.name == "ann"': ("integer", True),
    'context.arguments.whom.nmae == "ann"': ("integer", False),
    "context.arguments has loop && context.arguments.loop has next": ("integer", True),
    'context.arguments has "__extn"': ("integer", False),
}


@pytest.mark.parametrize("condition", TYPED)
def test_rules_are_checked_against_the_methods_own_schema(condition: str) -> None:
    kind, good = TYPED[condition]
    _, findings = check({"f.cedar": PAY % condition}, Catalog.of([_service(kind)]))
    assert (not any(one.error for one in findings)) is good, findings


def test_what_differs_is_known_by_name_and_text() -> None:
    before = read({"a": '@id("x") permit (principal, action, resource);\nforbid (principal, action, resource);'})
    moved = read({"b": '\n\nforbid (principal, action, resource);\n@id("x") permit (principal, action, resource);'})
    assert changes(before, moved) == ()
    after = read(
        {"a": '@id("x") forbid (principal, action, resource);\n@id("y") permit (principal, action, resource);'}
    )
    assert [(one.kind, one.name) for one in changes(before, after)] == [
        ("removed", "a:2"), ("changed", "x"), ("added", "y")
    ]  # fmt: skip


def test_only_files_of_rules_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    assert read_folder(folder) == {}
    folder.mkdir()
    for name in ("a.cedar", "b.txt", ".c.cedar", "d.cedar~"):
        (folder / name).write_text("// x")
    assert read_folder(folder) == {"a.cedar": "// x"}


def test_a_folder_that_is_reached_through_a_link_is_named_as_it_is(tmp_path: Path) -> None:
    """A folder is judged by where it is: what forbids it by a link wouldn't hold for who asks by its own path."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for folder, found in (("link", 1), ("link/in", 1), ("real", 0), ("gone", 0), ("real/\\u{0}", 0)):
        rule = f'@id("x") forbid (principal, action, resource in Folder::"{tmp_path}/{folder}");'
        told = [one for one in check({"f.cedar": rule}, CATALOG, {"bot"})[1] if "through a link" in one.says]
        assert len(told) == found and all(f"{tmp_path}/real" in one.next_step and not one.error for one in told)
