"""What an OpenAPI document says about logins: the endpoints of its OAuth2 and OpenID Connect schemes. Pure.

Rules: a document is a stranger's, and a token would go where it says: it is only noted here, and a login shows it to
the person first. Of several schemes the first with an issuer counts, then the first with an authorization code; an
address that isn't a plain https one (or http on this very machine) is a problem with its place, and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from mapper.importing.import_report import BadPart
from mapper.importing.pointers import Keys
from mapper.importing.servers import on_this_machine
from policies.accounts import Origin
from policies.errors import InvalidInput
from policies.services import OAuth

_URL = re.compile(r"https?://[!-~]{1,500}")
_METADATA = "/.well-known/openid-configuration"
# The flows that a desktop program can use, by their names in OpenAPI 3 and Swagger 2; the implicit one hands tokens to
# the browser, and the password one a password to us.
_CODE = ("authorizationCode", "accessCode")
_OTHERS = ("deviceAuthorization", "clientCredentials", "application")


def login_of(scheme: dict[str, Any], keys: Keys, problems: list[BadPart]) -> OAuth | None:
    """The endpoints that one scheme names; None where there are none that can be used."""
    if scheme.get("type") == "openIdConnect":
        url = _address(scheme.get("openIdConnectUrl"), (*keys, "openIdConnectUrl"), problems)
        if not url.endswith(_METADATA):
            return None
        return OAuth(issuer=url.removesuffix(_METADATA), source="imported")
    flows = scheme.get("flows")
    if not isinstance(flows, dict):
        flows = {scheme.get("flow"): scheme}
    for name in (*_CODE, *_OTHERS):
        flow = flows.get(name)
        if not isinstance(flow, dict):
            continue
        here = (*keys, "flows", name) if "flows" in scheme else keys
        made = OAuth(
            token_endpoint=_address(flow.get("tokenUrl"), (*here, "tokenUrl"), problems),
            authorization_endpoint=(
                _address(flow.get("authorizationUrl"), (*here, "authorizationUrl"), problems) if name in _CODE else ""
            ),
            device_endpoint=_address(
                flow.get("deviceAuthorizationUrl"), (*here, "deviceAuthorizationUrl"), problems, needed=False
            ),
            source="imported",
        )
        if made.token_endpoint:
            return made
    return None


def chosen(logins: Iterable[OAuth]) -> OAuth | None:
    """The one of a document's logins that is offered: an issuer says more than endpoints do."""
    found = tuple(logins)
    ranked = (*(one for one in found if one.issuer), *(one for one in found if one.authorization_endpoint), *found)
    return next(iter(ranked), None)


def _address(url: Any, keys: Keys, problems: list[BadPart], *, needed: bool = True) -> str:
    if url is None and not needed:
        return ""
    try:
        if not isinstance(url, str) or not _URL.fullmatch(url) or "#" in url:
            raise ValueError
        origin = Origin.parse(url)
        if origin.scheme == "http" and not on_this_machine(origin.host):
            raise ValueError
    except (InvalidInput, ValueError):
        problems.append(BadPart(f"{str(url)[:100]!r} isn't a plain https address, so no login goes there", *keys))
        return ""
    return url
