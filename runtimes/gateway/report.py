"""What the daemon is told: of each request that it leaves, and how it ended; of what was refused.

The daemon has taken note of a request (`sending`) before its first byte leaves, and of how it ended (`answered`) before
the end of its answer reaches the container. An `Exchange` with status 0 means that there is no answer: if `sending` was
told, what happened isn't known; if it wasn't, the server has certainly not seen the request.
"""

from __future__ import annotations

from policies.display_text import escape, shorten
from policies.errors import GoexError
from policies.jsonvalue import JsonValue
from runtimes.gateway.admission import Admission, No, Policy, Ready, Refused
from runtimes.gateway.contract import Observer
from runtimes.gateway.plan import Exchange, MethodRule, Refusal
from runtimes.gateway.redactor import Redactor
from runtimes.gateway.response_filter import verdict
from runtimes.gateway.response_values import Kind

MAX_REFUSALS = 100


class Unreported(GoexError):
    """The daemon didn't take an answer, so the container doesn't get its end either."""

    code = "unreported"


class Reporter:
    """Tells the daemon of one action's requests."""

    def __init__(self, observer: Observer, policy: Policy) -> None:
        self.observer = observer
        self.policy = policy
        self._refusals = 0

    @property
    def over(self) -> bool:
        """Whether so much was refused that nothing more is taken."""
        return self._refusals >= MAX_REFUSALS

    async def refused(self, method: str, target: str, no: No) -> None:
        """Report a refusal; the last one that is reported ends the action."""
        self._refusals += no.kind != "busy"
        if self._refusals > MAX_REFUSALS:
            return
        reason = no.reason
        if self.over:
            reason = f"{reason}; that was the {MAX_REFUSALS}th refusal, and nothing more is taken"
            self.policy.stop("too much was refused")
        await self.observer.refused(Refusal(
            reason=shorten(escape(reason), 300)[0], method=shorten(escape(method), 20)[0],
            target=shorten(escape(target), 2000)[0], kind=no.kind, method_id=no.method_id,
        ))  # fmt: skip


class RequestReport:
    """What is told of one admitted request, each once."""

    def __init__(self, reporter: Reporter, admission: Admission, redactor: Redactor) -> None:
        self.reporter = reporter
        self.redactor = redactor
        self._admission = admission
        self._due = admission.judged  # the daemon waits for how it ended
        self.status = 0
        self.size = 0  # bytes of the answer's body
        self.replayed = False
        self.failed = "it was broken off"

    async def sending(self, ready: Ready) -> None:
        """The request is about to leave. Raises Refused where the daemon doesn't take note of it."""
        text = self.redactor.text(escape(self._admission.line))
        try:
            await self.reporter.observer.sending(self._admission.id, text, ready.sent)
        except Exception as error:  # whatever stopped the daemon from noting it stops the request
            no = No("the daemon didn't take note of this request, so it isn't sent", kind="daemon")
            raise Refused(no) from error
        self._due = True

    async def answer(self, value: JsonValue, kind: Kind, text: str = "") -> list[tuple[str, str]]:
        """The answer is there. Returns the headers that tell the container what the policy says to it."""
        failed = self.reporter.policy.judge(self._admission, self.status, value, kind)
        well = not failed and (self._admission.judged or 200 <= self.status < 300)
        await self.ended(well=well, body=value, text=text, failed=failed)
        return verdict(self.failed) if self._admission.judged else []

    async def nothing(self, failed: str, status: int) -> list[tuple[str, str]]:
        """There is no answer, or not all of it. `status` is what is known to be the server's of a planned request."""
        if self._admission.judged:
            self.status, self.size = status, 0
        await self.ended(well=False, failed=failed)
        return verdict(self.failed) if self._admission.judged else [("x-goex-failed", "no-answer")]

    async def refused(self, no: No) -> None:
        """The request isn't sent any further."""
        self.failed = no.reason
        if not self._admission.judged:
            await self.ended(well=False, failed=f"It was refused: {no.reason}.")

    async def left(self) -> None:
        """The container went away before the answer's end. A change whose head says so was made all the same."""
        rule = self._admission.rule
        well = isinstance(rule, MethodRule) and not rule.read and 200 <= self.status < 300
        await self.ended(well=well, failed="" if well else "The code ended the connection.")

    async def ended(self, *, well: bool, body: JsonValue = None, text: str = "", failed: str = "") -> None:
        """Tell how it ended, once. Raises Unreported."""
        if not self._due:
            return
        self._due = False
        failed = self.redactor.text(failed)
        try:
            await self.reporter.observer.answered(Exchange(
                request=self._admission.id, status=self.status, well=well, body=body, text=text, failed=failed,
                size=self.size, replayed=self.replayed,
            ))  # fmt: skip
        except Exception as error:
            # What the daemon couldn't keep it can't undo with: the action goes no further.
            self.reporter.policy.stop("the daemon couldn't keep an answer")
            raise Unreported("The daemon couldn't keep an answer.") from error
        self.failed = failed
        if self._admission.judged:  # before the container has the answer, and asks for what follows
            self.reporter.policy.settle(self._admission, failed)
