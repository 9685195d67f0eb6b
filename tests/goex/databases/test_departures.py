"""What an entry asks to be held isn't done at once because an agent says so, nor because a cascade reaches it."""

from __future__ import annotations

from tests.goex.databases.conftest import Shop


def test_a_standing_permission_doesnt_cover_another_way_back(shop: Shop) -> None:
    """The person said versioning of this table, and permits its updates: an agent's own --policy is asked about."""
    token = shop.client.daemon.add_agent(f"d{shop.name}")
    shop.client.set_policy(shop.name, "versioning", table="orders")
    shop.sql("UPDATE orders SET status = 'sent' WHERE id = 1", token=token).approve("permanent")
    assert shop.sql("UPDATE orders SET status = 'x' WHERE id = 2", token=token).ended().action.state == "done"
    before = shop.orders()
    asked = shop.sql("UPDATE orders SET status = 'y' WHERE id = 3", policy="reversal", token=token)
    question = asked.question()
    assert [need.scope for need in question.needs if not need.granted] == ["other-way-back"]
    assert any("asks for versioning" in line for line in question.lines), question.lines
    asked.deny_known(question.id)
    assert shop.orders() == before
    said = shop.sql("UPDATE orders SET status = 'y' WHERE id = 3", policy="versioning", token=token)
    assert said.ended().action.state == "done", "what the entry asks for isn't another way"


def test_a_table_that_a_cascade_reaches_has_its_policy_too(shop: Shop) -> None:
    shop.client.set_policy(shop.name, "versioning", table="orders")
    before = shop.orders()
    refused = shop.sql("DELETE FROM customers WHERE id = 1").ended()
    assert refused.problem.code == "invalid" and "orders: versioning" in refused.problem.message
    assert shop.orders() == before
    named = shop.sql("DELETE FROM customers WHERE id = 1", policy="reversal")
    assert "other-way-back" in {need.scope for need in named.question().needs}
    named.leave()
