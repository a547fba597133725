// The operations of a model as a table of a traced graph lists them: op, target, input and output
// shapes, number formats, contiguity. From it, the kernels of forward and backward.
#pragma once

#include <filesystem>
#include <vector>

#include "models/workload/op.h"
#include "sim/base/result.h"

namespace rehearse::cli {

struct ModelGraph {
  std::vector<workload::Op> forward, backward;  ///< of the whole model
};

struct ModelGraphRequest {
  double layers = 1;  ///< the table holds one; those of a numbered layer count so often
  bool training = false;
  double batch = 1;  ///< samples ÷ those of the table: scales all but weights
};

/// Columns op, target, type, meta, input_shapes, input_contiguous, output_shape, dtype; may be
/// gzipped. FP32. What moves no data is left out: views, shapes, dropout in inference, casts
/// without change.
Result<ModelGraph> read_model_graph(const std::filesystem::path& path,
                                    const ModelGraphRequest& request);

}  // namespace rehearse::cli
