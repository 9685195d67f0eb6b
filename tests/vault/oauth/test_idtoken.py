"""ID tokens: one that is right, and every way in which one can be wrong."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey

from tests.vault.oauth.support import CANARY, GOEX, Hostile, answer, http, token_set
from vault.oauth import idtoken
from vault.oauth.errors import AuthorizationServerBroken, MixUp, OAuthError
from vault.secret import Secret

RSA = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})
OTHER = RSAKey.generate_key(2048, {"kid": "two", "use": "sig"})
EC = ECKey.generate_key("P-256", {"kid": "three", "use": "sig"})
NOW = datetime.now(UTC)
ACCESS = Secret(f"{CANARY}-access")


def claims(hostile: Hostile, **changed: Any) -> dict[str, Any]:
    at = int(NOW.timestamp())
    made = {"iss": hostile.issuer, "aud": "goex", "sub": "ada", "iat": at, "exp": at + 600, "nonce": "n-0S6"}
    return {name: value for name, value in {**made, **changed}.items() if value is not None}


def signed(body: dict[str, Any], key: Any = RSA, alg: str = "RS256", **head: Any) -> str:
    return jwt.encode({"alg": alg, "kid": key.kid, **head}, body, key, algorithms=[alg])


def check(hostile: Hostile, token: str, *keys: Any) -> str:
    known = keys or (RSA, EC)
    hostile.replies["/jwks"] = answer(KeySet(list(known)).as_dict(private=False))
    return idtoken.check(
        token, provider=hostile.provider(), client=GOEX, nonce="n-0S6", access=ACCESS, http=http(), now=NOW
    )


@pytest.mark.parametrize(("key", "alg"), [(RSA, "RS256"), (RSA, "PS384"), (EC, "ES256")])
def test_a_good_one(hostile: Hostile, key: Any, alg: str) -> None:
    assert check(hostile, signed(claims(hostile), key, alg)) == "ada"


def test_without_the_name_of_its_key(hostile: Hostile) -> None:
    token = jwt.encode({"alg": "RS256"}, claims(hostile), RSA)
    assert check(hostile, token, RSA) == "ada"
    with pytest.raises(AuthorizationServerBroken):
        check(hostile, token, OTHER)


def test_keys_of_other_kinds_beside_it(hostile: Hostile) -> None:
    known = KeySet([RSA]).as_dict(private=False)["keys"]
    others = [{"kty": "AKP", "kid": "pq", "alg": "ML-DSA-44", "pub": "AA"}, {"kty": "oct", "kid": "s", "k": "AA"}, 5]
    hostile.replies["/jwks"] = answer({"keys": [*others, *known]})
    made = idtoken.check(
        signed(claims(hostile)),
        provider=hostile.provider(),
        client=GOEX,
        nonce="n-0S6",
        access=ACCESS,
        http=http(),
        now=NOW,
    )
    assert made == "ada"


def test_bound_to_the_access_token(hostile: Hostile) -> None:
    half = base64.urlsafe_b64encode(hashlib.sha256(ACCESS.reveal()).digest()[:16]).decode().rstrip("=")
    assert check(hostile, signed(claims(hostile, at_hash=half))) == "ada"
    with pytest.raises(AuthorizationServerBroken, match="access token"):
        check(hostile, signed(claims(hostile, at_hash=half[::-1])))


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "https://other.example.org"},
        {"iss": None},
        {"aud": "somebody else"},
        {"aud": ["somebody", "else"]},
        {"aud": None},
        {"aud": ["goex", "else"]},
        {"aud": ["goex", "else"], "azp": "else"},
        {"azp": "else"},
        {"exp": None},
        {"exp": int((NOW - timedelta(minutes=5)).timestamp())},
        {"exp": "later"},
        {"iat": int((NOW + timedelta(minutes=5)).timestamp())},
        {"iat": int((NOW - timedelta(days=1)).timestamp())},
        {"iat": None},
        {"nonce": "another"},
        {"nonce": None},
        {"nonce": 5},
        {"sub": None},
        {"sub": ""},
        {"sub": 5},
        {"sub": "a" * 300},
    ],
)
def test_claims_that_are_not_this_logins(hostile: Hostile, changed: dict[str, Any]) -> None:
    with pytest.raises(OAuthError) as caught:
        check(hostile, signed(claims(hostile, **changed)))
    assert isinstance(caught.value, MixUp) == ("iss" in changed)


FORGED: dict[str, Callable[[Hostile], str]] = {
    "another's key": lambda hostile: signed(claims(hostile), OTHER),
    "another's key under the right name": lambda hostile: signed(claims(hostile), OTHER, kid="one"),
    "no signature": lambda hostile: unsigned(claims(hostile)),
    "the public key as a password": lambda hostile: jwt.encode(
        {"alg": "HS256", "kid": "one"},
        claims(hostile),
        OctKey.import_key(json.dumps(RSA.as_dict(private=False))),
        algorithms=["HS256"],
    ),
    "a changed body": lambda hostile: tampered(signed(claims(hostile))),
    "nothing": lambda hostile: "",
    "one dot": lambda hostile: "a.b",
    "not base64": lambda hostile: "a.!.c",
    "a body that is no object": lambda hostile: ".".join([signed(claims(hostile)).split(".")[0], "W10", "x"]),
    "not ASCII": lambda hostile: "ä.ö.ü",
}


def unsigned(body: dict[str, Any]) -> str:
    parts = ({"alg": "none"}, body)
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def tampered(token: str) -> str:
    head, body, mark = token.split(".")
    read = json.loads(base64.urlsafe_b64decode(body + "=="))
    read["sub"] = "mallory"
    return ".".join([head, base64.urlsafe_b64encode(json.dumps(read).encode()).decode().rstrip("="), mark])


@pytest.mark.parametrize("how", FORGED)
def test_forged_ones(hostile: Hostile, how: str) -> None:
    with pytest.raises(AuthorizationServerBroken) as caught:
        check(hostile, FORGED[how](hostile))
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "keys", [{}, {"keys": 5}, {"keys": ["x"]}, {"keys": [{"kty": "oct", "k": "AA", "kid": "one"}]}, {"keys": [{}]}]
)
def test_keys_that_make_no_sense(hostile: Hostile, keys: dict[str, Any]) -> None:
    token = signed(claims(hostile))
    hostile.replies["/jwks"] = answer(keys)
    with pytest.raises(AuthorizationServerBroken):
        idtoken.check(
            token, provider=hostile.provider(), client=GOEX, nonce="n-0S6", access=ACCESS, http=http(), now=NOW
        )


def test_a_renewal_for_somebody_else_is_a_mix_up(hostile: Hostile) -> None:
    made = token_set(hostile, subject="ada")
    idtoken.check_renewed(signed(claims(hostile)), made)
    idtoken.check_renewed("", made)
    for changed in ({"sub": "mallory"}, {"sub": None}, {"iss": "https://other.example.org"}):
        with pytest.raises(MixUp):
            idtoken.check_renewed(signed(claims(hostile, **changed)), made)
