from goex.rpc import goex_pb2 as _goex_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RotateRequest(_message.Message):
    __slots__ = ("anew", "keyed_by", "passphrase", "current_passphrase", "approval_passphrase")
    ANEW_FIELD_NUMBER: _ClassVar[int]
    KEYED_BY_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    anew: bool
    keyed_by: str
    passphrase: str
    current_passphrase: str
    approval_passphrase: str
    def __init__(self, anew: _Optional[bool] = ..., keyed_by: _Optional[str] = ..., passphrase: _Optional[str] = ..., current_passphrase: _Optional[str] = ..., approval_passphrase: _Optional[str] = ...) -> None: ...

class RotateStep(_message.Message):
    __slots__ = ("progress", "done")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    progress: RotateProgress
    done: _goex_pb2.VaultStatus
    def __init__(self, progress: _Optional[_Union[RotateProgress, _Mapping]] = ..., done: _Optional[_Union[_goex_pb2.VaultStatus, _Mapping]] = ...) -> None: ...

class RotateProgress(_message.Message):
    __slots__ = ("of", "done", "total")
    OF_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    of: str
    done: int
    total: int
    def __init__(self, of: _Optional[str] = ..., done: _Optional[int] = ..., total: _Optional[int] = ...) -> None: ...

class ChangeApprovalRequest(_message.Message):
    __slots__ = ("current", "passphrase")
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    current: str
    passphrase: str
    def __init__(self, current: _Optional[str] = ..., passphrase: _Optional[str] = ...) -> None: ...

class BackupRequest(_message.Message):
    __slots__ = ("path", "passphrase", "approval_passphrase")
    PATH_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    path: str
    passphrase: str
    approval_passphrase: str
    def __init__(self, path: _Optional[str] = ..., passphrase: _Optional[str] = ..., approval_passphrase: _Optional[str] = ...) -> None: ...

class BackupReply(_message.Message):
    __slots__ = ("path", "bytes", "records")
    PATH_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    path: str
    bytes: int
    records: int
    def __init__(self, path: _Optional[str] = ..., bytes: _Optional[int] = ..., records: _Optional[int] = ...) -> None: ...

class RestoreRequest(_message.Message):
    __slots__ = ("path", "backup_passphrase", "keyed_by", "passphrase", "replace", "approval_passphrase")
    PATH_FIELD_NUMBER: _ClassVar[int]
    BACKUP_PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    KEYED_BY_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    path: str
    backup_passphrase: str
    keyed_by: str
    passphrase: str
    replace: bool
    approval_passphrase: str
    def __init__(self, path: _Optional[str] = ..., backup_passphrase: _Optional[str] = ..., keyed_by: _Optional[str] = ..., passphrase: _Optional[str] = ..., replace: _Optional[bool] = ..., approval_passphrase: _Optional[str] = ...) -> None: ...

class RestoreReply(_message.Message):
    __slots__ = ("vault", "made", "kept_aside")
    VAULT_FIELD_NUMBER: _ClassVar[int]
    MADE_FIELD_NUMBER: _ClassVar[int]
    KEPT_ASIDE_FIELD_NUMBER: _ClassVar[int]
    vault: _goex_pb2.VaultStatus
    made: str
    kept_aside: str
    def __init__(self, vault: _Optional[_Union[_goex_pb2.VaultStatus, _Mapping]] = ..., made: _Optional[str] = ..., kept_aside: _Optional[str] = ...) -> None: ...

class LeasesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LeasesReply(_message.Message):
    __slots__ = ("leases",)
    LEASES_FIELD_NUMBER: _ClassVar[int]
    leases: _containers.RepeatedCompositeFieldContainer[LeaseView]
    def __init__(self, leases: _Optional[_Iterable[_Union[LeaseView, _Mapping]]] = ...) -> None: ...

class LeaseView(_message.Message):
    __slots__ = ("action_id", "service", "account", "expires")
    ACTION_ID_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_FIELD_NUMBER: _ClassVar[int]
    action_id: str
    service: str
    account: str
    expires: str
    def __init__(self, action_id: _Optional[str] = ..., service: _Optional[str] = ..., account: _Optional[str] = ..., expires: _Optional[str] = ...) -> None: ...
