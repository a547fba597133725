// The order in which the sums of gradients of a recorded step run.
#pragma once

#include <cstdint>
#include <string>

#include "cli/commands/edited_run.h"

namespace rehearse::cli {

enum class SumOrder : std::uint8_t {
  kReady,    ///< as their gradients become ready
  kReverse,  ///< of the sums that wait, the one whose gradients became ready last
};
Result<SumOrder> parse_sum_order(const std::string& text);

/// Sums of one group and kind that follow one another on a stream of the device run in another order.
/// No sum starts before its gradients are ready on all ranks, and none is interrupted. Ops that waited
/// for a sum wait for all that were recorded before it too. The times of readiness, the same for all
/// ranks, are those of a run of `program`. Sums that --bucket joined stay together. Steps that are in
/// order already are unchanged under kReady; if all are, that is a warning. Fails if no step has two
/// such sums. Those that one call launched, as a CUDA graph does, keep their order.
Result<replay::RecordedProgram> order_sums(const ReplayJob& job, replay::RecordedProgram program,
                                           SumOrder order, const Globals& globals);

}  // namespace rehearse::cli
