"""What a command can fail with. The program's exit codes decide which (docs/exit-codes.md)."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """A command failed. The text is what the command prints."""


class InputError(Error):
    """The input is wrong. The attributes are the parts of the first message, and None where it has no such part;
    `errors` has the parts of all messages."""

    def __init__(self, errors: list[dict[str, Any]]):
        super().__init__("\n".join(each["message"] for each in errors))
        self.errors = errors
        first = errors[0]
        self.file: str | None = first.get("file")
        self.line: int | None = first.get("line")
        self.column: int | None = first.get("column")
        self.key: str | None = first.get("key")
        self.problem: str = first["problem"]
        self.expected: str | None = first.get("expected")
        self.nearest: str | None = first.get("nearest")

    def __reduce__(self) -> Any:
        return InputError, (self.errors,)


class UsageError(Error):
    """An option has a value that cannot be read, or options contradict each other."""


class InternalError(Error):
    """An error of the program itself; please report it."""
