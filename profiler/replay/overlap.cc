#include "profiler/replay/overlap.h"

#include <map>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/program/rank_builder.h"

namespace rehearse::replay {
namespace {

using program::RankBuilder;
using program::RankProgram;
using Kind = Recorded::Kind;

/// Moves the ops of one rank.
class Mover {
 public:
  /// `moved`: the edit that moves an op. `users`: by edit, the ops that need the results.
  Mover(const Recording& recording, RecordedProgram& program, std::uint32_t rank,
        const std::map<GpuIndex, std::size_t>& moved, const std::vector<DeviceOps>& users)
      : recording_(recording),
        program_(program.programs[rank]),
        replay_(program.replays[rank]),
        rank_(rank),
        moved_(moved),
        users_(users),
        name_(program.names.intern(fmt::format("rank {} moved ops", rank))) {
    for (StepOps& step : replay_.steps)
      for (const OpIndex last : step.last_device_ops) ends_.emplace(last, &step);
    for (OpIndex i = 0; i < program_.ops.size(); ++i)
      if (const Kind kind = program_.recorded[i].kind; kind == Kind::kWake || kind == Kind::kReturn)
        for (std::uint32_t d = program_.first_dependency[i]; d < program_.first_dependency[i + 1];
             ++d)
          waits_for_.emplace(program_.dependencies[d], i);
  }

  void move() {
    for (const Stream& stream : recording_.streams()) move_from(stream);
    program::erase_dependencies(program_, [&](OpIndex op, OpIndex before) {
      const Recorded& recorded = program_.recorded[op];
      const auto next = leaves_.find(before);
      if (next == leaves_.end() || recorded.row != next->second) return false;
      return recorded.kind == Kind::kDevice || recorded.kind == Kind::kLaunch ||
             recorded.kind == Kind::kResidual;
    });
    RankBuilder builder(std::move(program_));
    std::vector<std::uint32_t> streams;
    for (std::size_t k = 0; k < users_.size(); ++k)
      streams.push_back(builder.add(program::Stream{
          .name = name_, .number = static_cast<std::uint32_t>(recording_.streams().size() + k)}));
    for (const auto& [i, edit] : moved_) builder.op(replay_.device_first[i]).stream = streams[edit];
    for (const auto& [op, before] : added_) builder.depend(op, before);
    program_ = std::move(builder).build();
  }

 private:
  struct Moved {
    OpIndex op;
    std::size_t edit;
  };

  void move_from(const Stream& stream) {
    std::optional<Moved> left;    // the op before, if it moves
    std::optional<OpIndex> kept;  // the last that stays
    std::vector<Moved> running;   // and not yet joined
    const auto join = [&](OpIndex op) {
      for (const Moved& before : running) added_.emplace_back(op, before.op);
    };
    bool new_step = false;
    for (const GpuIndex i : stream.ops) {
      const OpIndex first = replay_.device_first[i], last = replay_.device_last[i];
      const auto moves = moved_.find(i);
      if (left && (moves == moved_.end() || moves->second != left->edit)) {
        leaves_.emplace(left->op, i);
        if (kept) added_.emplace_back(first, *kept);
      }
      if (moves != moved_.end()) {
        left = {last, moves->second};
        running.push_back(*left);
      } else {
        left.reset();
        kept = last;
        std::erase_if(running, [&](const Moved& before) {
          if (!new_step && !users_[before.edit][rank_].contains(i)) return false;
          added_.emplace_back(first, before.op);
          return true;
        });
        new_step = false;
      }
      const auto [wait, waits_end] = waits_for_.equal_range(last);
      for (auto w = wait; w != waits_end; ++w) join(w->second);
      if (const auto end = ends_.find(last); end != ends_.end()) {
        new_step = true;
        for (const Moved& before : running) end->second->last_device_ops.push_back(before.op);
      }
    }
  }

  const Recording& recording_;
  program::RankProgram& program_;
  RankReplay& replay_;
  const std::uint32_t rank_;
  const std::map<GpuIndex, std::size_t>& moved_;
  const std::vector<DeviceOps>& users_;
  const NameId name_;
  std::map<OpIndex, StepOps*> ends_;
  std::multimap<OpIndex, OpIndex> waits_for_;       // of the host, by the op that it waits for
  std::map<OpIndex, GpuIndex> leaves_;              // by moved op: what no longer waits for it
  std::vector<std::pair<OpIndex, OpIndex>> added_;  // an op, and another before it
};

/// The selected device ops, by rank. Fails if there are none.
Result<DeviceOps> select_device_ops(const std::vector<Recording>& recordings,
                                    const RecordedProgram& program, const Selector& selector) {
  const auto selected = TRY(select_some(recordings, program, selector));
  DeviceOps ops(recordings.size());
  bool any = false;
  for (const RankOp& at : selected)
    if (const Recorded& recorded = program.programs[at.rank].recorded[at.op];
        recorded.kind == Kind::kDevice) {
      ops[at.rank].insert(*recorded.row);
      any = true;
    }
  if (!any)
    return fail(fmt::format("'{}' does not select work of a device", selector.text),
                "kernel=PATTERN, copy=PATTERN, collective=PATTERN or range=PATTERN");
  return ops;
}

}  // namespace

Result<RecordedProgram> make_asynchronous(const std::vector<Recording>& recordings,
                                          RecordedProgram program, const Selector& edit) {
  const auto selected = TRY(select_some(recordings, program, edit));
  std::vector<std::set<HostIndex>> calls(recordings.size());
  for (const RankOp& at : selected) {
    const Recorded& recorded = program.programs[at.rank].recorded[at.op];
    const std::optional<HostIndex> call =
        recorded.kind == Kind::kDevice ? recordings[at.rank].launcher(*recorded.row) : recorded.row;
    if (call) calls[at.rank].insert(*call);
  }
  bool any = false;
  for (std::uint32_t rank = 0; rank < recordings.size(); ++rank) {
    RankProgram& of = program.programs[rank];
    const auto is_one = [&](OpIndex op, Kind kind) {
      return of.recorded[op].kind == kind && of.ops[op].stream != program::kNoStream &&
             calls[rank].contains(*of.recorded[op].row);
    };
    for (OpIndex i = 0; i < of.ops.size(); ++i) {
      any = any || is_one(i, Kind::kReturn);
      if (is_one(i, Kind::kUnexplained)) of.ops[i].duration = Picoseconds(0);
    }
    program::erase_dependencies(of, [&](OpIndex op, OpIndex before) {
      return is_one(op, Kind::kReturn) && of.ops[before].stream != of.ops[op].stream;
    });
  }
  if (!any)
    return fail(fmt::format("no call of '{}' waits for the device", edit.text),
                "copies of pageable memory, or host=PATTERN with a synchronizing call");
  return program;
}

Result<OwnStream> parse_own_stream(std::string_view text) {
  // Names hold colons too: the second selector begins after the first colon that a target follows.
  for (std::size_t colon = text.find(':'); colon != std::string_view::npos;
       colon = text.find(':', colon + 1)) {
    Result<Selector> user = parse_selector(text.substr(colon + 1));
    if (!user) continue;
    Selector what = TRY(parse_selector(text.substr(0, colon)));
    return OwnStream{std::move(what), std::move(*user)};
  }
  Selector what = TRY(parse_selector(text));
  return OwnStream{std::move(what), std::nullopt};
}

Result<RecordedProgram> move_to_streams(const std::vector<Recording>& recordings,
                                        RecordedProgram program,
                                        const std::vector<OwnStream>& edits, Needed needed) {
  std::vector<std::map<GpuIndex, std::size_t>> moved(recordings.size());
  std::vector<DeviceOps> users;
  for (std::size_t k = 0; k < edits.size(); ++k) {
    const DeviceOps selected = TRY(select_device_ops(recordings, program, edits[k].what));
    for (std::size_t rank = 0; rank < recordings.size(); ++rank)
      for (const GpuIndex i : selected[rank]) moved[rank].insert_or_assign(i, k);
    DeviceOps& of = users.emplace_back(recordings.size());
    if (edits[k].needed_by) {
      of = TRY(select_device_ops(recordings, program, *edits[k].needed_by));
    } else if (needed == Needed::kAtOnce) {
      for (std::size_t rank = 0; rank < recordings.size(); ++rank)
        for (const Stream& stream : recordings[rank].streams())
          of[rank].insert(stream.ops.begin(), stream.ops.end());
    }
  }
  for (std::uint32_t rank = 0; rank < recordings.size(); ++rank)
    if (!moved[rank].empty()) Mover(recordings[rank], program, rank, moved[rank], users).move();
  return program;
}

}  // namespace rehearse::replay
