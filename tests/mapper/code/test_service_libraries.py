"""Calls of stripe, sendgrid and notion-client in programs: which requests they are found to be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.code.method_finder import find
from mapper.importing import install
from mapper.importing.files import import_openapi

STRIPE = (
    "POST /v1/customers", "GET /v1/customers", "GET /v1/customers/{id}", "POST /v1/customers/{id}",
    "DELETE /v1/customers/{id}", "GET /v1/customers/search", "POST /v1/invoices/{id}/finalize", "GET /v1/balance",
    "POST /v1/checkout/sessions", "DELETE /v1/subscriptions/{id}", "POST /v1/payment_intents/{id}/cancel",
)  # fmt: skip
SENDGRID = ("POST /v3/mail/send", "DELETE /v3/suppression/bounces/{email}", "GET /v3/marketing/lists")
NOTION = (
    "GET /v1/pages/{id}", "PATCH /v1/pages/{id}", "GET /v1/blocks/{id}/children", "POST /v1/search", "POST /v1/pages"
)  # fmt: skip

_ALL = ("stripe", "sendgrid", "notion")


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    monkeypatch.setattr(install, "rebuild", lambda *_: None)
    for name, listed in (("stripe", STRIPE), ("sendgrid", SENDGRID), ("notion", NOTION)):
        paths: dict[str, dict[str, Any]] = {}
        for each in listed:
            verb, path = each.split()
            hole = path.partition("{")[2].partition("}")[0]
            parameters = [{"name": hole, "in": "path", "required": True, "schema": {"type": "string"}}] if hole else []
            if verb == "GET":
                parameters.append({"name": "limit", "in": "query", "schema": {"type": "integer"}})
            kind = "application/x-www-form-urlencoded" if name == "stripe" else "application/json"
            fields = {"properties": {"name": {"type": "string"}, "email": {"type": "string"}}, "type": "object"}
            body = {"requestBody": {"content": {kind: {"schema": fields}}}} if verb in ("POST", "PATCH") else {}
            paths.setdefault(path, {})[verb.lower()] = {"operationId": each, "parameters": parameters, **body}
        made = {"openapi": "3.0.0", "info": {"title": name, "version": "1"}, "paths": paths,
                "servers": [{"url": f"https://api.{name}.com"}]}  # fmt: skip
        (tmp_path / f"{name}.json").write_text(json.dumps(made))
        import_openapi(tmp_path / "catalog.db", tmp_path / f"{name}.json", name, index=False)
    return Catalog.open(tmp_path / "catalog.db", alone=True)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("line", "found", "arguments"),
    [
        ("stripe.Customer.create(name='Ada', api_key=key)", "POST /v1/customers", {"name": "Ada"}),
        ("stripe.Customer.list(limit=3)", "GET /v1/customers", {"limit": "3"}),
        ("stripe.Customer.retrieve('cus_1')", "GET /v1/customers/{id}", {"id": "cus_1"}),
        ("stripe.Customer.modify('cus_1', name='B')", "POST /v1/customers/{id}", {"id": "cus_1", "name": "B"}),
        ("stripe.Customer.delete('cus_1')", "DELETE /v1/customers/{id}", {"id": "cus_1"}),
        ("stripe.Customer.search(limit=1)", "GET /v1/customers/search", {"limit": "1"}),
        ("stripe.Invoice.finalize_invoice('in_1')", "POST /v1/invoices/{id}/finalize", {"id": "in_1"}),
        ("stripe.Balance.retrieve()", "GET /v1/balance", {}),
        ("stripe.checkout.Session.create(name='x')", "POST /v1/checkout/sessions", {"name": "x"}),
        ("stripe.Subscription.cancel('sub_1')", "DELETE /v1/subscriptions/{id}", {"id": "sub_1"}),
        ("stripe.PaymentIntent.cancel('pi_1')", "POST /v1/payment_intents/{id}/cancel", {"id": "pi_1"}),
        ("stripe.StripeClient(key).customers.create({'name': 'Ada'})", "POST /v1/customers", {"name": "Ada"}),
        ("stripe.StripeClient(key).v1.customers.retrieve('cus_1')", "GET /v1/customers/{id}", {"id": "cus_1"}),
        ("stripe.StripeClient(key).checkout.sessions.create(params={'name': 'x'})", "POST /v1/checkout/sessions",
         {"name": "x"}),
        ("sendgrid.SendGridAPIClient(key).send(Mail(subject='x'))", "POST /v3/mail/send", {}),
        ("sendgrid.SendGridAPIClient(key).client.suppression.bounces._('a@b.c').delete()",
         "DELETE /v3/suppression/bounces/{email}", {"email": "a@b.c"}),
        ("sendgrid.SendGridAPIClient(key).client.marketing.lists.get(query_params={'limit': 5})",
         "GET /v3/marketing/lists", {"limit": "5"}),
        ("notion_client.Client(auth=key).pages.retrieve(page_id='p1')", "GET /v1/pages/{id}", {"id": "p1"}),
        ("notion_client.AsyncClient(auth=key).pages.retrieve('p1')", "GET /v1/pages/{id}", {"id": "p1"}),
        ("notion_client.Client(auth=key).pages.update('p1', name='B', auth=key)", "PATCH /v1/pages/{id}",
         {"id": "p1", "name": "B"}),
        ("notion_client.Client(auth=key).blocks.children.list('b1', limit=3)", "GET /v1/blocks/{id}/children",
         {"id": "b1", "limit": "3"}),
        ("notion_client.Client(auth=key).search(name='Plans')", "POST /v1/search", {"name": "Plans"}),
        ("notion_client.Client(auth=key).pages.create(name='A')", "POST /v1/pages", {"name": "A"}),
    ],
)  # fmt: skip
def test_a_function_is_the_request_that_it_sends(
    catalog: Catalog, line: str, found: str, arguments: dict[str, Any]
) -> None:
    program = (
        "import os, stripe, sendgrid, notion_client\nfrom sendgrid.helpers.mail import Mail\n"
        f"key = os.environ['KEY']\n{line}\n"
    )
    seen = find("python", program, catalog, _ALL)
    assert (seen.unknown, seen.others) == ((), ())
    (call,) = seen.calls
    assert catalog.method(call.method_id).origin_id == found
    assert call.arguments == arguments


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "line",
    [
        "stripe.Customer.unheard_of('cus_1')",
        "stripe.Customer.retrieve()",
        "stripe.StripeClient(key).customers",
        "sendgrid.SendGridAPIClient(key, host='https://elsewhere.example.com').send(1)",
        "notion_client.Client(auth=key).pages.unheard_of('p1')",
        "notion_client.Client(auth=key).pages",
        "notion_client.Client({'base_url': 'https://elsewhere.example.com'}).pages.retrieve('p1')",
        "notion_client.Client(auth=key, base_url='https://elsewhere.example.com').pages.retrieve('p1')",
    ],
)
def test_what_isnt_known_is_no_call(catalog: Catalog, line: str) -> None:
    assert find("python", f"import stripe, sendgrid, notion_client\nkey = 1\n{line}\n", catalog, _ALL).calls == ()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("given", "fields", "open_"),
    [
        ("metadata={'a': 1}", {"metadata[a]": "1"}, ()),
        (
            "items=[{'price': 'p', 'on': {'x': y}}, 'z']",
            {"items[0][price]": "p", "items[1]": "z"},
            ("items[0][on][x]",),
        ),
        ("metadata={'a': 1, **more}", {"metadata[a]": "1"}, ("metadata",)),
        ("metadata={'a': 1} if y() else {'b': 2}", {}, ("metadata",)),
        ("metadata={}, email=y", {}, ("email",)),
    ],
)
def test_a_value_with_parts_is_the_fields_that_stripe_makes_of_it(
    catalog: Catalog, given: str, fields: dict[str, str], open_: tuple[str, ...]
) -> None:
    line = f"import stripe\nstripe.Customer.create(name='Ada', {given})\n"
    (call,) = find("python", line, catalog, ("stripe",)).calls
    assert (call.fields, call.open) == ({"name": "Ada", **fields}, open_)
