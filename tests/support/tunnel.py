"""A tunnel to the page, as a person has one: TLS at a name of its own, and every byte passed on to localhost."""

from __future__ import annotations

import socket
import ssl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


@contextmanager
def tunnel(name: str, listener: socket.socket, port: int) -> Iterator[None]:
    """Pass what comes to `listener` on to localhost's port, until the block ends."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        Path(file.name).write_bytes(_certificate(name))
        context.load_cert_chain(file.name)
    open_ones: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                outer, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=pass_on, args=(outer,), daemon=True).start()

    def pass_on(outer: socket.socket) -> None:
        with suppress(OSError):
            outer = context.wrap_socket(outer, server_side=True)
            inner = socket.create_connection(("127.0.0.1", port))
            open_ones.extend((outer, inner))
            threading.Thread(target=pump, args=(inner, outer), daemon=True).start()
            pump(outer, inner)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield
    finally:
        for one in (listener, *open_ones):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError, ValueError):
        while data := source.recv(65_536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


def _certificate(name: str) -> bytes:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private + made.public_bytes(Encoding.PEM)
