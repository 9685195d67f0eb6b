"""The ways of asking a model that can be chosen, by name. Those of the thesis's evaluation, and our own.

* `few-shot`: worked examples and no retrieval; the model must know the methods. One sample.
* `retrieval`: the retrieved methods stand in the prompt. One sample.
* `sc3`, `sc5`, `sc10`: the same, self-consistent over so many samples.
* `adaptive` (the default): the same with as few samples as settle the vote (`mapper.stopping_rule`).
* `conversation`: each sample is a conversation in which the model looks into the catalog (`mapper.conversation`), as
  few as settle the vote, at most five.

With `+scopes`, which a conversation doesn't have, the prompt also lists scopes under symbolic names with what they
allow, and the model says which ones its calls need. That is a claim: it is recorded beside the mapping's own scopes,
which come from the catalog alone. No prompt says what is granted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mapper.stopping_rule import Plan
from policies.errors import InvalidInput

_SAMPLES = {"few-shot": 1, "retrieval": 1, "sc3": 3, "sc5": 5, "sc10": 10, "adaptive": 10, "conversation": 5}
CONVERSATION = "conversation"
TURNS = 6  # that a model has in one conversation, at most
NAMES = tuple(
    name + suffix for name in _SAMPLES for suffix in ("", "+scopes") if name + suffix != f"{CONVERSATION}+scopes"
)
DEFAULT = "adaptive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Technique:
    """One way of asking. `samples` at most; exactly as many unless `adaptive`."""

    name: str
    samples: int
    retrieval: bool = True
    adaptive: bool = False
    scopes: bool = False
    conversation: bool = False

    @classmethod
    def named(cls, name: str, *, samples: int | None = None) -> Technique:
        """The technique of that name. Only those that stop early take other `samples`. Raises InvalidInput."""
        if name not in NAMES:
            raise InvalidInput(f"There is no method {name[:60]!r}.", next_step=f"There are: {', '.join(NAMES)}.")
        base = name.removesuffix("+scopes")
        adaptive = base in ("adaptive", CONVERSATION)
        if samples is not None and not adaptive:
            raise InvalidInput(
                f"The method {name} always asks for {_SAMPLES[base]} samples.",
                next_step="Leave the number of samples out, or use the method adaptive.",
            )
        return cls(
            name=name,
            samples=samples or _SAMPLES[base],
            retrieval=base != "few-shot",
            adaptive=adaptive,
            scopes=name != base,
            conversation=base == CONVERSATION,
        )

    @classmethod
    def fixed(cls, samples: int) -> Technique:
        """Retrieval in context with exactly so many samples."""
        return cls(name=f"sc{samples}" if samples > 1 else "retrieval", samples=samples)

    def all_at_once(self) -> Technique:
        """The same, asking for all its samples each time."""
        return replace(self, adaptive=False)

    def plan(self, confidence: float, threshold: float) -> Plan:
        """How many samples to ask for. Raises InvalidInput for numbers that can't be meant."""
        return Plan(k=self.samples, adaptive=self.adaptive, confidence=confidence, threshold=threshold)
