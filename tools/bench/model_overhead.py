"""`map.model_overhead.p50_ms`: what GoEx adds to a conversation of three turns with a model, without the model:
ranking, prompts, a search, a description, validation, least scopes and the vote, in process, over the full catalog.

The floor writes and reads the same prompts as JSON, which any client must.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import cycle

from mapper.catalog import Catalog
from mapper.context import NOTHING_TOLD, Context
from mapper.conversation import Conversation, Find
from mapper.embedded import EmbeddedProposer
from mapper.mapper import Mapper
from mapper.readings import Reading
from mapper.techniques import CONVERSATION, Technique
from policies.actions import Intent
from policies.services import Method
from tools.bench import catalogs
from tools.bench.catalogs import Built
from tools.bench.measure import Row, in_turn, row

NAME = "map.model_overhead.p50_ms"
_POST = "slack.chat.postMessage"
_TURNS = (
    ("find", {"words": "post a message to a channel"}),
    ("describe", {"methods": [_POST]}),
    ("propose", {"calls": [{"name": _POST, "arguments": {"channel": "#ops", "text": "deploy is done"}}]}),
)


class Scripted:
    """Three turns, always the same; `prompts` are those of the latest conversation."""

    name = "scripted"
    technique = Technique.named(CONVERSATION, samples=1)

    def __init__(self) -> None:
        self.prompts: list[str] = []

    async def propose(
        self,
        intent: str,
        methods: Sequence[Method],
        catalog: Catalog,
        more: Callable[[Sequence[Reading]], int] | None = None,
        context: Context = NOTHING_TOLD,
        find: Find | None = None,
    ) -> tuple[Reading, ...]:
        talk = Conversation(catalog, find or (lambda words: ()), intent, methods, context)
        self.prompts = []
        for name, arguments in _TURNS:
            self.prompts.append(json.dumps(talk.prompt().to_json()))
            talk.hear({"tool_calls": [{"function": {"name": name, "arguments": json.dumps(arguments)}}]})
        assert talk.reading is not None
        return (talk.reading,)

    async def answer(self, intent: str, outcome_json: str) -> str:
        return ""


async def measure(built: Built | None = None, rounds: int = 300) -> tuple[Row, ...]:
    catalog = Catalog.open((built or catalogs.full()).path)
    model = Scripted()
    mapper = Mapper(catalog, EmbeddedProposer(catalog), model)
    asked = cycle(catalogs.requests())

    async def value() -> None:
        await mapper.map(Intent(text=next(asked)))

    async def floor() -> None:
        for prompt in model.prompts:
            json.dumps(json.loads(prompt))

    timings = await in_turn(value, floor, rounds=rounds, seconds=20, warm=20)
    if catalog.store is not None:
        catalog.store.close()
    return (row(NAME, timings[0], "read and write the same prompts", timings[1]),)
