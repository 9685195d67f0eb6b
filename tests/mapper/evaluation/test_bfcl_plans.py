"""The Berkeley function-calling ground truth as plans: each is proposed in a conversation and must come out unchanged.

The functions are imported as a person would import them. What a model would say is the ground truth itself: of several
possible values the first. The proposal is read, validated and given least scopes like any other; what is compared are
the calls that come out. A plan that can't be expressed is listed here, with why.

`simple_python` and `multiple` are in ../shared/data; the multi-turn base cases, and `simple` for Java and JavaScript,
in the wheel of `bfcl-eval`, which `make replay` downloads. A test whose data isn't there is skipped.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.context import NOTHING_TOLD
from mapper.conversation import Conversation
from mapper.evaluation import bfcl
from mapper.importing import install
from mapper.importing.files import import_functions
from policies.actions import Call, Rejected
from policies.services import Method
from tests.mapper.evaluation.test_bfcl import references
from tools.replay import bfcl_cases
from tools.replay.run import BFCL, CACHE

Arguments = Mapping[str, Any]

SERVICE = "bfcl"
_DATA = "bfcl_eval/data"
_A_TRUE_FOR_A_TEXT = (
    '"venue" must be text, but is true'  # the data's own slip; left out, as it also may be, it is taken
)
_NO_SUCH_NUMBER = "\"ticket_id\" must be a whole number, but is the text 'ticket_001'"  # the data's own slip
# In Java and JavaScript the data has the name of a variable or a constant where its value is wanted: that is code.
_A_NAME = ", but is the text"
INEXPRESSIBLE: Mapping[str, Mapping[str, str]] = {
    "simple_python": {"simple_python_307": _A_TRUE_FOR_A_TEXT},
    "multiple": {},
    "simple_java": {f"simple_java_{number}": _A_NAME for number in (26, 35, 38, 45, 58, 69, 72, 82, 87, 88)},
    "simple_javascript": {f"simple_javascript_{number}": _A_NAME for number in (5, 9, 11, 15, 19, 32, 37, 39)},
    "multi_turn_base": {"multi_turn_base_173.3": _NO_SUCH_NUMBER},
}


@pytest.fixture(scope="module", autouse=True)
def _no_index() -> Iterator[None]:
    """The search index is made over all services; nothing here searches, so it isn't made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(install, "rebuild", lambda *_: None)
        yield


@pytest.fixture
def wheel() -> zipfile.Path:
    """The data files of the package; skips when it wasn't downloaded."""
    found = sorted((CACHE / "bfcl").glob("bfcl_eval-*.whl"))
    if not found:
        pytest.skip(f"{BFCL} isn't there")
    return zipfile.Path(found[-1]) / _DATA


@pytest.mark.parametrize(("name", "count"), [("simple_python", 400), ("multiple", 200)])
def test_every_call_can_be_expressed(tmp_path: Path, data: Callable[[str], Path], name: str, count: int) -> None:
    asked = bfcl._questions(data(f"bfcl/BFCL_v4_{name}.json"), data(f"bfcl/BFCL_v4_{name}.answers.json"))
    assert len(asked) == count
    _as_listed(refused(tmp_path, asked), name)


@pytest.mark.parametrize(("name", "count"), [("simple_java", 100), ("simple_javascript", 50)])
def test_every_call_of_other_languages(tmp_path: Path, wheel: zipfile.Path, name: str, count: int) -> None:
    files = tmp_path / "questions.json", tmp_path / "answers.json"
    files[0].write_bytes((wheel / f"BFCL_v4_{name}.json").read_bytes())
    files[1].write_bytes((wheel / "possible_answer" / f"BFCL_v4_{name}.json").read_bytes())
    asked = bfcl._questions(*files)
    assert len(asked) == count
    _as_listed(refused(tmp_path, asked), name)


def test_every_turn_of_the_multi_turn_cases(tmp_path: Path, wheel: zipfile.Path) -> None:
    cases, _ = bfcl_cases.cases(Path(str(wheel.root.filename)))
    assert len(cases) == 731 and len({case["id"].rpartition(".")[0] for case in cases}) == 200
    functions: dict[str, Arguments] = {}
    for file in (wheel / "multi_turn_func_doc").iterdir():
        for one in map(json.loads, filter(None, file.read_text(encoding="utf-8").splitlines())):
            functions[one["name"]] = one
    catalog = imported(tmp_path, functions)
    found = {}
    for case in cases:
        calls = [(catalog.method(f"{SERVICE}.{call['tool']}"), call["arguments"]) for call in case["calls"]]
        if why := wrong(catalog, case["prompt"], [method for method, _ in calls], calls):
            found[case["id"]] = why
    _as_listed(found, "multi_turn_base")


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    """So that an empty list means something."""
    area = {"description": "", "parameters": {"type": "dict", "properties": {"side": {"type": "float"}}}}
    catalog = imported(tmp_path, {"area": {"name": "area", **area}})
    method = catalog.method(f"{SERVICE}.area")
    assert wrong(catalog, "an area", [method], [(method, {"side": 2.5})]) == ""
    assert '"side" must be a number' in wrong(catalog, "an area", [method], [(method, {"side": "x"})])
    assert "it became" in wrong(catalog, "an area", [method], [])


def refused(folder: Path, questions: Mapping[str, bfcl.Question]) -> dict[str, str]:
    """What is wrong with the plans of these questions, by id. Functions of one name are kept apart by the question."""
    functions = {
        f"{identity}.{name}": function
        for identity, question in questions.items()
        for name, function in question.functions.items()
    }
    catalog = imported(folder, functions)
    found = {}
    for identity, question in questions.items():
        methods = {name: catalog.method(f"{SERVICE}.{identity}.{name}") for name in question.functions}
        calls = [(methods[name], given) for name, given in references(question)]
        if why := wrong(catalog, identity, list(methods.values()), calls):
            found[identity] = why
    return found


def imported(folder: Path, functions: Mapping[str, Arguments]) -> Catalog:
    """A catalog with these functions, each under the name that it has here."""
    file = folder / "functions.jsonl"
    lines = [json.dumps({**function, "name": name}) for name, function in functions.items()]
    file.write_text("\n".join(lines), encoding="utf-8")
    import_functions(folder / "catalog.db", file, SERVICE)
    return Catalog.open(folder / "catalog.db")


def wrong(catalog: Catalog, words: str, methods: Sequence[Method], calls: Sequence[tuple[Method, Arguments]]) -> str:
    """Propose these calls in a conversation about `words`. What is wrong with what comes out; "" for nothing."""
    talk = Conversation(catalog, lambda _: (), words, methods, NOTHING_TOLD)
    proposal = {"calls": [{"name": method.id, "arguments": given} for method, given in calls]}
    talk.hear(json.dumps({"tool": "propose", "arguments": proposal}))
    if talk.reading is None:
        return str(talk.turns[-1].answers[0]["rejected"])
    sample = talk.reading.sample
    if isinstance(sample, Rejected):
        return sample.reason
    wanted = tuple(Call(service=SERVICE, method=method.name, arguments=dict(given)) for method, given in calls)
    return "" if sample == wanted and sample else f"it became {sample}"


def _as_listed(found: Mapping[str, str], name: str) -> None:
    """Whether just those can't be expressed that are listed, each for the reason that is listed."""
    listed = INEXPRESSIBLE[name]
    assert found.keys() == listed.keys(), {one: why for one, why in found.items() if one not in listed}
    assert {one: why for one, why in found.items() if listed[one] not in why} == {}
