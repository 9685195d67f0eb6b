"""The model proposer: any endpoint that speaks the OpenAI chat-completions protocol.

The endpoint is untrusted: its answers are bounded in size and time, read strictly and only ever become validated calls,
rejections, or words. It gets nothing but what `mapper.prompts` writes; `mapper.readings` reads what it says. The key is
read when it is used and goes to the configured origin alone (no redirects, no proxy, plain http only to this machine);
nothing of the daemon's environment goes with it. Servers differ, so what one refuses is left out from then on: tools,
then a response format, then `n`, then the temperature.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mapper import prompts, readings
from mapper.catalog import Catalog
from mapper.context import NOTHING_TOLD, Context
from mapper.conversation import Conversation, Find
from mapper.readings import Reading
from mapper.techniques import Technique
from policies.accounts import Origin
from policies.actions import Rejected
from policies.errors import InvalidInput, Unavailable
from policies.jsonvalue import JsonValue, parse
from policies.services import Method

try:
    import openai
except ModuleNotFoundError:  # the extra `model` brings it
    _INSTALLED = False
else:
    _INSTALLED = True

MAX_BODY = 4_000_000  # bytes of one answer of the endpoint
MAX_ANSWER = 4_000  # characters of an answer in words
# Of a request, all that a server needs, and what the client reads again when the answer is there.
_NEEDED = ("host", "accept", "accept-encoding", "connection", "content-type", "content-length", "user-agent")
_HEADERS = frozenset((*_NEEDED, "x-stainless-raw-response"))
_PARALLEL = 5

_Body = Callable[[prompts.Mode], dict[str, Any]]  # what is asked, in each mode


class ModelUnavailable(Unavailable):
    """The model's endpoint can't be used: not reached, refuses, too slow, too large, not the protocol; or its client
    isn't installed."""

    code = "model"


class ModelProposer:
    """Asks a model for samples. `api_key` gives the key ("" for servers that want none); `technique` says how to ask
    (without one: retrieval in context, exactly `k` samples); `timeout` in seconds bounds a whole proposal or answer,
    all its requests and retries included."""

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: Callable[[], str],
        *,
        k: int = 10,
        technique: Technique | None = None,
        temperature: float = 0.3,
        timeout: float = 60.0,
    ) -> None:
        origin = Origin.parse(base_url)
        if origin.scheme == "http" and not _loopback(origin.host):
            raise InvalidInput(
                f"A key and requests would go to {origin.host} unencrypted.",
                next_step="Use an https URL for the model.",
            )
        if not model or not 1 <= k <= 50 or not 0 <= temperature <= 2 or timeout <= 0:
            raise InvalidInput("The model needs a name, 1 to 50 samples, a temperature of 0 to 2 and a time-out.")
        self.name = model
        self.technique = technique or Technique.fixed(k)
        self._base_url = base_url.rstrip("/")
        self._origin = origin
        self._api_key = api_key
        self._temperature: float | None = temperature
        self._timeout = timeout
        self._mode: prompts.Mode = "tools"
        self._many = True  # whether the server takes n > 1

    async def propose(
        self,
        intent: str,
        methods: Sequence[Method],
        catalog: Catalog,
        more: Callable[[Sequence[Reading]], int] | None = None,
        context: Context = NOTHING_TOLD,
        find: Find | None = None,
    ) -> tuple[Reading, ...]:
        """Samples over `methods`, each calls or a rejection with its class. Raises ModelUnavailable.

        `more` says after each round, and before the first, how many more samples are wanted (0: enough); without it
        all that the technique allows are asked for at once. A sample that is lost on the way is a rejection, except in
        the first request: then the endpoint can't be used.
        """
        key = self._api_key()
        made: list[Reading] = []
        try:
            async with asyncio.timeout(self._timeout), self._client(key) as client:
                while (wanted := self._wanted(made, more)) > 0:
                    if self.technique.conversation:
                        first = range(len(made), len(made) + wanted)
                        look = find or (lambda words: ())
                        talks = [Conversation(catalog, look, intent, methods, context, number) for number in first]
                        made += await self._talks(client, key, talks)
                    else:
                        made += await self._round(client, key, intent, methods, catalog, context, len(made), wanted)
        except TimeoutError as error:
            raise self._failed(f"didn't answer within {self._timeout:g} seconds") from error
        return tuple(made)

    def _wanted(self, made: Sequence[Reading], more: Callable[[Sequence[Reading]], int] | None) -> int:
        left = self.technique.samples - len(made)
        return min(left, more(made)) if more is not None else left

    async def _round(
        self,
        client: openai.AsyncOpenAI,
        key: str,
        intent: str,
        methods: Sequence[Method],
        catalog: Catalog,
        context: Context,
        first: int,
        count: int,
    ) -> list[Reading]:
        """Exactly `count` samples, numbered from `first`."""

        def body(mode: prompts.Mode) -> dict[str, Any]:
            return prompts.prompts_for(self.technique, intent, methods, catalog, mode, context).to_json()

        choices, failures = await self._several(client, key, body, first, count)
        read = [readings.read(choice, self.technique, catalog, first + number) for number, choice in enumerate(choices)]
        for reason in failures[: count - len(read)]:
            read.append(_lost(first + len(read), reason))
        return read

    async def _talks(self, client: openai.AsyncOpenAI, key: str, talks: Sequence[Conversation]) -> list[Reading]:
        """What each conversation ends with. Their first turns are one request, which a server answers several times."""
        places = asyncio.Semaphore(_PARALLEL)
        first = talks[0]
        choices, failures = await self._several(
            client, key, lambda mode: first.prompt(mode).to_json(), first.number, len(talks)
        )

        async def go_on(talk: Conversation, choice: JsonValue) -> Reading:
            talk.hear(choice)
            while talk.reading is None:
                try:
                    async with places:
                        choices = await self._choices(client, key, lambda mode: talk.prompt(mode).to_json(), 1)
                except ModelUnavailable as error:
                    return _lost(talk.number, error.message)
                talk.hear(choices[0] if choices else None)
            return talk.reading

        heard = await asyncio.gather(*(go_on(talk, choice) for talk, choice in zip(talks, choices, strict=False)))
        rest = zip(talks[len(choices) :], failures, strict=False)
        return [*heard, *(_lost(talk.number, reason) for talk, reason in rest)]

    async def sample(self, body: _Body, more: Callable[[Sequence[JsonValue]], int]) -> tuple[JsonValue, ...]:
        """Messages of the model, each untrusted, to what `body` asks in each mode; None for one that was lost on the
        way. `more` says before each round how many more are wanted. Raises ModelUnavailable."""
        key = self._api_key()
        made: list[JsonValue] = []
        try:
            async with asyncio.timeout(self._timeout), self._client(key) as client:
                while (wanted := min(self.technique.samples - len(made), more(made))) > 0:
                    choices, _ = await self._several(client, key, body, len(made), wanted)
                    messages: list[JsonValue] = [_message(choice) for choice in choices]
                    made += messages + [None] * (wanted - len(messages))
        except TimeoutError as error:
            raise self._failed(f"didn't answer within {self._timeout:g} seconds") from error
        return tuple(made)

    async def answer(self, intent: str, outcome_json: str) -> str:
        """Words over a redacted outcome; at most MAX_ANSWER characters, untrusted. Raises ModelUnavailable."""
        return (await self.complete(prompts.answering(intent, outcome_json)))[:MAX_ANSWER]

    async def complete(self, messages: Sequence[Mapping[str, str]]) -> str:
        """What the model says to these messages, untrusted. Raises ModelUnavailable."""
        key = self._api_key()
        try:
            async with asyncio.timeout(self._timeout), self._client(key) as client:
                choices = await self._ask(client, key, {"messages": list(messages)}, 1)
        except TimeoutError as error:
            raise self._failed(f"didn't answer within {self._timeout:g} seconds") from error
        content = _message(choices[0]).get("content") if choices else None
        if not isinstance(content, str) or not content.strip():
            raise self._failed("gave no answer in words")
        return self._without(key, content.strip())

    async def _several(
        self, client: openai.AsyncOpenAI, key: str, body: _Body, first: int, count: int
    ) -> tuple[list[JsonValue], list[str]]:
        """At most `count` choices, and why others didn't come. Before the `first` one a failure is raised."""
        failures: list[str] = []
        try:
            choices = await self._choices(client, key, body, count)
        except ModelUnavailable as error:
            if not first:
                raise
            choices, failures = [], [error.message]
        owed = count - len(choices) - len(failures)
        if owed > 0:
            more, lost = await self._singly(client, key, body, owed)
            choices += more
            failures += lost
        return choices[:count], failures

    async def _choices(self, client: openai.AsyncOpenAI, key: str, body: _Body, count: int) -> list[JsonValue]:
        """One request for `count` choices, with less of the protocol each time that the server refuses some of it."""
        for _ in range(6):
            try:
                return await self._ask(client, key, body(self._mode), count if self._many else 1)
            except _Refused as refused:
                if not self._yield(refused.reason):
                    raise self._failed(f"refuses the request: {refused.reason}") from refused
        raise self._failed("refuses every form of the request")

    async def _singly(
        self, client: openai.AsyncOpenAI, key: str, body: _Body, count: int
    ) -> tuple[list[JsonValue], list[str]]:
        """The samples that the server still owes, asked for one by one; and why some didn't come."""
        places = asyncio.Semaphore(_PARALLEL)

        async def one() -> list[JsonValue]:
            async with places:
                return (await self._choices(client, key, body, 1))[:1]

        results = await asyncio.gather(*(one() for _ in range(count)), return_exceptions=True)
        choices: list[JsonValue] = []
        failures: list[str] = []
        for result in results:
            if isinstance(result, ModelUnavailable):
                failures.append(result.message)
            elif isinstance(result, BaseException):
                raise result
            else:
                choices.extend(result)
                failures.extend(["The model gave no answer."] * (1 - len(result)))
        return choices, failures

    async def _ask(self, client: openai.AsyncOpenAI, key: str, body: dict[str, Any], n: int) -> list[JsonValue]:
        extra: dict[str, Any] = dict(body)
        if n > 1:
            extra["n"] = n
        if self._temperature is not None:
            extra["temperature"] = self._temperature
        try:
            raw = await client.chat.completions.with_raw_response.create(model=self.name, **extra)
            answer = parse(raw.http_response.content, limit=MAX_BODY, what="The model's answer")
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            raise _Refused(self._without(key, str(error.message))[:300]) from error
        except openai.APIStatusError as error:
            said = self._without(key, str(error.message))[:300]
            raise self._failed(f"answered with status {error.status_code}: {said}") from error
        except openai.APITimeoutError as error:
            raise self._failed(f"didn't answer within {self._timeout:g} seconds") from error
        except openai.APIConnectionError as error:
            raise self._failed(
                str(error.__cause__) if isinstance(error.__cause__, _Unread) else "can't be reached"
            ) from error
        except _Unread as error:
            raise self._failed(str(error)) from error
        except (openai.OpenAIError, InvalidInput, ValueError) as error:
            raise self._failed("doesn't speak the chat-completions protocol") from error
        choices = answer.get("choices") if isinstance(answer, dict) else None
        if not isinstance(choices, list):
            raise self._failed("doesn't speak the chat-completions protocol")
        return choices[:n]

    def _yield(self, reason: str) -> bool:
        """Leave out what the server seems not to take. False when there is nothing left to leave out."""
        words = reason.lower()
        if self._temperature is not None and "temperature" in words:
            self._temperature = None
        elif self._many and ("'n'" in words or '"n"' in words or "n > 1" in words or "multiple choices" in words):
            self._many = False
        elif self._mode == "tools":
            self._mode = "schema"
        elif self._mode == "schema":
            self._mode = "plain"
        elif self._many:
            self._many = False
        elif self._temperature is not None:
            self._temperature = None
        else:
            return False
        return True

    def _client(self, key: str) -> openai.AsyncOpenAI:
        if not _INSTALLED:
            raise ModelUnavailable(
                f"The model {self.name} needs the Python package openai, which isn't installed.",
                next_step="Install it: pipx inject goex openai, or pip install 'goex[model]'; then goex daemon stop",
            )
        key = key or "none"

        async def ours(request: Any) -> None:
            # The client adds headers of the environment's (OPENAI_ORG_ID, OPENAI_CUSTOM_HEADERS) and of the machine.
            for name in set(request.headers) - _HEADERS:
                del request.headers[name]
            request.headers["Authorization"] = f"Bearer {key}"

        http = openai.DefaultAsyncHttpxClient(
            follow_redirects=False,
            timeout=self._timeout,
            trust_env=False,  # no proxy of the environment's gets the key, and no other authorities are believed
            event_hooks={"request": [ours], "response": [_bounded]},
        )
        return openai.AsyncOpenAI(
            base_url=self._base_url,
            api_key=key,
            timeout=self._timeout,
            max_retries=1,
            http_client=http,
            # A compressed answer could be far larger than it looks.
            default_headers={"Accept-Encoding": "identity"},
        )

    def _failed(self, why: str) -> ModelUnavailable:
        return ModelUnavailable(
            f"The model {self.name} at {self._origin} {why}.",
            next_step="Check the model's settings; without a model the embedded proposer is used.",
        )

    @staticmethod
    def _without(key: str, text: str) -> str:
        """`text` without the key, which some servers repeat in their errors."""
        return text.replace(key, "…") if len(key) >= 4 else text


class _Refused(Exception):
    """The server says that the request has something that it doesn't take."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Unread(Exception):
    """The answer couldn't be read; the text says why."""


async def _bounded(response: Any) -> None:
    """Read an answer's body up to the bound, before the library reads all of it."""
    body = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MAX_BODY:
                raise _Unread(f"answered with more than {MAX_BODY} bytes")
    except _Unread:
        raise
    except Exception as error:  # whatever the HTTP library calls it
        raise _Unread(f"broke off its answer ({type(error).__name__})") from error
    response._content = bytes(body)  # where the HTTP client looks first


def _message(choice: JsonValue) -> dict[str, Any]:
    message = choice.get("message") if isinstance(choice, dict) else None
    return message if isinstance(message, dict) else {}


def _lost(number: int, reason: str) -> Reading:
    return Reading(sample=Rejected(sample=number, reason=reason, klass="lost"))


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
