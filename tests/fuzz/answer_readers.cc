// Readers of what commands wrote earlier, of what is rented, and of texts of options.
#include <cmath>
#include <string>

#include "cli/check/run_store.h"
#include "cli/comparing/side.h"
#include "cli/proving/pair.h"
#include "cli/recommending/amounts.h"
#include "cli/validation/baseline.h"
#include "cost/carbon.h"
#include "cost/interruptions.h"
#include "cost/prices.h"
#include "models/store/graph.h"
#include "profiler/ingest/comm_groups.h"
#include "profiler/replay/edit.h"
#include "profiler/replay/overlap.h"
#include "sim/cluster/point_to_point.h"
#include "sim/work/journal.h"
#include "tests/fuzz/errors.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/readers.h"

namespace rehearse::fuzz {
namespace {

void check_link(const cluster::PointToPoint& link) {
  REHEARSE_CHECK(link.latency >= Seconds::s(0) && link.latency <= Seconds::s(1), "{} s",
                 link.latency.s());
  REHEARSE_CHECK(link.rate > ByteRate::bytes_per_s(0) && std::isfinite(link.rate.bytes_per_s()));
}

/// A text of an option knows of no file.
template <class Read>
void option(Read read, std::string_view text) {
  if (const auto parsed = read(text); !parsed) check_error_without_file(parsed.error());
}

}  // namespace

void comm_groups(std::string_view bytes) {
  const Result<ingest::CommGroups> read = ingest::parse_comm_groups(bytes, kName);
  if (!read) return check_error(read.error());
  for (const auto& [name, sets] : *read)
    for (const auto& ranks : sets) REHEARSE_CHECK(!ranks.empty(), "{} has an empty set", name);
}

void edits(std::string_view bytes) {
  option(replay::parse_scale, bytes);
  option(replay::parse_timed, bytes);
  option(replay::parse_maybe_timed, bytes);
  option(replay::parse_straggler, bytes);
  option(replay::parse_own_stream, bytes);
  option(cli::parse_target, bytes);
  option(cli::parse_carbon, bytes);
  const auto pipeline = replay::parse_input_pipeline(bytes);
  if (pipeline)
    REHEARSE_CHECK(pipeline->workers >= 1 && pipeline->prefetch >= 1);
  else
    check_error_without_file(pipeline.error());
  const auto link = cluster::parse_link(bytes);
  if (link)
    check_link(*link);
  else
    check_error_without_file(link.error());
}

void graph(std::string_view bytes) {
  const Result<store::Neighbours> read = store::recorded_graph(bytes, kName);
  if (!read) return check_error(read.error());
  REHEARSE_CHECK(read->edges() <= store::kMostEdges);
  for (store::Key node = 0; node < read->keys(); ++node)
    for (std::uint32_t j = 0; j < read->degree(node); ++j)
      REHEARSE_CHECK(read->of(node, j) < read->keys());
}

void history(std::string_view bytes) {
  const MemoryFile file(bytes);
  if (!cli::is_run_store(file.path())) return;
  const Result<std::vector<cli::KeptRun>> runs = cli::read_runs(file.path());
  if (!runs) return check_error(runs.error());
  for (const cli::KeptRun& kept : *runs)
    REHEARSE_CHECK(kept.level > 0 && std::isfinite(kept.level) && kept.allowed >= 0);
}

void journal(std::string_view bytes) {
  const MemoryFile file(bytes);
  const Result<work::Journal> opened = work::Journal::open(file.path(), "key", "squares");
  if (!opened) return check_error(opened.error());
  REHEARSE_CHECK(opened->held("squares").size() <= opened->size());
}

void link(std::string_view bytes) {
  const MemoryFile file(bytes);
  const Result<cluster::PointToPoint> read = cluster::load_link(file.path());
  if (!read) return check_error(read.error());
  check_link(*read);
}

void pair(std::string_view bytes) {
  const MemoryFile file(bytes);
  const Result<cli::Pair> read = cli::read_pair(file.path());
  if (!read) return check_error(read.error());
  REHEARSE_CHECK(read->limit > Seconds::s(0) && read->step.mark_count() == 1);
  if (const auto time = cli::stated_step(*read, "mean step 8.5 ms\n"); time)
    REHEARSE_CHECK(std::isfinite(time->s()));
}

void rented(std::string_view bytes) {
  if (const auto prices = cost::PriceBook::over_shipped(bytes, kName); !prices)
    check_error(prices.error());
  if (const auto hours = cost::CarbonHours::parse(bytes, kName); !hours) check_error(hours.error());
  const auto lives = cost::parse_lifetimes(bytes, kName);
  if (!lives) return check_error(lives.error());
  if (const auto between = cost::mean_time_between(*lives))
    REHEARSE_CHECK(between->value > Seconds::s(0) && std::isfinite(between->value.s()), "{} s",
                   between->value.s());
}

void saved(std::string_view bytes) {
  const MemoryFile file(bytes);
  if (const auto suites = cli::read_baseline(file.path()); !suites) check_error(suites.error());
  const Result<cli::Side> side = cli::read_side(file.path());
  if (!side) return check_error(side.error());
  if (const auto ratio = cli::speedup(*side, *side))
    REHEARSE_CHECK(std::isfinite(ratio->ratio.value) && ratio->ratio.low <= ratio->ratio.high, "{}",
                   ratio->ratio.value);
}

}  // namespace rehearse::fuzz
