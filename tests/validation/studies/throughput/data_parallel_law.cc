#include "tests/validation/studies/throughput/data_parallel_law.h"

#include <algorithm>
#include <cmath>

#include "models/comm/closed_form.h"
#include "models/comm/collective_cost.h"
#include "sim/base/check.h"
#include "strategies/data_parallel.h"
#include "strategies/step/conditions.h"

namespace rehearse::cli {
namespace {

constexpr double kBackward = 2.0 / 3;
/// As everywhere in this program.
const double kOverlapPenalty = step::Conditions().overlap_penalty;

/// Of the step alone and of the sum: 90 % intervals.
constexpr double kAloneLow = 0.85, kAloneHigh = 1.2, kSumLow = 0.7, kSumHigh = 1.5;

}  // namespace

StepAlone::StepAlone(std::vector<BatchStep> measured) : rows_(std::move(measured)) {
  REHEARSE_CHECK(!rows_.empty());
  std::sort(rows_.begin(), rows_.end(),
            [](const BatchStep& a, const BatchStep& b) { return a.batch < b.batch; });
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    REHEARSE_CHECK(rows_[i].batch > 0 && rows_[i].step > Seconds::s(0));
    REHEARSE_CHECK(i == 0 || rows_[i].batch > rows_[i - 1].batch);
  }
}

Seconds StepAlone::at(double batch) const {
  if (rows_.size() == 1) return rows_.front().step;
  std::size_t next = 1;
  while (next + 1 < rows_.size() && batch > rows_[next].batch) ++next;
  const BatchStep &a = rows_[next - 1], &b = rows_[next];
  const Seconds line = a.step + (b.step - a.step) * ((batch - a.batch) / (b.batch - a.batch));
  if (batch < rows_.front().batch)
    return std::max(line, rows_.front().step * (batch / rows_.front().batch));
  if (batch > rows_.back().batch) return std::max(line, rows_.back().step);
  return line;
}

double late_share(Bytes gradients) {
  const Bytes first = Bytes::mib(1), bucket = strategies::DataParallelPlan{.ranks = 1}.bucket;
  if (gradients <= first + bucket) return 1;
  const double rest = std::fmod((gradients - first).si(), bucket.si());
  return (rest > 0 ? rest : bucket.si()) / gradients.si();
}

Seconds GradientSum::over(std::uint32_t ranks) const {
  // A link that was never seen to take time is quicker than any.
  constexpr double kQuickest = 1e-18;
  return comm::ring_time(
      CollectiveKind::kAllReduce, ranks, gradients,
      {.latency = latency, .rate = ByteRate::bytes_per_s(1 / std::max(s_per_byte, kQuickest))});
}

Seconds step_with_sum(Seconds alone, Seconds sum, double late) {
  const Seconds backward = alone * kBackward, early = sum * (1 - late);
  return alone - backward + std::max(backward, early) +
         std::min(backward, early) * kOverlapPenalty + sum * late;
}

Seconds sum_within(Seconds step, Seconds alone, double late) {
  if (step <= alone) return Seconds::s(0);
  const Seconds backward = alone * kBackward;
  // While backward hides what is early, the step grows by this part of it and by what is late.
  const Seconds hidden = (step - alone) / (kOverlapPenalty * (1 - late) + late);
  if (hidden * (1 - late) <= backward) return hidden;
  return step - alone + backward * (1 - kOverlapPenalty);
}

double s_per_byte_of(Seconds step, Seconds alone, std::uint32_t ranks, const GradientSum& sum) {
  REHEARSE_CHECK(ranks > 1);
  const double messages = 2.0 * (ranks - 1);
  const Seconds moving = sum_within(step, alone, sum.late) - sum.latency * messages;
  return std::max(0.0, moving.s() / (messages / ranks * sum.gradients.si()));
}

double unsure_beyond(std::uint32_t from, std::uint32_t ranks) {
  const double doublings = std::max(0.0, std::log2(1.0 * ranks / from));
  return (1 + (kSumHigh - 1) * std::pow(comm::kBeyondRanks, doublings)) / kSumHigh;
}

Estimate<Seconds> data_parallel_step(Seconds alone, const GradientSum& sum, std::uint32_t ranks) {
  const Seconds time = ranks > 1 ? sum.over(ranks) : Seconds::s(0);
  const auto step = [&](double of_alone, double of_sum) {
    if (ranks == 1) return alone * of_alone;
    return step_with_sum(alone * of_alone, time * of_sum, sum.late);
  };
  return {step(1, 1), step(kAloneLow, kSumLow / sum.unsure),
          step(kAloneHigh, kSumHigh * sum.unsure), Provenance::kExtrapolated};
}

}  // namespace rehearse::cli
