#include "profiler/replay/edit.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "profiler/replay/batch_requests.h"
#include "profiler/replay/slow_ranks.h"
#include "sim/base/largest.h"
#include "sim/base/number.h"
#include "sim/base/text.h"
#include "sim/program/rank_builder.h"

namespace rehearse::replay {
namespace {

using program::ProgramOp, program::RankBuilder, program::RankProgram, program::Task;
using Kind = Recorded::Kind;

/// "SELECTOR:VALUE" at its last colon: names hold colons too.
Result<std::pair<Selector, std::string_view>> split_edit(std::string_view text,
                                                         std::string_view what) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return fail(fmt::format("'{}' has no {}", text, what),
                fmt::format("TARGET:{0} or TARGET=PATTERN:{0}", what));
  Selector selector = TRY(parse_selector(text.substr(0, colon)));
  return std::pair(std::move(selector), text.substr(colon + 1));
}

Result<double> parse_factor(std::string_view text) {
  const std::string_view number = trim(text);
  const std::optional<double> factor = parse_number<double>(number);
  if (!factor || !(*factor >= 0) || *factor > 1e6 || !range_missed<double>(*factor).empty())
    return fail(fmt::format("'{}' is not a factor", number), "a number from 0 to 1e6, such as 0.5");
  return *factor;
}

Result<Seconds> parse_length(std::string_view text) {
  const Seconds length = TRY(parse_quantity<Seconds>(text));
  if (length < Seconds::s(0) || length > Seconds::s(86400))
    return fail(fmt::format("'{}' is not a valid duration", text), "0 s to 1 d");
  return length;
}

/// The duration of an op, to be changed. All ops of a recording have one.
Picoseconds& time_of(RecordedProgram& program, const RankOp& at) {
  return *program.programs[at.rank].ops[at.op].duration;
}

/// CPUs for the threads of a rank: those of its process, which recorded ranks of one host divide.
double cpus_of(const std::vector<Recording>& recordings, std::size_t rank,
               const InputPipeline& edit) {
  const trace::RankInfo& info = recordings[rank].rank().info;
  double cpus = edit.cpus > 0 ? edit.cpus : std::numeric_limits<double>::infinity();
  for (const trace::Fact& fact : info.facts)
    if (unsigned stated = 0;
        fact.key == "cpus" &&
        std::from_chars(fact.value.data(), fact.value.data() + fact.value.size(), stated).ec ==
            std::errc() &&
        stated > 0)
      cpus = stated;
  const auto ranks = std::ranges::count_if(
      recordings, [&](const Recording& other) { return other.rank().info.host == info.host; });
  return std::max(1.0, cpus / static_cast<double>(ranks));
}

/// The threads of a rank divide this many CPUs: their work flows through a pool.
void divide_cpus(RankProgram& of, NameId name, double cpus) {
  const auto pool = static_cast<std::uint32_t>(of.pools.size());
  of.pools.push_back({name, cpus});
  for (program::Stream& stream : of.streams)
    if (stream.kind == program::Stream::Kind::kHost) {
      stream.pools = {pool};
      stream.rate_cap = 1;
    }
  of.work.resize(of.ops.size(), 0);
  for (OpIndex i = 0; i < of.ops.size(); ++i) {
    ProgramOp& op = of.ops[i];
    if ((op.task != Task::kHost && op.task != Task::kInput) || op.stream >= of.streams.size() ||
        of.streams[op.stream].kind != program::Stream::Kind::kHost)
      continue;
    of.work[i] = op.duration->seconds().s();
    op.duration = Picoseconds(0);
  }
}

/// Shortens the first loads to what is left of them at the first request, in steady state. If the
/// workers keep up with the steps, their queue is full. Otherwise it is empty, they finish in turn, one
/// in each of equal parts of a load, and a request waits for the rest of such a part after the other
/// work of a step. Returns whether they keep up.
bool shorten_first(const Recording& r, const std::vector<Load>& loads, const InputPipeline& edit,
                   std::vector<Picoseconds>& work) {
  const auto workers = static_cast<double>(edit.workers);
  const auto count = static_cast<double>(loads.size());
  Nanoseconds other = r.host(loads.back().range).start - r.host(loads.front().range).start;
  for (std::size_t k = 0; k + 1 < loads.size(); ++k)
    other = other - r.host(loads[k].range).duration;
  const Picoseconds wait =
      std::accumulate(work.begin(), work.end(), Picoseconds(0)) * (1 / (count * workers)) -
      Picoseconds::from(other) * (1 / std::max(1.0, count - 1)) -
      Picoseconds::from(receive_of(r, edit));
  const bool keeps_up = wait <= Picoseconds(0);
  const std::size_t first = edit.workers * std::size_t{keeps_up ? edit.prefetch : 1};
  for (std::size_t k = 0; k < std::min(work.size(), first); ++k)
    work[k] = keeps_up ? Picoseconds(0)
                       : std::min(work[k], wait + work[k] * (static_cast<double>(k) / workers));
  return keeps_up;
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

Result<Scale> parse_scale(std::string_view text) {
  const auto parts = TRY(split_edit(text, "FACTOR"));
  const double factor = TRY(parse_factor(parts.second));
  return Scale{parts.first, factor};
}

Result<Timed> parse_timed(std::string_view text) {
  const auto parts = TRY(split_edit(text, "DURATION"));
  const Seconds length = TRY(parse_length(parts.second));
  return Timed{parts.first, length};
}

Result<MaybeTimed> parse_maybe_timed(std::string_view text) {
  // Names hold colons too: what follows the last one is a duration if it begins like a number.
  const std::size_t colon = text.rfind(':');
  if (colon != std::string_view::npos &&
      trim(text.substr(colon + 1)).find_first_of("0123456789-+.") == 0) {
    Timed timed = TRY(parse_timed(text));
    return MaybeTimed{std::move(timed.what), timed.time};
  }
  Selector selector = TRY(parse_selector(text));
  return MaybeTimed{std::move(selector), std::nullopt};
}

Result<Straggler> parse_straggler(std::string_view text) {
  const std::size_t colon = text.find(':');
  Straggler straggler{};
  const std::string_view rank = trim(text.substr(0, colon));
  const auto number = parse_number<std::uint32_t>(rank);
  if (colon == std::string_view::npos || !number)
    return fail(fmt::format("'{}' is not RANK:FACTOR", text), "such as 3:1.5, or 3:none");
  straggler.rank = *number;
  if (trim(text.substr(colon + 1)) == "none") return straggler;
  const double factor = TRY(parse_factor(text.substr(colon + 1)));
  straggler.factor = factor;
  return straggler;
}

Result<InputPipeline> parse_input_pipeline(std::string_view text) {
  InputPipeline pipeline{.workers = 0};
  constexpr std::array<std::string_view, 5> kKeys = {"workers", "prefetch", "load", "cpus",
                                                     "receive"};
  constexpr const char* kForm = "workers=N[,prefetch=N][,load=PATTERN][,cpus=N][,receive=TIME]";
  std::array<bool, kKeys.size()> given = {};
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view key = trim(part.substr(0, equals));
    const std::string_view value =
        equals == std::string_view::npos ? "" : trim(part.substr(equals + 1));
    const auto* const known = std::ranges::find(kKeys, key);
    if (known == kKeys.end())
      return fail(fmt::format("unknown key '{}'", key), suggest(key, kKeys));
    if (std::exchange(given[static_cast<std::size_t>(known - kKeys.begin())], true))
      return fail(fmt::format("'{}' appears twice", key), kForm);
    if (key == "load") {
      pipeline.load = value;
      continue;
    }
    if (key == "receive") {
      pipeline.receive = TRY(parse_length(value));
      continue;
    }
    const std::uint32_t count = parse_number<std::uint32_t>(value).value_or(0);
    if (count == 0 || count > 4096)
      return fail(fmt::format("'{}' is not a number of {}", value, key), "1 to 4096");
    (key == "workers" ? pipeline.workers
     : key == "cpus"  ? pipeline.cpus
                      : pipeline.prefetch) = count;
  }
  if (pipeline.workers == 0) return fail("workers is missing", "workers=N");
  return pipeline;
}

Seconds receive_of(const Recording& recording, const InputPipeline& edit) {
  if (edit.receive) return *edit.receive;
  if (edit.load != kLoadingRange) return Seconds::s(0);
  return Seconds::us(recording.rank().gpu_ops.empty() ? 640 : 80);
}

bool fills_cpus(const std::vector<Recording>& recordings, const InputPipeline& edit) {
  for (std::size_t rank = 0; rank < recordings.size(); ++rank)
    if (edit.workers + 1 >= cpus_of(recordings, rank, edit)) return true;
  return false;
}

Result<RecordedProgram> scale(const std::vector<Recording>& recordings, RecordedProgram program,
                              const Scale& edit) {
  const auto ops = TRY(select_some(recordings, program, edit.what));
  for (const RankOp& at : ops) time_of(program, at) = time_of(program, at) * edit.factor;
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

void take_away(const std::vector<Recording>& recordings, RecordedProgram& program,
               const DeviceOps& gone, bool operators) {
  for (std::uint32_t rank = 0; rank < recordings.size(); ++rank) {
    if (gone[rank].empty()) continue;
    const Recording& r = recordings[rank];
    struct Launches {
      std::size_t all = 0, gone = 0;
    };
    std::vector<Launches> launches(r.rank().host_ops.size());  // within each host op
    for (GpuIndex i = 0; i < r.rank().gpu_ops.size(); ++i)
      for (auto op = r.launcher(i); op; op = r.parent(*op)) {
        ++launches[*op].all;
        if (gone[rank].contains(i)) ++launches[*op].gone;
      }
    const auto is_idle = [&](HostIndex op) {
      const trace::HostKind kind = r.host(op).kind;
      const bool call = kind == trace::HostKind::kRuntime || kind == trace::HostKind::kDriver;
      return (call || (operators && kind == trace::HostKind::kOperator)) && launches[op].all > 0 &&
             launches[op].gone == launches[op].all;
    };
    program::RankProgram& of = program.programs[rank];
    for (OpIndex i = 0; i < of.ops.size(); ++i) {
      const Recorded& recorded = of.recorded[i];
      if (!recorded.row) continue;
      bool nothing = false;
      if (recorded.kind == Kind::kHost || recorded.kind == Kind::kCall) {
        for (auto op = recorded.row; op && !nothing; op = operators ? r.parent(*op) : std::nullopt)
          nothing = is_idle(*op);
      } else if (recorded.kind == Kind::kDevice || recorded.kind == Kind::kLaunch ||
                 recorded.kind == Kind::kResidual) {
        nothing = gone[rank].contains(*recorded.row);
      }
      if (!nothing) continue;
      // A call keeps its thread: its return is told from what it waits for by that.
      if (recorded.kind == Kind::kCall)
        of.ops[i].duration = Picoseconds(0);
      else
        take_away(of.ops[i]);
    }
  }
}

Result<RecordedProgram> remove(const std::vector<Recording>& recordings, RecordedProgram program,
                               const Selector& edit) {
  const auto ops = TRY(select_some(recordings, program, edit));
  DeviceOps gone(recordings.size());
  for (const RankOp& at : ops) {
    time_of(program, at) = Picoseconds(0);
    const Recorded& recorded = program.programs[at.rank].recorded[at.op];
    if (recorded.kind == Kind::kDevice) gone[at.rank].insert(*recorded.row);
    if (recorded.kind == Kind::kHost) take_away(program.programs[at.rank].ops[at.op]);
  }
  take_away(recordings, program, gone, false);
  return program;
}

Result<RecordedProgram> insert(const std::vector<Recording>& recordings, RecordedProgram program,
                               const Timed& edit) {
  const auto ops = TRY(select_some(recordings, program, edit.what));
  // Time that is added after an op, on its resource and before its successors, lengthens the op.
  // Host work is in pieces: the last piece in its range on each thread is lengthened.
  std::map<std::tuple<std::uint32_t, std::uint32_t, HostIndex>, OpIndex> last_pieces;
  for (const RankOp& at : ops) {
    const Recorded& recorded = program.programs[at.rank].recorded[at.op];
    const std::uint32_t stream = program.programs[at.rank].ops[at.op].stream;
    const bool host = recorded.kind == Kind::kHost || recorded.kind == Kind::kCall;
    if (host && recorded.row)
      last_pieces[{at.rank, stream, at.range.value_or(*recorded.row)}] = at.op;
    else if (recorded.kind != Kind::kUnexplained && recorded.kind != Kind::kResidual &&
             edit.what.target != Selector::Target::kRange)
      time_of(program, at) += Picoseconds::from(edit.time);
  }
  for (const auto& [range, op] : last_pieces)
    time_of(program, {std::get<0>(range), op}) += Picoseconds::from(edit.time);
  return program;
}

Result<RecordedProgram> replace(const std::vector<Recording>& recordings, RecordedProgram program,
                                const Timed& edit) {
  const auto ops = TRY(select_some(recordings, program, edit.what));
  const Selector::Target target = edit.what.target;
  const bool host = target == Selector::Target::kHost && !edit.what.pattern.empty();
  if (!host && target != Selector::Target::kKernel && target != Selector::Target::kCopy &&
      target != Selector::Target::kCollective)
    return fail(fmt::format("'{}' has more than one kind of op to replace", edit.what.text),
                "kernel=PATTERN, copy=PATTERN, collective=PATTERN or host=PATTERN");
  // Host work is in pieces: those of one range take the time together.
  std::map<std::pair<std::uint32_t, HostIndex>, Picoseconds> whole;
  if (host)
    for (const RankOp& at : ops)
      whole.try_emplace({at.rank, *at.range}, Picoseconds(0)).first->second += time_of(program, at);
  for (const RankOp& at : ops) {
    Picoseconds& time = time_of(program, at);
    if (!host)
      time = Picoseconds::from(edit.time);
    else if (const Picoseconds all = whole.at({at.rank, *at.range}); all > Picoseconds(0))
      time = time * (edit.time.s() / all.seconds().s());
  }
  return program;
}

Result<RecordedProgram> straggle(const std::vector<Recording>& recordings, RecordedProgram program,
                                 const std::vector<Straggler>& edits) {
  std::set<std::size_t> usual;
  std::map<std::size_t, double> factors;
  for (const Straggler& edit : edits) {
    std::optional<std::size_t> rank;
    for (std::uint32_t i = 0; i < recordings.size(); ++i)
      if (recordings[i].rank().info.rank.value_or(i) == edit.rank) rank = i;
    if (!rank)
      return fail(fmt::format("the recording has no rank {}", edit.rank),
                  "the number of a recorded rank");
    if (edit.factor)
      factors.try_emplace(*rank, 1).first->second *= *edit.factor;
    else
      usual.insert(*rank);
  }
  if (!usual.empty()) program = TRY(as_others(std::move(program), usual));
  for (const auto& [rank, factor] : factors) {
    program::RankProgram& of = program.programs[rank];
    for (OpIndex i = 0; i < of.ops.size(); ++i)
      if (is_own_work(of.recorded[i], of.ops[i])) of.ops[i].duration = *of.ops[i].duration * factor;
  }
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
    const Picoseconds receive = Picoseconds::from(receive_of(recordings[rank], edit));
    const std::vector<Picoseconds> whole = work;
    const bool keeps_up = shorten_first(recordings[rank], loads, edit, work);
    // Steps of the recording also load for steps after it.
    const double cpus = cpus_of(recordings, rank, edit);
    const bool scarce = edit.workers + 1 > cpus;
    if (scarce && keeps_up)
      for (std::size_t k = 0; k < depth; ++k) work.push_back(whole[k % whole.size()]);
    const program::RankProgram& so_far = builder.so_far();
    const OpIndex first = loads.front().ops.front();
    const std::vector<OpIndex> before_first(
        so_far.dependencies.begin() + so_far.first_dependency[first],
        so_far.dependencies.begin() + so_far.first_dependency[first + 1]);
    for (std::size_t k = 0; k < work.size(); ++k) {
      const OpIndex load =
          builder.add({.name = name, .task = Task::kInput, .duration = work[k], .stream = workers},
                      {Kind::kHost, loads[std::min(k, loads.size() - 1)].range});
      if (k < loads.size()) {
        builder.depend(loads[k].ops.back(), load);
        builder.op(loads[k].ops.back()).duration = receive;
      }
      if (k >= depth) {
        builder.depend(load, loads[k - depth].ops.back());
      } else {
        for (const OpIndex before : before_first) builder.depend(load, before);
      }
    }
    program.programs[rank] = std::move(builder).build();
    if (scarce) divide_cpus(program.programs[rank], program.names.intern("CPUs"), cpus);
  }
  if (!any)
    return fail("no loading ranges are there to overlap", "ranges named " + edit.load,
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
