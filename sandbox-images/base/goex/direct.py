"""What connects without a proxy: every name is one of loopback's addresses, and what is said to it there goes to the
gateway as a CONNECT to that name. Standard library only.

Rules: an address stands for the one name that was asked for, for the job's life; a question about anything but a
name's IPv4 address is answered with nothing, and so is one beyond the last address. Nothing of a name or a connection
is decided here: the gateway does that, as it does for the proxy.
"""

import contextlib
import socket
import struct

NAMES_PORT, TLS_PORT = 53, 443
_FIRST = 0x7F010001  # 127.1.0.1
_MOST = 4096  # names
_LONGEST = 65536  # bytes of the gateway's answer to a CONNECT
_A, _IN = 1, 1
_NOTHING, _NO_SUCH_NAME = 0, 3


class Names:
    """A name server: each name that is asked for gets an address of its own."""

    def __init__(self):
        self._addresses = {}  # name -> address
        self._names = {}  # address -> name

    def name_of(self, address):
        """The name that an address stands for; None where it stands for none."""
        return self._names.get(address)

    def answer(self, question):
        """The answer to a question, as DNS has them; None for what is no question."""
        if len(question) < 17 or question[2] & 0x80 or question[4:6] != b"\0\1":
            return None
        labels, place = [], 12
        while place < len(question) and question[place]:
            size = question[place]
            if size > 63:
                return None
            labels.append(question[place + 1 : place + 1 + size])
            place += 1 + size
        if len(question) < place + 5:
            return None
        asked = question[12 : place + 5]
        kind, group = struct.unpack("!HH", asked[-4:])
        address = self._address(labels) if group == _IN else None
        code = _NOTHING if address is not None else _NO_SUCH_NAME
        answers = 1 if address is not None and kind == _A else 0
        head = question[:2] + struct.pack("!BBHHHH", 0x84 | question[2] & 1, 0x80 | code, 1, answers, 0, 0)
        if not answers:
            return head + asked
        return head + asked + struct.pack("!HHHIH", 0xC00C, _A, _IN, 60, 4) + socket.inet_aton(address)

    def _address(self, labels):
        try:
            name = b".".join(labels).decode("ascii").lower()
        except UnicodeDecodeError:
            return None
        if not name or name.endswith(".arpa") or not all(one.isalnum() or one in "-._" for one in name):
            return None
        known = self._addresses.get(name)
        if known is None and len(self._addresses) < _MOST:
            known = socket.inet_ntoa(struct.pack("!I", _FIRST + len(self._addresses)))
            self._addresses[name], self._names[known] = known, name
        return known


class Asking:
    """A connection whose CONNECT the gateway has yet to answer."""

    __slots__ = ("inner", "outer", "said")

    def __init__(self, inner, outer, name):
        self.inner, self.outer, self.said = inner, outer, b""
        where = f"{name}:{TLS_PORT}"
        outer.send(f"CONNECT {where} HTTP/1.1\r\nhost: {where}\r\n\r\n".encode())

    def heard(self):
        """Read what the gateway says. Returns what came behind its yes, None while it isn't known. Raises OSError where
        it says no."""
        try:
            said = self.outer.recv(_LONGEST)
        except BlockingIOError:
            return None
        self.said += said
        head, end, rest = self.said.partition(b"\r\n\r\n")
        if not said or len(self.said) > _LONGEST or (end and head.split(b" ", 2)[1:2] != [b"200"]):
            raise ConnectionRefusedError
        return rest if end else None


def sockets():
    """The two sockets, bound; none where a port below 1024 can't be had: then names lead nowhere, as without this."""
    found = []
    try:
        names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        found.append(names)
        names.bind(("127.0.0.1", NAMES_PORT))
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        found.append(listener)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("0.0.0.0", TLS_PORT))  # all of loopback: there is no other interface
        listener.listen(128)
    except OSError:
        for one in found:
            with contextlib.suppress(OSError):
                one.close()
        return ()
    for one in found:
        one.setblocking(False)
    return tuple(found)
