#include "strategies/memory_savers.h"

#include <fmt/core.h>

namespace rehearse::strategies {

std::vector<MemorySaver> memory_savers(const Training& training, const Plan& plan) {
  std::vector<MemorySaver> savers;
  const auto add = [&](std::string change, const auto& edit) {
    MemorySaver saver{std::move(change), training, plan};
    edit(saver);
    savers.push_back(std::move(saver));
  };
  if (training.recompute == Recompute::kNone)
    add("selective recomputation",
        [](MemorySaver& s) { s.training.recompute = Recompute::kSelective; });
  if (training.recompute < Recompute::kFull)
    add("full recomputation", [](MemorySaver& s) { s.training.recompute = Recompute::kFull; });
  if (plan.tensor > 1 && !plan.sequence_parallel)
    add("sequence parallelism", [](MemorySaver& s) { s.plan.sequence_parallel = true; });
  if (training.microbatch > 1)
    add(fmt::format("microbatch {}", training.microbatch / 2),
        [](MemorySaver& s) { s.training.microbatch /= 2; });
  const bool sharable = plan.synchronization == Synchronization::kAllReduce &&
                        (plan.data * plan.context > 1 || !plan.stages.empty());
  for (std::uint32_t zero = plan.zero + 1; sharable && zero <= 3; ++zero)
    add(fmt::format("ZeRO-{}", zero), [zero](MemorySaver& s) { s.plan.zero = zero; });
  if (!plan.tiers.any())
    add("offloaded optimizer",
        [](MemorySaver& s) { s.plan.tiers = tiers_of(Offload::kOptimizer); });
  // Ranks taken from data parallelism.
  if (plan.stages.empty() && plan.data % 2 == 0) {
    add(fmt::format("tensor parallelism {}", 2 * plan.tensor), [](MemorySaver& s) {
      s.plan.tensor *= 2;
      s.plan.data /= 2;
    });
    add(fmt::format("pipeline of {}", 2 * plan.pipeline), [](MemorySaver& s) {
      s.plan.pipeline *= 2;
      s.plan.data /= 2;
    });
    add(fmt::format("context parallelism {}", 2 * plan.context), [](MemorySaver& s) {
      s.plan.context *= 2;
      s.plan.data /= 2;
    });
  }
  if (plan.interleave > 1 && plan.schedule == Schedule::kInterleaved)
    add("no interleaving", [](MemorySaver& s) {
      s.plan.interleave = 1;
      s.plan.schedule = Schedule::k1f1b;
    });
  if (plan.schedule == Schedule::kGpipe)
    add("schedule 1f1b", [](MemorySaver& s) { s.plan.schedule = Schedule::k1f1b; });
  return savers;
}

}  // namespace rehearse::strategies
