"""Parts for the tests of code: accounts, contexts, plans."""

from __future__ import annotations

from collections.abc import Mapping

from mapper.catalog import Catalog
from policies.accounts import Account
from policies.actions import Code, Plan
from policies.jsonvalue import JsonObject
from policies.reversions import ReversionSet
from runtimes.base import Context, Records
from runtimes.code.plans import accounts_of, assess_code, look
from runtimes.sandbox.contract import Profile
from tests.runtimes.rest.support import account

CATALOG = Catalog.bundled()
SLACK = account("slack", "https://slack.com/api")
SECOND = account("slack", "https://slack.com/api", name="second")
GITHUB = account("github", "https://api.github.com")
DRIVE = account("google_drive", "https://www.googleapis.com/drive/v3")
PROFILE = Profile(image="code")


class NoRecords:
    """Assessing records nothing."""

    def put(self, name: str, data: bytes) -> None:
        raise AssertionError(f"{name} was recorded while planning")

    def get(self, name: str) -> bytes | None:
        return None


def context(*accounts: Account, records: Records | None = None) -> Context:
    def note(kind: str, facts: JsonObject) -> None:
        raise AssertionError(f"{kind} was noted while planning")

    return Context(
        action_id="a-1",
        agent="scout",
        accounts={(one.service, one.name): one for one in accounts},
        granted=frozenset(),
        leases=(),
        records=records or NoRecords(),
        note=note,
        progress=lambda text: None,
        output=lambda stream, data: None,
    )


def code(program: str, *methods: str, services: tuple[str, ...] = ("slack/work",), language: str = "python") -> Code:
    return Code(
        language="shell" if language == "shell" else "python", program=program, services=services, methods=methods
    )  # fmt: skip


def plan(
    program: str,
    *methods: str,
    accounts: tuple[Account, ...] = (SLACK,),
    language: str = "python",
    catalog: Catalog = CATALOG,
    image: str = "image",
    profile: Profile = PROFILE,
    reversions: ReversionSet | None = None,
) -> Plan:
    services = tuple(one.id for one in accounts)
    action = code(program, *methods, services=services, language=language)
    known = context(*accounts)
    looked = look(action, accounts_of(action, known.accounts), catalog)
    return assess_code(action, looked, known, catalog, profile, image, reversions)


def rules(plan: Plan) -> Mapping[str, JsonObject]:
    """The gateway's rules of a plan, by the method that each is for."""
    return {one["rule"]["method_id"]: one["rule"] for one in plan.resolved["permits"]}
