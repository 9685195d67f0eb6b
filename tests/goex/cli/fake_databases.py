"""The Databases service with scripted answers, for what the command line shows."""

from __future__ import annotations

from typing import Any

from goex.rpc import databases_pb2 as db
from goex.rpc import databases_pb2_grpc as rpc


def shop(**changes: Any) -> db.DatabaseView:
    facts: dict[str, Any] = {
        "name": "shop",
        "url": "postgresql://app@db.example.org:5432/shop",
        "engine": "postgresql",
        "tls": "verified",
        "terms": db.Terms(policy="reversal", hold_hours=24),
        "created": "2026-01-02T03:04:05+00:00",
        "last_used": "2026-01-02T03:05:05+00:00",
        "version": "15.8",
        "tables": 2,
        "can": ["Changes can be held here: 64 prepared transactions are allowed."],
    }
    return db.DatabaseView(**{**facts, **changes})


class FakeDatabases(rpc.DatabasesServicer):
    """What came in is in `requests`."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        held = db.HeldView(
            action_id="ac-0007",
            agent="helper",
            since="2026-01-02T03:04:05+00:00",
            until="2026-01-03T03:04:05+00:00",
            what="UPDATE orders SET status = 'sent\x1b[2J' WHERE id = 5;",
        )
        self.list = [
            shop(held=[held]),
            shop(
                name="notes",
                url="sqlite:////home/you/notes.db",
                engine="sqlite",
                tls="local",
                last_used="",
                terms=db.Terms(
                    policy="versioning", hold_hours=24, tables=[db.TablePolicy(table="drafts", policy="reversal")]
                ),
            ),
        ]

    def AddDatabase(self, request: Any, context: Any) -> db.DatabaseView:
        self.requests.append(request)
        return shop(name=request.name, url=request.url, terms=db.Terms(policy=request.terms.policy, hold_hours=24))

    def ListDatabases(self, request: Any, context: Any) -> db.ListDatabasesReply:
        return db.ListDatabasesReply(databases=self.list)

    def ShowDatabase(self, request: Any, context: Any) -> db.ShowDatabaseReply:
        return db.ShowDatabaseReply(
            database=self.list[0],
            tables=[
                db.TableView(
                    name="orders",
                    kind="table",
                    key=["id"],
                    columns=[
                        db.ColumnView(name="id", type="integer", counter=True),
                        db.ColumnView(name="customer", type="integer", nullable=True),
                        db.ColumnView(name="gross", type="numeric", nullable=True, generated=True),
                    ],
                    references=["customer -> customers(id), on delete cascade"],
                    triggers=["noted"],
                    policy="versioning",
                ),
                db.TableView(
                    name="visits\x1b[31m",
                    kind="table",
                    columns=[db.ColumnView(name="at", type="timestamp")],
                    policy="reversal",
                ),
            ],
        )

    def SetPolicy(self, request: Any, context: Any) -> db.DatabaseView:
        self.requests.append(request)
        own = [db.TablePolicy(table=request.table, policy=request.policy)] if request.table else []
        hours = request.hold_hours or 24
        policy = request.policy if request.policy and not request.table else "reversal"
        return shop(name=request.name, terms=db.Terms(policy=policy, hold_hours=hours, tables=own))

    def RemoveDatabase(self, request: Any, context: Any) -> db.RemoveDatabaseReply:
        self.requests.append(request)
        return db.RemoveDatabaseReply()
