#!/bin/sh
# Tests the page of the report, the live page, or whether the page is what its sources build; ends with 77, and says why,
# where something that is needed is missing.
# usage: report.sh SOURCE_DIR PROGRAM page|live|bundle [--update]
web=$1/cli/report/web
skip() { echo "skipped: $1"; exit 77; }
command -v node >/dev/null || skip "no node (apt install nodejs npm)"
[ -d "$web/node_modules/esbuild" ] || skip "no packages: npm ci in cli/report/web"
if [ "$3" = page ]; then exec node "$web/test/run.mjs" "$2" $4; fi
if [ "$3" = live ]; then exec node "$web/test/live.mjs" "$2"; fi
built=$(mktemp)
trap 'rm -f "$built"' EXIT
node "$web/build.mjs" "$built" || exit 1
cmp "$built" "$1/cli/report/page.html" || {
  echo "cli/report/page.html is not what its sources build: npm run build in cli/report/web"
  exit 1
}
