"""Types words and the tab key into an interactive shell, and checks the words with which it then runs the program.

usage: in_shell.py SHELL PROGRAM; ends with 77, and says why, where the shell is absent."""

import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
LOAD = {
    "bash": "PS1='$ '; . ./script",
    "zsh": "PS1='$ '; autoload -U compinit; compinit -u -D; . ./script",
    "fish": "source ./script",
}
# What is typed before the tab key, and the words of the command line that runs.
CASES = [
    ("rehearse repl", ["replay"]),
    ("rehearse replay --residu", ["replay", "--residuals"]),
    ("rehearse simulate --device h100_sxm5_8", ["simulate", "--device", "h100_sxm5_80"]),
    ("rehearse simulate --device=h100_sxm5_8", ["simulate", "--device=h100_sxm5_80"]),
    ("rehearse simulate --model llama3_70", ["simulate", "--model", "llama3_70b"]),
    ("rehearse replay record", ["replay", "recording.json"]),
    ("rehearse replay a\\ fi", ["replay", "a file.json"]),
]


def drained(terminal, quiet):
    """What the shell shows until it shows nothing for this many seconds."""
    shown = b""
    while select.select([terminal], [], [], quiet)[0]:
        try:
            shown += os.read(terminal, 65536)
        except OSError:  # the shell ended
            break
    return shown.decode("utf-8", "replace")


def words_after(terminal, typed, ran):
    """The words with which the program runs once the line is entered, and what the shell showed."""
    ran.unlink(missing_ok=True)
    os.write(terminal, typed.encode())
    shown = drained(terminal, 1.5)
    os.write(terminal, b"\r")
    end = time.monotonic() + 20
    while not ran.exists() and time.monotonic() < end:
        shown += drained(terminal, 0.1)
    return (ran.read_text().splitlines() if ran.exists() else None), shown


def main():
    shell, program = sys.argv[1:]
    if not shutil.which(shell):
        print(f"skipped: no {shell}")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ran = folder / "ran"
        for file in ("recording.json", "a file.json"):
            (folder / file).touch()
        (folder / "script").write_bytes(subprocess.run([program, "completion", shell], check=True,
                                                       stdout=subprocess.PIPE).stdout)
        (folder / "bin").mkdir()
        stand_in = folder / "bin" / "rehearse"  # notes its words, and asks the program for completions
        stand_in.write_text(f'#!/bin/sh\n[ "$1" != completion ] || exec "{program}" "$@"\n'
                            f'printf "%s\\n" "$@" >"{ran}.new"; mv "{ran}.new" "{ran}"\n')
        stand_in.chmod(0o755)
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(folder)
            os.execvpe(shell, START[shell], {**os.environ, "HOME": name, "XDG_CONFIG_HOME": name, "XDG_DATA_HOME": name,
                                             "TERM": "xterm", "LC_ALL": "C.UTF-8",
                                             "PATH": f"{folder}/bin:{os.environ['PATH']}"})
        failed = 0
        drained(terminal, 1)
        os.write(terminal, (LOAD[shell] + "\r").encode())
        for typed, expected in [("rehearse ready", ["ready"])] + [(typed + "\t", words) for typed, words in CASES]:
            words, shown = words_after(terminal, typed, ran)
            if words != expected:
                failed += 1
                print(f"{shell}: {typed!r} ran {words}, not {expected}; shown: {shown!r}")
        os.close(terminal)
        os.waitpid(process, 0)
        return 1 if failed else 0


sys.exit(main())
