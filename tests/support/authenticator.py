"""A passkey in software: what a browser and its authenticator answer, as real bytes that are really signed.

Each test bends one thing: the origin, the host, the flags, the count, the challenge. ES256 unless another is wanted.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from fido2 import cbor
from fido2.cose import ES256, RS256, EdDSA

from goex.page_address import HOST, TERMINAL
from goex.rpc import goex_pb2 as pb
from goex.rpc import passkeys_pb2 as ppb
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40
ORIGIN = f"{TERMINAL}{HOST}"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Authenticator:
    """One credential."""

    kind: str = "ES256"
    rp_id: str = HOST
    origin: str = ORIGIN
    flags: int = PRESENT | VERIFIED
    counter: int = 0
    step: int = 1  # how far it counts with each signature
    credential_id: bytes = field(default_factory=lambda: os.urandom(32))
    key: Any = None

    def __post_init__(self) -> None:
        match self.kind:
            case "ES256":
                self.key = self.key or ec.generate_private_key(ec.SECP256R1())
            case "EdDSA":
                self.key = self.key or ed25519.Ed25519PrivateKey.generate()
            case "RS256":
                self.key = self.key or rsa.generate_private_key(65537, 2048)

    def create(self, options: str, **bent: Any) -> str:
        """What navigator.credentials.create answers, as toJSON() writes it."""
        asked = json.loads(options)
        makers: dict[str, Any] = {"ES256": ES256, "EdDSA": EdDSA, "RS256": RS256}
        cose = bent.pop("cose", None) or cbor.encode(makers[self.kind].from_cryptography_key(self.key.public_key()))
        credential = bytes(16) + struct.pack(">H", len(self.credential_id)) + self.credential_id + cose
        data = self._data(bent.pop("flags", self.flags) | ATTESTED, bent.pop("rp_id", self.rp_id)) + credential
        attestation = cbor.encode({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client("webauthn.create", asked["challenge"], bent)
        response = {"clientDataJSON": encoded(client), "attestationObject": encoded(attestation), "transports": ["usb"]}
        return self._answer(response)

    def get(self, options: str, **bent: Any) -> str:
        """What navigator.credentials.get answers."""
        asked = json.loads(options)
        self.counter += self.step
        data = self._data(bent.pop("flags", self.flags), bent.pop("rp_id", self.rp_id))
        key, spoil = bent.pop("key", self.key), bent.pop("spoil", False)
        client = self._client(bent.pop("type", "webauthn.get"), bent.pop("challenge", asked["challenge"]), bent)
        signature = self._sign(key, data + hashlib.sha256(client).digest())
        if spoil:
            signature = signature[:-1] + bytes([signature[-1] ^ 1])
        response = {
            "clientDataJSON": encoded(client),
            "authenticatorData": encoded(data),
            "signature": encoded(signature),
            "userHandle": None,
        }
        return self._answer(response)

    def _data(self, flags: int, rp_id: str) -> bytes:
        return hashlib.sha256(rp_id.encode()).digest() + struct.pack(">BI", flags, self.counter)

    def _client(self, kind: str, challenge: str, bent: dict[str, Any]) -> bytes:
        said = {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False, **bent}
        return json.dumps(said, separators=(",", ":")).encode()

    def _answer(self, response: dict[str, Any]) -> str:
        id = encoded(self.credential_id)
        return json.dumps(
            {
                "id": id,
                "rawId": id,
                "type": "public-key",
                "authenticatorAttachment": "platform",
                "clientExtensionResults": {},
                "response": response,
            }
        )

    def _sign(self, key: Any, message: bytes) -> bytes:
        match self.kind:
            case "ES256":
                return bytes(key.sign(message, ec.ECDSA(hashes.SHA256())))
            case "EdDSA":
                return bytes(key.sign(message))
        return bytes(key.sign(message, padding.PKCS1v15(), hashes.SHA256()))


class Page:
    """What the page does on user.sock: the ceremonies, with one of these authenticators."""

    def __init__(self, daemon: Daemon, origin: str = "") -> None:
        self.daemon = daemon
        self.origin = origin

    def call(self, method: str, request: Any) -> Any:
        described = ppb.DESCRIPTOR.services_by_name["Passkeys"].methods_by_name[method]
        reply = getattr(ppb, described.output_type.name)
        ask = self.daemon.channel(self.daemon.user_socket).unary_unary(
            f"/goex.v1.Passkeys/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=reply.FromString,
        )
        return ask(request, timeout=300)

    def begin(self, name: str = "laptop") -> str:
        return str(self.call("Begin", ppb.BeginPasskeyRequest(name=name, origin=self.origin)).options_json)

    def add(
        self, made: Authenticator, *, by: Authenticator | None = None, name: str = "laptop", **bent: Any
    ) -> ppb.PasskeyView:
        """Register one: the first with the passphrase, a further one by another."""
        request = ppb.AddPasskeyRequest(name=name, credential_json=made.create(self.begin(name), **bent))
        if by is None:
            request.passphrase = APPROVAL_PASSPHRASE
        else:
            request.assertion_json = by.get(self.challenge(add=request))
        added: ppb.PasskeyView = self.call("Add", request)
        return added

    def challenge(self, **what: Any) -> str:
        return str(self.call("Challenge", ppb.ChallengeRequest(origin=self.origin, **what)).options_json)

    def remove(self, id: str, by: Authenticator) -> None:
        request = ppb.RemovePasskeyRequest(id=id)
        request.assertion_json = by.get(self.challenge(remove=request))
        self.call("Remove", request)

    def list(self) -> ppb.ListPasskeysReply:
        found: ppb.ListPasskeysReply = self.call("List", ppb.ListPasskeysRequest())
        return found

    def yes(self, approval: pb.Approval, **more: Any) -> pb.DecideRequest:
        """The decision that a passkey shall sign."""
        return pb.DecideRequest(**{
            "approval_id": approval.id, "approve": True, "width": "once", "digest": approval.digest, **more
        })  # fmt: skip

    def signed(self, request: pb.DecideRequest, by: Authenticator, **bent: Any) -> pb.DecideRequest:
        made = pb.DecideRequest()
        made.CopyFrom(request)
        made.assertion_json = by.get(self.challenge(decide=request), **bent)
        return made

    def decide(self, request: pb.DecideRequest) -> pb.DecideReply:
        reply: pb.DecideReply = self.daemon.person("Decide", request)
        return reply

    def confirm(self, waiting: str, by: Authenticator) -> pb.PresentReply:
        """Let a call through that waits for a passkey."""
        reply: pb.PresentReply = self.daemon.person(
            "Present", pb.PresentRequest(assertion_json=by.get(self.challenge(presence=waiting)))
        )
        return reply
