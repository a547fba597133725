"""Builds the wheel of `pip install .` (PEP 517): the package, the functions that are written from the program's own
help, and the program with its files.

A wheel is a zip archive with three text files, so that no other package is needed to build one. The program is built
in build/release, where ./quickstart and ./test build it too. The variable REHEARSE_BUILD names another build folder,
whose program is taken as it is."""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
import zipfile
from pathlib import Path

import command_functions

SOURCE = Path(__file__).parents[2]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel into the folder, and returns its name."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        package = root / "rehearse"
        shutil.copytree(SOURCE / "python" / "rehearse", package, ignore=shutil.ignore_patterns("__pycache__"))
        program = install_program(package / "program")
        help_json = subprocess.run([program, "help", "--format", "json"], check=True, stdout=subprocess.PIPE).stdout
        functions = command_functions.module_text(json.loads(help_json), (package / "results.py").read_text("utf-8"))
        (package / "_commands.py").write_text(functions, "utf-8")
        version = subprocess.run([program, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()[1]
        tag = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
        write_metadata(root / f"rehearse-{version}.dist-info", version, tag)
        name = f"rehearse-{version}-{tag}.whl"
        write_archive(root, root / f"rehearse-{version}.dist-info" / "RECORD", Path(wheel_directory) / name)
        return name


def install_program(folder):
    """Installs the program and its files into the folder; returns the program."""
    build = os.environ.get("REHEARSE_BUILD")
    if not build:
        build = SOURCE / "build" / "release"
        subprocess.run(["cmake", "--preset", "release"], cwd=SOURCE, check=True)
        subprocess.run(["cmake", "--build", build, "--target", "rehearse"], check=True)
    subprocess.run(["cmake", "--install", build, "--prefix", folder, "--strip"], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(folder / "share")  # manual pages and completions, which no shell looks for here
    return folder / "bin" / "rehearse"


def write_metadata(folder, version, tag):
    folder.mkdir()
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: rehearse\nVersion: {version}\n"
        "Summary: Simulator of machine-learning jobs from recordings or descriptions\n"
        "License: Apache-2.0\nRequires-Python: >=3.9\n")
    (folder / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: rehearse\nRoot-Is-Purelib: false\nTag: {tag}\n")
    (folder / "entry_points.txt").write_text("[console_scripts]\nrehearse = rehearse._program:main\n")
    shutil.copy(SOURCE / "LICENSE", folder)


def write_archive(root, record, archive):
    """Packs all files below the root. The record has the digest of each, and comes last."""
    lines = []
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as wheel:

        def add(path):
            name, content = path.relative_to(root).as_posix(), path.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            lines.append(f"{name},sha256={digest},{len(content)}\n")
            entry = zipfile.ZipInfo(name)  # of a fixed date: the same files give the same wheel
            entry.external_attr = path.stat().st_mode << 16
            wheel.writestr(entry, content, zipfile.ZIP_DEFLATED)

        for path in sorted(p for p in root.rglob("*") if p.is_file()):
            add(path)
        record.write_text("".join(lines) + f"{record.relative_to(root).as_posix()},,\n")
        add(record)
