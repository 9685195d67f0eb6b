"""Commands by their names, and the words that each is known to take. Those of the sandbox's image come first.

Rules: `understood` knows a closed list. A command, an option or a text that isn't in it may hold a program, follow
links or read names that no word is, so no rule permits it. What a program in a file does is that file's own matter:
such a program, and a tool that runs a project's code, takes any options, but no word that a shell would cut.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from mapper.code.sed_scripts import read_sed

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
TEXTS = frozenset({"echo", "printf", "grep", "egrep", "fgrep", "rg", "gh"})  # what they are given is text
DATA = frozenset({"cat", "tee"})  # to which a here-document is text
TAKES_VARIABLES = frozenset({"test", "[", "read", "unset", "getopts", "mapfile", "readarray", "let", "wait"})
SUBSCRIPT = re.compile(r"\[.*(?:\$[({]|`)", re.DOTALL)  # with what bash runs for its value

# A line: names (`git/log`: with this first word), a colon, what they take. Letters are short options, as getopt has
# them: `a` alone, `a:` with a value, `a?` perhaps with one in the same word, `a#` with any text. `--long`, `--long=`
# and so on likewise; `-long` where options have one dash. `*`: the other words are any texts, for they are names or
# data. `~`: any options, plain but for those named. `+`: a command follows, `+1`: behind one word. `!`: a program.
_TABLE = """
basename: as:z *
dirname: z *
cat: AbeEnstTuv *
[ test expr echo true false : exit return break continue shift sleep pwd date trap: ~*
cmp: bln:s *
comm: 123 *
cut: b:c:d#f:sz --complement --output-delimiter# *
diff: uqwbBiayNEZtU:C:W:I# --brief --unified? --color --side-by-side --no-dereference --exclude# *
du: achkmsd:x --max-depth= --human-readable --summarize --exclude# *
df: hTiak *
egrep fgrep grep: nrHhloqsvwxcEFGPiazZye#f:m:A:B:C: --color --colour --include# --exclude# --exclude-dir# --regexp# *
egrep fgrep grep: --line-number --ignore-case --invert-match --count --files-with-matches --recursive --only-matching *
egrep fgrep grep: --extended-regexp --fixed-strings --perl-regexp --max-count= --after-context= --before-context= *
egrep fgrep grep: --context= --word-regexp --quiet --with-filename --no-filename --text --null --file= *
file: bihks *
fold: bsw: *
head: n:c:qvz --lines= --bytes= --quiet *
join: a:e:i1:2:j:o:t#v: *
ls: aAbBcCdDfFgGhiklmnNopqQrRsStuUvxX1w:T: --color --all --almost-all --human-readable --recursive --sort= --time= *
ls: --time-style# --full-time --group-directories-first --reverse --size --directory --ignore# *
md5sum sha1sum sha256sum sha512sum cksum: btz *
nl: b:n:s#w:v: *
od: abcdiloxsvA:t:N:j: *
xxd: abCeipruc:g:l:s: *
hexdump: bcCdoxvn:s: *
paste: d#sz *
printf rev tsort dd unlink: *
readlink: femnqsz *
realpath: emqsz --relative-to= *
tac: brs: *
seq: ws:f# *
set: euxo: *
sort: bdfghiMnRrVcCmsuzk:t#o:S:T: --parallel= --reverse --unique --numeric-sort --key= --output= --field-separator# *
stat: c#ftx --format# --printf# *
tail: n:c:fFqvz --lines= --bytes= --follow --pid= *
tr: cCdst *
tree: adfL:I#P#hipsCJ --dirsfirst --gitignore --noreport *
uniq: cdDuif:s:w:z --count *
wc: clmwL --lines --words --bytes *
chmod: Rcfvrwx *
cp: rRafpdnuvPTt:iblS: --target-directory= --recursive --preserve --no-clobber --parents --archive --force --verbose *
gzip gunzip zcat: cdfklqtv123456789 *
install: dDm:o:g:pvt:T --target-directory= *
ln: sfnvrTt: --symbolic --force --target-directory= *
mkdir: pvm: --parents *
mktemp: dqup:t --tmpdir --suffix= *
mv: fnuvit:Tb --target-directory= *
rm: rRfvdiI --recursive --force *
rmdir: pv *
shred: fun:vz *
split: b:l:n:a:deC: --bytes= --lines= --numeric-suffixes *
tar: cxtvzjJakpmOf:C: --exclude# --strip-components= --directory= --file= --gzip --create --extract --list --verbose *
tee: ai --append *
touch: acmr:d#t: *
truncate: cr:s: *
find: -name# -iname# -path# -ipath# -wholename# -regex# -iregex# -regextype= -type= -maxdepth= -mindepth= -not -o *
find: -or -a -and -print -print0 -delete -size= -mtime= -mmin= -ctime= -atime= -newer= -empty -prune -perm= -user= -P *
find: -executable -readable -writable -quit -ls -printf# -true -false -depth -xdev -links= *
fd fdfind: e:t:d:HIE#gaF1 --extension= --type= --max-depth= --hidden --no-ignore --exclude# --glob --base-directory= *
rg: nliIvwxcosSFPNHUu.e#g#t:T:A:B:C:m:f:M:j:r# --type= --glob# --files --count --hidden --no-ignore --no-heading *
rg: --line-number --files-with-matches --ignore-case --fixed-strings --word-regexp --multiline --max-count= --context= *
rg: --regexp# --file= --color= --sort= --max-depth= --json --stats --type-not= --iglob# --vimgrep --only-matching *
jq: rsnceCMSj --arg --argjson --raw-output --slurp --compact-output --exit-status --null-input --sort-keys --tab *
ps: aAeflxuwwo:p:C:U:u:H --sort= *
which type whereis uname whoami id hostname nproc uptime free arch groups tty locale pgrep kill pkill killall lsof ss: ~
netstat umask ulimit wait bg fg: ~
jobs: lprs
time command: p+
nice: n:+
timeout: s:k:v --signal= --kill-after= --preserve-status --foreground +1
stdbuf: i:o:e:+
uv/run: q --quiet --all-extras --frozen --no-sync --with= +
poetry/run pipenv/run bundle/exec pdm/run hatch/run rye/run: q --quiet +
npx: y --yes --no-install --no --package= +
env nohup builtin pnpx bunx uvx npm/exec pnpm/exec pnpm/dlx yarn/dlx yarn/exec: +
bash sh zsh dash ksh ash: ceuxlvo:!
python python3: uBOqsEIW:X:m:c#V --version !
node: --version --test --check --watch v --experimental-strip-types --max-old-space-size? --no-warnings --env-file= !
tsx ts-node: vT --version --test --watch --transpile-only --esm !
ruby perl: wvcI: --version !
php: v --version !
deno/run deno/test deno/lint deno/fmt deno/check deno/task bun/run bun/test bun/install bun/add: ~
make gmake: kBnsiwj?C:l? --jobs --directory= --silent --keep-going --dry-run --always-make --no-print-directory
ninja: C:j:k:vn
cmake: S:B:D:G#j?L --build= --target= --config= --parallel? --preset= --install= --prefix= --version
ctest: j?R#E#VL#N --output-on-failure --test-dir= --verbose
curl: sSLfkivIgGNOJX:H#d#o:F#u#m:w#T:A#b#c:e#x: --data# --header# --request= --json# --data-raw# --data-binary# *
curl: --output= --silent --fail --location --max-time= --connect-timeout= --retry= --user# --insecure --head --include *
curl: --compressed --get --data-urlencode# --form# --write-out# --url= --cookie# --remote-name --show-error --verbose *
curl: --fail-with-body --no-buffer --user-agent# --output-dir= --upload-file= *
wget: qncNO:P: --quiet --output-document= --directory-prefix= --no-verbose *
unzip: lqonjvtd: *
7z/x 7z/l 7z/t 7za/x 7za/l 7zz/x 7zz/l: ~
patch: p:NRsEi:d: --dry-run --forward --reverse
rsync: avzrnPhtugopul --delete --exclude= --include= --dry-run --progress --stats --archive
pip pip3: V --version
pip/install pip/list pip/show pip/freeze pip/uninstall pip/check pip/download pip/index pip/wheel pip3/install: ~*
pip3/list pip3/show pip3/freeze pip3/uninstall uv/pip/install uv/pip/list uv/pip/freeze: ~*
npm: vC:w:s --version --prefix= --silent --workspace=
pnpm: vrC:F: --version --filter= --recursive --prefix= --dir=
yarn uv poetry docker: v --version
docker/compose docker-compose: f:p: --file= --project-name= --profile=
npm/test npm/t npm/run npm/run-script npm/start npm/ci npm/install npm/i npm/add npm/ls npm/list npm/outdated: ~
npm/view npm/info npm/audit npm/version npm/uninstall npm/remove npm/update npm/prune npm/pack npm/why npm/root: ~
npm/build npm/link npm/dedupe npm/bin npm/init npm/search pnpm/test pnpm/run pnpm/start pnpm/install pnpm/i pnpm/add: ~
pnpm/remove pnpm/ls pnpm/list pnpm/build pnpm/lint pnpm/update pnpm/why pnpm/outdated pnpm/dev pnpm/typecheck: ~
pnpm/format yarn/test yarn/run yarn/start yarn/install yarn/add yarn/remove yarn/build yarn/lint yarn/dev yarn/why: ~
yarn/typecheck yarn/format yarn/upgrade yarn/list yarn/info yarn/workspace yarn/init poetry/install poetry/add: ~
poetry/remove poetry/update poetry/show poetry/lock poetry/build poetry/check poetry/env uv/sync uv/add uv/remove: ~
uv/lock uv/venv uv/tree uv/build uv/python bundle/install: ~
pytest py.test: -k# -m#
jest vitest mocha playwright: -t# -g#
jest vitest mocha playwright npm/test npm/t pnpm/test yarn/test bun/test: --grep# --testNamePattern#
go: -run# -bench#
alembic: -m# --message#
pytest py.test tox ruff black mypy pyright isort flake8 pylint bandit coverage pre-commit pyflakes ty alembic flask: ~
uvicorn gunicorn celery django-admin sphinx-build mkdocs twine cython jupyter-nbconvert tsc eslint prettier jest: ~
vitest mocha ava playwright cypress vite webpack rollup esbuild next nuxt turbo nx prisma biome stylelint storybook: ~
knip lerna swc babel astro svelte-check vue-tsc wrangler cargo rustc rustfmt go gofmt golangci-lint mvn mvnw gradle: ~
gradlew javac java dotnet zig swift/build swift/test swift/run swift/package gcc g++ cc c++ clang clang++: ~
clang-format clang-tidy ld ar nm nvcc flex bison protoc buf rspec rubocop rails phpunit composer mix dart flutter: ~
stack cabal ghc terraform tofu shellcheck shfmt dot hadolint actionlint yamllint markdownlint cloc tokei: ~
docker/ps docker/images docker/logs docker/inspect docker/version docker/info docker/stats docker/top docker/port: ~*
docker/build docker/stop docker/start docker/restart docker/rm docker/rmi docker/pull docker/compose/up: ~
docker/compose/down docker/compose/ps docker/compose/logs docker/compose/build docker/compose/pull: ~
docker/compose/restart docker/compose/stop docker/compose/start docker/compose/config docker-compose/up: ~
docker-compose/down docker-compose/ps docker-compose/logs docker-compose/build docker-compose/restart: ~
kubectl/get kubectl/describe kubectl/top kubectl/logs: n:l: --namespace=
kubectl/get: f:o:A --all-namespaces
kubectl/describe: f:A --all-namespaces
kubectl/logs: f --tail=
gh/pr/view gh/pr/list gh/pr/create gh/pr/diff gh/pr/checks gh/pr/status gh/pr/comment gh/pr/edit gh/pr/merge: ~*
gh/pr/review gh/pr/ready gh/pr/checkout gh/issue/view gh/issue/list gh/issue/create gh/issue/comment gh/issue/edit: ~*
gh/issue/close gh/run/view gh/run/list gh/run/watch gh/run/rerun gh/repo/view gh/release/list gh/release/view: ~*
gh/workflow/list gh/workflow/view gh/search gh/api gh/auth/status gh/label/list: ~*
git: C: --no-pager --version
git/status: sbuvz --short --branch --porcelain --untracked-files --ignored *
git/diff git/log git/show git/shortlog git/rev-list git/diff-tree git/range-diff git/reflog git/whatchanged: ~*
git/branch: avrdDmMfqu: --show-current --list --all --remotes --merged --no-merged --contains --sort= --format# *
git/branch: --set-upstream-to= --delete --move --force --track --no-track --points-at= *
git/checkout: b:B:qftdm --track --detach --ours --theirs --force --quiet --orphan= *
git/switch: c:C:qftdm --track --detach --force --quiet --orphan= --create= *
git/restore: SWs:q --staged --worktree --source= --quiet *
git/add: AupNfnv --all --update --intent-to-add --force --dry-run --patch --verbose *
git/commit: aqsnvm#F:C:c: --amend --no-edit --no-verify --message# --all --signoff --allow-empty --quiet --file= *
git/commit: --author# --date# --fixup= --dry-run --reset-author *
git/stash: m#uqpk --message# --include-untracked --keep-index --stat --index --all --patch *
git/tag: am#dlfn? --list --delete --annotate --message# --sort= --points-at= --contains --force *
git/push: uqfnvd --set-upstream --force --force-with-lease --tags --all --delete --dry-run --follow-tags --no-verify
git/pull: qrpv --rebase --no-rebase --ff-only --autostash --no-edit --tags --prune --ff --no-ff
git/fetch: pqatnv --all --prune --tags --depth= --unshallow --dry-run --force
git/clone: qb: --depth= --branch= --recursive --recurse-submodules --single-branch --no-tags --quiet
git/ls-remote: htq --heads --tags --refs
git/merge: m#q --no-ff --ff-only --squash --abort --continue --no-edit --no-commit --message# *
git/rebase: qi --abort --continue --skip --onto= --autostash --autosquash --interactive *
git/cherry-pick git/revert: nxm: --abort --continue --no-edit --no-commit --skip --mainline= *
git/reset: qp --hard --soft --mixed --keep --merge --quiet *
git/rm git/mv: rfqnkv --cached --force *
git/clean: fdnxXqe# --dry-run --force *
git/rev-parse git/symbolic-ref git/merge-base git/describe git/name-rev git/cat-file git/ls-tree git/fsck git/gc: ~*
git/ls-files: cdmoszutv --others --exclude-standard --cached --modified --deleted --stage --error-unmatch *
git/blame: L:wMCselpe --porcelain --date= *
git/grep: nilwEFPGcIhHLpqve#A:B:C: --cached --count --name-only --line-number --ignore-case --heading --break *
git/remote git/remote/show git/remote/get-url git/remote/add git/remote/remove git/remote/set-url: v
git/remote/prune git/worktree/list git/worktree/remove git/worktree/prune: vf --force --porcelain
git/worktree/add: b:fd --force
git/submodule git/submodule/update git/submodule/status git/submodule/init git/submodule/sync: --init --recursive
printenv git/bisect/start git/bisect/good git/bisect/bad git/bisect/reset git/bisect/log git/bisect/skip:
git/apply: Rvp:3 --check --stat --index --cached --reverse --3way --verbose --numstat
git/init: qb: --bare --quiet --initial-branch=
"""
# Options of git's commands for reading that run, write or read by name something else.
_GIT_RUNS = re.compile(r"--(?:e|te|out|op|fil|batch)|-O")
_CUT = re.compile(r"[\s;&|<>()$`\\'\"]")  # by which a shell parts words, or makes others of them
_IS_PROGRAM = re.compile(r"(?:data|javascript):", re.IGNORECASE)  # an address that is one itself
_OPTION = re.compile(r"-(?!\d+$|\s|$)")  # and not a number, the input or a list's mark
# Of curl: addresses of other kinds, or made of parts, and names that it makes of those.
_CURL_HIDES = re.compile(
    r"(?:--[\w-]+=)?+(?:.*#\d|@|(?:ftp|dict|ldap|imap|smtp|pop3)\.|[^/]*[\[{]|(?!https?://|file://)[^/?]*:/)", re.I
)
# Commands of git of which the first word may be another machine, that ssh reaches, or this one.
_FROM_HOSTS = frozenset({"clone", "fetch", "pull", "push", "ls-remote"})
# Of awk: what runs, reads or writes another file than its words name.
_AWK_REACHES = re.compile(r"system|getline|ARG[VC]|(?<!\|)\|(?!\|)|@|\\\n")
_AWK_OPTION = re.compile(r"-F.+|-v\w+=.*", re.DOTALL)
_JQ_READS = re.compile(r"import|include")
_TELLS = re.compile(r"(?:import [\w.]+(?: as \w+)?; ?)*print\([\w.]+\)")  # a Python program that reads no file
_VARIANT = re.compile(r"^[\w-]+-(?=(?:gcc|g\+\+|ld|ar|nm)(?:-|$))|-?\d[\d.]*$")  # of a program: for what, which version
_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
_OF_PYTHON = frozenset({"unittest", "venv", "json.tool", "doctest", "compileall", "py_compile", "ensurepip", "site"})
_PROMPTS = frozenset({  # words of such tools with which they read a program, or are given a command
    "shell", "console", "repl", "dbshell", "shell_plus", "exec", "dlx", "tinker", "ghci", "iex", "fsi", "eval",
    "runner", "inspect", "debug", "--pdb", "--trace", "--interactive",
})  # fmt: skip
_RUNS = re.compile(r"-*(?:\S*:|tool)?exec\b")  # of mvn and go: so, too
_DEEPEST = 8  # commands that run one another
_TAR_LETTERS = re.compile(r"[cxtvzjJakpmO]*f?")
# Variables by which a program is named, or found, or told what to run or to read first.
_STEERS = re.compile(
    r"(?:GIT|LD|DYLD|BASH|NPM_CONFIG|SSH|GH|DOCKER|PERL5?|RUBY|TAR|GREP|RIPGREP|CURL|LESS|MAN|XDG_CONFIG)_?\w*|\w*(?:PAGER|"
    r"EDITOR|VISUAL|BROWSER|COMMAND|WRAPPER|SHELL|ASKPASS|_CMD|RSH|STARTUP|OPEN|CLOSE|OPTIONS|OPTS|_OPT|FLAGS|RUNNER)"
    r"|(?:UNZIP|GZIP|XZ|RSYNC)_?\w*|PATH|CDPATH|ENV|IFS|PS\d|WGETRC"
    r"|MAKEFILES|ZDOTDIR|PYTHONHOME|PYTHONINSPECT",
    re.IGNORECASE,
)
_TOLD = frozenset({"V", "v", "--version", "--test"})  # with which an interpreter reads no program from its input


def evaluates(name: str, texts: list[str]) -> bool:
    """Whether a command takes a word for a variable, and runs what stands in its subscript."""
    if name in ("builtin", "command") and texts:
        name, texts = texts[0], texts[1:]
    takes = name in TAKES_VARIABLES or (name == "printf" and any(each.startswith("-v") for each in texts[:1]))
    return takes and any(SUBSCRIPT.search(each) for each in texts)


@dataclass(slots=True)
class _Takes:
    letters: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    marks: set[str] = field(default_factory=set)


@cache
def _known() -> dict[str, _Takes]:
    found = dict[str, _Takes]()
    for line in _TABLE.strip().splitlines():
        names, _, said = line.replace(" :", " \0").partition(":")
        for name in names.replace("\0", ":").split():
            takes = found.setdefault(name, _Takes())
            for each in said.split():
                _add(takes, each)
    return found


@cache
def _groups() -> frozenset[str]:
    """Commands of which the first word is one, too."""
    return frozenset(each.rpartition("/")[0] for each in _known() if "/" in each)


def _add(takes: _Takes, said: str) -> None:
    if said.startswith("-"):
        takes.words[said.rstrip("=#?")] = said[-1] if said[-1] in "=#?" else ""
        return
    takes.marks.update(mark for mark in ("~", "*", "!", "+1", "+") if mark in said)
    for letter, how in re.findall(r"([\w.])([:#?]?)", re.sub(r"\+1?|[~*!]", "", said)):
        takes.letters[letter] = how


def understood(name: str, texts: list[str], depth: int = 0) -> frozenset[int] | None:
    """The places of those words behind a command's name that are texts, in which no path is looked for; None where not
    all of its words are known to be harmless as themselves."""
    base = name.rpartition("/")[2]
    base = base if base in _known() else _VARIANT.sub("", base)
    if evaluates(base, texts):
        return None
    if depth and base in ("source", ".", "trap"):
        return None  # which is read where it stands by itself
    if base in ("source", ".") or (base == "command" and texts[:1] in (["-v"], ["-V"])):
        return frozenset()
    if not base or base == "sed" or base in _AWKS:
        plain = _plain_sed(texts) if base == "sed" else base in _AWKS and _plain_awk(texts)
        return frozenset() if plain else None
    if (base == "trap" and texts[:1] and texts[0].startswith("-")) or depth > _DEEPEST:
        return None
    if (base == "tar" and any(":" in each for each in texts)) or (base == "jq" and _JQ_READS.search(" ".join(texts))):
        return None
    given = [re.split(r"\W*=", each)[0] for each in texts if "=" in each and base in ("make", "gmake")]
    if any(map(_STEERS.fullmatch, given)) or (base in ("git", "rsync") and _from_hosts(base, texts)):
        return None
    if base == "tar" and texts and not texts[0].startswith("-"):
        if not _TAR_LETTERS.fullmatch(texts[0]):
            return None
        texts = [f"-{texts[0]}", *texts[1:]]
    found = _group(base, texts)
    if found is None:
        is_own = "/" in name and base not in _groups() and not re.match(r"[/~]|(?:.*/)?\.\./", name)
        return _read(_PROJECT, texts, 0).texts() if is_own else None
    takes, at = found
    if base == "git" and any(_GIT_RUNS.match(each) for each in texts if "~" in takes.marks):
        return None
    runs = takes.marks & {"!", "+", "+1"}
    read = _read(takes, texts, at, ends=bool(runs), last="cm" if base.startswith("python") else "")
    if not runs or not read.known:
        if base == "diff" and "--no-dereference" not in read.seen:
            return None  # of what may be folders, it reads what links in them lead to
        if base == "curl" and any(_CURL_HIDES.match(each) for at, each in enumerate(texts) if at not in read.found):
            return None
        return read.texts()
    return _run(base, texts, read) if "!" in runs else _wrapped(base, texts, read.at + ("+1" in runs), depth)


def assigned(name: str, value: str | None) -> bool:
    """Whether a variable with this value is known to make no program run, or be another. None: it is unknown."""
    return not (_STEERS.fullmatch(name) or (value and (_CUT.search(value) or _IS_PROGRAM.search(value))))


def _from_hosts(base: str, texts: list[str]) -> bool:
    """Whether it may read from, or write to, another machine by ssh, or this one by its name."""
    words = [each for each in texts if not re.match(r"-|\d+$", each)]
    places = [other for one, other in pairwise(words) if one in _FROM_HOSTS]
    places = words if base == "rsync" or not {"clone", "remote"}.isdisjoint(words) else places
    return any(":" in each and not re.match(r"https?://", each) for each in places)


def _plain_sed(texts: list[str]) -> bool:
    read = read_sed(texts)
    from_file = any(re.match(r"-[nrEsuz]*f|--fi", each) for each in texts)
    return not (read.unknown or read.runs or read.opens or from_file)


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


def _group(base: str, texts: list[str]) -> tuple[_Takes, int] | None:
    """What a command takes, with the words that it is known by, and where the others begin."""
    known, key, at = _known(), base, 0
    while key in _groups():
        takes = known.get(key, _Takes())
        read = _read(takes, texts, at, ends=True)
        if not read.known:
            return None
        if read.at >= len(texts):
            return (takes, at) if key in known else None
        key, at = f"{key}/{texts[read.at]}", read.at + 1
    return (known[key], at) if key in known else None


@dataclass(slots=True)
class _Words:
    """`at`: behind the options that were read; `seen`: those."""

    at: int
    known: bool = True
    seen: set[str] = field(default_factory=set)
    found: set[int] = field(default_factory=set)

    def texts(self) -> frozenset[int] | None:
        return frozenset(self.found) if self.known else None


_PROJECT = _Takes(marks={"~"})


def _read(takes: _Takes, texts: list[str], at: int, *, ends: bool = False, last: str = "") -> _Words:
    """Which words are texts, from this one on. `ends`: options end with the first other word; `last`: letters behind
    which they end, too."""
    read, free = _Words(at), "*" in takes.marks
    prompts = "~" in takes.marks and not free

    is_sure = not takes.letters and "~" not in takes.marks  # find: its options take what is said, whatever it is

    def take(how: str, place: int) -> None:
        given = texts[place] if place < len(texts) else None
        if given is None or (place == read.at and how and not is_sure and _OPTION.match(given)):
            read.known = False  # what takes it for an option, in some version or tool, reads all else otherwise
        elif how == "#":
            read.found.add(place)
        elif not free and (given == "-" or _CUT.search(given) or _IS_PROGRAM.search(given)):
            read.known = False  # `-`: it may take its input for a program

    while read.known and read.at < len(texts):
        said, here = texts[read.at], read.at
        read.known = not (prompts and (said in _PROMPTS or _RUNS.match(said)))
        if said == "-" or not said.startswith("-"):
            if ends:
                return read
            take("", here)
            read.at += 1
            continue
        read.at += 1
        if said == "--" and "~" not in takes.marks:
            if ends:
                return read
            for each in range(read.at, len(texts)):
                take("", each)
            return read
        option, equals, _ = said.partition("=")
        if "~" in takes.marks or option in takes.words:
            read.seen.add(option)
            how = takes.words.get(option, "")
            is_here = bool(equals) or how in ("", "?")
            take(how, here if is_here else read.at)
            read.at += not is_here
        elif not (takes.letters and re.fullmatch(r"-\d+", said)):
            read.known = read.known and not said.startswith("--") and bool(takes.letters)
            for place, letter in enumerate(said[1:], 2):
                kind = takes.letters.get(letter)
                read.known = read.known and kind is not None
                read.seen.add(letter)
                if kind:
                    is_here = kind == "?" or bool(said[place:])
                    take(kind, here if is_here else read.at)
                    read.at += not is_here
                    break
            if read.seen & {*last}:
                return read
    return read


def _run(base: str, texts: list[str], read: _Words) -> frozenset[int] | None:
    """The texts behind an interpreter's options."""
    rest, module = texts[read.at :], ""
    if base in SHELLS and any(re.match(r"-\w*o.", each) for each in texts[: read.at]):
        return None  # the letters behind `o` are options, too
    if base in SHELLS and "c" in read.seen:
        return frozenset() if rest else None  # which are read as programs
    if base.startswith("python") and "c" in read.seen:
        return frozenset(read.found) if all(_TELLS.fullmatch(_behind(texts[at], "c")) for at in read.found) else None
    if base.startswith("python") and "m" in read.seen:
        module = _behind(texts[read.at - 1], "m")
        top = module.partition(".")[0]
        if module not in _OF_PYTHON and (top in sys.stdlib_module_names or top == "IPython"):
            return None
    elif not rest and (base in SHELLS or not read.seen & _TOLD):
        return None
    if rest[:1] == ["-"]:
        return None  # its input is its program
    takes = _known().get(module, _PROJECT)
    return _read(takes if "~" in takes.marks else _PROJECT, texts, read.at).texts()


def _behind(said: str, letter: str) -> str:
    """The value of an option, which stands in its word or is the next one."""
    return said.partition(letter)[2] if said.startswith("-") else said


def _wrapped(base: str, texts: list[str], at: int, depth: int) -> frozenset[int] | None:
    """The texts of the command that another runs."""
    while base == "env" and at < len(texts) and (given := re.match(r"(\w+)=", texts[at])):
        if not assigned(given[1], texts[at][given.end() :]):
            return None
        at += 1
    if at >= len(texts):
        return frozenset()
    inner = understood(texts[at], texts[at + 1 :], depth + 1)
    return None if inner is None else frozenset(at + 1 + each for each in inner)
