"""What a shell changes in ways that aren't followed is not told as known, and costs what is counted."""

from __future__ import annotations

import pytest

from mapper.catalog import Catalog
from mapper.code import languages, seen_json
from mapper.code.abstract_values import UNKNOWN, Fields, Json, Lit
from mapper.code.found_calls import Finding
from mapper.code.method_finder import find
from mapper.code.sent_requests import MAX_SENT, MAX_WORK
from mapper.code.shell_values import changed, jq
from tests.mapper.code.test_finding import told

SLACK = "https://slack.com/api/chat.postMessage"
ISSUES = "https://api.github.com/repos/octo/hello/issues"
P = f'curl -d "channel=$c" {SLACK}'
F = f'f() {{ curl -d "channel=$2" {SLACK}; }}\n'
B = """jq -n '{title:"A"}' > b\n"""
SEND = f"curl --json @b {ISSUES}"
NESTED = "{a:" * 10 + "$b" + "}" * 10


def _find(program: str) -> Finding:
    return find("shell", program, Catalog.bundled(), ("slack", "github"))


def _told(program: str) -> str:
    return "\n".join(sorted({told(call) for call in _find(program).calls}))


@pytest.mark.parametrize(
    ("program", "wrong"),
    [
        # Words without quotes, of which it isn't known how many they are.
        (f"IFS=,\nl=a,b\nd=($l)\nc=${{d[0]}}\n{P}", "a,b"),
        (f"d=($X b)\nc=${{d[1]}}\n{P}", "b"),
        (f"d=($(cat l) b)\nc=${{d[1]}}\n{P}", "b"),
        (f"d=(x$X b)\nc=${{d[1]}}\n{P}", "b"),
        (f"l='*'\nd=($l b)\nc=${{d[1]}}\n{P}", "b"),
        (f"f() {{ set -- $(cat l) b\nc=$2\n{P}; }}\nf", "b"),
        (f"{F}f $X b", "b"),
        (f"{F}f a$X b", "b"),
        (f"{F}f {{x,y}} b", "b"),
        (f"IFS=,\nl=(a,b)\nd=(${{l[@]}})\nc=${{d[0]}}\n{P}", "a,b"),
        (f"l='a b'\ncurl -d channel=$l {SLACK}", "a"),
        (f"IFS=,\nl=channel=a,b\ncurl -d $l {SLACK}", "a,b"),
        # What a command with variables of its own changes beside them.
        (f"c=\nwhile IFS= read -r c; do {P}; done < list", ""),
        (f"c=a\nIFS= read -r c < x\n{P}", "a"),
        (f"f() {{ c=$Y; }}\nc=a\nX=1 f\n{P}", "a"),
        (f"c=a\nc=b {P}", "b"),
        # Attributes, and assignments that are texts.
        (f"declare -u c\nc=abc\n{P}", "abc"),
        (f'c=a\nexport "c=secret"\n{P}', "a"),
        (f'c=a\ndeclare "c=secret"\n{P}', "a"),
        (f'c=a\nexport "$X"\n{P}', "a"),
        # Ways and rounds.
        (f"c=a\nif true; then c=b; {P}; fi", "a"),
        (f"c=a\nif c=$(cat l); then {P}; fi", "a"),
        (f"c=a\nif read -r c; then {P}; fi", "a"),
        (f"c=a\nif x; then :; elif read -r c; then :; else {P}; fi", "a"),
        (f"c=a\nx && read -r c\n{P}", "a"),
        (f"c=a\n(c=b)\n{P}", "b"),
        (f"c=a\n{{ c=b; }} | cat\n{P}", "b"),
        (f"f() {{ c=b; }}\nc=a\nf | cat\n{P}", "b"),
        (f"f() {{ c=b; }}\nc=a\nx=$(f)\n{P}", "b"),
        (f'f() {{ while shift; do curl -d "channel=$1" {SLACK}; done; }}\nf a b c', "a"),
        # What is changed otherwise.
        (f"d=(a b c d e f g h i j k)\nc=${{d[010]}}\n{P}", "k"),
        (f"x=abcdefghijk\nc=${{x:010}}\n{P}", "k"),
        (f"c=1\necho $((c++))\n{P}", "1"),
        (f"c=1\nx=$((c=5))\n{P}", "1"),
        (f"c=1\n[[ $((c+=1)) -eq 2 ]]\n{P}", "1"),
        (f'c=1\nprintf -v "$X" b\n{P}', "1"),
        (f"c=1\nbuiltin read c\n{P}", "1"),
        (f"c=1\nread -ac\n{P}", "1"),
        (f"c=1\nwait -p c\n{P}", "1"),
        (f'c=1\nunset "$X"\n{P}', "1"),
        (f"f() {{ set foo\nc=$1\n{P}; }}\nf bar", "bar"),
        (f"f() {{ set foo --\nc=$1\n{P}; }}\nf bar", ""),
    ],
)
def test_what_may_be_another_value_is_not_told(program: str, wrong: str) -> None:
    found = _told(program).splitlines()
    assert f"slack.chat.postMessage channel={wrong}" not in found, found


@pytest.mark.parametrize(
    "program",
    [
        f"{B}jq '.body=\"x\"' b > t && mv t b\n{SEND}",
        f"{B}sed -i s/A/B/ b\n{SEND}",
        f"{B}cp other b\n{SEND}",
        f"{B}cp x/b .\n{SEND}",
        f"{B}make_it &> b\n{SEND}",
        f"{B}make_it &>> b\n{SEND}",
        f"{B}make_it >& b\n{SEND}",
        f"{B}make_it 2> b\n{SEND}",
        f"{B}make_it 3<> b\n{SEND}",
        f"{B}make_it >| b\n{SEND}",
        f'{B}make_it > "$X"\n{SEND}',
        f"{B}wget -O b https://example.com\n{SEND}",
        f"{B}curl -o./x/../b https://example.com\n{SEND}",
        f"{B}gh release download -O b\n{SEND}",
        f'{B}python3 -c \'open("b", "w")\'\n{SEND}',
        f"{B}cat x | xargs rm\n{SEND}",
        f"{B}cd /other\n{SEND}",
        f"{B}{{ make_it; }} > b\n{SEND}",
        f"if x; then {B}fi\n{SEND}",
        f"{B}if x; then make_it > b; fi\n{SEND}",
        f"while read -r x; do {B}done\n{SEND}",
        f"{B}x && make_it > b\n{SEND}",
        f"{B}(make_it > b)\n{SEND}",
    ],
)
def test_a_file_that_something_else_may_have_written_is_not_known(program: str) -> None:
    calls = [call for call in _find(program).calls if "create" in call.method_id]
    assert not any("title=A" in told(call) and not call.open for call in calls), _told(program)


def test_a_later_round_may_send_another_file() -> None:
    assert any(call.open for call in _find(f"{B}for x in $L; do {SEND}; make_it > b; done").calls)


@pytest.mark.parametrize(
    "program",
    [
        f"{B}{SEND}",
        f"{B}chmod 600 b\necho done >&2\nmkdir -p x\n{SEND}",
        f"{B}curl -s -o /dev/null https://example.com\n{SEND}",
        f"jq -n '{{title:\"A\"}}' > x/../b\n{SEND}",
        f"if x; then {B}{SEND}; fi",
        f"{B}if x; then echo y > c; fi\n{SEND}",
        f"{B}(cat b > c)\n{SEND}",
    ],
)
def test_a_file_that_nothing_else_writes_is_known(program: str) -> None:
    calls = [call for call in _find(program).calls if "create" in call.method_id]
    assert calls and all("title=A" in told(call) and not call.open for call in calls), _told(program)


@pytest.mark.parametrize(
    ("program", "channel"),
    [
        (f"{F}f x a $X", "a"),  # what comes before is known
        (f"a=a\n{F}f $a b", "b"),
        (f"{F}f $# b", "b"),
        (f"{F}f https://x/y?z b", "b"),
        (f"f() {{ set foo\nc=$1\n{P}; }}\nf bar", "foo"),
        (f"f() {{ set -e -o pipefail x\nc=$1\n{P}; }}\nf bar", "x"),
        (f'export "c=secret"\n{P}', "secret"),
        (f"c=a\nIFS= read -r x < y\n{P}", "a"),
        (f"c=a\nif x; then c=b; else c=b; fi\n{P}", "b"),
        (f"c=a\nfor x in 1 2; do read -r y; done\n{P}", "a"),
        (f"cd x && c=b && {P}", "b"),
        (f"c=a\nunset x y\n{P}", "a"),
        (f"c=a\nunset -v 'x'\n{P}", "a"),
        (f'read -p why x\nc=a\nread -p "$why" y\n{P}', "a"),
        (f"c=a\n[ -z $((1 + 1)) ] || exit 1\n{P}", "a"),
    ],
)
def test_what_is_surely_so_is_told(program: str, channel: str) -> None:
    assert f"slack.chat.postMessage channel={channel}" in _told(program).splitlines(), _told(program)


def test_a_flag_is_a_word_of_its_own_and_a_trap_is_said() -> None:
    assert not _find(f'export MSG="use -n here"\n{P}').notes
    assert any("trap" in note for note in _find(f"trap 'c=b' DEBUG\n{P}").notes)


@pytest.mark.parametrize(
    "program",
    [
        f"""b=1\nfor x in 0 1 2 3 4 5 6 7 8 9; do for y in 0 1 2 3 4 5 6 7 8 9; do
        b=$(jq -n --argjson b "$b" '{NESTED}'); done; done\ncurl --json "$b" {ISSUES}""",
        f"""curl --json "$(jq -n --argjson b '{"[" * 400 + "]" * 400}' '{{title:$b}}')" {ISSUES}""",
    ],
)
def test_objects_that_lie_deep_in_each_other_are_not_known(program: str) -> None:
    assert seen_json.to_json(languages.read("shell", program))
    assert "github.issues.create" in _told(program)


def test_work_is_counted_and_bounded() -> None:
    many = " ".join("a" for _ in range(200))
    seen = languages.read("shell", f"a=({many})\ncurl " + '"${a[@]}" ' * 8_000)
    assert len(seen.requests) <= MAX_SENT + 200 and seen.notes
    program = "{" + ",".join(f"k{place}:1" for place in range(600)) + "}"
    before = languages.read("shell", "x=1").spent
    assert languages.read("shell", f"x=$(jq -n '{program}')").spent > before + len(program) // 5
    assert languages.read("shell", f"curl {'-d a=b ' * 3_000} x").spent < MAX_WORK
    assert jq([Lit("-n"), Lit("{" + ",".join(f"k{place}:1" for place in range(6_000)) + "}")]) == Json(UNKNOWN)
    assert jq([Lit("-n"), Lit('"\\' * 2_000)]) == Json(UNKNOWN)


def test_jq_takes_the_first_of_two_and_gives_up_what_it_writes_otherwise() -> None:
    given = ["-n", "--arg", "t", "A", "--arg", "t", "B", "{t: $t}"]
    assert jq([Lit(one) for one in given]) == Json(Fields((("t", Lit("A")),)))
    for program in ('{t: "\\("x")", u: 1}', '{"\\ud800": 1}'):
        assert jq([Lit("-n"), Lit(program)]) == Json(UNKNOWN)
    long = jq([Lit("-n"), Lit("--argjson"), Lit("n"), Lit("12345678901234567890"), Lit("{n: $n}")])
    assert long == Json(Fields((("n", UNKNOWN),)))


@pytest.mark.parametrize(
    ("known", "how", "value"),
    [
        ("aXbXc", "#*X", "bXc"), ("aXbXc", "##*X", "c"), ("aXbXc", "%X*", "aXb"), ("aXbXc", "%%X*", "a"),
        ("abab", "#a*b", "ab"), ("abab", "##a*b", ""), ("abab", "%a*b", "ab"), ("abab", "%%a*b", ""),
        ("aba", "#ab*ba", "aba"), ("aba", "%ab*ba", "aba"), ("abc", "#*", "abc"), ("abc", "##*", ""),
        ("abc", "%*", "abc"), ("abc", "%%*", ""), ("abc", "%bc", "a"), ("a", "%aa", "a"),
    ],
)  # fmt: skip
def test_a_text_is_cut_without_patterns_that_cost(known: str, how: str, value: str) -> None:
    assert changed(known, how) == Lit(value)
    assert changed("~/x", "#~/") == changed(known, ":010") == UNKNOWN


HELD = "jq -n --arg c \"$1\" '{channel: $c}'"
CONFIGURED = f'cat > k <<E\nurl = "{SLACK}"\n# no more\ndata = "channel=C"\nE\n'


@pytest.mark.parametrize(
    "program",
    [
        # What a function prints.
        f'b() {{ local c=$1; {HELD}; }}\ncurl --json "$(b C)" {SLACK}',
        f'b() {{\n# a body\ncat <<E\n{{"channel": "$1"}}\nE\n}}\ncurl --json "$(b C)" {SLACK}',
        f"b() {{ {HELD}; }}\nb C > f\ncurl --json @f {SLACK}",
        f"b() {{ {HELD}; }}\nb C | curl --json @- {SLACK}",
        f'b() {{ echo C | cat; }}\ncurl -d "channel=$(b)" {SLACK}',
        # Files that `mktemp` makes.
        f't=$(mktemp)\necho \'{{"channel":"C"}}\' > "$t"\ncurl --json @"$t" {SLACK}',
        f't=$(mktemp -d)\necho \'{{"channel":"C"}}\' > "$t/b"\nchmod 600 $t/b\ncurl --json "@$t/b" {SLACK}',
        f't=$(mktemp) u=$(mktemp)\necho \'{{"channel":"C"}}\' > "$t"\ncurl -o "$u" {SLACK} --json @"$t"',
        f"""b=$(jq -n --arg channel C '$ARGS.named')\ncurl --json "$b" {SLACK}""",
        # What a shell that is started gets.
        f"export c=C\nbash -c 'curl -d \"channel=$c\" {SLACK}'",
        f"c=C bash -c 'curl -d \"channel=$c\" {SLACK}'",
        f"bash -c 'curl -d \"channel=$1\" {SLACK}' _ C",
        f'f() {{ curl -d "channel=$1" {SLACK}; }}\nexport -f f\nbash -c \'f "$@"\' _ C',
        # What a command within `<(…)` prints.
        f"curl --json @<(jq -n '{{channel: \"C\"}}') {SLACK}",
        f"curl -K <(echo 'data = channel=C') {SLACK}",
        # A list that has more on one way.
        f'a=(-s)\nif x; then a+=(-d channel=C); fi\ncurl "${{a[@]}}" {SLACK}',
        # Files of curl's options.
        f"{CONFIGURED}curl -sS -K k",
        f"{CONFIGURED}curl --config k",
        f'curl -K - <<E\n--url {SLACK}\nheader = "Authorization: Bearer $X"\n-d "channel=C"\nE',
        f"t=$(mktemp)\nprintf 'url: {SLACK}' > $t\ncurl -K \"$t\" -d channel=C",
    ],
)
def test_what_a_program_hands_itself_is_told(program: str) -> None:
    found = _find(program)
    assert "slack.chat.postMessage channel=C" in _told(program).splitlines(), _told(program)
    assert not found.unknown and not found.notes, found


@pytest.mark.parametrize(
    "program",
    [
        # What it prints otherwise, or besides.
        f'b() {{ log; {HELD}; }}\ncurl --json "$(b C)" {SLACK}',
        f'b() {{ {HELD}; echo; }}\ncurl --json "$(b C)" {SLACK}',
        f'b() {{ {HELD} >&2; }}\ncurl --json "$(b C)" {SLACK}',
        f'b() {{ if x; then {HELD}; fi; }}\ncurl --json "$(b C)" {SLACK}',
        f'b() {{ {HELD}; }}\nif x; then b() {{ echo; }}; fi\ncurl --json "$(echo C | xargs b)" {SLACK}',
        f'b() {{ echo; }}\nb() {{ {HELD}; }}\ncurl --json "$(b C)" {SLACK}',
        f'if x; then b() {{ {HELD}; }}; fi\ncurl --json "$(b C)" {SLACK}',
        f'b() {{ declare -p PATH; {HELD}; }}\ncurl --json "$(b C)" {SLACK}',
        f'b() {{ {HELD}; }}\ncurl --json "$(echo C | xargs -n1 b C)" {SLACK}',
        f'b() {{ {HELD}; }}\ncurl --json "$(b C; make_it)" {SLACK}',
        # Files that something else may have written.
        f't=$(mktemp)\necho \'{{"channel":"C"}}\' > "$t"\nmake_it "$t"\ncurl --json @"$t" {SLACK}',
        f't=$(mktemp -d)\necho \'{{"channel":"C"}}\' > "$t/b"\nmake_it "$t"\ncurl --json @"$t/b" {SLACK}',
        f't=$(mktemp)\necho \'{{"channel":"C"}}\' > "$t"\nmake_it > "$t"\ncurl --json @"$t" {SLACK}',
        f't=$(mktemp)\necho \'{{"channel":"C"}}\' > "$t"\nt=$(mktemp)\ncurl --json @"$t" {SLACK}',
        f't=$(mktemp)\necho \'{{"channel":"C"}}\' > "$X"\ncurl --json @"$t" {SLACK}',
        f'echo \'{{"channel":"C"}}\' > $\'\\udc801\\udc80\'\nt=$(mktemp)\ncurl --json @"$t" {SLACK}',
        f"curl --json @<(jq '.channel' f) {SLACK}",
        f"curl -K <(make_it) {SLACK}",
        # What a shell that is started doesn't get.
        f"c=C\nbash -c 'curl -d \"channel=$c\" {SLACK}'",
        f"c=C x=$(y) z\nbash -c 'curl -d \"channel=$c\" {SLACK}'",
        f"export c=C\nread -r c\nbash -c 'curl -d \"channel=$c\" {SLACK}'",
        f"bash -c 'curl -d \"channel=$0\" {SLACK}' C",
        f'f() {{ curl -d "channel=$1" {SLACK}; }}\nbash -c \'f "$@"\' _ C',
        # Options that aren't known.
        f"{CONFIGURED}make_it >> k\ncurl -K k",
        f'cat > k <<E\nurl = "{SLACK}"\n$X = "channel=C"\nE\ncurl -K k -d channel=C',
        f"{CONFIGURED}curl -K other",
    ],
)
def test_what_may_be_handed_otherwise_is_not_told(program: str) -> None:
    assert "slack.chat.postMessage channel=C" not in _told(program).splitlines(), _told(program)


@pytest.mark.parametrize(
    ("written", "channel"), [("$1", "C"), ("x$1", "xC"), ("\\$1", "$1"), ("$?", "?"), ("$12", "C2"), ("`id`", "?")]
)
def test_a_here_document_has_what_it_is_expanded_to(written: str, channel: str) -> None:
    program = f"f() {{\ncurl -d @- {SLACK} <<E\nchannel={written}\nE\n}}\nf C"
    assert _told(program) == f"slack.chat.postMessage channel={channel}"


@pytest.mark.parametrize(
    ("option", "arguments"),
    [("-d @f", "channel=C"), ("--data-binary @f", "channel=C\n"), ("--data-raw @f", "?"), ("--data-urlencode @f", "?")],
)
def test_a_file_is_sent_as_its_option_says(option: str, arguments: str) -> None:
    told_as = _told(f"cat > f <<E\nchannel=C\nE\ncurl {option} {SLACK}")
    assert told_as == f"slack.chat.postMessage {arguments}"


@pytest.mark.parametrize(
    ("run", "found"),
    [
        (f'xargs -I{{}} curl -d "channel={{}}" {SLACK}', "channel=?"),
        (f'xargs -I % curl -d "channel=%" -d text=a {SLACK}', "channel=? text=a"),
        (f"xargs -0 -P 4 -n 1 -I {{}} bash -c 'curl -d \"channel=$1\" {SLACK}' _ {{}}", "channel=?"),
        (f'xargs --max-procs=4 --replace curl -d "channel={{}}" {SLACK}', "channel=?"),
        (f"xargs -n1 curl {SLACK} -d", "?"),
    ],
)
def test_what_xargs_adds_is_not_known(run: str, found: str) -> None:
    for fed in ("cat l | ", "< l "):
        assert _told(f"{fed}{run}") == f"slack.chat.postMessage {found}", _told(f"{fed}{run}")


def test_many_lists_that_may_be_several_are_not_gone_through_one_by_one() -> None:
    lists = "".join(f"a{n}=(-s)\nif x; then a{n}+=(-v); fi\n" for n in range(12))
    found = _find(lists + "curl " + " ".join(f'"${{a{n}[@]}}"' for n in range(12)) + f" {SLACK}")
    assert found.unknown and not found.notes


def test_what_xargs_runs_otherwise_is_said() -> None:
    for run in (f"xargs curl -d channel=C {SLACK}", f"xargs -n 1 curl -d channel=C {SLACK}"):
        assert _find(f"cat l | {run}").unknown, run
    for run in (f"xargs --other curl {SLACK}", f"xargs -I {{}} sh -c 'curl -d channel={{}} {SLACK}'"):
        assert _find(f"cat l | {run}").notes, run


@pytest.mark.parametrize(
    ("program", "found"),
    [
        (f'if x; then c=C; else c=D; fi\ncurl -d "channel=$c" {SLACK}', ["channel=C", "channel=D"]),
        (f"case $1 in a) c=C ;; *) c=D ;; esac\ncurl -d channel=$c {SLACK}", ["channel=C", "channel=D"]),
        (f"[ $1 = a ] && c=C || c=D\ncurl -d channel=$c {SLACK}", ["channel=C", "channel=D"]),
        (f'if x; then c="C D"; else c=D; fi\ncurl -d "channel=$c" {SLACK}', ["channel='C D'", "channel=D"]),
    ],
)
def test_a_value_that_is_one_of_a_few_is_told_as_each(program: str, found: list[str]) -> None:
    assert _told(program).splitlines() == [f"slack.chat.postMessage {one}" for one in found]
    assert not _find(program).unknown


@pytest.mark.parametrize(
    "program",
    [
        'case $1 in a) m=GET p=issues ;; *) m=DELETE p=issues/7 ;; esac\ncurl -X $m "https://api.github.com/repos/a/b/$p"',
        'if x; then o="-X DELETE"; else o=-s; fi\ncurl $o https://api.github.com/repos/a/b',
        'if x; then o="-X DELETE"; else o=-s; fi\ncurl $o$y https://api.github.com/repos/a/b',
    ],
)
def test_values_of_which_it_is_not_known_which_go_together_are_not_known(program: str) -> None:
    found = _find(program)
    assert found.unknown and not [call for call in found.calls if call.http == "DELETE"], found


def test_a_list_that_may_have_anything_in_it_leaves_what_is_asked_for_open() -> None:
    for more in ("a=($X)", "a=($(cat l))", "mapfile -t a < l"):
        assert _find(f'a=(-s)\nif x; then {more}; fi\ncurl "${{a[@]}}" -d channel=C {SLACK}').unknown, more


def test_a_path_that_is_not_known_is_in_no_text_that_is_told() -> None:
    for text in ("in $t", "${t:1:3}", "${t##*/}", "$t/b"):
        program = f't=$(mktemp)\ncurl -d "channel={text}" {SLACK}'
        assert _told(program) == "slack.chat.postMessage channel=?", text
    for run in ("$t", "bash $t", "python3 - <<E\nopen('$t')\nE", 'sh -c "$t"', 'python3 -c "$t"'):
        assert _find(f"t=$(mktemp)\n{run}").notes, run


ASKS = f"""bash -c 'curl -d "channel=$c" {SLACK}'\n"""


@pytest.mark.parametrize(
    "program",
    [
        f"export c=a\nenv c=B {ASKS}",
        f"export c=a\nenv -i {ASKS}",
        f"export c=a\nsudo {ASKS}",
        f"export c=a\nexport -n c\n{ASKS}",
        f"declare -x c=a\ndeclare +x c\n{ASKS}",
        f"c=a\n(export c)\n{ASKS}",
        f"c=a\necho | export c\n{ASKS}",
        f"c=a\nx=$(export c)\n{ASKS}",
        f"export c=(a b)\n{ASKS}",
        f"c=a\nif [ -f z ]; then export c; fi\n{ASKS}",
    ],
)
def test_a_program_that_may_not_have_a_variable_is_told_without_its_value(program: str) -> None:
    assert "channel=a" not in _told(program) and _told(program).startswith("slack.")


@pytest.mark.parametrize("program", [f"export c=a\n{ASKS}", f"c=a {ASKS}", f"declare -x c=a\ntime {ASKS}"])
def test_a_program_that_has_a_variable_is_told_with_its_value(program: str) -> None:
    assert "channel=a" in _told(program)


def test_a_function_of_a_commands_name_runs_the_command() -> None:
    assert "channel=a" in _told(f'curl() {{ command curl --fail "$@"; }}\ncurl -d channel=a {SLACK}')


@pytest.mark.parametrize("program", [f"find . -name x -exec curl {SLACK} ';'", f"parallel curl ::: {SLACK}"])
def test_what_find_and_parallel_run_is_said(program: str) -> None:
    assert any("runs isn't read" in note for note in _find(program).notes)
    assert not _find("find . -name x -exec rm {} ';'").notes
