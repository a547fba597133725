#include "profiler/replay/edit.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "profiler/replay/batch_requests.h"
#include "sim/base/text.h"
#include "sim/program/rank_builder.h"

namespace rehearse::replay {
namespace {

using program::ProgramOp;
using program::RankBuilder;
using program::Task;
using Kind = Recorded::Kind;
using Target = Selector::Target;

constexpr std::array<std::string_view, 7> kTargets = {"gpu",  "kernel", "copy",    "collective",
                                                      "host", "launch", "profiler"};

/// "SELECTOR:VALUE" at its last colon: names hold colons too.
Result<std::pair<Selector, std::string_view>> split_edit(std::string_view text,
                                                         std::string_view what) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return fail(fmt::format("'{}' has no {}", text, what),
                fmt::format("TARGET:{0} or TARGET=PATTERN:{0}", what));
  Result<Selector> selector = parse_selector(text.substr(0, colon));
  if (!selector) return forward(selector);
  return std::pair(std::move(*selector), text.substr(colon + 1));
}

/// Names that a pattern could have meant, for the message of an edit that matches nothing.
std::string names_of(const std::vector<Recording>& recordings, const RecordedProgram& program,
                     const Selector& selector) {
  Selector all = selector;
  all.pattern.clear();
  std::set<std::string_view> names;
  for (const RankOp& at : select(recordings, program, all))
    names.insert(program.names[program.programs[at.rank].ops[at.op].name]);
  if (names.empty()) return fmt::format("the recording has no {}", selector.text);
  std::string bare;
  for (const char c : selector.pattern)
    if (c != '*') bare += c;
  const std::vector<std::string_view> list(names.begin(), names.end());
  if (const auto near = nearest(bare, list)) return fmt::format("did you mean '{}'?", *near);
  std::string shown;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, list.size()); ++i)
    shown += fmt::format("{}'{}'", i ? ", " : "", list[i].substr(0, 60));
  return fmt::format("there are {} names, such as {}", list.size(), shown);
}

Result<std::vector<RankOp>> select_some(const std::vector<Recording>& recordings,
                                        const RecordedProgram& program, const Selector& selector) {
  std::vector<RankOp> ops = select(recordings, program, selector);
  if (ops.empty())
    return fail(fmt::format("'{}' matches nothing", selector.text), "",
                names_of(recordings, program, selector));
  return ops;
}

bool lies_in(const Recording& r, std::optional<HostIndex> op, std::string_view pattern) {
  for (; op; op = r.parent(*op))
    if (matches_wildcard(pattern, r.name(r.host(*op)))) return true;
  return false;
}

/// The outermost op around `op` that matches, else `op` itself.
HostIndex range_of(const Recording& r, HostIndex op, std::string_view pattern) {
  HostIndex range = op;
  for (std::optional<HostIndex> at = op; at; at = r.parent(*at))
    if (matches_wildcard(pattern, r.name(r.host(*at)))) range = *at;
  return range;
}

/// The duration of an op, to be changed. All ops of a recording have one.
Picoseconds& time_of(RecordedProgram& program, const RankOp& at) {
  return *program.programs[at.rank].ops[at.op].duration;
}

/// Shortens the first loads to what is left of them at the first request, in steady state. If the
/// workers keep up with the steps, their queue is full. Otherwise it is empty, they finish in turn, one
/// in each of equal parts of a load, and a request waits for the rest of such a part after the other
/// work of a step.
void shorten_first(const Recording& r, const std::vector<Load>& loads, const InputPipeline& edit,
                   std::vector<Picoseconds>& work) {
  const auto workers = static_cast<double>(edit.workers);
  const auto count = static_cast<double>(loads.size());
  Nanoseconds other = r.host(loads.back().range).start - r.host(loads.front().range).start;
  for (std::size_t k = 0; k + 1 < loads.size(); ++k)
    other = other - r.host(loads[k].range).duration;
  const Picoseconds wait =
      std::accumulate(work.begin(), work.end(), Picoseconds(0)) * (1 / (count * workers)) -
      Picoseconds::from(other) * (1 / std::max(1.0, count - 1));
  const bool keeps_up = wait <= Picoseconds(0);
  const std::size_t first = edit.workers * std::size_t{keeps_up ? edit.prefetch : 1};
  for (std::size_t k = 0; k < std::min(work.size(), first); ++k)
    work[k] = keeps_up ? Picoseconds(0)
                       : std::min(work[k], wait + work[k] * (static_cast<double>(k) / workers));
}

/// Calls `visit` with the rank, the number, the op and the record of every op.
template <class Visit>
void for_each_op(const RecordedProgram& program, Visit visit) {
  for (std::uint32_t rank = 0; rank < program.programs.size(); ++rank) {
    const program::RankProgram& of = program.programs[rank];
    for (OpIndex i = 0; i < of.ops.size(); ++i) visit(RankOp{rank, i}, of.ops[i], of.recorded[i]);
  }
}

}  // namespace

Result<Selector> parse_selector(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view target = text.substr(0, equals);
  const auto found = std::find(kTargets.begin(), kTargets.end(), target);
  if (found == kTargets.end())
    return fail(fmt::format("unknown target '{}'", target), suggest(target, kTargets));
  Selector selector{static_cast<Target>(found - kTargets.begin()), "", std::string(text)};
  if (equals == std::string_view::npos) return selector;
  selector.pattern = text.substr(equals + 1);
  if (selector.pattern.empty())
    return fail(fmt::format("'{}' has an empty pattern", text), "TARGET or TARGET=PATTERN");
  if (selector.target == Target::kGpu || selector.target == Target::kLaunch ||
      selector.target == Target::kProfiler)
    return fail(fmt::format("'{}' takes no pattern", target), "", "kernel=PATTERN or host=PATTERN");
  return selector;
}

Result<Scale> parse_scale(std::string_view text) {
  const auto parts = split_edit(text, "FACTOR");
  if (!parts) return forward(parts);
  const std::string_view number = trim(parts->second);
  double factor = 0;
  const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), factor);
  if (error != std::errc{} || rest != number.data() + number.size() || !(factor >= 0) ||
      factor > 1e6)
    return fail(fmt::format("'{}' is not a factor", number), "a number from 0 to 1e6, such as 0.5");
  return Scale{parts->first, factor};
}

Result<Insert> parse_insert(std::string_view text) {
  const auto parts = split_edit(text, "DURATION");
  if (!parts) return forward(parts);
  const Result<Seconds> length = parse_quantity<Seconds>(parts->second);
  if (!length) return forward(length);
  if (*length < Seconds::s(0) || *length > Seconds::s(86400))
    return fail(fmt::format("'{}' is not a valid duration", parts->second), "0 s to 1 d");
  return Insert{parts->first, *length};
}

Result<InputPipeline> parse_input_pipeline(std::string_view text) {
  InputPipeline pipeline{.workers = 0};
  constexpr std::array<std::string_view, 3> kKeys = {"workers", "prefetch", "load"};
  std::array<bool, 3> given = {};
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view key = trim(part.substr(0, equals));
    const std::string_view value =
        equals == std::string_view::npos ? "" : trim(part.substr(equals + 1));
    const auto* const known = std::find(kKeys.begin(), kKeys.end(), key);
    if (known == kKeys.end())
      return fail(fmt::format("unknown key '{}'", key), suggest(key, kKeys));
    if (std::exchange(given[static_cast<std::size_t>(known - kKeys.begin())], true))
      return fail(fmt::format("'{}' appears twice", key), "workers=N[,prefetch=N][,load=PATTERN]");
    if (key == "load") {
      pipeline.load = value;
      continue;
    }
    std::uint32_t count = 0;
    const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), count);
    if (error != std::errc{} || rest != value.data() + value.size() || count == 0 || count > 4096)
      return fail(fmt::format("'{}' is not a number of {}", value, key), "1 to 4096");
    (key == "workers" ? pipeline.workers : pipeline.prefetch) = count;
  }
  if (pipeline.workers == 0) return fail("workers is missing", "workers=N");
  return pipeline;
}

std::vector<RankOp> select(const std::vector<Recording>& recordings, const RecordedProgram& program,
                           const Selector& selector) {
  // The kinds of communication ops, because the kernel's name alone hides an all-to-all.
  std::vector<std::vector<std::string_view>> kinds(recordings.size());
  if (selector.target == Target::kCollective)
    for (std::size_t rank = 0; rank < recordings.size(); ++rank) {
      kinds[rank].assign(recordings[rank].rank().gpu_ops.size(), "");
      for (const CommunicationOp& op : program.replays[rank].communication)
        if (op.what) kinds[rank][op.op] = to_string(op.what->kind);
    }
  std::vector<RankOp> chosen;
  for_each_op(program, [&](const RankOp& at, const ProgramOp& op, const Recorded& recorded) {
    const bool device = recorded.kind == Kind::kDevice;
    const bool host = recorded.kind == Kind::kHost || recorded.kind == Kind::kCall;
    const auto named = [&](std::string_view name) {
      return selector.pattern.empty() || matches_wildcard(selector.pattern, name);
    };
    const std::string_view name = program.names[op.name];
    bool matches = false;
    switch (selector.target) {
      case Target::kGpu:
        matches = device || recorded.kind == Kind::kUnexplained || recorded.kind == Kind::kResidual;
        break;
      case Target::kKernel:
        matches = device && op.task == Task::kCompute && named(name);
        break;
      case Target::kCopy:
        matches = device && op.task == Task::kMemory && named(name);
        break;
      case Target::kCollective:
        matches = op.task == Task::kCollective &&
                  (named(name) || (device ? named(kinds[at.rank][*recorded.row])
                                          : named(to_string(op.collective))));
        break;
      case Target::kHost:
        matches = host && (selector.pattern.empty() ||
                           lies_in(recordings[at.rank], recorded.row, selector.pattern));
        break;
      case Target::kLaunch:
        matches = recorded.kind == Kind::kLaunch;
        break;
      case Target::kProfiler:
        matches = op.task == Task::kProfiler;
        break;
    }
    if (matches) chosen.push_back(at);
  });
  return chosen;
}

Result<RecordedProgram> scale(const std::vector<Recording>& recordings, RecordedProgram program,
                              const Scale& edit) {
  const auto ops = select_some(recordings, program, edit.what);
  if (!ops) return forward(ops);
  for (const RankOp& at : *ops) time_of(program, at) = time_of(program, at) * edit.factor;
  return program;
}

RecordedProgram scale_each(
    const std::vector<Recording>& recordings, RecordedProgram program,
    const std::function<double(const Recording& recording, const trace::GpuOp& op)>& factor) {
  for_each_op(program, [&](const RankOp& at, const ProgramOp&, const Recorded& recorded) {
    if (recorded.kind != Kind::kDevice || !recorded.row) return;
    const Recording& recording = recordings[at.rank];
    Picoseconds& time = time_of(program, at);
    time = time * factor(recording, recording.gpu(GpuIndex(*recorded.row)));
  });
  return program;
}

Result<RecordedProgram> remove(const std::vector<Recording>& recordings, RecordedProgram program,
                               const Selector& edit) {
  const auto ops = select_some(recordings, program, edit);
  if (!ops) return forward(ops);
  std::vector<std::set<std::uint32_t>> removed(recordings.size());  // device ops, by rank
  for (const RankOp& at : *ops) {
    time_of(program, at) = Picoseconds(0);
    const Recorded& recorded = program.programs[at.rank].recorded[at.op];
    if (recorded.kind == Kind::kDevice) removed[at.rank].insert(*recorded.row);
  }
  for_each_op(program, [&](const RankOp& at, const ProgramOp&, const Recorded& recorded) {
    if (!recorded.row) return;
    const std::set<std::uint32_t>& gone = removed[at.rank];
    if ((recorded.kind == Kind::kLaunch || recorded.kind == Kind::kResidual) &&
        gone.contains(*recorded.row))
      time_of(program, at) = Picoseconds(0);
    if (recorded.kind != Kind::kHost && recorded.kind != Kind::kCall) return;
    // A call whose every device op is gone need not be made.
    const auto launched = recordings[at.rank].launched(*recorded.row);
    if (!launched.empty() && std::all_of(launched.begin(), launched.end(),
                                         [&](GpuIndex op) { return gone.contains(op); }))
      time_of(program, at) = Picoseconds(0);
  });
  return program;
}

Result<RecordedProgram> insert(const std::vector<Recording>& recordings, RecordedProgram program,
                               const Insert& edit) {
  const auto ops = select_some(recordings, program, edit.after);
  if (!ops) return forward(ops);
  // Time that is added after an op, on its resource and before its successors, lengthens the op.
  // Host work is in pieces, of which the last in its range is lengthened.
  std::map<std::pair<std::uint32_t, HostIndex>, OpIndex> last_pieces;
  for (const RankOp& at : *ops) {
    const Recorded& recorded = program.programs[at.rank].recorded[at.op];
    if (edit.after.target == Target::kHost && recorded.row)
      last_pieces[{at.rank, range_of(recordings[at.rank], *recorded.row, edit.after.pattern)}] =
          at.op;
    else if (recorded.kind != Kind::kUnexplained && recorded.kind != Kind::kResidual)
      time_of(program, at) += Picoseconds::from(edit.length);
  }
  for (const auto& [range, op] : last_pieces)
    time_of(program, {range.first, op}) += Picoseconds::from(edit.length);
  return program;
}

Result<RecordedProgram> overlap_input(const std::vector<Recording>& recordings,
                                      RecordedProgram program, const InputPipeline& edit) {
  const NameId name = program.names.intern("load a batch");
  bool any = false;
  for (std::size_t rank = 0; rank < recordings.size(); ++rank) {
    const std::vector<Load> loads = loads_of(recordings[rank], program, edit.load);
    if (loads.empty()) continue;
    any = true;
    RankBuilder builder(std::move(program.programs[rank]));
    const std::uint32_t workers = builder.add(
        program::Stream{.name = program.names.intern(fmt::format("rank {} input workers", rank)),
                        .kind = program::Stream::Kind::kHost,
                        .number = static_cast<std::uint32_t>(recordings[rank].threads().size()),
                        .slots = edit.workers});
    const std::size_t depth = std::size_t{edit.workers} * edit.prefetch;
    std::vector<Picoseconds> work(loads.size(), Picoseconds(0));
    for (std::size_t k = 0; k < loads.size(); ++k)
      for (const OpIndex op : loads[k].ops) {
        work[k] += *builder.op(op).duration;
        builder.op(op).duration = Picoseconds(0);
      }
    shorten_first(recordings[rank], loads, edit, work);
    const program::RankProgram& so_far = builder.so_far();
    const OpIndex first = loads.front().ops.front();
    const std::vector<OpIndex> before_first(
        so_far.dependencies.begin() + so_far.first_dependency[first],
        so_far.dependencies.begin() + so_far.first_dependency[first + 1]);
    for (std::size_t k = 0; k < loads.size(); ++k) {
      const OpIndex load =
          builder.add({.name = name, .task = Task::kInput, .duration = work[k], .stream = workers},
                      {Kind::kHost, loads[k].range});
      builder.depend(loads[k].ops.back(), load);
      if (k >= depth) {
        builder.depend(load, loads[k - depth].ops.back());
      } else {
        for (const OpIndex before : before_first) builder.depend(load, before);
      }
    }
    program.programs[rank] = std::move(builder).build();
  }
  if (!any)
    return fail("the recording has no loading ranges to overlap", "ranges named " + edit.load,
                "load=PATTERN names others");
  return program;
}

void mark_edited(const RecordedProgram& recorded, RecordedProgram& program) {
  for (std::size_t rank = 0; rank < recorded.programs.size(); ++rank) {
    const std::vector<ProgramOp>& before = recorded.programs[rank].ops;
    std::vector<ProgramOp>& ops = program.programs[rank].ops;
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (i >= before.size() || ops[i].duration != before[i].duration)
        ops[i].provenance = Provenance::kExtrapolated;
  }
}

}  // namespace rehearse::replay
