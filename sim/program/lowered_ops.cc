#include "sim/program/lowered_ops.h"

#include <algorithm>

#include <fmt/core.h>

namespace rehearse::program {
namespace {

using graph::Category;

Purpose purpose_of(const Origin& origin) {
  Purpose purpose;
  double all = 0;
  for (const Share& share : origin) {
    all += share.weight;
    if (share.kind == PartKind::kLaunch) purpose.launch += share.weight;
    if (share.kind == PartKind::kRecompute) purpose.recompute += share.weight;
    if (share.kind == PartKind::kOptimizer) purpose.optimizer += share.weight;
    purpose.idle |= share.kind == PartKind::kIdle;
  }
  purpose.launch /= all;
  purpose.recompute /= all;
  purpose.optimizer /= all;
  return purpose;
}

struct Plain {
  PartKind kind;
  std::string_view part;
};
/// By category: the purpose of an op without an origin.
constexpr Plain kPlainShares[] = {{PartKind::kCompute, "compute"},
                                  {PartKind::kCommunication, "sends between ranks"},
                                  {PartKind::kMemory, "copies"},
                                  {PartKind::kHost, "waiting for the host"},
                                  {PartKind::kInput, "input stall"},
                                  {PartKind::kLaunch, "launch gaps"},
                                  {PartKind::kSynchronization, "waking and hand-offs"},
                                  {PartKind::kProfiler, "profiler"},
                                  {PartKind::kIdle, "not explained by any rule"}};

}  // namespace

LoweredOps::LoweredOps(const Program& program, const Lowered& lowered,
                       const graph::Timeline& timeline, Interval computing, Interval links)
    : program_(program),
      lowered_(lowered),
      timeline_(timeline),
      computing_(computing),
      links_(links) {
  for (const Origin& origin : program.origins) purposes_.push_back(purpose_of(origin));
}

std::optional<LoweredOps::Made> LoweredOps::made(OpId op) const {
  const auto place = lowered_.place_of(op);
  if (!place) return std::nullopt;
  const std::uint32_t program = program_.program_of[lowered_.ranks[place->run].index()];
  const ProgramOp& made = program_.programs[program].ops[place->op];
  if (made.task == Task::kReceive) return std::nullopt;
  return Made{place->run, program, place->op, &made};
}

std::uint32_t LoweredOps::ranks() const {
  return static_cast<std::uint32_t>(lowered_.ranks.size());
}

std::vector<OpId> LoweredOps::of_rank(std::uint32_t rank) const {
  const OpId begin(lowered_.first_op[rank]), end(lowered_.first_op[rank + 1]);
  std::vector<OpId> ops;
  ops.reserve(end.index() - begin.index());
  auto arrival = std::ranges::lower_bound(lowered_.arrivals, begin);
  for (std::uint32_t i = begin.index(); i < end.index(); ++i) {
    const OpId op(i);
    if (arrival != lowered_.arrivals.end() && *arrival == op) {
      const auto number = static_cast<std::uint32_t>(arrival++ - lowered_.arrivals.begin());
      ops.emplace_back(lowered_.first_op.back() + number);
    }
    ops.push_back(op);
  }
  return ops;
}

std::optional<std::uint32_t> LoweredOps::rank(OpId op) const {
  const std::optional<Made> made = this->made(op);
  return made ? std::optional(made->run) : std::nullopt;
}

bool LoweredOps::on_device(OpId op) const {
  const std::optional<Made> made = this->made(op);
  if (!made) return false;
  switch (made->op->task) {
    case Task::kCompute:
    case Task::kMemory:
    case Task::kCollective:
    case Task::kSend: break;
    default: return false;
  }
  const std::uint32_t stream = made->op->stream;
  return stream >= kNoStream ||
         program_.programs[made->program].streams[stream].kind == Stream::Kind::kDevice;
}

bool LoweredOps::unexplained(OpId op) const {
  const std::optional<Made> made = this->made(op);
  if (!made) return false;
  const std::vector<Recorded>& recorded = program_.programs[made->program].recorded;
  if (recorded.empty()) return false;
  const Recorded::Kind kind = recorded[made->index].kind;
  return kind == Recorded::Kind::kUnexplained || kind == Recorded::Kind::kResidual;
}

Purpose LoweredOps::purpose(OpId op) const {
  const std::optional<Made> made = this->made(op);
  if (!made || made->op->origin == kPlainOrigin) return {};
  return purposes_[made->op->origin];
}

std::optional<Picoseconds> LoweredOps::alone(OpId op) const {
  const std::optional<Made> made = this->made(op);
  if (!made) return std::nullopt;
  const Task task = made->op->task;
  const bool works = task == Task::kCompute || task == Task::kHost || task == Task::kMemory;
  return works ? made->op->duration : std::nullopt;
}

std::uint64_t LoweredOps::alike(OpId op) const {
  constexpr std::uint64_t kOther = std::uint64_t{3} << 62, kPlain = std::uint64_t{1} << 63;
  const std::optional<Made> made = this->made(op);
  if (!made) return kOther | op.index();
  if (made->op->origin == kPlainOrigin || made->op->provenance != Provenance::kRecorded)
    return kPlain | std::uint64_t{made->program} << 32 | made->index;
  return std::uint64_t{made->op->origin} << 32 | made->op->name.index();
}

PathShare LoweredOps::slowed(OpId op) const {
  return {.kind = PartKind::kCommunication,
          .part = "computing slowed by concurrent communication",
          .op = std::string(lowered_.graph.name(op)),
          .low = links_.low,
          .high = links_.high,
          .provenance = Provenance::kExtrapolated};
}

Provenance LoweredOps::provenance_of(const Made& made, Provenance share) const {
  return std::max(made.op->provenance, share);
}

/// The share of an op without an origin, by its category.
PathShare LoweredOps::plain(OpId op, const std::optional<Made>& made) const {
  const Category category = lowered_.graph.category(op);
  const Interval& interval = category == Category::kCommunication ? links_ : computing_;
  const Plain& plain = kPlainShares[static_cast<std::size_t>(category)];
  PathShare share{
      .kind = plain.kind,
      .part = std::string(plain.part),
      .op = std::string(lowered_.graph.name(op)),
      .low = interval.low,
      .high = interval.high,
      .provenance = made ? provenance_of(*made, Provenance::kRecorded) : Provenance::kExtrapolated};
  if (category == Category::kCommunication && made && made->op->task == Task::kCollective)
    share.part = made->op->sized || made->op->collective != CollectiveKind::kBarrier
                     ? to_string(made->op->collective)
                     : "communication";  // a recording does not name every kind
  if (category == Category::kHost && made && without_device(made->run)) {
    share.kind = PartKind::kCompute;
    share.part = "host";
  }
  if (category == Category::kDelay && unexplained(op)) share.part = "unexplained waits";
  return share;
}

std::vector<PathShare> LoweredOps::shares(OpId op) const {
  const std::optional<Made> made = this->made(op);
  if (!made || made->op->origin == kPlainOrigin) return {plain(op, made)};
  std::vector<PathShare> shares;
  const auto text = [&](NameId name) { return std::string(program_.names[name]); };
  for (const Share& share : program_.origins[made->op->origin]) {
    const bool links = share.kind == PartKind::kCommunication || share.kind == PartKind::kMemory;
    const Interval interval = share.interval.value_or(links ? links_ : computing_);
    std::string what = text(share.what.value_or(made->op->name));
    if (share.detail) what = fmt::format("{}, {}", what, text(*share.detail));
    shares.push_back({.kind = share.kind,
                      .part = text(share.part),
                      .op = std::move(what),
                      .weight = share.weight,
                      .low = interval.low,
                      .high = interval.high,
                      .provenance = provenance_of(*made, share.provenance)});
  }
  return shares;
}

}  // namespace rehearse::program
