"""Resource names (`people/c9911`) as they stand in a request: whole, and without what stands beside them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mapper.argument_filler import Filler
from mapper.catalog import Catalog
from mapper.slots import extract

CATALOG = Catalog.bundled()
PERSON, TOPIC = "^people/[^/]+$", "^projects/[^/]+/topics/[^/]+$"


def filled(words: str, pattern: str) -> str | None:
    """What the one argument of this form gets."""
    name = {"type": "string", "pattern": pattern}
    parameters = {"type": "object", "properties": {"name": name}, "required": ["name"]}
    method = replace(CATALOG.method("slack.conversations.info"), parameters=parameters, locations={"name": "path"})
    return Filler(CATALOG, method, extract(words), ()).arguments.get("name")


@pytest.mark.parametrize(
    ("words", "pattern", "name"),
    [
        ("remove people/c9911 from my contacts", PERSON, "people/c9911"),
        ("delete people/c9911.", PERSON, "people/c9911"),
        ("is people/c9911, my old neighbour, still there?", PERSON, "people/c9911"),
        ("show me people/c9911!", PERSON, "people/c9911"),
        ("show me (people/c9911) again", PERSON, "people/c9911"),
        ("show me people/a.b-c_9~1", PERSON, "people/a.b-c_9~1"),
        ("show me people/c", PERSON, "people/c"),
        ("drop projects/acme/topics/orders, it is old", TOPIC, "projects/acme/topics/orders"),
        ("projects/acme/topics/orders should go", TOPIC, "projects/acme/topics/orders"),
    ],
)  # fmt: skip
def test_a_resource_name_ends_with_its_word(words: str, pattern: str, name: str) -> None:
    assert filled(words, pattern) == name


@pytest.mark.parametrize("words", ["see projects/acme/topics", "projects/acme is mine and topics/orders too"])
def test_of_a_part_nothing_is_made(words: str) -> None:
    assert filled(words, TOPIC) is None
