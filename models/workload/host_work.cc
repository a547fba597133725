#include "models/workload/host_work.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "models/workload/lift_units.h"
#include "profiler/replay/collectives.h"
#include "profiler/replay/recording.h"

namespace rehearse::workload {
namespace {

using replay::HostIndex, replay::Recording, trace::HostKind, trace::HostOp;

bool has_device(const trace::Rank& rank) {
  return !rank.gpu_ops.empty() || std::ranges::any_of(rank.host_ops, [](const HostOp& op) {
    return op.kind == HostKind::kRuntime || op.kind == HostKind::kDriver;
  });
}

class Finder {
 public:
  explicit Finder(const Recording& r)
      : r_(r),
        works_(std::ranges::any_of(r.rank().host_ops,
                                   [](const HostOp& op) { return op.kind == HostKind::kOperator; })
                   ? HostKind::kOperator
                   : HostKind::kAnnotation) {}

  /// In the order of each thread; none contains another.
  std::vector<HostIndex> find() const {
    std::vector<HostIndex> found;
    for (const replay::HostThread& thread : r_.threads()) {
      Nanoseconds until{INT64_MIN};
      for (std::size_t k = 0; k < thread.ops.size(); ++k) {
        const HostOp& op = r_.host(thread.ops[k]);
        if (op.start < until || op.duration == Nanoseconds(0) || !is_work(thread, k)) continue;
        found.push_back(thread.ops[k]);
        until = op.end();
      }
    }
    return found;
  }

 private:
  bool is_work(const replay::HostThread& thread, std::size_t k) const {
    const HostIndex i = thread.ops[k];
    const HostOp& op = r_.host(i);
    if (op.collective) return true;
    if (op.kind != works_ || loads(i)) return false;
    const std::string_view name = r_.name(op);
    if (works_ == HostKind::kAnnotation) return in_a_pass(i) && !contains_any(thread, k);
    if (lifting::is_backward_node(r_, op) || name == "torch::autograd::AccumulateGrad")
      return false;
    return name.starts_with("aten::") || lifting::role_of(name) != lifting::Role::kPlain ||
           !contains_any(thread, k);
  }

  /// Whether an op of the kind that works lies inside: ops of a thread nest in their order.
  bool contains_any(const replay::HostThread& thread, std::size_t k) const {
    const Nanoseconds end = r_.host(thread.ops[k]).end();
    for (++k; k < thread.ops.size() && r_.host(thread.ops[k]).start < end; ++k)
      if (r_.host(thread.ops[k]).kind == works_) return true;
    return false;
  }

  bool loads(HostIndex op) const {
    for (std::optional<HostIndex> i = op; i; i = r_.parent(*i))
      if (r_.name(r_.host(*i)).starts_with("enumerate(DataLoader)")) return true;
    return false;
  }

  bool in_a_pass(HostIndex op) const {
    for (std::optional<HostIndex> i = op; i; i = r_.parent(*i))
      for (const std::string_view pass : {"forward", "backward", "optimizer"})
        if (r_.name(r_.host(*i)) == pass) return true;
    return false;
  }

  const Recording& r_;
  HostKind works_;
};

/// Collectives that state no ranks are among the given ones that run them together.
void state_ranks(const trace::Trace& trace, trace::Trace& result) {
  std::vector<Recording> recordings;
  std::vector<std::vector<replay::CommunicationOp>> communication;
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
    recordings.emplace_back(trace, rank);
    communication.push_back(replay::find_communication(recordings.back()));
  }
  for (const auto& match : replay::match_collectives(recordings, communication).matched) {
    std::vector<std::size_t> ranks;
    for (const auto& member : match.members)
      ranks.push_back(trace.ranks[member.rank].info.rank.value_or(member.rank));
    const NameId text = result.names.intern(fmt::format("[{}]", fmt::join(ranks, ", ")));
    for (const auto& member : match.members) {
      if (!recordings[member.rank].streams().empty()) continue;
      const HostOp& op = recordings[member.rank].host(member.op);
      trace::Collective& what = result.ranks[member.rank].collectives[op.collective->index()];
      if (what.group_size || what.ranks) continue;
      what.group_size = static_cast<std::uint32_t>(ranks.size());
      what.ranks = text;
    }
  }
}

}  // namespace

std::optional<trace::Trace> with_host_work_on_cores(const trace::Trace& trace) {
  std::optional<trace::Trace> result;
  for (std::size_t number = 0; number < trace.ranks.size(); ++number) {
    if (!trace.ranks[number].info.timed || has_device(trace.ranks[number])) continue;
    const std::vector<HostIndex> work = Finder(Recording(trace, number)).find();
    if (work.empty()) continue;
    if (!result) result = trace;
    trace::Rank& rank = result->ranks[number];
    const NameId call = result->names.intern("work of the host");
    rank.devices = {{.ordinal = 0, .name = std::string(kCore)}};
    for (const HostIndex i : work) {
      const HostOp op = rank.host_ops[i];
      const auto correlation = static_cast<std::uint32_t>(rank.gpu_ops.size());
      rank.host_ops.push_back({.name = call,
                               .thread = op.thread,
                               .kind = HostKind::kRuntime,
                               .start = op.start,
                               .duration = op.duration,
                               .correlation = correlation});
      rank.gpu_ops.push_back({.name = op.name,
                              .kind = trace::GpuKind::kKernel,
                              .stream = static_cast<std::uint32_t>(op.thread.index()),
                              .start = op.start,
                              .duration = op.duration,
                              .correlation = correlation,
                              .collective = op.collective});
    }
  }
  if (result && trace.ranks.size() > 1) state_ranks(trace, *result);
  return result;
}

}  // namespace rehearse::workload
