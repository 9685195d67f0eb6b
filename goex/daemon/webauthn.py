"""What a browser is asked for a passkey with, and whether what it answered is true. The checks are `fido2`'s.

Rules: beside what that library checks (type, origin, challenge, host, user present and verified, signature) an answer
must come from the page itself, not from a frame in another's, and a new key must be of an algorithm that was asked for.
Answers are bounded before they are read, and whatever is wrong with one refuses it.
"""

from __future__ import annotations

import binascii
import json
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from cryptography.exceptions import UnsupportedAlgorithm

from policies.errors import Denied, GoexError
from policies.jsonvalue import parse
from vault.passkeys import Passkey

if TYPE_CHECKING:
    from fido2.server import Fido2Server
    from fido2.webauthn import CollectedClientData

T = TypeVar("T")

LONGEST = 64_000  # characters of an answer
_LONGEST_ID = 1023  # bytes of a credential's id, as WebAuthn bounds it
_MILLISECONDS = 300_000  # that a browser waits for the person
_ES256, _EDDSA, _RS256 = -7, -8, -257
_ALGORITHMS = (_ES256, _EDDSA, _RS256)  # whatever authenticators have
_BAD = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError, OverflowError, RecursionError,
    struct.error, binascii.Error, UnsupportedAlgorithm,
)  # fmt: skip


class PasskeyRefused(Denied):
    """An answer that shows no presence. The text says which check it failed."""

    code = "passkey-refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A new credential. `public_key` is COSE, `spki` the same as SubjectPublicKeyInfo (DER)."""

    credential_id: bytes
    public_key: bytes
    spki: bytes
    counter: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Asserted:
    """What an authenticator signed. The bytes are what a verifier needs later."""

    passkey: Passkey
    client_data: bytes
    authenticator_data: bytes
    signature: bytes
    counter: int


def creation_options(
    rp_id: str, challenge: bytes, *, user: bytes, name: str, known: Iterable[Passkey], found_by_host: bool = False
) -> str:
    """For PublicKeyCredential.parseCreationOptionsFromJSON. `found_by_host`: of a kind that the browser finds without
    being told its id."""
    from fido2.webauthn import (
        PublicKeyCredentialUserEntity,
        ResidentKeyRequirement,
        UserVerificationRequirement,
    )

    options, _ = _server(rp_id).register_begin(
        PublicKeyCredentialUserEntity(id=user, name=name, display_name=name),
        credentials=_descriptors(known),
        resident_key_requirement=ResidentKeyRequirement.REQUIRED if found_by_host else ResidentKeyRequirement.PREFERRED,
        user_verification=UserVerificationRequirement.REQUIRED,
        challenge=challenge,
    )
    return _as_json(options)


def request_options(rp_id: str, challenge: bytes, known: Iterable[Passkey]) -> str:
    """For PublicKeyCredential.parseRequestOptionsFromJSON. Without `known` the browser offers those that it finds."""
    from fido2.webauthn import UserVerificationRequirement

    options, _ = _server(rp_id).authenticate_begin(
        _descriptors(known), user_verification=UserVerificationRequirement.REQUIRED, challenge=challenge
    )
    return _as_json(options)


def challenge_in(answer: str) -> bytes:
    """The challenge that an answer says it is for, unproven. Raises PasskeyRefused."""
    from fido2.webauthn import CollectedClientData

    def read() -> bytes:
        value = _parsed(answer)["response"]["clientDataJSON"]
        return CollectedClientData(_decoded(value)).challenge

    return _checked(read)


def credential_in(answer: str) -> Registered:
    """The credential that a registration speaks of, of which nothing is proven yet. Raises PasskeyRefused."""
    from fido2.webauthn import RegistrationResponse

    return _checked(lambda: _registered(RegistrationResponse.from_dict(_parsed(answer)).response.attestation_object))


def registered(answer: str, challenge: bytes, *, rp_id: str, origin: str) -> Registered:
    """The credential that was made for this challenge. Raises PasskeyRefused."""
    from fido2.webauthn import RegistrationResponse

    def check() -> Registered:
        read = RegistrationResponse.from_dict(_parsed(answer))
        _unframed(read.response.client_data)
        _server(rp_id, origin).register_complete(_state(challenge), read)
        return _registered(read.response.attestation_object)

    return _checked(check)


def asserted(answer: str, challenge: bytes, *, rp_id: str, origin: str, known: Iterable[Passkey]) -> Asserted:
    """Which of the known passkeys signed this challenge. Its counter isn't looked at. Raises PasskeyRefused."""
    from fido2.webauthn import AuthenticationResponse

    def check() -> Asserted:
        passkeys = {one.credential_id: one for one in known if one.rp_id == rp_id}
        read = AuthenticationResponse.from_dict(_parsed(answer))
        _unframed(read.response.client_data)
        credentials = [_credential(one) for one in passkeys.values()]
        found = _server(rp_id, origin).authenticate_complete(_state(challenge), credentials, read)
        return Asserted(
            passkey=passkeys[found.credential_id],
            client_data=bytes(read.response.client_data),
            authenticator_data=bytes(read.response.authenticator_data),
            signature=bytes(read.response.signature),
            counter=int(read.response.authenticator_data.counter),
        )

    return _checked(check)


def spki(public_key: bytes) -> bytes:
    """A COSE key as SubjectPublicKeyInfo (DER), which every library reads. Raises ValueError for another algorithm."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from fido2 import cbor

    cose = cast(Mapping[int, Any], cbor.decode(public_key))
    made: ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey
    match cose[3]:
        case -7 if cose[-1] == 1:
            x, y = (int.from_bytes(cose[name], "big") for name in (-2, -3))
            made = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        case -8 if cose[-1] == 6:
            made = ed25519.Ed25519PublicKey.from_public_bytes(cose[-2])
        case -257:
            n, e = (int.from_bytes(cose[name], "big") for name in (-1, -2))
            made = rsa.RSAPublicNumbers(e, n).public_key()
            if made.key_size < 2048:
                raise ValueError("the RSA key is too short")
        case _:
            raise ValueError("the key is of an algorithm that wasn't asked for")
    return made.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _server(rp_id: str, origin: str = "") -> Fido2Server:
    from fido2.server import Fido2Server
    from fido2.webauthn import (
        AttestationConveyancePreference,
        PublicKeyCredentialParameters,
        PublicKeyCredentialRpEntity,
        PublicKeyCredentialType,
    )

    server = Fido2Server(
        PublicKeyCredentialRpEntity(id=rp_id, name="GoEx"),
        attestation=AttestationConveyancePreference.NONE,
        verify_origin=lambda said: bool(origin) and said == origin,
    )
    kind = PublicKeyCredentialType.PUBLIC_KEY
    server.allowed_algorithms = [PublicKeyCredentialParameters(type=kind, alg=number) for number in _ALGORITHMS]
    return server


def _state(challenge: bytes) -> dict[str, Any]:
    from fido2.utils import websafe_encode
    from fido2.webauthn import UserVerificationRequirement

    return {"challenge": websafe_encode(challenge), "user_verification": UserVerificationRequirement.REQUIRED}


def _registered(attestation: Any) -> Registered:
    from fido2 import cbor

    data = attestation.auth_data.credential_data
    if data is None or not 0 < len(data.credential_id) <= _LONGEST_ID:
        raise ValueError("it holds no credential")
    key = cbor.encode(dict(data.public_key))
    counter = int(attestation.auth_data.counter)
    return Registered(credential_id=bytes(data.credential_id), public_key=key, spki=spki(key), counter=counter)


def _credential(passkey: Passkey) -> Any:
    from fido2 import cbor
    from fido2.cose import CoseKey
    from fido2.webauthn import Aaguid, AttestedCredentialData

    key = CoseKey.parse(cast(Mapping[int, Any], cbor.decode(passkey.public_key)))
    return AttestedCredentialData.create(Aaguid.NONE, passkey.credential_id, key)


def _descriptors(known: Iterable[Passkey]) -> list[Any]:
    from fido2.webauthn import PublicKeyCredentialDescriptor, PublicKeyCredentialType

    kind = PublicKeyCredentialType.PUBLIC_KEY
    return [PublicKeyCredentialDescriptor(type=kind, id=one.credential_id) for one in known]


def _unframed(client_data: CollectedClientData) -> None:
    said = json.loads(bytes(client_data))
    if said.get("crossOrigin", False) is not False or "topOrigin" in said:
        raise ValueError("it was asked for within another page")


def _as_json(options: Any) -> str:
    return json.dumps({**dict(options)["publicKey"], "timeout": _MILLISECONDS}, separators=(",", ":"))


def _decoded(text: str) -> bytes:
    from fido2.utils import websafe_decode

    return websafe_decode(text)


def _parsed(answer: str) -> dict[str, Any]:
    read = parse(answer, limit=LONGEST, what="The passkey's answer")
    if not isinstance(read, dict):
        raise ValueError("it isn't an object")
    return read


def _checked(check: Callable[[], T]) -> T:
    try:
        return check()
    except (GoexError, *_BAD) as error:
        why = error.message if isinstance(error, GoexError) else str(error)[:200] or type(error).__name__
        raise PasskeyRefused(
            f"The passkey's answer isn't accepted: {why}", next_step="Nothing was changed. Try again on the page."
        ) from error
