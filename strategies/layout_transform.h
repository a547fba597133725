// What a transform of a whole layout may look at, and what several of them do alike.
#pragma once

#include <vector>

#include "strategies/states.h"
#include "strategies/transform.h"

namespace rehearse::strategies {

struct JobSetting {
  const Training* training;
  const Plan* plan;
};

inline constexpr std::string_view kUpdateName = "update parameters";

/// The optimizer, for the parameters of one layer.
inline workload::Op update_of(double parameters, const JobSetting& setting) {
  return traffic(kUpdateName, parameters * update_bytes(*setting.training, *setting.plan));
}

/// A collective of dense parameters and one of experts, over those that hold the same; none where
/// nobody else does.
inline void add_collectives(std::vector<workload::Op>& ops, std::string_view name,
                            CollectiveKind kind, const Parameters& parameters, double bytes_each,
                            const workload::Degrees& degrees, workload::Issue issue) {
  for (const bool expert : {false, true}) {
    const double count = expert ? parameters.expert : parameters.dense;
    if (count == 0 || sharers(degrees, expert) <= 1) continue;
    ops.push_back(collective(name, kind, workload::Axis::kData, count * bytes_each, issue));
    ops.back().expert = expert;
  }
}

}  // namespace rehearse::strategies
