// Readers of what feeds jobs: key streams, input pipelines, studies of them; and of dataflows.
#include <cmath>
#include <string>

#include "cli/study/study.h"
#include "models/dataflow/read_dataflow.h"
#include "models/input/limits.h"
#include "models/input/lower.h"
#include "models/input/read_pipeline.h"
#include "models/input/simulate.h"
#include "models/store/cache.h"
#include "tests/fuzz/errors.h"
#include "tests/fuzz/readers.h"

namespace rehearse::fuzz {
namespace {

/// Whether no number in it has more than three digits, or an exponent.
bool has_small_numbers(std::string_view text) {
  std::size_t digits = 0;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      if (++digits > 3) return false;
      continue;
    }
    if (digits > 0 && (c == 'e' || c == 'E')) return false;
    if (c != '.' && c != '_') digits = 0;
  }
  return true;
}

}  // namespace

void keys(std::string_view bytes) {
  const Result<store::KeyStream> stream = store::recorded_keys(bytes, kName);
  if (!stream) return check_error(stream.error());
  REHEARSE_CHECK(!stream->ends.empty() && stream->ends.back() == stream->accesses.size());
  const Result<store::Traffic> least =
      store::run(*stream, {.policy = store::Policy::kNextUse, .capacity = 3});
  const Result<store::Traffic> lru = store::run(*stream, {.capacity = 3});
  REHEARSE_CHECK(least && lru && least->misses() <= lru->misses());
}

void pipeline(std::string_view bytes) {
  const Result<YamlFile> file = YamlFile::parse(std::string(bytes), kName);
  if (!file) return check_error(file.error());
  const YamlMap root = file->root();
  const input::Pipeline read = input::read_pipeline(root);
  root.no_other_keys();
  if (Status ok = file->status(); !ok) return check_error(ok.error());
  std::uint64_t in_hand = 0;
  for (const input::Stage& stage : read.stages)
    in_hand += (stage.slots() + stage.room()) * stage.batch + stage.shuffle;
  for (const input::Limit& limit : input::limits_of(read))
    REHEARSE_CHECK(limit.units_per_s > 0 && std::isfinite(limit.units_per_s));
  // What takes long is for the bounds of the simulation, not for this.
  if (in_hand > 500 || input::ops_of(read, 1) > 500) return;
  const Result<input::Flow> flow = input::simulate(read);
  if (!flow) return check_error_without_file(flow.error());
  REHEARSE_CHECK(flow->units_per_s.value > 0 && std::isfinite(flow->units_per_s.value));
}

void dataflow(std::string_view bytes) {
  const Result<YamlFile> file = YamlFile::parse(std::string(bytes), kName);
  if (!file) return check_error(file.error());
  const Result<dataflow::DataflowJob> read = dataflow::read_dataflow(file->root(), "/none");
  if (!read) return check_error(read.error());
  const Result<dataflow::Run> run = dataflow::run(read->flow, read->device, read->host);
  REHEARSE_CHECK(run.has_value());
  const auto is_plain = [](double value) { return value >= 0 && std::isfinite(value); };
  REHEARSE_CHECK(is_plain(run->time.low.s()) && is_plain(run->time.high.s()));
  REHEARSE_CHECK(is_plain(run->peak.value.b()) && is_plain(run->flops().flop()));
  for (const dataflow::Kernel& kernel : run->kernels)
    REHEARSE_CHECK(kernel.live <= run->parts.live() && is_plain(kernel.bytes.b()));
}

void study(std::string_view bytes) {
  const Result<cli::Study> read = cli::read_study(kName, std::string(bytes));
  if (!read) return check_error(read.error());
  const std::vector<cli::Setting> points = cli::points_of(*read);
  REHEARSE_CHECK(!points.empty() && !read->measures.empty() && !read->expectations.empty());
  if (!has_small_numbers(bytes)) return;
  const YamlFill fill = [&](const std::string& text) { return cli::fill_in(text, points.front()); };
  const auto unpriced = [](const std::string&, const cli::Setting&) -> Result<double> {
    return fail("no part of a study is priced here");
  };
  cli::KnownRuns<cli::SharedFeedRun> known;
  cli::FeedValues values(read->feeds, fill,
                         {{}, step::Fidelity::kClosed, {points.front(), unpriced}}, known);
  for (const cli::FeedTemplate& feed : read->feeds) {
    // The functions that take little time, one per kind; pipelines are only read.
    for (const std::string_view function : {"hit_ratio", "cut", "memory_share", "cycles",
                                            "estimate_error", "makespan", "slice_time"}) {
      if (!*cli::feed_unit(read->feeds, function, feed.name)) continue;
      const Result<cli::Term> value = *values.value(function, feed.name);
      if (!value) {
        check_error_without_file(value.error());
        continue;
      }
      const double number = value->estimate.value;
      const bool share = function == "hit_ratio" || function == "cut";
      REHEARSE_CHECK(number >= 0 && std::isfinite(number) && (!share || number <= 1), "{} of {}",
                     number, feed.name);
    }
    if (*cli::feed_unit(read->feeds, "rate", feed.name))
      input::read_pipeline(feed.sections.filled(fill));
  }
}

}  // namespace rehearse::fuzz
