"""What a passkey confirms, as the page shows it: escaped, and no yes before its end was on the screen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from goex.daemon.rule_views import suggestions_view
from goex.rpc import passkeys_pb2 as passkeys
from goex.rpc import rules_pb2 as rules
from goex.web.daemon_calls import _json
from goex.web.shown_replies import shown
from policies.rules.suggestions import Suggested, Suggestion
from tests.support.authenticator import Authenticator, Page
from tests.support.daemon import Daemon
from tests.support.page import CHROMIUM, needs_browser, see_end, until_view

if CHROMIUM:
    from playwright.sync_api import expect

TURNED = "\u202e\u2066\u200b"
CONFIRM = "button:has-text('Confirm with a passkey')"


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(config='[ask]\npresence = "passkey"\n') as running:
        Page(running).add(Authenticator())
        yield running


def wait_for_a_passkey(daemon: Daemon, text: str) -> None:
    """Let somebody ask for rules; the call waits."""
    put = daemon.channel(daemon.user_socket).unary_unary(
        "/goex.v1.Rules/ApplyRules",
        request_serializer=rules.ApplyRulesRequest.SerializeToString,
        response_deserializer=rules.InForceReply.FromString,
    )
    with pytest.raises(grpc.RpcError):
        put(rules.ApplyRulesRequest(files=[rules.RuleFile(name="mine.cedar", text=text)]), timeout=300)


@needs_browser
@pytest.mark.promise(22, 27, 87)
def test_it_is_escaped_and_confirmed_only_once_its_end_was_seen(daemon: Daemon, tab: Any) -> None:
    wait_for_a_passkey(daemon, f"// {TURNED}\n" + "// one more line\n" * 300 + "permit(principal, action, resource);\n")
    early = tab.evaluate("""(confirm) => new Promise((resolve) => {
      new MutationObserver((_, watching) => {
        const yes = [...document.querySelectorAll("main button")].find((one) => one.textContent === confirm);
        if (!yes) return;
        watching.disconnect();
        resolve(yes.disabled);
      }).observe(document.querySelector("main"), { childList: true, subtree: true });
      location.hash = "system";
    })""", "Confirm with a passkey")  # fmt: skip
    assert early
    until_view(tab, "system")
    text = tab.locator("li.card pre").inner_text()
    assert r"| // \u{202e}\u{2066}\u{200b}" in text.splitlines()[5]
    assert not set(TURNED) & set(text)
    assert "       | permit(principal, action, resource);" in text.splitlines()
    tab.wait_for_timeout(1500)  # three times as long as it stands before it can be confirmed
    assert tab.is_disabled(CONFIRM)
    expect(tab.locator("li.card:has(pre)")).to_contain_text("Scroll to the end")
    see_end(tab, "Confirm with a passkey")
    expect(tab.locator(CONFIRM)).to_be_enabled()  # the control: then it was


@needs_browser
@pytest.mark.promise(27)
def test_a_click_that_came_with_it_confirms_nothing(daemon: Daemon, tab: Any) -> None:
    """Though its end is on the screen at once: another may just have gone from where it stands."""
    tab.set_viewport_size({"width": 1280, "height": 4000})
    wait_for_a_passkey(daemon, "permit(principal, action, resource);\n")
    lasted = tab.evaluate("""(confirm) => new Promise((resolve) => {
      let since = 0;
      const look = () => {
        const yes = [...document.querySelectorAll("main button")].findLast((one) => one.textContent === confirm);
        if (yes && !since) since = performance.now();
        if (yes && !yes.disabled) resolve(performance.now() - since);
        else requestAnimationFrame(look);
      };
      look();
      location.hash = "system";
    })""", "Confirm with a passkey")  # fmt: skip
    assert lasted > 450


@pytest.mark.promise(22)
def test_what_the_page_only_shows_is_escaped() -> None:
    story = {
        "action": {"lines": [f"a{TURNED}\nb"], "outcome_json": json.dumps({"x": f"1{TURNED}", "y": "a\nb"})},
        "problem": {"message": TURNED, "next_step": ""},
        "rows_left_out": 0,
        "mapping_json": "{}",
    }
    told = shown(story)
    assert told["action"] == {
        "lines": ["a\\u{202e}\\u{2066}\\u{200b}\nb"],
        "outcome_lines": ["{", '  "x": "1\\u{202e}\\u{2066}\\u{200b}",', '  "y": (2 lines)', "   | a", "   | b", "}"],
    }
    assert told["problem"] == {"message": "\\u{202e}\\u{2066}\\u{200b}", "next_step": ""}
    assert (told["rows_left_out"], told["mapping_json"]) == (0, "{}")
    assert shown({"outcome_json": f"no JSON {TURNED}"})["outcome_lines"] == ["no JSON \\u{202e}\\u{2066}\\u{200b}"]
    assert shown({"outcome_json": ""})["outcome_lines"] == []


@pytest.mark.promise(22)
def test_the_name_of_a_passkey_is_escaped() -> None:
    """Any program that has the passphrase can name the first one."""
    one = passkeys.PasskeyView(id="pk-1", name=f"laptop{TURNED}", rp_id="goex.localhost")
    page = json.loads(_json("Passkeys/List", passkeys.ListPasskeysReply(passkeys=[one])))["passkeys"][0]
    assert page["name"] == "laptop\\u{202e}\\u{2066}\\u{200b}"
    assert (page["id"], page["rp_id"]) == (one.id, one.rp_id)


@pytest.mark.promise(22)
def test_what_a_suggested_rule_leaves_free_is_escaped_for_the_page_alone() -> None:
    """A program gets it as it is; the rule's text, which the page sends back, is the same."""
    free = ("text", f"note{TURNED}", "n\u043ete")
    one = Suggestion(
        text='permit (principal == Agent::"b\\u{43e}t",\n  resource);',
        agent="bot",
        method="pad.add",
        account="work",
        risk="write",
        free=free,
        values={},
        answers=3,
    )
    catalog: Any = SimpleNamespace(services={"pad": SimpleNamespace(methods=("add",))})
    (made,) = suggestions_view(Suggested(rules=(one,)), catalog).rules
    assert tuple(made.free) == free
    page = json.loads(_json("Rules/SuggestRules", rules.SuggestRulesReply(rules=[made])))["rules"][0]
    assert page["free"] == ["text", "note\\u{202e}\\u{2066}\\u{200b}", "n\\u{43e}te"]
    assert page["text"] == one.text
