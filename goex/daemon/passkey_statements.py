"""What an assertion of a passkey approves, as it is signed. docs/audit.md documents this encoding.

The statement is an object; its canonical JSON with the host and a nonce of the daemon is what stands in the journal,
and the challenge is SHA-256 over a fixed prefix and that text. So whoever has the registered public key can check later
what was approved, with no word of the daemon's.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import Any

from goex.daemon.webauthn import Asserted, credential_in
from goex.rpc import goex_pb2 as pb
from goex.rpc import passkeys_pb2 as ppb
from policies.jsonvalue import canonical

PREFIX = b"goex.v1.passkey\0"
SIGN_IN = "sign-in"

Statement = dict[str, Any]


def approving(request: pb.DecideRequest, action_id: str) -> Statement:
    """A yes to a question: for which plan, how far, how long, bound to which arguments, a task narrowed how."""
    narrowed = sorted([one.line, one.times] for one in request.narrowed)
    return {
        **({"narrowed": narrowed} if narrowed else {}),
        "kind": "approve",
        "approval": request.approval_id,
        "action": action_id,
        "digest": request.digest,
        "width": request.width or "once",
        "expires_seconds": request.expires_seconds,
        "bind_arguments": sorted(set(request.bind_arguments)),
    }


def adding(request: ppb.AddPasskeyRequest) -> Statement:
    """A further passkey. Raises PasskeyRefused where the request holds none."""
    found = credential_in(request.credential_json)
    return {
        "kind": "add-passkey",
        "name": request.name,
        "credential_id": encoded(found.credential_id),
        "public_key": encoded(found.spki),
    }


def described(request: ppb.AddPasskeyRequest) -> dict[str, str]:
    """The credential that `adding` states, as whoever confirms it elsewhere compares it. Raises PasskeyRefused."""
    found = credential_in(request.credential_json)
    return {
        "credential_id": encoded(found.credential_id),
        "public_key_sha256": hashlib.sha256(found.spki).hexdigest(),
    }


def removing(request: ppb.RemovePasskeyRequest) -> Statement:
    """A passkey less."""
    return {"kind": "remove-passkey", "passkey": request.id}


def signing_in(origin: str) -> Statement:
    """A session of the page at that origin, which approves nothing."""
    return {"kind": SIGN_IN, "origin": origin}


def signed_text(statement: Statement, rp_id: str) -> str:
    """The statement with its host and a nonce of its own, as it is signed."""
    return canonical({**statement, "rp_id": rp_id, "nonce": secrets.token_hex(16)}).decode()


def challenge_of(text: str) -> bytes:
    """What the authenticator signs."""
    return hashlib.sha256(PREFIX + text.encode()).digest()


def facts(found: Asserted, text: str) -> dict[str, str]:
    """What the journal keeps of an assertion."""
    return {
        "passkey": found.passkey.id,
        "rp_id": found.passkey.rp_id,
        "credential_id": encoded(found.passkey.credential_id),
        "client_data": encoded(found.client_data),
        "authenticator_data": encoded(found.authenticator_data),
        "signature": encoded(found.signature),
        "statement": text,
    }


def encoded(data: bytes) -> str:
    """base64url without padding, as WebAuthn writes bytes."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
