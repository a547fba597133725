// The collectives of a recorded step, by group of ranks and by the work around them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/workload/lift_ops.h"
#include "models/workload/lift_tags.h"

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

}  // namespace rehearse::workload::lifting
