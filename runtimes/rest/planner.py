"""From calls to a fixed list of requests. Pure: no network, no clock, no randomness.

Rules: everything that will be sent is decided here, before an answer is read; an answer can later fill a value, never
add a request. For each call: its pre-read (when its undo template has one), then the call. `$request` means the call's
whole arguments, `$response` the answer to `call-N`, `$pre` the answer to `pre-N`. An undo that can't be filled is no
undo: the call then counts as irreversible, and the words say why.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from mapper.catalog import Catalog
from mapper.new_items import listed, new_item
from mapper.pairs import of_catalog
from mapper.restore_templates import expanded, parts_before
from mapper.templates import Reference, complete, expectations, may_be_left_out, substitute
from policies.accounts import Account
from policies.actions import ApiCalls, Call, UndoClass
from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject, JsonValue, MissingValue
from policies.reversions import Chosen, NoReversions, ReversionSet, Standing, choose
from policies.services import CallTemplate, Expect, Method, Risk, Service, UndoTemplate
from policies.typed_json import NEWER, SPARSE, from_json
from runtimes.gateway.plan import Ref
from runtimes.gateway.request_headers import (
    ASKING_NAMES,
    LEAVING_OUT,
    as_usual,
    asked_for,
    leaves_out,
    may_change,
    media_of,
    shapes_answer,
)
from runtimes.idempotency import action_key, is_key
from runtimes.rest.records import Answer
from runtimes.rest.references import literal, look, plain, referring, refs_in, with_refs
from runtimes.rest.requests import check_filled, step_for
from runtimes.rest.steps import Role, Step

GONE = (404, 410)  # how a service says that something isn't there
# How the catalog says why a method has no undo.
_NO_WAY_BACK = "Can't be taken back: "

Accounts = Mapping[tuple[str, str], Account]


@dataclass(frozen=True, slots=True)
class Made:
    """What an action makes, as a list shows it: where the list is, and the values that were sent, by their names."""

    path: str
    sent: Annotated[JsonObject, dict[str, Any], plain, referring]

    def found(self, call: int, answers: Mapping[str, Answer]) -> Answer:
        """What it made, in the place of an answer. Raises InvalidInput where that isn't sure."""
        before, after = answers.get(f"pre-{call}"), answers.get(f"after-{call}")
        if before is None or after is None or not (after.well and before.whole and after.whole):
            raise InvalidInput("what it made isn't known: its list wasn't read after it")
        made = new_item(before.body, after.body, self.path, literal(self.sent, answers))
        return replace(after, body=made)


@dataclass(frozen=True, slots=True)
class PlannedUndo:
    """The undo of one call, with references where only an answer knows the value."""

    call: int
    guard: Step | None
    calls: tuple[Step, ...]
    verify: Step | None
    source: str
    note: str
    pair: str = field(default="", metadata=NEWER)  # the hash of the pair that it was made from
    standing: str = field(default=Standing.UNPROVEN, metadata=NEWER)
    guards: tuple[Step, ...] = field(default=(), metadata=NEWER)
    # Paths that must have been there before, if what holds them was (`parts_before`).
    parts: tuple[str, ...] = field(default=(), metadata=NEWER)
    # In place of `calls` and `verify` where nothing was there before.
    absent: tuple[Step, ...] = field(default=(), metadata=SPARSE)
    made: Made | None = field(default=None, metadata=SPARSE)
    created: bool = field(default=False, metadata=SPARSE)  # it holds only where the call was answered with 201

    @property
    def steps(self) -> tuple[Step, ...]:
        """In the order in which they are sent; those for what was there before, and those for what wasn't."""
        around = (self.guard, *self.guards, *self.calls, self.verify, *self.absent)
        return tuple(step for step in around if step is not None)

    def after(self, answers: Mapping[str, Answer]) -> PlannedUndo:
        """The one of its two ways that what was read before leaves; itself as long as that isn't known.

        Raises InvalidInput where what was read is neither a thing nor nothing, where it is nothing that could be
        written back, and where it is no list that a new thing could be told from.
        """
        pre = f"pre-{self.call}"
        read = answers.get(pre)
        if self.made is not None and read is not None:
            if not read.whole:
                raise InvalidInput("the list before it is too long")
            listed(read.body, self.made.path)
        fills = any(ref.request == pre for step in self.calls for ref in refs_in(step.arguments))
        if read is not None and read.status in GONE and fills and not self.absent:
            raise InvalidInput("nothing was there before, and nothing takes back what it makes")
        if not self.absent or read is None:
            return self
        if read.status not in GONE:
            if read.whole and not (isinstance(read.body, Mapping) and read.body):
                raise InvalidInput("whether something was there before can't be told")
            return replace(self, absent=())
        *calls, verify = self.absent
        return replace(self, calls=tuple(calls), verify=verify, parts=(), absent=())


def read_undos(undos: JsonValue) -> tuple[PlannedUndo, ...]:
    """Return the undos of calls that a plan or a record holds. Raises InvalidInput."""
    found: tuple[PlannedUndo, ...] = from_json(tuple[PlannedUndo, ...], undos, "The undo of these calls")
    return found


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call of the action: what is sent for it, and how it is taken back (`undo` None: not at all)."""

    index: int
    call: Call  # as asked for, its account resolved
    pre: Step | None
    step: Step
    after: Step | None
    probe: Step | None
    undo: PlannedUndo | None
    no_undo: str  # why there is none; "" for reads and where there is one


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """All calls of an action, in order."""

    calls: tuple[PlannedCall, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        """Everything that executing sends, in order."""
        return tuple(step for call in self.calls for step in (call.pre, call.step, call.after) if step is not None)

    @property
    def probes(self) -> tuple[Step, ...]:
        """What is sent after a crash only."""
        return tuple(call.probe for call in self.calls if call.probe is not None)

    @property
    def undos(self) -> tuple[PlannedUndo, ...]:
        """In the order of the calls; they run the other way round."""
        return tuple(call.undo for call in self.calls if call.undo is not None)

    @property
    def action(self) -> ApiCalls:
        return ApiCalls(calls=tuple(call.call for call in self.calls))

    @property
    def undo_class(self) -> UndoClass:
        if all(call.step.read for call in self.calls):
            return UndoClass.NOTHING
        if all(call.step.read or call.undo is not None for call in self.calls):
            return UndoClass.COMPENSATING
        return UndoClass.IRREVERSIBLE


def plan_calls(
    action: ApiCalls,
    accounts: Accounts,
    catalog: Catalog,
    action_id: str,
    *,
    turn: str = "",
    reversions: ReversionSet | None = None,
) -> PlannedCalls:
    """Plan every call of `action`, each with the undo that the reversion set chooses for it.

    Raises InvalidInput for whatever can't be sent as asked, Unsupported for what has no address at all.
    """
    known = reversions or NoReversions()
    calls = catalog.validate_all(action.calls)
    for call in calls:
        catalog.check_callable(call.id)
    return PlannedCalls(
        tuple(
            _plan_call(index, call, account_of(call, accounts), catalog, (action_id, turn), known)
            for index, call in enumerate(calls)
        )
    )


def _plan_call(
    index: int, call: Call, account: Account, catalog: Catalog, run: tuple[str, str], reversions: ReversionSet
) -> PlannedCall:
    method, service = catalog.method(call.id), catalog.service(call.service)
    action_id, turn = run
    key = action_key(action_id, index, turn)
    check_filled(method, call)
    arguments = with_refs(complete(method, call.arguments, key), index)
    during = StepMaker(catalog, service, account, index, arguments, key)
    step = during.call(method)
    pre: Step | None = None
    looked: Step | None = None
    undo: PlannedUndo | None = None
    no_undo = ""
    chosen: Chosen | None = None
    if not step.read:
        no_undo = _other_effect(method, call.arguments)
    if not step.read and not no_undo:
        chosen = chosen_for(method, arguments, catalog, reversions)
        no_undo = why_none(method, chosen)
    if chosen is not None and chosen.pair is not None:
        after = replace(during, key=action_key(action_id, index, f"{turn}/undo"))
        try:
            undo = planned_undo(chosen, after)
            _check_answer(undo, step, method, call.arguments)
            pre = during.one(expanded(chosen.pair.undo, arguments).pre, "pre", f"pre-{index}")
            looked = during.one(chosen.pair.undo.after, "after", f"after-{index}")
        except InvalidInput as error:
            pre, looked, undo, no_undo = None, None, None, f"its undo can't be filled ({error.message.rstrip('.')})"
    probe = None if step.read else during.one(method.probe, "probe", f"probe-{index}")
    call = replace(call, account=account.name)
    return PlannedCall(index, call, pre, step, looked, probe, undo, no_undo)


def _other_effect(method: Method, arguments: JsonObject) -> str:
    """What has a call do something else than what its way back was made for; "" where nothing does."""
    for name, value in arguments.items():
        if method.locations.get(name) != "header":
            if key := _key_in(name, value):
                return f"for a {key} that was used before, the service may answer with what was there already"
            continue
        asks = name.lower() in ASKING_NAMES
        if asked_for(name, str(value)) if asks else may_change(name) and not _fixed(method, name):
            return f"its header {name} may ask for another effect, such as to overwrite what was there before"
    return ""


def _check_answer(undo: PlannedUndo | None, step: Step, method: Method, given: JsonObject) -> None:
    """Raise InvalidInput where what a caller gave asks for an answer without what the way back reads there."""
    needs = undo is not None and any(ref.request == step.id for each in undo.steps for ref in refs_in(each.arguments))
    for name, value in given.items() if needs else ():
        place, said = method.locations.get(name), str(value)
        shapes = name in LEAVING_OUT or (place == "query" and shapes_answer(name, said))
        asks = place == "header" and name.lower() == "accept" and as_usual(said) != ", ".join(media_of(said))
        if shapes or asks or leaves_out(name, said):
            raise InvalidInput(f"{name} may leave out of the answer what it reads there")


def _key_in(name: str, value: JsonValue) -> str:
    """The argument, or the field of a body, by which a service knows that a request was sent before."""
    names = (name, *value) if isinstance(value, dict) else (name,)
    return next((one for one in names if is_key(one)), "")


def _fixed(method: Method, name: str) -> bool:
    """Whether a document demands a header that has one value alone, or that is a version of the API."""
    schema = method.parameters.get("properties", {}).get(name)
    values = schema.get("enum", [schema["const"]] if "const" in schema else []) if isinstance(schema, dict) else []
    return name in method.parameters.get("required", ()) and (len(values) == 1 or name.lower().endswith("-version"))


def chosen_for(method: Method, arguments: JsonObject, catalog: Catalog, reversions: ReversionSet) -> Chosen:
    """The pair that a call of `method` with these (complete) arguments gets."""
    own = of_catalog(catalog, method)
    pairs = (*reversions.added(method.id), *((own,) if own is not None else ()))
    # An argument that an earlier answer fills isn't known yet, so that no pattern and no exact request fits it.
    return choose(pairs, plain(arguments), reversions)


def planned_undo(chosen: Chosen, maker: StepMaker) -> PlannedUndo | None:
    """The undo of one call by the pair that was chosen for it; None without one. Raises InvalidInput when it can't be
    filled."""
    if chosen.pair is None:
        return None
    made = _plan_undo(expanded(chosen.pair.undo, maker.request), maker)
    parts = parts_before(chosen.pair.undo, maker.request)
    return replace(made, pair=chosen.pair.hash, standing=chosen.standing.value, parts=parts)


def why_none(method: Method, chosen: Chosen) -> str:
    """Why no pair was chosen; "" where one was."""
    if chosen.pair is not None:
        return ""
    if chosen.unbelieved:
        return "its way back isn't GoEx's own, and what is known of those was altered (goex undo-pairs restore)"
    if chosen.passed:
        hash = chosen.passed[0].hash[:12]
        return (
            f"its way back failed once, so it isn't used again (how: goex undo-pairs show {hash}; to use it again: "
            f"goex undo-pairs retry {hash})"
        )
    if method.risk is Risk.READ:
        return "only its imported document says that it just reads"
    return method.description.partition(_NO_WAY_BACK)[2].rstrip(".") or "no way back is known for it"


def account_of(call: Call, accounts: Accounts) -> Account:
    """The account that a call names, or the service's only one. Raises InvalidInput."""
    if call.account:
        found = accounts.get((call.service, call.account))
        if found is None:
            raise InvalidInput(
                f"There is no account {call.account} of {call.service}.", next_step="goex vault list shows them."
            )
        return found
    of_service = [account for (service, _), account in sorted(accounts.items()) if service == call.service]
    if not of_service:
        raise InvalidInput(
            f"There is no account of {call.service}.", next_step=f"Add one: goex vault put {call.service} NAME."
        )
    if len(of_service) > 1:
        names = ", ".join(account.name for account in of_service)
        raise InvalidInput(f"{call.service} has several accounts ({names}).", next_step="Name one of them.")
    return of_service[0]


@dataclass(frozen=True, slots=True)
class StepMaker:
    """Makes the steps around one call from its templates: references become `Ref`s to what will be answered."""

    catalog: Catalog
    service: Service
    account: Account
    index: int
    request: JsonObject
    key: str
    last: int = 0  # the number of the undo's last call

    def call(self, method: Method) -> Step:
        """The step of the call itself, of which its arguments are."""
        return self._step(method, self.request, "call", f"call-{self.index}", expectations(self.service))

    def one(self, template: CallTemplate | None, role: Role, id: str) -> Step | None:
        """The step of a template. Raises InvalidInput when it can't be filled, or isn't a call of its method."""
        if template is None:
            return None
        method = self.catalog.method(f"{self.service.name}.{template.method}")
        arguments = complete(method, self._fill(template.arguments), self.key)
        for name in method.parameters.get("required", ()):
            if name not in arguments:
                raise InvalidInput(f"{method.id} needs {name}, and this call has none.")
        expect = tuple(filled for expect in expectations(self.service, template) if (filled := self._expect(expect)))
        step = self._step(method, arguments, role, id, expect)
        if role != "undo" and not step.read:
            raise InvalidInput(f"{method.id} would only be read, and isn't sure to be a read")
        return step

    def _step(
        self, method: Method, arguments: Mapping[str, Any], role: Role, id: str, expect: tuple[Expect, ...]
    ) -> Step:
        return step_for(
            id=id,
            call=self.index,
            role=role,
            catalog=self.catalog,
            service=self.service,
            method=method,
            account=self.account,
            arguments=arguments,
            expect=expect,
        )

    def _fill(self, arguments: JsonObject) -> dict[str, Any]:
        """An argument whose value the request never had is left out; whether it may be is checked afterwards."""
        filled: dict[str, Any] = {}
        for name, value in arguments.items():
            try:
                filled[name] = substitute(value, self._look_up)
            except MissingValue:
                if not isinstance(value, str) or not value.startswith("$request."):
                    raise
        return filled

    def _expect(self, expect: Expect) -> Expect | None:
        """None where it is about a value that the request didn't have and needn't have."""
        try:
            return replace(expect, value=substitute(expect.value, self._look_up))
        except MissingValue:
            if not may_be_left_out(expect.value):
                raise
            return None

    def _look_up(self, reference: Reference) -> Any:
        match reference.source:
            case "request":
                return look(self.request, reference.path)
            case "response":
                ref = look(Ref(f"call-{self.index}", "$"), reference.path)
                return replace(ref, optional=reference.optional, omitted=reference.omitted)
            case "pre":
                ref = look(Ref(f"pre-{self.index}", "$"), reference.path)
                return replace(ref, optional=reference.optional, omitted=reference.omitted)
            case "undo":
                ref = look(Ref(f"undo-{self.index}-{self.last}", "$"), reference.path)
                return replace(ref, optional=reference.optional)
            case "made":
                return replace(look(Ref(f"made-{self.index}", "$"), reference.path), optional=reference.optional)
            case "action":
                return self.key

    def made(self, template: UndoTemplate) -> Made | None:
        """What tells the thing that the call made, where a list has to. Raises InvalidInput where nothing can."""
        if not template.made:
            return None
        sent: dict[str, Any] = {}
        for path in template.fields:
            with suppress(MissingValue):
                sent[path.rpartition(".")[2]] = look(self.request, f"$.{path}")
        if not any(isinstance(value, str | Ref) and value != "" for value in sent.values()):
            raise InvalidInput("nothing that it is given tells what it makes from other things")
        return Made(template.made, sent)


def _plan_undo(template: UndoTemplate, maker: StepMaker) -> PlannedUndo:
    """The undo of one call. Its requests are `guard-N`, `undo-N-0` and so on, `verify-N`."""
    index = maker.index
    maker = replace(maker, last=len(template.calls) - 1)
    guards = (maker.one(call, "guard", f"guard-{index}-{place}") for place, call in enumerate(template.guards))
    calls = (maker.one(call, "undo", f"undo-{index}-{place}") for place, call in enumerate(template.calls))
    absent: list[Step | None] = []
    if template.absent is not None:
        if template.pre is None or template.verify is None:
            raise InvalidInput("what was there isn't read before and after")
        left = Expect(op="status", value=list(GONE), says="It is still there.")
        absent = [
            maker.one(template.absent, "undo", f"undo-{index}-0"),
            maker.one(replace(template.verify, expect=(left,)), "verify", f"verify-{index}"),
        ]
    return PlannedUndo(
        call=index,
        guard=maker.one(template.guard, "guard", f"guard-{index}"),
        guards=tuple(step for step in guards if step is not None),
        calls=tuple(step for step in calls if step is not None),
        verify=maker.one(template.verify, "verify", f"verify-{index}"),
        source=template.source,
        note=template.note,
        absent=tuple(step for step in absent if step is not None),
        made=maker.made(template),
        created=template.created,
    )
