// Galvatron's memory profiles (Miao et al., VLDB 2023): what PyTorch had allocated on the first and
// the last rank of one and two layers under many strategies, and the layouts that these runs are.
//
// A file is named memory_profiling_DTYPE_MODEL.json, MODEL a name ("llama2-7b") or its dimensions
// ("hidden4096_head32_seqlen2048"); in front of it may stand the family and two underscores. Keys
// are PP_TP_DP with suffixes: c recomputation, vtp vocabulary-parallel embedding and head, sp
// sequence parallelism. "_ms" are the states, "_act" what forward added, "_act_peak" the most that
// was above the states; MB are MiB.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/workload/layout.h"
#include "models/workload/transformer.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// Properties of the families of Galvatron's models besides their dimensions.
struct GalvatronFamily {
  std::string name;               ///< "gpt", "llama", "baichuan", "bert"
  bool unfused = false;           ///< norms, rotation and FP32 logits, which have no formula
  double mask_bytes = 0;          ///< attention masks among the states, per s² and local sample
  bool transformed_head = false;  ///< a layer and a norm precede the logits
  /// Batches are laid out anew before and after the blocks where embedding and head have batches
  /// of their own: copies of 2 bytes an element that stay, of the two.
  std::uint32_t copies = 0;
  std::uint32_t copies_sequence_parallel = 0;
};

struct GalvatronModel {
  GalvatronFamily family;
  workload::Transformer model;
};

struct GalvatronRow {
  std::string file, key;
  std::uint32_t pipeline = 1, tensor = 1, data = 1;
  bool recompute = false, vocabulary_parallel = false, sequence_parallel = false;
  std::uint32_t layers = 1;
  double batch = 1;  ///< of all ranks
  std::uint32_t sequence = 1;
  bool first = true, last = true;                                             ///< stage
  Bytes states = Bytes::b(0), activations = Bytes::b(0), peak = Bytes::b(0);  ///< peak: in all
};

/// Of one layer, derived by Galvatron from its own runs.
struct GalvatronLayerRow {
  std::uint32_t sequence;
  std::uint32_t tensor;
  Bytes activations;  ///< per sample
};

struct GalvatronProfile {
  std::string file;
  GalvatronFamily family;
  workload::Transformer model;
  std::vector<GalvatronRow> rows = {};
  /// Only of files that hold nothing else: those with a model_config.
  std::vector<GalvatronLayerRow> layer_rows = {};
  std::optional<Bytes> layer_parameters = {};  ///< at 4 bytes
};

/// What the name of a file, [family__]KINDDTYPE_MODEL, says of the model; nothing where it is of
/// another kind, or of a model that is not known.
std::optional<GalvatronModel> galvatron_model(const std::string& file, std::string_view kind);

/// The whole of a profile; one line where it cannot be read or is no object.
Result<nlohmann::json> read_json_object(const std::filesystem::path& path);

/// Fails where the file is no such profile; a profile of a model that is not known has no rows and
/// says so in `left_out`.
Result<GalvatronProfile> read_galvatron(const std::filesystem::path& path,
                                        std::vector<std::string>& left_out);

/// The block of the model for one sample on one rank of `tensor`.
Result<workload::Layer> galvatron_block(const GalvatronProfile& profile, std::uint32_t sequence,
                                        std::uint32_t tensor, bool sequence_parallel);

/// The run as a layout of one stage and one rank: that of the row. `layer_factor` scales what a
/// block keeps against the formulas.
Result<workload::Layout> layout_of(const GalvatronProfile& profile, const GalvatronRow& row,
                                   double layer_factor = 1);

/// Of what the head needs for its logits: what forward leaves; the rest comes with backward.
double galvatron_kept_share_of_loss(const GalvatronFamily& family);

/// Among the measured states: what is allocated in any case, and masks.
Bytes galvatron_fixed(const GalvatronProfile& profile, const GalvatronRow& row);

}  // namespace rehearse::cli
