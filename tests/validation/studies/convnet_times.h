// TrioSim's recordings of convolutional networks in training on one H100: what each layer or pass
// took, and the operations that the zoo says it has.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/workload/op.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::cli {

struct ConvnetPass {
  std::string name;  ///< "Conv2d_0 forward"; "forward" of the whole network
  Seconds time;      ///< of the device
  std::vector<workload::Op> ops = {};
};

struct ConvnetTimes {
  std::string name;  ///< in the zoo
  double batch;
  std::vector<ConvnetPass> whole = {};   ///< forward and backward
  std::vector<ConvnetPass> layers = {};  ///< where layers can be told apart
};

/// raw_MODEL_kineto_*.json.gz, lifted: layer by layer, where it has as many layers with parameters
/// as the zoo says. processed_bsBATCH_MODEL/trace.csv, a row for each operator with `stage` and
/// `Operator_cudatime` (us): pass by pass. Of the ops, names mean nothing.
Result<std::vector<ConvnetTimes>> read_convnet_times(const std::filesystem::path& folder);

}  // namespace rehearse::cli
