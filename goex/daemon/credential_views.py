"""What a prompt says of the credentials behind it: who holds them to what was asked, and what they would open."""

from __future__ import annotations

from collections.abc import Mapping

from goex.engine.consent import AccountKey, Opens
from goex.rpc import goex_pb2 as pb


def say_credentials(approval: pb.Approval, opens: Mapping[AccountKey, Opens]) -> pb.Approval:
    """The approval, with each need's credential said."""
    for need in approval.needs:
        found = opens.get((need.service, need.account))
        if found is not None:
            need.held_by = found.held_by
            need.held_by_seen = found.seen
            need.opens.extend(found.scopes or ())
            need.opens_all = found.scopes is None
    return approval
