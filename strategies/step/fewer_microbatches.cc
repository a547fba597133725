#include "strategies/step/fewer_microbatches.h"

#include <cmath>

#include "strategies/schedule.h"

namespace rehearse::step {
namespace {

/// The distance of two runs: a multiple of the stages, as interleaved schedules need.
constexpr std::uint32_t kLeastDistance = 8;
/// The microbatches of a step ÷ those of the three runs that replace it.
constexpr double kWorthIt = 1.25;
/// Relative to the time of the further microbatches.
constexpr double kEqual = 1e-4;

}  // namespace

bool repeats(Seconds with_least, Seconds with_few, Seconds with_more) {
  const Seconds last = with_more - with_few, before = with_few - with_least;
  return std::abs((last - before).s()) <= kEqual * last.s();
}

std::optional<FewerMicrobatches> fewer_microbatches(const workload::Layout& layout,
                                                    const strategies::JobSetting& setting,
                                                    std::uint32_t fill) {
  const auto stages = static_cast<std::uint32_t>(layout.stages.size());
  const std::uint32_t distance = stages * ((kLeastDistance + stages - 1) / stages);
  // Groups of `stages` microbatches stay whole.
  const std::uint32_t least = fill * stages + layout.microbatches % stages;
  const std::uint32_t few = least + distance, more = few + distance;
  if (layout.servers || layout.microbatches < kWorthIt * (least + few + more)) return std::nullopt;
  const auto with = [&](std::uint32_t microbatches) {
    workload::Layout other = layout;
    other.microbatches = microbatches;
    return strategies::order_stages(std::move(other), setting);
  };
  Result<workload::Layout> smallest = with(least), middle = with(few), largest = with(more);
  if (!smallest || !middle || !largest) return std::nullopt;
  return FewerMicrobatches{std::move(*smallest), std::move(*middle), std::move(*largest),
                           static_cast<double>(layout.microbatches - more) / distance};
}

}  // namespace rehearse::step
