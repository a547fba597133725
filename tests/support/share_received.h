// What the members of a collective receive, to compare with what they send.
#pragma once

#include "sim/graph/message_flows.h"

namespace rehearse::test {

/// The share of the collective's size that a member receives.
inline double share_received(const graph::MessageFlows& flows, std::uint32_t member) {
  double sum = 0;
  for (const graph::MessageFlow& flow : flows.flows())
    if (flow.to == member) sum += flow.share * flow.count;
  return sum;
}

}  // namespace rehearse::test
