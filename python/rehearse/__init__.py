"""Rehearse simulates machine-learning jobs from recordings or from a description.

Every command of the program `rehearse` is a function here, with its options as keywords. See docs/python.md."""

from . import _commands, results
from ._commands import *  # noqa: F403
from ._errors import Error, InputError, InternalError, UsageError
from ._profiler import on_trace_ready
from ._values import Fields, Quantity, Result, Table

__all__ = ["Error", "Fields", "InputError", "InternalError", "Quantity", "Result", "Table", "UsageError",
           "on_trace_ready", "results"]
__all__ += _commands.__all__
