"""`goex exec`: have something done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from goex.cli import call_syntax as calls_
from goex.cli import help_text
from goex.cli.code import Program
from goex.cli.input_text import MAX_TEXT, input_text, read_text
from goex.cli.output import Json, Output
from policies.errors import ExitStatus, InvalidInput
from policies.jsonvalue import parse

if TYPE_CHECKING:
    from goex.client import Client
    from goex.rpc import goex_pb2 as pb

NO_PROGRAM = Program()


class ExecCommand(help_text.Command):
    """Folds what follows each `--call` into it before the options are read."""

    groups: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "Calls": ("call", "account"),
        "A program on a folder": ("shell", "python", "folder", "undo", "preview"),
        "A database": ("database", "sql", "policy", "undo_sql", "mongo"),
        "A program for services": ("code", "again", "service", "method", "language", "profile"),
    }

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, calls_.gather(args))


def run(
    words: Annotated[list[str] | None, typer.Argument(help="What you want, in words.", show_default=False)] = None,
    call: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SERVICE.METHOD KEY=VALUE…",
            help="A call, with its arguments after it: key=text, key:=json, key=@0.$.path (from the answer to call 0). "
            "Several run in order.",
        ),
    ] = None,
    shell: Annotated[str, typer.Option(metavar="COMMAND", help="A shell command to run on --folder.")] = "",
    python: Annotated[Path | None, typer.Option(metavar="FILE", help="A Python file to run on --folder.")] = None,
    folder: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="The folder that the program sees; again: several, each by its own name."),
    ] = None,
    undo: Annotated[
        str,
        typer.Option(
            metavar="COMMAND", help="A program that should undo it; --dry-run tests it. goex undo never uses it."
        ),
    ] = "",
    preview: Annotated[
        str, typer.Option("--apply", metavar="ID", help="Apply what that dry run found, instead of running it again.")
    ] = "",
    database: Annotated[str, typer.Option("--db", metavar="NAME", help="The database that it is about.")] = "",
    sql: Annotated[str, typer.Option(metavar="STATEMENTS", help="SQL to run on --db, in one transaction.")] = "",
    policy: Annotated[
        str, typer.Option(metavar="POLICY", help="How --sql is undone: versioning, reversal or pairs.")
    ] = "",
    undo_sql: Annotated[
        str, typer.Option(metavar="STATEMENTS", help="With --policy pairs: the statements that undo --sql.")
    ] = "",
    mongo: Annotated[
        str, typer.Option(metavar="JSON", help="An operation on --db, or several in a list; @FILE reads them.")
    ] = "",
    code: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A program that uses --service, without a network or a token; - for stdin."),
    ] = None,
    again: Annotated[
        str,
        typer.Option(metavar="ID", help="The program of that action once more, with --service and --method beside."),
    ] = "",
    service: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A service (or NAME/ACCOUNT) for --code; with words: a model writes it."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="SERVICE.METHOD", help="What --code may call with any arguments, found in it or not."),
    ] = None,
    language: Annotated[
        str, typer.Option(metavar="NAME", help="Of --code: python, shell or javascript; by its ending, else python.")
    ] = "",
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="The image that --code runs in (goex images list).")
    ] = "",
    proposal: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What a model wrote (JSON), from FILE or - for stdin.")
    ] = None,
    account: Annotated[str, typer.Option(metavar="NAME", help="The account of each --call, or of words.")] = "",
    detach: Annotated[bool, typer.Option("--detach", help="Leave it running and print its id.")] = False,
    ask: Annotated[
        int,
        typer.Option(
            metavar="SECONDS",
            min=0,
            max=86_400,
            help="Approval timeout, at most the setting [ask] seconds; no answer denies.",
            show_default="[ask] seconds",
        ),
    ] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Plan it and show what it would do, on a copy; nothing is asked or done.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="With --dry-run: keep what it finds for an hour, to --apply exactly that.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse it if it can change anything; a folder is mounted read-only.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Have something done: in words, as calls, as a program on folders or for services, or as statements on one
    database.

    With --json each event is one JSON object on a line of its own; the last one holds "finished".
    """
    out = Output(as_json)
    on_database = Statements(database, sql, policy, undo_sql, mongo)
    folders = folder or []
    first = folders[0] if folders else None
    program = Program(code, again, language, tuple(service or ()), tuple(method or ()), profile)
    request = build(words or [], call or [], shell, python, first, proposal, account, on_database, program)
    if len(folders) > 1 and not request.HasField("files"):
        raise InvalidInput("Several folders are for --shell and --python alone.", next_step="Name one --folder.")
    for each in folders[1:]:
        request.files.more.append(input_text(_absolute(each), "The folder"))
    if (undo or preview) and not request.HasField("files"):
        raise InvalidInput("--undo and --apply belong to a program on --folder.", next_step="Leave them out.")
    if keep and not dry_run:
        raise InvalidInput("--keep keeps what --dry-run finds.", next_step="Add --dry-run, or leave it out.")
    if keep and not (request.HasField("files") or request.folder):
        raise InvalidInput(
            "--keep keeps a copy of a folder: of calls, statements and programs for services nothing can be kept.",
            next_step="Leave it out.",
        )
    if undo or preview:
        request.files.undo, request.files.preview = (
            input_text(undo, "The undo"),
            input_text(preview, "The dry run's name"),
        )
    request.detach, request.ask_seconds, request.reads_only = detach, ask, read_only
    if dry_run and (detach or ask):
        raise InvalidInput(
            "--dry-run asks nothing, so --detach and --ask mean nothing with it.", next_step="Leave them out."
        )
    from goex.cli.connect import connect

    with connect(out) as client:
        if dry_run:
            from goex.cli.dryrun import show
            from goex.rpc import goex_pb2 as pb

            raise typer.Exit(show(client, pb.DryRunRequest(request=request, keep=keep), out))
        raise typer.Exit(execute(client, request, out))


def execute(client: Client, request: pb.ExecuteRequest, out: Output) -> int:
    """Run a request to its end; on a terminal, offer the candidates of one that is ambiguous, and the login that one
    lacks, and go on."""
    from goex.cli.follow import exit_code
    from goex.cli.missing_accounts import carry_out

    ended = carry_out(client, lambda: client.execute(request), out, detach=request.detach)
    problem = ended.finished.problem if ended.finished is not None else None
    while problem is not None and problem.code == "ambiguous" and ended.mapped is not None:
        if ended.mapped.HasField("clarification"):
            request.answer = _answered(ended.mapped, out)
        else:
            request.choice = _choose(ended.mapped, out)
        if request.answer or request.choice:
            ended = carry_out(client, lambda: client.execute(request), out, detach=request.detach)
        else:
            return int(ExitStatus.AMBIGUOUS)
        problem = ended.finished.problem if ended.finished is not None else None
    return exit_code(ended)


def _answered(mapped: pb.MapReply, out: Output) -> str:
    """What the person answers to a question about the request, by an option's number or in words; "" for nothing.
    Answering isn't approving."""
    from goex.cli.follow import show_clarification
    from goex.cli.prompt import Terminal

    show_clarification(out, mapped.clarification, by_model=mapped.proposer != "goex")
    terminal = None if out.as_json else Terminal.find()
    if terminal is None:
        return ""
    options = mapped.clarification.options
    said = terminal.ask(f"Your answer (1-{len(options)}, or words) [none]: " if options else "Your answer [none]: ")
    if said and said.isascii() and said.isdigit() and 1 <= int(said) <= len(options):
        return options[int(said) - 1].answer
    return said or ""


def _choose(mapped: pb.MapReply, out: Output) -> int:
    """The candidate that the person picks by its number; 0 for none. Picking isn't approving."""
    from goex.cli.follow import show_candidates
    from goex.cli.prompt import Terminal

    show_candidates(out, mapped, all_of_them=True)
    terminal = None if out.as_json else Terminal.find()
    if terminal is None or not mapped.candidates:
        return 0
    count = len(mapped.candidates)
    said = terminal.ask(f"Which one do you mean (1-{count}) [none]: " if count > 1 else "Do you mean it (1) [none]: ")
    if said and said.isascii() and said.isdigit() and 1 <= int(said) <= len(mapped.candidates):
        return int(said)
    return 0


def build(
    words: list[str],
    call: list[str],
    shell: str,
    python: Path | None,
    folder: Path | None,
    proposal: Path | None,
    account: str,
    statements: Statements,
    program: Program = NO_PROGRAM,
) -> pb.ExecuteRequest:
    """The request that the options describe. Raises InvalidInput unless they describe exactly one."""
    from goex.rpc import goex_pb2 as pb

    kinds = [bool(words), bool(call), bool(shell), python is not None, proposal is not None]
    kinds += [bool(statements.sql), bool(statements.mongo), bool(program)]
    if sum(kinds) != 1:
        raise InvalidInput(
            "Say one thing to do: words, --call, --shell, --python, --code, --sql, --mongo or --proposal."
            if not any(kinds)
            else "Words, --call, --shell, --python, --code, --sql, --mongo and --proposal exclude each other.",
            next_step='For example: goex exec "send slack msg hi to #ops"',
        )
    if program and (folder is not None or statements.database):
        raise InvalidInput(
            "--code and --again go without --folder and --db: such a program sees services alone.",
            next_step="Leave them out; for a program on a folder: --python or --shell.",
        )
    programmed = bool(shell) or python is not None
    if (folder is not None) != programmed and not (folder is not None and words and not statements.database):
        raise InvalidInput(
            "--folder goes with --shell, --python or words, and with no --db; --shell and --python need it.",
            next_step="For example: goex exec --shell 'rm *.tmp' --folder ~/notes",
        )
    words_alone = bool(words) and not (statements.database or folder is not None or program.services)
    if account and not (call or words_alone):
        raise InvalidInput("--account belongs to --call, or to words about services.", next_step="Leave it out.")
    statements.check(words=bool(words))
    program.check(words=bool(words))
    if program.services and (statements.database or folder is not None):
        raise InvalidInput("--service goes without --db and --folder.", next_step="Leave the others out.")
    if program:
        return program.request()
    if words:
        return pb.ExecuteRequest(
            intent=input_text(" ".join(words), "The request"),
            database=statements.database,
            folder=input_text(_absolute(folder), "The folder") if folder else "",
            code_services=program.services,
            account=account,
        )
    if statements.sql or statements.mongo:
        return statements.request()
    if call:
        made = [
            pb.Call(
                service=one["service"],
                method=one["method"],
                arguments_json=input_text(json.dumps(one["arguments"], ensure_ascii=False), "The arguments"),
                account=one["account"],
            )
            for one in calls_.parse(call, account)
        ]
        return pb.ExecuteRequest(calls=pb.Calls(calls=made))
    if proposal is not None:
        return pb.ExecuteRequest(proposal=read_text(proposal, "The proposal"))
    text = read_text(python, "The program") if python is not None else input_text(shell, "The command")
    return pb.ExecuteRequest(
        files=pb.FilesProgram(
            # Not resolved: whether a symlink is meant is for the daemon to judge, and for the person to see.
            folder=input_text(_absolute(folder) if folder else "", "The folder"),
            language="python" if python is not None else "shell",
            program=text,
        )
    )


@dataclass(frozen=True, slots=True)
class Statements:
    """What the options say of a database."""

    database: str = ""
    sql: str = ""
    policy: str = ""
    undo: str = ""
    mongo: str = ""

    def check(self, *, words: bool) -> None:
        """Raises InvalidInput for options that don't belong together."""
        if bool(self.database) != bool(self.sql or self.mongo) and not (self.database and words):
            raise InvalidInput(
                "--db goes with --sql, --mongo or words; --sql and --mongo need it.",
                next_step='For example: goex exec --db shop --sql "SELECT …"',
            )
        if (self.policy or self.undo) and not self.sql:
            raise InvalidInput("--policy and --undo-sql belong to --sql.", next_step="Leave them out.")
        if self.policy not in ("", "versioning", "reversal", "pairs"):
            raise InvalidInput(
                f"Unknown undo policy {self.policy[:40]!r}.", next_step="Use versioning, reversal or pairs."
            )
        if self.undo and self.policy != "pairs":
            raise InvalidInput("--undo-sql belongs to --policy pairs.", next_step="Add that, or leave it out.")

    def request(self) -> pb.ExecuteRequest:
        from goex.rpc import goex_pb2 as pb

        if self.mongo:
            operations = [input_text(text, "The operation") for text in _operations(self.mongo)]
            return pb.ExecuteRequest(mongo=pb.MongoProgram(database=self.database, operations_json=operations))
        return pb.ExecuteRequest(
            sql=pb.SqlProgram(
                database=self.database,
                statements=input_text(self.sql, "The statements"),
                policy=self.policy,
                undo=input_text(self.undo, "The statements that take it back"),
            )
        )


def _operations(text: str) -> list[str]:
    """One operation as it is written, or those of a list. Their keys keep their order, which has a meaning there."""
    if text.startswith("@"):
        text = read_text(Path(text[1:]), "The operations")
    value = parse(text, limit=MAX_TEXT, what="The text of the operations")  # strictly: no key stands twice
    if isinstance(value, list):
        return [json.dumps(one, ensure_ascii=False) for one in value]
    return [text]


def _absolute(folder: Path) -> str:
    try:
        expanded = folder.expanduser()
        return str(expanded if expanded.is_absolute() else Path.cwd() / expanded)
    except (RuntimeError, OSError) as error:
        raise InvalidInput(f"{folder} can't be found: {error}.", next_step="Write the whole path.") from error
