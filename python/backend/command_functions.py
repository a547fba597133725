"""Writes the module with a function per command, from `rehearse help --format json`.

The one rule: a command `bench-gpu` is the function `bench_gpu`, an option `--data-parallel N` the keyword
`data_parallel`, and words without an option are positional. A name that Python reserves ends in `_`."""

import keyword
import re

# The package shows results by itself, and these decide how the program would.
WITHOUT = {"help", "version", "format", "json", "progress", "no-color"}

HEAD = '''"""The commands of the program as functions, written from its own help."""

from __future__ import annotations

from typing import Sequence

from ._program import Word, run
from ._values import Result
from .results import {classes}

__all__ = {names}
'''


def python_name(name):
    name = name.lower().replace("-", "_").replace(" ", "_")
    return name + "_" if keyword.iskeyword(name) else name


def parameter(option):
    name = python_name(option["name"])
    if "value" not in option:
        return f"{name}: bool = False"
    if option["positional"] and option["repeated"]:
        return f"*{name}: Word"
    kind = "Word | Sequence[Word]" if option["repeated"] else "Word"
    return f"{name}: {kind}" + ("" if option["required"] else " | None = None")


def class_of(command, classes):
    """Of the result of a command; `calibrate nccl` and `calibrate job` have one."""
    words = [word.capitalize() for word in command.replace("-", " ").split()]
    return next((name for name in ("".join(words) + "Result", words[0] + "Result") if name in classes), "Result")


def function_text(command, options_of_all, classes):
    own = [o for o in command["options"] if o["name"] not in WITHOUT]
    given = {o["name"] for o in own}
    options = own + [o for o in options_of_all if o["name"] not in WITHOUT | given]
    places = [o for o in options if o["positional"]]
    named = [o for o in options if not o["positional"]]
    parameters = [parameter(o) for o in places]
    if not any(p.startswith("*") for p in parameters):
        parameters.append("*")
    parameters += [parameter(o) for o in named]
    lines = [command["meaning"] + ".", ""]
    for option in options:
        value = f" ({option['value']})" if option.get("value") else ""
        lines.append(f"{python_name(option['name'])}{value}: {option['meaning']}")
    lines += ["", "On a command line:"] + ["  " + line for line in command["examples"].splitlines()]
    doc = "\n".join("    " + line if line else "" for line in lines).strip().replace("\\", "\\\\").replace('"', '\\"')
    words = "".join(
        ("*" if o["repeated"] else "") + python_name(o["name"]) + ", " for o in places)
    keywords = ", ".join(f"{o['name']!r}: {python_name(o['name'])}" for o in named)
    arguments = ",\n        ".join(parameters)
    kind = class_of(command["name"], classes)
    return (f"\n\ndef {python_name(command['name'])}(\n        {arguments}) -> {kind}:\n"
            f'    """{doc}\n    """\n'
            f"    return run({command['name']!r}, ({words}), {{{keywords}}}, {kind})\n")


def module_text(help_document, results):
    """The functions of the commands; `results` is the text of the module with their classes."""
    commands = help_document["commands"]
    names = [python_name(command["name"]) for command in commands]
    classes = re.findall(r"^class (\w+)\(Result\)", results, re.MULTILINE)
    return HEAD.format(names=names, classes=", ".join(classes)) + "".join(
        function_text(command, help_document["options"], classes) for command in commands)
