#!/bin/sh
# Installs the Python package with the built program into an empty environment, and tests it there; ends with 77, and
# says why, where something that is needed is missing.
# usage: run.sh SOURCE_DIR BUILD_DIR
set -eu
python=
for each in /usr/bin/python3 python3; do # Debian's has Debian's packages
  "$each" -c 'import pip, venv' 2>/dev/null && python=$each && break
done
[ -n "$python" ] || {
  echo "skipped: no python3 with pip and venv (apt install python3-pip python3-venv)"
  exit 77
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" -m venv --system-site-packages --without-pip "$scratch/env"
PATH=$scratch/env/bin:$PATH
cd "$scratch" # so that only the installed package can be imported
REHEARSE_BUILD=$2 python3 -m pip install --quiet --no-index --no-cache-dir "$1"
REHEARSE_SOURCE=$1 python3 -B -m unittest discover -s "$1/tests/python"
