#include "cli/report/memory_curves.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "strategies/layer_run.h"
#include "strategies/step/devices.h"

namespace rehearse::cli {
namespace {

using memory::Moment;
using memory::Parts;

constexpr std::size_t kMostMoments = 600;  // of a curve: more than a page has columns for

struct MemoryPart {
  const char* key;
  Bytes Parts::*bytes;
};
constexpr std::array<MemoryPart, 9> kMemoryParts = {{{"weights", &Parts::weights},
                                                     {"gradients", &Parts::gradients},
                                                     {"optimizer", &Parts::optimizer},
                                                     {"activations", &Parts::activations},
                                                     {"loss", &Parts::loss},
                                                     {"gathered", &Parts::gathered},
                                                     {"transient", &Parts::transient},
                                                     {"context", &Parts::context},
                                                     {"reserve", &Parts::reserve}}};

/// By slot of the stage's order, and for its end: the computing before it.
std::vector<double> computing_before(const workload::Stage& stage, const strategies::Price& price,
                                     const strategies::HostTimes& host) {
  const strategies::Split split = strategies::split_of(stage);
  std::vector<std::array<double, strategies::kPasses>> of_chunk(stage.chunks.size());
  for (std::size_t c = 0; c < stage.chunks.size(); ++c)
    for (std::size_t p = 0; p < strategies::kPasses; ++p)
      for (const workload::Layer& layer : stage.chunks[c].layers)
        for (const strategies::LayerPiece& piece :
             strategies::layer_run(layer, static_cast<workload::Pass>(p), split, price, host)
                 .pieces)
          of_chunk[c][p] += layer.count * piece.time.seconds().s();
  std::vector<double> before = {0};
  for (const workload::Slot& slot : stage.order)
    before.push_back(before.back() + of_chunk[slot.chunk][static_cast<std::size_t>(slot.pass)]);
  return before;
}

/// The time in the run at which the rank of a stage had done this much computing.
class Progress {
 public:
  Progress(const step::Step& step, const workload::Stage& stage) {
    const std::vector<RankId>& ranks = step.lowered.ranks;
    const std::uint32_t program = step.job.program_of[stage.first_rank];
    const auto run = static_cast<std::size_t>(
        std::find_if(ranks.begin(), ranks.end(),
                     [&](RankId rank) { return step.job.program_of[rank.index()] == program; }) -
        ranks.begin());
    if (run == ranks.size()) return;
    const program::RankProgram& ops = step.job.programs[program];
    for (std::uint32_t i = 0; i < ops.ops.size(); ++i) {
      if (ops.ops[i].task != program::Task::kCompute || !ops.ops[i].duration) continue;
      const graph::OpTimes& times = step.timeline[OpId(step.lowered.first_op[run] + i)];
      ends_.push_back({done_, times.start.seconds().s(), times.end.seconds().s(),
                       ops.ops[i].duration->seconds().s()});
      done_ += ends_.back().work;
    }
  }

  double when(double work) const {
    const auto after = std::upper_bound(ends_.begin(), ends_.end(), work,
                                        [](double w, const Run& run) { return w < run.before; });
    if (after == ends_.begin()) return 0;
    const Run& run = *std::prev(after);
    const double share = run.work > 0 ? std::clamp((work - run.before) / run.work, 0.0, 1.0) : 1;
    return run.start + share * (run.end - run.start);
  }

 private:
  struct Run {
    double before, start, end, work;
  };
  std::vector<Run> ends_;
  double done_ = 0;
};

/// The shown points: the fullest of neighbours that share a column.
std::vector<std::size_t> shown_of(const std::vector<Moment>& moments) {
  std::vector<std::size_t> shown;
  const std::size_t per = (moments.size() + kMostMoments - 1) / kMostMoments;
  for (std::size_t from = 0; from < moments.size(); from += per) {
    std::size_t fullest = from;
    for (std::size_t i = from; i < std::min(from + per, moments.size()); ++i)
      if (moments[i].parts.total() > moments[fullest].parts.total()) fullest = i;
    shown.push_back(fullest);
  }
  return shown;
}

Json curve_json(const step::Step& step, std::size_t s, const step::DeviceKind& kind) {
  const workload::Stage& stage = step.layout.stages[s];
  const memory::Device& device = step.memory[s].device;
  const std::vector<Moment> moments = memory::memory_curve(step.layout, stage, device);
  const std::vector<double> before =
      computing_before(stage, [&](const workload::Op& op) { return kind.price(op); },
                       {.per_kernel = kind.conditions.host_per_kernel});
  const Progress progress(step, stage);
  const double end = step.timeline.makespan().seconds().s();
  Json curve = {
      {"name", stage.name},      {"device", device.name},  {"usable_b", device.usable.b()},
      {"time_s", Json::array()}, {"phase", Json::array()}, {"bytes", Json::object()}};
  for (const MemoryPart& part : kMemoryParts) curve["bytes"][part.key] = Json::array();
  std::size_t peak = 0, count = 0;
  Bytes most = Bytes::b(-1);
  const auto show = [&](double time, std::string_view phase, const Parts& parts) {
    curve["time_s"].push_back(std::min(time, end));
    curve["phase"].push_back(phase);
    for (const MemoryPart& part : kMemoryParts)
      curve["bytes"][part.key].push_back(std::llround((parts.*part.bytes).b()));
    if (parts.total() > most) {
      most = parts.total();
      peak = count;
    }
    ++count;
  };
  for (const std::size_t i : shown_of(moments)) {
    const Moment& m = moments[i];
    // The activations of forward exist at its end; backward begins with all of them.
    const double time = !m.slot ? progress.when(before.back())
                                : progress.when(before[*m.slot + (m.phase == "forward" ? 1 : 0)]);
    // The first point is the memory that stays allocated from step to step.
    if (count == 0 && time > 0) {
      Parts stays = m.parts;
      stays.activations = stays.loss = stays.transient = Bytes::b(0);
      show(0, "before forward", stays);
    }
    show(time, m.phase, m.parts);
  }
  curve["peak"] = peak;
  curve["end_s"] = end;
  return curve;
}

}  // namespace

Json memory_curves(const step::Spec& spec, const cluster::Cluster& cluster, const step::Step& step,
                   std::size_t most_stages) {
  const Result<step::Devices> devices = step::Devices::of(step.layout, cluster, spec);
  if (!devices || step.memory.empty()) return {};
  std::vector<std::size_t> stages(step.layout.stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) stages[s] = s;
  std::stable_sort(stages.begin(), stages.end(), [&](std::size_t a, std::size_t b) {
    return step.memory[a].share() > step.memory[b].share();
  });
  stages.resize(std::min(stages.size(), most_stages));
  std::sort(stages.begin(), stages.end());
  Json curves = Json::array();
  for (const std::size_t s : stages) {
    const workload::Stage& stage = step.layout.stages[s];
    curves.push_back(curve_json(step, s, devices->kinds()[devices->under(stage).front().kind]));
  }
  return {{"stages", step.layout.stages.size()}, {"curves", std::move(curves)}};
}

}  // namespace rehearse::cli
