// StageBlocks: the passes of a stage's layers, priced once for all microbatches.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/names.h"
#include "strategies/job_of_layout.h"
#include "strategies/layer_run.h"

namespace rehearse::strategies {

/// A pass of a microbatch through one layer, or the layer's part in the step of the optimizer.
struct Block {
  const LayerRun* run;
  NameId name;  ///< of its computing
  std::uint32_t chunk, layer;
};

class StageBlocks {
 public:
  /// Interns the names of the blocks in `names`.
  /// REQUIRES: the stage outlives the blocks.
  StageBlocks(const workload::Stage& stage, const Price& price, const HostTimes& host,
              Seconds host_per_kernel, NamePool& names);
  StageBlocks(const StageBlocks&) = delete;
  StageBlocks& operator=(const StageBlocks&) = delete;

  /// In the order in which the slot runs them; a layer that occurs several times has several.
  const std::vector<Block>& of(const workload::Slot& slot) const {
    return chunks_[slot.chunk].of_pass[static_cast<std::size_t>(slot.pass)];
  }
  /// In the order of the layers.
  const std::vector<Block>& of_optimizer() const { return optimizer_; }
  /// What may begin as soon as this block of the chunk's last backward pass has ended.
  const LayerRun& deferred_after(const Block& block) const {
    return chunks_[block.chunk].steps[block.layer].deferred;
  }
  /// The pass that completes the weight gradients of a microbatch.
  workload::Pass last_backward() const {
    return split_.weights ? workload::Pass::kBackwardWeights : workload::Pass::kBackward;
  }
  /// Fails if a layer was too long to be priced, or a step computes for longer than kLongestStep.
  /// All else REQUIRES that it does not.
  Status check(std::uint32_t microbatches) const;
  /// Whether any pass waits for the host that launches it.
  bool are_paced() const { return paced_; }

 private:
  struct Chunk {
    std::vector<LayerRun> runs;    // by layer and pass
    std::vector<LayerStep> steps;  // by layer
    std::vector<Block> of_pass[kPasses];
  };

  const Split split_;
  std::vector<Chunk> chunks_;
  std::vector<Block> optimizer_;
  Status priced_;
  bool paced_ = false;
};

}  // namespace rehearse::strategies
