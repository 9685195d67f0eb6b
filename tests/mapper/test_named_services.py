"""A service that a request's words name is never another one, whether it is here or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mapper.broad_methods import is_broad
from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from mapper.importing import install
from mapper.importing.files import import_openapi
from mapper.importing.install import rebuild
from mapper.named_services import ServiceNames
from tests.mapper.importing.documents import discovery, write
from tests.mapper.importing.openapi_documents import document

HERE = (
    "Gitea", "GitLab", "OpenAI", "Stripe", "Linear", "Notion", "Jira", "Zendesk", "PagerDuty", "Twilio", "Mailgun",
    "DigitalOcean", "Hetzner Cloud", "Bitbucket", "Asana", "Trello", "Airtable", "Zoom", "Sentry", "Vercel", "Netlify",
    "Shopify", "HubSpot", "Telegram Bot", "Kestrelbase", "Quillmark", "Vexport", "Ombrafile", "Tarnsy", "Plinthworks",
    "Petshop",
)  # fmt: skip
ABSENT = (
    "mattermost", "gerrit", "codeberg", "forgejo", "anthropic", "mistral", "paypal", "adyen", "clickup", "basecamp",
    "freshdesk", "intercom", "opsgenie", "vonage", "sendgrid", "linode", "vultr", "phabricator", "todoist", "wrike",
    "nocodb", "webex", "bugsnag", "heroku", "cloudflare", "woocommerce", "salesforce", "whatsapp", "supabase", "zulip",
    "rocket.chat",
)  # fmt: skip
ASKED = (
    "delete the {} file file-abc123",
    "file a {} issue about the login page",
    "send a message on {}",
    "list my {} files",
    "create a repository in {}",
)


@pytest.fixture(scope="module")
def proposer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedProposer]:
    folder = tmp_path_factory.mktemp("named")
    folder.chmod(0o700)
    item = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
    text = {"requestBody": {"content": {"application/json": {"schema": {"properties": {"text": {"type": "string"}}}}}}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(install, "rebuild", lambda *_: None)
        for title in HERE:
            paths = {
                "/files": {"get": {"operationId": "listFiles", "summary": "List files"}},
                "/files/{id}": {
                    "parameters": item, "delete": {"operationId": "deleteFile", "summary": "Delete a file"}
                },
                "/issues": {"post": {"operationId": "createIssue", "summary": "File an issue", **text}},
                "/messages": {"post": {"operationId": "sendMessage", "summary": "Send a message", **text}},
                "/repositories": {"post": {"operationId": "createRepository", "summary": "Create a repository"}},
            }  # fmt: skip
            file = folder / f"{title}.json"
            file.write_text(json.dumps(document(paths, info={"title": f"{title} API", "version": "1"}, servers=[])))
            import_openapi(folder / "catalog.db", file)
    rebuild(folder / "catalog.db")
    yield EmbeddedProposer(Catalog.open(folder / "catalog.db"))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("title", HERE)
def test_a_service_that_is_here_is_the_one(proposer: EmbeddedProposer, title: str) -> None:
    wanted = title.lower().replace(" ", "_")
    for words in ASKED:
        if title in ("Linear", "Notion", "Zoom", "Telegram Bot") and not words.endswith("{}"):
            continue  # ordinary words, which name a service only where a name stands
        proposed = proposer.propose(words.format(title.lower()))
        services = {reading.method.service for reading in proposed.readings}
        assert services <= {wanted}, (words, services)
        assert services or not proposed.sure


@pytest.mark.parametrize("name", ABSENT)
def test_a_service_that_isnt_here_is_said_to_be_missing(proposer: EmbeddedProposer, name: str) -> None:
    for words in ASKED:
        proposed = proposer.propose(words.format(name))
        assert proposed.declined and not proposed.sure and proposed.readings == ()
        assert name in proposed.notes[0] and "goex catalog import openapi" in proposed.notes[0]


@pytest.mark.parametrize("words", ["set up a zoom meeting", "join the zoom call"])
def test_what_a_service_that_is_here_has_is_no_other_product(proposer: EmbeddedProposer, words: str) -> None:
    assert proposer.named(words).absent == ()
    assert EmbeddedProposer(Catalog.bundled()).named(words).absent != ()


def test_the_api_of_anything_is_a_name(proposer: EmbeddedProposer) -> None:
    proposed = proposer.propose("use the Frobnicator API to delete file 7")
    assert proposed.declined and "frobnicator" in proposed.notes[0]


@pytest.mark.parametrize("words", ["wipe the openai file file-abc", "file a gitea issue", "delete the jira file f-1"])
def test_what_comes_with_goex_is_not_taken_for_it(words: str) -> None:
    proposed = EmbeddedProposer(Catalog.bundled()).propose(words)
    assert proposed.readings == () and proposed.declined and "not in the catalog" in proposed.notes[0]


@pytest.mark.parametrize(
    "words",
    [
        "delete the file report.pdf in icloud drive",
        "share budget.xlsx from proton drive with ann@example.org",
        "upload notes.txt to one drive",
        "list files in my synology drive",
        "delete report.pdf from mega",
        "delete the s3 file report.pdf",
        "share the folder with ann on owncloud",
        "add a meeting to my outlook calendar tomorrow at 10",
        "add an event to the nextcloud calendar",
        "delete my proton calendar event Lunch",
        "create a zoom meeting tomorrow at 10",
        "set up a webex meeting at 10",
        "delete the outlook email from bob",
        "archive the zoho mail about invoices",
        "send an email with yahoo mail to bob@example.org saying hi",
        "send a mail via sendgrid to bob@example.org saying hi",
        "move mail from bob to trash in roundcube",
        "play daft punk on apple music",
        "skip the track on tidal",
        "create a playlist in deezer named gym",
        "post hi to #general in ms teams",
        "invite bob to the jitsi room",
        "file an issue at https://gitea.example.com/acme/app titled x",
        "open an issue in bugzilla about x",
        "star the repo acme/app on sourcehut",
        "fork acme/app on gitee",
    ],
)
def test_an_ordinary_word_beside_another_products_name_is_its(words: str) -> None:
    proposed = EmbeddedProposer(Catalog.bundled()).propose(words)
    assert proposed.readings == () and proposed.declined and "not in the catalog" in proposed.notes[0]


@pytest.mark.parametrize(
    ("words", "service"),
    [
        ("email the stripe invoice to bob@example.org", "gmail"),
        ("add the zendesk call to my calendar tomorrow at 10", "google_calendar"),
        ("put the jira export jira.csv in my google drive", "google_drive"),
        ("what's the weather outlook in my calendar", "google_calendar"),
        ("comment nice on https://github.com/acme/app/issues/4", "github"),
        ("send a mail by gmail to bob@example.org saying hi", "gmail"),
    ],
)
def test_an_ordinary_word_by_itself_is_what_is_here(words: str, service: str) -> None:
    named = ServiceNames(Catalog.bundled()).of(words)
    assert named.absent == () and (not named.here or service in named.here)


def test_an_address_names_its_host() -> None:
    named = ServiceNames(Catalog.bundled())
    assert named.of("open https://api.github.com/repos/acme/app").here == {"github"}
    assert named.of("send linear.txt to #ops") == named.of("")


def test_initials_and_hosts_name_a_service(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    files = {"get": {"operationId": "files", "summary": "List files"}}
    for name, title, url in (
        ("osf", "OSF APIv2 Documentation", "https://api.test.osf.io/v2"),
        ("up", "Up API", "https://api.up.com.au/api/v1"),
        ("forem", "Forem API V1", "https://dev.to/api"),
    ):
        file = tmp_path / f"{name}.json"
        said = document({"/files": files}, info={"title": title, "version": "1"}, servers=[{"url": url}])
        file.write_text(json.dumps(said))
        import_openapi(tmp_path / "catalog.db", file, name)
    named = ServiceNames(Catalog.open(tmp_path / "catalog.db"))
    assert named.of("Who are the contributors on OSF project 73pnd?").here == {"osf"}
    forem = named.of("publish a dev.to post titled X")
    assert forem.here == {"forem"} and "dev" in forem.stems  # a part of a name speaks of no method either
    assert named.of("what is on up.com.au?").here == {"up"}
    assert named.of("look up the dev who said com.au") == named.of("")
    assert named.of("TELL ME OF OSF NOW") == named.of("")  # all is in capitals, which says nothing
    assert named.of("a mail to ana@dev.to") == named.of("")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("url", "title", "named", "other"),
    [
        ("https://app.to/api", "Quillmark", "what is new on app.to", "add a lane to pool 3"),
        ("https://api.open.kestrel.gov/v1", "Quillmark", "ask kestrel for the lanes", "a list of gov forms"),
        ("https://api.kestrel.example", "Books API", "get lanes from kestrel", "who keeps our books in order"),
        ("https://api.fire.example", "Quillmark", "add a payee to Fire: Ann Lee", "set a fire in the oven"),
        ("https://api.readme.example", "Quillmark", "the lanes in readme", "read me the lanes of the pool"),
        ("https://api.justlane.example", "Quillmark", "which lanes on Just Lane are free", "is it just lane 3"),
    ],
)
def test_what_a_title_or_a_host_calls_a_service_is_a_name_where_one_stands(
    tmp_path: Path, url: str, title: str, named: str, other: str
) -> None:
    paths = {"/pools": {"get": {"operationId": "listPools", "summary": "List pools"}}}
    file = tmp_path / "document.json"
    file.write_text(json.dumps(document(paths, info={"title": title, "version": "1"}, servers=[{"url": url}])))
    import_openapi(tmp_path / "catalog.db", file, "quillmark")
    names = ServiceNames(Catalog.open(tmp_path / "catalog.db"))
    assert names.of(named).here == {"quillmark"}
    assert "quillmark" not in names.of(other).here


def test_two_services_may_be_named() -> None:
    named = ServiceNames(Catalog.bundled())
    assert named.of("post the github issue to slack").here == {"github", "slack"}
    assert named.of("email the stripe invoice to bob").absent == ()  # the mail is meant
    assert named.of("write to bob@stripe.com").absent == ()
    assert named.of("send msg to #ops") == named.of("")


@pytest.mark.parametrize(
    "words",
    [
        "from Monday on answer everyone automatically: I'm on parental leave until 3 February",
        "send it on monday",
        "is the checkout api healthy? runs as service checkout in europe-west1",
        "turn the maps geocoding api on for proj delivery-app",
    ],
)
def test_a_day_and_an_api_that_is_the_object_name_no_product(words: str) -> None:
    assert ServiceNames(Catalog.bundled()).of(words).absent == ()
    assert ServiceNames(Catalog.bundled()).of("add a row to the board in monday.com").absent == ("monday.com",)


def test_googles_name_alone_is_none_of_its_services(tmp_path: Path) -> None:
    write(tmp_path, discovery("docs", title="Google Docs API"))
    install.import_google(tmp_path / "catalog.db", tmp_path, index=False)
    named = ServiceNames(Catalog.open(tmp_path / "catalog.db"))
    assert named.of("which google apis are switched on in quay-prod").here == frozenset()
    assert "docs" in named.of("make a page in google docs").here


@pytest.mark.parametrize(
    "words",
    [
        "delete my file report.pdf from drive",
        "remove report.pdf in google drive",
        "delete file 1AbCdEfGhIjKlMnOpQrSt from google drive",
        "trash the file budget-2026 in google drive",
    ],
)
def test_one_file_isnt_the_whole_trash(words: str) -> None:
    readings = EmbeddedProposer(Catalog.bundled()).propose(words).readings
    assert readings and not is_broad(readings[0].method)
    broad = [place for place, reading in enumerate(readings) if is_broad(reading.method)]
    narrow = [place for place, reading in enumerate(readings) if not is_broad(reading.method)]
    assert not broad or min(broad) > max(narrow)
    # What lacks an argument is no choice, so that a broad one which needs none would be the next that is offered.
    assert "google_drive.files.emptyTrash" not in [reading.method.id for reading in readings]


def only(folder: Path, paths: dict[str, Any]) -> EmbeddedProposer:
    """A proposer over the imported service `plant` alone."""
    (folder / "plant.json").write_text(json.dumps(document(paths, info={"title": "Plant", "version": "1"})))
    import_openapi(folder / "catalog.db", folder / "plant.json", "plant")
    return EmbeddedProposer(Catalog.open(folder / "catalog.db"))


def test_what_is_only_broad_does_nothing_of_this(tmp_path: Path) -> None:
    paths = {"/trash": {"delete": {"operationId": "emptyTrash", "summary": "Delete the files in the trash"}}}
    proposed = only(tmp_path, paths).propose("delete the file report.pdf in plant")
    assert proposed.readings == () and proposed.declined and not proposed.sure


def test_a_method_that_the_words_say_isnt_too_broad() -> None:
    method = Catalog.bundled().method("google_drive.files.emptyTrash")
    assert is_broad(method) and is_broad(method, frozenset({"wipe", "trash"}))
    assert not is_broad(method, frozenset({"empty"}))


def test_who_wants_the_trash_emptied_gets_it() -> None:
    readings = EmbeddedProposer(Catalog.bundled()).propose("empty the trash in google drive").readings
    assert readings[0].method.id == "google_drive.files.emptyTrash"


@pytest.mark.promise(12)
def test_a_title_takes_no_other_services_name_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "rebuild", lambda *_: None)
    for title in ("Slack Msg", "Send Quillmark", "Quillmark"):
        file = tmp_path / f"{title}.json"
        file.write_text(json.dumps(document({"/a": {"get": {}}}, info={"title": title, "version": "1"})))
        import_openapi(tmp_path / "catalog.db", file)
    named = ServiceNames(Catalog.open(tmp_path / "catalog.db"))
    assert named.of('send slack msg "done" to #ops').here == {"slack", "slack_msg"}
    assert named.of("send quillmark the draft").here == {"quillmark", "send_quillmark"}
