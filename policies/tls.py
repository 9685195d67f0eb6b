"""How the certificate of a server is verified: for its name, by the system's authorities or the account's own."""

from __future__ import annotations

import functools
import ssl
from pathlib import Path

from policies.errors import InvalidInput

_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


@functools.lru_cache(maxsize=32)
def client_context(ca_pem: str) -> ssl.SSLContext:
    """A client context that verifies names and trusts `ca_pem`, or the system's authorities when it is "".

    Raises InvalidInput when `ca_pem` isn't a certificate.
    """
    try:
        context = ssl.create_default_context(cadata=ca_pem or None)
    except (ssl.SSLError, ValueError) as error:
        raise InvalidInput(
            "The account's CA file holds no certificate.", next_step="Put the account in again with a PEM file."
        ) from error
    if not ca_pem and not context.cert_store_stats()["x509_ca"]:
        # A Python that was built elsewhere may look in a place that this system doesn't have.
        found = next((bundle for bundle in _BUNDLES if Path(bundle).is_file()), None)
        if found:
            context.load_verify_locations(found)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
