"""Fields of a form that are parts of an argument (`metadata[order]`): held and told by their names, as any other."""

from __future__ import annotations

import json

import pytest

from mapper.catalog import Catalog
from mapper.importing import install
from mapper.importing.files import import_openapi
from policies.actions import Plan
from runtimes.code.record import permits_of
from tests.runtimes.code.sending import sent
from tests.runtimes.code.support import plan
from tests.runtimes.rest.support import account

SHOP = account("shop", "https://api.shop.example/v1")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """A service whose forms have parts, as Stripe's."""
    fields = {"amount": {"type": "integer"}, "metadata": {"type": "object"}, "items": {"type": "array"}}
    to = {"type": "array", "items": {"type": "string"}}
    schema = {"type": "object", "properties": {**fields, "to": to, "memo": {"type": "string"}}}
    body = {"content": {"application/x-www-form-urlencoded": {"schema": schema}}}
    schemes = {"k": {"type": "http", "scheme": "bearer"}}
    operation = {
        "operationId": "charge",
        "summary": "Charge.",
        "responses": {"200": {"description": "ok"}},
        "security": [{"k": []}],
        "requestBody": body,
    }
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Shop", "version": "1"},
        "servers": [{"url": "https://api.shop.example/v1"}],
        "components": {"securitySchemes": schemes},
        "paths": {"/charges": {"post": operation}},
    }
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.json").write_text(json.dumps(document))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(install, "rebuild", lambda *_: None)
        # What has parts of its own is left out of the catalog: a planned call can't send it.
        assert len(import_openapi(folder / "catalog.db", folder / "shop.json", name="shop").problems) == 1
    return Catalog.open(folder / "catalog.db")


def charge(data: str, catalog: Catalog) -> Plan:
    call = f"requests.post('https://api.shop.example/v1/charges', data={data})"
    return plan(f"import requests\n{call}\n", accounts=(SHOP,), catalog=catalog)


def charged(made: Plan, *pairs: str) -> str:
    body = "&".join(pairs).replace("[", "%5B").replace("]", "%5D").encode()
    return sent(made, SHOP, "POST /v1/charges", body, kind="application/x-www-form-urlencoded")


@pytest.mark.promise(51)
def test_parts_of_a_form_s_argument_are_held_and_told_by_their_names(shop: Catalog) -> None:
    made = charge("{'amount': 5, 'metadata[order]': '1', 'items[0][price]': p}", shop)
    lines = [line.strip() for line in made.lines]
    assert {"amount: 5", 'metadata[order]: "1"', "items[0][price]: whatever the program makes it"} <= set(lines)
    assert not any("any other field" in line for line in lines)
    good = ("amount=5", "metadata[order]=1", "items[0][price]=p1")
    assert charged(made, *good) == ""
    assert charged(made, *good[:2], "items[0][price][x]=p1") == ""  # a part of what is free
    for other in (
        ("amount=5", "metadata[order]=2", good[2]),
        (*good, "metadata[order]=1"),
        (*good, "metadata[to]=x"),
        (*good, "metadata=x"),
        (*good, "metadata.order=2"),
        (*good, "metadata[order][]=2"),
        (*good, "metadata[ORDER]=2"),
        (*good, "items[1][price]=p2"),
        (*good, "to[0]=eve"),
        ("amount=5", good[2]),
    ):
        assert charged(made, *other) == "field", other
    assert sent(made, SHOP, "POST /v1/charges", {"amount": "5", "metadata": {"order": "2"}}) == "field"


@pytest.mark.promise(51)
def test_parts_that_are_held_stay_so_beside_fields_that_are_not_known(shop: Catalog) -> None:
    made = charge("{'metadata[order]': '1', **read()}", shop)
    assert any("any other field: whatever" in line for line in made.lines)
    assert charged(made, "metadata[order]=1", "metadata[memo]=x", "to=ann") == ""
    for other in ("metadata=x", "metadata.order=2", "metadata[order][0]=2", "metadata[order]=2", "Metadata[order]=2"):
        assert charged(made, "metadata[order]=1", other) == "field", other
    json_body = {"metadata[order]": "1", "metadata": {"order": "2"}}
    assert sent(made, SHOP, "POST /v1/charges", json_body) == "field"


@pytest.mark.promise(15)
def test_an_argument_whose_parts_are_sent_is_not_said_to_be_left_out(shop: Catalog) -> None:
    made = charge("{'amount': 5, 'to[0]': 'eve'}", shop)
    (permit,) = permits_of(made)
    assert "to" not in permit.closed
    assert "memo" in permit.closed  # the control
    assert permit.held == {"amount": (5,)}
    assert permit.parts == {"to[0]": ("eve",)}
    (unknown,) = permits_of(charge("{'amount': 5, 'metadata[to]': 'eve'}", shop))
    assert unknown.more == ("metadata[to]",)  # which the catalog doesn't have, so that it may reach somebody


@pytest.mark.promise(51)
def test_parts_of_an_argument_that_is_free_are_told_with_it(shop: Catalog) -> None:
    made = charge("{'amount': 5, 'to': read()}", shop)
    assert any("to: whatever the program makes it" in line for line in made.lines)
    assert charged(made, "amount=5", "to[0]=ann", "to[1]=bob") == ""
    for other in ("memo[0]=x", "tomorrow=x", "amount[0]=6", "metadata[to]=x"):
        assert charged(made, "amount=5", "to[0]=ann", other) == "field", other
    assert sent(made, SHOP, "POST /v1/charges", {"amount": 5, "to[0]": "ann"}) == "field"  # no part in JSON


@pytest.mark.parametrize(
    ("data", "bodies"),
    [
        # A list's nameless element may come several times, as `curl -d` and requests write it.
        ("{'amount': 5, 'to[]': ['ann', 'bob']}", (("to[]=ann", "to[]=bob"), ("to[]=ann",))),
        ("{'amount': 5, 'items[][price]': 'p'}", (("items[][price]=p", "items[][price]=q"),)),
        # What some call leaves open may have a part that another one has written out.
        (
            "{'amount': 5, 'metadata[order]': '1'} if x() else {'amount': 5, 'metadata': y()}",
            (("metadata[order]=2",),),
        ),
    ],
)
def test_a_part_that_may_come_several_times_or_with_what_is_open_is_free(
    shop: Catalog, data: str, bodies: tuple[tuple[str, ...], ...]
) -> None:
    made = charge(data, shop)
    for pairs in bodies:
        name = pairs[0].partition("=")[0]
        assert charged(made, "amount=5", *pairs) == ""
        assert any(line.strip() == f"{name}: whatever the program makes it" for line in made.lines)
        assert charged(made, "amount=6", *pairs) == "field"  # the control
