// The shapes that are measured where nobody names any: what transformers and convolutional
// networks compute, over batches, and what moves between memories.
#pragma once

#include <vector>

#include "profiler/bench/shape.h"

namespace rehearse::bench {

std::vector<Shape> default_shapes(Family family);

}  // namespace rehearse::bench
