#include "tests/validation/studies/framework_calls.h"

#include <array>
#include <utility>

namespace rehearse::cli {

namespace fs = std::filesystem;
using comm::MeasuredRow;

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
  std::vector<comm::TimedCall> calls;
  comm::Fitted about{.rows_used = "every second size of each curve; the others are left out",
                     .date = "2026-08"};
  for (const FrameworkCalls& source : sources) {
    about.source += (about.source.empty() ? "" : "; ") + source.name;
    std::array<double, comm::kBands> rows{};
    for (const MeasuredRow& r : source.fitted) ++rows[comm::band_of(r.size.b())];
    for (const MeasuredRow& r : source.fitted) {
      const Result<comm::CollectiveCost> cost =
          comm::CollectiveCost::resolve({.calibration = a100}, {.kind = r.kind, .ranks = r.ranks});
      if (!cost) return forward(cost);
      calls.push_back(
          {r, Seconds::s(cost->seconds(r.size.b())), 1 / rows[comm::band_of(r.size.b())]});
    }
  }
  return comm::fit_framework_timing(std::move(about), calls);
}

}  // namespace rehearse::cli
