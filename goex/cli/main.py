"""The `goex` command.

Rules: every error ends as two lines on stderr (what is wrong, what to do) and an exit status of
`policies.errors.ExitStatus`; a traceback is shown only when GOEX_TRACEBACK is set, and never with local variables,
which may hold secrets. Nothing heavy is imported until a command needs it, so that help and completion are quick.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
import typer.core

from goex.cli import (
    agents,
    approve,
    auth,
    catalog,
    coding_agents,
    daemon,
    db,
    doctor,
    eval,
    exec,
    grants,
    help_text,
    history,
    hook,
    images,
    log,
    map,
    mcp,
    pairs,
    passkey,
    rules,
    show,
    task,
    vault,
    web,
)
from goex.cli import notify as notifier
from policies.display_text import escape
from policies.errors import ExitStatus, GoexError, InvalidInput

INTERRUPTED = 130
# The root of the option parser's own errors, wherever this version of typer keeps it.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


_GROUPS = {
    "Do": ("exec", "map", "task"),
    "Decide": ("approve", "deny", "web", "notify", "grants", "revoke", "rules"),
    "Look back, and take back": ("log", "show", "undo", "redo", "commit", "undo-pairs"),
    "Accounts and services": ("vault", "auth", "db", "catalog", "mcp", "passkey"),
    "Agents": ("connect", "agents", "hook"),
    "Operate": ("doctor", "daemon", "images", "eval"),
}


class Root(typer.core.TyperGroup):
    """The top command: turns errors into words and exit statuses."""

    _as_json = False
    _garbled = False

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        help_text.write_commands(self, _GROUPS, ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # Known before any option is read, so that even a malformed command answers in JSON.
        self._as_json = "--json" in args
        self._garbled = any(not _is_utf8(arg) for arg in args)
        try:
            return super().parse_args(ctx, args)
        except _UsageError as error:
            if not self._as_json or type(error).__name__ == "NoArgsIsHelpError":
                raise _shown(error) from None
            from goex.cli.output import print_error

            print_error(_malformed(error), as_json=True)
            raise typer.Exit(int(ExitStatus.USAGE)) from None

    def invoke(self, ctx: Any) -> Any:
        try:
            if self._garbled:
                raise InvalidInput("The command isn't UTF-8 text.", next_step="Write it in UTF-8.")
            return super().invoke(ctx)
        except GoexError as error:
            code = int(error.exit_status)
            failure = error
        except _UsageError as error:
            if not self._as_json:
                raise _shown(error) from None
            failure, code = _malformed(error), int(ExitStatus.USAGE)
        except KeyboardInterrupt:
            sys.stderr.write("\n")
            raise typer.Exit(INTERRUPTED) from None
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:  # the outermost edge
            if os.environ.get("GOEX_TRACEBACK"):
                raise
            failure = GoexError(
                f"Internal error: {type(error).__name__}: {error}",
                next_step="To see where, run it again with GOEX_TRACEBACK=1 before it.",
            )
            code = int(ExitStatus.FAILED)
        from goex.cli.output import print_error

        print_error(failure, as_json=self._as_json)
        raise typer.Exit(code)


app = help_text.App(
    name="goex",
    cls=Root,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Runs what an LLM proposes: asked for, in a container without secrets, and taken back when you say so.",
    epilog="Exit status: 0 done, 1 failed, 2 usage, 3 denied, 4 nobody answered, 5 ambiguous, 6 changed since, "
    "7 sealed, 8 unavailable, 9 unknown, 10 unsupported, 130 interrupted.",
)


def _malformed(error: Exception) -> GoexError:
    """The option parser's own error as one of ours."""
    context = getattr(error, "ctx", None)
    words = context.command_path.split()[1:] if context is not None else []
    failure = GoexError(
        str(getattr(error, "format_message", error.__str__)()), next_step=f"See: {' '.join(('goex', *words, '--help'))}"
    )
    if getattr(error, "option_name", "") == "--json":  # which every command has, and no group of them
        failure = GoexError("--json stands before the command's name.", next_step="Write it last: goex log --json")
    failure.code, failure.exit_status = "usage", ExitStatus.USAGE
    return failure


def _shown(error: Exception) -> Exception:
    """The option parser's own error, which quotes what was typed, fit for a terminal."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return error  # a group without a command: its message is our own help, of many lines
    if isinstance(message := getattr(error, "message", None), str):
        error.message = escape(message)  # type: ignore[attr-defined]  # of _UsageError, which has no importable name
    return error


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _version(value: bool) -> None:
    if value:
        from goex import __version__

        typer.echo(f"goex {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


app.command("exec", cls=exec.ExecCommand, short_help="Have something done, after you allow it.")(exec.run)
app.command("map", short_help="Show what your words would become.")(map.run)
app.command("approve", short_help="Decide what waits for you.")(approve.approve)
app.command("deny")(approve.deny)
app.command("web", short_help="All of it on a page in your browser.")(web.web)
app.command("log", cls=log.LogCommand, short_help="What was done, who decided; --verify checks it.")(log.log)
app.command("show", short_help="One action, from beginning to end.")(show.show)
app.command("undo")(history.undo)
app.command("redo", short_help="Do an undone action again.")(history.redo)
app.command("commit", short_help="Keep an action for good.")(history.commit)
app.command("task", short_help="Allow a list of things in one answer.")(task.task)
app.command("grants", short_help="What you have allowed.")(grants.list_grants)
app.command("revoke", short_help="Take grants back, at once.")(grants.revoke)
app.add_typer(agents.app, name="agents")
app.add_typer(rules.app, name="rules")
app.add_typer(pairs.app, name="undo-pairs")
app.add_typer(auth.app, name="auth")
app.add_typer(vault.app, name="vault")
app.add_typer(passkey.app, name="passkey")
app.add_typer(db.app, name="db")
app.add_typer(daemon.app, name="daemon")
app.add_typer(catalog.app, name="catalog")
app.add_typer(mcp.app, name="mcp")
app.command("hook", short_help="Answer a coding agent's hook by what your rules say.")(hook.run)
app.command("connect", short_help="Connect a coding agent.")(coding_agents.run)
app.add_typer(images.app, name="images")
app.add_typer(eval.app, name="eval")
app.command("notify", short_help="Ask on your desktop.")(notifier.run)
app.command("doctor", short_help="What is missing, and what mends it.")(doctor.run)


def named(arguments: Sequence[str]) -> typer.Typer:
    """The command for these arguments. Each command costs milliseconds to make, so that only the one that they name
    is."""
    name = next((argument for argument in arguments if not argument.startswith("-")), "")
    commands = [one for one in app.registered_commands if one.name == name]
    groups = [one for one in app.registered_groups if one.name == name]
    made = copy.copy(app)
    if commands or groups:
        made.registered_commands, made.registered_groups = commands, groups
    return made


def main() -> None:
    """The console script."""
    named(sys.argv[1:])()


if __name__ == "__main__":
    main()
