"""A security key over USB: at the terminal it signs what a passkey signs on the page.

Rules: it signs the daemon's challenge over exactly the call, for an origin that no page has, after the key itself
verified the person. A PIN is typed at the controlling terminal, goes to the key alone, encrypted, and is kept by
nobody.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from policies.errors import Denied

if TYPE_CHECKING:
    from fido2.hid import CtapHidDevice
    from fido2.hid.base import HidDescriptor

    from goex.client import Client
    from goex.rpc import passkeys_pb2 as pb


class Person(Protocol):
    """Who touches the key and knows its PIN."""

    def tell(self, text: str) -> None: ...

    def secret(self, prompt: str) -> str: ...


_TRIES = 3  # PINs; a key locks itself after some more
_ELSEWHERE = "Use the page: goex web"


def plugged_in() -> bool:
    """Whether there is a key that this user may open."""
    try:
        return bool(_descriptors())
    except (OSError, NotImplementedError):
        return False


def _descriptors() -> list[HidDescriptor]:
    return list(_platform().list_descriptors())


def _platform() -> Any:
    """The library's own part for this system, which it doesn't type."""
    from fido2 import hid

    return hid


def sign(client: Client, wanted: pb.ChallengeRequest, person: Person) -> str:
    """Return the key's assertion of what is wanted, as JSON. Raises GoexError."""
    from fido2.ctap import CtapError
    from fido2.hid import CtapHidDevice

    try:
        devices = [CtapHidDevice(one, _platform().open_connection(one)) for one in _descriptors()]
    except (OSError, CtapError) as error:
        raise Denied(f"The security key can't be reached: {error}", next_step=_ELSEWHERE) from error
    try:
        if len(devices) != 1:
            raise Denied(f"{len(devices)} security keys are plugged in.", next_step="Leave one, and try again.")
        return _signed(devices[0], *_challenge(client, wanted), person)
    finally:
        for device in devices:
            device.close()


def _challenge(client: Client, wanted: pb.ChallengeRequest) -> tuple[str, str]:
    """What the key is asked, and for which origin: of this machine's passkeys, or else of the first that there is."""
    from goex.page_address import HOST, OLD_HOST, TERMINAL
    from goex.rpc import passkeys_pb2 as pb

    found = client.call("Passkeys/List", pb.ListPasskeysRequest(), pb.ListPasskeysReply).passkeys
    hosts = [one.rp_id for one in found]
    host = next((one for one in (HOST, OLD_HOST, *hosts) if one in hosts), HOST)
    wanted.origin = f"{TERMINAL}{host}"
    return client.call("Passkeys/Challenge", wanted, pb.ChallengeReply).options_json, wanted.origin


def _signed(device: CtapHidDevice, options: str, origin: str, person: Person) -> str:
    from fido2.client import ClientError, DefaultClientDataCollector, Fido2Client, UserInteraction
    from fido2.ctap import CtapError
    from fido2.webauthn import PublicKeyCredentialRequestOptions

    class Interaction(UserInteraction):
        def prompt_up(self) -> None:
            person.tell("Touch your security key.")

        def request_pin(self, permissions: object, rp_id: str | None) -> str:
            return person.secret("PIN of your security key: ")

        def request_uv(self, permissions: object, rp_id: str | None) -> bool:
            person.tell("Touch your security key; it knows your finger.")
            return True

    why = ""
    for _ in range(_TRIES):
        try:
            collector = DefaultClientDataCollector(origin, verify=lambda *_: True)  # it knows web pages alone
            key = Fido2Client(device, collector, user_interaction=Interaction())
            asked = PublicKeyCredentialRequestOptions.from_dict(json.loads(options))
            return json.dumps(dict(key.get_assertion(asked).get_response(0)))
        except ClientError as error:
            cause = error.cause
            code = cause.code if isinstance(cause, CtapError) else None
            why = f"{code.name if isinstance(code, CtapError.ERR) else error.code.name}".lower().replace("_", " ")
            if code != CtapError.ERR.PIN_INVALID:
                break
            person.tell("That PIN is wrong.")
        except OSError as error:
            why = str(error)
            break
    raise Denied(f"The security key signed nothing: {why}.", next_step=f"Is it one of goex passkey list? {_ELSEWHERE}")
