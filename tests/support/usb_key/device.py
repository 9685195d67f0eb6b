"""A security key of software behind the packets of CTAP HID: CTAP 2.0 with a PIN (protocol two), one credential.

What it is (credential, counter, PIN) is in a JSON file, which outlives the process; what it was asked is in it, too.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections import deque
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from fido2 import cbor, hid
from fido2.ctap2.pin import PinProtocolV2
from fido2.hid.base import CtapHidConnection, HidDescriptor

_INIT, _CBOR, _KEEPALIVE = 0x06, 0x10, 0x3B
_CHANNEL, _SIZE = b"\x00\x00\x00\x07", 64
_INVALID_COMMAND, _NO_CREDENTIALS, _PIN_INVALID, _PIN_AUTH_INVALID = b"\x01", b"\x2e", b"\x31", b"\x33"
_TOUCH_WANTED = b"\x02"


class SoftwareKey(CtapHidConnection):
    """One connection to it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._pins = PinProtocolV2()
        self._agreement = ec.generate_private_key(ec.SECP256R1())
        self._token = bytes(range(32))
        self._out: deque[bytes] = deque()
        self._data, self._left, self._command, self._to = b"", 0, 0, b""

    def close(self) -> None:
        return

    def read_packet(self) -> bytes:
        return self._out.popleft()

    def write_packet(self, data: bytes) -> None:
        if data[4] & 0x80:
            self._to, self._command = data[:4], data[4] & 0x7F
            self._left, data, self._data = int.from_bytes(data[5:7]), data[7:], b""
        else:
            data = data[5:]
        self._data += data[: self._left]
        self._left -= min(self._left, len(data))
        if not self._left:
            self._answer()

    def _answer(self) -> None:
        if self._command == _INIT:
            self._send(_INIT, self._data + _CHANNEL + bytes([2, 1, 0, 0, 0x04 | 0x08]))
        elif self._command == _CBOR:
            given: Any = cbor.decode(self._data[1:]) if len(self._data) > 1 else {}
            self._send(_CBOR, self._called(self._data[0], given))

    def _send(self, command: int, data: bytes) -> None:
        head, number = bytes([0x80 | command]) + len(data).to_bytes(2), 0
        while True:
            room = _SIZE - 4 - len(head)
            self._out.append((self._to + head + data[:room]).ljust(_SIZE, b"\0"))
            data = data[room:]
            if not data:
                return
            head, number = bytes([number]), number + 1

    def _called(self, command: int, given: Any) -> bytes:
        match command:
            case 0x04:
                options = {"rk": True, "up": True, "clientPin": True}
                return b"\0" + cbor.encode({1: ["FIDO_2_0"], 3: bytes(16), 4: options, 5: 1200, 6: [2]})
            case 0x06 if given[2] == 2:
                numbers = self._agreement.public_key().public_numbers()
                x, y = numbers.x.to_bytes(32), numbers.y.to_bytes(32)
                return b"\0" + cbor.encode({1: {1: 2, 3: -25, -1: 1, -2: x, -3: y}})
            case 0x06:
                return self._pin_token(given)
            case 0x02:
                return self._assertion(given)
        return _INVALID_COMMAND

    def _pin_token(self, given: Any) -> bytes:
        x, y = (int.from_bytes(given[3][name]) for name in (-2, -3))
        peer = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        shared = self._pins.kdf(self._agreement.exchange(ec.ECDH(), peer))
        pin = json.loads(self._file.read_text())["pin"]
        if self._pins.decrypt(shared, given[6]) != hashlib.sha256(pin.encode()).digest()[:16]:
            return _PIN_INVALID
        return b"\0" + cbor.encode({2: self._pins.encrypt(shared, self._token)})

    def _assertion(self, given: Any) -> bytes:
        state = json.loads(self._file.read_text())
        id, touched = bytes.fromhex(state["credential_id"]), given.get(5, {}).get("up", True)
        if given[6] != self._pins.authenticate(self._token, given[2]):
            return _PIN_AUTH_INVALID
        if touched:
            self._send(_KEEPALIVE, _TOUCH_WANTED)
        if given[1] != state["rp_id"] or id not in [one["id"] for one in given[3]]:
            return _NO_CREDENTIALS
        if touched:
            state["counter"] += 1
            self._file.write_text(json.dumps(state))
        flags = 0x05 if touched else 0x04
        data = hashlib.sha256(given[1].encode()).digest() + struct.pack(">BI", flags, state["counter"])
        key = load_pem_private_key(state["key"].encode(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        signature = key.sign(data + given[2], ec.ECDSA(hashes.SHA256()))
        return b"\0" + cbor.encode({1: {"id": id, "type": "public-key"}, 2: data, 3: signature})


def plug_in(file: str) -> None:
    """Let `fido2` find it as the one device on USB."""
    found = HidDescriptor(file, 0x1050, 0x0407, _SIZE, _SIZE, "Software key", None)
    hid.list_descriptors = lambda: iter([found])  # type: ignore[assignment]  # as if it were plugged in
    hid.open_connection = lambda descriptor: SoftwareKey(Path(descriptor.path))  # type: ignore[assignment]
