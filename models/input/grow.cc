#include "models/input/grow.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "models/input/limits.h"

namespace rehearse::input {
namespace {

constexpr double kNear = 0.99;  // of the bound
/// Stages whose threads are busy for at least this share of the busiest stage's are the ones that
/// hold the others back.
constexpr double kBusiest = 0.98;
constexpr double kMore = 1.2;                          // times as many threads
constexpr double kGain = 1.0005, kGainOfRoom = 1.005;  // less is none
constexpr int kMostRuns = 24, kMostInVain = 4, kMostDoubled = 4;
constexpr std::uint64_t kMostRoom = 10'000'000;

/// Adds room for bursts: some takes of the next stage, and of each thread of this one.
void make_room(Pipeline& pipeline) {
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    Stage& stage = pipeline.stages[i];
    const std::uint64_t next =
        i + 1 < pipeline.stages.size()
            ? std::uint64_t{pipeline.stages[i + 1].slots()} * pipeline.stages[i + 1].batch
            : 1;
    const std::uint64_t room = std::min<std::uint64_t>(
        2 * next + std::uint64_t{2} * stage.slots() * stage.split, kMostRoom);
    if (stage.room() < room) stage.queue = static_cast<std::uint32_t>(room);
  }
}

/// The number of workers that the memory has room for besides those of the other stages.
std::uint32_t most_workers(const Pipeline& pipeline, std::size_t stage, Bytes memory) {
  const Stage& s = pipeline.stages[stage];
  if (!pipeline.host || !pipeline.host->memory || s.worker_memory.b() == 0) return s.most_workers;
  for (const Stage& other : pipeline.stages) memory = memory - other.worker_memory * other.workers;
  const double more = std::max(std::floor(memory / s.worker_memory + 1e-9), 0.0);
  return static_cast<std::uint32_t>(std::min<double>(s.most_workers, s.workers + more));
}

/// Threads are cheaper than workers, except for a lock that they would share. Returns whether there
/// are more.
bool add_threads(Pipeline& pipeline, std::size_t index, Bytes memory) {
  Stage& stage = pipeline.stages[index];
  const std::uint32_t workers = std::max(most_workers(pipeline, index, memory), stage.workers);
  const std::uint32_t before = stage.slots();
  const auto wanted =
      std::max(static_cast<std::uint32_t>(std::ceil(stage.slots() * kMore)), before + 1);
  const auto per = [&](std::uint32_t of) { return (wanted + of - 1) / of; };
  if (stage.serial.mean.s() > 0)
    stage.workers = std::clamp(per(stage.threads), stage.workers, workers);
  stage.threads =
      std::clamp(per(stage.workers), stage.threads, std::max(stage.most_threads, stage.threads));
  stage.workers = std::clamp(per(stage.threads), stage.workers, workers);
  return stage.slots() > before;
}

/// Idle threads of one stage slow down the threads of another that are dealt to the same cores.
/// Leaves each stage that holds nothing back a few more threads than are busy. Returns whether that
/// removes any.
bool remove_idle_threads(Pipeline& pipeline, const std::vector<double>& busy) {
  if (!pipeline.host) return false;
  const double most = *std::max_element(busy.begin(), busy.end());
  bool any = false;
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    Stage& stage = pipeline.stages[i];
    if (busy[i] >= kBusiest * most) continue;
    const std::uint32_t before = stage.slots();
    const auto wanted =
        std::max(static_cast<std::uint32_t>(std::ceil(before * busy[i] * kMore)), 1U);
    const auto per = [&](std::uint32_t of) { return (wanted + of - 1) / of; };
    stage.workers = std::min(stage.workers, per(stage.threads));
    stage.threads = std::min(stage.threads, per(stage.workers));
    any |= stage.slots() < before;
  }
  return any;
}

}  // namespace

Result<Flow> grow(Pipeline& pipeline, Bytes memory) {
  make_room(pipeline);
  Result<Flow> best = simulate(pipeline);
  if (!best) return best;
  const auto near = [&] {
    return best->units_per_s.value >= kNear * limits_of(pipeline).front().units_per_s;
  };
  // Room is cheaper than threads, which also add room.
  for (int doubled = 0; doubled < kMostDoubled && !near(); ++doubled) {
    Pipeline roomy = pipeline;
    for (Stage& stage : roomy.stages)
      stage.queue = static_cast<std::uint32_t>(std::min(2 * stage.room(), kMostRoom));
    Result<Flow> found = simulate(roomy);
    if (!found || found->units_per_s.value < best->units_per_s.value * kGainOfRoom) break;
    pipeline = std::move(roomy);
    best = std::move(found);
  }
  Pipeline next = pipeline;
  std::vector<double> busy = best->busy;
  int in_vain = 0;
  bool trimmed = false;
  for (int run = 1; run < kMostRuns && in_vain < kMostInVain && !near(); ++run) {
    const double most = *std::max_element(busy.begin(), busy.end());
    bool any = false;
    for (std::size_t i = 0; i < next.stages.size(); ++i)
      if (busy[i] >= kBusiest * most) any |= add_threads(next, i, memory);
    if (!any && !std::exchange(trimmed, true)) any = remove_idle_threads(next, busy);
    if (!any) break;
    make_room(next);
    Result<Flow> found = simulate(next);
    if (!found) break;
    busy = found->busy;
    // A gain below the level of chance counts as none.
    const Estimate<double>& rate = best->units_per_s;
    const double gain = std::max(kGain, 1 + (rate.high / rate.value - 1) / 2);
    const bool better = found->units_per_s.value > rate.value * gain;
    in_vain = better ? 0 : in_vain + 1;
    if (!better) continue;
    pipeline = next;
    best = std::move(found);
  }
  return best;
}

}  // namespace rehearse::input
