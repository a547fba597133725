// JobRow: one measured training job of a published table: what was trained, how it was laid out, on
// what, and what was measured. Readers of the tables: job_tables.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "strategies/plan.h"

namespace rehearse::cli {

/// What decides cost and memory of a layer beside its extents.
enum class Implementation : std::uint8_t {
  kMegatron2021,   ///< unfused attention that keeps its scores, dropout
  kMegatron2022,   ///< the same; products of weight gradients accumulate
  kMegatronFlash,  ///< fused attention, no dropout, fused in-place cross-entropy
  kTorchtitan,     ///< PyTorch as it is: fused attention, cross-entropy in FP32
  kTorchtitanCompiled,
  kLlmFoundry,  ///< fused attention, no dropout
};

struct ModelShape {
  std::uint32_t hidden = 0;
  std::uint32_t layers = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;   ///< as heads, unless keys and values are shared by several
  std::uint32_t head_size = 0;  ///< hidden / heads, unless the model says otherwise
  std::uint32_t feed_forward = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t sequence = 0;
  bool gated = false;  ///< SwiGLU: three matrices instead of two
  bool rms_norm = false;
  bool learned_positions = false;
  bool tied_embedding = false;
  bool biases = false;
  std::uint32_t experts = 0;  ///< of every layer; feed_forward is that of one
  std::uint32_t experts_per_token = 0;
  bool clamped_experts = false;
};

struct JobRow {
  std::string table = {};  ///< "vtrain-multi"
  std::string name = {};   ///< unique within the table
  ModelShape model = {};
  Implementation implementation = Implementation::kMegatron2021;
  strategies::Training training = {};
  strategies::Plan plan = {};
  std::string device = {};  ///< in the catalog
  std::uint32_t devices_per_node = 8;
  std::uint32_t nodes = 1;
  ByteRate node_network = ByteRate::gbit_per_s(0);  ///< of all NICs of a node, one direction
  /// What runs in FP8, of half precision: 1 where each row has a scale of its own, which gains
  /// nothing.
  std::optional<double> fp8 = {};
  /// Share of the peak matrix rate that the generation of its attention kernels gets.
  std::optional<double> attention = {};
  bool fused_experts = false;
  /// Ops that run again in backward, by name.
  std::vector<std::string_view> recomputed = {};
  /// What the table leaves open: those that are legal; `training` and `plan` hold the first.
  struct Choice {
    double microbatch;
    std::uint32_t interleave;
  };
  std::vector<Choice> choices = {};
  std::vector<std::string> assumed = {};  ///< what the table does not say
  /// Measured; `step` follows from the throughput where the table has only that.
  std::optional<Seconds> step = {};
  std::optional<double> tokens_per_s_per_device = {};
  std::optional<Bytes> peak = {};
  /// By formula (seqsel): weights, gradients and optimizer; activations of the fullest rank; the
  /// latter as a share of those without recomputation and sequence parallelism.
  std::optional<Bytes> states = {};
  std::optional<Bytes> activations = {};
  std::optional<double> activation_share = {};

  std::uint32_t devices() const { return devices_per_node * nodes; }
};

struct JobTable {
  std::string name;
  std::vector<JobRow> rows = {};
  std::vector<std::string> left_out = {};  ///< rows that this program has no words for, and why
};

}  // namespace rehearse::cli
