"""Small GraphQL schemas of the kinds that services publish, and importing one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from graphql import build_schema, introspection_from_schema

from mapper.catalog import Catalog
from mapper.importing.files import import_graphql
from mapper.importing.import_report import Report

ENDPOINT = "https://tracker.example.com/api/graphql"

# In GitHub's form: connections, payloads, an interface, a union, input types that hold themselves.
TRACKER = '''
"""A tracker of issues."""
schema { query: Query, mutation: Mutation, subscription: Subscription }

scalar DateTime
enum State { OPEN CLOSED }
interface Node { id: ID! }
interface Actor { login: String! avatarUrl(size: Int): String! secretOf(key: String!): String }

type Query {
  "One issue of a project."
  issue(project: String!, number: Int!): Issue
  issues(project: String!, first: Int = 20, state: State, filter: IssueFilter): IssueConnection!
  search(query: String!): SearchConnection!
  version: String!
  accessToken(name: String!): String
  deleteEverything: Boolean
  node(id: ID!): Node
}

type Mutation {
  createIssue(input: CreateIssueInput!): CreateIssuePayload!
  closeIssue(number: Int!, reason: String = "done"): Issue
  deleteIssue(number: Int!): Boolean!
  grantAccess(login: String!): Boolean!
  version: String!
}

type Subscription { issueChanged(number: Int!): Issue  issueMade: Issue }

type Issue implements Node {
  id: ID!
  number: Int!
  title: String!
  body(format: String): String
  rendered(theme: String!): String!
  state: State!
  createdAt: DateTime!
  old: String @deprecated(reason: "gone")
  author: Actor
  parent: Issue
  comments(first: Int): CommentConnection!
  labels: [Label!]!
}
type Label { name: String! owner: User }
type User implements Actor & Node {
  id: ID! login: String! avatarUrl(size: Int): String! secretOf(key: String!): String email: String
}
type Comment { id: ID! text: String! }
type CommentConnection { nodes: [Comment] edges: [CommentEdge] pageInfo: PageInfo! totalCount: Int! }
type CommentEdge { cursor: String! node: Comment }
type IssueConnection { nodes: [Issue] edges: [IssueEdge] pageInfo: PageInfo! totalCount: Int! }
type IssueEdge { cursor: String! node: Issue }
type SearchConnection { edges: [SearchEdge] pageInfo: PageInfo! }
type SearchEdge { cursor: String! node: SearchResult }
union SearchResult = Issue | User | Label
type PageInfo { hasNextPage: Boolean! endCursor: String }

input IssueFilter { state: State, and: [IssueFilter!], labels: [String!], before: DateTime, not: IssueFilter }
input CreateIssueInput { project: String!, title: String!, body: String, labels: [String!] = [], weight: Float }
type CreateIssuePayload { issue: Issue, errors: [UserError!]! }
type UserError { field: [String!] message: String! }
'''

# In the form of a federated graph: root types by their names, and extended; what subgraphs have of their own.
SHOP = """
directive @key(fields: String!) on OBJECT
scalar _Any
scalar Upload
extend type Query { _service: String  products(ids: [ID!]!, sort: Sort): [Product!]! }
type Query { product(by: ProductBy!): Product }
type Mutation { setPrice(id: ID!, cents: Int!): Product!  setImage(id: ID!, file: Upload!): Product!
  setNote(id: ID!, note: String, file: Upload): Boolean }
type Product @key(fields: "id") { id: ID! price: Money! hidden: Product @deprecated }
type Money { cents: Int! currency: String! }
input ProductBy @oneOf { id: ID slug: String }
enum Sort { UP DOWN }
extend enum Sort { NONE }
"""

# Root types of other names, and nothing but a query.
READER = """
schema { query: Root }
type Root { me: Person!  people: [Person!]! }
type Person { name: String! friends: [Person!]! }
"""


def introspected(text: str, *, bare: bool = False) -> str:
    """The schema as an introspection query answers it."""
    found = introspection_from_schema(build_schema(text, assume_valid=True), input_value_deprecation=False)
    value: Any = found if bare else {"data": found}
    return json.dumps(value)


def put(
    folder: Path, text: str, file: str = "schema.graphql", endpoint: str = ENDPOINT, name: str = "tracker"
) -> tuple[Report, Catalog]:
    (folder / file).write_text(text, encoding="utf-8")
    report = import_graphql(folder / "catalog.db", folder / file, endpoint, name)
    return report, Catalog.open(folder / "catalog.db")
