#include "strategies/schedule.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/check.h"
#include "strategies/layer_run.h"

namespace rehearse::strategies {
namespace {

using workload::Pass;
using workload::Slot;
using Order = std::vector<Slot>;

Order gpipe(std::uint32_t m) {
  Order order;
  order.reserve(2 * m);
  for (std::uint32_t j = 0; j < m; ++j) order.push_back({Pass::kForward, 0, j});
  for (std::uint32_t j = 0; j < m; ++j) order.push_back({Pass::kBackward, 0, j});
  return order;
}

/// One forward, one backward, with `ahead` forwards before.
Order one_by_one(std::uint32_t m, std::uint32_t ahead, bool recomputes) {
  Order order;
  order.reserve((recomputes ? 3 : 2) * m);
  const auto backward = [&](std::uint32_t j) {
    if (recomputes) order.push_back({Pass::kRecompute, 0, j});
    order.push_back({Pass::kBackward, 0, j});
  };
  const std::uint32_t warmup = std::min(ahead, m);
  for (std::uint32_t j = 0; j < warmup; ++j) order.push_back({Pass::kForward, 0, j});
  for (std::uint32_t j = warmup; j < m; ++j) {
    order.push_back({Pass::kForward, 0, j});
    backward(j - warmup);
  }
  for (std::uint32_t j = m - warmup; j < m; ++j) backward(j);
  return order;
}

Order interleaved(const PipelineShape& shape, std::uint32_t stage) {
  const std::uint32_t p = shape.stages, m = shape.microbatches, v = shape.chunks;
  REHEARSE_CHECK(m % p == 0, "{} microbatches, {} stages", m, p);
  const std::uint32_t total = m * v;
  const std::uint32_t warmup = std::min(total, (p - stage - 1) * 2 + (v - 1) * p);
  // The k-th pass: `p` microbatches through a chunk, then the same through the next one.
  const auto slot = [&](Pass pass, std::uint32_t k) {
    const std::uint32_t chunk = k % (p * v) / p;
    return Slot{pass, pass == Pass::kForward ? chunk : v - 1 - chunk, k / (p * v) * p + k % p};
  };
  Order order;
  order.reserve(2 * total);
  for (std::uint32_t k = 0; k < warmup; ++k) order.push_back(slot(Pass::kForward, k));
  for (std::uint32_t k = warmup; k < total; ++k) {
    order.push_back(slot(Pass::kForward, k));
    order.push_back(slot(Pass::kBackward, k - warmup));
  }
  for (std::uint32_t k = total - warmup; k < total; ++k) order.push_back(slot(Pass::kBackward, k));
  return order;
}

Order zero_bubble(const PipelineShape& shape, std::uint32_t stage) {
  const std::uint32_t m = shape.microbatches;
  const std::uint32_t warmup = std::min(shape.stages - stage - 1, m);
  Order order;
  order.reserve(3 * m);
  for (std::uint32_t j = 0; j < warmup; ++j) order.push_back({Pass::kForward, 0, j});
  for (std::uint32_t j = 0; j < m; ++j) {
    if (warmup + j < m) order.push_back({Pass::kForward, 0, warmup + j});
    order.push_back({Pass::kBackward, 0, j});
    if (j >= stage) order.push_back({Pass::kBackwardWeights, 0, j - stage});
  }
  for (std::uint32_t j = m - std::min(stage, m); j < m; ++j)
    order.push_back({Pass::kBackwardWeights, 0, j});
  return order;
}

bool recomputes(const workload::Stage& stage) {
  for (const workload::Chunk& chunk : stage.chunks)
    for (const workload::Layer& layer : chunk.layers)
      if (!layer.recompute.empty()) return true;
  return false;
}

bool marks_weight_gradients(const workload::Stage& stage) {
  for (const workload::Chunk& chunk : stage.chunks)
    for (const workload::Layer& layer : chunk.layers)
      for (const workload::Op& op : layer.backward)
        if (op.weight_gradient) return true;
  return false;
}

}  // namespace

std::vector<Slot> order_of(Schedule schedule, const PipelineShape& shape, std::uint32_t stage,
                           bool recomputes) {
  const auto [p, m, v] = shape;
  REHEARSE_CHECK(stage < p && m > 0 && v > 0);
  if (v > 1) return interleaved(shape, stage);
  switch (schedule) {
    case Schedule::kGpipe: return gpipe(m);
    case Schedule::kZeroBubble: return zero_bubble(shape, stage);
    case Schedule::k1f1b:
    case Schedule::kInterleaved: return one_by_one(m, p - stage - 1, false);
    case Schedule::kShifted: return one_by_one(m, p - stage - 1, recomputes);
  }
  return {};
}

Result<workload::Layout> order_stages(workload::Layout layout, const JobSetting& setting) {
  const Schedule schedule = setting.plan->schedule;
  if (schedule == Schedule::kZeroBubble &&
      std::ranges::none_of(layout.stages, marks_weight_gradients))
    return fail("schedule zero_bubble for a workload that does not separate weight gradients",
                "ops marked as such", "nearest: schedule 1f1b");
  for (std::uint32_t s = 0; s < layout.stages.size(); ++s) {
    workload::Stage& stage = layout.stages[s];
    stage.order = order_of(schedule,
                           {.stages = static_cast<std::uint32_t>(layout.stages.size()),
                            .microbatches = layout.microbatches,
                            .chunks = static_cast<std::uint32_t>(stage.chunks.size())},
                           s, recomputes(stage));
  }
  return layout;
}

Status check_order(const workload::Stage& stage, std::uint32_t microbatches) {
  const Split split = split_of(stage);
  const std::size_t chunks = stage.chunks.size();
  const std::size_t passes = 2U + (split.weights ? 1 : 0) + (split.recompute ? 1 : 0);
  std::vector<std::uint32_t> seen(chunks * microbatches * kPasses, 0);
  bool whole = stage.order.size() == chunks * microbatches * passes;
  for (const Slot& slot : stage.order)
    whole = whole && slot.chunk < chunks && slot.microbatch < microbatches &&
            seen[(slot.chunk * microbatches + slot.microbatch) * kPasses +
                 static_cast<std::size_t>(slot.pass)]++ == 0;
  if (whole) return {};
  return fail(
      fmt::format("the order of {} does not have every pass of {} microbatches through "
                  "each of its {} chunks once",
                  stage.name, microbatches, chunks));
}

}  // namespace rehearse::strategies
