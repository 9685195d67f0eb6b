"""How much harm an operation can do, by its HTTP method and name: a table, and what must hold for every name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapper.importing.risks import risk_of, words
from policies.services import Risk

TABLE = [
    # Reads, and questions that are posted.
    ("GET", "users.messages.list", Risk.READ),
    ("HEAD", "objects.get", Risk.READ),
    ("POST", "jobs.query", Risk.READ),
    ("POST", "places.searchText", Risk.READ),
    ("POST", "people.searchDirectoryPeople", Risk.READ),
    ("POST", "documents.batchGet", Risk.READ),
    ("POST", "properties.runReport", Risk.READ),
    ("POST", "projects.getIamPolicy", Risk.READ),
    ("POST", "projects.testIamPermissions", Risk.READ),
    ("POST", "spreadsheets.values.batchGetByDataFilter", Risk.READ),
    ("POST", "freebusy.query", Risk.READ),
    # Changes.
    ("POST", "users.messages.send", Risk.WRITE),
    ("POST", "users.messages.trash", Risk.WRITE),
    ("POST", "users.messages.untrash", Risk.WRITE),
    ("POST", "events.insert", Risk.WRITE),
    ("PUT", "events.update", Risk.WRITE),
    ("PATCH", "files.patch", Risk.WRITE),
    ("POST", "projects.undelete", Risk.WRITE),
    ("POST", "instances.setLabels", Risk.WRITE),
    ("POST", "users.watch", Risk.WRITE),
    ("POST", "studies.trials.suggest", Risk.WRITE),
    ("GET", "datasets.datasetVersions.restore", Risk.WRITE),
    ("GET", "billingAccounts.move", Risk.WRITE),
    # What is gone afterwards.
    ("DELETE", "users.messages.delete", Risk.DELETE),
    ("POST", "users.messages.batchDelete", Risk.DELETE),
    ("DELETE", "files.emptyTrash", Risk.DELETE),
    ("POST", "spreadsheets.values.clear", Risk.DELETE),
    ("POST", "cryptoKeyVersions.destroy", Risk.DELETE),
    ("POST", "endpoints.undeployModel", Risk.DELETE),
    ("POST", "targetPools.removeInstance", Risk.DELETE),
    ("DELETE", "things.anythingAtAll", Risk.DELETE),
    ("GET", "things.deleteAll", Risk.DELETE),
    ("PATCH", "items.batch_remove", Risk.DELETE),
    # Who may do what.
    ("POST", "projects.setIamPolicy", Risk.ADMIN),
    ("POST", "directory.users.makeAdmin", Risk.ADMIN),
    ("POST", "acl.insert", Risk.ADMIN),
    ("DELETE", "acl.delete", Risk.ADMIN),
    ("POST", "permissions.create", Risk.ADMIN),
    ("DELETE", "permissions.delete", Risk.ADMIN),
    ("POST", "objectAccessControls.insert", Risk.ADMIN),
    ("POST", "directory.roleAssignments.insert", Risk.ADMIN),
    ("POST", "projects.serviceAccounts.keys.create", Risk.ADMIN),
    ("POST", "serviceAccounts.generateAccessToken", Risk.ADMIN),
    ("GET", "environments.generateAccessToken", Risk.ADMIN),
    ("POST", "users.settings.delegates.create", Risk.ADMIN),
    # The same where a name holds all that is known, as in GraphQL.
    ("POST", "createRole", Risk.ADMIN),
    ("POST", "userChangeRole", Risk.ADMIN),
    ("POST", "deleteUserRole", Risk.ADMIN),
    ("POST", "createAdministrator", Risk.ADMIN),
    ("POST", "userRevokeAllSessions", Risk.ADMIN),
    ("POST", "addAdmin", Risk.ADMIN),
    ("POST", "userSetAdmin", Risk.ADMIN),
    ("POST", "transferOwnership", Risk.ADMIN),
    ("POST", "updatePrivileges", Risk.ADMIN),
    ("POST", "createApiKey", Risk.ADMIN),
    ("POST", "createApiToken", Risk.ADMIN),
    ("POST", "api-credentials.create", Risk.ADMIN),
    ("POST", "accessTokens.insert", Risk.ADMIN),
    ("POST", "clients.generateClientSecret", Risk.ADMIN),
    ("PUT", "AccountService_UpdatePassword", Risk.ADMIN),
    ("PUT", "users.password.update", Risk.ADMIN),
    ("PUT", "repos.add-collaborator", Risk.ADMIN),
    ("GET", "oidc-generate-token", Risk.ADMIN),
    ("GET", "database-generate-credentials", Risk.ADMIN),
    ("GET", "api-tokens.list", Risk.READ),
    ("GET", "repos.list-collaborators", Risk.READ),
    ("POST", "sendPasswordReset", Risk.WRITE),
    ("POST", "searchAdmin", Risk.READ),
    ("POST", "admin.conversations.setPrefs", Risk.WRITE),
    ("GET", "roles.get", Risk.READ),
    ("POST", "searchRole", Risk.READ),
    # HTTP doesn't say what these do.
    ("LOCK", "things.get", Risk.DELETE),
    ("", "things.list", Risk.DELETE),
]


@pytest.mark.parametrize(("http", "name", "risk"), TABLE, ids=lambda value: str(value))
def test_table(http: str, name: str, risk: Risk) -> None:
    assert risk_of(http, name) is risk


READ_ONLY = "https://www.googleapis.com/auth/things.readonly"


@pytest.mark.parametrize(
    ("name", "scope", "risk"),
    [
        ("models.predict", READ_ONLY, Risk.READ),
        ("models.predict", "https://www.googleapis.com/auth/cloud-platform.read-only", Risk.READ),
        ("models.predict", "https://www.googleapis.com/auth/things", Risk.WRITE),
        ("models.predict", "not-readonly-at-all", Risk.WRITE),
        ("users.watch", READ_ONLY, Risk.WRITE),
        ("things.create", READ_ONLY, Risk.WRITE),
        ("files.touch", READ_ONLY, Risk.WRITE),
        ("endpoints.invoke", READ_ONLY, Risk.WRITE),
        ("things.purge", READ_ONLY, Risk.DELETE),
        ("things.setIamPolicy", READ_ONLY, Risk.ADMIN),
    ],
)
def test_a_read_only_permission_only_helps_where_the_name_says_nothing(name: str, scope: str, risk: Risk) -> None:
    assert risk_of("POST", name, scopes=[scope]) is risk


def test_the_path_says_what_a_bare_name_is_about() -> None:
    assert risk_of("POST", "create", path="/v1/files/{id}/permissions") is Risk.ADMIN
    assert risk_of("POST", "create", path="/v1/files") is Risk.WRITE


def test_words() -> None:
    assert words("batchGetByDataFilter") == ["batch", "get", "by", "data", "filter"]
    assert words("setIAMPolicy") == ["set", "iam", "policy"]
    assert words("get_oauth2_keys-all") == ["get", "oauth", "2", "keys", "all"]


@given(
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", ""]), st.text(max_size=30), st.text(max_size=20)
)
def test_every_name_has_a_risk_and_deleting_is_never_less(http: str, name: str, scope: str) -> None:
    found = risk_of(http, name, scopes=[scope])
    assert isinstance(found, Risk)
    if http in ("DELETE", "TRACE", ""):
        assert found >= Risk.DELETE
    if http in ("PUT", "PATCH"):
        assert found >= Risk.WRITE
    assert risk_of(http, f"{name}.delete") >= Risk.DELETE
