from goex.rpc import goex_pb2 as _goex_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Wanted(_message.Message):
    __slots__ = ("since", "until", "agent", "service", "risk", "session", "state", "kind", "action_id", "text", "before", "limit", "task")
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    RISK_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ACTION_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    since: str
    until: str
    agent: str
    service: str
    risk: str
    session: str
    state: str
    kind: str
    action_id: str
    text: str
    before: int
    limit: int
    task: str
    def __init__(self, since: _Optional[str] = ..., until: _Optional[str] = ..., agent: _Optional[str] = ..., service: _Optional[str] = ..., risk: _Optional[str] = ..., session: _Optional[str] = ..., state: _Optional[str] = ..., kind: _Optional[str] = ..., action_id: _Optional[str] = ..., text: _Optional[str] = ..., before: _Optional[int] = ..., limit: _Optional[int] = ..., task: _Optional[str] = ...) -> None: ...

class UsedGrant(_message.Message):
    __slots__ = ("id", "service", "account", "scope", "width", "by", "at", "for_action")
    ID_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    FOR_ACTION_FIELD_NUMBER: _ClassVar[int]
    id: str
    service: str
    account: str
    scope: str
    width: str
    by: str
    at: str
    for_action: str
    def __init__(self, id: _Optional[str] = ..., service: _Optional[str] = ..., account: _Optional[str] = ..., scope: _Optional[str] = ..., width: _Optional[str] = ..., by: _Optional[str] = ..., at: _Optional[str] = ..., for_action: _Optional[str] = ...) -> None: ...

class Decided(_message.Message):
    __slots__ = ("verdict", "by", "person", "grants", "rules", "reason", "at")
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    PERSON_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    verdict: str
    by: str
    person: bool
    grants: _containers.RepeatedCompositeFieldContainer[UsedGrant]
    rules: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    at: str
    def __init__(self, verdict: _Optional[str] = ..., by: _Optional[str] = ..., person: _Optional[bool] = ..., grants: _Optional[_Iterable[_Union[UsedGrant, _Mapping]]] = ..., rules: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ..., at: _Optional[str] = ...) -> None: ...

class LoggedAction(_message.Message):
    __slots__ = ("number", "id", "created", "updated", "agent", "session", "kind", "state", "what", "what_cut", "risk", "services", "decided", "outcome", "undo_class", "can_undo", "can_redo", "taken_back_by", "target", "held_until")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    UPDATED_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    WHAT_CUT_FIELD_NUMBER: _ClassVar[int]
    RISK_FIELD_NUMBER: _ClassVar[int]
    SERVICES_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    UNDO_CLASS_FIELD_NUMBER: _ClassVar[int]
    CAN_UNDO_FIELD_NUMBER: _ClassVar[int]
    CAN_REDO_FIELD_NUMBER: _ClassVar[int]
    TAKEN_BACK_BY_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    HELD_UNTIL_FIELD_NUMBER: _ClassVar[int]
    number: int
    id: str
    created: str
    updated: str
    agent: str
    session: str
    kind: str
    state: str
    what: str
    what_cut: int
    risk: str
    services: _containers.RepeatedScalarFieldContainer[str]
    decided: Decided
    outcome: str
    undo_class: str
    can_undo: bool
    can_redo: bool
    taken_back_by: str
    target: str
    held_until: str
    def __init__(self, number: _Optional[int] = ..., id: _Optional[str] = ..., created: _Optional[str] = ..., updated: _Optional[str] = ..., agent: _Optional[str] = ..., session: _Optional[str] = ..., kind: _Optional[str] = ..., state: _Optional[str] = ..., what: _Optional[str] = ..., what_cut: _Optional[int] = ..., risk: _Optional[str] = ..., services: _Optional[_Iterable[str]] = ..., decided: _Optional[_Union[Decided, _Mapping]] = ..., outcome: _Optional[str] = ..., undo_class: _Optional[str] = ..., can_undo: _Optional[bool] = ..., can_redo: _Optional[bool] = ..., taken_back_by: _Optional[str] = ..., target: _Optional[str] = ..., held_until: _Optional[str] = ...) -> None: ...

class ActionsPage(_message.Message):
    __slots__ = ("actions", "before")
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    actions: _containers.RepeatedCompositeFieldContainer[LoggedAction]
    before: int
    def __init__(self, actions: _Optional[_Iterable[_Union[LoggedAction, _Mapping]]] = ..., before: _Optional[int] = ...) -> None: ...

class Exchanged(_message.Message):
    __slots__ = ("at", "request", "call", "method", "host", "path", "status", "bytes", "well", "refused", "failed")
    AT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    WELL_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    at: str
    request: str
    call: str
    method: str
    host: str
    path: str
    status: int
    bytes: int
    well: bool
    refused: str
    failed: str
    def __init__(self, at: _Optional[str] = ..., request: _Optional[str] = ..., call: _Optional[str] = ..., method: _Optional[str] = ..., host: _Optional[str] = ..., path: _Optional[str] = ..., status: _Optional[int] = ..., bytes: _Optional[int] = ..., well: _Optional[bool] = ..., refused: _Optional[str] = ..., failed: _Optional[str] = ...) -> None: ...

class Leased(_message.Message):
    __slots__ = ("at", "service", "account", "facts_json")
    AT_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    FACTS_JSON_FIELD_NUMBER: _ClassVar[int]
    at: str
    service: str
    account: str
    facts_json: str
    def __init__(self, at: _Optional[str] = ..., service: _Optional[str] = ..., account: _Optional[str] = ..., facts_json: _Optional[str] = ...) -> None: ...

class StoryReply(_message.Message):
    __slots__ = ("action", "logged", "source", "mapping_json", "asked_at", "leases", "exchanges", "reverts", "rows", "rows_left_out", "problem")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    LOGGED_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    MAPPING_JSON_FIELD_NUMBER: _ClassVar[int]
    ASKED_AT_FIELD_NUMBER: _ClassVar[int]
    LEASES_FIELD_NUMBER: _ClassVar[int]
    EXCHANGES_FIELD_NUMBER: _ClassVar[int]
    REVERTS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    ROWS_LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    action: _goex_pb2.ActionView
    logged: LoggedAction
    source: str
    mapping_json: str
    asked_at: str
    leases: _containers.RepeatedCompositeFieldContainer[Leased]
    exchanges: _containers.RepeatedCompositeFieldContainer[Exchanged]
    reverts: _containers.RepeatedCompositeFieldContainer[LoggedAction]
    rows: _containers.RepeatedCompositeFieldContainer[_goex_pb2.LogRow]
    rows_left_out: int
    problem: _goex_pb2.Problem
    def __init__(self, action: _Optional[_Union[_goex_pb2.ActionView, _Mapping]] = ..., logged: _Optional[_Union[LoggedAction, _Mapping]] = ..., source: _Optional[str] = ..., mapping_json: _Optional[str] = ..., asked_at: _Optional[str] = ..., leases: _Optional[_Iterable[_Union[Leased, _Mapping]]] = ..., exchanges: _Optional[_Iterable[_Union[Exchanged, _Mapping]]] = ..., reverts: _Optional[_Iterable[_Union[LoggedAction, _Mapping]]] = ..., rows: _Optional[_Iterable[_Union[_goex_pb2.LogRow, _Mapping]]] = ..., rows_left_out: _Optional[int] = ..., problem: _Optional[_Union[_goex_pb2.Problem, _Mapping]] = ...) -> None: ...

class VerifyProgress(_message.Message):
    __slots__ = ("checked", "rows", "result")
    CHECKED_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    checked: int
    rows: int
    result: _goex_pb2.VerifyLogReply
    def __init__(self, checked: _Optional[int] = ..., rows: _Optional[int] = ..., result: _Optional[_Union[_goex_pb2.VerifyLogReply, _Mapping]] = ...) -> None: ...

class ExportChunk(_message.Message):
    __slots__ = ("lines", "rows", "of")
    LINES_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    OF_FIELD_NUMBER: _ClassVar[int]
    lines: bytes
    rows: int
    of: int
    def __init__(self, lines: _Optional[bytes] = ..., rows: _Optional[int] = ..., of: _Optional[int] = ...) -> None: ...

class ScopesRequest(_message.Message):
    __slots__ = ("agent",)
    AGENT_FIELD_NUMBER: _ClassVar[int]
    agent: str
    def __init__(self, agent: _Optional[str] = ...) -> None: ...

class UsedScope(_message.Message):
    __slots__ = ("grant", "uses", "last_used", "methods", "methods_unused", "methods_open")
    GRANT_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    LAST_USED_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    METHODS_UNUSED_FIELD_NUMBER: _ClassVar[int]
    METHODS_OPEN_FIELD_NUMBER: _ClassVar[int]
    grant: _goex_pb2.GrantView
    uses: int
    last_used: str
    methods: _containers.RepeatedScalarFieldContainer[str]
    methods_unused: _containers.RepeatedScalarFieldContainer[str]
    methods_open: int
    def __init__(self, grant: _Optional[_Union[_goex_pb2.GrantView, _Mapping]] = ..., uses: _Optional[int] = ..., last_used: _Optional[str] = ..., methods: _Optional[_Iterable[str]] = ..., methods_unused: _Optional[_Iterable[str]] = ..., methods_open: _Optional[int] = ...) -> None: ...

class ScopesReply(_message.Message):
    __slots__ = ("scopes",)
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    scopes: _containers.RepeatedCompositeFieldContainer[UsedScope]
    def __init__(self, scopes: _Optional[_Iterable[_Union[UsedScope, _Mapping]]] = ...) -> None: ...
