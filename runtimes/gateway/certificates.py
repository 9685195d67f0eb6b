"""Certificates: the gateway's own, shown to containers. Those of servers are `policies.tls`'s.

The authority is made anew in each process and its key never leaves the process's memory. A leaf is minted for a
host of the plan, once a process. HTTP/1.1 is the only protocol offered on either side.
"""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = timedelta(days=30)
_SKEW = timedelta(hours=1)


class Authority:
    """The certificate authority that this process's containers trust."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "GoEx gateway")])
        public = self._key.public_key()
        self._cert = (
            _builder(name, name, public)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(ca=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.ca_pem = self._cert.public_bytes(serialization.Encoding.PEM).decode("ascii")
        self._leaves: dict[str, bytes] = {}

    def context(self, host: str, mismatched: list[str]) -> ssl.SSLContext:
        """A server context for one connection to `host`. Another name in the handshake ends it and is noted."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        # No tickets: sessions would outlive the connection, and nothing here resumes.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        _load(context, self._leaf(host))
        expected = None if _is_address(host) else host

        def check(_: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> int | None:
            if name is None and expected is None:
                return None
            if name is not None and name.lower() == expected:
                return None
            mismatched.append(name or "")
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

        context.sni_callback = check
        return context

    def _leaf(self, host: str) -> bytes:
        if host not in self._leaves:
            name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
            alternative = x509.IPAddress(ip_address(host)) if _is_address(host) else x509.DNSName(host)
            cert = (
                _builder(name, self._cert.subject, self._leaf_key.public_key())
                .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
                .add_extension(_usage(ca=False), critical=True)
                .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
                .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
                .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._leaf_key.public_key()), critical=False)
                .add_extension(
                    x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
                )
                .sign(self._key, hashes.SHA256())
            )
            key = self._leaf_key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            self._leaves[host] = key + cert.public_bytes(serialization.Encoding.PEM)
        return self._leaves[host]


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFE)
    )


def _usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    """Give a key and certificate to `context`, which reads files only: from memory that has no name on disk."""
    fd = os.memfd_create("leaf", os.MFD_CLOEXEC)
    try:
        os.write(fd, pem)
        context.load_cert_chain(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
