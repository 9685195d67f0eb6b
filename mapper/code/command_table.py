"""The closed list: which commands are known by their words, and what each takes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

# A line: names (`git/log`: with this first word), a colon, what they take. Letters are short options, as getopt has
# them: `a` alone, `a:` with a value, `a?` perhaps with one in the same word, `a#` with any text. `--long`, `--long=`
# and so on likewise; `-long` where options have one dash. `*`: the other words are any texts, for they are names or
# data. `~`: any options, plain but for those named. `+`: a command follows, `+1`: behind one word. `!`: a program.
# `^x`: no word that this pattern fits, for with it the command runs a program that is named or typed in, reads names
# from a list, follows links, or changes what isn't the folder's: another machine, an account, all of this one's user.
# Such a pattern holds for the commands of a command, too.
_TABLE = r"""
basename: as:z *
base64: dw: --decode --wrap= *
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
ps: aAeflxuwwo:p:C:U:u:H --sort= * ^[A-Za-z]*e[A-Za-z]*|.*environ.*
which type whereis uname whoami id hostname nproc uptime free groups tty locale pgrep kill lsof ss: ~
arch: ^.*
kill: ^-0*1
hostname: ^[^-].*|-\w*[bF].*|--(?:b|fi).*
date: ^-[uR]*s.*|--s.*|\d{8}(?:\d\d){0,2}(?:\.\d\d)?
netstat umask ulimit wait bg fg: ~
jobs: lprs
time command: p+
nice: n:+
timeout: s:k:v --signal= --kill-after= --preserve-status --foreground +1
stdbuf: i:o:e:+
uv/run: q --quiet --all-extras --extra= --dev --group= --package= --frozen --no-sync --with= +
poetry/run pipenv/run bundle/exec pdm/run hatch/run rye/run: q --quiet +
npx: y --yes --no-install --no +
env nohup builtin pnpx bunx uvx npm/exec pnpm/exec pnpm/dlx yarn/dlx yarn/exec: +
bash sh zsh dash ksh ash: ceunxlvo:!
python python3: uBOqsEIW:X:m:c#V !
node: --test --check --watch v --experimental-strip-types --max-old-space-size? --no-warnings --env-file= !
tsx ts-node: vT --test --watch --transpile-only --esm !
ruby perl: wvcI: !
php: lv !
deno/run deno/test deno/lint deno/fmt deno/check deno/task bun/test bun/install bun/add: ~
bun/run: bF: --bun --filter= --hot --if-present --silent --smol --watch +
yarn/run: sBT --silent --top-level --binaries-only +
make: ^\w*!=.*|-\w*C~.*
make: kBnsiwj?C:l?f: --jobs --file= --directory= --silent --keep-going --dry-run --always-make --no-print-directory
ninja: C:j:k:vn
cmake: S:B:D:G#j?L --build= --target= --config= --parallel? --preset= --install= --prefix=
cmake: ^.*=@.*
ctest: j?R#E#VL#N --output-on-failure --test-dir= --verbose
curl: sSLfkivIgGNOJX:H#d#o:F#u#m:w#T:A#b#c:e#x: --data# --header# --request= --json# --data-raw# --data-binary# *
curl: --output= --silent --fail --location --max-time= --connect-timeout= --retry= --user# --insecure --head --include *
curl: --compressed --get --data-urlencode# --form# --write-out# --url= --cookie# --remote-name --show-error --verbose *
curl: --fail-with-body --no-buffer --user-agent# --output-dir= --upload-file= --retry-delay= --retry-connrefused *
wget: qncNO:P: --quiet --output-document= --directory-prefix= --no-verbose *
unzip: lqonjvtd: *
7z/x 7z/l 7z/t: ~ ^-(?i:a?[ix])[^!]*@.*
patch: p:NRsEi:d: --dry-run --forward --reverse
rsync: avzrnPhtugopul --delete --exclude= --include= --dry-run --progress --stats --archive ^(?!-).*:.*
pip: V
pip/install pip/list pip/show pip/freeze pip/uninstall pip/check pip/download pip/index pip/wheel: ~*
uv/pip/install uv/pip/list uv/pip/freeze uv/pip/show uv/pip/tree uv/pip/compile uv/pip/sync: ~*
pip/install pip/uninstall uv/pip/install uv/pip/uninstall uv/pip/sync: ^--(?:br|sy).*
npm: vC:w:s --prefix= --silent --workspace=
pnpm: vrC:F: --filter= --recursive --prefix= --dir=
yarn uv poetry docker: v
docker/compose: f: --file= --profile= --env-file=
npm/test npm/run npm/run-script npm/start npm/ci npm/install npm/add npm/ls npm/list npm/outdated: ~
npm/view npm/info npm/audit npm/version npm/uninstall npm/remove npm/update npm/prune npm/pack npm/why npm/root: ~
npm/build npm/dedupe npm/bin npm/init npm/search pnpm/test pnpm/run pnpm/install pnpm/add pnpm/remove pnpm/ls: ~
pnpm/list pnpm/update pnpm/why pnpm/outdated yarn/test yarn/install yarn/add yarn/remove yarn/why yarn/upgrade: ~
yarn/list yarn/info yarn/init poetry/install poetry/add: ~
yarn/workspace: +1 ^publish|global|owner|tag|log(?:in|out)|link|unlink|config|version|create|plugin|set|cache|access
yarn/workspace: ^team|org|policies|up|init|workspaces?|npm
npm/install npm/add npm/ci npm/uninstall npm/remove npm/update npm/prune npm/dedupe: ^-\w*g\w*|--g.*|--loca.*
pnpm/install pnpm/add pnpm/remove pnpm/update bun/install bun/add: ^-\w*g\w*|--(?:config\.)?(?:g|loca).*
npm/init: ^[^-].*
poetry/remove poetry/update poetry/show poetry/lock poetry/build poetry/check poetry/env uv/sync uv/add uv/remove: ~
uv/lock uv/venv uv/tree uv/build uv/python uv/export uv/init uv/version bundle/install bundle/update bundle/add: ~
bundle/check bundle/list bundle/info bundle/show bundle/outdated bundle/lock pdm/install pdm/add pipenv/install: ~
bundle/add: --git= ^--git=(?!https?://).*
pdm/install pdm/add: ^-[^-G]*g.*|--gl.*
pipenv/install: ^--sy.*
gcc g++ cc c++ clang clang++ zig nvcc: ^--?(?:wrapper|ld-path|options-file|optf|ccbin|compiler-bindir)(?:=.*)?
ar: ^-?M
gcc g++ cc c++ clang clang++ zig ld: ^.*(?:mri-script|error-handling-script).*
ld: ^-c.*
pytest: ^--[tp]x.*|.*addopts=.+|--past.*
pylint: ^--init-h.*
mypy pyright: ^--python(?:-e|path).*
clang-format: ^--?files(?:=.*)?
java javac: ^-m|--module.*|(?:-J)?-XX:(?:Flags|VMOptionsFile|On).*|(?:jdk|sun|com[./]sun)[./].*
mvn: -pl= --projects= ^(?!-)(?:.*:)?(?:site-)?deploy(?:[@:\[].*)?|(?:[^=]*=)?(?:-D)?showPass.*
mvn: ^(?i:(?:[^=]*=)?(?:-D)?expression=.*(?:settings|session|request|repositor).*)
mvn: ^dependency:purge.*|[^:-][^:]*:[^:]*:.*|spring-boot:run[^@].*
mvn: ^(?!-|(?:dependency|help|surefire|failsafe|spotless|checkstyle|jacoco|versions|compiler|fmt):|spring-boot:run).+:.*
gradle gradlew: --tests# -p= --project-dir= -x= --exclude-task=
gradle gradlew: ^--publ.*|(?:--scan|(?:-D|--system-prop=)?scan)(?:=.*)?|(?:.*:)?(?i:ji?b?)
gradle gradlew: ^(?:.*:)?(?!publishToMavenLocal$)(?i:p|pub?l?i?s?h?|push?|u|upl?o?a?d?)(?:[A-Z\d_-].*)?
gradle gradlew: ^(?:.*:)?(?i:d|dep?l?o?y?|r|rel?e?a?s?e?)(?:[A-Z\d_-].*)?
gradle gradlew: ^(?:.*:)?[a-z][\w-]*?(?:Pub?l?i?s?h?|Push?|Upl?o?a?d?|Dep?l?o?y?|AndRel?e?a?s?e?)(?:[A-Z\d_-].*)?
setup.py: ~ ^upload.*|register
rustc cargo: ^.*linker=.*|--(?:test-)?runtool.*
cargo: qvV --list --quiet --verbose --locked --offline --frozen --config= ^--config=.*=.*|--git=(?!https?://).*
cargo/build cargo/b cargo/check cargo/c cargo/test cargo/t cargo/run cargo/r cargo/clippy cargo/fmt cargo/doc: ~
cargo/bench cargo/add cargo/remove cargo/rm cargo/update cargo/tree cargo/metadata cargo/clean cargo/fetch cargo/init: ~
cargo/new cargo/fix cargo/install cargo/rustc cargo/rustdoc cargo/vendor cargo/package cargo/search cargo/info: ~
cargo/generate-lockfile cargo/nextest cargo/expand cargo/audit cargo/deny cargo/outdated cargo/machete cargo/xtask: ~
cargo/llvm-cov cargo/insta cargo/tarpaulin cargo/udeps cargo/miri cargo/sqlx/prepare cargo/version cargo/help cargo/d: ~
cargo/pkgid cargo/locate-project cargo/sort: ~
cargo/tarpaulin: ^--coveralls.*
cargo/hack: ~ ^publish|yank|owner|log(?:in|out)|release
cargo/watch: cqw:x: ^[^-].*|-\w*x=?+(?!(?:check|clippy|test|build|run|fmt|doc)$).+
cargo/add cargo/install: --git=
cargo/build cargo/check cargo/test cargo/run cargo/clippy cargo/doc cargo/bench cargo/install cargo/rustc: --config=
rustc cargo ghc cabal stack nvcc swift/build swift/test swift/run: ^.*(?:-wrapper|-pgm|ld-path).*
zig: ^--test-cmd.*
terraform: v -chdir= -version ^--?(?:from-m|migr|force).*
terraform/init terraform/plan terraform/validate terraform/fmt terraform/graph terraform/providers terraform/version: ~
terraform/state/list terraform/workspace/list terraform/workspace/show terraform/get: ~
dotnet: ^(?i:.*(?:PublishContainer|PublishProfile|PublishProtocol|WebPublishMethod|ContainerRegistry|DeployOnBuild).*)
dotnet: --info --list-sdks ^.*%.*|.*BuildEvent.*|.*(?:Exe|ToolPath|RunCommand)=.*
dotnet/build dotnet/test dotnet/run dotnet/restore dotnet/clean dotnet/publish dotnet/pack dotnet/format dotnet/new: ~
dotnet/add dotnet/remove dotnet/list dotnet/sln dotnet/watch dotnet/msbuild dotnet/vstest dotnet/tool/restore: ~
dotnet/ef/migrations/add dotnet/ef/migrations/remove dotnet/ef/migrations/list dotnet/ef/migrations/script: ~
dotnet/ef/database/update dotnet/tool/list dotnet/csharpier: ~
go: ^.*extld.*|--?w(?:=.*)?|--?(?:mod|fuzz)cache(?:=.*)?
ghc stack mix: ^-(?:e|pgm).*|--eval.*|(?:.*,)?cmd,?.*
mix: ^(?:.*,)?(?:(?:archive|escript|local)\.|hex\.(?!outdated|info|audit|search)).*
stack cabal: ^upload|report
dart flutter: ^publish|lish|uploader|token|global|log(?:in|out)
composer: ^gl?|glo.*|-g.*|--g.*|self.*
rails: ^c|r|db|dbconsole|.*https?:.*
tox: ^-x.*|--ov.*|--past.*
pre-commit: ^try-repo|hazmat
celery: A:b: --app= --broker=
celery/worker: ^--(?:purge|discard)(?:=.*)?
celery/worker celery/beat celery/status celery/report celery/events: ~
mkdocs: qv
fastapi/dev fastapi/run: ~
mkdocs/build mkdocs/serve mkdocs/new twine/check buf/lint buf/build buf/generate buf/breaking buf/format: ~
lerna/run lerna/bootstrap lerna/list lerna/ls lerna/changed lerna/diff lerna/info: ~
prisma/generate prisma/validate prisma/format prisma/init prisma/migrate/dev prisma/migrate/status prisma/db/pull: ~
prisma/db/seed prisma/studio wrangler/tail: ~
wrangler/dev wrangler/types wrangler/build: ~ ^--r.*|-\w*r\w*
astro: ^db|link|log(?:in|out)
nx: ^--commands?(?:=.*)?|(?:.*[:,])?(?:nx-)?release.*|connect.*|log(?:in|out)
turbo: ^(?:--)?log(?:in|out)|link|unlink
cypress: ^--(?:record|key).*
nuxt storybook: ^deploy|publish|log(?:in|out)|link
playwright: ^install-deps|--with-d.*
ss: ^-\w*K\w*|--k.*
jupyter-nbconvert: ^--std.*|--?\w+\.\w*+(?!=\d+$).*
cloc: ^--?(?:li|vc|fo|conf|ext|exclude-l|diff-l).*
deno/run deno/test deno/lint deno/fmt deno/check deno/task: ^(?:.*[=,])?(?:https?|npm|jsr):.*|--eval.*
bun/run bun/test: ^https?:.*|-[ep].*|--(?:eval|print).*
docker/compose: ^.*(?:://|@).*
pytest: -k# -m#
jest vitest mocha playwright npm/test pnpm/test yarn/test bun/test: -t# -g# --grep# --testNamePattern#
go: -run# -bench#
alembic: -m# --message#
pytest tox ruff black mypy pyright isort flake8 pylint bandit coverage pre-commit pyflakes ty alembic flask: ~
uvicorn gunicorn django-admin sphinx-build cython jupyter-nbconvert tsc eslint prettier jest: ~
vitest mocha ava playwright cypress vite webpack rollup esbuild next nuxt turbo nx biome stylelint storybook: ~
knip swc babel astro svelte-check vue-tsc rustc rustfmt go gofmt golangci-lint mvn gradle: ~
gradlew javac java zig swift/build swift/test swift/run swift/package gcc g++ cc c++ clang clang++: ~
clang-format clang-tidy ld ar nm nvcc flex bison protoc rspec rubocop rails phpunit composer mix dart flutter: ~
stack cabal ghc shellcheck shfmt dot hadolint actionlint yamllint markdownlint cloc tokei: ~
docker/ps docker/images docker/logs docker/inspect docker/version docker/info docker/stats docker/top docker/port: ~*
docker/history docker/network/ls docker/network/inspect docker/volume/ls docker/volume/inspect docker/system/df: ~*
docker/start: a --attach
docker/build: f:t:q --file= --tag= --target= --build-arg= --no-cache --pull --progress= --platform= --quiet --load
docker/build: --cache-from= --label= --rm
docker/pull: ~
docker/compose/up docker/compose/down docker/compose/ps docker/compose/logs docker/compose/build: dfqat?n:
docker/compose/pull docker/compose/restart docker/compose/stop docker/compose/start docker/compose/config: dfqat?n:
docker/compose/images docker/compose/top docker/compose/port docker/compose/ls docker/compose/version: aq
docker/compose/up: --detach --build --no-build --wait --force-recreate --no-deps --remove-orphans --timeout= --scale=
docker/compose/up: --abort-on-container-exit --exit-code-from= --pull= --quiet-pull --no-recreate --attach=
docker/compose/up: w --watch --wait-timeout=
docker/compose/down: --remove-orphans --timeout= ^-\w*v.*
docker/compose/up: ^-\w*V.*
docker/compose/logs: --follow --tail= --since= --until= --timestamps --no-color --no-log-prefix
docker/compose/ps docker/compose/config: --all --quiet --services --format= --status= --filter=
docker/compose/build: --no-cache --pull --build-arg= --quiet --parallel --progress=
kubectl/get kubectl/describe kubectl/top kubectl/logs kubectl/rollout/status: n:l: --namespace= --context= --selector=
kubectl/get kubectl/describe: ^(?i:(?:.*,)?secrets?(?:[/.,].*)?)
kubectl/get: o:Aw --output= --all-namespaces --watch --show-labels --sort-by= --field-selector=
kubectl/describe kubectl/top: A --all-namespaces
kubectl/logs: fpc: --follow --previous --container= --all-containers --tail= --since= --timestamps
kubectl/version kubectl/api-resources kubectl/config/current-context kubectl/config/get-contexts: --client
gh/pr/view gh/pr/list gh/pr/create gh/pr/diff gh/pr/checks gh/pr/status gh/pr/checkout gh/issue/view: ~*
gh/issue/list gh/run/view gh/run/list gh/run/watch gh/repo/view gh/release/list gh/release/view gh/workflow/list: ~*
gh/workflow/view gh/search gh/label/list: ~*
gh/pr/create: ^-\w*R.*|--repo.*
gh/api: X:f: --method= --raw-field= ^-\w*X=?+(?!GET$).+|--method=(?!GET$).+
gh/api: H:q:t:i --header= --jq= --template= --paginate --slurp --include --silent --cache= *
gh/api: ^(?i:.*(?:method.?override|_method=|x.(?:http.)?method).*|(?:https?://[^/]*)?/*(?:api/)?graphql(?:[/?#].*)?)
gh/auth/status: h: --hostname= --active
git: C: --no-pager
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
git/push: uqfnv --set-upstream --force --force-with-lease --tags --dry-run --follow-tags --no-verify ^\+?:.*|.*://.*
git/pull: qrpv --rebase --no-rebase --ff-only --autostash --no-edit --tags --prune --ff --no-ff
git/fetch: pqatnv --all --prune --tags --depth= --unshallow --dry-run --force
git/clone: qb: --depth= --branch= --recursive --recurse-submodules --single-branch --no-tags --quiet
git/ls-remote: htq --heads --tags --refs
git/clone git/ls-remote: ^(?!-|https?://).*:.*
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
git/remote git/remote/show git/remote/get-url git/remote/remove: v ^.*:.*
git/remote/prune git/worktree/list git/worktree/remove git/worktree/prune: vf --force --porcelain
git/worktree/add: b:fd --force
git/config: l --list --local --get# --get-all#
git/config/user.name git/config/user.email: *
git/cat-file: ^--te.*
git/submodule git/submodule/update git/submodule/status git/submodule/init git/submodule/sync: --init --recursive
printenv git/bisect/start git/bisect/good git/bisect/bad git/bisect/reset git/bisect/log git/bisect/skip:
git/apply: Rvp:3 --check --stat --index --cached --reverse --3way --verbose --numstat
git/init: qb: --bare --quiet --initial-branch=
"""
# The same commands by other names.
_ALSO = {
    "docker-compose": "docker/compose", "tofu": "terraform", "mvnw": "mvn", "gmake": "make", "pip3": "pip",
    "py.test": "pytest", "7za": "7z", "7zz": "7z", "npm/i": "npm/install", "npm/t": "npm/test",
    "pnpm/i": "pnpm/install",
}  # fmt: skip
# Of tools that take any option: a file that lists more words. To these a package has such a name.
_LIST = re.compile(r"(?:.*[=,])?@.*", re.DOTALL)
_SCOPED = frozenset({"npm", "pnpm", "yarn", "bun", "nx", "turbo", "lerna"})
# With which they run scripts by another shell, or with other options of node. A beginning is enough.
_BY_NPM = re.compile(r"--?(?:config\.)?(?:scr(?:i.*)?(?:=.*)?|node-?o.*)", re.DOTALL)
# An address at another machine, or this one by its name, that ssh reaches.
_BY_SSH = re.compile(
    r".*(?:(?:ssh|sftp|scp|rsync)://|git::).*"
    r"|(?:.*[=\s:@+])?[\w.+-]+@(?!(?:npm|workspace|catalog|file|link|sha\d+):)[\w.-]+:(?!//|\d+(?:/|$)).*",
    re.DOTALL | re.IGNORECASE,
)


@dataclass(slots=True)
class Takes:
    """What stands behind a command's name: `letters` and `words` are its options; `refused`: what no word may be."""

    letters: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    marks: set[str] = field(default_factory=set)
    refused: list[re.Pattern[str]] = field(default_factory=list)


@cache
def known() -> dict[str, Takes]:
    """The table, by the command's name."""
    found = dict[str, Takes]()
    for line in _TABLE.strip().splitlines():
        names, _, said = line.replace(" :", " \0").partition(":")
        for name in names.replace("\0", ":").split():
            takes = found.setdefault(name, Takes())
            for each in said.split():
                _add(takes, each)
    for name, takes in found.items():
        for above in (each for each in found if name.startswith(f"{each}/")):
            takes.refused += [each for each in found[above].refused if each not in takes.refused]
    for name, takes in found.items():
        free = "*" in takes.marks
        if "~" in takes.marks and not free and name.partition("/")[0] not in _SCOPED:
            takes.refused.append(_LIST)
        if name.startswith(("npm/", "pnpm/")):
            takes.refused.append(_BY_NPM)
        if not (free or "!" in takes.marks) or name.startswith(("pip", "uv/pip")):
            takes.refused.append(_BY_SSH)
    for also, name in _ALSO.items():
        found |= {f"{also}{each[len(name) :]}": found[each] for each in found if f"{each}/".startswith(f"{name}/")}
    return found


@cache
def groups() -> frozenset[str]:
    """Commands of which the first word is one, too."""
    return frozenset(each[: cut.start()] for each in known() for cut in re.finditer("/", each))


def _add(takes: Takes, said: str) -> None:
    if said.startswith("-"):
        takes.words[said.rstrip("=#?")] = said[-1] if said[-1] in "=#?" else ""
        return
    if said.startswith("^"):
        takes.refused.append(re.compile(said[1:], re.DOTALL))
        return
    takes.marks.update(mark for mark in ("~", "*", "!", "+1", "+") if mark in said)
    for letter, how in re.findall(r"([\w.])([:#?]?)", re.sub(r"\+1?|[~*!]", "", said)):
        takes.letters[letter] = how
