"""The reversions part of the scripted daemon: what is there is scripted; reading and checking pairs is the real one."""

from __future__ import annotations

from typing import Any

from goex.daemon import reversions_service as real
from goex.rpc import reversions_pb2 as pb
from goex.rpc import reversions_pb2_grpc as rpc
from mapper import pairs
from mapper.catalog import Catalog
from policies.errors import GoexError
from policies.jsonvalue import canonical
from policies.reversions import Pair, undo_to_json
from tests.goex.cli.fake import PASSPHRASE, refuse

PROPOSED = """
method = "slack.pins.add"
[undo]
calls = [{ method = "pins.remove", arguments = { channel = "$request.channel", timestamp = "$request.timestamp" } }]
verify = { method = "pins.list", arguments = { channel = "$request.channel" } }
"""


def view(pair: Pair, **changed: Any) -> pb.PairView:
    undo = pair.undo
    facts: dict[str, Any] = {
        "hash": pair.hash,
        "method": pair.method_id,
        "source": pair.source,
        "standing": "unproven",
        "fits": real._fits(pair),
        "calls": [f"{pair.service}.{call.method}" for call in undo.calls],
        "verify": undo.verify.method if undo.verify is not None else "",
        "note": undo.note,
        "scopes": ["pins.remove: pins:write"],
    }
    return pb.PairView(**{**facts, **changed})


class FakeReversions(rpc.ReversionsServicer):
    """`reply` is what is listed; `presence` wants the passphrase."""

    def __init__(self) -> None:
        catalog = Catalog.bundled()
        pin, topic = catalog.method("slack.pins.add"), catalog.method("slack.conversations.setTopic")
        own = [pair for method in (pin, topic) if (pair := pairs.of_catalog(catalog, method)) is not None]
        why = 'slack.conversations.info: at $.channel.topic.value "old" was expected, "new" is there'
        self.reply = pb.ListPairsReply(
            pairs=[
                view(own[0], standing="proven", worked=2),
                view(own[1], standing="failed", failure=why),
            ]
        )
        self.presence = False
        self.added: list[pb.AddPairsRequest] = []

    def ListPairs(self, request: Any, context: Any) -> pb.ListPairsReply:
        shown = [one for one in self.reply.pairs if not request.failed or one.standing == "failed"]
        return pb.ListPairsReply(pairs=shown, trouble=self.reply.trouble, strict=self.reply.strict)

    def ShowPair(self, request: Any, context: Any) -> pb.ShowPairReply:
        for one in self.reply.pairs:
            if one.hash.startswith(request.hash) and len(request.hash) >= 6:
                use = pb.PairUse(action="ac-0007", result="worked", at="2026-01-02T03:04:05+00:00")
                method = Catalog.bundled().method(one.method)
                assert method.undo is not None
                undo = canonical(undo_to_json(method.undo)).decode()
                return pb.ShowPairReply(pair=one, undo_json=undo, uses=[use] * (one.standing == "proven"))
        refuse(context, "invalid", f"No pair begins with {request.hash!r}.")
        raise AssertionError

    def CheckPairs(self, request: Any, context: Any) -> pb.CheckPairsReply:
        return pb.CheckPairsReply(pairs=self._read(request.name, request.text, context))

    def ProposePair(self, request: Any, context: Any) -> pb.CheckPairsReply:
        (shown,) = self._read("proposed.toml", PROPOSED, context)
        shown.pair.source = "model"
        return pb.CheckPairsReply(pairs=[shown])

    def AddPairs(self, request: Any, context: Any) -> pb.AddPairsReply:
        if self.presence and request.passphrase != PASSPHRASE:
            refuse(context, "presence", "Show yourself.")
        self.added.append(request)
        text = request.text or PROPOSED
        return pb.AddPairsReply(pairs=[one.pair for one in self._read(request.name, text, context)])

    def RemovePair(self, request: Any, context: Any) -> pb.RemovePairReply:
        return pb.RemovePairReply(method="slack.pins.add")

    def RestorePairs(self, request: Any, context: Any) -> pb.RestorePairsReply:
        return pb.RestorePairsReply(count=3)

    def _read(self, name: str, text: str, context: Any) -> list[pb.ShowPairReply]:
        try:
            found = pairs.read_file(text, name, Catalog.bundled())
        except GoexError as error:
            refuse(context, error.code, error.message)
        return [
            pb.ShowPairReply(pair=view(pair), undo_json=canonical(undo_to_json(pair.undo)).decode()) for pair in found
        ]
