"""How much harm an operation can do, from its HTTP method and its name.

Rules: what says that it deletes, deletes, whatever the method; who changes who may do what is an admin; a POST is a
read only where its name is that of a question, or where the provider lets a read-only permission make it and the name
isn't that of a change; every other POST, PUT and PATCH writes. A method that HTTP doesn't have deletes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from policies.services import Risk

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def _named(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pairs(text: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(pair.split()) for pair in text.split(","))


_DESTROYS = _named(
    """
    delete deletes remove clear purge destroy wipe empty erase undeploy uninstall unpublish deprovision drop expunge
    terminate truncate unregister deregister discard abandon
    """
)
_ADMIN_WORDS = _named(
    """
    acl acls iam permission permissions delegates role roles administrator administrators impersonate owner admins
    collaborator collaborators
    """
)
_ADMIN_PHRASES = _pairs(
    """
    make admin, access control, access controls, access policies, access policy, role assignment, role assignments,
    api key, api keys, api token, api tokens, api credential, api credentials, access key, access token, access tokens,
    client key, client secret, client secrets, set password, change password, update password, reset password
    """
)
_SECRETS = _pairs(
    """
    access token, id token, sign blob, sign jwt, generate token, generate credentials, issue token, issue credentials
    """
)
_ADMIN_SAID = _named("grant revoke impersonate promote admin ownership privilege privileges")  # by the last part alone
_KEYS = frozenset({"keys", "apikeys", "password", "passwords"})
_ASKS = _named(
    """
    get list search query lookup fetch count find read retrieve browse describe inspect preview explain validate
    verify check estimate detect summarize autocomplete diff compare head
    """
)
_ASKS_PHRASES = (
    ("batch", "get"),
    ("aggregated", "list"),
    ("test", "iam", "permissions"),
    ("run", "query"),
    ("run", "report"),
    ("run", "aggregation", "query"),
    ("batch", "run", "reports"),
    ("run", "pivot", "report"),
    ("run", "realtime", "report"),
    ("generate", "report"),
    ("bulk", "get"),
    ("streaming", "query"),
    ("partition", "query"),
    ("analyze",),
)
_CHANGES = _named(
    """
    renew reactivate activate deactivate prewarm resume pause suspend create insert update patch set add send import
    upload copy move start stop watch replace modify enable disable attach detach publish approve reject cancel run
    execute restore rename merge apply submit deploy install sync trash untrash undelete archive unarchive subscribe
    unsubscribe assign unassign post put write save reset invite accept decline complete close open lock unlock link
    unlink register mark unmark hide touch invoke
    """
)


# A GET that is called so does it all the same.
_CHANGES_BY_GET = frozenset({"restore", "move", "cancel", "start", "finish", "collect", "create", "insert", "update"})


def words(name: str) -> list[str]:
    """The words of a name in camel case, snake case or with dashes, in lower case."""
    return [word.lower() for word in _WORD.findall(name)]


def risk_of(http: str, name: str, *, scopes: Iterable[str] = (), path: str = "") -> Risk:
    """The risk of an operation called `name` (`users.messages.batchDelete`), which any of `scopes` allows."""
    verb = http.upper()
    *around, last = name.split(".")
    said = words(last)
    resource = [word for part in (*around[-1:], *_path_words(path)) for word in words(part)]
    if verb in ("GET", "HEAD"):
        if said[:1] and said[0] in _DESTROYS:
            return Risk.DELETE
        if _phrase(said, _SECRETS) and said[-1] != "status":
            return Risk.ADMIN
        return Risk.WRITE if said[:1] and said[0] in _CHANGES_BY_GET else Risk.READ
    if verb not in ("POST", "PUT", "PATCH", "DELETE"):
        return Risk.DELETE
    asks = verb == "POST" and _asks(said)
    if not asks and _changes_access(said, resource):
        return Risk.ADMIN
    if verb == "DELETE" or _DESTROYS & set(said):
        return Risk.DELETE
    if asks or (verb == "POST" and _read_only(scopes) and not _CHANGES & set(said)):
        return Risk.READ
    return Risk.WRITE


def _asks(said: list[str]) -> bool:
    if any(tuple(said[: len(phrase)]) == phrase for phrase in _ASKS_PHRASES):
        return not _DESTROYS & set(said)
    if not said or (_CHANGES | _DESTROYS) & set(said) or said[:2] in (["check", "in"], ["check", "out"]):
        return False
    return said[0] in _ASKS or said[-1] in ("search", "query", "lookup")


def _changes_access(said: list[str], resource: list[str]) -> bool:
    if _ADMIN_SAID & set(said):  # the thing may stand before them: `userRevokeSession`
        return True
    both = [*resource, *said]
    if _ADMIN_WORDS & set(both) or (resource[-1:] and resource[-1] in _KEYS):
        return True
    return _phrase(both, _ADMIN_PHRASES) or _phrase(said, _SECRETS)


def _phrase(said: list[str], phrases: frozenset[tuple[str, ...]]) -> bool:
    return not phrases.isdisjoint(pairwise(said))


def _read_only(scopes: Iterable[str]) -> bool:
    return any(re.search(r"(?:[._:/-]|^)read[-_.]?only$", scope.lower()) for scope in scopes)


def _path_words(path: str) -> list[str]:
    """The last fixed segment of a path: what the operation is about, where its name doesn't say."""
    fixed = [segment for segment in path.split("/") if segment and "{" not in segment]
    return fixed[-1:]
