// Slices of a partitioned GPU in a study: the law of a slice, fitted to steps on the whole GPU.
#include <fmt/core.h>

#include "cli/study/feed_runs.h"
#include "models/sharing/slice_law.h"
#include "sim/base/number.h"

namespace rehearse::cli {
namespace {

constexpr Seconds kShortest = Seconds::us(1), kLongestSlice = Seconds::s(1e6);

std::vector<sharing::SweepPoint> read_slices(const YamlMap& map) {
  std::vector<sharing::SweepPoint> sweep;
  const auto whole = map.map("whole");
  if (!whole) {
    if (!map.has("whole"))
      map.report("whole", "is missing", "steps on the whole GPU: {8: 22.4 ms, 16: …}");
    return sweep;
  }
  for (const std::string& batch : whole->keys()) {
    const std::optional<double> size = parse_number<double>(batch);
    const auto time = whole->within<Seconds>(batch, kShortest, kLongestSlice);
    if (!size || !(*size > 0 && *size <= 1e9))
      whole->report(batch, "is no batch", "a number above 0 and up to 1e9");
    else if (time)
      sweep.push_back({*size, *time});
  }
  whole->no_other_keys();
  return sweep;
}

}  // namespace

Result<FeedRun> run_slice(const YamlMap& map, const FeedContext& /*context*/) {
  const auto device_name = map.required<std::string>("device");
  const auto profile_name = map.required<std::string>("profile");
  const double batch = map.within<double>("batch", 1e-9, 1e9).value_or(1);
  sharing::WorkKind kind = sharing::WorkKind::kUnknown;
  map.choose("work", sharing::kWorkKindNames, kind);
  const bool inference = map.optional<bool>("inference").value_or(false);
  const std::vector<sharing::SweepPoint> sweep = read_slices(map);
  if (!map.has("batch")) map.report("batch", "is missing", "the batch of a step on the slice");
  map.no_other_keys();
  TRY(map.status());
  const cluster::MigDevice device = TRY(cluster::mig_device(*TRY(cluster::find_gpu(*device_name))));
  const std::uint32_t profile = TRY(cluster::find_profile(device, *profile_name));
  const sharing::JobLaw law =
      TRY(sharing::fit_whole(sweep, kind, !inference, sharing::shipped_constants()));
  const Estimate<double> time =
      mapped(sharing::predict(law, sharing::ratio_of(device, profile), batch),
             [](Seconds end) { return end.s(); });
  const double whole = law.time({}, batch).s() * device.profile(profile).max_instances;
  return [time, whole](std::string_view function) -> Result<Term> {
    if (function == "slice_time") return Term{time};
    return Term{{whole / time.value, whole / time.high, whole / time.low, time.provenance}};
  };
}

}  // namespace rehearse::cli
