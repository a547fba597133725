#include "models/workload/layout.h"

namespace rehearse::workload {

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
    case Axis::kTensor: return degrees.tensor;
    case Axis::kContext: return degrees.context;
    case Axis::kExpert: return degrees.expert;
    case Axis::kData: return degrees.sharers(op.expert);
  }
  return 1;
}

}  // namespace rehearse::workload
