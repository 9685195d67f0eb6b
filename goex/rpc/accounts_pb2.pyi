from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AccountPlace(_message.Message):
    __slots__ = ("base_url", "origins", "private", "ca_pem")
    BASE_URL_FIELD_NUMBER: _ClassVar[int]
    ORIGINS_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    CA_PEM_FIELD_NUMBER: _ClassVar[int]
    base_url: str
    origins: _containers.RepeatedScalarFieldContainer[str]
    private: bool
    ca_pem: str
    def __init__(self, base_url: _Optional[str] = ..., origins: _Optional[_Iterable[str]] = ..., private: _Optional[bool] = ..., ca_pem: _Optional[str] = ...) -> None: ...

class AuthorizationServer(_message.Message):
    __slots__ = ("issuer", "authorization_endpoint", "token_endpoint", "device_endpoint", "revocation_endpoint")
    ISSUER_FIELD_NUMBER: _ClassVar[int]
    AUTHORIZATION_ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    REVOCATION_ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    device_endpoint: str
    revocation_endpoint: str
    def __init__(self, issuer: _Optional[str] = ..., authorization_endpoint: _Optional[str] = ..., token_endpoint: _Optional[str] = ..., device_endpoint: _Optional[str] = ..., revocation_endpoint: _Optional[str] = ...) -> None: ...

class OfferRequest(_message.Message):
    __slots__ = ("service", "account", "server", "place", "confirmed")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    service: str
    account: str
    server: AuthorizationServer
    place: AccountPlace
    confirmed: AuthorizationServer
    def __init__(self, service: _Optional[str] = ..., account: _Optional[str] = ..., server: _Optional[_Union[AuthorizationServer, _Mapping]] = ..., place: _Optional[_Union[AccountPlace, _Mapping]] = ..., confirmed: _Optional[_Union[AuthorizationServer, _Mapping]] = ...) -> None: ...

class OfferReply(_message.Message):
    __slots__ = ("service", "account", "server", "said_by", "confirm", "client_id", "scopes", "base_urls", "basic", "header", "local", "registers", "client")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    SAID_BY_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    BASE_URLS_FIELD_NUMBER: _ClassVar[int]
    BASIC_FIELD_NUMBER: _ClassVar[int]
    HEADER_FIELD_NUMBER: _ClassVar[int]
    LOCAL_FIELD_NUMBER: _ClassVar[int]
    REGISTERS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    service: str
    account: str
    server: AuthorizationServer
    said_by: str
    confirm: bool
    client_id: str
    scopes: _containers.RepeatedCompositeFieldContainer[ScopeOffer]
    base_urls: _containers.RepeatedScalarFieldContainer[str]
    basic: bool
    header: str
    local: bool
    registers: bool
    client: str
    def __init__(self, service: _Optional[str] = ..., account: _Optional[str] = ..., server: _Optional[_Union[AuthorizationServer, _Mapping]] = ..., said_by: _Optional[str] = ..., confirm: _Optional[bool] = ..., client_id: _Optional[str] = ..., scopes: _Optional[_Iterable[_Union[ScopeOffer, _Mapping]]] = ..., base_urls: _Optional[_Iterable[str]] = ..., basic: _Optional[bool] = ..., header: _Optional[str] = ..., local: _Optional[bool] = ..., registers: _Optional[bool] = ..., client: _Optional[str] = ...) -> None: ...

class ScopeOffer(_message.Message):
    __slots__ = ("name", "description", "risk", "granted", "wanted_by", "wanted")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    RISK_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    WANTED_BY_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    risk: str
    granted: bool
    wanted_by: _containers.RepeatedScalarFieldContainer[str]
    wanted: bool
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., risk: _Optional[str] = ..., granted: _Optional[bool] = ..., wanted_by: _Optional[_Iterable[str]] = ..., wanted: _Optional[bool] = ...) -> None: ...

class LoginRequest(_message.Message):
    __slots__ = ("service", "account", "server", "place", "confirmed", "client_id", "client_secret", "scopes", "flow", "seconds", "passphrase")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_SECRET_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    FLOW_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    service: str
    account: str
    server: AuthorizationServer
    place: AccountPlace
    confirmed: AuthorizationServer
    client_id: str
    client_secret: bytes
    scopes: _containers.RepeatedScalarFieldContainer[str]
    flow: str
    seconds: int
    passphrase: str
    def __init__(self, service: _Optional[str] = ..., account: _Optional[str] = ..., server: _Optional[_Union[AuthorizationServer, _Mapping]] = ..., place: _Optional[_Union[AccountPlace, _Mapping]] = ..., confirmed: _Optional[_Union[AuthorizationServer, _Mapping]] = ..., client_id: _Optional[str] = ..., client_secret: _Optional[bytes] = ..., scopes: _Optional[_Iterable[str]] = ..., flow: _Optional[str] = ..., seconds: _Optional[int] = ..., passphrase: _Optional[str] = ...) -> None: ...

class LoginEvent(_message.Message):
    __slots__ = ("progress", "open", "code", "done")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    progress: str
    open: OpenBrowser
    code: EnterCode
    done: LoginDone
    def __init__(self, progress: _Optional[str] = ..., open: _Optional[_Union[OpenBrowser, _Mapping]] = ..., code: _Optional[_Union[EnterCode, _Mapping]] = ..., done: _Optional[_Union[LoginDone, _Mapping]] = ...) -> None: ...

class OpenBrowser(_message.Message):
    __slots__ = ("login_id", "url", "scopes")
    LOGIN_ID_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    login_id: str
    url: str
    scopes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, login_id: _Optional[str] = ..., url: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ...) -> None: ...

class EnterCode(_message.Message):
    __slots__ = ("user_code", "verification_url", "verification_url_complete", "deadline", "scopes")
    USER_CODE_FIELD_NUMBER: _ClassVar[int]
    VERIFICATION_URL_FIELD_NUMBER: _ClassVar[int]
    VERIFICATION_URL_COMPLETE_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    user_code: str
    verification_url: str
    verification_url_complete: str
    deadline: str
    scopes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, user_code: _Optional[str] = ..., verification_url: _Optional[str] = ..., verification_url_complete: _Optional[str] = ..., deadline: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ...) -> None: ...

class LoginDone(_message.Message):
    __slots__ = ("account", "dropped")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    account: ConnectedAccount
    dropped: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, account: _Optional[_Union[ConnectedAccount, _Mapping]] = ..., dropped: _Optional[_Iterable[str]] = ...) -> None: ...

class FinishLoginRequest(_message.Message):
    __slots__ = ("login_id", "redirect_url")
    LOGIN_ID_FIELD_NUMBER: _ClassVar[int]
    REDIRECT_URL_FIELD_NUMBER: _ClassVar[int]
    login_id: str
    redirect_url: str
    def __init__(self, login_id: _Optional[str] = ..., redirect_url: _Optional[str] = ...) -> None: ...

class FinishLoginReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PutCredentialRequest(_message.Message):
    __slots__ = ("service", "account", "kind", "secret", "user", "place", "replace", "passphrase")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    service: str
    account: str
    kind: str
    secret: bytes
    user: str
    place: AccountPlace
    replace: bool
    passphrase: str
    def __init__(self, service: _Optional[str] = ..., account: _Optional[str] = ..., kind: _Optional[str] = ..., secret: _Optional[bytes] = ..., user: _Optional[str] = ..., place: _Optional[_Union[AccountPlace, _Mapping]] = ..., replace: _Optional[bool] = ..., passphrase: _Optional[str] = ...) -> None: ...

class LogoutRequest(_message.Message):
    __slots__ = ("service", "account", "passphrase")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    service: str
    account: str
    passphrase: str
    def __init__(self, service: _Optional[str] = ..., account: _Optional[str] = ..., passphrase: _Optional[str] = ...) -> None: ...

class LogoutReply(_message.Message):
    __slots__ = ("service", "account", "revoked", "why", "next_step")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    REVOKED_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    NEXT_STEP_FIELD_NUMBER: _ClassVar[int]
    service: str
    account: str
    revoked: bool
    why: str
    next_step: str
    def __init__(self, service: _Optional[str] = ..., account: _Optional[str] = ..., revoked: _Optional[bool] = ..., why: _Optional[str] = ..., next_step: _Optional[str] = ...) -> None: ...

class ListToolsRequest(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: str
    def __init__(self, service: _Optional[str] = ...) -> None: ...

class ListToolsReply(_message.Message):
    __slots__ = ("tools_json",)
    TOOLS_JSON_FIELD_NUMBER: _ClassVar[int]
    tools_json: bytes
    def __init__(self, tools_json: _Optional[bytes] = ...) -> None: ...

class ListAccountsRequest(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: str
    def __init__(self, service: _Optional[str] = ...) -> None: ...

class ListAccountsReply(_message.Message):
    __slots__ = ("accounts",)
    ACCOUNTS_FIELD_NUMBER: _ClassVar[int]
    accounts: _containers.RepeatedCompositeFieldContainer[ConnectedAccount]
    def __init__(self, accounts: _Optional[_Iterable[_Union[ConnectedAccount, _Mapping]]] = ...) -> None: ...

class ConnectedAccount(_message.Message):
    __slots__ = ("service", "account", "kind", "scopes", "refused", "expires", "renews", "last_used", "narrowed", "issuer", "subject", "origins", "created", "updated", "trouble")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_FIELD_NUMBER: _ClassVar[int]
    RENEWS_FIELD_NUMBER: _ClassVar[int]
    LAST_USED_FIELD_NUMBER: _ClassVar[int]
    NARROWED_FIELD_NUMBER: _ClassVar[int]
    ISSUER_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    ORIGINS_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    UPDATED_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    service: str
    account: str
    kind: str
    scopes: _containers.RepeatedScalarFieldContainer[str]
    refused: _containers.RepeatedScalarFieldContainer[str]
    expires: str
    renews: bool
    last_used: str
    narrowed: str
    issuer: str
    subject: str
    origins: _containers.RepeatedScalarFieldContainer[str]
    created: str
    updated: str
    trouble: str
    def __init__(self, service: _Optional[str] = ..., account: _Optional[str] = ..., kind: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ..., refused: _Optional[_Iterable[str]] = ..., expires: _Optional[str] = ..., renews: _Optional[bool] = ..., last_used: _Optional[str] = ..., narrowed: _Optional[str] = ..., issuer: _Optional[str] = ..., subject: _Optional[str] = ..., origins: _Optional[_Iterable[str]] = ..., created: _Optional[str] = ..., updated: _Optional[str] = ..., trouble: _Optional[str] = ...) -> None: ...

class ConsentsRequest(_message.Message):
    __slots__ = ("action_id",)
    ACTION_ID_FIELD_NUMBER: _ClassVar[int]
    action_id: str
    def __init__(self, action_id: _Optional[str] = ...) -> None: ...

class Consent(_message.Message):
    __slots__ = ("service", "account", "scopes")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    service: str
    account: str
    scopes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, service: _Optional[str] = ..., account: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ...) -> None: ...

class ConsentsReply(_message.Message):
    __slots__ = ("consents",)
    CONSENTS_FIELD_NUMBER: _ClassVar[int]
    consents: _containers.RepeatedCompositeFieldContainer[Consent]
    def __init__(self, consents: _Optional[_Iterable[_Union[Consent, _Mapping]]] = ...) -> None: ...
