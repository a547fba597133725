// Recordings of the ranks of a predicted step: every rank with its kernels and collectives at their
// predicted times, as a profiler would have recorded them.
#pragma once

#include "profiler/trace/trace.h"
#include "strategies/prices.h"
#include "strategies/step/step.h"

namespace rehearse::test {

/// How context parallel ranks exchange keys and values that they do not exchange for heads.
enum class KeysBy {
  kGather,     ///< one for each attention
  kMessages,   ///< of a ring, around the parts of attention
  kInOneCall,  ///< messages of a ring within one operator for all parts
};

/// REQUIRES: a step of all ranks (PredictOptions::unfold) of a workload lifted from RecordedRanks,
/// priced by `price`, without times of the host.
trace::Trace record(const step::Step& step, const strategies::Price& price,
                    KeysBy keys_by = KeysBy::kGather);

}  // namespace rehearse::test
