"""Whether a command's words are known, by the table of `command_table`. The sandbox's commands come first.

Rules: `understood` knows a closed list. A command, an option or a text that isn't in it may hold a program, follow
links or read names that no word is, so no rule permits it. What a program in a file does is that file's own matter:
such a program, and a tool that runs a project's code, takes any options, but no word that a shell would cut.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import pairwise

from mapper.code.command_table import Takes, groups, known
from mapper.code.command_words import CUT, IS_PROGRAM, Words, read_words
from mapper.code.sed_scripts import is_plain

READING = frozenset({
    "basename", "cat", "cmp", "comm", "cut", "date", "diff", "dirname", "du", "echo", "egrep", "expr", "false",
    "fgrep", "file", "find", "fold", "grep", "head", "join", "ls", "md5sum", "nl", "od", "paste", "printf", "pwd",
    "readlink", "rev", "sed", "seq", "sha256sum", "sort", "stat", "tac", "tail", "test", "tr", "true", "tsort",
    "uniq", "wc", "xargs", "[", "cd", "exit", "set"
})  # fmt: skip
CHANGING = frozenset({
    "chmod", "cp", "dd", "gzip", "gunzip", "install", "ln", "mkdir", "mktemp", "mv", "rm", "rmdir", "shred",
    "split", "tar", "tee", "touch", "truncate", "unlink"
})  # fmt: skip
# What these are given isn't run by a shell of this machine.
RUN_NONE = (READING - {"xargs", "find"}) | CHANGING | frozenset({
    "git", "gh", "glab", "hg", "rg", "ag", "ack", "which", "type", "whereis", "man", "apt", "apt-get", "brew", "dnf",
    "apk", "pip", "pip3", "docker", "podman", "kubectl", "curl", "wget", "jq", "awk", "gawk",
    "python", "python3", "node", "make", "cargo", "go", "pytest", "tsc", "eslint", "ruff", "mypy", "psql", "less",
    "ps", "pgrep", "kill", "pkill", "systemctl", "journalctl", "printenv"
})  # fmt: skip
# Others may give to another program what stands behind `--`.
ENDS_OPTIONS = (READING - {"xargs", "find"}) | CHANGING | {"rg", "ag"}
SEPARATED = frozenset({"cut", "sort", "join", "paste", "awk", "gawk", "mawk"})
SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash", "fish"})
WITH_SHELL = frozenset({"flock", "script"})  # which give one what stands behind -c
COPIES = frozenset({"cp", "mv", "ln", "install", "scp", "rsync"})
JOINED = frozenset({"watch", "parallel"})  # their words are a program together
EACH_RUN = frozenset({"hyperfine"})  # and here each is one
TEXTS = frozenset({"echo", "printf", "tr", "grep", "egrep", "fgrep", "rg", "gh"})  # what they are given is text
DATA = frozenset({"cat", "tee"})  # to which a here-document is text
TAKES_VARIABLES = frozenset({"test", "[", "read", "unset", "getopts", "mapfile", "readarray", "let", "wait"})
SUBSCRIPT = re.compile(r"\[.*(?:\$[({]|`)", re.DOTALL)  # with what bash runs for its value

# Options of git's commands for reading that run, write or read by name something else.
_GIT_RUNS = re.compile(r"--(?:ext|te(?!xt$)|out|op|fil|batch|std)|-O")
# Of curl: addresses of other kinds, or made of parts, and names that it makes of those.
_CURL_HIDES = re.compile(
    r"(?:--[\w-]+=)?+(?:.*#\d|@|(?:ftp|dict|ldap|imap|smtp|pop3)\.|[^/]*[\[{]|(?!https?://|file://)[^/?]*:/)", re.I
)
# With these it sends more than an address and plain headers, which it may to this machine alone.
_CURL_SENDS = frozenset({
    "d", "F", "T", "b", "--data", "--data-raw", "--data-binary", "--data-urlencode", "--json", "--form", "--cookie",
    "--upload-file",
})  # fmt: skip
_CURL_METHOD = re.compile(r"(?:^| )-(?:[\w#:]*?X|-request)[ =]?(\S*)")
_CURL_HEADERS = re.compile(r"(?:-[\w#:]*H|--header=)?@")  # of a file
THIS_MACHINE = r"(?:(?i:localhost)|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1\])"
_HERE = re.compile(rf"(?:(?i:https?)://)?{THIS_MACHINE}(?::\d*)?(?:[/?#].*)?", re.DOTALL)
# Commands of git of which the first word may be another machine that ssh reaches, and the others name what is sent.
_FROM_HOSTS = frozenset({"fetch", "pull", "push"})
# Of awk: what runs, reads or writes another file than its words name.
_AWK_REACHES = re.compile(r"system|getline|ARG[VC]|SYMTAB|(?<!\|)\|(?!\|)|@|\\\n")
_AWK_OPTION = re.compile(r"-F.+|-v\w+=.*", re.DOTALL)
_JQ_READS = re.compile(r"import|include|modulemeta")
_TELLS = re.compile(r"(?:import [\w.]+(?: as \w+)?; ?)*print\([\w.]+\)")  # a Python program that reads no file
_VARIANT = re.compile(r"^[\w-]+-(?=(?:gcc|g\+\+|ld|ar|nm)(?:-|$))|-?\d[\d.]*$")  # of a program: for what, which version
_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
# Modules, beside the commands that are known, that run none that their words name.
_OF_PYTHON = frozenset({
    "unittest", "venv", "json.tool", "doctest", "compileall", "py_compile", "ensurepip", "site", "build", "virtualenv",
    "pycodestyle", "pydocstyle", "autopep8", "yapf", "sphinx", "django",
})  # fmt: skip
_MODULE = re.compile(r"-[A-Za-z]*m|--m(?:o\w*)?")  # of coverage
_ACTIVATES = re.compile(r"(?:.*/)?bin/activate")
_RUN_SCRIPTS = frozenset({"yarn", "pnpm", "bun"})
_FETCH = frozenset({"npx", "bunx", "pnpx", "uvx", "npm", "pnpm", "yarn"})  # a package that they may run, too
# What a shell reads between double quotes, where some versions of them put their words, or ends these.
# pdm and pipenv fill in variables by themselves.
_IN_QUOTES = re.compile(r"`|\$(?![\s|)]|\Z)|\\(?=[\"\\]|\Z)")
_PYTHONS = sys.stdlib_module_names | {"test"}  # modules that are always there
# What those are told to import, of which they call a part, unless it is a file.
_CALLING = frozenset({
    "unittest", "uvicorn", "gunicorn", "flask", "celery", "manage.py", "manage", "django-admin", "django", "fastapi",
    "jupyter-nbconvert",
})  # fmt: skip
_TAKES_NAMES = frozenset({"--host", "-Q", "--queues"})  # options of theirs whose values are none
_IMPORTED = re.compile(
    r"(?:-\w|--[\w-]+=)?(?:(?!.*://).*/(?=[^/]*:))?(?!uvicorn\.workers\.\w+$)"
    r"(?![\w.]+\.(?:py|ini|ya?ml|json|toml|conf|pem|crt|key|env|log|txt|pid|sock|ipynb|html|md|png|svg|pdf|cfg)$|(?:.*=)?unix:.*\.sock$)"
    r"([^\W\d]\w*)((?:\.\w+)*)(:(?!//)\D.*)?",
    re.DOTALL,
)
# Packages that are fetched, of which the words are known, and scripts that projects have.
_PACKAGE = re.compile(r"@(?:biomejs/biome|angular/cli|tailwindcss/cli)(?:@[\w.^~-]+)?")
_SCRIPT = re.compile(
    r"(?:dev|start|serve|preview|build|clean|test|unit|e2e|lint|fix|format|fmt|check|type-?check|types"
    r"|ci|release|generate|codegen|migrate|seed|docs|storybook)(?:[:_-][\w:.-]+)?"
)
_SCRIPT_END = re.compile(r"(?:-cli)?\.[cm]?js$")  # npm-cli.js
_PACKAGES = frozenset({"node_modules", "site-packages", "dist-packages"})
_TOOLS = re.compile(r"[\w.-]*env|vendor|\.(?:tox|nox)")  # in which a `bin` has those of packages
# Tools that release or deploy, which `yarn run` and others find where the project has no script of that name.
_RELEASES = re.compile(
    r"auto|beachball|bumpp|cdk|changeset|clasp|eas|firebase|gh-pages|netlify|now|np|pulumi|release-(?:it|please)"
    r"|semantic-release|serverless|shipjs|sls|sst|surge|vercel"
)
# Of go: programs of other modules.
_GO_REACHES = re.compile(
    r"(?:-C[ =]\S+ )?(?:run (?:.*@|(?:.* )?[\w-]+(?:\.[\w-]+)+/)"
    r"|tool (?!(?:asm|cgo|compile|cov(?:data|er)|doc|fix|link|nm|objdump|pack|pprof|test2json|trace|vet)(?: |$)))"
)
_DEEPEST = 8  # commands that run one another
_MOST_PARTS = 3  # of a module's name, of which the first is to be found
_TAR_LETTERS = re.compile(r"[cxtvzjJakpmO]*f?")
# Variables by which a program is named, or found, or told what to run or to read first.
_STEERS = re.compile(
    r"(?:GIT|LD|DYLD|BASH|NPM_CONFIG|SSH|GH|DOCKER|PERL5?|RUBY|TAR|GREP|RIPGREP|CURL|LESS|MAN|XDG_CONFIG)_?\w*|\w*(?:PAGER|"
    r"EDITOR|VISUAL|BROWSER|COMMAND|WRAPPER|SHELL|ASKPASS|_CMD|RSH|STARTUP|OPEN|CLOSE|OPTIONS|OPTS|_OPT|FLAGS|RUNNER|"
    r"LINKER|RUSTC|RUSTDOC|CACHEPROG|BREAKPOINT|(?<!SKIP_)HOOKS|TOX_OVERRIDE|_PROXY)|(?!(?:EXTRA|BUILD|RUN|(?:PY)?TEST)_ARGS$)\w+_ARGS\w*"
    r"|(?:UNZIP|GZIP|XZ|RSYNC)_?\w*|PATH|CDPATH|ENV|IFS|PS\d|WGETRC"
    r"|MAKEFILES|ZDOTDIR|PYTHONHOME|PYTHONINSPECT|PYTHONSAFEPATH|COMPOSE_(?:FILE|PROJECT_NAME)",
    re.IGNORECASE,
)
_LOADS = re.compile(r"(?:FLASK|UVICORN|CELERY|DJANGO)_\w+|\w*APP", re.IGNORECASE)  # what such a tool imports
_TOLD = frozenset({"V", "v", "--test"})  # with which an interpreter reads no program from its input


def evaluates(name: str, texts: list[str]) -> bool:
    """Whether a command takes a word for a variable, and runs what stands in its subscript."""
    if name in ("builtin", "command") and texts:
        name, texts = texts[0], texts[1:]
    takes = name in TAKES_VARIABLES or (name == "printf" and any(each.startswith("-v") for each in texts[:1]))
    return takes and any(SUBSCRIPT.search(each) for each in texts)


Needed = list[tuple[str, ...]]


def understood(name: str, texts: list[str], needed: Needed | None = None, depth: int = 0) -> frozenset[int] | None:
    """The places of those words behind a command's name that are texts, in which no path is looked for; None where not
    all of its words are known to be harmless as themselves. `needed` gets the files of which one each has to be there
    for that; without it, such a command isn't known."""
    base = _base(name)
    if evaluates(base, texts):
        return None
    if depth and base in ("source", ".", "trap"):
        return None  # which is read where it stands by itself
    if base in ("source", "."):
        return frozenset() if len(texts) == 1 and _ACTIVATES.fullmatch(texts[0]) else None
    if base == "command" and texts[:1] in (["-v"], ["-V"]):
        return frozenset()
    if not base or base == "sed" or base in _AWKS:
        plain = is_plain(texts) if base == "sed" else base in _AWKS and _plain_awk(texts)
        return frozenset() if plain else None
    if texts in (["--help"], ["--version"]) and (base in known() or base in groups()):
        return frozenset()
    if (base == "trap" and texts[:1] and texts[0].startswith("-")) or depth > _DEEPEST or _hides(base, texts):
        return None
    run = [base, *(each.rpartition("/")[2] for each in texts if base == "coverage")]
    if not _CALLING.isdisjoint(run) and _calls(texts, needed):
        return None
    if base == "tar" and texts and not texts[0].startswith("-"):
        if not _TAR_LETTERS.fullmatch(texts[0]):
            return None
        texts = [f"-{texts[0]}", *texts[1:]]
    if base == "cargo" and re.fullmatch(r"\+[\w.-]+", "".join(texts[:1])):
        texts = ["-q", *texts[1:]]  # a toolchain
    if base == "dotnet" and re.fullmatch(r"[^-].*\.dll", "".join(texts[:1])):
        return read_words(_PROJECT, texts, 0).texts()
    found = _group(base, texts)
    if found is None:
        outside = re.match(r"[/~]|(?:.*/)?\.\./|.*://", name)
        is_own = "/" in name and base not in groups() and outside is None
        inner = _file([name, *texts], 0, needed, depth) if is_own else None
        return None if inner is None else frozenset(each - 1 for each in inner)
    takes, at = found
    if base == "git" and any(_GIT_RUNS.match(each) for each in texts if "~" in takes.marks):
        return None
    runs = takes.marks & {"!", "+", "+1"}
    read = read_words(takes, texts, at, ends=bool(runs), last="cm" if base.startswith("python") else "")
    if not runs or not read.known:
        if base == "diff" and "--no-dereference" not in read.seen:
            if needed is None or "-" in texts:
                return None
            # Of what may be folders, it reads what links in them lead to.
            needed += [(texts[each],) for each in read.plain]
        if base == "esbuild" and not read.plain:
            return None  # it reads its input, which may import any file
        first = texts[read.plain[0]] if read.plain else ""
        if base == "git" and texts[at - 1] in _FROM_HOSTS and ":" in first and not re.match(r"https?://", first):
            return None
        if base == "curl" and any(_CURL_HIDES.match(each) for at, each in enumerate(texts) if at not in read.found):
            return None
        if base == "curl" and _sends_elsewhere(texts, read):
            return None
        if base == "gh" and {"f", "--raw-field"} & read.seen and not {"X", "--method"} & read.seen:
            return None  # which makes a POST of it, where no method is said
        if base == "coverage" and (at := _behind_module(texts)):
            return _module(texts[at], texts[at + 1 :], at + 1, needed)
        files = _maybe_files(base, texts, read.plain)
        return read.texts() if all(_file(texts, each, needed, depth) is not None for each in files) else None
    if "!" in runs:
        return _run(base, texts, read, needed, depth)
    at = read.at + ("+1" in runs)
    said = "".join(texts[at : at + 1])
    if base == "yarn" and said == "run":  # behind a workspace
        at += 1
        said = "".join(texts[at : at + 1])
    if base == "yarn" and any(each.fullmatch(said) for each in takes.refused):
        return None
    if base in ("bun", "yarn") and {"dlx", "exec"}.isdisjoint(texts[:at]) and _is_script(base, said):
        if not _SCRIPT.fullmatch(said) and _file(texts, at, needed, depth) is None:
            return None
        return read_words(Takes(marks={"~"}, refused=takes.refused), texts, at).texts()
    if base == "npx" and _PACKAGE.fullmatch(said):
        return read_words(_OF_PACKAGES, texts, at).texts()
    if base == "uv" and said.endswith(".py"):
        inner = understood("python", texts[at:], needed, depth + 1)
        return None if inner is None else frozenset(at + each for each in inner)
    if base in _FETCH and "/" in "".join(texts[at : at + 1]).removeprefix("./"):
        return None  # some of them take it for an address
    return _wrapped(base, texts, at, depth, needed)


def _is_script(base: str, said: str) -> bool:
    """Whether a word behind `run` is a script of the project's or a file, and no command that may lie anywhere."""
    name = said.rpartition("/")[2]
    if _RELEASES.fullmatch(name):
        return False
    if _SCRIPT.fullmatch(said):
        return True
    commands = known().keys() | groups()
    if not said or said.startswith("-") or "://" in said or name in commands or _VARIANT.sub("", name) in commands:
        return False
    return base == "yarn" or "/" in said or re.search(r"\.[cm]?[jt]sx?$", said) is not None


def _hides(base: str, texts: list[str]) -> bool:
    """Whether a word of such a command holds more than its options tell."""
    said = " ".join(texts)
    if (base == "tar" and ":" in said) or (base == "jq" and _JQ_READS.search(said)):
        return True
    fills_in = base in _FETCH | _RUN_SCRIPTS | {"pdm", "pipenv"} and any(map(_IN_QUOTES.search, texts))
    if fills_in or (base == "hatch" and "{" in said):
        return True
    if base in ("mvn", "mvnw") and "help:evaluate" in said and "expression=" not in said:
        return True  # it reads its input, which may ask for the settings' passwords
    settings = texts[texts.index("env") :] if base == "go" and "env" in texts else []  # for all folders
    if any(re.match(r"--?[wu]\b", each) for each in settings) or (base == "go" and _GO_REACHES.match(said)):
        return True
    if base == "cmake" and not _plain_make(texts):
        return True
    given = [re.split(r"\W*=", each)[0].lstrip(".") for each in texts if "=" in each and base in ("make", "gmake")]
    return any(map(_STEERS.fullmatch, given))


def _plain_make(texts: list[str]) -> bool:
    """Whether what a cmake passes on is known to be harmless to a make."""
    at = texts.index("--") if "--" in texts else len(texts)
    return understood("make", texts[at + 1 :]) is not None


def assigned(name: str, value: str | None) -> bool:
    """Whether a variable with this value is known to make no program run, or be another. None: it is unknown."""
    if value and _LOADS.fullmatch(name) and re.match(r"(?!.*://).*\w:[^\W\d]", value):
        return False  # a part of a module, which is called
    return not (_STEERS.fullmatch(name) or (value and (CUT.search(value) or IS_PROGRAM.search(value))))


def _calls(texts: list[str], needed: Needed | None) -> bool:
    """Whether a part of a module that isn't the folder's may be called. `needed` gets the files by which each is."""
    words = [each for before, each in pairwise(("", *texts)) if before not in _TAKES_NAMES]
    for name, inner, entry in (each.groups() for each in map(_IMPORTED.fullmatch, words) if each is not None):
        if not (inner or entry):
            continue
        if needed is None or (name in _PYTHONS and name != "test"):
            return True
        if name == "test":  # which is Python's own, where it is no package
            needed.append(("test/__init__.py",))
            continue
        path = f"{name}{inner}".split(".")[:_MOST_PARTS]
        names = ["/".join(path[: at + 1]) for at in range(len(path))]
        ends = (".py", "/__init__.py")
        needed.append(tuple(f"{root}{each}{end}" for each in names for root in ("", "src/") for end in ends))
    return False


def _plain_awk(texts: list[str]) -> bool:
    left = list(texts)
    while left and left[0].startswith("-"):
        option = left.pop(0)
        if option in ("-F", "-v") and left:
            left.pop(0)
        elif not _AWK_OPTION.fullmatch(option):
            return False
    if not left or _AWK_REACHES.search(left[0]):
        return False
    return ">" not in left[0].partition("print")[2]  # it compares, where nothing is printed


def _group(base: str, texts: list[str]) -> tuple[Takes, int] | None:
    """What a command takes, with the words that it is known by, and where the others begin."""
    commands, key, at = known(), base, 0
    while key in groups():
        takes = commands.get(key, Takes())
        read = read_words(takes, texts, at, ends=True)
        if not read.known:
            return None
        if read.at >= len(texts):
            return (takes, at) if key in commands else None
        said, at = texts[read.at], read.at + 1
        is_own = f"{key}/{said}" in commands or (key, said) == ("pnpm", "docs")  # which opens a browser
        if key in _RUN_SCRIPTS and not is_own and _runs(said):
            said, at = "exec" if key == "pnpm" and not _SCRIPT.fullmatch(said) else "run", read.at
        key = f"{key}/{said}"
    return (commands[key], at) if key in commands else None


def _runs(said: str) -> bool:
    """Whether a package manager, of which this is no command, runs a script or a tool of the project's by it."""
    return _is_script("bun", said) or _takes_any(said)


def _takes_any(name: str) -> bool:
    marks = known().get(name, _NOTHING).marks
    return "~" in marks and "*" not in marks


def _base(name: str) -> str:
    """A command's name in the table: without its folder, and without a version that the table doesn't have."""
    base = name.rpartition("/")[2]
    return base if base in known() else _VARIANT.sub("", base)


def _is_tool(name: str) -> bool:
    """Whether what bears this name is a tool with commands or options of its own, by whatever it is run."""
    name = _base(name)
    return name in groups() or name in _FETCH or _takes_any(name) or "!" in known().get(name, _NOTHING).marks


_PROJECT, _NOTHING = Takes(marks={"~"}), Takes()
_OF_PACKAGES = Takes(marks={"~"}, refused=[re.compile(r"deploy|publish|analytics|log(?:in|out)")])


def _sends_elsewhere(texts: list[str], read: Words) -> bool:
    """Whether a curl may change something, or send what a file holds, on another machine."""
    others = [each for each in _CURL_METHOD.findall(" ".join(texts)) if each not in ("GET", "HEAD", "OPTIONS")]
    sends = bool(read.seen & _CURL_SENDS) or any(_CURL_HEADERS.match(texts[at]) for at in read.found)
    if not sends and not (read.seen & {"X", "--request"} and others):
        return False
    to = [*(texts[at] for at in read.plain), *(each for option, each in pairwise(texts) if option == "--url")]
    return "x" in read.seen or any(each.startswith("--url=") for each in texts) or not all(map(_HERE.fullmatch, to))


def _run(base: str, texts: list[str], read: Words, needed: Needed | None, depth: int) -> frozenset[int] | None:
    """The texts behind an interpreter's options."""
    rest = texts[read.at :]
    if base in SHELLS and any(re.match(r"-\w*o.", each) for each in texts[: read.at]):
        return None  # the letters behind `o` are options, too
    if base in SHELLS and "c" in read.seen:
        return frozenset() if rest else None  # which are read as programs
    if base.startswith("python") and "c" in read.seen:
        return frozenset(read.found) if all(_TELLS.fullmatch(_behind(texts[at], "c")) for at in read.found) else None
    if base.startswith("python") and "m" in read.seen:
        is_first = needed is not None and "I" not in read.seen  # the folder, where a module is looked for
        return _module(_behind(texts[read.at - 1], "m"), rest, read.at, needed if is_first else None)
    if not rest and (base in SHELLS or not read.seen & _TOLD):
        return None
    if rest and (rest[0] == "-" or "://" in rest[0]):
        return None  # its input is its program, or what is fetched
    if base == "tsx" and rest[:1] == ["watch"]:
        read = read_words(_PROJECT, texts, read.at)
        files = _maybe_files(base, texts, read.plain)
        return read.texts() if all(_file(texts, each, needed, depth) is not None for each in files) else None
    return _file(texts, read.at, needed, depth) if rest else read_words(_PROJECT, texts, read.at).texts()


def _file(texts: list[str], at: int, needed: Needed | None, depth: int) -> frozenset[int] | None:
    """The texts behind a file that is run, which stands at this place. One that bears a tool's name is that tool, which
    lies in the folder or is found as a command is, and so is one of a tool's package; one of another package isn't
    known."""
    # In lower case, in which some file systems find it, too.
    name, package = _SCRIPT_END.sub("", texts[at].rpartition("/")[2].lower()), _package(texts[at].lower())
    if package == "..":
        return None
    if package and not _is_tool(name):
        name = package
        if _PACKAGE.fullmatch(name):
            return read_words(_OF_PACKAGES, texts, at).texts()
        if not _is_tool(name):
            return None
    if _is_tool(name):
        inner = understood(name, texts[at + 1 :], needed, depth + 1)
        return None if inner is None else frozenset(at + 1 + each for each in inner)
    if name in _CALLING and _calls(texts[at + 1 :], needed):
        return None
    return read_words(_PROJECT, texts, at).texts()


def _package(path: str) -> str:
    """The package that a file is of, or the tool of one; "" for a project's own file, ".." where that isn't known."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    inside = [at for at, part in enumerate(parts[:-1]) if part in _PACKAGES or _TOOLS.fullmatch(part)]
    if inside and ".." in parts[inside[0] :]:
        return ".."
    for at in reversed(inside):
        if parts[at] not in _PACKAGES and "bin" in parts[at + 1 : at + 3][: len(parts) - at - 2]:
            return parts[-1]
        if parts[at] in _PACKAGES:
            return "/".join(parts[at + 1 : at + 2 + parts[at + 1].startswith("@")])
    return ""


def _maybe_files(base: str, texts: list[str], plain: list[int]) -> Iterator[int]:
    """Where the file may stand that a coverage, deno, bun or tsx runs: a word behind an option may be that option's
    value."""
    if [base, *(texts[at] for at in plain[:1])] in (["coverage", "run"], ["tsx", "watch"]):
        plain = plain[1:]
    elif base not in ("deno", "bun") or not {"run", "test"} & {*texts[: plain[0] if plain else 0]}:
        return
    for at in plain:
        yield at
        if not texts[at - 1].startswith("-"):
            return


def _module(name: str, rest: list[str], at: int, needed: Needed | None) -> frozenset[int] | None:
    """The texts behind a module that Python runs, which begin at this place."""
    command, top = name.replace("_", "-"), name.partition(".")[0]
    if top in _PYTHONS and name not in _OF_PYTHON:
        return None
    if name.rpartition(".")[2] in _CALLING and _calls(rest, needed):
        return None
    if name == "compileall" and any(re.match(r"-[a-z]*i", each) for each in rest):
        return None  # a list of names
    if _is_tool(command):
        inner = understood(command, rest, needed, 1)
        return None if inner is None else frozenset(at + each for each in inner)
    if name not in _OF_PYTHON:
        if needed is None or not re.fullmatch(r"\w+(?:\.\w+)*", name):
            return None
        file = name.replace(".", "/")
        needed.append(tuple(f"{root}{file}{end}" for root in ("", "src/") for end in (".py", "/__main__.py")))
    inner = read_words(_PROJECT, rest, 0).texts()
    return None if inner is None else frozenset(at + each for each in inner)


def _behind_module(texts: list[str]) -> int:
    """Where a coverage is told a module; 0 where it is told none."""
    places = [at for at, each in enumerate(texts) if _MODULE.fullmatch(each)] if texts[:1] == ["run"] else []
    return min(places[0] + 1, len(texts) - 1) if places else 0


def _behind(said: str, letter: str) -> str:
    """The value of an option, which stands in its word or is the next one."""
    return said.partition(letter)[2] if said.startswith("-") else said


def _wrapped(base: str, texts: list[str], at: int, depth: int, needed: Needed | None) -> frozenset[int] | None:
    """The texts of the command that another runs."""
    while base == "env" and at < len(texts) and (given := re.match(r"(\w+)=", texts[at])):
        if not assigned(given[1], texts[at][given.end() :]):
            return None
        at += 1
    if at >= len(texts):
        return frozenset()
    inner = understood(texts[at], texts[at + 1 :], needed, depth + 1)
    return None if inner is None else frozenset(at + 1 + each for each in inner)
