"""What will run: actions, their plans and outcomes.

Only frozen types travel. Whatever came from outside was parsed into these once; from there on the digest
(`policies.digest`) binds what was shown to what runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject, JsonValue
from policies.services import Risk
from policies.tasks import Task
from policies.typed_json import SPARSE, UNWRITTEN


class UndoClass(StrEnum):
    """What undo can promise. EXACT is a stated equality; COMPENSATING leaves traces; IRREVERSIBLE has none.

    NOTHING is for reads: there is nothing to take back.
    """

    EXACT = "exact"
    COMPENSATING = "compensating"
    IRREVERSIBLE = "irreversible"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A person's request in words."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a catalogued method. Validated against the catalog before it becomes part of an action.

    An argument may be `{"$from": N, "path": "$.a.b"}`: the value at that path in the answer to call N (0-based,
    earlier than this one). `{"$each": N, "path": "$.a[*].b", "most": K}` stands for every value there: the call is
    made for each, at most K times (`policies.stages`). `filled` names the arguments that took values of answers.
    """

    service: str
    method: str
    arguments: JsonObject
    account: str = ""  # "": the service's only account; the daemon resolves it before the digest
    filled: tuple[str, ...] = field(default=(), metadata=SPARSE)

    @property
    def id(self) -> str:
        return f"{self.service}.{self.method}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCalls:
    """Catalogued calls, in order."""

    calls: tuple[Call, ...]
    kind: Literal["calls"] = "calls"


FilesLanguage = Literal["shell", "python"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """A program that works on one folder, which it sees alone, as `/work`."""

    folder: str  # as asked for; resolved and pinned (device, inode) when it is assessed
    language: FilesLanguage
    program: str
    # A program that is said to take it back; a dry run tries it, undo itself never uses it.
    undo: str = field(default="", metadata=SPARSE)
    # The dry run whose result is applied instead of running the program.
    preview: str = field(default="", metadata=SPARSE)
    # Further folders; each, and the first, is then mounted by its name.
    more: tuple[str, ...] = field(default=(), metadata=SPARSE)
    reads: bool = field(default=False, metadata=SPARSE)  # it can change nothing: the folder is mounted read-only
    kind: Literal["files"] = "files"


# How a change of a database is taken back. "versioning": its transaction is held open, durably, until it is committed
# or undone; "reversal": it is committed at once, with the rows as they were before kept; "pairs": taken back by the
# undo that was proposed with it, tested beforehand. "": as the database's entry says.
UndoPolicy = Literal["", "versioning", "reversal", "pairs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql:
    """Statements on one database, all in one transaction. Untrusted text: only what is made anew from its checked
    tree ever runs (`runtimes.sql.checking`)."""

    database: str  # the name of its entry
    statements: str
    policy: UndoPolicy = ""
    undo: str = ""  # statements that a model claims take it back; only for "pairs"
    kind: Literal["sql"] = "sql"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mongo:
    """Operations on one MongoDB database, in order. Each is an object in MongoDB's Extended JSON, as text: the order of
    its keys has a meaning there, which parsed JSON doesn't keep in the journal (`runtimes.mongo`)."""

    database: str  # the name of its entry
    operations: tuple[str, ...]
    kind: Literal["mongo"] = "mongo"


Language = Literal["python", "shell", "javascript"]  # that a program for services may be written in
LANGUAGES: tuple[Language, ...] = ("python", "shell", "javascript")


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A program, written by somebody untrusted, that uses services through the gateway alone.

    What it may call is what is found in it (`mapper.code`) and what `methods` names beside that; whatever else it tries
    is refused while it runs. It never holds a credential: where it wants one it reads a placeholder.
    """

    language: Language
    program: str
    services: tuple[str, ...]  # that were named for it: "slack", or "slack/work" for one of several accounts
    methods: tuple[str, ...] = ()  # "service.method": what it is said to call, found in it or not
    profile: str = "code"  # a folder of sandbox-images/, or one of the person's own, built beforehand
    kind: Literal["code"] = "code"


Verb = Literal["undo", "redo", "commit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revert:
    """Undo, redo or commit of an earlier action: an action itself, on the same path.

    A commit may be of several: `also` are the others, oldest first. `regardless`: the person wants it although later
    actions stand on what the target did; what is there is compared all the same.
    """

    verb: Verb
    target: str  # the earlier action's id
    also: tuple[str, ...] = field(default=(), metadata=SPARSE)
    regardless: bool = field(default=False, metadata=SPARSE)
    kind: Literal["revert"] = "revert"

    def __post_init__(self) -> None:
        if self.also and self.verb != "commit":
            raise InvalidInput("Only a commit is of several actions at once.", next_step="Name one.")

    @property
    def targets(self) -> tuple[str, ...]:
        return (*self.also, self.target)


Action = ApiCalls | Files | Sql | Mongo | Code | Revert | Task

# Where a program decides while it runs: an argument that may have any value, or be left out.
ANY_VALUE: JsonObject = {"$any": True}
OTHER_ARGUMENTS = "other arguments"  # all those of a call in code that aren't named by themselves


def refers(value: JsonValue) -> bool:
    """Whether an answer fills in some of it: a caller's `{"$from": …}` or a plan's `{"$ref": …}`, at any depth."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            if "$from" in item or "$ref" in item:
                return True
            stack.extend(item.values())
        elif isinstance(item, list | tuple):
            stack.extend(item)
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One permission that an action needs: one scope of one account, for named methods."""

    service: str
    account: str
    scope: str
    risk: Risk
    methods: tuple[str, ...]
    arguments: tuple[JsonObject, ...] = ()  # of each such call, for grants with argument constraints
    why: Literal["action", "pre-read", "read-back", "undo", "probe"] = "action"
    # Arguments of these calls whose values came from answers that were read before.
    filled: tuple[str, ...] = field(default=(), metadata=SPARSE)

    @property
    def unseen(self) -> tuple[str, ...]:
        """The arguments that an answer fills in, while it runs or before: what was allowed earlier was allowed without
        a sight of their values, so nothing but a yes to this very action covers it."""
        later = (name for arguments in self.arguments for name, value in arguments.items() if refers(value))
        return tuple(dict.fromkeys((*later, *self.filled)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What assessment found: everything that is shown, granted and digested. Assessing has no effect.

    `resolved` is the request as it will run (for calls: every HTTP request with its references; for files: the
    folder's path, device and inode, owner, the program's bytes as a hash). `bounds` are upper limits that
    execution must stay in. `lines` say all of it in words, foreign text escaped.
    """

    action: Action
    needs: tuple[Need, ...]
    undo_class: UndoClass
    undo_text: str  # what undo will do, and what it needs, in plain words
    resolved: JsonObject
    bounds: Mapping[str, int]
    catalog_hash: str  # over the catalog entries used; "" when none is
    image_id: str
    limits: JsonObject
    lines: tuple[str, ...]
    undo: JsonObject = field(default_factory=dict)  # templates or strategy, digested

    @property
    def required(self) -> tuple[Need, ...]:
        """The needs that must be granted before this runs. What its undo would need is shown with it, and is asked for
        when the undo is: approving an action never hands out the scopes that take it back."""
        if isinstance(self.action, Revert):
            return self.needs
        return tuple(need for need in self.needs if need.why not in ("undo", "read-back"))

    @property
    def unseen(self) -> tuple[Need, ...]:
        """Of the required needs, those that rest on answers (`Need.unseen`)."""
        return tuple(need for need in self.required if need.unseen)

    @property
    def risk(self) -> Risk:
        return max((need.risk for need in self.required), default=Risk.DELETE)


# In the plan of an undo or redo: the imported catalog isn't what its target was planned with.
MOVED = "moved"


def folders_of(plan: Plan) -> tuple[str, ...]:
    """The folders that a plan is about, as they were resolved."""
    more = plan.resolved.get("more")
    found = (plan.resolved.get("folder"), *(more if isinstance(more, list | tuple) else ()))
    return tuple(folder for folder in found if isinstance(folder, str) and folder)


def other_paths_of(plan: Plan, folder: str) -> tuple[str, tuple[str, ...]]:
    """Where the mount begins by which a folder of a plan is reached, and the paths by which it is reached through other
    mounts: none, as nearly always, and then the first isn't said either."""
    for each in plan.resolved.get("also", ()):
        if each["folder"] == folder:
            return str(each["mount"]), tuple(each["paths"])
    return "", ()


class Ended(StrEnum):
    """How a run in the sandbox ended."""

    EXITED = "exited"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out of memory"
    OUTPUT_CAP = "output cap"
    KILLED = "killed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What happened. Everything in it is redacted and safe to hand to the agent; none of it is trusted."""

    ok: bool
    summary: str  # one line
    ended: Ended = Ended.EXITED
    exit_code: int | None = None
    results: tuple[JsonValue, ...] = ()  # calls: one for each, {"status", "body"}
    stdout: str = ""
    stderr: str = ""
    cut: int = 0  # bytes of output left out
    # files: "created a.txt", ...; databases: "orders: 3 rows updated", ...; code: "slack.chat.postMessage: 2 requests"
    changes: tuple[str, ...] = ()
    changes_cut: int = 0
    # Code: requests that the gateway refused, each {"request", "call", "reason", "times"}; `call` is what it would have
    # been in the catalog, or "".
    refused: tuple[JsonObject, ...] = field(default=(), metadata=SPARSE)
    touched: bool = True  # False only when it is known that nothing was changed
    left: bool = field(default=False, metadata=SPARSE)  # what was answered shows that its undo doesn't hold
    # True when nothing is known to be changed, and something may be.
    unsure: bool = field(default=False, metadata=SPARSE)
    # Where it isn't ok: what the person can do, if not what can be done of every such end.
    next_step: str = field(default="", metadata=UNWRITTEN)
    # Where it isn't ok, for the person alone: what others said of it, and how things differ. `summary` is GoEx's words.
    details: tuple[str, ...] = field(default=(), metadata=UNWRITTEN)


# GPT4Tools' and APIBench's classes (see mapper/proposals.py), over a bound, and never came.
Klass = Literal["format", "arguments", "unknown tool", "hallucination", "error", "limits", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A proposal that didn't survive validation, and why."""

    sample: int
    reason: str
    klass: Klass = "format"
    excerpt: str = ""  # its beginning, escaped
    size: int = 0  # characters of all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One answer to a clarification, and the methods that it would lead to."""

    answer: str
    methods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Clarification:
    """What a model would have to know about a request's words before it can propose calls. Its own untrusted words,
    escaped and bounded. Without options any answer may be given; `methods` are then what it would call."""

    text: str
    options: tuple[Option, ...] = ()
    methods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One candidate of a mapping: calls, their least scopes, and how many samples voted for it."""

    calls: tuple[Call, ...]
    scopes: tuple[str, ...]  # "service:scope"
    votes: int
    score: float  # 0..1, comparable within one mapping only


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentMapping:
    """The vote's result. `agreement` is votes for the winner over samples asked.

    *Mapping* in prose; in code that name belongs to collections.abc.
    """

    intent: Intent
    alternatives: tuple[Alternative, ...]  # best first; empty: nothing fits
    agreement: float
    samples: int
    rejected: tuple[Rejected, ...]
    proposer: str  # "embedded", or the model's name
    sure: bool  # False: the person must choose
    notes: tuple[str, ...] = ()
    technique: str = ""  # how the model was asked; "" without a model
    limit: int = 1  # samples that could have been asked for
    confidence: float = 0.0  # that all of them would have decided alike; what was wanted is the configuration's
    stopped: str = ""  # why no more samples were asked for
    ballots: tuple[str, ...] = ()  # what each sample said, as a hash, "nothing" or the class of its rejection
    claims: tuple[tuple[str, int], ...] = ()  # scopes that the model claimed beyond the mapping's, and how often
    clarification: Clarification | None = None  # what most samples would have to know first; then it isn't sure
    lacking: tuple[str, tuple[str, ...]] | None = None  # the nearest method, and what the request doesn't give it

    @property
    def best(self) -> Alternative | None:
        return self.alternatives[0] if self.alternatives else None
