// Files of shapes to measure, as CSV or YAML (docs/formats/shapes.md).
#pragma once

#include <filesystem>
#include <vector>

#include "profiler/bench/shape.h"
#include "sim/base/result.h"

namespace rehearse::bench {

/// Reads CSV if the name ends with ".csv", else YAML. Fails with every mistake in the file, one
/// line each; on a file without a shape; and on too many shapes to measure in a reasonable time.
Result<std::vector<Shape>> read_shapes(const std::filesystem::path& path);

/// What `bench-gpu` measures unless a file says otherwise (default_shapes.yaml): shapes of
/// transformers and of ResNet-50, by family.
std::vector<Shape> default_shapes();

}  // namespace rehearse::bench
