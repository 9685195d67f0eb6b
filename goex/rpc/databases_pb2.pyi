from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Terms(_message.Message):
    __slots__ = ("policy", "hold_hours", "tables")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    HOLD_HOURS_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    policy: str
    hold_hours: int
    tables: _containers.RepeatedCompositeFieldContainer[TablePolicy]
    def __init__(self, policy: _Optional[str] = ..., hold_hours: _Optional[int] = ..., tables: _Optional[_Iterable[_Union[TablePolicy, _Mapping]]] = ...) -> None: ...

class TablePolicy(_message.Message):
    __slots__ = ("table", "policy")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    table: str
    policy: str
    def __init__(self, table: _Optional[str] = ..., policy: _Optional[str] = ...) -> None: ...

class AddDatabaseRequest(_message.Message):
    __slots__ = ("name", "url", "password", "no_tls", "ca_pem", "terms", "replace", "passphrase")
    NAME_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    NO_TLS_FIELD_NUMBER: _ClassVar[int]
    CA_PEM_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    name: str
    url: str
    password: bytes
    no_tls: bool
    ca_pem: str
    terms: Terms
    replace: bool
    passphrase: str
    def __init__(self, name: _Optional[str] = ..., url: _Optional[str] = ..., password: _Optional[bytes] = ..., no_tls: _Optional[bool] = ..., ca_pem: _Optional[str] = ..., terms: _Optional[_Union[Terms, _Mapping]] = ..., replace: _Optional[bool] = ..., passphrase: _Optional[str] = ...) -> None: ...

class DatabaseView(_message.Message):
    __slots__ = ("name", "url", "engine", "tls", "terms", "created", "last_used", "held", "version", "tables", "can")
    NAME_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    TLS_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    LAST_USED_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    CAN_FIELD_NUMBER: _ClassVar[int]
    name: str
    url: str
    engine: str
    tls: str
    terms: Terms
    created: str
    last_used: str
    held: _containers.RepeatedCompositeFieldContainer[HeldView]
    version: str
    tables: int
    can: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., url: _Optional[str] = ..., engine: _Optional[str] = ..., tls: _Optional[str] = ..., terms: _Optional[_Union[Terms, _Mapping]] = ..., created: _Optional[str] = ..., last_used: _Optional[str] = ..., held: _Optional[_Iterable[_Union[HeldView, _Mapping]]] = ..., version: _Optional[str] = ..., tables: _Optional[int] = ..., can: _Optional[_Iterable[str]] = ...) -> None: ...

class HeldView(_message.Message):
    __slots__ = ("action_id", "agent", "since", "until", "what", "trouble")
    ACTION_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    action_id: str
    agent: str
    since: str
    until: str
    what: str
    trouble: str
    def __init__(self, action_id: _Optional[str] = ..., agent: _Optional[str] = ..., since: _Optional[str] = ..., until: _Optional[str] = ..., what: _Optional[str] = ..., trouble: _Optional[str] = ...) -> None: ...

class ListDatabasesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListDatabasesReply(_message.Message):
    __slots__ = ("databases",)
    DATABASES_FIELD_NUMBER: _ClassVar[int]
    databases: _containers.RepeatedCompositeFieldContainer[DatabaseView]
    def __init__(self, databases: _Optional[_Iterable[_Union[DatabaseView, _Mapping]]] = ...) -> None: ...

class ShowDatabaseRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ShowDatabaseReply(_message.Message):
    __slots__ = ("database", "tables")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    database: DatabaseView
    tables: _containers.RepeatedCompositeFieldContainer[TableView]
    def __init__(self, database: _Optional[_Union[DatabaseView, _Mapping]] = ..., tables: _Optional[_Iterable[_Union[TableView, _Mapping]]] = ...) -> None: ...

class TableView(_message.Message):
    __slots__ = ("name", "kind", "columns", "key", "references", "triggers", "policy")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    REFERENCES_FIELD_NUMBER: _ClassVar[int]
    TRIGGERS_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    columns: _containers.RepeatedCompositeFieldContainer[ColumnView]
    key: _containers.RepeatedScalarFieldContainer[str]
    references: _containers.RepeatedScalarFieldContainer[str]
    triggers: _containers.RepeatedScalarFieldContainer[str]
    policy: str
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., columns: _Optional[_Iterable[_Union[ColumnView, _Mapping]]] = ..., key: _Optional[_Iterable[str]] = ..., references: _Optional[_Iterable[str]] = ..., triggers: _Optional[_Iterable[str]] = ..., policy: _Optional[str] = ...) -> None: ...

class ColumnView(_message.Message):
    __slots__ = ("name", "type", "nullable", "generated", "counter")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NULLABLE_FIELD_NUMBER: _ClassVar[int]
    GENERATED_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    nullable: bool
    generated: bool
    counter: bool
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., nullable: _Optional[bool] = ..., generated: _Optional[bool] = ..., counter: _Optional[bool] = ...) -> None: ...

class SetPolicyRequest(_message.Message):
    __slots__ = ("name", "policy", "table", "unset", "hold_hours", "passphrase")
    NAME_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    UNSET_FIELD_NUMBER: _ClassVar[int]
    HOLD_HOURS_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    name: str
    policy: str
    table: str
    unset: bool
    hold_hours: int
    passphrase: str
    def __init__(self, name: _Optional[str] = ..., policy: _Optional[str] = ..., table: _Optional[str] = ..., unset: _Optional[bool] = ..., hold_hours: _Optional[int] = ..., passphrase: _Optional[str] = ...) -> None: ...

class RemoveDatabaseRequest(_message.Message):
    __slots__ = ("name", "passphrase")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    name: str
    passphrase: str
    def __init__(self, name: _Optional[str] = ..., passphrase: _Optional[str] = ...) -> None: ...

class RemoveDatabaseReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
