#include "models/workload/layout.h"

#include <algorithm>

namespace rehearse::workload {

std::vector<std::uint32_t> Stage::most_in_flight() const {
  const bool split = std::any_of(order.begin(), order.end(),
                                 [](const Slot& s) { return s.pass == Pass::kBackwardWeights; });
  const Pass frees = split ? Pass::kBackwardWeights : Pass::kBackward;
  std::vector<std::uint32_t> held(chunks.size(), 0), worst = held;
  // The worst moment of the whole stage, where the number of layers of a chunk represents its
  // parameters.
  double most = 0;
  for (const Slot& slot : order) {
    if (slot.pass == Pass::kForward) ++held[slot.chunk];
    if (slot.pass == frees && held[slot.chunk] > 0) --held[slot.chunk];
    double now = 0;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      double bytes = 0;
      for (const Layer& layer : chunks[c].layers) bytes += layer.count * layer.saved_bytes().b();
      now += held[c] * std::max(bytes, 1.0);
    }
    if (now > most) {
      most = now;
      worst = held;
    }
  }
  return worst;
}

double Stage::parameters() const {
  double sum = 0;
  for (const Chunk& chunk : chunks)
    for (const Layer& layer : chunk.layers) sum += layer.count * layer.parameters();
  return sum;
}

std::uint32_t Layout::ranks() const {
  std::uint32_t sum = 0;
  for (const Stage& stage : stages) sum += stage.degrees.ranks();
  return sum + (servers ? servers->count : 0);
}

std::uint32_t group_size(const Op& op, const Degrees& degrees) {
  switch (op.axis) {
    case Axis::kTensor:
      return degrees.tensor;
    case Axis::kContext:
      return degrees.context;
    case Axis::kExpert:
      return degrees.expert;
    case Axis::kData:
      return degrees.sharers(op.expert);
  }
  return 1;
}

}  // namespace rehearse::workload
