"""A GET that changes something is asked for as a change; one that only reads stays a read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.importing import install
from mapper.importing.files import import_openapi
from mapper.importing.openapi import read_document
from mapper.importing.safe_methods import change_in, risk
from policies.services import Risk
from tests.mapper.importing.openapi_documents import document

CHANGES: list[tuple[str, str, str, dict[str, Any], Risk]] = [
    ("apps_uninstall", "/apps.uninstall", "Uninstalls your app from a workspace.", {}, Risk.DELETE),
    ("auth_revoke", "/auth.revoke", "Revokes a token.", {}, Risk.ADMIN),
    ("views_publish", "/views.publish", "Publish a static view for a User.", {}, Risk.WRITE),
    ("dialog_open", "/dialog.open", "Open a dialog with a user", {}, Risk.WRITE),
    ("", "/remove/lock/{lock}", "", {}, Risk.DELETE),
    ("", "/rides/{id}/cancel", "", {}, Risk.WRITE),
    ("startScan", "/scans/startScan", "", {}, Risk.WRITE),
    ("getThing", "/servers/{id}/restart", "", {}, Risk.WRITE),
    ("GET_TerminateInstances", "/", "", {}, Risk.DELETE),
    ("doIt", "/it", "This endpoint allows you to delete the account.", {}, Risk.DELETE),
    ("readMail", "/mail/{id}", "Returns a message and marks it as read.", {}, Risk.WRITE),
    ("getJob", "/jobs/{id}", "Get a job", {"delete": {"type": "boolean"}}, Risk.DELETE),
    ("getJob", "/jobs/{id}", "Get a job", {"delete": {"type": ["boolean", "null"]}}, Risk.DELETE),
    ("getTag", "/tag/{id}", "Retrieve tag information, set muted status, recheck all in tag.", {}, Risk.WRITE),
    ("getTag", "/tag/{id}", "Get single tag", {"muted": {"enum": ["muted", "unmuted"]}}, Risk.WRITE),
    ("listWatches", "/watch", "List all", {"recheck_all": {"type": "string", "enum": ["1"]}}, Risk.WRITE),
    ("getBox", "/box", "Get", {"action": {"type": "string", "enum": ["purge", "show"]}}, Risk.DELETE),
    ("", "/tasks/{id}/complete", "Completes the task, with all of its steps.", {}, Risk.WRITE),
    ("runQuery", "/q", "Executes a query on the specified table.", {}, Risk.WRITE),
    ("muteAll.list", "/all", "Mute all things.", {}, Risk.WRITE),
    ("getMail", "/mail/{id}", "Get", {"ack": {"type": "boolean", "description": "Acknowledge the mail"}}, Risk.WRITE),
    ("payInvoice", "/pay/{id}", "Pay invoice", {}, Risk.WRITE),
    ("chargeCard", "/op/{id}", "", {}, Risk.WRITE),
    ("cards.chargeCard", "/op/{id}", "", {}, Risk.WRITE),
    ("copyPadUsingGET_1", "/copyPad", "", {}, Risk.WRITE),
    ("uploadFile", "/files", "File upload", {}, Risk.WRITE),
    ("", "/doors/{id}/open", "Open door", {}, Risk.WRITE),
    ("openDoor", "/doors/{id}/open", "Open door", {}, Risk.WRITE),
    ("closeAccount", "/accounts/{id}", "Close account", {}, Risk.WRITE),
    ("transferFunds", "/funds/{id}", "Transfer funds", {}, Risk.WRITE),
    ("followUsers", "/users/{id}/follow", "", {}, Risk.WRITE),
    ("quickDecide", "/decide", "One-click approve or deny (email link).", {}, Risk.WRITE),
    ("verifyEmail", "/verify-email", "Verify an address", {"token": {"type": "string"}}, Risk.WRITE),
    ("changeStatus", "/things/{id}/status", "Change status", {}, Risk.WRITE),
    ("setOptions", "/things/{id}/options", "Set options", {}, Risk.WRITE),
    ("power", "/srv/{id}/power", "Power cycle the server", {}, Risk.WRITE),
    ("power", "/srv/{id}/power", "Power off the server", {}, Risk.WRITE),
    ("getItem", "/items/itemDelete", "Get the item", {}, Risk.DELETE),
    ("getItem", "/items/hard-delete", "Returns the item", {}, Risk.DELETE),
    ("autoDelete", "/items/auto-delete", "", {}, Risk.DELETE),
    ("getState", "/servers/{id}/reboot", "Returns the status of the server.", {}, Risk.WRITE),
    ("getState", "/reboot/{id}", "Returns the status of the server.", {}, Risk.WRITE),
    ("getMail", "/mail/{id}", "Get", {"peek": {"type": "boolean", "description": "If true, will mark it"}}, Risk.WRITE),
    ("", "/login/{provider}/callback", "", {}, Risk.WRITE),
    ("callback", "/oidc/callback", "Callback endpoint to complete an OIDC login.", {}, Risk.WRITE),
    ("verify", "/verify", "Authenticate by verifying the possession of a one-time token.", {}, Risk.WRITE),
    ("oidc-token", "/oidc/token/{name}", "Generate an OIDC token", {}, Risk.ADMIN),
    ("code", "/reports/code", "Generates an access token for reports of usage.", {}, Risk.ADMIN),
    ("login", "/{account}/login", "Exchange your LDAP credentials for a key.", {}, Risk.ADMIN),
    ("read-creds", "/creds/{name}", "Generates an API key or other credentials for the role.", {}, Risk.ADMIN),
]  # fmt: skip
READS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("getPost", "/posts/{id}", "Get a post.", {}),
    ("listUpdates", "/updates", "List updates, with what was added, deleted, or updated.", {}),
    ("pulls.checkMerged", "/pulls/{n}/merge", "Check if a pull request has been merged", {}),
    ("deployKeys", "/deploy_keys/{id}", "A deploy key", {}),
    ("getAutoDelete", "/settings/auto-delete", "Get the auto-delete setting", {}),
    ("getPurge", "/settings/retention/messages-auto-purge", "Get the setting", {}),
    ("getHook", "/hooks/on-delete", "Returns the hook", {}),
    ("getHook", "/hooks/pre-delete", "Returns the hook", {}),
    ("getHook", "/jobs/on-promote", "Get the hook", {}),
    ("listUsers", "/users/softDelete", "List users", {}),
    ("getKill", "/games/{id}/first-kill", "Get it", {}),
    ("", "/archive", "Returns the archive of the day.", {}),
    ("acl.list", "/calendars/{id}/acl", "List who may see and change a calendar.", {}),
    ("find", "/things", "To retrieve things, send a GET request to this address.", {"deleted": {"type": "boolean"}}),
    ("listMail", "/mail", "List mail", {"status": {"enum": ["read", "unread"]}}),
    ("getOrder", "/orders/{id}", "Order details", {"include_deleted": {"type": "boolean"}}),
    ("listStarted", "/runs", "Lists the runs.", {"start": {"type": "integer"}, "stop": {"type": "integer"}}),
    ("jobs.complete", "/jobs:complete", "Completes the specified prefix with keyword suggestions.", {}),
    ("muteConfigs.list", "/projects/{id}/muteConfigs", "", {}),
    ("cloudasset.analyzeMove", "/{id}:analyzeMove", "Analyze moving a resource without kicking off the move.", {}),
    ("postgrestSelect", "/postgrest/{table}", "Executes a dynamic SELECT (read) query on a table.", {}),
    ("postgrestFunction", "/rpc/{name}", "Executes a read-only PostgreSQL database function.", {}),
    ("files.get", "/files/{id}", "Gets a file's metadata or content by ID.", {"acknowledgeAbuse": {
        "type": "boolean", "description": "Whether the user is acknowledging the risk of downloading known malware.",
    }}),
    ("openSearch", "/opensearch.rss", "basic search function following the OpenSearch specification", {}),
    ("logFileHandler", "/logs/{logpath}", "", {}),
    ("PurchaseOrders_QueryItem", "/PurchaseOrders/{id}", "", {}),
    ("changeSet", "/changes/{id}", "Returns a set of changes.", {}),
    ("schedule", "/schedule/{roundid}", "Schedule of a round", {}),
    ("", "/pulls/{n}/merge", "Check if a pull request has been merged", {}),
    ("getSchedule", "/employees/{id}/schedule", "Schedule of an employee", {}),
    ("getPowerState", "/vms/{id}/power", "Power state of the VM", {}),
    ("power", "/vms/{id}/power", "Power state of the VM", {}),
    ("getClose", "/stocks/{s}/close", "Close price", {}),
    ("closePrices", "/stocks/{s}/close", "Close price of a stock", {}),
    ("getOpen", "/stocks/{s}/open", "Open", {}),
    ("getTrash", "/users/{id}/trash", "Trash contents", {}),
    ("things.listExchange", "/x/{id}/exchange", "Exchange details", {}),
    ("openOrders", "/orders/open", "Open orders", {}),
    ("transferFees", "/transfers/fees", "", {}),
    ("postComments", "/posts/{id}/comments", "Post comments", {}),
    ("signInLogs", "/auditLogs/signIns", "Sign in logs", {}),
    ("runResults", "/runs/{id}/results", "Run results", {}),
    ("queueStatus", "/queue/status", "Queue status", {}),
    ("cycleTimes", "/cycle", "Cycle times of a team", {}),
    ("exchangeRates", "/rates", "Rates of all currencies", {}),
    ("releaseEvents", "/events", "", {}),
    ("getCallback", "/settings/callback", "Get the callback", {}),
    ("manifest", "/apps/{id}/manifest", "Generate a manifest. It holds no token.", {}),
    ("prices", "/quote", "Exchange rate between two tokens", {}),
    ("markets", "/markets", "Exchanges of this token", {}),
    ("issues", "/issues", "Issues about leaked secrets", {}),
    ("history", "/mints", "Mint history of tokens", {}),
    ("tokenReport", "/reports/tokens", "Generate a report of tokens", {}),
    ("usage", "/usage", "Generates the  summary of tokens that were used", {}),
    ("credentialReport", "/reports/{id}", "Generates a credential report for the account", {}),
    ("getDroplet", "/droplets/{id}", "Enables an authenticated app to find an installation.", {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "path", "said", "parameters", "least"), CHANGES, ids=[each[1] + each[0] for each in CHANGES]
)
def test_what_says_that_it_changes_something_is_a_change(
    name: str, path: str, said: str, parameters: dict[str, Any], least: Risk
) -> None:
    assert change_in(name, path, (said,), (), parameters.items()) is least


@pytest.mark.parametrize(("name", "path", "said", "parameters"), READS)
def test_what_only_reads_stays_a_read(name: str, path: str, said: str, parameters: dict[str, Any]) -> None:
    assert change_in(name, path, (said,), (), parameters.items()) is Risk.READ


@pytest.mark.parametrize(
    "name", ["exchangeInfo", "openInterest", "releaseNotes", "changeLog", "queueDepth", "postFeed"]
)
def test_a_segment_of_a_path_is_rather_a_things_name(name: str) -> None:
    for said in ("", f"{name[:-4]} {name[-4:]} of today"):
        assert risk("GET", name, path=f"/api/v3/{name}", said=(said,), named=False) is Risk.READ
    assert risk("GET", "saveTag", path="/saveTag", said=("saveTag",), named=False) is Risk.WRITE


def test_a_tag_counts_where_nothing_says_that_it_reads() -> None:
    assert change_in("x", "/x", (), ("Delete",)) is Risk.DELETE
    assert change_in("x", "/x", ("Get the thing",), ("Delete",)) is Risk.READ


def test_the_bundled_gets_say_what_they_do() -> None:
    for method in Catalog.bundled().methods():
        if method.http in ("GET", "HEAD"):
            places = method.locations
            asked = [(n, s) for n, s in method.parameters["properties"].items() if places[n] in ("query", "repeat")]
            assert change_in(method.name, method.path, (method.description,), (), asked) <= method.risk, method.id


@pytest.mark.promise(12)
def test_an_imported_get_is_asked_for_as_what_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "rebuild", lambda *_: None)
    get = {"responses": {"200": {"description": "ok"}}}
    muted = {"name": "muted", "in": "query", "schema": {"$ref": "#/components/schemas/Muted"}}
    uuid = {"name": "uuid", "in": "path", "required": True, "schema": {"type": "string"}}
    made = document(
        {
            "/apps.uninstall": {"get": {**get, "description": "Uninstalls your app from a workspace."}},
            "/tags/{uuid}": {"get": {**get, "operationId": "getTag", "parameters": [uuid, muted]}},
            "/tags": {"get": {**get, "operationId": "listTags", "summary": "List the tags"}},
            "/x": {"head": {**get, "operationId": "revokeKey"}},
            "/postFeed": {"get": {**get, "summary": "Post feed"}},
        },
        components={"schemas": {"Muted": {"type": "string", "enum": ["muted", "unmuted"]}}},
    )
    (tmp_path / "svc.json").write_text(json.dumps(made))
    import_openapi(tmp_path / "catalog.db", tmp_path / "svc.json", "svc")
    risks = {name: risk.word for name, _, risk in Catalog.open(tmp_path / "catalog.db").outlines("svc")}
    assert risks == {"apps.uninstall.get": "delete", "getTag": "write", "listTags": "read", "revokeKey": "admin",
                     "postFeed.get": "read"}  # fmt: skip


WORDS = {"type": "string", "enum": ["show", "purge"]}


@pytest.mark.promise(12)
@pytest.mark.parametrize(
    ("path", "own", "least"),
    [
        ("/vms/{id}/{action}", {"name": "action", "in": "path", "required": True, "schema": WORDS}, Risk.DELETE),
        ("/vms/{id}", {"name": "action", "in": "query", "schema": {"const": "purge"}}, Risk.DELETE),
        ("/vms/{id}", {"name": "action", "in": "query", "schema": {"oneOf": [{"const": "purge"}]}}, Risk.DELETE),
        ("/vms/{id}", {"name": "actions", "in": "query", "schema": {"type": "array", "items": WORDS}}, Risk.DELETE),
        ("/vms/{id}", {"name": "delete", "in": "query",
                       "schema": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}}, Risk.DELETE),
        ("/vms/{id}:purge", None, Risk.DELETE),
        ("/vms/{id}.purge", None, Risk.DELETE),
        ("/vms/{id}/disks:purge", None, Risk.DELETE),
        ("/vms/{id}:search", None, Risk.READ),
        ("/vms/{id}.json", None, Risk.READ),
        ("/vms/{id}/{kind}", {"name": "kind", "in": "path", "required": True, "schema": WORDS}, Risk.READ),
        ("/vms/{id}", {"name": "kinds", "in": "query", "description": "Delete events.",
                       "schema": {"type": "array", "items": WORDS}}, Risk.READ),
    ],
)  # fmt: skip
def test_what_is_done_is_seen_wherever_a_document_has_it(path: str, own: Any, least: Risk) -> None:
    """Though it is called a read, and says that it is one."""
    id = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    get = {"operationId": "getVm", "summary": "Get it", "parameters": [id, *([own] if own else ())]}
    made, _ = read_document(document({path: {"get": get}}), "svc", "svc.json", "")
    assert made is not None and [method.risk for method in made.methods] == [least]


@pytest.mark.parametrize(
    ("path", "name", "said", "least"),
    [
        ("/search/{index}.json", "searchIndex", "Search the index", Risk.READ),
        ("/v1/documents:stats", "getStats", "Get the statistics", Risk.READ),
        ("/v1/documents:purge", "getStats", "Get the statistics", Risk.DELETE),
    ],
)
def test_a_posts_path_counts_by_a_verb_of_change_at_its_end(path: str, name: str, said: str, least: Risk) -> None:
    index = {"name": "index", "in": "path", "required": True, "schema": {"type": "string"}}
    post = {"operationId": name, "summary": said, "parameters": [index] * ("{" in path)}
    made, _ = read_document(document({path: {"post": post}}), "svc", "svc.json", "")
    assert made is not None and [method.risk for method in made.methods] == [least]


@pytest.mark.parametrize(
    ("name", "said", "least"),
    [
        ("listUserFollow", "Follow a List", Risk.WRITE),
        ("checkOut", "", Risk.WRITE),
        ("check-in.post", "", Risk.WRITE),
        ("read", "Remove conversation", Risk.DELETE),
        ("messages.readAll", "Mark all messages as read.", Risk.WRITE),
        ("getTokenRevocation", "Revoke Token.", Risk.ADMIN),
        ("verifyPhone", "Sends a code by SMS.", Risk.WRITE),
        ("verifyEmail", "Verify email address", Risk.WRITE),
        ("domains.verify", "Verify an existing domain", Risk.WRITE),
        ("verifyClaim", "Trigger asynchronous verification.", Risk.WRITE),
        ("verifySignature", "Verify a signature", Risk.READ),
        ("verifyFactor", "Verify an OTP for a factor", Risk.WRITE),
        ("verifyEventHook", "", Risk.WRITE),
        ("webhooks.verifySignature", "Verify the signature of a webhook", Risk.READ),
        ("email.verifySignature", "Verify the signature of a mail", Risk.WRITE),
        ("verify", "Authenticate by verifying the possession of a one-time token.", Risk.WRITE),
        ("get-token-openid", "Authenticate a user with OpenID Connect", Risk.WRITE),
        ("searchThings", "Search for things, and create nothing.", Risk.READ),
        ("getUrls", "Executes a query and returns a page of its answer.", Risk.READ),
        ("find", "Submit a query for images", Risk.READ),
        ("searchUsers", "Create a search query", Risk.READ),
        ("searchUsers", "Post a query", Risk.READ),
        ("searchUsers", "Create a search of documents", Risk.READ),
        ("searchUsers", "Create a search index", Risk.WRITE),
        ("getFacilities", "Clean Air Act: facilities", Risk.READ),
        ("checkAvailability", "Order of the rooms", Risk.READ),
    ],
)
def test_a_post_whose_name_asks_is_what_its_words_say(name: str, said: str, least: Risk) -> None:
    assert risk("POST", name, said=(said,)) is least


@pytest.mark.promise(12)
@pytest.mark.parametrize(
    ("http", "name", "path", "said", "least"),
    [
        ("POST", "PostSecrets", "/orgs/{id}/secrets/delete", "", Risk.DELETE),
        ("POST", "updateInvoice", "/invoices/{id}", "Deletes a repeating invoice", Risk.DELETE),
        ("POST", "rooms.cleanHistory", "/rooms.cleanHistory", "Clear Room History", Risk.DELETE),
        ("PUT", "groups.kick", "/groups.kick", "Remove User from Group", Risk.DELETE),
        ("PATCH", "trim", "/levels", "Purges what isn't used.", Risk.DELETE),
        ("POST", "end", "/sessions/{id}", "Revokes a session.", Risk.ADMIN),
        ("POST", "purges.create", "/deletions", "Request a deletion", Risk.WRITE),
        ("PUT", "setAutomatic", "/settings/auto-delete", "Set the setting", Risk.WRITE),
        ("POST", "createTrash", "/trash", "Empty text is allowed", Risk.WRITE),
        ("POST", "create", "/jobs/bulk-delete-jobs", "Create a job", Risk.WRITE),
        ("POST", "searchThings", "/things/search", "Search, with what was deleted", Risk.READ),
        # The words of what takes a mark off speak of removing, and nothing is lost.
        ("POST", "users.messages.untrash", "/messages/{id}/untrash", "Removes it from the trash.", Risk.WRITE),
        ("POST", "post-api-v1-chat.unPinMessage", "/chat.unPinMessage", "Remove a pinned message", Risk.WRITE),
        ("POST", "unpinAllChatMessages", "/unpinAllChatMessages", "Clear the list of pins", Risk.WRITE),
        ("POST", "resetPersona", "/recall:unlinkPersona", "Delete all tokens", Risk.DELETE),
        ("POST", "unpinAndErase", "/pins/erase", "Remove all pins", Risk.DELETE),
        ("POST", "unpinBoard", "/boards/{id}/unpin", "Deletes the board.", Risk.DELETE),
        ("POST", "runpins", "/runpins", "Remove the pins.", Risk.DELETE),
        (
            "PUT",
            "issues.set-labels",
            "/issues/{n}/labels",
            "Removes any previous labels and sets the new labels.",
            Risk.WRITE,
        ),
        ("PUT", "issues.clean", "/issues/{n}/labels", "Removes any previous labels and their issues.", Risk.DELETE),
        ("POST", "CancelDeletion", "/certificates/{id}/cancelDelete", "Cancels a failed deletion.", Risk.WRITE),
        ("POST", "Cancel", "/certificates/{id}/cancelDelete", "Deletes a certificate.", Risk.DELETE),
    ],
)
def test_what_says_that_it_deletes_is_a_deletion_whatever_its_method(
    http: str, name: str, path: str, said: str, least: Risk
) -> None:
    assert risk(http, name, path=path, said=iter((said,))) is least
