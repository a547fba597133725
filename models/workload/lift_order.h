// The work around the messages of a step.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "models/workload/lift_units.h"

namespace rehearse::workload::lifting {

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
