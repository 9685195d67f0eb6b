"""A shell command that a coding agent's client would run: which paths it names, and whether the sandbox can do it on
its folder alone. It is read by its grammar, and never run.

Rules: only commands of the sandbox's image count, and only words that lie within the folder; what can't be read (an
unknown command, a variable of the environment, an error of syntax) is never said to be within it. A program in quotes
that a shell is given is read like the rest.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass
from functools import partial
from itertools import dropwhile, pairwise
from typing import TYPE_CHECKING

from mapper.code import shell_commands as commands
from mapper.code.sed_scripts import PLAIN_SED, read_sed
from mapper.code.shell_names import ADDRESS, FILE_ADDRESS, MOST_LETTERS, OPTION, names, program_of
from mapper.code.shell_words import CUT_OTHERWISE, Folders, Placing, Word, goes_to, moved, text, word

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 100_000  # characters
_MOST_PATHS = 32  # and as many globs
_MOST_WORDS = 256
_MOST_FOLDERS = 8  # that the words of one command count from
_LONGEST_NAME = 255  # bytes of a file's name
_DEEPEST = 4  # programs in the quotes of others
_OUTSIDE = re.compile(
    r"(?:^(?:-[A-Za-z0-9]+)?|[=:,@\s'\"])(?:/(?!dev/null\b)|~)|(?:^(?:-[A-Za-z0-9]+)?|[/=:,@])\.\.(?:/|$)"
)
# In these words stands more than one can see: another person's home, what a glob finds outside.
_HIDING = re.compile(r"(?:^|[=:,@;])~[^/=:,@;]|(?:^|[=:,@;])(?:/|~|\.\.).*[*?\[{]|[*?\[{].*/\.\.(?:/|$)", re.DOTALL)
_HOME = re.compile(r"(?:^|[=:])~(?=:|$)")  # as a shell expands it, and not the end of a revision's name
_TOP = re.compile(r":(?:/|\([^)]*top)")
_SHOWN_HIDING = re.compile(r"\[|\{(?!\}$|\d+\})|\\[^;()!{}*?.+^$|<>&#'\",:=@-]", re.DOTALL)
# Their first argument is a pattern or a program, where none but such options stand before it.
_NONE = re.compile(r"(?!)")
_PATTERNS = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg"), re.compile(r"-[nrRiHhlLoqsvwxcEFGPazu]+|--(?!re|f)[a-z-]+=.*")),
    **dict.fromkeys(("awk", "gawk", "mawk"), re.compile(r"-F[^\s/]+")),
    "sed": re.compile(r"-(?!.*e.)[nErszue]+|-i(?:\.\w+)?"),
    "jq": re.compile(r"-[rsncCMS]+"),
}
_REMOTE_NAME = re.compile(r"-[A-Za-z0-9#]*O[A-Za-z0-9#]*|--remote-name(?:-all)?")
_SHELL_PROGRAM = re.compile(r"-[A-Za-z]*?c(.*)|--(?:init-)?command(?:=(.*))?", re.DOTALL)
_GIT_RUNS = re.compile(r"(?:--exec|-x|run|foreach|alias\.\S+|--[a-z]+-filter)")
_GIT_RUNS_VALUE = re.compile(r"(?:--exec=|-x(?=.)|--[a-z]+-filter=|[\w.-]+=(?=!|.*\s))", re.DOTALL)
_FOLDERS = ("directory", "chdir", "cwd", "dir", "prefix", "project-directory", "work-tree", "git-dir", "rootdir")
_FOLDER = re.compile(r"--?(?:ch|cd|base|work|working|.*-)?(?:dir|directory|cwd|root|wd)")
_SHORT_FOLDER = {
    **dict.fromkeys(("unzip", "just"), re.compile(r"-[A-Za-z]*d")),
    **dict.fromkeys(("gradle", "gradlew"), re.compile(r"-[A-Za-z]*p")),
}
_QUOTED_PATH = re.compile(r"(?:^|[\s'\"`(=<>,;|&:\[{])((?:/|~/|\.\./)[\w.~+@%-][^\s'\"`()<>;|&]*)")
_WORDS = frozenset({"word", "number", "string", "raw_string", "concatenation"})
_WRITES = frozenset({">", ">>", ">|", "&>", "&>>"})


@dataclass(frozen=True, slots=True)
class FolderShell:
    """`changes`: it changes files; `within`: all that it does is known, and lies within its folder; `paths`: that it
    names, absolute, each `..` where it stands, for it counts from where a link leads; `words`: what may be the name of
    something in its folder, as a path, and outside of that what a text or a guess names; `globs`: the patterns that the
    shell expands, as paths; `names_all`: its words hide no others (in an expansion, in another folder); `runs`: those
    of `paths` that are the commands themselves; `files`: groups of paths of which one each has to be a file, or else
    its words hide others."""

    changes: bool = False
    within: bool = False
    paths: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    names_all: bool = False
    runs: tuple[str, ...] = ()
    files: tuple[tuple[str, ...], ...] = ()


def read_folder_shell(program: str, folder: str) -> FolderShell:
    """What a command does to its folder, as far as it is written out."""
    if len(program) > LONGEST or not program.strip():
        return FolderShell()
    reading = _Reading(folder)
    reading.read(program)
    return reading.found()


class _Reading:
    """What was read so far of a program, and of those in its quotes."""

    def __init__(self, folder: str) -> None:
        self._folder = posixpath.normpath(folder)
        self._changes, self._within, self._names_all = False, True, True
        self._paths, self._words, self._globs = dict[str, None](), dict[str, None](), dict[str, None]()
        self._runs, self._not_run = dict[str, None](), set[str]()
        self._files = dict[tuple[str, ...], None]()
        self._sets_home = self._uses_home = False
        self._waiting: list[tuple[str, Folders, int]] = []
        self._reads_input = False  # a shell takes its program from what others say
        self._quoted: list[tuple[str, Folders]] = []
        self._depth = 0
        self._later = set[str]()  # programs that the same shell may run between any others
        self._seen = set[tuple[str, Folders]]()
        # Of the program that is read now, by the node of a word:
        self._named = set[str]()  # variables that it sets
        self._from: dict[int, Folders] = {}  # the folders that it counts from, where those are others
        self._not_options, self._plain = set[int](), set[int]()  # which are none, or may be none
        self._scripts, self._texts = set[int](), set[int]()
        self._programs_of: dict[int, str] = {}  # that take the options
        self._done = set[int]()

    def read(self, program: str) -> None:
        self._waiting.append((program, (self._folder,), 0))
        while self._waiting:
            program, folders, self._depth = self._waiting.pop()
            self._read(program, folders)
            if self._reads_input and not self._waiting:
                self._waiting += [(*each, self._depth + 1) for each in self._quoted]
                self._quoted.clear()

    def found(self) -> FolderShell:
        self._paths.pop("/dev/null", None)
        names_all = self._names_all and not (self._sets_home and self._uses_home)
        most = max(len(self._paths), len(self._globs), len(self._files))
        names_all = names_all and most <= _MOST_PATHS and len(self._words) <= _MOST_WORDS
        found = tuple(self._paths)[:_MOST_PATHS], tuple(self._words)[:_MOST_WORDS], tuple(self._globs)[:_MOST_PATHS]
        runs = tuple(each for each in self._runs if each not in self._not_run)
        return FolderShell(self._changes, self._within, *found, names_all, runs, tuple(self._files)[:_MOST_PATHS])

    def _read(self, program: str, folders: Folders) -> None:
        import tree_sitter
        import tree_sitter_bash

        if not program.strip() or (program, folders) in self._seen:
            return
        self._seen.add((program, folders))
        if CUT_OTHERWISE.search(program) or self._depth > _DEEPEST:
            self._names_all = self._within = False
        if self._depth > _DEEPEST:
            return
        tree = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language())).parse(
            program.encode("utf-8", "replace")
        )
        placing = Placing(tree.root_node, folders)
        self._within = self._within and not tree.root_node.has_error
        self._names_all = self._names_all and not tree.root_node.has_error and placing.known
        if program in self._later:
            moves = (goes_to(node) for node, _ in placing.nodes if node.type == "command")
            self._names_all = self._names_all and all(to is None for to in moves)
        self._from, self._programs_of = {}, {}
        self._not_options, self._plain, self._scripts, self._texts, self._done = set(), set(), set(), set(), set()
        self._named = {
            text(node.child_by_field_name("name" if node.type == "variable_assignment" else "variable"))
            for node, _ in placing.nodes
            if node.type in ("variable_assignment", "for_statement")
        }
        self._sets_home = self._sets_home or "HOME" in self._named
        self._names_all = self._names_all and all(commands.assigned(each, None) for each in self._named)
        for node, where in placing.nodes:
            if node.id not in self._done:
                self._node(node, self._from.get(node.id, where))

    def _node(self, node: Node, folders: Folders) -> None:
        if node.type not in ("string", "concatenation"):
            words = [each for each in node.children if each.type in _WORDS or each.type == "translated_string"]
            # What the grammar takes for several words without a blank between them, bash may take for one.
            self._names_all &= all(one.end_byte < other.start_byte for one, other in pairwise(words))
        match node.type:
            case "command":
                self._command(node, folders)
            case "file_redirect":
                to = node.child_by_field_name("destination")
                writes = any(each.type in _WRITES for each in node.children)
                self._changes = self._changes or (writes and to is not None and text(to) != "/dev/null")
                self._not_options.update(each.id for each in node.children)
                # Words of the command that stand behind it; to zsh a pattern of numbers, and a mark of its own.
                behind = len(node.children_by_field_name("destination")) > 1
                if behind or re.fullmatch(r"\d*<\d*-\d*", text(node)) or text(to).startswith("!"):
                    self._names_all = False
            case "heredoc_body":
                self._here_document(node, folders)
            case "command_substitution" | "ansi_c_string" | "brace_expression" | "arithmetic_expansion":
                self._names_all = False
            case "simple_expansion" if self._tells(node):
                pass
            case "simple_expansion" | "expansion":
                self._names_all = False
                inner = [text(each) for each in node.children if each.type == "variable_name"]
                self._within = self._within and not self._named.isdisjoint(inner)
            case "function_definition" | "process_substitution":
                self._within = self._names_all = False
            case "variable_assignment":
                value = node.child_by_field_name("value")
                given = word(value) if value is not None else None
                name = text(node.child_by_field_name("name"))
                self._names_all = self._names_all and (given is None or commands.assigned(name, given.text))
            case "string_content" if node.parent is not None and node.parent.type == "string":
                self._within = self._within and not _OUTSIDE.search(text(node))  # beside what is expanded
                self._word(node, Word(text(node), "", True), folders)
            case kind if kind in _WORDS:
                found = word(node)
                for said in (text(node).strip("'\""), found.text if found is not None else ""):
                    self._within = self._within and not _OUTSIDE.search(said)
                if found is None:
                    self._names_all = self._names_all and self._tells(node)
                    for each in node.children:  # of which each is read like the whole
                        self._from[each.id] = folders
                        self._not_options.update([each.id] * (node.id in self._not_options))
                    return
                waiting = [*node.children]
                while waiting:
                    one = waiting.pop()
                    self._done.add(one.id)
                    waiting += one.children
                self._word(node, found, folders)

    def _tells(self, node: Node) -> bool:
        """Whether in a word of an echo nothing is expanded but how the command before it ended."""
        whole = node if node.id in self._programs_of or node.parent is None else node.parent
        return self._programs_of.get(whole.id) == "echo" and not re.search(r"[$`]", text(whole).replace("$?", ""))

    # ---- commands

    def _command(self, node: Node, folders: Folders) -> None:
        """Say what is known of a command, and how its words are to be read."""
        field = node.child_by_field_name("name")
        if field is None:
            return
        called = word(field.children[0]) if len(field.children) == 1 else None
        after = [each for each in node.children if each.start_byte >= field.end_byte]
        nodes = [each for each in after if each.type not in ("file_redirect", "herestring_redirect")]
        words = [word(each) for each in nodes]
        texts = [each.text if each is not None else "" for each in words]
        full = called.text if called is not None else ""
        name = full.rpartition("/")[2]
        self._changes = self._changes or full in commands.CHANGING
        self._within = self._within and full in commands.READING | commands.CHANGING and full != "xargs"
        if "/" in full:
            self._runs |= {self._path(each, full): None for each in folders}
            self._texts.add(field.children[0].id)
            self._not_options.add(field.children[0].id)
        if called is None or re.search(r"[*?{]|\[.", called.shown):
            self._names_all = False
        self._within = self._within and not commands.evaluates(name, texts)
        if "--" in texts:
            at = texts.index("--")
            # An option before it may have it for its value.
            is_value = re.match(r"-[^-]*[A-Za-z]$|--[^=]+$", texts[at - 1] if at else "") is not None
            behind = self._not_options if full in commands.ENDS_OPTIONS and not is_value else self._plain
            behind.update(each.id for each in nodes[at + 1 :])
        self._programs_of |= dict.fromkeys((each.id for each in nodes), program_of(full, texts))
        runs = [name, *(posixpath.basename(each) for each in texts if name not in commands.RUN_NONE or name == "sed")]
        if "sed" in runs:
            self._sed(texts[runs.index("sed") :], folders)
        if name in ("find", "xargs"):
            self._changes = self._changes or (name == "find" and "-delete" in texts)
            # What it runs is an argument.
            self._within = self._within and {"-exec", "-execdir", "-ok", "-okdir"}.isdisjoint(texts)
            self._names_all = self._names_all and {"-execdir", "-okdir"}.isdisjoint(texts)
        first = next((at for at, each in enumerate(texts) if not _PATTERNS.get(name, _NONE).fullmatch(each)), None)
        if name in _PATTERNS and first is not None and (found := words[first]) is not None and found.quoted:
            self._scripts.update([nodes[first].id] * (not found.text.startswith("-")))
        if name in commands.SEPARATED:
            separators = ("-d/", "-t/", "-F/")
            self._scripts.update(each.id for each, said in zip(nodes, texts, strict=True) if said in separators)
        needed: commands.Needed = []
        understood = commands.understood(full.replace(f"{self._folder}/", "./", 1), texts, needed)
        self._files |= {tuple(self._path(each, file) for file in files): None for files in needed for each in folders}
        self._names_all = self._names_all and (understood is not None or goes_to(node) is not None)
        if understood is not None:
            every = name in commands.TEXTS
            self._texts.update(each.id for at, each in enumerate(nodes) if every or at in understood)
        self._other_folders(name, nodes, texts, folders)
        places = self._from.get(nodes[0].id, folders) if nodes else folders
        self._made(name, words, places)
        if understood is None or name != "git":
            self._programs(name, texts, places)

    def _sed(self, texts: list[str], folders: Folders) -> None:
        """What a sed with these words is known to do."""
        read = read_sed(texts)
        self._changes = self._changes or read.changes
        self._within = self._within and not (read.outside or read.runs or read.unknown)
        self._names_all = self._names_all and not read.unknown
        self._words |= {self._path(each, file): None for each in folders for file in read.files}
        self._waiting += [(each, folders, self._depth + 1) for each in read.runs]
        for each in texts if read.unknown else ():
            self._mentions(each.replace("\\/", "/"), folders)

    def _other_folders(self, name: str, nodes: list[Node], texts: list[str], folders: Folders) -> None:
        """Let the words count from the folder that an option names, too."""
        to, letter, short = list[str](), {"patch": "d", "cpio": "D"}.get(name, "C"), _SHORT_FOLDER.get(name)
        for at, said in enumerate(texts):
            following = texts[at + 1 : at + 2]
            option, _, value = said.partition("=")
            is_folder = len(option) > 2 and any(f"--{each}".startswith(option) for each in _FOLDERS)
            if is_folder or _FOLDER.fullmatch(option) or (short is not None and short.fullmatch(said)):
                to += [value] if "=" in said else following
            elif OPTION.match(said) and letter in said:
                for where in (each.start() for each in re.finditer(letter, said[:MOST_LETTERS])):
                    value = said[where + 1 :]
                    to += [value] * (where == 1 or "=" not in value)
                to += following * (re.fullmatch(rf"-[A-Za-z0-9]*{letter}[A-Za-z0-9]*", said) is not None)
            elif at == 0 and name == "tar" and not said.startswith("-") and "C" in said:
                self._names_all = False  # its letters take the words that follow in their order
        to = [each for each in dict.fromkeys(to) if each and not each.isdigit() and not each.startswith("-")]
        self._names_all = self._names_all and len(to) <= _MOST_FOLDERS // 2 and not re.search(r"[*?]", "".join(to))
        found = folders
        for each in to[: _MOST_FOLDERS // 2]:
            found = tuple(dict.fromkeys((*found, *(there for one in found for there in moved(one, each)))))
        if found != folders:
            self._from.update((each.id, found[:_MOST_FOLDERS]) for each in nodes)
            self._names_all = self._names_all and len(found) <= _MOST_FOLDERS

    def _made(self, name: str, words: list[Word | None], folders: Folders) -> None:
        """Take the names that a command makes up of its words, by which it may write through a link, for a guess."""
        plain = [each for each in words if each is not None and not each.text.startswith("-")]
        texts = [each.text if each is not None else "" for each in words]
        found = list[tuple[str, Word]]()  # a folder, and what it puts there
        if name in commands.COPIES:
            to = ["."] if len(plain) == 1 else [each.text for each in plain[-1:]]
            if name not in ("rsync", "scp"):
                to += [each for option, each in pairwise(texts) if re.match("-[A-Za-z]*t$|--t[a-z-]*$", option)]
                values = (re.match("(?:-[A-Za-z]*?t|--t[a-z-]*=)(.+)", each) for each in texts)
                to += [each[1] for each in values if each is not None]
            found = [(folder, each) for folder in to for each in plain]
            # What a whole folder's names are isn't known; into another folder than this they are mostly new.
            is_whole = re.compile(r".*/\.{0,2}" if name == "rsync" else r".*/\.{1,2}", re.DOTALL)
            here = any(re.fullmatch(r"\.{1,2}/*", each) for each in to)
            self._names_all = self._names_all and not (
                here and any(is_whole.fullmatch(each.text) for each in plain[:-1])
            )
        elif name == "wget" or (name == "curl" and any(_REMOTE_NAME.fullmatch(each) for each in texts)):
            options = re.compile("-[A-Za-z]*P|--directory-prefix|--output-dir")
            to = [".", *(each for option, each in pairwise(texts) if options.fullmatch(option))]
            to += [each[2:] for each in texts if re.match("-P.", each)]
            named = (re.sub(r"[?#].*", "", each.text, flags=re.DOTALL) for each in plain if "/" in each.text)
            found = [(folder, Word(each, "", True)) for folder in to for each in named]
        for folder, each in found:
            base = posixpath.basename(each.text.rstrip("/"))
            if base in ("", ".", "..") or len(base.encode()) > _LONGEST_NAME:
                continue
            into = self._globs if re.search(r"[*?]", base) and each.shown else self._words
            into |= {self._path(one, posixpath.join(folder, base)): None for one in folders}

    def _programs(self, name: str, texts: list[str], folders: Folders) -> None:
        """Wait to read what a shell is given."""
        if name == "eval":
            self._waiting.append((" ".join(texts), folders, self._depth + 1))
        elif name == "trap":
            self._waiting += [(each, folders, self._depth + 1) for each in texts[:1]]
            self._later.update(texts[:1])
        elif name in commands.SHELLS | commands.WITH_SHELL:
            self._shell(texts, folders)
        elif name == "git":
            self._git_programs(texts, folders)
        elif name in commands.JOINED | commands.EACH_RUN:
            plain = [each for each in texts if not each.startswith("-")]
            if name == "parallel" and (not plain or not commands.SHELLS.isdisjoint(plain)):
                self._names_all = self._within = False  # it runs what it reads
            programs = plain if name in commands.EACH_RUN else [" ".join(plain)]
            self._waiting += [(each, folders, self._depth + 1) for each in programs]
        elif name not in commands.RUN_NONE:
            called = [name, *(re.sub("^/.*/", "", each) for each in texts)]
            for at, each in enumerate(called):
                if each in commands.SHELLS:
                    self._shell(texts[at:], folders)
                    if "xargs" in called[:at]:  # what it reads is a program, or a part of one
                        self._names_all = self._within = False

    def _git_programs(self, texts: list[str], folders: Folders) -> None:
        """Wait to read what git gives a shell, or runs itself."""
        for at, each in enumerate(texts):
            if (value := _GIT_RUNS_VALUE.match(each)) is not None:
                self._waiting.append((each[value.end() :].removeprefix("!"), folders, self._depth + 1))
            elif _GIT_RUNS.fullmatch(each):
                behind = list(dropwhile(lambda said: said.startswith("-"), texts[at + 1 :]))
                several = each in ("run", "foreach") and len(behind) > 1
                program = shlex.join(behind) if several else "".join(behind[:1]).removeprefix("!")
                self._waiting.append((program, folders, self._depth + 1))
                # It runs in the folders of others, and git itself names what it needs from there.
                self._names_all = self._names_all and (each != "foreach" or program.startswith("git "))

    def _shell(self, texts: list[str], folders: Folders) -> None:
        options = [_SHELL_PROGRAM.fullmatch(each) for each in texts]
        at = next((at for at, each in enumerate(options) if each is not None), None)
        if at is None:
            self._reads_input = self._reads_input or all(each.startswith(("-", "+")) for each in texts)
            self._reads_input = self._reads_input or any(re.fullmatch(r"-[a-z]*s", each) for each in texts)
            return
        # A name that another option takes may stand before it, and some take it in the option's word.
        behind = [each for each in texts[at + 1 :] if not each.startswith(("-", "+"))]
        behind += [value for each in options if each is not None for value in each.groups() if value]
        if any("{}" in each for each in behind):  # which another program fills
            self._names_all = self._within = False
        self._waiting += [(each, folders, self._depth + 1) for each in behind]

    def _here_document(self, node: Node, folders: Folders) -> None:
        body = text(node)
        self._quoted.append((body, folders))
        opened = [text(each) for each in node.parent.children if each.type == "heredoc_start"] if node.parent else [""]
        if not any(re.search(r"['\"\\]", each) for each in opened) and re.search(r"(?<!\\)`", body):
            self._names_all = self._within = False  # a command, of which the grammar has no node
        start = node.parent.parent if node.parent is not None else None
        command = start.child_by_field_name("body") if start is not None else None
        alone = start is None or start.parent is None or start.parent.type != "pipeline"
        alone = alone and node.parent is not None and all(each.type != "pipeline" for each in node.parent.children)
        name = text(command.child_by_field_name("name")) if command is not None and command.type == "command" else ""
        if not (alone and name in commands.DATA):
            self._mentions(body, folders)
        if start is not None and "xargs" in text(start.parent if not alone else start):
            self._words |= {self._path(folder, each): None for each in body.split() for folder in folders}

    # ---- words

    def _word(self, node: Node, found: Word, folders: Folders) -> None:
        said = found.text
        self._sets_home = self._sets_home or re.match(r"HOME(?:[=+\[]|$)", said) is not None
        self._names_all = self._names_all and not _SHOWN_HIDING.search(found.shown)
        is_script = node.id in self._scripts
        if (given := re.match(r"(\w+)\+?=", said)) is not None and _is_variable_s(node):
            self._names_all = self._names_all and commands.assigned(given[1], said[given.end() :])
        if found.quoted and commands.SUBSCRIPT.search(said) and _is_variable_s(node):
            self._names_all = self._within = False  # arithmetic may run it
        if found.quoted:
            self._quoted.append((said, folders))
            if node.id not in self._texts:
                self._mentions(said, folders)
        if is_script and PLAIN_SED.fullmatch(said):
            return
        masked = ADDRESS.sub("_", said)
        masked = said if ".." in said else masked
        may_be_option = node.id not in self._not_options
        option = OPTION.match(said) if may_be_option else None
        program = self._programs_of.get(node.id, "")
        hides = (
            (program == "git" and _TOP.match(said))  # which counts from the top of its folder
            or _HIDING.search(masked)
            or (found.quoted and "\\" in said and "/" in masked)
            or ("file:" in said.lower() and "%" in said)
        )
        self._names_all = self._names_all and not (hides and not is_script)
        self._names_all = self._names_all and (option is None or option.end() <= MOST_LETTERS)
        named = partial(names, program=program, option=may_be_option, plain=node.id in self._plain)
        for name, sure in named(masked):
            self._name(node, name, sure and not is_script, found, folders)
        for name, _ in named(said) if masked != said else ():
            self._name(node, name, False, found, folders)

    def _name(self, node: Node, name: str, sure: bool, found: Word, folders: Folders) -> None:
        if name == "~" and found.quoted and node.id in self._texts:
            return  # no shell expands it
        is_command = node.parent is not None and node.parent.type == "command_name"
        for folder in folders:
            path = self._path(folder, name)
            outside = posixpath.normpath(folder) != self._folder and not _within(folder, self._folder)
            if found.shown and ("*" in name or "?" in name):
                self._globs[path] = None
            leaves = "/" in name or name == ".." or (name == "~" and _HOME.search(found.text) is not None)
            if sure and (leaves or (outside and name == found.text != ".")):
                self._paths[path] = None
                if not is_command:
                    self._not_run.add(path)
            elif name not in ("", ".", "/") and ("/" in name or len(name.encode()) <= _LONGEST_NAME):
                self._words[path] = None

    def _path(self, folder: str, name: str) -> str:
        if re.match("~(?:/|$)", name):
            self._uses_home = True
            name = posixpath.expanduser(name)
        return posixpath.join(folder, name)

    def _mentions(self, said: str, folders: Folders) -> None:
        """Take the paths in a text, which may be a program in any language, for a guess."""
        for each in _QUOTED_PATH.findall(FILE_ADDRESS.sub(" ", ADDRESS.sub("_", said))):
            path = each.rstrip(".,:!?)]}")
            if path != "/dev/null":
                self._words |= {self._path(folder, path): None for folder in folders}


def _is_variable_s(node: Node) -> bool:
    """Whether a word is, or becomes, the name or the value of a variable."""
    around = node.parent
    while around is not None and around.type not in ("command", "program", "compound_statement"):
        if around.type in ("variable_assignment", "declaration_command", "unset_command", "test_command"):
            return True
        around = around.parent
    return False


def _within(path: str, folder: str) -> bool:
    return posixpath.normpath(path).startswith(folder.rstrip("/") + "/")
