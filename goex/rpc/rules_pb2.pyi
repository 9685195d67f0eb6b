from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RuleFile(_message.Message):
    __slots__ = ("name", "text")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class RuleView(_message.Message):
    __slots__ = ("name", "effect", "file", "line", "text")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    name: str
    effect: str
    file: str
    line: int
    text: str
    def __init__(self, name: _Optional[str] = ..., effect: _Optional[str] = ..., file: _Optional[str] = ..., line: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class RuleFinding(_message.Message):
    __slots__ = ("file", "line", "column", "rule", "error", "says", "next_step")
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SAYS_FIELD_NUMBER: _ClassVar[int]
    NEXT_STEP_FIELD_NUMBER: _ClassVar[int]
    file: str
    line: int
    column: int
    rule: str
    error: bool
    says: str
    next_step: str
    def __init__(self, file: _Optional[str] = ..., line: _Optional[int] = ..., column: _Optional[int] = ..., rule: _Optional[str] = ..., error: _Optional[bool] = ..., says: _Optional[str] = ..., next_step: _Optional[str] = ...) -> None: ...

class RuleChange(_message.Message):
    __slots__ = ("change", "name", "effect", "before", "after")
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    change: str
    name: str
    effect: str
    before: str
    after: str
    def __init__(self, change: _Optional[str] = ..., name: _Optional[str] = ..., effect: _Optional[str] = ..., before: _Optional[str] = ..., after: _Optional[str] = ...) -> None: ...

class InForceRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RestingAgent(_message.Message):
    __slots__ = ("agent", "until")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    agent: str
    until: str
    def __init__(self, agent: _Optional[str] = ..., until: _Optional[str] = ...) -> None: ...

class Confined(_message.Message):
    __slots__ = ("what", "to")
    WHAT_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    what: str
    to: str
    def __init__(self, what: _Optional[str] = ..., to: _Optional[str] = ...) -> None: ...

class InForceReply(_message.Message):
    __slots__ = ("rules", "applied", "by", "hash", "trouble", "drafts", "drafts_trouble", "confined", "resting", "default_text", "folder", "catalog")
    RULES_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    DRAFTS_FIELD_NUMBER: _ClassVar[int]
    DRAFTS_TROUBLE_FIELD_NUMBER: _ClassVar[int]
    CONFINED_FIELD_NUMBER: _ClassVar[int]
    RESTING_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_TEXT_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    rules: _containers.RepeatedCompositeFieldContainer[RuleView]
    applied: str
    by: str
    hash: str
    trouble: str
    drafts: _containers.RepeatedCompositeFieldContainer[RuleChange]
    drafts_trouble: str
    confined: _containers.RepeatedCompositeFieldContainer[Confined]
    resting: _containers.RepeatedCompositeFieldContainer[RestingAgent]
    default_text: str
    folder: str
    catalog: str
    def __init__(self, rules: _Optional[_Iterable[_Union[RuleView, _Mapping]]] = ..., applied: _Optional[str] = ..., by: _Optional[str] = ..., hash: _Optional[str] = ..., trouble: _Optional[str] = ..., drafts: _Optional[_Iterable[_Union[RuleChange, _Mapping]]] = ..., drafts_trouble: _Optional[str] = ..., confined: _Optional[_Iterable[_Union[Confined, _Mapping]]] = ..., resting: _Optional[_Iterable[_Union[RestingAgent, _Mapping]]] = ..., default_text: _Optional[str] = ..., folder: _Optional[str] = ..., catalog: _Optional[str] = ...) -> None: ...

class CheckRulesRequest(_message.Message):
    __slots__ = ("files",)
    FILES_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[RuleFile]
    def __init__(self, files: _Optional[_Iterable[_Union[RuleFile, _Mapping]]] = ...) -> None: ...

class CheckRulesReply(_message.Message):
    __slots__ = ("findings", "changes", "rules", "hash", "catalog")
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    findings: _containers.RepeatedCompositeFieldContainer[RuleFinding]
    changes: _containers.RepeatedCompositeFieldContainer[RuleChange]
    rules: int
    hash: str
    catalog: str
    def __init__(self, findings: _Optional[_Iterable[_Union[RuleFinding, _Mapping]]] = ..., changes: _Optional[_Iterable[_Union[RuleChange, _Mapping]]] = ..., rules: _Optional[int] = ..., hash: _Optional[str] = ..., catalog: _Optional[str] = ...) -> None: ...

class ApplyRulesRequest(_message.Message):
    __slots__ = ("files", "compared_with", "passphrase")
    FILES_FIELD_NUMBER: _ClassVar[int]
    COMPARED_WITH_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[RuleFile]
    compared_with: str
    passphrase: str
    def __init__(self, files: _Optional[_Iterable[_Union[RuleFile, _Mapping]]] = ..., compared_with: _Optional[str] = ..., passphrase: _Optional[str] = ...) -> None: ...

class TestRulesRequest(_message.Message):
    __slots__ = ("cases_json", "files", "drafts")
    CASES_JSON_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    DRAFTS_FIELD_NUMBER: _ClassVar[int]
    cases_json: str
    files: _containers.RepeatedCompositeFieldContainer[RuleFile]
    drafts: bool
    def __init__(self, cases_json: _Optional[str] = ..., files: _Optional[_Iterable[_Union[RuleFile, _Mapping]]] = ..., drafts: _Optional[bool] = ...) -> None: ...

class CaseResult(_message.Message):
    __slots__ = ("name", "expected", "expected_rule", "came", "rules", "reason", "good")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_RULE_FIELD_NUMBER: _ClassVar[int]
    CAME_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    GOOD_FIELD_NUMBER: _ClassVar[int]
    name: str
    expected: str
    expected_rule: str
    came: str
    rules: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    good: bool
    def __init__(self, name: _Optional[str] = ..., expected: _Optional[str] = ..., expected_rule: _Optional[str] = ..., came: _Optional[str] = ..., rules: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ..., good: _Optional[bool] = ...) -> None: ...

class TestRulesReply(_message.Message):
    __slots__ = ("results", "failed")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[CaseResult]
    failed: int
    def __init__(self, results: _Optional[_Iterable[_Union[CaseResult, _Mapping]]] = ..., failed: _Optional[int] = ...) -> None: ...

class ExplainRulesRequest(_message.Message):
    __slots__ = ("action_id", "case_json")
    ACTION_ID_FIELD_NUMBER: _ClassVar[int]
    CASE_JSON_FIELD_NUMBER: _ClassVar[int]
    action_id: str
    case_json: str
    def __init__(self, action_id: _Optional[str] = ..., case_json: _Optional[str] = ...) -> None: ...

class RuleVerdict(_message.Message):
    __slots__ = ("rule", "effect", "problem")
    RULE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    rule: str
    effect: str
    problem: str
    def __init__(self, rule: _Optional[str] = ..., effect: _Optional[str] = ..., problem: _Optional[str] = ...) -> None: ...

class ExplainedCall(_message.Message):
    __slots__ = ("what", "kind", "verdicts")
    WHAT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    what: str
    kind: str
    verdicts: _containers.RepeatedCompositeFieldContainer[RuleVerdict]
    def __init__(self, what: _Optional[str] = ..., kind: _Optional[str] = ..., verdicts: _Optional[_Iterable[_Union[RuleVerdict, _Mapping]]] = ...) -> None: ...

class ExplainRulesReply(_message.Message):
    __slots__ = ("agent", "calls", "decision", "rules", "grants", "reason", "asked", "then")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    THEN_FIELD_NUMBER: _ClassVar[int]
    agent: str
    calls: _containers.RepeatedCompositeFieldContainer[ExplainedCall]
    decision: str
    rules: _containers.RepeatedScalarFieldContainer[str]
    grants: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    asked: _containers.RepeatedScalarFieldContainer[str]
    then: str
    def __init__(self, agent: _Optional[str] = ..., calls: _Optional[_Iterable[_Union[ExplainedCall, _Mapping]]] = ..., decision: _Optional[str] = ..., rules: _Optional[_Iterable[str]] = ..., grants: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ..., asked: _Optional[_Iterable[str]] = ..., then: _Optional[str] = ...) -> None: ...

class SuggestRulesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SuggestedValue(_message.Message):
    __slots__ = ("argument", "values")
    ARGUMENT_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    argument: str
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, argument: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class SuggestedRule(_message.Message):
    __slots__ = ("name", "text", "agent", "method", "account", "risk", "free", "values", "answers", "unanswered", "combinations", "methods")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    RISK_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    UNANSWERED_FIELD_NUMBER: _ClassVar[int]
    COMBINATIONS_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    agent: str
    method: str
    account: str
    risk: str
    free: _containers.RepeatedScalarFieldContainer[str]
    values: _containers.RepeatedCompositeFieldContainer[SuggestedValue]
    answers: int
    unanswered: int
    combinations: int
    methods: int
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., agent: _Optional[str] = ..., method: _Optional[str] = ..., account: _Optional[str] = ..., risk: _Optional[str] = ..., free: _Optional[_Iterable[str]] = ..., values: _Optional[_Iterable[_Union[SuggestedValue, _Mapping]]] = ..., answers: _Optional[int] = ..., unanswered: _Optional[int] = ..., combinations: _Optional[int] = ..., methods: _Optional[int] = ...) -> None: ...

class SuggestRulesReply(_message.Message):
    __slots__ = ("rules", "text", "asked", "answered", "denied", "unanswered")
    RULES_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    DENIED_FIELD_NUMBER: _ClassVar[int]
    UNANSWERED_FIELD_NUMBER: _ClassVar[int]
    rules: _containers.RepeatedCompositeFieldContainer[SuggestedRule]
    text: str
    asked: int
    answered: int
    denied: int
    unanswered: int
    def __init__(self, rules: _Optional[_Iterable[_Union[SuggestedRule, _Mapping]]] = ..., text: _Optional[str] = ..., asked: _Optional[int] = ..., answered: _Optional[int] = ..., denied: _Optional[int] = ..., unanswered: _Optional[int] = ...) -> None: ...

class ApplySuggestedRulesRequest(_message.Message):
    __slots__ = ("rules", "compared_with", "passphrase")
    RULES_FIELD_NUMBER: _ClassVar[int]
    COMPARED_WITH_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    rules: _containers.RepeatedScalarFieldContainer[str]
    compared_with: str
    passphrase: str
    def __init__(self, rules: _Optional[_Iterable[str]] = ..., compared_with: _Optional[str] = ..., passphrase: _Optional[str] = ...) -> None: ...

class WakeAgentRequest(_message.Message):
    __slots__ = ("agent", "passphrase")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    agent: str
    passphrase: str
    def __init__(self, agent: _Optional[str] = ..., passphrase: _Optional[str] = ...) -> None: ...

class WakeAgentReply(_message.Message):
    __slots__ = ("rested",)
    RESTED_FIELD_NUMBER: _ClassVar[int]
    rested: bool
    def __init__(self, rested: _Optional[bool] = ...) -> None: ...
