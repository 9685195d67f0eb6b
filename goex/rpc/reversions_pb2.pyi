from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PairView(_message.Message):
    __slots__ = ("hash", "method", "source", "standing", "fits", "calls", "pre", "guard", "verify", "note", "added", "by", "stale", "worked", "unverified", "failure", "scopes")
    HASH_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    FITS_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    PRE_FIELD_NUMBER: _ClassVar[int]
    GUARD_FIELD_NUMBER: _ClassVar[int]
    VERIFY_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    WORKED_FIELD_NUMBER: _ClassVar[int]
    UNVERIFIED_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    hash: str
    method: str
    source: str
    standing: str
    fits: str
    calls: _containers.RepeatedScalarFieldContainer[str]
    pre: str
    guard: str
    verify: str
    note: str
    added: str
    by: str
    stale: str
    worked: int
    unverified: int
    failure: str
    scopes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hash: _Optional[str] = ..., method: _Optional[str] = ..., source: _Optional[str] = ..., standing: _Optional[str] = ..., fits: _Optional[str] = ..., calls: _Optional[_Iterable[str]] = ..., pre: _Optional[str] = ..., guard: _Optional[str] = ..., verify: _Optional[str] = ..., note: _Optional[str] = ..., added: _Optional[str] = ..., by: _Optional[str] = ..., stale: _Optional[str] = ..., worked: _Optional[int] = ..., unverified: _Optional[int] = ..., failure: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ...) -> None: ...

class ListPairsRequest(_message.Message):
    __slots__ = ("of", "failed")
    OF_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    of: str
    failed: bool
    def __init__(self, of: _Optional[str] = ..., failed: _Optional[bool] = ...) -> None: ...

class ListPairsReply(_message.Message):
    __slots__ = ("pairs", "trouble", "strict")
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    STRICT_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[PairView]
    trouble: str
    strict: str
    def __init__(self, pairs: _Optional[_Iterable[_Union[PairView, _Mapping]]] = ..., trouble: _Optional[str] = ..., strict: _Optional[str] = ...) -> None: ...

class ShowPairRequest(_message.Message):
    __slots__ = ("hash",)
    HASH_FIELD_NUMBER: _ClassVar[int]
    hash: str
    def __init__(self, hash: _Optional[str] = ...) -> None: ...

class PairUse(_message.Message):
    __slots__ = ("action", "call", "result", "why", "at")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    action: str
    call: int
    result: str
    why: str
    at: str
    def __init__(self, action: _Optional[str] = ..., call: _Optional[int] = ..., result: _Optional[str] = ..., why: _Optional[str] = ..., at: _Optional[str] = ...) -> None: ...

class ShowPairReply(_message.Message):
    __slots__ = ("pair", "undo_json", "uses")
    PAIR_FIELD_NUMBER: _ClassVar[int]
    UNDO_JSON_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    pair: PairView
    undo_json: str
    uses: _containers.RepeatedCompositeFieldContainer[PairUse]
    def __init__(self, pair: _Optional[_Union[PairView, _Mapping]] = ..., undo_json: _Optional[str] = ..., uses: _Optional[_Iterable[_Union[PairUse, _Mapping]]] = ...) -> None: ...

class CheckPairsRequest(_message.Message):
    __slots__ = ("name", "text")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class CheckPairsReply(_message.Message):
    __slots__ = ("pairs",)
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[ShowPairReply]
    def __init__(self, pairs: _Optional[_Iterable[_Union[ShowPairReply, _Mapping]]] = ...) -> None: ...

class AddPairsRequest(_message.Message):
    __slots__ = ("name", "text", "proposal", "passphrase")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PROPOSAL_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    proposal: str
    passphrase: str
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., proposal: _Optional[str] = ..., passphrase: _Optional[str] = ...) -> None: ...

class AddPairsReply(_message.Message):
    __slots__ = ("pairs",)
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[PairView]
    def __init__(self, pairs: _Optional[_Iterable[_Union[PairView, _Mapping]]] = ...) -> None: ...

class RemovePairRequest(_message.Message):
    __slots__ = ("hash", "passphrase")
    HASH_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    hash: str
    passphrase: str
    def __init__(self, hash: _Optional[str] = ..., passphrase: _Optional[str] = ...) -> None: ...

class RemovePairReply(_message.Message):
    __slots__ = ("method",)
    METHOD_FIELD_NUMBER: _ClassVar[int]
    method: str
    def __init__(self, method: _Optional[str] = ...) -> None: ...

class RetryPairRequest(_message.Message):
    __slots__ = ("hash", "passphrase")
    HASH_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    hash: str
    passphrase: str
    def __init__(self, hash: _Optional[str] = ..., passphrase: _Optional[str] = ...) -> None: ...

class RetryPairReply(_message.Message):
    __slots__ = ("hash",)
    HASH_FIELD_NUMBER: _ClassVar[int]
    hash: str
    def __init__(self, hash: _Optional[str] = ...) -> None: ...

class ProposePairRequest(_message.Message):
    __slots__ = ("method",)
    METHOD_FIELD_NUMBER: _ClassVar[int]
    method: str
    def __init__(self, method: _Optional[str] = ...) -> None: ...

class RestorePairsRequest(_message.Message):
    __slots__ = ("passphrase",)
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    passphrase: str
    def __init__(self, passphrase: _Optional[str] = ...) -> None: ...

class RestorePairsReply(_message.Message):
    __slots__ = ("count",)
    COUNT_FIELD_NUMBER: _ClassVar[int]
    count: int
    def __init__(self, count: _Optional[int] = ...) -> None: ...
