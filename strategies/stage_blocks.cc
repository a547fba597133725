#include "strategies/stage_blocks.h"

#include <utility>

#include <fmt/core.h>

namespace rehearse::strategies {

using workload::Layer;
using workload::Pass;

StageBlocks::StageBlocks(const workload::Stage& stage, const Price& price, const HostTimes& host,
                         Seconds host_per_kernel, NamePool& names)
    : split_(split_of(stage)), chunks_(stage.chunks.size()) {
  const NameId optimizer = names.intern("optimizer");
  for (std::uint32_t c = 0; c < chunks_.size(); ++c) {
    const std::vector<Layer>& layers = stage.chunks[c].layers;
    Chunk& chunk = chunks_[c];
    chunk.runs.resize(layers.size() * kPasses);
    const auto run_of = [&](std::uint32_t l, Pass pass) -> LayerRun& {
      return chunk.runs[kPasses * l + static_cast<std::size_t>(pass)];
    };
    for (std::uint32_t l = 0; l < layers.size(); ++l) {
      for (const Pass pass :
           {Pass::kForward, Pass::kBackward, Pass::kBackwardWeights, Pass::kRecompute}) {
        Result<LayerRun> run = layer_run(layers[l], pass, split_, price, host);
        if (run)
          run_of(l, pass) = std::move(*run);
        else
          priced_ = tl::unexpected(std::move(run.error()));
        paced_ = paced_ || run_of(l, pass).is_paced();
      }
      Result<LayerStep> step = layer_step(layers[l], price, host_per_kernel);
      if (!step) priced_ = tl::unexpected(std::move(step.error()));
      chunk.steps.push_back(std::move(step).value_or(LayerStep{}));
    }
    const auto add = [&](std::uint32_t l, Pass pass, std::string_view what) {
      const NameId name = names.intern(fmt::format("{} {}", layers[l].name, what));
      std::vector<Block>& blocks = chunk.of_pass[static_cast<std::size_t>(pass)];
      blocks.insert(blocks.end(), layers[l].count, {&run_of(l, pass), name, c, l});
    };
    for (std::uint32_t l = 0; l < layers.size(); ++l) {
      add(l, Pass::kForward, "forward");
      optimizer_.insert(optimizer_.end(), layers[l].count, {&chunk.steps[l].rest, optimizer, c, l});
    }
    for (auto l = static_cast<std::uint32_t>(layers.size()); l-- > 0;) {
      add(l, Pass::kBackward, "backward");
      if (split_.weights) add(l, Pass::kBackwardWeights, "weight gradients");
      if (split_.recompute) add(l, Pass::kRecompute, "recompute");
    }
  }
}

Status StageBlocks::check(std::uint32_t microbatches) const {
  TRY(priced_);
  Seconds step = Seconds::s(0);
  for (const Block& block : optimizer_) step += block.run->computing().seconds();
  for (const Chunk& chunk : chunks_)
    for (const std::vector<Block>& pass : chunk.of_pass)
      for (const Block& block : pass) step += block.run->computing().seconds() * microbatches;
  return check_length(step);
}

}  // namespace rehearse::strategies
