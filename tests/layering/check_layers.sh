#!/bin/sh
# Fails on an include that docs/architecture.md forbids.
# usage: check_layers.sh ROOT
root=$1
cd "$root" || exit 2
find sim profiler models strategies cost cli -name '*.h' -o -name '*.cc' 2>/dev/null | sort | xargs awk '
BEGIN {
  # module: modules it may include besides itself
  may["sim/base"] = ""
  may["sim/graph"] = "sim/base"
  may["sim/program"] = "sim/base sim/graph"
  may["sim/cluster"] = "sim/base"
  may["sim/engine"] = "sim/base sim/graph"
  may["sim/fleet"] = "sim/base"
  may["sim/serving"] = "sim/base"
  may["sim/sqlite"] = "sim/base"
  may["sim/work"] = "sim/base sim/sqlite"
  may["models/comm"] = "sim/base sim/graph sim/cluster"
  may["cost"] = "sim/base sim/cluster"
  may["models/control"] = "sim/base"
  may["models/flow"] = "sim/base"
  may["models/host"] = "sim/base"
  may["models/job"] = "sim/base sim/graph sim/program sim/cluster models/comm"
  may["models/workload"] = "sim/base profiler/trace profiler/replay"
  may["models/compute"] = "sim/base sim/cluster models/workload"
  may["models/memory"] = "sim/base sim/cluster models/workload"
  may["models/dataflow"] = "sim/base sim/cluster models/workload models/compute models/memory"
  may["models/serving"] = "sim/base sim/cluster sim/serving models/workload models/compute models/memory"
  may["strategies"] = "sim/base sim/graph sim/program models/host models/workload"
  may["models/sharing"] = "sim/base sim/graph sim/program sim/cluster sim/engine sim/fleet models/comm"
  may["models/store"] = "sim/base sim/graph sim/program"
  may["models/input"] = "sim/base sim/graph sim/program sim/cluster sim/engine models/store"
  may["strategies/step"] = "sim/base sim/graph sim/program sim/cluster sim/engine models/comm models/host models/job models/workload" \
                       " models/compute models/memory strategies"
  may["profiler/trace"] = "sim/base sim/sqlite"
  may["profiler/ingest"] = "sim/base sim/graph sim/program sim/sqlite profiler/trace profiler/capture"
  may["profiler/replay"] = "sim/base sim/graph sim/program profiler/trace"
  may["profiler/compare"] = "sim/base sim/graph profiler/trace profiler/replay"
  may["profiler/capture"] = ""
  may["profiler/launch"] = "sim/base profiler/capture"
  may["profiler/bench"] = "sim/base profiler/trace"
  may["profiler/loading"] = "sim/base"
  may["cli"] = "sim/base sim/graph sim/program sim/cluster sim/engine models/comm models/host models/job" \
               " models/workload models/compute models/memory models/sharing strategies/step strategies cost profiler/trace" \
               " profiler/ingest profiler/replay profiler/capture profiler/launch profiler/bench profiler/loading sim/fleet sim/sqlite sim/work" \
               " profiler/compare models/control models/dataflow models/flow models/input models/store sim/serving models/serving"
  # Folders, the lowest first: none includes one above it, whatever the table says, so no two include
  # each other.
  count = split("sim profiler models strategies cost cli", folders, " ")
  for (i = 1; i <= count; ++i) height[folders[i]] = i
  for (module in may) {
    count = split(may[module], others, " ")
    for (i = 1; i <= count; ++i)
      if (height[folder_of(others[i])] > height[folder_of(module)]) {
        print "the table lets " module " include " others[i] ", which is in a folder above"
        bad = 1
      }
  }
  # third-party header: modules whose sources may include it; fmt and tl::expected are everywhere
  owner["yaml-cpp"] = "sim/base"
  owner["boost"] = "sim/base cli"
  owner["sqlite3.h"] = "sim/sqlite sim/work profiler/trace"
  owner["simdjson.h"] = "profiler/ingest"
  owner["zlib.h"] = "profiler/ingest"
  owner["google"] = "profiler/ingest"
  owner["nlohmann"] = "cli"
  owner["CLI"] = "cli"
  owner["simgrid"] = "sim/engine"
  owner["mpi.h"] = "sim/work"
  owner["jpeglib.h"] = "profiler/loading"
  owner["catch2"] = ""
  owner["oneapi"] = "strategies"
  owner["coin"] = "models/input"
  owner["Eigen"] = "models/comm models/compute models/sharing strategies/step"
}
function folder_of(path,   parts) {
  split(path, parts, "/")
  return parts[1]
}
function module_of(path,   parts, two) {
  split(path, parts, "/")
  two = parts[1] "/" parts[2]
  if (two in may) return two
  return (parts[1] in may) ? parts[1] : ""
}
function complain(why) { print FILENAME ":" FNR ": " why; bad = 1 }
FNR == 1 {
  module = module_of(FILENAME)
  if (module == "") complain("belongs to no module")
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
  split($0, quoted, "\"")
  other = module_of(quoted[2])
  if (other != "" && other != module && index(" " may[module] " ", " " other " ") == 0)
    complain(module " may not include " other)
}
/^[ \t]*#[ \t]*include[ \t]*</ {
  match($0, /<[^>]*>/)
  header = substr($0, RSTART + 1, RLENGTH - 2)
  first = header
  sub(/\/.*/, "", first)
  if (!(first in owner)) next
  if (index(" " owner[first] " ", " " module " ") == 0)
    complain(module " may not include " header)
  else if (FILENAME ~ /\.h$/ && header != "nlohmann/json_fwd.hpp" && FILENAME != "cli/commands/options.h")
    complain("a header may not include " header)
}
END { exit bad }
'
