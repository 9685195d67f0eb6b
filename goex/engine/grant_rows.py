"""Grants as rows of the tables, and back; and what of them is under their MAC."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from goex.journal.chain import moment, stamp
from goex.journal.schema import UNBOUND
from policies.grants import Grant, Width
from policies.jsonvalue import canonical


def body(grant: Grant) -> bytes:
    """What the MAC of a grant is over: all but how often it was used, and of a task's that, too."""
    row = row_of(grant)
    if row["bounds"] == UNBOUND:
        del row["bounds"]  # as it was before there were any
    if grant.width is Width.TASK:
        return canonical(["grant", row, grant.uses])  # whoever puts an older count back would give calls for nothing
    return canonical(["grant", row])


def uses_body(grant: Grant) -> bytes:
    """What the MAC of its uses is over. A row that is put back from a copy makes it end earlier, never later."""
    return canonical(["uses", grant.id, *uses_of(grant).values()])


def row_of(grant: Grant) -> dict[str, Any]:
    """Its row of the table `grants`, without the MAC."""
    return {
        "id": grant.id,
        "agent": grant.agent,
        "service": grant.service,
        "account": grant.account,
        "scope": grant.scope,
        "width": grant.width.value,
        "constraints": canonical(dict(grant.constraints)).decode("utf-8"),
        "bounds": canonical(_bounds(grant)).decode("utf-8"),
        "digest": grant.digest,
        "session": grant.session,
        "created": stamp(grant.created),
        "expires": stamp(grant.expires) if grant.expires else "",
        "by": grant.by,
        "why": grant.why,
        "revoked": stamp(grant.revoked) if grant.revoked else "",
        "used": stamp(grant.used) if grant.used else "",
    }


def _bounds(grant: Grant) -> dict[str, Any]:
    made = {"methods": grant.methods, "only": grant.only, "entries": grant.entries}
    if grant.free:
        made["free"] = grant.free
    of_task = {"times": grant.times, "within": grant.within}
    return {**made, **(of_task if grant.width is Width.TASK else {})}


def uses_of(grant: Grant) -> dict[str, Any]:
    """Its row of the table `grant_uses`, without id and MAC."""
    return {"uses": grant.uses, "last_used": stamp(grant.last_used) if grant.last_used else ""}


def grant_from(row: Mapping[str, Any], uses: Mapping[str, Any] | None = None) -> Grant:
    """The grant of these rows."""
    bounds = json.loads(row["bounds"])
    return Grant(
        id=row["id"],
        agent=row["agent"],
        service=row["service"],
        account=row["account"],
        scope=row["scope"],
        width=Width(row["width"]),
        constraints=json.loads(row["constraints"]),
        methods=tuple(bounds["methods"]),
        only=bounds["only"],
        free=tuple(bounds.get("free", ())),
        entries=bounds["entries"],
        digest=row["digest"],
        session=row["session"],
        created=moment(row["created"]),
        expires=moment(row["expires"]) if row["expires"] else None,
        by=row["by"],
        why=row["why"],
        revoked=moment(row["revoked"]) if row["revoked"] else None,
        used=moment(row["used"]) if row["used"] else None,
        uses=uses["uses"] if uses else 0,
        last_used=moment(uses["last_used"]) if uses and uses["last_used"] else None,
        times=bounds.get("times", 0),
        within=bounds.get("within"),
    )


def facts(grant: Grant) -> dict[str, Any]:
    """What the journal says of a grant that is given."""
    row = row_of(grant)
    named = {name: row[name] for name in ("id", "service", "account", "scope", "width", "expires", "constraints")}
    made = {**named, "methods": list(grant.methods), "only": grant.only, "session": grant.session}
    made |= {"free": list(grant.free)} if grant.free else {}
    return {**made, "times": grant.times, "within": grant.within} if grant.width is Width.TASK else made
