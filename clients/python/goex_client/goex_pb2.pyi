from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Call(_message.Message):
    __slots__ = ("service", "method", "arguments_json", "account")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    service: str
    method: str
    arguments_json: str
    account: str
    def __init__(self, service: _Optional[str] = ..., method: _Optional[str] = ..., arguments_json: _Optional[str] = ..., account: _Optional[str] = ...) -> None: ...

class Calls(_message.Message):
    __slots__ = ("calls",)
    CALLS_FIELD_NUMBER: _ClassVar[int]
    calls: _containers.RepeatedCompositeFieldContainer[Call]
    def __init__(self, calls: _Optional[_Iterable[_Union[Call, _Mapping]]] = ...) -> None: ...

class FilesProgram(_message.Message):
    __slots__ = ("folder", "language", "program", "undo", "preview", "more")
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    folder: str
    language: str
    program: str
    undo: str
    preview: str
    more: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, folder: _Optional[str] = ..., language: _Optional[str] = ..., program: _Optional[str] = ..., undo: _Optional[str] = ..., preview: _Optional[str] = ..., more: _Optional[_Iterable[str]] = ...) -> None: ...

class SqlProgram(_message.Message):
    __slots__ = ("database", "statements", "policy", "undo")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    database: str
    statements: str
    policy: str
    undo: str
    def __init__(self, database: _Optional[str] = ..., statements: _Optional[str] = ..., policy: _Optional[str] = ..., undo: _Optional[str] = ...) -> None: ...

class MongoProgram(_message.Message):
    __slots__ = ("database", "operations_json")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    OPERATIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    database: str
    operations_json: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, database: _Optional[str] = ..., operations_json: _Optional[_Iterable[str]] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("title", "allows", "seconds", "agent")
    TITLE_FIELD_NUMBER: _ClassVar[int]
    ALLOWS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    title: str
    allows: _containers.RepeatedCompositeFieldContainer[Allowance]
    seconds: int
    agent: str
    def __init__(self, title: _Optional[str] = ..., allows: _Optional[_Iterable[_Union[Allowance, _Mapping]]] = ..., seconds: _Optional[int] = ..., agent: _Optional[str] = ...) -> None: ...

class Allowance(_message.Message):
    __slots__ = ("service", "method", "account", "arguments_json", "times")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    service: str
    method: str
    account: str
    arguments_json: str
    times: int
    def __init__(self, service: _Optional[str] = ..., method: _Optional[str] = ..., account: _Optional[str] = ..., arguments_json: _Optional[str] = ..., times: _Optional[int] = ...) -> None: ...

class CodeProgram(_message.Message):
    __slots__ = ("language", "program", "services", "methods", "profile", "again")
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    SERVICES_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    language: str
    program: str
    services: _containers.RepeatedScalarFieldContainer[str]
    methods: _containers.RepeatedScalarFieldContainer[str]
    profile: str
    again: str
    def __init__(self, language: _Optional[str] = ..., program: _Optional[str] = ..., services: _Optional[_Iterable[str]] = ..., methods: _Optional[_Iterable[str]] = ..., profile: _Optional[str] = ..., again: _Optional[str] = ...) -> None: ...

class FindRequest(_message.Message):
    __slots__ = ("query", "service", "method", "offset", "limit")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    query: str
    service: str
    method: str
    offset: int
    limit: int
    def __init__(self, query: _Optional[str] = ..., service: _Optional[str] = ..., method: _Optional[str] = ..., offset: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class FoundService(_message.Message):
    __slots__ = ("name", "title", "accounts", "methods")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNTS_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    name: str
    title: str
    accounts: _containers.RepeatedScalarFieldContainer[str]
    methods: int
    def __init__(self, name: _Optional[str] = ..., title: _Optional[str] = ..., accounts: _Optional[_Iterable[str]] = ..., methods: _Optional[int] = ...) -> None: ...

class FoundMethod(_message.Message):
    __slots__ = ("id", "description", "risk", "undo", "parameters_json", "accounts", "lacks")
    ID_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    RISK_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_JSON_FIELD_NUMBER: _ClassVar[int]
    ACCOUNTS_FIELD_NUMBER: _ClassVar[int]
    LACKS_FIELD_NUMBER: _ClassVar[int]
    id: str
    description: str
    risk: str
    undo: str
    parameters_json: str
    accounts: _containers.RepeatedScalarFieldContainer[str]
    lacks: str
    def __init__(self, id: _Optional[str] = ..., description: _Optional[str] = ..., risk: _Optional[str] = ..., undo: _Optional[str] = ..., parameters_json: _Optional[str] = ..., accounts: _Optional[_Iterable[str]] = ..., lacks: _Optional[str] = ...) -> None: ...

class FindReply(_message.Message):
    __slots__ = ("services", "databases", "folders", "methods", "next_offset", "unconnected", "vault")
    SERVICES_FIELD_NUMBER: _ClassVar[int]
    DATABASES_FIELD_NUMBER: _ClassVar[int]
    FOLDERS_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    UNCONNECTED_FIELD_NUMBER: _ClassVar[int]
    VAULT_FIELD_NUMBER: _ClassVar[int]
    services: _containers.RepeatedCompositeFieldContainer[FoundService]
    databases: _containers.RepeatedScalarFieldContainer[str]
    folders: _containers.RepeatedScalarFieldContainer[str]
    methods: _containers.RepeatedCompositeFieldContainer[FoundMethod]
    next_offset: int
    unconnected: int
    vault: str
    def __init__(self, services: _Optional[_Iterable[_Union[FoundService, _Mapping]]] = ..., databases: _Optional[_Iterable[str]] = ..., folders: _Optional[_Iterable[str]] = ..., methods: _Optional[_Iterable[_Union[FoundMethod, _Mapping]]] = ..., next_offset: _Optional[int] = ..., unconnected: _Optional[int] = ..., vault: _Optional[str] = ...) -> None: ...

class ResultRequest(_message.Message):
    __slots__ = ("id", "path", "fields", "offset", "limit", "max_bytes")
    ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    id: str
    path: str
    fields: _containers.RepeatedScalarFieldContainer[str]
    offset: int
    limit: int
    max_bytes: int
    def __init__(self, id: _Optional[str] = ..., path: _Optional[str] = ..., fields: _Optional[_Iterable[str]] = ..., offset: _Optional[int] = ..., limit: _Optional[int] = ..., max_bytes: _Optional[int] = ...) -> None: ...

class ResultReply(_message.Message):
    __slots__ = ("value_json", "total", "next_offset", "cut")
    VALUE_JSON_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    value_json: str
    total: int
    next_offset: int
    cut: bool
    def __init__(self, value_json: _Optional[str] = ..., total: _Optional[int] = ..., next_offset: _Optional[int] = ..., cut: _Optional[bool] = ...) -> None: ...

class MapRequest(_message.Message):
    __slots__ = ("intent", "explain", "answer")
    INTENT_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    intent: str
    explain: bool
    answer: str
    def __init__(self, intent: _Optional[str] = ..., explain: _Optional[bool] = ..., answer: _Optional[str] = ...) -> None: ...

class Candidate(_message.Message):
    __slots__ = ("calls", "scopes", "votes", "score")
    CALLS_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    VOTES_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    calls: _containers.RepeatedCompositeFieldContainer[Call]
    scopes: _containers.RepeatedScalarFieldContainer[str]
    votes: int
    score: float
    def __init__(self, calls: _Optional[_Iterable[_Union[Call, _Mapping]]] = ..., scopes: _Optional[_Iterable[str]] = ..., votes: _Optional[int] = ..., score: _Optional[float] = ...) -> None: ...

class Rejection(_message.Message):
    __slots__ = ("sample", "klass", "reason")
    SAMPLE_FIELD_NUMBER: _ClassVar[int]
    KLASS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    sample: int
    klass: str
    reason: str
    def __init__(self, sample: _Optional[int] = ..., klass: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class MapReply(_message.Message):
    __slots__ = ("candidates", "agreement", "samples", "rejected", "proposer", "sure", "notes", "explanation", "clarification")
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    PROPOSER_FIELD_NUMBER: _ClassVar[int]
    SURE_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    CLARIFICATION_FIELD_NUMBER: _ClassVar[int]
    candidates: _containers.RepeatedCompositeFieldContainer[Candidate]
    agreement: float
    samples: int
    rejected: _containers.RepeatedCompositeFieldContainer[Rejection]
    proposer: str
    sure: bool
    notes: _containers.RepeatedScalarFieldContainer[str]
    explanation: _containers.RepeatedScalarFieldContainer[str]
    clarification: Clarification
    def __init__(self, candidates: _Optional[_Iterable[_Union[Candidate, _Mapping]]] = ..., agreement: _Optional[float] = ..., samples: _Optional[int] = ..., rejected: _Optional[_Iterable[_Union[Rejection, _Mapping]]] = ..., proposer: _Optional[str] = ..., sure: _Optional[bool] = ..., notes: _Optional[_Iterable[str]] = ..., explanation: _Optional[_Iterable[str]] = ..., clarification: _Optional[_Union[Clarification, _Mapping]] = ...) -> None: ...

class Clarification(_message.Message):
    __slots__ = ("text", "options", "methods")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    text: str
    options: _containers.RepeatedCompositeFieldContainer[ClarificationOption]
    methods: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, text: _Optional[str] = ..., options: _Optional[_Iterable[_Union[ClarificationOption, _Mapping]]] = ..., methods: _Optional[_Iterable[str]] = ...) -> None: ...

class ClarificationOption(_message.Message):
    __slots__ = ("answer", "methods")
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    answer: str
    methods: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, answer: _Optional[str] = ..., methods: _Optional[_Iterable[str]] = ...) -> None: ...

class ExecuteRequest(_message.Message):
    __slots__ = ("intent", "calls", "files", "proposal", "sql", "mongo", "code", "task", "database", "folder", "code_services", "detach", "ask_seconds", "choice", "key", "reads_only", "answer", "account")
    INTENT_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    PROPOSAL_FIELD_NUMBER: _ClassVar[int]
    SQL_FIELD_NUMBER: _ClassVar[int]
    MONGO_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    CODE_SERVICES_FIELD_NUMBER: _ClassVar[int]
    DETACH_FIELD_NUMBER: _ClassVar[int]
    ASK_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CHOICE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    READS_ONLY_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    intent: str
    calls: Calls
    files: FilesProgram
    proposal: str
    sql: SqlProgram
    mongo: MongoProgram
    code: CodeProgram
    task: Task
    database: str
    folder: str
    code_services: _containers.RepeatedScalarFieldContainer[str]
    detach: bool
    ask_seconds: int
    choice: int
    key: str
    reads_only: bool
    answer: str
    account: str
    def __init__(self, intent: _Optional[str] = ..., calls: _Optional[_Union[Calls, _Mapping]] = ..., files: _Optional[_Union[FilesProgram, _Mapping]] = ..., proposal: _Optional[str] = ..., sql: _Optional[_Union[SqlProgram, _Mapping]] = ..., mongo: _Optional[_Union[MongoProgram, _Mapping]] = ..., code: _Optional[_Union[CodeProgram, _Mapping]] = ..., task: _Optional[_Union[Task, _Mapping]] = ..., database: _Optional[str] = ..., folder: _Optional[str] = ..., code_services: _Optional[_Iterable[str]] = ..., detach: _Optional[bool] = ..., ask_seconds: _Optional[int] = ..., choice: _Optional[int] = ..., key: _Optional[str] = ..., reads_only: _Optional[bool] = ..., answer: _Optional[str] = ..., account: _Optional[str] = ...) -> None: ...

class RevertRequest(_message.Message):
    __slots__ = ("action_id", "verb", "detach", "ask_seconds", "also", "regardless", "key")
    ACTION_ID_FIELD_NUMBER: _ClassVar[int]
    VERB_FIELD_NUMBER: _ClassVar[int]
    DETACH_FIELD_NUMBER: _ClassVar[int]
    ASK_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ALSO_FIELD_NUMBER: _ClassVar[int]
    REGARDLESS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    action_id: str
    verb: str
    detach: bool
    ask_seconds: int
    also: _containers.RepeatedScalarFieldContainer[str]
    regardless: bool
    key: str
    def __init__(self, action_id: _Optional[str] = ..., verb: _Optional[str] = ..., detach: _Optional[bool] = ..., ask_seconds: _Optional[int] = ..., also: _Optional[_Iterable[str]] = ..., regardless: _Optional[bool] = ..., key: _Optional[str] = ...) -> None: ...

class WayBackRequest(_message.Message):
    __slots__ = ("verb", "action_id", "moment", "everyone", "agent", "task")
    VERB_FIELD_NUMBER: _ClassVar[int]
    ACTION_ID_FIELD_NUMBER: _ClassVar[int]
    MOMENT_FIELD_NUMBER: _ClassVar[int]
    EVERYONE_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    verb: str
    action_id: str
    moment: str
    everyone: bool
    agent: str
    task: str
    def __init__(self, verb: _Optional[str] = ..., action_id: _Optional[str] = ..., moment: _Optional[str] = ..., everyone: _Optional[bool] = ..., agent: _Optional[str] = ..., task: _Optional[str] = ...) -> None: ...

class WayStep(_message.Message):
    __slots__ = ("action", "can", "why", "what")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CAN_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    action: ActionView
    can: bool
    why: str
    what: str
    def __init__(self, action: _Optional[_Union[ActionView, _Mapping]] = ..., can: _Optional[bool] = ..., why: _Optional[str] = ..., what: _Optional[str] = ...) -> None: ...

class WayBackReply(_message.Message):
    __slots__ = ("steps",)
    STEPS_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[WayStep]
    def __init__(self, steps: _Optional[_Iterable[_Union[WayStep, _Mapping]]] = ...) -> None: ...

class ActionId(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("action_id", "state", "asking", "output", "progress", "mapped", "finished")
    ACTION_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ASKING_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    MAPPED_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    action_id: str
    state: StateChange
    asking: Approval
    output: Output
    progress: str
    mapped: MapReply
    finished: Finished
    def __init__(self, action_id: _Optional[str] = ..., state: _Optional[_Union[StateChange, _Mapping]] = ..., asking: _Optional[_Union[Approval, _Mapping]] = ..., output: _Optional[_Union[Output, _Mapping]] = ..., progress: _Optional[str] = ..., mapped: _Optional[_Union[MapReply, _Mapping]] = ..., finished: _Optional[_Union[Finished, _Mapping]] = ...) -> None: ...

class StateChange(_message.Message):
    __slots__ = ("event", "to")
    FROM_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    event: str
    to: str
    def __init__(self, event: _Optional[str] = ..., to: _Optional[str] = ..., **kwargs) -> None: ...

class Output(_message.Message):
    __slots__ = ("stream", "data")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    stream: str
    data: bytes
    def __init__(self, stream: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class Finished(_message.Message):
    __slots__ = ("action", "problem", "answer")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    action: ActionView
    problem: Problem
    answer: str
    def __init__(self, action: _Optional[_Union[ActionView, _Mapping]] = ..., problem: _Optional[_Union[Problem, _Mapping]] = ..., answer: _Optional[str] = ...) -> None: ...

class Problem(_message.Message):
    __slots__ = ("code", "message", "next_step", "exit_status", "details", "retry", "who")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    NEXT_STEP_FIELD_NUMBER: _ClassVar[int]
    EXIT_STATUS_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    next_step: str
    exit_status: int
    details: _containers.RepeatedScalarFieldContainer[str]
    retry: str
    who: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., next_step: _Optional[str] = ..., exit_status: _Optional[int] = ..., details: _Optional[_Iterable[str]] = ..., retry: _Optional[str] = ..., who: _Optional[str] = ...) -> None: ...

class Ending(_message.Message):
    __slots__ = ("status", "changed", "undo", "retry", "who", "next", "summary", "deadline", "page")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    status: str
    changed: str
    undo: str
    retry: str
    who: str
    next: str
    summary: str
    deadline: str
    page: str
    def __init__(self, status: _Optional[str] = ..., changed: _Optional[str] = ..., undo: _Optional[str] = ..., retry: _Optional[str] = ..., who: _Optional[str] = ..., next: _Optional[str] = ..., summary: _Optional[str] = ..., deadline: _Optional[str] = ..., page: _Optional[str] = ...) -> None: ...

class ActionView(_message.Message):
    __slots__ = ("id", "agent", "state", "kind", "request_json", "digest", "undo_class", "undo_text", "lines", "outcome_json", "created", "updated", "intent", "target", "can_undo", "can_redo", "risk", "session", "held_until", "ending")
    ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    REQUEST_JSON_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    UNDO_CLASS_FIELD_NUMBER: _ClassVar[int]
    UNDO_TEXT_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_JSON_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    UPDATED_FIELD_NUMBER: _ClassVar[int]
    INTENT_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    CAN_UNDO_FIELD_NUMBER: _ClassVar[int]
    CAN_REDO_FIELD_NUMBER: _ClassVar[int]
    RISK_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    HELD_UNTIL_FIELD_NUMBER: _ClassVar[int]
    ENDING_FIELD_NUMBER: _ClassVar[int]
    id: str
    agent: str
    state: str
    kind: str
    request_json: str
    digest: str
    undo_class: str
    undo_text: str
    lines: _containers.RepeatedScalarFieldContainer[str]
    outcome_json: str
    created: str
    updated: str
    intent: str
    target: str
    can_undo: bool
    can_redo: bool
    risk: str
    session: str
    held_until: str
    ending: Ending
    def __init__(self, id: _Optional[str] = ..., agent: _Optional[str] = ..., state: _Optional[str] = ..., kind: _Optional[str] = ..., request_json: _Optional[str] = ..., digest: _Optional[str] = ..., undo_class: _Optional[str] = ..., undo_text: _Optional[str] = ..., lines: _Optional[_Iterable[str]] = ..., outcome_json: _Optional[str] = ..., created: _Optional[str] = ..., updated: _Optional[str] = ..., intent: _Optional[str] = ..., target: _Optional[str] = ..., can_undo: _Optional[bool] = ..., can_redo: _Optional[bool] = ..., risk: _Optional[str] = ..., session: _Optional[str] = ..., held_until: _Optional[str] = ..., ending: _Optional[_Union[Ending, _Mapping]] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("limit", "before", "brief")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    BRIEF_FIELD_NUMBER: _ClassVar[int]
    limit: int
    before: str
    brief: bool
    def __init__(self, limit: _Optional[int] = ..., before: _Optional[str] = ..., brief: _Optional[bool] = ...) -> None: ...

class ListReply(_message.Message):
    __slots__ = ("actions",)
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    actions: _containers.RepeatedCompositeFieldContainer[ActionView]
    def __init__(self, actions: _Optional[_Iterable[_Union[ActionView, _Mapping]]] = ...) -> None: ...

class JudgeRequest(_message.Message):
    __slots__ = ("tool", "kind", "folder", "paths", "program", "host", "home")
    TOOL_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    PATHS_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    HOME_FIELD_NUMBER: _ClassVar[int]
    tool: str
    kind: str
    folder: str
    paths: _containers.RepeatedScalarFieldContainer[str]
    program: str
    host: str
    home: str
    def __init__(self, tool: _Optional[str] = ..., kind: _Optional[str] = ..., folder: _Optional[str] = ..., paths: _Optional[_Iterable[str]] = ..., program: _Optional[str] = ..., host: _Optional[str] = ..., home: _Optional[str] = ...) -> None: ...

class JudgeReply(_message.Message):
    __slots__ = ("verdict", "reason", "rules")
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    verdict: str
    reason: str
    rules: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, verdict: _Optional[str] = ..., reason: _Optional[str] = ..., rules: _Optional[_Iterable[str]] = ...) -> None: ...

class WhoamiRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WhoamiReply(_message.Message):
    __slots__ = ("agent", "session", "uid", "pid", "socket", "version")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    SOCKET_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    agent: str
    session: str
    uid: int
    pid: int
    socket: str
    version: str
    def __init__(self, agent: _Optional[str] = ..., session: _Optional[str] = ..., uid: _Optional[int] = ..., pid: _Optional[int] = ..., socket: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("version", "pid", "vault", "keyed_by", "docker", "image", "pending", "agent_socket", "user_socket", "state_dir", "model", "agent_sockets", "vault_trouble", "sealing", "warnings")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    VAULT_FIELD_NUMBER: _ClassVar[int]
    KEYED_BY_FIELD_NUMBER: _ClassVar[int]
    DOCKER_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    AGENT_SOCKET_FIELD_NUMBER: _ClassVar[int]
    USER_SOCKET_FIELD_NUMBER: _ClassVar[int]
    STATE_DIR_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    AGENT_SOCKETS_FIELD_NUMBER: _ClassVar[int]
    VAULT_TROUBLE_FIELD_NUMBER: _ClassVar[int]
    SEALING_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    version: str
    pid: int
    vault: str
    keyed_by: str
    docker: str
    image: str
    pending: int
    agent_socket: str
    user_socket: str
    state_dir: str
    model: str
    agent_sockets: _containers.RepeatedScalarFieldContainer[str]
    vault_trouble: str
    sealing: str
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, version: _Optional[str] = ..., pid: _Optional[int] = ..., vault: _Optional[str] = ..., keyed_by: _Optional[str] = ..., docker: _Optional[str] = ..., image: _Optional[str] = ..., pending: _Optional[int] = ..., agent_socket: _Optional[str] = ..., user_socket: _Optional[str] = ..., state_dir: _Optional[str] = ..., model: _Optional[str] = ..., agent_sockets: _Optional[_Iterable[str]] = ..., vault_trouble: _Optional[str] = ..., sealing: _Optional[str] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class ApprovalsRequest(_message.Message):
    __slots__ = ("settled", "approval_id", "brief", "duplicates", "news")
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    BRIEF_FIELD_NUMBER: _ClassVar[int]
    DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    NEWS_FIELD_NUMBER: _ClassVar[int]
    settled: bool
    approval_id: str
    brief: bool
    duplicates: bool
    news: bool
    def __init__(self, settled: _Optional[bool] = ..., approval_id: _Optional[str] = ..., brief: _Optional[bool] = ..., duplicates: _Optional[bool] = ..., news: _Optional[bool] = ...) -> None: ...

class NeedView(_message.Message):
    __slots__ = ("service", "account", "scope", "risk", "description", "also", "methods", "why", "granted", "held_by", "opens", "opens_all", "held_by_seen", "see", "change", "destroy", "share")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    RISK_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    ALSO_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    HELD_BY_FIELD_NUMBER: _ClassVar[int]
    OPENS_FIELD_NUMBER: _ClassVar[int]
    OPENS_ALL_FIELD_NUMBER: _ClassVar[int]
    HELD_BY_SEEN_FIELD_NUMBER: _ClassVar[int]
    SEE_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    DESTROY_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    service: str
    account: str
    scope: str
    risk: str
    description: str
    also: _containers.RepeatedScalarFieldContainer[str]
    methods: _containers.RepeatedScalarFieldContainer[str]
    why: str
    granted: bool
    held_by: str
    opens: _containers.RepeatedScalarFieldContainer[str]
    opens_all: bool
    held_by_seen: bool
    see: _containers.RepeatedScalarFieldContainer[str]
    change: _containers.RepeatedScalarFieldContainer[str]
    destroy: _containers.RepeatedScalarFieldContainer[str]
    share: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, service: _Optional[str] = ..., account: _Optional[str] = ..., scope: _Optional[str] = ..., risk: _Optional[str] = ..., description: _Optional[str] = ..., also: _Optional[_Iterable[str]] = ..., methods: _Optional[_Iterable[str]] = ..., why: _Optional[str] = ..., granted: _Optional[bool] = ..., held_by: _Optional[str] = ..., opens: _Optional[_Iterable[str]] = ..., opens_all: _Optional[bool] = ..., held_by_seen: _Optional[bool] = ..., see: _Optional[_Iterable[str]] = ..., change: _Optional[_Iterable[str]] = ..., destroy: _Optional[_Iterable[str]] = ..., share: _Optional[_Iterable[str]] = ...) -> None: ...

class WidthView(_message.Message):
    __slots__ = ("name", "words", "until", "warning")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    name: str
    words: _containers.RepeatedScalarFieldContainer[str]
    until: str
    warning: str
    def __init__(self, name: _Optional[str] = ..., words: _Optional[_Iterable[str]] = ..., until: _Optional[str] = ..., warning: _Optional[str] = ...) -> None: ...

class Approval(_message.Message):
    __slots__ = ("id", "action_id", "agent", "digest", "lines", "needs", "undo_class", "undo_text", "risk", "presence", "widths", "reason", "created", "deadline", "intent", "state", "settled_by", "arguments", "source", "session", "place", "waiting", "count", "same_as", "choices", "kind", "brief", "presence_by", "task", "question")
    ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    NEEDS_FIELD_NUMBER: _ClassVar[int]
    UNDO_CLASS_FIELD_NUMBER: _ClassVar[int]
    UNDO_TEXT_FIELD_NUMBER: _ClassVar[int]
    RISK_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_FIELD_NUMBER: _ClassVar[int]
    WIDTHS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    INTENT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SETTLED_BY_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SAME_AS_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    BRIEF_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_BY_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    id: str
    action_id: str
    agent: str
    digest: str
    lines: _containers.RepeatedScalarFieldContainer[str]
    needs: _containers.RepeatedCompositeFieldContainer[NeedView]
    undo_class: str
    undo_text: str
    risk: str
    presence: bool
    widths: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    created: str
    deadline: str
    intent: str
    state: str
    settled_by: str
    arguments: _containers.RepeatedScalarFieldContainer[str]
    source: str
    session: str
    place: int
    waiting: int
    count: int
    same_as: _containers.RepeatedScalarFieldContainer[str]
    choices: _containers.RepeatedCompositeFieldContainer[WidthView]
    kind: str
    brief: bool
    presence_by: str
    task: Task
    question: Question
    def __init__(self, id: _Optional[str] = ..., action_id: _Optional[str] = ..., agent: _Optional[str] = ..., digest: _Optional[str] = ..., lines: _Optional[_Iterable[str]] = ..., needs: _Optional[_Iterable[_Union[NeedView, _Mapping]]] = ..., undo_class: _Optional[str] = ..., undo_text: _Optional[str] = ..., risk: _Optional[str] = ..., presence: _Optional[bool] = ..., widths: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ..., created: _Optional[str] = ..., deadline: _Optional[str] = ..., intent: _Optional[str] = ..., state: _Optional[str] = ..., settled_by: _Optional[str] = ..., arguments: _Optional[_Iterable[str]] = ..., source: _Optional[str] = ..., session: _Optional[str] = ..., place: _Optional[int] = ..., waiting: _Optional[int] = ..., count: _Optional[int] = ..., same_as: _Optional[_Iterable[str]] = ..., choices: _Optional[_Iterable[_Union[WidthView, _Mapping]]] = ..., kind: _Optional[str] = ..., brief: _Optional[bool] = ..., presence_by: _Optional[str] = ..., task: _Optional[_Union[Task, _Mapping]] = ..., question: _Optional[_Union[Question, _Mapping]] = ...) -> None: ...

class Question(_message.Message):
    __slots__ = ("sentence", "payload", "asks", "worst", "undo", "fresh", "notes", "irreversible", "answers", "alone")
    SENTENCE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    ASKS_FIELD_NUMBER: _ClassVar[int]
    WORST_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    FRESH_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    IRREVERSIBLE_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    ALONE_FIELD_NUMBER: _ClassVar[int]
    sentence: str
    payload: _containers.RepeatedScalarFieldContainer[str]
    asks: str
    worst: str
    undo: str
    fresh: str
    notes: _containers.RepeatedScalarFieldContainer[str]
    irreversible: bool
    answers: _containers.RepeatedCompositeFieldContainer[Answer]
    alone: bool
    def __init__(self, sentence: _Optional[str] = ..., payload: _Optional[_Iterable[str]] = ..., asks: _Optional[str] = ..., worst: _Optional[str] = ..., undo: _Optional[str] = ..., fresh: _Optional[str] = ..., notes: _Optional[_Iterable[str]] = ..., irreversible: _Optional[bool] = ..., answers: _Optional[_Iterable[_Union[Answer, _Mapping]]] = ..., alone: _Optional[bool] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("key", "name", "label")
    KEY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    key: str
    name: str
    label: str
    def __init__(self, key: _Optional[str] = ..., name: _Optional[str] = ..., label: _Optional[str] = ...) -> None: ...

class ApprovalsReply(_message.Message):
    __slots__ = ("approvals", "left_out")
    APPROVALS_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    approvals: _containers.RepeatedCompositeFieldContainer[Approval]
    left_out: int
    def __init__(self, approvals: _Optional[_Iterable[_Union[Approval, _Mapping]]] = ..., left_out: _Optional[int] = ...) -> None: ...

class DecideRequest(_message.Message):
    __slots__ = ("approval_id", "approve", "width", "reason", "digest", "expires_seconds", "bind_arguments", "passphrase", "same_as", "assertion_json", "narrowed")
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    APPROVE_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_SECONDS_FIELD_NUMBER: _ClassVar[int]
    BIND_ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    SAME_AS_FIELD_NUMBER: _ClassVar[int]
    ASSERTION_JSON_FIELD_NUMBER: _ClassVar[int]
    NARROWED_FIELD_NUMBER: _ClassVar[int]
    approval_id: str
    approve: bool
    width: str
    reason: str
    digest: str
    expires_seconds: int
    bind_arguments: _containers.RepeatedScalarFieldContainer[str]
    passphrase: str
    same_as: _containers.RepeatedScalarFieldContainer[str]
    assertion_json: str
    narrowed: _containers.RepeatedCompositeFieldContainer[Narrowed]
    def __init__(self, approval_id: _Optional[str] = ..., approve: _Optional[bool] = ..., width: _Optional[str] = ..., reason: _Optional[str] = ..., digest: _Optional[str] = ..., expires_seconds: _Optional[int] = ..., bind_arguments: _Optional[_Iterable[str]] = ..., passphrase: _Optional[str] = ..., same_as: _Optional[_Iterable[str]] = ..., assertion_json: _Optional[str] = ..., narrowed: _Optional[_Iterable[_Union[Narrowed, _Mapping]]] = ...) -> None: ...

class Narrowed(_message.Message):
    __slots__ = ("line", "times")
    LINE_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    line: int
    times: int
    def __init__(self, line: _Optional[int] = ..., times: _Optional[int] = ...) -> None: ...

class DecideReply(_message.Message):
    __slots__ = ("approval", "settled")
    APPROVAL_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    approval: Approval
    settled: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, approval: _Optional[_Union[Approval, _Mapping]] = ..., settled: _Optional[_Iterable[str]] = ...) -> None: ...

class DenyAllRequest(_message.Message):
    __slots__ = ("agent", "session", "reason")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    agent: str
    session: str
    reason: str
    def __init__(self, agent: _Optional[str] = ..., session: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class DenyAllReply(_message.Message):
    __slots__ = ("approval_ids",)
    APPROVAL_IDS_FIELD_NUMBER: _ClassVar[int]
    approval_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, approval_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class DryRunRequest(_message.Message):
    __slots__ = ("question", "request", "revert", "keep")
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    REVERT_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    question: DryRunQuestion
    request: ExecuteRequest
    revert: RevertRequest
    keep: bool
    def __init__(self, question: _Optional[_Union[DryRunQuestion, _Mapping]] = ..., request: _Optional[_Union[ExecuteRequest, _Mapping]] = ..., revert: _Optional[_Union[RevertRequest, _Mapping]] = ..., keep: _Optional[bool] = ...) -> None: ...

class DryRunQuestion(_message.Message):
    __slots__ = ("approval_id", "digest")
    APPROVAL_ID_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    approval_id: str
    digest: str
    def __init__(self, approval_id: _Optional[str] = ..., digest: _Optional[str] = ...) -> None: ...

class DryRunEvent(_message.Message):
    __slots__ = ("progress", "done")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    progress: str
    done: DryRunReply
    def __init__(self, progress: _Optional[str] = ..., done: _Optional[_Union[DryRunReply, _Mapping]] = ...) -> None: ...

class PreviewRequest(_message.Message):
    __slots__ = ("request", "revert", "action_id")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    REVERT_FIELD_NUMBER: _ClassVar[int]
    ACTION_ID_FIELD_NUMBER: _ClassVar[int]
    request: ExecuteRequest
    revert: RevertRequest
    action_id: str
    def __init__(self, request: _Optional[_Union[ExecuteRequest, _Mapping]] = ..., revert: _Optional[_Union[RevertRequest, _Mapping]] = ..., action_id: _Optional[str] = ...) -> None: ...

class DryRunReply(_message.Message):
    __slots__ = ("ok", "summary", "lines", "plan", "preview")
    OK_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    summary: str
    lines: _containers.RepeatedCompositeFieldContainer[DryLine]
    plan: _containers.RepeatedScalarFieldContainer[str]
    preview: str
    def __init__(self, ok: _Optional[bool] = ..., summary: _Optional[str] = ..., lines: _Optional[_Iterable[_Union[DryLine, _Mapping]]] = ..., plan: _Optional[_Iterable[str]] = ..., preview: _Optional[str] = ...) -> None: ...

class DryLine(_message.Message):
    __slots__ = ("kind", "text")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    text: str
    def __init__(self, kind: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class PresentRequest(_message.Message):
    __slots__ = ("passphrase", "assertion_json")
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    ASSERTION_JSON_FIELD_NUMBER: _ClassVar[int]
    passphrase: str
    assertion_json: str
    def __init__(self, passphrase: _Optional[str] = ..., assertion_json: _Optional[str] = ...) -> None: ...

class PresentReply(_message.Message):
    __slots__ = ("seconds",)
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    seconds: int
    def __init__(self, seconds: _Optional[int] = ...) -> None: ...

class GrantsRequest(_message.Message):
    __slots__ = ("all",)
    ALL_FIELD_NUMBER: _ClassVar[int]
    all: bool
    def __init__(self, all: _Optional[bool] = ...) -> None: ...

class GrantView(_message.Message):
    __slots__ = ("id", "agent", "service", "account", "scope", "width", "constraints_json", "created", "expires", "by", "why", "revoked", "used", "session", "digest", "uses", "last_used", "words", "times", "ends", "stale")
    ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINTS_JSON_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    REVOKED_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    LAST_USED_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    id: str
    agent: str
    service: str
    account: str
    scope: str
    width: str
    constraints_json: str
    created: str
    expires: str
    by: str
    why: str
    revoked: str
    used: str
    session: str
    digest: str
    uses: int
    last_used: str
    words: _containers.RepeatedScalarFieldContainer[str]
    times: int
    ends: str
    stale: str
    def __init__(self, id: _Optional[str] = ..., agent: _Optional[str] = ..., service: _Optional[str] = ..., account: _Optional[str] = ..., scope: _Optional[str] = ..., width: _Optional[str] = ..., constraints_json: _Optional[str] = ..., created: _Optional[str] = ..., expires: _Optional[str] = ..., by: _Optional[str] = ..., why: _Optional[str] = ..., revoked: _Optional[str] = ..., used: _Optional[str] = ..., session: _Optional[str] = ..., digest: _Optional[str] = ..., uses: _Optional[int] = ..., last_used: _Optional[str] = ..., words: _Optional[_Iterable[str]] = ..., times: _Optional[int] = ..., ends: _Optional[str] = ..., stale: _Optional[str] = ...) -> None: ...

class GrantsReply(_message.Message):
    __slots__ = ("grants",)
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    grants: _containers.RepeatedCompositeFieldContainer[GrantView]
    def __init__(self, grants: _Optional[_Iterable[_Union[GrantView, _Mapping]]] = ...) -> None: ...

class RevokeRequest(_message.Message):
    __slots__ = ("grant_ids", "agent", "service", "session", "task")
    GRANT_IDS_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    grant_ids: _containers.RepeatedScalarFieldContainer[str]
    agent: str
    service: str
    session: str
    task: str
    def __init__(self, grant_ids: _Optional[_Iterable[str]] = ..., agent: _Optional[str] = ..., service: _Optional[str] = ..., session: _Optional[str] = ..., task: _Optional[str] = ...) -> None: ...

class RevokeReply(_message.Message):
    __slots__ = ("grants",)
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    grants: _containers.RepeatedCompositeFieldContainer[GrantView]
    def __init__(self, grants: _Optional[_Iterable[_Union[GrantView, _Mapping]]] = ...) -> None: ...

class AddAgentRequest(_message.Message):
    __slots__ = ("name", "passphrase")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    name: str
    passphrase: str
    def __init__(self, name: _Optional[str] = ..., passphrase: _Optional[str] = ...) -> None: ...

class AddAgentReply(_message.Message):
    __slots__ = ("name", "token", "rules")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    name: str
    token: str
    rules: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., token: _Optional[str] = ..., rules: _Optional[_Iterable[str]] = ...) -> None: ...

class ListAgentsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AgentView(_message.Message):
    __slots__ = ("name", "created", "last_seen")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    created: str
    last_seen: str
    def __init__(self, name: _Optional[str] = ..., created: _Optional[str] = ..., last_seen: _Optional[str] = ...) -> None: ...

class ListAgentsReply(_message.Message):
    __slots__ = ("agents",)
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.RepeatedCompositeFieldContainer[AgentView]
    def __init__(self, agents: _Optional[_Iterable[_Union[AgentView, _Mapping]]] = ...) -> None: ...

class RemoveAgentRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class RemoveAgentReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class VaultInitRequest(_message.Message):
    __slots__ = ("keyed_by", "passphrase", "approval_passphrase")
    KEYED_BY_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    keyed_by: str
    passphrase: str
    approval_passphrase: str
    def __init__(self, keyed_by: _Optional[str] = ..., passphrase: _Optional[str] = ..., approval_passphrase: _Optional[str] = ...) -> None: ...

class VaultUnlockRequest(_message.Message):
    __slots__ = ("passphrase", "accept_log", "approval_passphrase")
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_LOG_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    passphrase: str
    accept_log: bool
    approval_passphrase: str
    def __init__(self, passphrase: _Optional[str] = ..., accept_log: _Optional[bool] = ..., approval_passphrase: _Optional[str] = ...) -> None: ...

class VaultSealRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class VaultStatus(_message.Message):
    __slots__ = ("state", "keyed_by", "records", "damage")
    STATE_FIELD_NUMBER: _ClassVar[int]
    KEYED_BY_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    DAMAGE_FIELD_NUMBER: _ClassVar[int]
    state: str
    keyed_by: str
    records: int
    damage: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, state: _Optional[str] = ..., keyed_by: _Optional[str] = ..., records: _Optional[int] = ..., damage: _Optional[_Iterable[str]] = ...) -> None: ...

class VaultPutRequest(_message.Message):
    __slots__ = ("service", "account", "secret", "format", "base_url", "origins", "private", "ca_pem", "replace", "passphrase", "file_name", "file_variable", "keep")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    BASE_URL_FIELD_NUMBER: _ClassVar[int]
    ORIGINS_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    CA_PEM_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    FILE_NAME_FIELD_NUMBER: _ClassVar[int]
    FILE_VARIABLE_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    service: str
    account: str
    secret: bytes
    format: str
    base_url: str
    origins: _containers.RepeatedScalarFieldContainer[str]
    private: bool
    ca_pem: str
    replace: bool
    passphrase: str
    file_name: str
    file_variable: str
    keep: bool
    def __init__(self, service: _Optional[str] = ..., account: _Optional[str] = ..., secret: _Optional[bytes] = ..., format: _Optional[str] = ..., base_url: _Optional[str] = ..., origins: _Optional[_Iterable[str]] = ..., private: _Optional[bool] = ..., ca_pem: _Optional[str] = ..., replace: _Optional[bool] = ..., passphrase: _Optional[str] = ..., file_name: _Optional[str] = ..., file_variable: _Optional[str] = ..., keep: _Optional[bool] = ...) -> None: ...

class AccountView(_message.Message):
    __slots__ = ("service", "account", "format", "base_url", "origins", "private", "ca", "created", "updated", "last_used")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    BASE_URL_FIELD_NUMBER: _ClassVar[int]
    ORIGINS_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    CA_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    UPDATED_FIELD_NUMBER: _ClassVar[int]
    LAST_USED_FIELD_NUMBER: _ClassVar[int]
    service: str
    account: str
    format: str
    base_url: str
    origins: _containers.RepeatedScalarFieldContainer[str]
    private: bool
    ca: bool
    created: str
    updated: str
    last_used: str
    def __init__(self, service: _Optional[str] = ..., account: _Optional[str] = ..., format: _Optional[str] = ..., base_url: _Optional[str] = ..., origins: _Optional[_Iterable[str]] = ..., private: _Optional[bool] = ..., ca: _Optional[bool] = ..., created: _Optional[str] = ..., updated: _Optional[str] = ..., last_used: _Optional[str] = ...) -> None: ...

class VaultListRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class VaultListReply(_message.Message):
    __slots__ = ("accounts",)
    ACCOUNTS_FIELD_NUMBER: _ClassVar[int]
    accounts: _containers.RepeatedCompositeFieldContainer[AccountView]
    def __init__(self, accounts: _Optional[_Iterable[_Union[AccountView, _Mapping]]] = ...) -> None: ...

class VaultRemoveRequest(_message.Message):
    __slots__ = ("service", "account", "passphrase")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    service: str
    account: str
    passphrase: str
    def __init__(self, service: _Optional[str] = ..., account: _Optional[str] = ..., passphrase: _Optional[str] = ...) -> None: ...

class VaultRemoveReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LogRequest(_message.Message):
    __slots__ = ("action_id", "limit", "before", "agent")
    ACTION_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    action_id: str
    limit: int
    before: int
    agent: str
    def __init__(self, action_id: _Optional[str] = ..., limit: _Optional[int] = ..., before: _Optional[int] = ..., agent: _Optional[str] = ...) -> None: ...

class LogRow(_message.Message):
    __slots__ = ("number", "at", "action_id", "agent", "kind", "to", "facts_json", "hash")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    ACTION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    FACTS_JSON_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    number: int
    at: str
    action_id: str
    agent: str
    kind: str
    to: str
    facts_json: str
    hash: str
    def __init__(self, number: _Optional[int] = ..., at: _Optional[str] = ..., action_id: _Optional[str] = ..., agent: _Optional[str] = ..., kind: _Optional[str] = ..., to: _Optional[str] = ..., facts_json: _Optional[str] = ..., hash: _Optional[str] = ..., **kwargs) -> None: ...

class LogReply(_message.Message):
    __slots__ = ("rows",)
    ROWS_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[LogRow]
    def __init__(self, rows: _Optional[_Iterable[_Union[LogRow, _Mapping]]] = ...) -> None: ...

class VerifyLogRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class VerifyLogReply(_message.Message):
    __slots__ = ("good", "rows", "head", "problem", "signed", "unproven", "authenticated")
    GOOD_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    SIGNED_FIELD_NUMBER: _ClassVar[int]
    UNPROVEN_FIELD_NUMBER: _ClassVar[int]
    AUTHENTICATED_FIELD_NUMBER: _ClassVar[int]
    good: bool
    rows: int
    head: str
    problem: str
    signed: int
    unproven: _containers.RepeatedScalarFieldContainer[str]
    authenticated: bool
    def __init__(self, good: _Optional[bool] = ..., rows: _Optional[int] = ..., head: _Optional[str] = ..., problem: _Optional[str] = ..., signed: _Optional[int] = ..., unproven: _Optional[_Iterable[str]] = ..., authenticated: _Optional[bool] = ...) -> None: ...

class ServicesRequest(_message.Message):
    __slots__ = ("service", "method", "versions")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    service: str
    method: str
    versions: bool
    def __init__(self, service: _Optional[str] = ..., method: _Optional[str] = ..., versions: _Optional[bool] = ...) -> None: ...

class MethodView(_message.Message):
    __slots__ = ("name", "description", "risk", "scopes", "undo", "parameters_json", "http", "path", "origin_id", "unsupported")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    RISK_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_JSON_FIELD_NUMBER: _ClassVar[int]
    HTTP_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_ID_FIELD_NUMBER: _ClassVar[int]
    UNSUPPORTED_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    risk: str
    scopes: _containers.RepeatedScalarFieldContainer[str]
    undo: str
    parameters_json: str
    http: str
    path: str
    origin_id: str
    unsupported: str
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., risk: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ..., undo: _Optional[str] = ..., parameters_json: _Optional[str] = ..., http: _Optional[str] = ..., path: _Optional[str] = ..., origin_id: _Optional[str] = ..., unsupported: _Optional[str] = ...) -> None: ...

class ScopeView(_message.Message):
    __slots__ = ("name", "description", "risk", "virtual")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    RISK_FIELD_NUMBER: _ClassVar[int]
    VIRTUAL_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    risk: str
    virtual: bool
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., risk: _Optional[str] = ..., virtual: _Optional[bool] = ...) -> None: ...

class ServiceView(_message.Message):
    __slots__ = ("name", "title", "base_url", "methods", "accounts", "method_count", "description", "source", "provider", "provider_name", "version", "main", "scopes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    BASE_URL_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    ACCOUNTS_FIELD_NUMBER: _ClassVar[int]
    METHOD_COUNT_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MAIN_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    name: str
    title: str
    base_url: str
    methods: _containers.RepeatedCompositeFieldContainer[MethodView]
    accounts: _containers.RepeatedScalarFieldContainer[str]
    method_count: int
    description: str
    source: str
    provider: str
    provider_name: str
    version: str
    main: bool
    scopes: _containers.RepeatedCompositeFieldContainer[ScopeView]
    def __init__(self, name: _Optional[str] = ..., title: _Optional[str] = ..., base_url: _Optional[str] = ..., methods: _Optional[_Iterable[_Union[MethodView, _Mapping]]] = ..., accounts: _Optional[_Iterable[str]] = ..., method_count: _Optional[int] = ..., description: _Optional[str] = ..., source: _Optional[str] = ..., provider: _Optional[str] = ..., provider_name: _Optional[str] = ..., version: _Optional[str] = ..., main: _Optional[bool] = ..., scopes: _Optional[_Iterable[_Union[ScopeView, _Mapping]]] = ...) -> None: ...

class ServicesReply(_message.Message):
    __slots__ = ("services", "trouble")
    SERVICES_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    services: _containers.RepeatedCompositeFieldContainer[ServiceView]
    trouble: str
    def __init__(self, services: _Optional[_Iterable[_Union[ServiceView, _Mapping]]] = ..., trouble: _Optional[str] = ...) -> None: ...

class ShutdownRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ShutdownReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
