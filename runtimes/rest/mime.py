"""A letter from its parts: an Internet message (RFC 5322), base64url, as services take it whole. Pure.

Rules: plain text, to addresses that are written out (a name beside an address could show another one). No part can
begin another header: what could is refused, and what was written is read back with a parser that didn't write it and
compared, recipient by recipient, before it counts. Sender, date and message id are the service's to set, so equal
parts give equal bytes. A part can't come from an answer: nobody would have seen to whom, or what, before it was sent.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

from policies.errors import InvalidInput
from runtimes.rest.references import refs_in

MAX_RECIPIENTS = 100
_TEXT = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_ADDRESS = re.compile(rf"(?=.{{3,254}}\Z){_TEXT}(\.{_TEXT})*@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
_MESSAGE_ID = re.compile(r"<[!-;=?-~]{1,250}>")  # printable ASCII without <, > and spaces
_LINE_ENDS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_PLAIN_SUBJECT = re.compile(r"[!-~]+( [!-~]+)*")
_RECIPIENTS = {"to": "To", "cc": "Cc", "bcc": "Bcc"}


def letter(method: str, parts: Mapping[str, Any]) -> str:
    """The letter of `parts` (to, cc, bcc, subject, body, inReplyTo; each may be missing), as base64url.

    Raises InvalidInput, naming `method` and the part, for whatever can't be written so that it says just that.
    """
    if refs_in(parts):
        raise InvalidInput(
            f"{method}: a part of a letter can't come from an answer.",
            next_step="Make the first call by itself, then this one with the text and the addresses written out.",
        )
    headers: list[tuple[str, str]] = []
    for part, header in _RECIPIENTS.items():
        addresses = _addresses(method, part, parts.get(part, []))
        if addresses:
            headers.append((header, ",\r\n ".join(addresses)))
    if sum(len(parts.get(part, [])) for part in _RECIPIENTS) > MAX_RECIPIENTS:
        raise InvalidInput(f"{method}: a letter goes to at most {MAX_RECIPIENTS} addresses.")
    if parts.get("subject"):
        headers.append(("Subject", _subject(method, parts["subject"])))
    if parts.get("inReplyTo"):
        headers += [(name, _message_id(method, parts["inReplyTo"])) for name in ("In-Reply-To", "References")]
    headers += [
        ("MIME-Version", "1.0"),
        ("Content-Type", 'text/plain; charset="utf-8"'),
        ("Content-Transfer-Encoding", "base64"),
    ]
    text = "\r\n".join(re.split(r"\r\n|\r|\n", parts.get("body", ""))).encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in headers)
    data = head.encode("ascii") + b"\r\n" + base64.encodebytes(text).replace(b"\n", b"\r\n")
    _read_back(method, data, parts, [name for name, _ in headers], text)
    return base64.urlsafe_b64encode(data).decode("ascii")


def _addresses(method: str, part: str, addresses: Any) -> list[str]:
    for address in addresses:
        # An encoded word in an address is decoded by some readers, into another address.
        if not isinstance(address, str) or not _ADDRESS.fullmatch(address) or "=?" in address:
            raise InvalidInput(
                f"{method}, {part}: {str(address)[:80]!r} isn't a plain e-mail address.",
                next_step="Write it like name@example.org, without a name beside it; several as a list.",
            )
    return list(addresses)


def _subject(method: str, subject: Any) -> str:
    """As it is where that is one short line of ASCII, else in encoded words (RFC 2047)."""
    if not isinstance(subject, str) or _LINE_ENDS.search(subject):
        raise InvalidInput(f"{method}, subject: it must be one line of text.")
    if len(subject) <= 60 and _PLAIN_SUBJECT.fullmatch(subject) and "=?" not in subject:
        return subject
    words, chunk = [], ""
    for char in subject:
        if len((chunk + char).encode()) > 42:  # an encoded word is at most 75 long, and holds whole characters
            words.append(chunk)
            chunk = ""
        chunk += char
    return "\r\n ".join(f"=?utf-8?b?{base64.b64encode(word.encode()).decode()}?=" for word in (*words, chunk))


def _message_id(method: str, value: Any) -> str:
    if not isinstance(value, str) or not _MESSAGE_ID.fullmatch(value):
        raise InvalidInput(f"{method}, inReplyTo: a message id looks like <abc@example.org>.")
    return value


def _read_back(method: str, data: bytes, parts: Mapping[str, Any], names: list[str], text: bytes) -> None:
    read = message_from_bytes(data, policy=SMTP)
    assert isinstance(read, EmailMessage)
    same = read.keys() == names and not read.is_multipart() and read.get_payload(decode=True) == text
    for part, header in _RECIPIENTS.items():
        found = [address.addr_spec for field in read.get_all(header, []) for address in field.addresses]
        same = same and found == list(parts.get(part, []))
    if not same or (read["subject"] or "") != parts.get("subject", ""):
        raise InvalidInput(
            f"{method}: this letter can't be written so that every reader reads it alike.",
            next_step="Use plain addresses and a subject without unusual characters.",
        )
