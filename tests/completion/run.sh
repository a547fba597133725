#!/bin/sh
# Runs in_shell.py; ends with 77, and says why, where something that is needed is missing.
# usage: run.sh SHELL PROGRAM
command -v python3 >/dev/null || {
  echo "skipped: no python3"
  exit 77
}
exec python3 "$(dirname "$0")/in_shell.py" "$@"
