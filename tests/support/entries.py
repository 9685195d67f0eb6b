"""What tests of databases do through a real daemon: add an entry, run statements on it, decide, look."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from goex.rpc import databases_pb2 as db
from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, decide, undo


@dataclass
class Client:
    """The person and their agents, at one daemon."""

    daemon: Daemon

    def call(self, method: str, request: Any, *, socket: Any = None) -> Any:
        """One call of the Databases service. Raises grpc.RpcError."""
        described = db.DESCRIPTOR.services_by_name["Databases"].methods_by_name[method]
        reply = getattr(db, described.output_type.name)
        call = self.daemon.channel(socket or self.daemon.user_socket).unary_unary(
            f"/goex.v1.Databases/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=reply.FromString,
        )
        return call(request, timeout=300)

    def add(self, name: str, url: str, password: bytes = b"", *, terms: db.Terms | None = None, **more: Any) -> Any:
        facts: dict[str, Any] = {"passphrase": APPROVAL_PASSPHRASE, **more}
        return self.call(
            "AddDatabase", db.AddDatabaseRequest(name=name, url=url, password=password, terms=terms, **facts)
        )

    def set_policy(self, name: str, policy: str = "", **more: Any) -> Any:
        request = db.SetPolicyRequest(name=name, policy=policy, passphrase=APPROVAL_PASSPHRASE, **more)
        return self.call("SetPolicy", request)

    def listed(self) -> dict[str, Any]:
        reply = self.call("ListDatabases", db.ListDatabasesRequest())
        return {one.name: one for one in reply.databases}

    def remove(self, name: str) -> Any:
        return self.call("RemoveDatabase", db.RemoveDatabaseRequest(name=name, passphrase=APPROVAL_PASSPHRASE))

    def sql(self, name: str, statements: str, *, policy: str = "", undo: str = "", token: str = "") -> Asked:
        program = pb.SqlProgram(database=name, statements=statements, policy=policy, undo=undo)
        return Asked(self.daemon, pb.ExecuteRequest(sql=program), token=token, person=not token)

    def revert(self, action_id: str, verb: str = "undo", *, token: str = "", **more: Any) -> Asked:
        return Asked(self.daemon, undo(action_id, verb, **more), token=token, person=not token)

    def run(self, name: str, statements: str, **more: Any) -> pb.Finished:
        """Ask for it, say yes, and follow it to its end."""
        return self.sql(name, statements, **more).approve()

    def rows(self, name: str, query: str) -> list[list[Any]]:
        """What a SELECT gives, through the daemon."""
        found: list[list[Any]] = results(self.run(name, query))[0]["rows"]
        return found

    def story(self, action_id: str) -> str:
        done = self.daemon.goex("show", action_id)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)


class Asked(Journey):
    """An action whose question the person reads on their own socket: an agent isn't told what stands in it."""

    def __init__(self, daemon: Daemon, request: Any, *, token: str = "", person: bool = False) -> None:
        super().__init__(daemon, request, token=token, person=person)
        self._home = daemon

    def question(self) -> pb.Approval:
        """The question, as the person is shown it."""
        reply = self._home.person("Approvals", pb.ApprovalsRequest(approval_id=self.asked().id))
        found: pb.Approval = reply.approvals[0]
        return found

    def approve(self, width: str = "once", **more: Any) -> pb.Finished:
        decide(self._home, self.question(), width=width, **more)
        return self.finished()

    def deny_known(self, question: str) -> pb.Finished:
        """Say no to a question that was read already."""
        self._home.person("Decide", pb.DecideRequest(approval_id=question, approve=False, digest=""))
        return self.finished()

    def deny(self) -> pb.Finished:
        decide(self._home, self.question(), approve=False)
        return self.finished()

    def ended(self) -> pb.Finished:
        """The end of what isn't asked about."""
        for event in self._events:
            assert event.WhichOneof("what") != "asking", "It was asked about."
            self.seen.append(event)
            if event.WhichOneof("what") == "finished":
                return event.finished
        raise AssertionError("The stream ended without a word.")


def results(finished: pb.Finished) -> list[dict[str, Any]]:
    """The rows of each statement that gave some."""
    assert not finished.HasField("problem"), finished.problem
    found: list[dict[str, Any]] = json.loads(finished.action.outcome_json)["results"]
    return found


def changes(finished: pb.Finished) -> list[str]:
    assert not finished.HasField("problem"), finished.problem
    found: list[str] = json.loads(finished.action.outcome_json)["changes"]
    return found
