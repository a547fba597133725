"""Runs the program. A run is a process of its own: a failure of the simulator does not end the interpreter, and other
threads of Python go on meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Mapping, Sequence, TypeVar, Union

from ._errors import Error, InputError, InternalError, UsageError
from ._values import Quantity, Result, fields_of

PROGRAM = Path(__file__).parent / "program" / "bin" / "rehearse"

#: What a word of a command line is made from. A quantity has its unit.
Word = Union[str, bytes, int, float, os.PathLike[str], Quantity]


def word(value: Word) -> str:
    if isinstance(value, Quantity):
        return f"{value.value!r}{value.unit}"
    return os.fsdecode(value) if isinstance(value, (bytes, os.PathLike)) else str(value)


def option_words(name: str, value: Any) -> list[str]:
    """An option as it is on a command line: repeated for a list, absent for None and False."""
    if value is None or value is False:
        return []
    if value is True:
        return [f"--{name}"]
    if isinstance(value, (list, tuple)):
        return [text for each in value for text in option_words(name, each)]
    return [f"--{name}={word(value)}"]


R = TypeVar("R", bound=Result)


def run(command: str, places: Sequence[Word | None], options: Mapping[str, Any], kind: type[R]) -> R:
    """Runs a command. Raises an Error if it fails without a result; a check that failed has one."""
    words = command.split()
    for name, value in options.items():
        words += option_words(name, value)
    given = [word(place) for place in places if place is not None]
    with tempfile.TemporaryDirectory(prefix="rehearse-") as scratch:
        written = Path(scratch) / "result.json"
        code, screen, messages = ended([*words, f"--json={written}", *(["--", *given] if given else [])])
        document = json.loads(written.read_bytes()) if written.exists() else {}
    if code < 0:
        raise Error(f"the program was ended by {signal.Signals(-code).name}")
    if "errors" in document:
        raise InputError(document["errors"])
    if code == 2:
        raise UsageError(without_name(messages))
    if code == 3:
        raise InternalError(without_name(messages))
    if code != 0 and not document:
        text = without_name(messages) or f"ended with {code}"
        raise InputError([{"problem": text, "message": text}])
    return kind(fields_of(document, kind), screen, [line.removeprefix("warning: ") for line in messages.splitlines() if line])


def ended(words: list[str]) -> tuple[int, str, str]:
    """The exit code of the program, and what it printed. An interrupt stops it first."""
    process = subprocess.Popen([os.fspath(PROGRAM), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace")
    with process:
        while True:
            try:
                screen, messages = process.communicate(timeout=0.1)
                return process.returncode, screen, messages
            except subprocess.TimeoutExpired:
                pass  # in short waits, because an interrupt lets a wait of up to 0.25 s end first
            except BaseException:
                process.terminate()  # on which it removes unfinished files, and ends within 0.7 s
                process.wait()
                raise


def without_name(messages: str) -> str:
    return "\n".join(line.removeprefix("rehearse: ") for line in messages.strip().splitlines())


def main() -> None:
    """The program itself, as the command `rehearse`."""
    os.execv(PROGRAM, [os.fspath(PROGRAM), *sys.argv[1:]])
