// Pipeline parallelism and layer separation: each range of layers has its own ranks.
#pragma once

#include <span>

#include "strategies/transform.h"

namespace rehearse::strategies {

/// The layers of a model as the ranks of a stage see them.
struct StageSource {
  const workload::Workload* workload;  ///< rewritten for a rank of this stage
  RankSetting setting;
  std::string name;
};

/// Divides layers into stages, one per source (layer_split.h).
///
/// A stage border with tensor parallelism carries each element once: a rank sends its share, and an
/// all-gather among the receivers follows, unless tokens are divided anyway (Narayanan et al.,
/// SC21, "scatter/gather"). A tied embedding is on the first and the last stage.
/// Sets states of parameters (states.h); leaves orders empty.
Result<workload::Layout> cut_stages(std::span<const StageSource> sources,
                                    const workload::Workload& sample);

}  // namespace rehearse::strategies
