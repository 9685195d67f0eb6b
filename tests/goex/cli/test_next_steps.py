"""What a command says to do next: it can be done, it is named whole, and it doesn't contradict what was said before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from goex.cli.follow import Ended, Follower
from goex.cli.main import INTERRUPTED
from goex.cli.question_text import describe, summary
from goex.rpc import goex_pb2 as pb
from policies.rules.suggestions import Suggested
from tests.goex.cli.conftest import Inside
from tests.goex.cli.fake import Fake, approval, finished, problem, state, view
from tests.goex.cli.test_prompt import ASKING, NOW, answer, on_terminal

__all__ = ["on_terminal"]
REDO = "ONCE UNDONE, IT CAN'T BE REDONE"


def test_a_detached_action_that_is_asked_for_names_its_question(inside: Inside, fake: Fake) -> None:
    fake.events = [state("assessed", "ask", "asking"), ASKING, Fake.WAIT, finished()]
    ran = inside("exec", "--detach", "x")
    assert (ran.code, ran.out) == (0, "ac-0001\n")
    assert "goex approve ap-0001" in ran.err and "Left waiting as ac-0001" in ran.err


def test_a_task_names_its_id_its_end_and_how_to_end_it(inside: Inside, fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "task.json").write_text('{"allows": [{"method": "slack.conversations.history"}]}')
    fake.events = [finished(action=view(kind="task", undo_class="nothing", can_undo=False))]
    fake.granted = [
        pb.GrantView(id="g-1", width="task", why="ac-0001", expires="2026-01-02T03:34:05+00:00"),
        pb.GrantView(id="g-2", width="task", why="another", expires="2027-01-02T03:34:05+00:00"),
    ]
    ran = inside("task", "task.json")
    assert ran.code == 0
    for words in ("until 2026-01-02 03:34:05", "goex revoke --task ac-0001", "goex undo --task ac-0001"):
        assert words in ran.err


@pytest.mark.parametrize("args", [("--json", "log"), ("--json", "nothing"), ("db", "--json", "list")], ids=" ".join)
def test_json_before_the_command_is_told_where_it_goes(inside: Inside, fake: Fake, args: tuple[str, ...]) -> None:
    ran = inside(*args)
    said = json.loads(ran.out)["problem"]
    assert (ran.code, said["code"], said["next_step"]) == (2, "usage", "Write it last: goex log --json")


def test_a_malformed_command_names_the_option_and_its_own_help_in_json_too(inside: Inside, fake: Fake) -> None:
    said = json.loads(inside("log", "--json", "--limit", "0").out)["problem"]
    assert "--limit" in said["message"] and said["next_step"] == "See: goex log --help"


def test_undoing_to_a_point_that_a_rule_ends_is_told_to_mend_that_first(inside: Inside, fake: Fake) -> None:
    forbidden = problem("denied", 3, "Rule no-undo forbids it.", "See where it stands: goex rules.")
    fake.events = [finished(action=view(state="denied"), problem=forbidden)]
    ran = inside("undo", "--to", "ac-0001")
    assert ran.code == 3 and "Rule no-undo forbids it." in ran.err
    assert "Once that is mended, run it again to go on." in ran.err
    fake.events = [finished(action=view(state="denied"), problem=problem("denied", 3, "You denied it.", ""))]
    assert "not. Run it again to go on." in inside("undo", "--to", "ac-0001").err


def test_what_ends_an_undo_of_several_says_how_far_it_came(
    inside: Inside, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a step is refused before it is an action: of what somebody else has taken back meanwhile."""
    meanwhile = problem("conflict", 6, "Action ac-0003 is undone, so undo isn't possible.")
    fake.scripts = [[finished()], [meanwhile], [finished()]]
    ran = inside("undo", "--to", "ac-0001")
    assert [one.action_id for one in fake.requests] == ["ac-0002", "ac-0003", "ac-0001"]
    assert ran.code == 6 and meanwhile.message in ran.err
    assert "2 of 3 taken back, ac-0003 not. goex undo ID says what stands in the way" in ran.err

    fake.scripts = [[finished()], [grpc.StatusCode.INTERNAL]]
    ran = inside("undo", "--to", "ac-0001")
    assert ran.code == 1 and "socket closed" in ran.err and "1 of 3 taken back, ac-0003, ac-0001 not." in ran.err

    run, asked = Follower.run, []

    def interrupted(follower: Follower) -> Ended:
        asked.append(follower)
        if len(asked) > 1:
            raise KeyboardInterrupt
        return run(follower)

    monkeypatch.setattr(Follower, "run", interrupted)
    fake.events = [finished()]
    ran = inside("undo", "--to", "ac-0001")
    assert ran.code == INTERRUPTED
    assert "1 of 3 taken back, ac-0001 not. How ac-0003 stands: goex show ac-0003. Run it again" in ran.err


def test_three_wrong_passphrases_leave_one_thing_to_do(on_terminal: Callable[..., object], fake: Fake) -> None:
    fake.presence = True
    fake.events = [ASKING, Fake.WAIT, finished()]
    with on_terminal("exec", "send") as screen:
        answer(screen, "once")
        for wrong in ("a", "b", "c"):
            screen.terminal.expect("Approval passphrase: ")
            screen.terminal.type(wrong)
        screen.terminal.expect("wrong 3 times")
        screen.terminal.expect("goex approve ap-0001")
        fake.settled.put(pb.DecideRequest())
        screen.terminal.wait()
    assert "Run it again" not in screen.terminal.text and "Try again" not in screen.terminal.text


@pytest.mark.parametrize(("said", "goes_on"), [(["what?", "yes"], True), (["what?", "no"], False), ([""], True)])
def test_what_is_neither_yes_nor_no_is_asked_again(
    on_terminal: Callable[..., object], fake: Fake, said: list[str], goes_on: bool
) -> None:
    fake.pending = [approval(), approval(id="ap-0002", action_id="ac-0002")]
    with on_terminal("approve") as screen:
        answer(screen, "later")
        for number, one in enumerate(said):
            screen.terminal.expect(r"Go on with the next one \(yes or no\) \[yes\]: ")
            screen.terminal.type(one)
            if number + 1 < len(said):
                screen.terminal.expect("Answer yes or no.")
        if goes_on:
            answer(screen, "later")
        screen.terminal.wait()
    assert (screen.terminal.text.count("Left open.") == 2) is goes_on


def test_an_undo_that_cant_be_redone_isnt_listed_as_what_cant_be_undone() -> None:
    question = pb.Question(sentence="You want to undo a-1.", undo=REDO, irreversible=True)
    made = approval(kind="revert", undo_class="irreversible", question=question)
    for lines in (summary(made, 100, NOW), describe(made, 100, NOW)):
        shown = "\n".join(line.text for line in lines)
        assert REDO in shown and "CAN'T BE TAKEN BACK" not in shown
    call = approval(undo_class="irreversible", question=pb.Question(undo="IT CAN'T BE UNDONE", irreversible=True))
    assert "CAN'T BE TAKEN BACK" in "\n".join(line.text for line in summary(call, 100, NOW))


def test_one_is_said_in_the_singular(inside: Inside, fake: Fake, tmp_path: Path) -> None:
    fake.rules.suggested = Suggested(asked=1)
    assert "of 1 question too few" in inside("rules", "suggest").out
    fake.verify.rows = 1
    assert "The journal is whole: 1 row, head" in inside("log", "--verify").out
    (tmp_path / "cases.toml").write_text('[[case]]\nagent = "bot"\ncall = "slack.chat.postMessage"\nexpect = "ask"\n')
    assert "1 of 1 case." in inside("rules", "test", "cases.toml").out
    (waits,) = (line.text for line in describe(approval(count=2), 100, NOW) if line.text.startswith("How often"))
    assert "1 identical one waits" in waits
