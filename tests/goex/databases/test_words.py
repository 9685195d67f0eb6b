"""Words about a database, with a model and without one: what is proposed is checked, shown and decided on like typed
SQL, and the model never meets a row."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.fakes.openai_server import FakeOpenAI, Reply
from tests.goex.databases.conftest import SHOP, Shop
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.entries import Asked, Client
from tests.support.journey import Journey, decide


class Model:
    """Says `sql` in every sample, or each of several in turn."""

    def __init__(self) -> None:
        self.sql: tuple[str, ...] = ("",)
        self.given = 0

    def __call__(self, body: dict[str, Any]) -> Reply:
        self.given += 1
        said = self.sql[self.given % len(self.sql)]
        name = body["tools"][0]["function"]["name"]
        program = {"language": "shell", "code": said, "undo": ""}
        return Reply(tool_calls=((name, json.dumps({"sql": said} if name == "run_sql" else program)),))


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def server(model: Model) -> Iterator[FakeOpenAI]:
    with FakeOpenAI(by=model) as running:
        yield running


@pytest.fixture(scope="module")
def daemon(server: FakeOpenAI) -> Iterator[Daemon]:
    with Daemon(config=f'[model]\nbase_url = "{server.url}"\nname = "fake"\naccount = "default"\n') as running:
        request = pb.VaultPutRequest(service="model", account="default", secret=b"key", base_url=server.url)
        request.private, request.passphrase = True, APPROVAL_PASSPHRASE
        running.person("VaultPut", request)
        yield running


def words(shop: Shop, text: str) -> Asked:
    return Asked(shop.client.daemon, pb.ExecuteRequest(intent=text, database=shop.name), person=True)


def test_words_become_statements_that_are_shown_and_decided_on(shop: Shop, model: Model, server: FakeOpenAI) -> None:
    before = shop.orders()
    model.sql = ("UPDATE orders SET status = 'sent' WHERE customer = 1",)
    asked = words(shop, "mark the orders of customer 1 as sent")
    question = asked.question()
    assert any("SET status = 'sent' WHERE customer = 1" in line for line in question.lines)
    assert {need.scope for need in question.needs} == {"orders:update", "orders:select"}
    decide(shop.client.daemon, question)
    done = asked.finished()
    assert done.action.state == "done" and [row[1] for row in shop.orders()] == ["sent", "sent", "paid", "paid"]
    shop.client.revert(done.action.id).approve()
    assert shop.orders() == before
    sent = "".join(request.text for request in server.requests)
    assert "customers" in sent and "mark the orders" in sent  # the control: names and words are there
    assert not [value for value in ("violet", "amber", "jade", str(shop.file)) if value in sent]


@pytest.mark.promise(73)
def test_rows_that_were_read_are_never_told_to_the_model(shop: Shop, model: Model, server: FakeOpenAI) -> None:
    model.sql = ("SELECT secret FROM customers",)
    done = words(shop, "show the secret of every customer").approve()
    assert done.action.state == "done" and "violet" in str(done) and not done.answer
    assert "violet" not in "".join(request.text for request in server.requests)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (("SELECT load_extension('x')",), "load_extension"),
        (("",), "nothing here fits"),
        (("DELETE FROM orders", "DELETE FROM customers"), "isn't sure"),
        (("ATTACH '/etc/passwd' AS x",), "ATTACH"),
    ],
)
def test_what_is_not_allowed_or_not_sure_never_runs(said: tuple[str, ...], why: str, shop: Shop, model: Model) -> None:
    before = shop.orders()
    model.sql = said
    ended = words(shop, "do something to the orders").ended()
    assert ended.problem.code == "ambiguous" and why in ended.problem.message, ended.problem
    assert ended.problem.next_step
    assert shop.orders() == before


def test_words_about_a_folder_become_a_program_that_is_asked_about(
    daemon: Daemon, model: Model, server: FakeOpenAI, tmp_path: Path
) -> None:
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "a b.txt").write_text("the-content-of-the-file")
    model.sql = ("mv 'a b.txt' c.txt",)
    asked = Asked(daemon, pb.ExecuteRequest(intent="rename the text file to c.txt", folder=str(folder)), person=True)
    question = asked.question()
    assert any("mv 'a b.txt' c.txt" in line for line in question.lines)
    asked.leave()
    sent = "".join(request.text for request in server.requests)
    assert "a b.txt" in sent and "the-content-of-the-file" not in sent and str(folder) not in sent


@pytest.mark.promise(73)
def test_an_agent_cannot_have_names_of_files_told_to_a_model(
    daemon: Daemon, model: Model, server: FakeOpenAI, tmp_path: Path
) -> None:
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "a-name-that-nobody-showed").touch()
    model.sql = ("echo a-name-that-nobody-showed",)
    token = daemon.add_agent("namehunter")
    ended = Journey(daemon, pb.ExecuteRequest(intent="print all names", folder=str(folder)), token=token).finished()
    assert ended.problem.code == "denied" and ended.problem.next_step
    assert "a-name-that-nobody-showed" not in str(ended)
    assert "a-name-that-nobody-showed" not in "".join(request.text for request in server.requests)


def test_without_a_model_words_about_a_database_say_what_to_do_instead(tmp_path: Path) -> None:
    with Daemon() as daemon:
        shop = Shop(Client(daemon), f"shop{secrets.token_hex(3)}", tmp_path / "shop.db")
        shop.change(*SHOP)
        shop.file.chmod(0o600)
        shop.client.add(shop.name, f"sqlite:///{shop.file}")
        ended = words(shop, "delete all orders").ended()
        assert ended.problem.code == "unsupported" and "--sql" in ended.problem.next_step
        assert len(shop.orders()) == 4
