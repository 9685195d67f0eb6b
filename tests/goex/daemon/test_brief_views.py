"""Lists of questions: each is made once, and forgotten with its question."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import cast

import pytest

from goex.config import Config
from goex.daemon import brief_views
from goex.daemon.app import App
from goex.daemon.audit_views import runs
from goex.daemon.brief_views import BriefViews
from goex.journal.actions import ActionRow
from goex.paths import Paths
from policies.actions import Action, ApiCalls, Call, Files, Sql
from policies.typed_json import to_json
from tests.goex.engine.conftest import APPROVAL, VAULT, Desk
from tests.support.passphrases import cheap_passphrases
from vault.secret import Secret


async def test_an_action_is_read_for_the_first_list_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brief_views, "_KEPT", 0)
    with TemporaryDirectory(prefix="goex-t-", dir="/tmp") as name:
        paths = Paths(config_dir=Path(name) / "config", state_dir=Path(name) / "state", run_dir=Path(name) / "run")
        paths.create()
        app = App(paths, Config(), lambda: None)
        with cheap_passphrases():
            await app.vault_state.init("passphrase", Secret(VAULT.encode()), Secret(APPROVAL.encode()))
        desk = Desk(app)
        for number in range(3):
            await desk.asked(Files(folder=f"/{number}", language="shell", program="true"))
        views, approvals = BriefViews(desk.core), desk.core.approvals
        found = approvals.pending()
        assert views.missing(found) == [one.action_id for one in found]
        made = [views.view(one, desk.core.actions.get(one.action_id)) for one in found]
        assert made[0].lines[0] == "shell in /0: true" and len(made[0].lines) == 1
        assert views.missing(found) == []
        assert [views.view(one, None) for one in found] == made
        for one in found[:2]:
            desk.answer(one, approve=False)
        settled = approvals.get(found[0].id)
        assert views.missing([settled]) == [settled.action_id]
        assert views.view(settled, None).state == "denied", "also without the row"
        assert views.view(found[2], None).place == 1
        views.missing(())
        assert len(views._made) == 1
        long = Files(folder="/x", language="shell", program="mkdir  -p a\nmv *.jpg " + "a/ " * 200)
        (listed,) = [views.view(one, desk.core.actions.get(one.action_id)) for one in [await desk.asked(long)]]
        assert listed.lines[0].startswith("shell in /x: mkdir -p a ⏎ mv *.jpg a/") and len(listed.lines[0]) < 250
        await app.close()


def test_what_would_run_is_listed_whatever_words_asked_for_it() -> None:
    """A comment ends with its line, each folder counts, and a text is told from arguments and from another call."""
    post = {"channel": "#ops", "text": 'hi "all" thread_ts=1; gmail.labels.delete id=2'}
    posing = {"a=1; gmail.labels.delete id": "2", "b": "x\uff1bgmail.y"}
    listed: dict[str, Action] = {
        'slack.chat.postMessage "a=1; gmail.labels.delete id"=2 b="x\uff1bgmail.y"': ApiCalls(
            calls=(Call(service="slack", method="chat.postMessage", arguments=posing),)
        ),
        r'slack.chat.postMessage channel=#ops text="hi \"all\" thread_ts=1; gmail.labels.delete id=2"': ApiCalls(
            calls=(Call(service="slack", method="chat.postMessage", arguments=post),)
        ),
        "shell in /a, /b: # only a look ⏎ rm -rf .": Files(
            folder="/a", more=("/b",), language="shell", program="# only a look\n\n  rm  -rf .\n"
        ),
        "shell in /a ⏎ b: true": Files(folder="/a\nb", language="shell", program="true"),
        "apply a dry run in /a: act-1": Files(folder="/a", language="shell", program="true", preview="act-1"),
        "shop: -- a look ⏎ DELETE FROM t": Sql(database="shop", statements="-- a look\nDELETE FROM t"),
    }
    for line, action in listed.items():
        row = SimpleNamespace(kind=action.kind, request=json.dumps(to_json(action)), intent="tidy up " * 40)
        assert runs(cast(ActionRow, row)) == line
