// Galvatron's computation profiles (Miao et al., VLDB 2023): forward times of whole models of two
// depths, on one GPU; their difference is the time of a layer.
//
// A file is named computation_profiling_DTYPE_MODEL.json, as memory profiles are (galvatron.h).
// Keys are layernum[LAYERS]_bszBATCH, with _seqLENGTH at the end where the name of the file does not
// say it; values are ms. "layertype_" keys are what Galvatron derived from these, and are not read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "tests/validation/studies/galvatron.h"

namespace rehearse::cli {

struct GalvatronLayerTime {
  std::uint32_t fewer, more;  ///< layers of the two runs; `more` is twice `fewer`
  double batch;
  std::uint32_t sequence;
  Seconds time;  ///< of one layer, forward, for the whole batch
};

struct GalvatronTimes {
  std::string file;
  GalvatronModel model;
  std::vector<GalvatronLayerTime> layers = {};
};

/// Fails where the file is no such profile. A model that is not known has no rows and says so in
/// `left_out`; so do runs that take more than twice as long per sample as that of the largest batch
/// of as many layers: something else ran in them.
Result<GalvatronTimes> read_galvatron_times(const std::filesystem::path& path,
                                            std::vector<std::string>& left_out);

/// Forward of one layer in Galvatron's runs, for `batch` samples of `sequence` tokens. FSDP in
/// mixed precision casts the parameters of each layer from FP32 before it: 6 bytes a parameter.
Result<std::vector<workload::Op>> galvatron_forward(const GalvatronModel& model, double batch,
                                                    std::uint32_t sequence);

/// Whether elementwise kernels are PyTorch's own, as in the models of Hugging Face; the others are
/// built of the fused kernels of flash-attn and Megatron-LM.
bool galvatron_unfused(const GalvatronModel& model);

}  // namespace rehearse::cli
