"""The replay of a profile as soon as PyTorch has recorded it."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from ._commands import replay
from ._errors import Error
from .results import ReplayResult


class TraceHandler:
    """Replays each profile, and prints the result. `results` has the results."""

    def __init__(self, folder: str | os.PathLike[str] | None, options: dict[str, Any]):
        self.folder = folder
        self.options = options
        self.results: list[ReplayResult] = []
        self.count = 0

    def __call__(self, profile: Any) -> None:
        name = f"rank{os.environ.get('RANK', '0')}.{self.count}.json.gz"
        self.count += 1
        with tempfile.TemporaryDirectory(prefix="rehearse-") as scratch:
            folder = Path(self.folder or scratch)
            folder.mkdir(parents=True, exist_ok=True)
            profile.export_chrome_trace(str(folder / name))
            try:
                result = replay(folder / name, **self.options)
            except Error as error:  # the training goes on
                print(f"rehearse: {error}", file=sys.stderr)
                return
        self.results.append(result)
        print(result.screen)


def on_trace_ready(folder: str | os.PathLike[str] | None = None, **options: Any) -> TraceHandler:
    """A handler for `torch.profiler.profile(on_trace_ready=...)`: replays each profile when it ends, and prints the
    result. The traces stay in `folder`, as rankR.N.json.gz, if one is given. The options are those of `replay`. A
    profile that cannot be replayed gives a message, and no exception."""
    return TraceHandler(folder, options)
