"""A real GraphQL server: graphql-core runs a tracker's schema over what is kept in memory, behind the tests' TLS."""

from __future__ import annotations

from typing import Any

from graphql import build_schema, graphql_sync
from graphql.type import GraphQLResolveInfo

from tests.runtimes.rest.support import TOKEN, Hit, Service

SCHEMA = """
type Query { issue(number: Int!): Issue  issues(first: Int = 10): IssueConnection! }
type Mutation {
  createIssue(input: CreateIssueInput!): CreateIssuePayload
  deleteIssue(number: Int!): Issue
  breakIssue(number: Int!): Issue
}
type Issue { id: ID! number: Int! title: String! secret: String author: User }
type User { login: String! }
type IssueConnection { nodes: [Issue!]! pageInfo: PageInfo! }
type PageInfo { hasNextPage: Boolean! }
type CreateIssuePayload { issue: Issue }
input CreateIssueInput { title: String!, labels: [String!] = [], parent: CreateIssueInput }
"""


class Tracker(Service):
    """`got` are the bodies of the requests that had the token."""

    def __init__(self) -> None:
        super().__init__()
        self.issues: dict[int, dict[str, Any]] = {1: self._issue(1, "First")}
        self.got: list[Any] = []
        self._schema = build_schema(SCHEMA)
        fields = {**self._schema.query_type.fields, **self._schema.mutation_type.fields}  # type: ignore[union-attr]
        for name, field in fields.items():
            field.resolve = getattr(self, f"on_{name}")
        self._schema.type_map["Issue"].fields["secret"].resolve = self._secret  # type: ignore[attr-defined]

    def handle(self, hit: Hit) -> tuple[int, Any]:
        if hit.headers.get("authorization") != f"Bearer {TOKEN}":
            return 401, {"message": "Bad credentials"}
        if hit.method != "POST" or not isinstance(hit.body, dict):
            return 400, {"errors": [{"message": "POST one document."}]}
        self.got.append(hit.body)
        done = graphql_sync(
            self._schema,
            hit.body.get("query", ""),
            variable_values=hit.body.get("variables"),
            operation_name=hit.body.get("operationName"),
        )
        return 200, done.formatted

    @staticmethod
    def _issue(number: int, title: str) -> dict[str, Any]:
        return {"id": f"I{number}", "number": number, "title": title, "author": {"login": "ann"}}

    def _secret(self, issue: dict[str, Any], info: GraphQLResolveInfo) -> str | None:
        if "hidden" in issue["title"].lower():
            raise ValueError("You may not see this.")
        return None

    def on_issue(self, root: Any, info: GraphQLResolveInfo, number: int) -> Any:
        if number not in self.issues:
            raise ValueError(f"There is no issue {number}.")
        return self.issues[number]

    def on_issues(self, root: Any, info: GraphQLResolveInfo, first: int) -> Any:
        return {"nodes": list(self.issues.values())[:first], "pageInfo": {"hasNextPage": False}}

    def on_createIssue(self, root: Any, info: GraphQLResolveInfo, input: dict[str, Any]) -> Any:
        number = max(self.issues) + 1
        self.issues[number] = self._issue(number, input["title"])
        return {"issue": self.issues[number]}

    def on_deleteIssue(self, root: Any, info: GraphQLResolveInfo, number: int) -> Any:
        return self.issues.pop(number, None)

    def on_breakIssue(self, root: Any, info: GraphQLResolveInfo, number: int) -> Any:
        self.issues[number]["title"] = "broken"
        raise ValueError("Something went wrong on the way.")
