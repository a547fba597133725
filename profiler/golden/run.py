"""Starting programs with and without the capture library, for record-golden."""

import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
INJECTIONS = ("NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH", "NCCL_PROFILER_PLUGIN")


class Failed(Exception):
    """What an item says when it failed, in one line."""


class Skipped(Exception):
    """What an item says when this machine lacks what it needs."""


def _json_lines(text):
    """The lines that are whole documents; one that was cut off is none."""
    lines = []
    for line in text.splitlines():
        if line.startswith("{") and line.endswith("}"):
            lines.append(json.loads(line))
    return lines


class Runner:
    def __init__(self, out, library, mock):
        self.out, self.library, self.mock = out, library, mock
        self.python = sys.executable

    def _environment(self, variables):
        environment = {k: v for k, v in os.environ.items() if k not in INJECTIONS}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        if self.mock:  # a driver, a CUPTI and a PyTorch that are not there
            environment["LD_LIBRARY_PATH"] = str(self.mock)
            environment["REHEARSE_CUPTI"] = str(self.mock / "libcupti.so.13")
            environment["PYTHONPATH"] = str(ROOT / "tests" / "mock_torch")
        for name, value in variables.items():
            if name == "PYTHONPATH" and environment.get(name):
                value = f"{value}:{environment[name]}"
            environment[name] = value
        return environment

    def run(self, words, timeout, variables=None, code=0):
        """The JSON lines that a Python script of this folder printed, with its exit code."""
        command = [self.python, str(HERE / words[0]), *map(str, words[1:])]
        try:
            done = subprocess.run(
                command,
                env=self._environment(variables or {}),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                timeout=max(1, timeout),
            )
        except subprocess.TimeoutExpired as late:
            said = late.stdout or ""
            error = Failed(f"{words[0]} did not end within {late.timeout:.0f} s")
            error.lines = _json_lines(said if isinstance(said, str) else said.decode())
            raise error from None
        lines = _json_lines(done.stdout)
        if code is not None and done.returncode != code:
            said = (done.stderr.strip().splitlines() or ["no word of why"])[-1]
            error = Failed(f"{words[0]} ended with {done.returncode}: {said[:200]}")
            error.lines = lines
            raise error
        return lines

    def record(self, folder, words, timeout, options="", hook=False, code=0):
        """The same under the capture library, into an empty folder."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        variables = {name: str(self.library) for name in INJECTIONS}
        variables["REHEARSE_CAPTURE_DIR"] = str(folder)
        variables["REHEARSE_CAPTURE_OPTIONS"] = options
        if hook:
            variables["PYTHONPATH"] = str(ROOT / "profiler" / "capture" / "python")
        return self.run(words, timeout, variables, code)

    def ns_per_range(self):
        measure = ctypes.CDLL(str(self.library)).rehearse_capture_ns_per_range
        measure.restype = ctypes.c_double
        return measure()


def build_library(out):
    """Builds the capture library, which needs a C++ compiler and CMake alone."""
    if shutil.which("cmake") is None:
        raise Failed("cmake is not there: give a library that is built, by --library")
    build = out / "build"
    steps = (
        ["cmake", "-S", str(ROOT / "profiler" / "capture"), "-B", str(build)],
        ["cmake", "--build", str(build), "--parallel", "4"],
    )
    for command in steps:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise Failed("the capture library does not build: " + done.stdout.strip()[-400:])
    return build / "librehearse_capture.so"
