// A workload of one sample, for the samples that a rank computes at a time.
#pragma once

#include "strategies/transform.h"

namespace rehearse::strategies {

inline Result<workload::Workload> microbatch(workload::Workload workload,
                                             const RankSetting& setting) {
  return workload::with_samples(std::move(workload), setting.microbatch);
}

}  // namespace rehearse::strategies
