"""What scopes say about themselves: a table of words, the unknown first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapper.scope_text import Limit, bare_name, said, stem, stems
from policies.services import Risk


@pytest.mark.parametrize(
    ("name", "description", "risk"),
    [
        ("x", "", Risk.DELETE),
        ("x", "Private Service: x", Risk.DELETE),
        ("x", "Frobnicate the gizmo", Risk.DELETE),
        ("x", "View your things", Risk.READ),
        ("x", "See and download your things", Risk.READ),
        ("x", "Move a copy of the posts that you wrote", Risk.READ),
        ("x", "See your headers, but not edit or delete the body", Risk.READ),
        ("x", "See your data. I consent to you sharing and deleting it", Risk.READ),
        ("x", "Add to your data", Risk.WRITE),
        ("x", "Send email on your behalf", Risk.WRITE),
        ("x", "See, edit, and create forms", Risk.WRITE),
        ("x", "Manage your things", Risk.DELETE),
        ("x", "See, edit, create, and permanently delete all your things", Risk.DELETE),
        ("x", "See and change the sharing permissions of things", Risk.ADMIN),
        ("x", "Administer your databases", Risk.ADMIN),
        ("x", "Manage user permissions of your account", Risk.ADMIN),
        ("x", "Change the properties of things you have access to", Risk.WRITE),
        ("things.readonly", "Manage users on your domain", Risk.READ),
        ("things.read_only", "", Risk.READ),
        ("https://api.example/auth/things.read-only", "", Risk.READ),
        ("things.readwrite", "View your things", Risk.WRITE),
        ("unread", "", Risk.DELETE),
    ],
)
def test_the_worst_that_words_allow(name: str, description: str, risk: Risk) -> None:
    assert said(name, description).risk is risk


@pytest.mark.parametrize(
    ("name", "description", "limits"),
    [
        ("files", "See your files", set()),
        ("files.app.created", "Make files, and see them", {Limit.OWN}),
        ("files.appdata", "See its own configuration data", {Limit.OWN}),
        ("rooms.memberships.app", "Add and remove itself", {Limit.OWN}),
        ("rooms.admin.members", "See members", {Limit.ROLE}),
        ("rooms.bot", "", {Limit.ROLE}),
        ("rooms.app.messages", "On their own behalf, apps can see messages", {Limit.ROLE}),
        ("mail.current", "View messages when you interact with the add-on", {Limit.ROLE}),
        ("videopartner", "Manage videos", {Limit.ROLE}),
        ("admin.directory.user", "View users", set()),
        ("work.me.readonly", "View your work", {Limit.SELF}),
        ("user.birthday.read", "See your birthday", {Limit.SELF}),
        ("mail.metadata", "View headers", {Limit.METADATA}),
    ],
)
def test_words_that_say_it_reaches_less(name: str, description: str, limits: set[Limit]) -> None:
    assert said(f"https://api.example/auth/{name}", description).limits == limits


def test_the_name_without_its_address() -> None:
    assert bare_name("https://www.googleapis.com/auth/drive.file") == "drive.file"
    assert bare_name("https://mail.google.com/") == "mail.google.com"
    assert bare_name("chat:write") == "chat:write"
    assert said("https://www.googleapis.com/auth/drive.metadata.readonly", "").base == "drive.metadata"


def test_words_are_compared_as_singulars() -> None:
    assert stems("emailAddresses of searchApplications") == ["email", "address", "of", "search", "application"]
    assert [stem(word) for word in ("entries", "boxes", "class", "as", "photos")] == [
        "entry", "box", "class", "as", "photo",
    ]  # fmt: skip


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_says_something_and_what_isnt_understood_deletes(name: str, description: str) -> None:
    found = said(name, description)
    assert found.risk in Risk
    if not any(char.isalpha() for char in name + description):
        assert found.risk is Risk.DELETE
