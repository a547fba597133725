#include "profiler/replay/selector.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/core.h>

#include "profiler/replay/backward.h"
#include "sim/base/text.h"

namespace rehearse::replay {
namespace {

using program::ProgramOp;
using program::Task;
using Kind = Recorded::Kind;
using Target = Selector::Target;

constexpr std::array<std::string_view, 8> kTargets = {"gpu",  "kernel", "copy",   "collective",
                                                      "host", "range",  "launch", "profiler"};

/// Names that a pattern could have meant, for the message of an edit that matches nothing.
std::string names_of(const std::vector<Recording>& recordings, const RecordedProgram& program,
                     const Selector& selector) {
  std::set<std::string_view> names;
  if (selector.target == Target::kRange) {
    for (const Recording& r : recordings)
      for (const HostThread& thread : r.threads())
        for (const HostIndex i : thread.ops) names.insert(r.name(r.host(i)));
  } else {
    Selector all = selector;
    all.pattern.clear();
    for (const RankOp& at : select(recordings, program, all))
      names.insert(program.names[program.programs[at.rank].ops[at.op].name]);
  }
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

/// What select() asks about the ops of one rank.
class RankSelector {
 public:
  RankSelector(const Recording& recording, const RecordedProgram& program, std::uint32_t rank,
               const Selector& selector)
      : recording_(recording), program_(program), selector_(selector) {
    if (selector.target == Target::kCollective) {
      // The kinds of communication ops, because the kernel's name alone hides an all-to-all.
      kinds_.assign(recording.rank().gpu_ops.size(), "");
      for (const CommunicationOp& op : program.replays[rank].communication)
        if (op.what && !op.of_host) kinds_[op.op] = to_string(op.what->kind);
    }
    const bool range = selector.target == Target::kRange;
    if (range || (selector.target == Target::kHost && !selector.pattern.empty()))
      ranges_.emplace(recording, selector.pattern, range);
  }

  bool matches(const ProgramOp& op, const Recorded& recorded) const {
    const bool device = recorded.kind == Kind::kDevice;
    const bool host = recorded.kind == Kind::kHost || recorded.kind == Kind::kCall;
    const std::string_view name = program_.names[op.name];
    switch (selector_.target) {
      case Target::kGpu:
        return device || recorded.kind == Kind::kUnexplained || recorded.kind == Kind::kResidual;
      case Target::kKernel: return device && op.task == Task::kCompute && named(name);
      case Target::kCopy: return device && op.task == Task::kMemory && named(name);
      case Target::kCollective:
        return op.task == Task::kCollective &&
               (named(name) || named(device ? kinds_[*recorded.row] : to_string(op.collective)));
      case Target::kHost:
        return host && (!ranges_ || range_of(recorded)) &&
               (op.task != Task::kCollective || (ranges_ && named(name)));
      case Target::kRange: return (host || device) && range_of(recorded);
      case Target::kLaunch: return recorded.kind == Kind::kLaunch;
      case Target::kProfiler: return op.task == Task::kProfiler;
    }
    return false;
  }

  /// Of a host op, or of the call that launched a device op.
  std::optional<HostIndex> range_of(const Recorded& recorded) const {
    if (!ranges_ || !recorded.row) return std::nullopt;
    return ranges_->of(recorded.kind == Kind::kDevice ? recording_.launcher(*recorded.row)
                                                      : recorded.row);
  }

 private:
  bool named(std::string_view name) const {
    return selector_.pattern.empty() || matches_wildcard(selector_.pattern, name);
  }

  const Recording& recording_;
  const RecordedProgram& program_;
  const Selector& selector_;
  std::vector<std::string_view> kinds_;  // by device op
  std::optional<Ranges> ranges_;
};

}  // namespace

Result<Selector> parse_selector(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view target = text.substr(0, equals);
  const auto found = std::ranges::find(kTargets, target);
  if (found == kTargets.end())
    return fail(fmt::format("unknown target '{}'", target), suggest(target, kTargets));
  Selector selector{static_cast<Target>(found - kTargets.begin()), "", std::string(text)};
  if (equals == std::string_view::npos) {
    if (selector.target == Target::kRange)
      return fail("'range' needs a pattern", "range=PATTERN, such as 'range=*layers.3*'");
    return selector;
  }
  selector.pattern = text.substr(equals + 1);
  if (selector.pattern.empty())
    return fail(fmt::format("'{}' has an empty pattern", text), "TARGET or TARGET=PATTERN");
  if (selector.target == Target::kGpu || selector.target == Target::kLaunch ||
      selector.target == Target::kProfiler)
    return fail(fmt::format("'{}' takes no pattern", target), "", "kernel=PATTERN or host=PATTERN");
  return selector;
}

namespace {

/// The ops that match, with those that edits took away.
std::vector<RankOp> matching(const std::vector<Recording>& recordings,
                             const RecordedProgram& program, const Selector& selector) {
  std::vector<RankOp> chosen;
  for (std::uint32_t rank = 0; rank < recordings.size(); ++rank) {
    const RankSelector of_rank(recordings[rank], program, rank, selector);
    const program::RankProgram& of = program.programs[rank];
    for (OpIndex i = 0; i < of.ops.size(); ++i)
      if (of_rank.matches(of.ops[i], of.recorded[i]))
        chosen.push_back({rank, i, of_rank.range_of(of.recorded[i])});
  }
  return chosen;
}

}  // namespace

void take_away(ProgramOp& op) {
  op.duration = Picoseconds(0);
  op.stream = program::kNoStream;
  op.bytes = Bytes::b(0);
  op.sized = false;
}

bool is_gone(const RecordedProgram& program, const RankOp& at) {
  const program::RankProgram& of = program.programs[at.rank];
  const Recorded& recorded = of.recorded[at.op];
  if (recorded.kind == Kind::kHost) return of.ops[at.op].stream == program::kNoStream;
  if (recorded.kind != Kind::kDevice && recorded.kind != Kind::kLaunch &&
      recorded.kind != Kind::kResidual)
    return false;
  const OpIndex first = program.replays[at.rank].device_first[*recorded.row];
  return of.ops[first].stream == program::kNoStream;
}

std::vector<RankOp> select(const std::vector<Recording>& recordings, const RecordedProgram& program,
                           const Selector& selector) {
  std::vector<RankOp> chosen = matching(recordings, program, selector);
  std::erase_if(chosen, [&](const RankOp& at) { return is_gone(program, at); });
  return chosen;
}

Result<std::vector<RankOp>> select_some(const std::vector<Recording>& recordings,
                                        const RecordedProgram& program, const Selector& selector) {
  std::vector<RankOp> ops = select(recordings, program, selector);
  if (!ops.empty()) return ops;
  if (!matching(recordings, program, selector).empty())
    return fail(fmt::format("'{}' matches only work that another edit takes away", selector.text),
                "one of the two edits");
  return fail(fmt::format("'{}' matches nothing", selector.text), "",
              names_of(recordings, program, selector));
}

Ranges::Ranges(const Recording& r, std::string_view pattern, bool backward)
    : outermost_(r.rank().host_ops.size()) {
  std::map<NameId, bool> named;
  std::map<std::uint32_t, HostIndex> forward;  // by sequence number: the range of the operator
  for (const HostThread& thread : r.threads())
    for (const HostIndex i : thread.ops) {
      const trace::HostOp& op = r.host(i);
      const auto [known, is_new] = named.try_emplace(op.name, false);
      if (is_new) known->second = matches_wildcard(pattern, r.name(op));
      outermost_[i] = of(r.parent(i));
      if (!outermost_[i] && known->second) outermost_[i] = i;
      if (outermost_[i] && is_forward(op)) forward[*op.sequence] = *outermost_[i];
    }
  if (!backward) return;
  for (const HostThread& thread : r.threads())
    for (const HostIndex i : thread.ops) {
      if (const auto outer = of(r.parent(i))) outermost_[i] = outer;
      if (outermost_[i] || !is_backward(r.host(i))) continue;
      const auto found = forward.find(*r.host(i).sequence);
      if (found != forward.end()) outermost_[i] = found->second;
    }
}

}  // namespace rehearse::replay
