#include "models/input/tune.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "models/input/integer_program.h"
#include "models/input/limits.h"
#include "models/input/pipeline.h"
#include "models/input/simulate.h"

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
  if (locked_time(pipeline, stage).s() > 0)
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
  const double most = *std::ranges::max_element(busy);
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

/// Increases queues for bursts, and workers and threads of the busiest stages, within
/// Stage::most_workers, most_threads and this memory, until a run comes within 1 % of the laws or a
/// further increase has no effect. If the busiest stages may have no more threads, removes idle
/// threads of the other stages, which share their cores. Returns the fastest run; fails as simulate
/// does.
Result<Flow> grow(Pipeline& pipeline, Bytes memory) {
  make_room(pipeline);
  Flow best = TRY(simulate(pipeline));
  const auto near = [&] {
    return best.units_per_s.value >= kNear * limits_of(pipeline).front().units_per_s;
  };
  // Room is cheaper than threads, which also add room.
  for (int doubled = 0; doubled < kMostDoubled && !near(); ++doubled) {
    Pipeline roomy = pipeline;
    for (Stage& stage : roomy.stages)
      stage.queue = static_cast<std::uint32_t>(std::min(2 * stage.room(), kMostRoom));
    Result<Flow> found = simulate(roomy);
    if (!found || found->units_per_s.value < best.units_per_s.value * kGainOfRoom) break;
    pipeline = std::move(roomy);
    best = std::move(*found);
  }
  Pipeline next = pipeline;
  std::vector<double> busy = best.busy;
  int in_vain = 0;
  bool trimmed = false;
  for (int run = 1; run < kMostRuns && in_vain < kMostInVain && !near(); ++run) {
    const double most = *std::ranges::max_element(busy);
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
    const Estimate<double>& rate = best.units_per_s;
    const double gain = std::max(kGain, 1 + (rate.high / rate.value - 1) / 2);
    const bool better = found->units_per_s.value > rate.value * gain;
    in_vain = better ? 0 : in_vain + 1;
    if (!better) continue;
    pipeline = next;
    best = std::move(*found);
  }
  return best;
}

struct Setting {
  Pipeline pipeline;
  double units_per_s;
  double cost;  ///< workers and threads
};

/// The rate in units per second that no setting changes: that of sources and the accelerator.
double fixed_bound(const Pipeline& pipeline) {
  for (const Limit& limit : limits_of(pipeline))
    if (limit.kind == LimitKind::kBandwidth || limit.kind == LimitKind::kRequests ||
        limit.kind == LimitKind::kStep ||
        (limit.kind == LimitKind::kLoop && pipeline.loop->rounds()))
      return limit.units_per_s;
  return 1e12;
}

/// The program for a host on which `most_busy` threads work at a time; their number determines the
/// speed of a core. Rates are in units of `scale`, so that all coefficients are of the order of
/// threads.
class Program {
 public:
  Program(const Pipeline& pipeline, double most_busy, Bytes memory_left) : pipeline_(pipeline) {
    const double speed = pipeline.host ? pipeline.host->speed(most_busy) : 1;
    const double shared = pipeline.host ? pipeline.host->shared_speed(most_busy) : 1;
    const Counts counts = counts_of(pipeline);
    const double bound = fixed_bound(pipeline);
    double scale = 1e-12;
    for (std::size_t i = 0; i < pipeline.stages.size(); ++i)
      scale = std::max(scale, counts.visits[i] * hold_time(pipeline, pipeline.stages[i]).s());
    scale_ = 1 / scale;
    rate_ = program_.add_variable(std::min(bound / scale_, 1e9), false, 1);
    double work = 0;
    IntegerTerms busy, memory;
    for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
      const Stage& stage = pipeline.stages[i];
      const double core = core_time(pipeline, stage).s() / speed;
      const double hold = read_time(pipeline, stage).s() + core;
      workers_.push_back(program_.add_variable(stage.most_workers, true, 0));
      threads_.push_back(
          program_.add_variable(double{1} * stage.most_workers * stage.most_threads, true, 0));
      program_.add_at_most({{workers_[i], -1}}, -1);
      program_.add_at_most({{workers_[i], 1}, {threads_[i], -1}}, 0);
      program_.add_at_most(
          {{threads_[i], 1}, {workers_[i], -static_cast<double>(stage.most_threads)}}, 0);
      program_.add_at_most({{rate_, counts.visits[i] * hold * scale_}, {threads_[i], -1}}, 0);
      const double locked = locked_time(pipeline, stage).s() / speed;
      program_.add_at_most({{rate_, counts.visits[i] * locked * scale_}, {workers_[i], -1}}, 0);
      if (hold > 0) busy.push_back(at_work(stage, i, core_time(pipeline, stage).s() / shared));
      memory.push_back({workers_[i], stage.worker_memory.gib()});
      work += counts.visits[i] * core_time(pipeline, stage).s();
    }
    if (pipeline.host) add_host(*pipeline.host, most_busy, work, std::move(busy));
    if (pipeline.host && pipeline.host->memory) program_.add_at_most(memory, memory_left.gib());
  }

  Result<Setting> solve() {
    const std::vector<double> fastest = TRY(program_.maximise());
    const double rate = fastest[rate_];
    // Solves again at that rate, with the fewest workers and threads that suffice.
    program_.set_objective(rate_, 0);
    program_.add_at_most({{rate_, -1}}, -rate * (1 - 1e-7));
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      program_.set_objective(workers_[i], -1);
      program_.set_objective(threads_[i], -1);
    }
    Result<std::vector<double>> least = program_.maximise();
    // Uses the first solution if rounding leaves the second program without one.
    const std::vector<double>& found = least ? *least : fastest;
    Setting setting{pipeline_, 0, 0};
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const double workers = std::max(std::round(found[workers_[i]]), 1.0);
      const double threads = std::max(std::ceil(found[threads_[i]] / workers - 1e-6), 1.0);
      setting.pipeline.stages[i].workers = static_cast<std::uint32_t>(workers);
      setting.pipeline.stages[i].threads = static_cast<std::uint32_t>(threads);
      setting.cost += workers + workers * threads;
    }
    // The program approximates the law of cores by a straight line; the laws themselves are not
    // linear.
    setting.units_per_s = limits_of(setting.pipeline).front().units_per_s;
    return setting;
  }

 private:
  using IntegerTerms = std::vector<IntegerProgram::Term>;

  /// The threads of a stage that work on the cores at a time, `together` a visit: all except those
  /// that read, or wait for the lock of their worker.
  IntegerProgram::Term at_work(const Stage& stage, std::size_t i, double together) {
    const double share = together / (together + read_time(pipeline_, stage).s());
    const double serial = locked_time(pipeline_, stage).s();
    const double past_lock =  // of a worker
        serial > 0 ? core_time(pipeline_, stage).s() / serial : HUGE_VAL;
    if (past_lock >= share * stage.most_threads) return {threads_[i], share};
    // The lesser of the two; a binary variable chooses which.
    const double most = share * stage.most_threads * stage.most_workers;
    const int working = program_.add_variable(most, false, 0);
    const int locked = program_.add_variable(1, true, 0);
    program_.add_at_most({{working, 1}, {threads_[i], -share}}, 0);
    program_.add_at_most({{working, 1}, {workers_[i], -past_lock}}, 0);
    program_.add_at_most({{threads_[i], share}, {working, -1}, {locked, -most}}, 0);
    program_.add_at_most({{workers_[i], past_lock}, {working, -1}, {locked, most}}, most);
    return {working, 1};
  }

  /// work × rate <= capacity of the host. Beyond one thread per core, up to two, the capacity grows
  /// (or falls) with the number of busy threads.
  void add_host(const Host& host, double most_busy, double work, IntegerTerms busy) {
    const double full = host.cores * host.speed(host.cores);
    const double per_thread = full * (host.smt - 1) / host.cores;
    program_.add_at_most(busy, most_busy);
    const int beyond = program_.add_variable(host.cores, false, 0);  // busy threads without a core
    program_.add_at_most({{rate_, work * scale_}, {beyond, -per_thread}}, full);
    if (per_thread >= 0) {
      // beyond <= cores × any, beyond <= busy - cores × any: zero if fewer threads than cores are
      // busy.
      const int any = program_.add_variable(1, true, 0);
      program_.add_at_most({{beyond, 1}, {any, -double{1} * host.cores}}, 0);
      for (IntegerProgram::Term& term : busy) term.factor = -term.factor;
      busy.push_back({beyond, 1});
      busy.push_back({any, double{1} * host.cores});
      program_.add_at_most(std::move(busy), 0);
    } else {
      busy.push_back({beyond, -1});
      program_.add_at_most(std::move(busy), host.cores);
    }
  }

  const Pipeline& pipeline_;
  IntegerProgram program_;
  double scale_ = 1;
  int rate_ = 0;
  std::vector<int> workers_, threads_;
};

/// The settings for one choice of kept data: the best over the number of busy threads.
Result<Setting> set_knobs(const Pipeline& pipeline, Bytes memory_left) {
  const double cores = pipeline.host ? pipeline.host->cores : 1;
  // Two threads on each core, or the total of one thread of each stage.
  Pipeline least = pipeline;
  for (Stage& stage : least.stages) stage.workers = stage.threads = 1;
  const double most = std::max(2 * cores, busy_threads(least));
  Result<Setting> best = Program(pipeline, most, memory_left).solve();
  if (!best || !pipeline.host || pipeline.host->loaded == 1) return best;
  // With fewer busy threads, each is faster.
  constexpr int kSteps = 12;
  for (int step = kSteps; step > 0; --step) {
    Result<Setting> fewer = Program(pipeline, cores * step / kSteps, memory_left).solve();
    if (fewer && fewer->units_per_s > best->units_per_s * (1 + 1e-6)) best = std::move(fewer);
  }
  return best;
}

/// The pipeline in which the output of stage `last` comes from memory.
Pipeline without_stages_up_to(const Pipeline& pipeline, std::size_t last) {
  Pipeline rest = pipeline;
  rest.stages.erase(rest.stages.begin(), rest.stages.begin() + static_cast<std::ptrdiff_t>(last));
  rest.stages.front() = Stage{.name = fmt::format("kept from {}", pipeline.stages[last].name)};
  return rest;
}

/// The bytes that a stage gives in an epoch; nothing if the file does not state them.
std::optional<Bytes> epoch_of(const Pipeline& pipeline, std::size_t stage) {
  const Stage& s = pipeline.stages[stage];
  if (!pipeline.samples || !s.unit) return std::nullopt;
  const Counts counts = counts_of(pipeline);
  const double per_sample = counts.takes[stage] * s.split / counts.samples;
  return *s.unit * (per_sample * static_cast<double>(*pipeline.samples));
}

void add_changes(const Pipeline& before, Tuned& tuned) {
  const std::size_t from = tuned.kept.value_or(0);
  for (std::size_t i = tuned.kept ? 1 : 0; i < tuned.pipeline.stages.size(); ++i) {
    const Stage& to = tuned.pipeline.stages[i];
    const Stage& was = before.stages[from + i];
    if (to.workers != was.workers)
      tuned.changes.push_back({from + i, Knob::kWorkers, was.workers, to.workers});
    if (to.threads != was.threads)
      tuned.changes.push_back({from + i, Knob::kThreads, was.threads, to.threads});
    if (to.queue && to.queue != was.queue)
      tuned.changes.push_back(
          {from + i, Knob::kQueue, static_cast<std::uint32_t>(was.room()), *to.queue});
  }
}

/// The bottleneck. Among equal bounds, it is one that no setting changes.
Limit limit_of(const Pipeline& pipeline) {
  const std::vector<Limit> limits = limits_of(pipeline);
  for (const Limit& limit : limits)
    if (limit.units_per_s <= limits.front().units_per_s * (1 + 1e-6) &&
        limit.kind != LimitKind::kThreads && limit.kind != LimitKind::kSerial &&
        limit.kind != LimitKind::kLoop)
      return limit;
  return limits.front();
}

/// Additional samples in flight as a share of those that the rate needs, because times vary.
constexpr double kSpareInFlight = 0.25;

/// Sets as many samples in flight as the other settings can work on. The number of a loop with
/// rounds is kept as given.
void open_loop(Tuned& tuned) {
  if (!tuned.pipeline.loop || tuned.pipeline.loop->rounds()) return;
  Loop& loop = *tuned.pipeline.loop;
  const std::vector<Limit> limits = limits_of(tuned.pipeline);
  const auto other =
      std::ranges::find_if(limits, [](const Limit& l) { return l.kind != LimitKind::kLoop; });
  if (limits.front().kind != LimitKind::kLoop || other == limits.end()) return;
  const double more = other->units_per_s / limits.front().units_per_s;
  const double wanted =
      std::ceil(static_cast<double>(loop.in_flight) * more * (1 + kSpareInFlight));
  const auto to = static_cast<std::uint32_t>(std::min(wanted, 1e7));
  tuned.changes.push_back({0, Knob::kInFlight, static_cast<std::uint32_t>(loop.in_flight), to});
  loop.in_flight = to;
}

}  // namespace

Result<Tuned> tune(const Pipeline& pipeline) {
  if (limits_of(pipeline).empty())
    return fail("all stages take no time", "a time, a read or a step of the accelerator");
  const Bytes memory =
      pipeline.host && pipeline.host->memory ? *pipeline.host->memory : Bytes::b(0);
  Bytes least = Bytes::b(0);
  for (const Stage& stage : pipeline.stages) least += stage.worker_memory;
  if (pipeline.host && pipeline.host->memory && least > memory)
    return fail(fmt::format("one worker of each stage takes {}", rehearse::to_string(least)),
                fmt::format("at most the {} of memory", rehearse::to_string(memory)));
  Setting best = TRY(set_knobs(pipeline, memory));
  std::optional<std::size_t> kept;
  Bytes kept_bytes = Bytes::b(0);
  // In a loop, used samples come back changed, so there is no epoch to keep.
  for (std::size_t i = 0; !pipeline.loop && i + 1 < pipeline.stages.size(); ++i) {
    const std::optional<Bytes> bytes = epoch_of(pipeline, i);
    if (!bytes || *bytes > memory) continue;
    const Pipeline rest = without_stages_up_to(pipeline, i);
    if (limits_of(rest).empty()) continue;
    Result<Setting> setting = set_knobs(rest, memory - *bytes);
    if (!setting) continue;
    const bool faster = setting->units_per_s > best.units_per_s * (1 + 1e-6);
    const bool as_fast = setting->units_per_s > best.units_per_s * (1 - 1e-6);
    if (!faster && !(as_fast && setting->cost < best.cost)) continue;
    best = std::move(*setting);
    kept = i;
    kept_bytes = *bytes;
  }
  Tuned tuned{.pipeline = std::move(best.pipeline),
              .units_per_s = best.units_per_s,
              .kept = kept,
              .kept_bytes = kept_bytes,
              .limit = {LimitKind::kThreads, 0, 0},
              .flow = Flow{}};
  open_loop(tuned);
  tuned.flow = grow(tuned.pipeline, memory - kept_bytes);
  add_changes(pipeline, tuned);
  tuned.limit = limit_of(tuned.pipeline);
  tuned.units_per_s = tuned.limit.units_per_s;
  return tuned;
}

}  // namespace rehearse::input
