// The collectives of a recorded step, by group of ranks and by the work around them.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/workload/lift_ops.h"
#include "models/workload/lift_tags.h"
#include "models/workload/lift_units.h"

namespace rehearse::workload::lifting {

/// The messages of one kind that a group exchanges in a phase of a step.
struct Exchange {
  std::size_t count = 0;
  double bytes = 0;       ///< of all, as they enter; absent sizes count as 0
  double largest = 0;     ///< bytes
  std::size_t sized = 0;  ///< messages of recorded size
};

using Exchanges = std::map<std::pair<Phase, CollectiveKind>, Exchange>;

/// A message of a group.
struct Sent {
  GpuIndex op;
  Phase phase;
  double whole;   ///< bytes of all ranks' parts together
  bool exchange;  ///< next to attention or experts
};

struct GroupTraffic {
  std::string name;                    ///< as recorded; may be empty
  std::vector<std::uint32_t> members;  ///< ascending; empty if they are not recorded
  std::uint32_t size = 0;              ///< 0: not recorded
  Exchanges exchanges;                 ///< all others than those below
  /// All-to-alls next to an operator of attention, and the gathers of its keys and values with their
  /// gradients.
  Exchanges attention;
  Exchanges experts;  ///< all-to-alls next to a product of experts
  /// Forward sums whose size is that of an output of a linear, or of experts, divided by inputs.
  std::size_t row_sums = 0;
  std::vector<Sent> sent = {};  ///< in order of launch
};

/// The evidence of the plan in one rank's step.
struct RankTraffic {
  std::string source;                       ///< the file
  std::optional<std::uint32_t> rank = {};   ///< as recorded
  std::optional<std::uint32_t> world = {};  ///< ranks of the job, if known
  std::size_t microbatches = 1;
  std::uint32_t chunks = 1;  ///< of a pipeline stage
  std::size_t rows = 0;  ///< linears of a forward pass that are divided by their inputs, and tables
  std::size_t tables = 0;       ///< of `rows`
  std::size_t expert_rows = 0;  ///< products of experts that would be divided by their inputs
  std::size_t unknown = 0;      ///< device ops of communication of unknown kind
  std::vector<GroupTraffic> groups;
};

/// Adds to `shares` the vocabulary that tensor ranks divide: a table of embeddings whose rows are
/// summed after the lookup, and a linear without a partner whose gradient of inputs is summed, with
/// what follows it. Only if sums show tensor parallelism of other linears.
void find_vocabulary(const Recording& recording, const StepUnits& step, const OpMaker& maker,
                     Shares& shares);

/// Whether tensor ranks sum the outputs of linears that are divided by their inputs, but not those of
/// experts too.
bool has_whole_experts(const RankTraffic& traffic);

/// Messages below 4 KiB (norms of gradients, losses, flags) show no plan and are left out, unless
/// they have the size of an output that tensor parallelism sums.
RankTraffic traffic_of(const Recording& recording, const StepUnits& step, const Shares& shares,
                       const OpMaker& maker);

/// "[0, 1, 2, 3]" -> its numbers, ascending; nothing if the text holds anything else.
std::vector<std::uint32_t> members_of(std::string_view text);

/// Products, attention and lookups.
inline bool is_landmark(const Unit& unit) {
  const Role role = role_of(unit.name);
  return role == Role::kLinear || role == Role::kMatrix || role == Role::kAttention ||
         role == Role::kGather;
}

/// The products, attentions and lookups of a step, of all microbatches, in order of launch.
class Order {
 public:
  Order(const Recording& recording, const StepUnits& step) : r_(recording), step_(step) {
    for (std::size_t u = 0; u < step.units.size(); ++u) {
      if (!is_landmark(step.units[u])) continue;
      for (const GpuIndex i : step.units[u].device) launches_.emplace_back(launch(i), u);
    }
    std::sort(launches_.begin(), launches_.end());
  }

  /// The units of the message's phase before and after it, if there are any.
  std::pair<std::optional<std::size_t>, std::optional<std::size_t>> around(
      const Message& message) const {
    const auto of_phase = [&](const std::pair<Nanoseconds, std::size_t>& one) {
      return step_.units[one.second].phase == message.phase;
    };
    const auto next = std::upper_bound(launches_.begin(), launches_.end(),
                                       std::pair(launch(message.op), step_.units.size()));
    std::pair<std::optional<std::size_t>, std::optional<std::size_t>> units;
    const auto before = std::find_if(std::make_reverse_iterator(next), launches_.rend(), of_phase);
    if (before != launches_.rend()) units.first = before->second;
    const auto after = std::find_if(next, launches_.end(), of_phase);
    if (after != launches_.end()) units.second = after->second;
    return units;
  }

 private:
  Nanoseconds launch(GpuIndex op) const {
    const auto call = r_.launcher(op);
    return call ? r_.host(*call).start : r_.gpu(op).start;
  }

  const Recording& r_;
  const StepUnits& step_;
  std::vector<std::pair<Nanoseconds, std::size_t>> launches_;
};

}  // namespace rehearse::workload::lifting
