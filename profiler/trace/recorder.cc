#include "profiler/trace/recorder.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/core.h>

namespace rehearse::trace {
namespace {

// Longer than any recording; a number beyond it is damage.
constexpr Nanoseconds kLongest{30LL * 86400 * 1000000000};

std::uint64_t pair_key(NameId a, NameId b) { return (std::uint64_t{a.index()} << 32) | b.index(); }

}  // namespace

bool is_step_name(std::string_view name) {
  constexpr std::string_view kSeparators = " #_:-*";
  constexpr std::array<std::string_view, 6> kStepWords = {
      "profilerstep", "step", "iteration", "iter", "train_step", "training_step"};
  if (const std::size_t bracket = name.find('['); bracket != 0) name = name.substr(0, bracket);
  if (name.size() > 32) return false;
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())))
    name.remove_suffix(1);
  while (!name.empty() && kSeparators.find(name.back()) != std::string_view::npos)
    name.remove_suffix(1);
  std::string word(name);
  std::ranges::transform(word, word.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::find(kStepWords, word) != kStepWords.end();
}

Recorder::Recorder(NamePool& names, Problems& problems, Rank& rank, RowSink& rows)
    : names_(names), problems_(problems), rank_(rank), rows_(rows), place_([] { return ""; }) {}

NameId Recorder::name(std::string_view text) { return names_.intern(text); }

ThreadId Recorder::thread(std::string_view process, std::string_view thread) {
  const Thread key{name(process), name(thread)};
  const auto [at, is_new] =
      thread_ids_.try_emplace(pair_key(key.process, key.thread), ThreadId(rank_.threads.size()));
  if (is_new) rank_.threads.push_back(key);
  return at->second;
}

InputsId Recorder::inputs(std::string_view shapes, std::string_view types) {
  const Inputs key{name(shapes), name(types)};
  const auto [at, is_new] =
      input_ids_.try_emplace(pair_key(key.shapes, key.types), InputsId(rank_.inputs.size()));
  if (is_new) rank_.inputs.push_back(key);
  return at->second;
}

LaunchShapeId Recorder::launch_shape(const LaunchShape& shape) {
  const auto [at, is_new] =
      shape_ids_.try_emplace(shape, LaunchShapeId(rank_.launch_shapes.size()));
  if (is_new) rank_.launch_shapes.push_back(shape);
  return at->second;
}

CollectiveId Recorder::collective(const Collective& collective) {
  const auto [at, is_new] =
      collective_ids_.try_emplace(collective, CollectiveId(rank_.collectives.size()));
  if (is_new) rank_.collectives.push_back(collective);
  return at->second;
}

void Recorder::device(Device device) { rank_.devices.push_back(std::move(device)); }

std::uint32_t Recorder::board(Board board) {
  rank_.boards.push_back(std::move(board));
  return static_cast<std::uint32_t>(rank_.boards.size() - 1);
}

void Recorder::problem(ProblemKind kind, std::uint64_t count) {
  problems_.add(kind, problems_.is_first(kind) ? place_() : std::string(), count);
}

bool Recorder::sound_times(Nanoseconds start, Nanoseconds duration) {
  if (duration < Nanoseconds(0)) {
    problem(ProblemKind::kNegativeDuration);
    return false;
  }
  const auto is_near = [](Nanoseconds a, Nanoseconds b) {
    return a - b <= kLongest && b - a <= kLongest;
  };
  if (!plausible(start) || duration > kLongest ||
      (first_start_ && !is_near(start, *first_start_))) {
    problem(ProblemKind::kAbsurdNumber);
    return false;
  }
  if (!first_start_) first_start_ = start;
  return true;
}

bool Recorder::add(const HostOp& op, bool launches) {
  if (!sound_times(op.start, op.duration)) return false;
  if (op.correlation && (op.kind == HostKind::kRuntime || op.kind == HostKind::kDriver)) {
    Launch& launch = launches_[*op.correlation];
    const Nanoseconds start = op.start - *first_start_;
    // A driver call inside a runtime call carries the id of the outer one.
    if (op.kind == HostKind::kRuntime && launch.is(Launch::kLaunches) && launches)
      problem(ProblemKind::kDuplicateId);
    const bool called = launch.is(Launch::kCalled);
    if (launch.is(Launch::kRan) && !called && launch.start() < start)
      problem(ProblemKind::kClockSkew);
    if (!called || start < launch.start()) launch.set_start(start);
    launch.set(Launch::kCalled);
    if (launches) launch.set(Launch::kLaunches);
  }
  if (op.kind == HostKind::kAnnotation) has_steps_ = has_steps_ || is_step_name(names_[op.name]);
  ++host_count_;
  rows_.add(op);
  return true;
}

bool Recorder::add(const GpuOp& op) {
  if (!sound_times(op.start, op.duration)) return false;
  if (op.duration == Nanoseconds(0) && rank_.info.timed) problem(ProblemKind::kZeroDuration);
  if (op.correlation) {
    Launch& launch = launches_[*op.correlation];
    const Nanoseconds start = op.start - *first_start_;
    if (launch.is(Launch::kCalled)) {
      if (start < launch.start()) problem(ProblemKind::kClockSkew);
    } else if (!launch.is(Launch::kRan) || start < launch.start()) {
      launch.set_start(start);
    }
    launch.set(Launch::kRan);
  }
  ++gpu_count_;
  rows_.add(op);
  return true;
}

void Recorder::lost_timing(std::optional<std::uint32_t> correlation) {
  problem(ProblemKind::kLostTiming);
  if (!correlation) return;
  Launch& launch = launches_[*correlation];
  // Later than any call, so that it cannot seem to precede its own.
  if (!launch.is(Launch::kCalled) && !launch.is(Launch::kRan)) launch.set_start(kLongest);
  launch.set(Launch::kRan);
}

bool Recorder::add(const Sync& sync) {
  if (!sound_times(sync.start, sync.duration)) return false;
  rows_.add(sync);
  return true;
}

void Recorder::add(const Dependency& dependency) { rows_.add(dependency); }

bool Recorder::add(const PowerReading& reading) {
  if (!sound_times(reading.time, Nanoseconds(0))) return false;
  rows_.add(reading);
  return true;
}

std::optional<Nanoseconds> Recorder::call_start(std::uint32_t correlation) {
  const Launch& launch = launches_[correlation];
  if (!launch.is(Launch::kCalled)) return std::nullopt;
  return launch.start() + *first_start_;
}

void Recorder::flow(NameId family, std::uint64_t id, bool starts) {
  Flow& flow = flows_[family][id];
  if (starts) {
    flow.started = true;
  } else {
    flow.finished = true;
  }
}

void Recorder::finish() {
  struct Tally {
    std::uint64_t count = 0;
    std::uint64_t first = 0;
    void add(std::uint64_t id) {
      if (count++ == 0 || id < first) first = id;
    }
  };
  Tally unlaunched, unfinished, unpaired;
  launches_.for_each([&](std::uint64_t id, const Launch& launch) {
    if (launch.is(Launch::kRan) && !launch.is(Launch::kCalled)) unlaunched.add(id);
    if (launch.is(Launch::kLaunches) && !launch.is(Launch::kRan)) unfinished.add(id);
  });
  for (const auto& [family, flows] : flows_)
    flows.for_each([&](std::uint64_t id, const Flow& flow) {
      if (flow.started && !flow.finished) unpaired.add(id);
    });
  const std::string source = rank_.info.source;
  const auto report = [&](ProblemKind kind, const Tally& tally, std::string_view what) {
    problems_.add(kind, fmt::format("{}: {} {}", source, what, tally.first), tally.count);
  };
  report(ProblemKind::kUnlaunched, unlaunched, "correlation");
  report(ProblemKind::kUnfinished, unfinished, "correlation");
  report(ProblemKind::kUnpairedFlow, unpaired, "flow");
  if (!has_steps_ && rank_.info.timed && host_count_ + gpu_count_ > 0)
    problems_.add(ProblemKind::kMissingSteps, source);
}

}  // namespace rehearse::trace
