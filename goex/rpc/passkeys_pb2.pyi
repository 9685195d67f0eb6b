from goex.rpc import goex_pb2 as _goex_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BeginPasskeyRequest(_message.Message):
    __slots__ = ("name", "origin")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    name: str
    origin: str
    def __init__(self, name: _Optional[str] = ..., origin: _Optional[str] = ...) -> None: ...

class BeginPasskeyReply(_message.Message):
    __slots__ = ("options_json",)
    OPTIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    options_json: str
    def __init__(self, options_json: _Optional[str] = ...) -> None: ...

class AddPasskeyRequest(_message.Message):
    __slots__ = ("name", "credential_json", "passphrase", "assertion_json")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_JSON_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    ASSERTION_JSON_FIELD_NUMBER: _ClassVar[int]
    name: str
    credential_json: str
    passphrase: str
    assertion_json: str
    def __init__(self, name: _Optional[str] = ..., credential_json: _Optional[str] = ..., passphrase: _Optional[str] = ..., assertion_json: _Optional[str] = ...) -> None: ...

class PasskeyView(_message.Message):
    __slots__ = ("id", "name", "created", "used", "public_key", "credential_id", "rp_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_ID_FIELD_NUMBER: _ClassVar[int]
    RP_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    created: str
    used: str
    public_key: bytes
    credential_id: str
    rp_id: str
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., created: _Optional[str] = ..., used: _Optional[str] = ..., public_key: _Optional[bytes] = ..., credential_id: _Optional[str] = ..., rp_id: _Optional[str] = ...) -> None: ...

class ListPasskeysRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListPasskeysReply(_message.Message):
    __slots__ = ("passkeys", "presence", "reset_at", "waiting", "sessions")
    PASSKEYS_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_FIELD_NUMBER: _ClassVar[int]
    RESET_AT_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    passkeys: _containers.RepeatedCompositeFieldContainer[PasskeyView]
    presence: str
    reset_at: str
    waiting: _containers.RepeatedCompositeFieldContainer[WaitingCall]
    sessions: _containers.RepeatedCompositeFieldContainer[PageSession]
    def __init__(self, passkeys: _Optional[_Iterable[_Union[PasskeyView, _Mapping]]] = ..., presence: _Optional[str] = ..., reset_at: _Optional[str] = ..., waiting: _Optional[_Iterable[_Union[WaitingCall, _Mapping]]] = ..., sessions: _Optional[_Iterable[_Union[PageSession, _Mapping]]] = ...) -> None: ...

class WaitingCall(_message.Message):
    __slots__ = ("id", "what", "by", "at", "call", "request", "request_json", "lines")
    ID_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    REQUEST_JSON_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    id: str
    what: str
    by: str
    at: str
    call: str
    request: str
    request_json: str
    lines: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., what: _Optional[str] = ..., by: _Optional[str] = ..., at: _Optional[str] = ..., call: _Optional[str] = ..., request: _Optional[str] = ..., request_json: _Optional[str] = ..., lines: _Optional[_Iterable[str]] = ...) -> None: ...

class RemovePasskeyRequest(_message.Message):
    __slots__ = ("id", "passphrase", "assertion_json")
    ID_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    ASSERTION_JSON_FIELD_NUMBER: _ClassVar[int]
    id: str
    passphrase: str
    assertion_json: str
    def __init__(self, id: _Optional[str] = ..., passphrase: _Optional[str] = ..., assertion_json: _Optional[str] = ...) -> None: ...

class RemovePasskeyReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ChallengeRequest(_message.Message):
    __slots__ = ("decide", "remove", "add", "presence", "sign_in", "origin")
    DECIDE_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    ADD_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_FIELD_NUMBER: _ClassVar[int]
    SIGN_IN_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    decide: _goex_pb2.DecideRequest
    remove: RemovePasskeyRequest
    add: AddPasskeyRequest
    presence: str
    sign_in: SignInRequest
    origin: str
    def __init__(self, decide: _Optional[_Union[_goex_pb2.DecideRequest, _Mapping]] = ..., remove: _Optional[_Union[RemovePasskeyRequest, _Mapping]] = ..., add: _Optional[_Union[AddPasskeyRequest, _Mapping]] = ..., presence: _Optional[str] = ..., sign_in: _Optional[_Union[SignInRequest, _Mapping]] = ..., origin: _Optional[str] = ...) -> None: ...

class ChallengeReply(_message.Message):
    __slots__ = ("options_json", "statement_json")
    OPTIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_JSON_FIELD_NUMBER: _ClassVar[int]
    options_json: str
    statement_json: str
    def __init__(self, options_json: _Optional[str] = ..., statement_json: _Optional[str] = ...) -> None: ...

class ResetPasskeysRequest(_message.Message):
    __slots__ = ("passphrase", "cancel")
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    passphrase: str
    cancel: bool
    def __init__(self, passphrase: _Optional[str] = ..., cancel: _Optional[bool] = ...) -> None: ...

class ResetPasskeysReply(_message.Message):
    __slots__ = ("reset_at", "done")
    RESET_AT_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    reset_at: str
    done: bool
    def __init__(self, reset_at: _Optional[str] = ..., done: _Optional[bool] = ...) -> None: ...

class SignInRequest(_message.Message):
    __slots__ = ("assertion_json", "by_link")
    ASSERTION_JSON_FIELD_NUMBER: _ClassVar[int]
    BY_LINK_FIELD_NUMBER: _ClassVar[int]
    assertion_json: str
    by_link: bool
    def __init__(self, assertion_json: _Optional[str] = ..., by_link: _Optional[bool] = ...) -> None: ...

class PageSession(_message.Message):
    __slots__ = ("id", "passkey", "name", "begun", "ends")
    ID_FIELD_NUMBER: _ClassVar[int]
    PASSKEY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    BEGUN_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    id: str
    passkey: str
    name: str
    begun: str
    ends: str
    def __init__(self, id: _Optional[str] = ..., passkey: _Optional[str] = ..., name: _Optional[str] = ..., begun: _Optional[str] = ..., ends: _Optional[str] = ...) -> None: ...

class EndSessionRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class EndSessionReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
