// Scales a workload of one sample to the microbatch of a rank.
#pragma once

#include "strategies/transform.h"

namespace rehearse::strategies {

inline Result<workload::Workload> microbatch(workload::Workload workload,
                                             const RankSetting& setting) {
  return workload::with_samples(std::move(workload), setting.microbatch);
}

}  // namespace rehearse::strategies
