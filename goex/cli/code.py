"""What the options of `goex exec` say of a program for services."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from goex.cli.input_text import read_text
from policies.actions import LANGUAGES
from policies.errors import InvalidInput

if TYPE_CHECKING:
    from goex.rpc import goex_pb2 as pb

_ENDINGS = {".sh": "shell", ".bash": "shell", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript"}


@dataclass(frozen=True, slots=True)
class Program:
    """A program from a file, or an earlier one once more (`again`: its action)."""

    file: Path | None = None
    again: str = ""
    language: str = ""
    services: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    profile: str = ""

    def __bool__(self) -> bool:
        return self.file is not None or bool(self.again)

    def check(self, *, words: bool) -> None:
        """Raises InvalidInput for options that don't belong together."""
        if self.file is not None and self.again:
            raise InvalidInput("--code and --again exclude each other.", next_step="Leave one out.")
        if self.services and not (self or words):
            raise InvalidInput(
                "--service belongs to --code, --again or words.",
                next_step="For example: goex exec --code report.py --service slack",
            )
        if self.methods and not self:
            raise InvalidInput(
                "--method belongs to --code and --again.", next_step="For a call of its own: goex exec --call METHOD …"
            )
        if (self.language or self.profile) and self.file is None:
            raise InvalidInput("--language and --profile belong to --code.", next_step="Leave them out.")
        if self.language not in ("", *LANGUAGES):
            raise InvalidInput(
                f"{self.language[:40]!r} isn't a language that code runs in.",
                next_step=f"These are: {', '.join(LANGUAGES)}.",
            )

    def request(self) -> pb.ExecuteRequest:
        """Raises InvalidInput for a file that can't be read."""
        from goex.rpc import goex_pb2 as pb

        code = pb.CodeProgram(services=self.services, methods=self.methods, profile=self.profile, again=self.again)
        if self.file is not None:
            code.program = read_text(self.file, "The program")
            code.language = self.language or _ENDINGS.get(self.file.suffix, "python")
        return pb.ExecuteRequest(code=code)
