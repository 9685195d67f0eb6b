"""APIBench: what matches, what doesn't, what isn't read; and the published responses score as published."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mapper.evaluation.apibench import Database, evaluate
from mapper.evaluation.completions import MAX_CALL, MAX_COMPLETION, MAX_DEPTH, Finder
from policies.errors import InvalidInput
from tests.support.pace import pace

DATABASE = Database(
    [
        ("hub.load('https://x.example/a/1')", "texts"),
        ("hub.load('https://x.example/b/1')", "pictures"),
        ("hub.Layer('https://x.example/b/1', key='out')", "masks"),
        ("hub.load('https://x.example/a/1')", "sounds"),  # the same call again: the first domain counts
        ("model is loaded like this", "none"),
    ]
)


def field(call: str) -> str:
    return f"<<<domain>>>: x, <<<api_call>>>: {call}, <<<api_provider>>>: y, <<<code>>>: hub.load('https://no.example')"


@pytest.mark.parametrize(
    ("call", "domain"),
    [
        ("hub.load('https://x.example/a/1')", "texts"),
        ('hub.load("https://x.example/a/1")', "texts"),
        (r"hub.load(\'https://x.example/a/1\')", "texts"),
        (r"hub.load(\\\"https://x.example/a/1\\\")", "texts"),
        ("hub.load('https://x.example/b/1', trainable=False)", "pictures"),
        ("hub.load(handle='https://x.example/b/1')", "pictures"),
        ("keras.Sequential([\\n  hub.load('https://x.example/b/1'),\\n  Dense(1)])", "pictures"),
        ("hub.Layer('https://x.example/b/1', key='out', more=1)", "masks"),
        ("model_id = 'https://x.example/b/1'", "pictures"),
        ("hub.Layer('https://x.example/b/1')", None),  # the reference says more
        ("hub.Layer('https://x.example/b/1', key='in')", None),
        ("hub.load('https://x.example/a/10')", None),
        ("hub.load('https://x.example/a')", None),
        ("hub.load(['https://x.example/a/1'])", None),
        ("hub.loads('https://x.example/a/1')", None),
        ("github.load('https://x.example/a/1')", None),
        ("other.hub.load('https://x.example/a/1')", None),
        ("hub.load", None),
        ("hub.load('https://x.example/a/1'", None),  # cut off
        ("hub.load('https://x.example/a/1' trainable)", None),
        ("load the model at 'https://x.example/a/1'", None),
        ("", None),
    ],
)
def test_the_field_is_compared(call: str, domain: str | None) -> None:
    assert DATABASE.domain(field(call)) == domain


@pytest.mark.parametrize(
    ("completion", "found"),
    [
        ("hub.load('https://x.example/b/1')", True),
        ("import x\nm = hub.load('https://x.example/b/1')\ny = m(1)", True),
        (r"import x\nm = hub.load('https://x.example/b/1')", True),
        (r"import x\nm = hub.load('https://x.example/b/1')\ny = m(1)", False),  # two statements, one line
        (r"m = keras.Sequential([\n hub.load(\"https://x.example/b/1\")])\ny = m(1)", True),
        (r"# Load it\nm = hub.load('https://x.example/b/1')", False),  # all of it is a comment
        ("# Load it\nm = hub.load('https://x.example/b/1')", True),
        ("Here's how: hub.load('https://x.example/b/1')", False),  # the apostrophe opens a string
        ("Here's how:\nhub.load('https://x.example/b/1')", True),
        ("I have no idea", False),
    ],
)
def test_without_the_field_the_whole_is_the_program(completion: str, found: bool) -> None:
    assert DATABASE.domain(completion) == ("pictures" if found else None)


TORCH = Database(
    [
        ("torch.hub.load(repo_or_dir='own/repo', model='small', pretrained=True)", "pictures"),
        ("torch.hub.load(repo_or_dir='own/mixed', 'kind', model='large', pretrained=True)", "texts"),
    ]
)


@pytest.mark.parametrize(
    ("call", "domain"),
    [
        ("torch.hub.load('own/repo', 'small', pretrained=True)", "pictures"),
        ("torch.hub.load('own/repo', 'small')", "pictures"),  # only where and which is compared
        ("torch.hub.load(model='small', repo_or_dir='own/repo')", "pictures"),
        ("torch.hub.load('own/repo:v1', 'small')", "pictures"),
        ("torch.hub.load('own/mixed', 'kind', 'large')", "texts"),
        ("torch.hub.load(repo_or_dir='own/mixed', 'kind', model='large')", "texts"),  # no Python, but written so
        (r"\"model = torch.hub.load(\\'own/repo\\\", 'small')", "pictures"),  # quotes that don't match
        ("torch.hub.load('own/repo', 'medium')", None),
        ("torch.hub.load('repo', 'small')", None),
        ("torch.hub.loads('own/repo', 'small')", None),
        ("'model = torch.hub.load('own/repo', 'small')", None),  # 'model = torch.hub.load(' is a text
    ],
)
def test_torchhub_compares_where_and_which(call: str, domain: str | None) -> None:
    assert TORCH.domain(field(call)) == domain


def test_torchhub_without_a_field_is_an_error() -> None:
    assert TORCH.unreadable == 0
    assert TORCH.classify("torch.hub.load('own/repo', 'small')", "pictures") == "error"
    assert TORCH.classify(field("torch.hub.load('own/none', 'small')"), "pictures") == "hallucination"


@pytest.mark.parametrize(
    ("call", "domain"),
    [
        ("Model.from_pretrained('own/model')", "texts"),
        ("Model.from_pretrained(name='own/model')", "texts"),
        ("pipeline('summarize', 'own/short')", "summaries"),
        ("pipeline(model='own/short', task='summarize')", "summaries"),
        ("pipeline('summarize')", None),
        ("Other.from_pretrained('own/model')", None),
    ],
)
def test_elsewhere_every_value_is_compared_named_or_not(call: str, domain: str | None) -> None:
    database = Database(
        [
            ("Model.from_pretrained('own/model')", "texts"),
            ("pipeline('summarize', model='own/short')", "summaries"),
            ("Other.from_pretrained()", "nothing"),  # says nothing that could be compared
        ]
    )
    assert database.domain(field(call)) == domain


def test_three_classes() -> None:
    assert DATABASE.classify(field("hub.load('https://x.example/a/1')"), "texts") == "accuracy"
    assert DATABASE.classify(field("hub.load('https://x.example/a/1')"), "sounds") == "error"
    assert DATABASE.classify(field("hub.load('https://x.example/zzz')"), "texts") == "hallucination"
    assert DATABASE.unreadable == 1


def test_nothing_runs(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    call = f"hub.load('https://x.example/a/1', x=open({str(ran)!r}, 'w'))"
    assert DATABASE.domain(field(call)) == "texts"
    assert not ran.exists()


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "completion",
    [
        "(" * 500_000,
        field("hub.load(" * 50_000),
        "hub.load(" * 50_000,
        field("hub.load(" + "[" * 2000 + "]" * 2000 + ")"),
        field("hub.load(" + "-" * 7000 + "1)"),
        field("hub.load(" + "a." * 3000 + "a)"),
        field("hub.load(" + "1+" * 3000 + "1)"),
        field("\\" * 100_000 + "n"),
        field("a" * 100_000 + " = "),
        "# hub.load(\n" * 20_000,
        field("hub.load('\ud800')"),
        field("hub.load('\0')"),
        field("'" * 100_000),
        field("''hub.load(" * 9_000),
        field("\\'" * 40_000 + ")"),
    ],
)
def test_hostile_completions_are_hallucinations_soon(completion: str) -> None:
    began = time.process_time()
    assert DATABASE.classify(completion, "texts") == "hallucination"
    assert time.process_time() - began < 1000 * pace()


def test_the_bounds() -> None:
    finder = Finder({"f"})
    assert finder.find("f(" + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1) + ")")
    assert not finder.find("f(" + "[" * MAX_DEPTH + "]" * MAX_DEPTH + ")")
    assert finder.find("f(" + " " * (MAX_CALL - 3) + ")")
    assert not finder.find("f(" + " " * MAX_CALL + ")")
    assert finder.find(" " * (MAX_COMPLETION - 3) + "f()")
    assert not finder.find("\n" * (MAX_COMPLETION - 2) + "f()")


API = {"api_call": "hub.load('u')", "domain": "texts"}
QUESTION = {"api_data": {"domain": "texts"}}
RESPONSE = {"question_id": 1, "text": field("hub.load('u')")}


def test_shares(lines: Callable[..., Path]) -> None:
    texts = [field("hub.load('u')"), field("hub.load('v')"), field("nothing"), field("hub.load('u')")]
    score = evaluate(
        lines("api", API, {"api_call": "hub.load('v')", "domain": "pictures"}),
        lines("questions", *[QUESTION] * 4),
        lines("responses", *({"question_id": n, "text": text} for n, text in enumerate(texts, 1))),
    )
    assert (score.n, score.accuracy_pct, score.error_pct, score.hallucination_pct) == (4, 50, 25, 25)


@pytest.mark.parametrize(
    ("which", "at", "value", "says"),
    [
        ("api", 2, "{", "api, line 2 isn't JSON"),
        ("api", 2, {"api_call": 3, "domain": "x"}, "api, line 2: 'api_call' must be there"),
        ("api", 2, {"api_call": "f()"}, "api, line 2: 'domain' must be there"),
        ("questions", 2, {"api_data": {}}, "questions, line 2: a question needs"),
        ("questions", 2, "[]", "questions, line 2 isn't a JSON object"),
        ("responses", 2, {"question_id": 0, "text": ""}, "responses, line 2: 'question_id' must be a number from 1"),
        ("responses", 2, {"question_id": 3, "text": ""}, "responses, line 2: 'question_id' must be a number from 1"),
        ("responses", 2, {"question_id": True, "text": ""}, "responses, line 2: 'question_id' must be a number"),
        ("responses", 2, {"question_id": 1, "text": ""}, "responses, line 2: question 1 is answered a second time"),
        ("responses", 2, {"question_id": 2}, "responses, line 2: 'text' must be there"),
        ("responses", 2, '{"question_id": 2, "question_id": 2}', "responses, line 2 isn't JSON: a key"),
    ],
)
def test_a_broken_line_is_named(lines: Callable[..., Path], which: str, at: int, value: object, says: str) -> None:
    contents: dict[str, list[object]] = {"api": [API], "questions": [QUESTION], "responses": [RESPONSE]}
    contents["questions"] += [QUESTION] * (which != "questions")
    contents[which].insert(at - 1, value)
    files = {name: lines(name, *values) for name, values in contents.items()}
    with pytest.raises(InvalidInput) as caught:
        evaluate(files["api"], files["questions"], files["responses"])
    assert says in caught.value.message
    assert caught.value.next_step


def test_a_file_that_isnt_there_or_is_empty_is_named(lines: Callable[..., Path], tmp_path: Path) -> None:
    good = (lines("api", API), lines("questions", QUESTION), lines("responses", RESPONSE))
    assert evaluate(*good).accuracy_pct == 100
    for place in range(3):
        for file, says in ((tmp_path / "gone", "can't be read"), (tmp_path, "can't be read"), (lines("e"), "is empty")):
            files = list(good)
            files[place] = file
            with pytest.raises(InvalidInput, match=says) as caught:
                evaluate(*files)
            assert str(file) in caught.value.message
    bytes_ = tmp_path / "bytes"
    bytes_.write_bytes(b'{"question_id": 1}\n\xff\n')
    with pytest.raises(InvalidInput, match="line 1: 'text'"):
        evaluate(*good[:2], bytes_)
    bytes_.write_bytes(b"\xff\n")
    with pytest.raises(InvalidInput, match="line 1 isn't UTF-8"):
        evaluate(*good[:2], bytes_)
    bytes_.write_bytes(b'"' + b"x" * 3_000_000 + b'"')
    with pytest.raises(InvalidInput, match="line 1 is longer"):
        evaluate(*good[:2], bytes_)


@pytest.mark.parametrize(
    ("responses", "accuracy", "hallucination"),
    [
        ("FT_0_shot", 83.79, 5.40),
        ("FT_bm25", 34.30, None),
        ("FT_gpt_index", 52.40, None),
        ("FT_oracle", 82.91, None),
        ("RT_0_shot", 0, None),
        ("RT_bm25", 41.89, 2.77),
        ("RT_gpt_index", 64.96, 2.33),
        ("RT_oracle", 94.16, 1.89),
    ],
)
def test_published_responses_score_as_published(
    data: Callable[[str], Path], responses: str, accuracy: float, hallucination: float | None
) -> None:
    done: list[int] = []
    score = evaluate(
        data("apibench/tensorflowhub_api.jsonl"),
        data("apibench/tensorflow_eval.json"),
        data(f"apibench/response_tensorflowhub_Gorilla_{responses}.jsonl"),
        done.append,
    )
    assert score.accuracy_pct == pytest.approx(accuracy, abs=1)
    if hallucination is not None:
        assert score.hallucination_pct == pytest.approx(hallucination, abs=1)
    assert score.accuracy_pct + score.hallucination_pct + score.error_pct == pytest.approx(100)
    assert score.n == done[-1] == 685


@pytest.mark.parametrize(
    ("responses", "accuracy", "hallucination"),
    [
        ("FT_0_shot", 75.81, 16.13),
        ("FT_bm25", 44.62, 17.20),
        ("FT_gpt_index", 77.42, 5.38),
        ("FT_oracle", 59.14, 39.25),
        ("RT_bm25", 50.00, 5.91),
        ("RT_gpt_index", 76.88, 3.23),
        ("RT_oracle", 93.01, 6.99),
    ],
)
def test_torchhub_scores_as_its_own_scripts_do(
    data: Callable[[str], Path], responses: str, accuracy: float, hallucination: float
) -> None:
    score = evaluate(
        data("apibench/torchhub_api.jsonl"),
        data("apibench/torchhub_eval.json"),
        data(f"apibench/response_torchhub_Gorilla_{responses}.jsonl"),
    )
    assert score.accuracy_pct == pytest.approx(accuracy, abs=1)
    assert score.hallucination_pct == pytest.approx(hallucination, abs=1)
    assert (score.n, score.apis_unreadable) == (186, 0)
