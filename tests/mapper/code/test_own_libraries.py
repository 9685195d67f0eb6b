"""Services' own libraries: anthropic and Azure's client in Python, and those that programs in JavaScript use."""

from __future__ import annotations

from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.code.method_finder import find
from mapper.manifest import load
from policies.actions import Language

ANTHROPIC = (
    "https://api.anthropic.com",
    "POST /v1/messages json {max_tokens,messages,model}",
    "GET /v1/messages/batches/{message_batch_id} none {}",
)
OPENAI = (
    "https://api.openai.com/v1",
    "POST /chat/completions json {model,messages}",
    "POST /fine_tuning/jobs json {model}",
    "DELETE /organization/groups/{group_id}/users/{user_id} none {}",
    "DELETE /files/{file_id} none {}",
)
AZURE = (
    "https://a.openai.azure.com/openai",
    "POST /deployments/{deployment}/chat/completions json {model,messages}",
)
NOTION = (
    "https://api.notion.com/v1",
    "POST /pages json {parent}",
    "PATCH /blocks/{block_id}/children json {children}",
)
STRIPE = (
    "https://api.stripe.com/v1",
    "POST /customers form {email}",
    "POST /customers/{id} form {email}",
    "DELETE /customers/{id} none {}",
    "POST /payment_intents/{id}/cancel form {reason}",
    "POST /invoices/{id}/finalize_invoice form {}",
)


def service(name: str, base: str, *methods: str) -> Any:
    lines = [
        f'name = "{name}"\ntitle = "T"\ndescription = "An API."\nbase_url = "{base}"\nwords = ["w"]',
        '[scopes."all"]\ndescription = "Use it."\nrisk = "delete"',
    ]
    for place, each in enumerate(methods):
        verb, path, body, fields = each.split()
        risk = 'risk = "read"' if verb == "GET" else 'risk = "write"\nirreversible = "It is so."'
        if verb == "DELETE":
            risk = 'risk = "delete"\nirreversible = "It is so."'
        names = [one for one in fields.strip("{}").split(",") if one]
        lines.append(f'[methods."m{place}"]\nhttp = "{verb} {path}"\ndescription = "Do it."\nscopes = ["all"]\n{risk}')
        lines.append(f'words = ["do"]\nbody = "{body if names else "none"}"\n[methods."m{place}".parameters]')
        lines += [f'{one[1:-1]} = "string! A part."' for one in path.split("/") if one.startswith("{")]
        lines += [f'{one} = {{ type = "{"array" if one == "messages" else "string"}" }}' for one in names]
        if name == "azure":
            lines.append('api-version = "query string Which version."')
    return load("\n".join(lines), file=f"{name}.toml")


CATALOG = Catalog.of(
    [
        *Catalog.bundled().services.values(),
        *(
            service(name, *one)
            for name, one in (
                ("anthropic", ANTHROPIC), ("openai", OPENAI), ("azure", AZURE), ("notion", NOTION), ("stripe", STRIPE)
            )
        ),
    ]
)  # fmt: skip


def calls(language: Language, program: str) -> list[tuple[str, dict[str, Any]]]:
    found = find(language, program, CATALOG, [*CATALOG.services])
    made = []
    for call in found.calls:
        method = CATALOG.method(call.method_id)
        where = f"{method.http} {method.path}" if method.service not in ("slack", "github") else call.method_id
        made.append((where, dict(call.arguments)))
    return made


@pytest.mark.parametrize(
    ("program", "found", "arguments"),
    [
        (
            "import anthropic\nanthropic.Anthropic().messages.create(max_tokens=5, model='m')",
            "POST /v1/messages",
            {"max_tokens": 5, "model": "m"},
        ),
        (
            "from anthropic import AsyncAnthropic\n"
            "AsyncAnthropic().beta.messages.create(model='m', betas=['files-api-2025-04-14'])",
            "POST /v1/messages",
            {"model": "m"},
        ),
        (
            "import anthropic\nanthropic.Anthropic().messages.batches.retrieve('b1')",
            "GET /v1/messages/batches/{message_batch_id}",
            {"message_batch_id": "b1"},
        ),
        (
            "from openai import AzureOpenAI\nc = AzureOpenAI(azure_endpoint='https://a.openai.azure.com/', "
            "api_version='2024-10-21')\nc.chat.completions.create(model='gpt-4o')",
            "POST /deployments/{deployment}/chat/completions",
            {"deployment": "gpt-4o", "model": "gpt-4o", "api-version": "2024-10-21"},
        ),
    ],
)
def test_python(program: str, found: str, arguments: dict[str, Any]) -> None:
    assert calls("python", program) == [(found, arguments)]


@pytest.mark.parametrize(
    "program",
    [
        "import anthropic\nanthropic.Anthropic(base_url='https://x.test').messages.create(model='m')",
        "import os\nfrom openai import AzureOpenAI\nc = AzureOpenAI(azure_endpoint=os.environ['E'])\n"
        "c.chat.completions.create(model='m')",
        "from openai import AzureOpenAI\nc = AzureOpenAI(azure_endpoint='https://a.openai.azure.com', "
        "azure_deployment='other')\nc.chat.completions.create(model='m')",
    ],
)
def test_a_client_for_another_address_calls_nothing_that_is_known(program: str) -> None:
    assert calls("python", program) == []


SLACK_JS = "const { WebClient } = require('@slack/web-api'); const c = new WebClient(process.env.T);"
STRIPE_JS = "import Stripe from 'stripe'; const s = new Stripe(process.env.K, { apiVersion: '2026-10-28.endive' });"
OCTOKIT = "import { Octokit } from '@octokit/rest'; const o = new Octokit({ auth: process.env.T });"
ISSUE = {"owner": "o", "repo": "r", "title": "t"}


@pytest.mark.parametrize(
    ("program", "found", "arguments"),
    [
        (f"{SLACK_JS} c.chat.postMessage({{channel: 'C', text: 'hi'}})", "slack.chat.postMessage",
         {"channel": "C", "text": "hi"}),
        (f"{SLACK_JS} const f = c.chat.postMessage; f({{channel: 'C'}})", "slack.chat.postMessage", {"channel": "C"}),
        (f"{SLACK_JS} const {{ chat }} = c; chat.postMessage({{channel: 'C'}})", "slack.chat.postMessage",
         {"channel": "C"}),
        (f"{SLACK_JS} c.apiCall('chat.postMessage', {{channel: 'C'}})", "slack.chat.postMessage", {"channel": "C"}),
        (f"{STRIPE_JS} s.customers.create({{email: 'e'}})", "POST /customers", {"email": "e"}),
        ("const s = require('stripe')('k'); s.customers.update('c1', {email: 'e'}, {idempotencyKey: 'i'})",
         "POST /customers/{id}", {"id": "c1", "email": "e"}),
        (f"{STRIPE_JS} s.customers.del('c1')", "DELETE /customers/{id}", {"id": "c1"}),
        (f"{STRIPE_JS} s.paymentIntents.cancel('p1')", "POST /payment_intents/{id}/cancel", {"id": "p1"}),
        ("import OpenAI from 'openai'; const c = new OpenAI(); const f = c.chat.completions.create; f({model: 'm'})",
         "POST /chat/completions", {"model": "m"}),
        ("import OpenAI from 'openai'; const c = new OpenAI(); const k = c.chat.completions; "
         "const f = k.create.bind(k); f({model: 'm'})", "POST /chat/completions", {"model": "m"}),
        ("import { OpenAI } from 'openai'; new OpenAI().fineTuning.jobs.create({model: 'm'})",
         "POST /fine_tuning/jobs", {"model": "m"}),
        ("import OpenAI from 'openai'; new OpenAI().admin.organization.groups.users.delete('u1', {group_id: 'g1'})",
         "DELETE /organization/groups/{group_id}/users/{user_id}", {"group_id": "g1", "user_id": "u1"}),
        ("import OpenAI from 'openai'; new OpenAI().files.delete('f1')", "DELETE /files/{file_id}", {"file_id": "f1"}),
        ("import Anthropic from '@anthropic-ai/sdk'; new Anthropic().messages.create({model: 'm'})",
         "POST /v1/messages", {"model": "m"}),
        ("const { Client } = require('@notionhq/client'); new Client({auth: 'x'}).pages.create({parent: 'p'})",
         "POST /pages", {"parent": "p"}),
        ("import { Client } from '@notionhq/client'; new Client({}).blocks.children.append({block_id: 'b', "
         "children: 'c'})", "PATCH /blocks/{block_id}/children", {"block_id": "b", "children": "c"}),
        (f"{OCTOKIT} o.request('POST /repos/{{owner}}/{{repo}}/issues', {{owner: 'o', repo: 'r', title: 't', "
         "headers: {'X-GitHub-Api-Version': '2022-11-28'}})", "github.issues.create", ISSUE),
    ],
)  # fmt: skip
def test_javascript(program: str, found: str, arguments: dict[str, Any]) -> None:
    assert calls("javascript", program) == [(found, arguments)]


@pytest.mark.parametrize(
    "program",
    [
        "import OpenAI from 'openai'; new OpenAI({baseURL: 'https://x.test'}).chat.completions.create({model: 'm'})",
        "import OpenAI from 'openai'; new OpenAI(options).chat.completions.create({model: 'm'})",
        "import OpenAI from 'openai'; new OpenAI().chat.completions.create({model: 'm'}, {path: '/other'})",
        "import OpenAI from 'openai'; new OpenAI().chat.completions.create({model: 'm'}, options)",
        "import OpenAI from 'openai'; new OpenAI().withOptions({baseURL: 'x'}).chat.completions.create({model: 'm'})",
        "import Stripe from 'stripe'; new Stripe('k', {host: 'x.test'}).customers.create({email: 'e'})",
        "import { OpenAI } from './openai'; new OpenAI().chat.completions.create({model: 'm'})",
        f"{SLACK_JS} c.apiCall(process.argv[2], {{channel: 'C'}})",
        f"{OCTOKIT} o.request(process.argv[2], {{owner: 'o'}})",
        f"{OCTOKIT} o.request('POST /repos/o/r/issues', {{title: 't', baseUrl: 'https://x.test'}})",
        f"{OCTOKIT} o.request('POST /repos/{{owner}}/../r/issues', {{owner: '..', title: 't'}})",
    ],
)
def test_javascript_that_could_be_another_request_is_none_that_is_known(program: str) -> None:
    assert calls("javascript", program) == []


def test_what_a_program_leaves_open_stays_open() -> None:
    found = find("javascript", f"{SLACK_JS} c.chat.postMessage({{channel: 'C', ...more}})", CATALOG, ["slack"])
    assert [(call.method_id, "*" in call.open) for call in found.calls] == [("slack.chat.postMessage", True)]
    found = find("javascript", f"{STRIPE_JS} s.customers.update(id, fields)", CATALOG, ["stripe"])
    assert [(call.method_id, "*" in call.open) for call in found.calls] == [("stripe.m1", True)]


@pytest.mark.parametrize(
    ("call", "waiting", "other"),
    [
        ("conversations_list(limit=5)", "GET none", "POST form"),
        ("reactions_add(channel=c(), name='eyes')", "POST none", "POST form"),
        ("chat_postMessage(channel='C', text='x')", "POST json", "POST json"),
        ("api_call('pins.add', params={'channel': 'C'})", "POST none", "POST form"),
        ("api_call('pins.list', http_verb='GET', params={'channel': 'C'})", "GET none", "POST form"),
        ("api_call('pins.add', data={'channel': 'C'})", "POST form", "POST form"),
    ],
)
def test_slacks_asynchronous_client_sends_parameters_in_the_query(call: str, waiting: str, other: str) -> None:
    for client, sent in (("web.async_client.Async", waiting), ("", other)):
        program = f"import slack_sdk\nslack_sdk.{client}WebClient(token=t).{call}\n"
        (found,) = find("python", program, Catalog.bundled(), ("slack",)).calls
        assert f"{found.http} {found.body}" == sent
        assert bool(found.query) == (found.body == "none") != bool(found.fields)


def test_a_file_that_googles_library_fetches_is_asked_for_by_its_own_method() -> None:
    program = """
from googleapiclient.discovery import build
files = build("drive", "v3").files()
MediaIoBaseDownload(held, files.get_media(fileId="1a"))
files.export_media(fileId="1a", mimeType="text/plain").execute()
"""
    found = find("python", program, Catalog.bundled(), ("google_drive",))
    assert [(one.method_id, dict(one.arguments)) for one in found.calls] == [
        ("google_drive.files.get", {"fileId": "1a", "alt": "media"}),
        ("google_drive.files.export", {"fileId": "1a", "mimeType": "text/plain", "alt": "media"}),
    ]
    assert found.unknown == ()
