"""The synchronous client. One connection is one session, and leaving a request withdraws what nobody has answered."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from goex_client import goex_pb2 as pb
from goex_client import requests
from goex_client.errors import GoexError, left, translated, untold
from goex_client.results import Result, checked, of_view

Reply = TypeVar("Reply", bound=Message)
Told = Callable[[pb.Event], None]
Began = Callable[[grpc.Call], None]


class Client:
    """An agent's connection. `session`: what its session is called, where it has a token; else it is the connection.
    `told` hears every event of what is under way. `max_bytes`: of one answer, unless a call says; `result` reads the
    rest of one that is `cut` or has a `next_offset`."""

    def __init__(
        self,
        *,
        token: str = "",
        session: str = "",
        socket: str = "",
        told: Told | None = None,
        max_bytes: int = requests.MAX_BYTES,
    ) -> None:
        self._channel = grpc.insecure_channel(requests.target(socket), options=requests.OPTIONS)
        self._metadata = requests.metadata(token, session)
        self._told = told or (lambda _: None)
        self._max_bytes = max_bytes

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(self, method: str, /, **arguments: Any) -> Result:
        """Call one method of a connected service, and wait. Raises NotDone, Refused."""
        return self.calls([requests.Call(method, arguments)])

    def calls(self, calls: Iterable[requests.Call], *, key: str = "", timeout: float | None = None) -> Result:
        """Call several, in order, as one action."""
        return self.wait(requests.calls(calls, key), timeout=timeout)

    def ask(self, words: str, *, key: str = "", timeout: float | None = None) -> Result:
        return self.wait(requests.ask(words, key), timeout=timeout)

    def run(
        self,
        program: str,
        *,
        language: str = "shell",
        folders: Iterable[str | os.PathLike[str]] = (),
        services: Iterable[str] = (),
        methods: Iterable[str] = (),
        read_only: bool = False,
        key: str = "",
        timeout: float | None = None,
    ) -> Result:
        """Run a program in a container, on folders or with services. With `read_only` it has one folder, and can
        change nothing in it."""
        return self.wait(requests.run(program, language, folders, services, methods, key, read_only), timeout=timeout)

    def sql(
        self, database: str, statements: str, *, policy: str = "", key: str = "", timeout: float | None = None
    ) -> Result:
        return self.wait(requests.sql(database, statements, policy, key), timeout=timeout)

    def task(
        self,
        title: str,
        allows: Iterable[requests.Allowance],
        *,
        minutes: int = 30,
        key: str = "",
        timeout: float | None = None,
    ) -> Result:
        """Propose what this client may then do without being asked again; ends when the person has answered."""
        return self.wait(requests.task(title, allows, minutes, key), timeout=timeout)

    def undo(self, action: Result | str, *, key: str = "", timeout: float | None = None) -> Result:
        return self.wait(requests.revert(action, "undo", key), timeout=timeout)

    def redo(self, action: Result | str, *, key: str = "", timeout: float | None = None) -> Result:
        return self.wait(requests.revert(action, "redo", key), timeout=timeout)

    def commit(self, action: Result | str, *, key: str = "", timeout: float | None = None) -> Result:
        return self.wait(requests.revert(action, "commit", key), timeout=timeout)

    def find(self, query: str = "", *, service: str = "", method: str = "", limit: int = 0) -> pb.FindReply:
        """What is connected, or the methods that fit."""
        request = pb.FindRequest(query=query, service=service, method=method, limit=limit)
        return self._unary("Find", request, pb.FindReply)

    def get(self, action: str, *, max_bytes: int = 0) -> Result:
        """How an action stands, with its answer if it has one."""
        return self._with_answer(self._unary("Get", pb.ActionId(id=action), pb.ActionView), max_bytes)

    def result(
        self,
        action: Result | str,
        *,
        path: str = "",
        fields: Iterable[str] = (),
        offset: int = 0,
        limit: int = 0,
        max_bytes: int = 0,
    ) -> Result:
        """A part of an action's answer: by a path like `$.stdout`, by fields of its objects, from an offset."""
        wanted = requests.answer_of(action, path, fields, offset, limit, max_bytes or self._max_bytes)
        view = self._unary("Get", pb.ActionId(id=wanted.id), pb.ActionView)
        return of_view(view, self._unary("Result", wanted, pb.ResultReply))

    def preview(
        self, wanted: Iterable[requests.Call] | Result | str | pb.PreviewRequest, *, verb: str = ""
    ) -> pb.DryRunReply:
        """What calls, or an action of calls, would send; with a verb: what undoing it would. Nothing is sent,
        and nobody is asked. Not for programs and SQL, whose dry run is the person's. Raises Refused."""
        return self._unary("Preview", requests.preview(wanted, verb), pb.DryRunReply)

    def cancel(self, action: str) -> Result:
        return of_view(self._unary("Cancel", pb.ActionId(id=action), pb.ActionView))

    def actions(self, limit: int = 10) -> list[Result]:
        reply = self._unary("List", pb.ListRequest(limit=limit, brief=True), pb.ListReply)
        return [of_view(view) for view in reply.actions]

    def start(
        self, request: requests.Request, *, timeout: float | None = None, began: Began | None = None
    ) -> Generator[pb.Event, None, None]:
        """The events of a request until it has ended. Leaving it withdraws what nobody has answered. `began` hears of
        the call itself, which any thread may cancel: that leaves it, too."""
        stream = self._channel.unary_stream(
            f"/goex.v1.Actions/{requests.METHODS[type(request).__name__]}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=pb.Event.FromString,
        )(request, metadata=self._metadata, timeout=timeout)
        action = ""
        try:
            if began is not None:
                began(stream)
            for event in stream:
                action = event.action_id or action
                yield event
        except grpc.RpcError as error:
            key = "" if isinstance(request, pb.ActionId) else request.key
            raise left(error, action, key, token=bool(self._metadata)) from error
        finally:
            stream.cancel()

    def wait(
        self,
        request: requests.Request,
        *,
        timeout: float | None = None,
        max_bytes: int = 0,
        began: Began | None = None,
    ) -> Result:
        """The end of a request, with at most so much of its answer. Raises NotDone, Refused, TimedOut."""
        event = pb.Event()
        with closing(self.start(request, timeout=timeout, began=began)) as events:
            for event in events:
                self._told(event)
        if event.WhichOneof("what") != "finished":
            raise untold(event.action_id, token=bool(self._metadata))
        view = event.finished.action
        try:
            result = self._with_answer(view, max_bytes)
        except GoexError:  # it has ended, whether or not its answer can be read now
            result = replace(of_view(view), cut=True)
        return checked(result)

    def _with_answer(self, view: pb.ActionView, max_bytes: int) -> Result:
        if not view.outcome_json:
            return of_view(view)
        wanted = requests.answer_of(view.id, max_bytes=max_bytes or self._max_bytes)
        return of_view(view, self._unary("Result", wanted, pb.ResultReply))

    def _unary(self, method: str, request: Message, reply: type[Reply]) -> Reply:
        call = self._channel.unary_unary(
            f"/goex.v1.Actions/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=reply.FromString,
        )
        try:
            answer: Reply = call(request, metadata=self._metadata, timeout=60)
        except grpc.RpcError as error:
            raise translated(error) from error
        return answer
