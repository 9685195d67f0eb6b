"""Attacks on limits on time, memory, disk and money."""

from __future__ import annotations

from tests.adversarial.registry import Attack, Where

_HERE = "tests/adversarial/test_limits.py::"


_TURNS = "tests/adversarial/test_turns.py::test_"
_REFERENCES = "tests/adversarial/test_references.py::test_"


def _own(name: str, tries: str, refused_by: str, test: str, control: str) -> Attack:
    return Attack(name, tries, Where.LIMITS, (refused_by,), test, control)


def _row(name: str, tries: str, refused_by: str, test: str) -> Attack:
    return Attack(
        name=name,
        tries=tries,
        where=Where.LIMITS,
        refused_by=(refused_by,),
        test=f"{_HERE}test_{test}",
        control=f"{_HERE}test_control_{test}",
    )


ROWS: tuple[Attack, ...] = (
    _row("request-flood", "ask as fast as it can, each request a row of the journal", "requests a minute", "requests"),
    _row(
        "reconnecting", "connect anew for each request, to have a quota anew", "a quota of all unnamed", "reconnecting"
    ),
    _row("byte-flood", "fill the disk with long requests", "megabytes an hour", "bytes"),
    _row("map-flood", "map words as fast as it can, which leaves no action", "requests a minute", "maps"),
    _row(
        "resting-neighbour", "be denied until every unnamed agent rests", "a breaker of each connection", "neighbours"
    ),
    _row("long-refusals", "have long requests refused, and kept", "beginnings of what never ran", "kept"),
    _row("thread-hoard", "take every thread, so that no passphrase is checked", "threads of the person's", "threads"),
    _row("entangled-program", "have a program read that takes hours", "a budget of work", "work"),
    _row("doubled-columns", "have a query read whose columns double with each WITH", "a bound of columns", "columns"),
    _row("parser-lock", "have a parser hold the daemon's lock for a command", "parsers in their own process", "parser"),
    _row("list-flood", "list its own actions as fast as it can, whole and all at once", "requests a minute", "lists"),
    _row("look-flood", "look at its own actions as fast as it can", "looks a minute", "looks"),
    _row(
        "follow-hoard",
        "follow an action ten thousand times, so that each event is told as often",
        "a bound of followed",
        "followed",
    ),
    _row(
        "many-values", "send arguments of very many values, which take long to look at", "a bound of values", "values"
    ),
    _row("long-words", "have long words read while the person waits", "a thread for agents' words", "words"),
    _row("model-bill", "map words until the model's bill hurts", "model calls an hour", "model"),
    _row("model-words", "have results put into words, which no mapping pays for", "model calls an hour", "model_words"),
    _own(
        "place-hoard",
        "keep every place in which actions run, by reads of a slow service, so that the person waits",
        "places of the person's",
        f"{_TURNS}the_person_has_places[of_a_call]",
        f"{_TURNS}control[of_a_call]",
    ),
    _own(
        "folder-hoard",
        "keep a folder by a program that waits for such a place",
        "a folder is taken last",
        f"{_TURNS}the_person_has_places[of_a_folder]",
        f"{_TURNS}control[of_a_folder]",
    ),
    _own(
        "look-hoard",
        "have every thread look at a large folder, before anybody is asked, so that the person waits",
        "few threads for all agents",
        "tests/adversarial/test_agent_threads.py::test_the_person_has_threads",
        "tests/adversarial/test_agent_threads.py::test_control",
    ),
    _own(
        "reference-flood",
        "have a small request filled with a long answer, hundreds of times, and kept",
        "a bound of references, and of what they fill in",
        f"{_REFERENCES}the_log_keeps_no_more_than_was_sent",
        f"{_REFERENCES}control_the_log_keeps_more",
    ),
    _own(
        "reference-multiplied",
        "the same with what was read first, for each of fifty items",
        "a bound of references, and of what they fill in",
        f"{_REFERENCES}long_values",
        f"{_REFERENCES}control_long_values",
    ),
    _own(
        "search-flood",
        "search a long answer anew for each of hundreds of references, while nobody is answered",
        "one budget of work for an action",
        f"{_REFERENCES}many_searches",
        f"{_REFERENCES}control_many_searches",
    ),
    _own(
        "growing-program",
        "ask for a program again and again, with more methods each time",
        "a bound of methods, however they came together",
        f"{_REFERENCES}a_program_grows_by_no_repetition",
        f"{_REFERENCES}control_a_program_grows",
    ),
    Attack(
        "way-back-flood",
        "ask for the way back over hundreds of actions that stand on each other",
        Where.LIMITS,
        ("each action is read once, and others have their turn",),
        "tests/adversarial/test_way_back.py::test_each_is_read_once_and_others_have_their_turn",
        "tests/adversarial/test_way_back.py::test_control",
    ),
    Attack(
        "knocking",
        "fill the disk as another user, whom no socket is for, by connecting again and again",
        Where.LIMITS,
        ("who is refused is told of seldom",),
        "tests/adversarial/test_strangers.py::test_it_costs_nothing",
        "tests/adversarial/test_strangers.py::test_control",
    ),
)
