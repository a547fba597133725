// The default shapes: operations of transformers and convolutional
// networks over batches, and copies between memories.
#pragma once

#include <vector>

#include "profiler/bench/shape.h"

namespace rehearse::bench {

std::vector<Shape> default_shapes(Family family);

}  // namespace rehearse::bench
