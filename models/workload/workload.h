// Workload: the computation of one training step, layer by layer, before its layout.
//
// The zoo (zoo.h), a Hugging Face config (hugging_face.h) and a recording (lift.h) give one for a
// single sample on a single rank; strategies rewrite it for a rank of a plan. Equal layers
// are stored once, with their count.
//
// Invariants (verify() checks them):
//  1. Extents, bytes and counts are finite and not negative; matrix operations have extents above
//     zero.
//  2. Inputs of a layer are earlier layers; a layer with a count above 1 is a chain of that many.
//  3. `samples` and `tensor` name extents that the kind has.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/op.h"
#include "sim/base/names.h"
#include "sim/base/result.h"

namespace rehearse::workload {

/// Parameters that parallelism divides alike.
struct Weights {
  double count;
  bool tensor = false;  ///< divided by tensor parallelism; else every rank of the group holds them
  bool expert = false;  ///< divided by expert parallelism
  /// Rows of sparsely read tables: no gradient of the whole table is stored or reduced, and the
  /// optimizer visits only the rows that were looked up.
  bool sparse = false;
  bool frozen = false;  ///< not trained: no gradient, and no state of the optimizer
  bool nf4 = false;     ///< stored in 4 bits (adapters.h)
};

/// An input that sequence parallelism gathers from the ranks of a tensor group, in backward.
enum class GatheredInputs : std::uint8_t {
  kAgain,  ///< gathered again from the shares that ranks saved (Megatron-LM)
  kSaved,  ///< saved whole by forward (modules of PyTorch, nanotron without its option)
  /// Gathered again. Blocks that collectives use may stay until the device has finished them
  /// (memory::RunAhead); intervals of memory hold none and all of them.
  kUnknown,
};
inline constexpr std::string_view kGatheredInputsNames[] = {"again", "saved", "unknown"};

/// An activation that forward saves for backward, per microbatch.
struct SavedActivation {
  std::string_view name;
  Bytes bytes;
  bool tensor = false;     ///< divided by tensor parallelism; else only by sequence parallelism
  bool core = false;       ///< not kept under selective recomputation
  bool input = false;      ///< the input of the layer: all that full recomputation keeps
  bool transient = false;  ///< logits and loss: held for the current microbatch alone
  /// For inputs of products that tensor parallelism divides by columns; others are never gathered.
  GatheredInputs gathered = GatheredInputs::kAgain;
  Bytes unsure = Bytes::b(0);  ///< of `bytes`, those that only a host ahead of the device holds
  /// The product that takes it, and the share of it that only the gradient of that product's weights
  /// needs. Empty: other gradients need all of it.
  std::string_view taken_by = {};
  double for_weights = 0;
};

/// Bytes that are not on the device but in the memory of its host, or on NVMe drives.
struct Away {
  Bytes host = Bytes::b(0), nvme = Bytes::b(0);
  void add(double bytes, bool on_nvme) { (on_nvme ? nvme : host) += Bytes::b(bytes); }
};

struct Layer {
  std::string name;
  std::uint32_t count = 1;  ///< number of equal consecutive layers
  std::vector<Op> forward = {};
  std::vector<Op> backward = {};
  /// Before backward, where activations were dropped. Empty until recomputation is decided.
  std::vector<Op> recompute = {};
  /// Activations that `recompute` makes again. They are no longer in `saved`, but are present while
  /// backward of this layer runs.
  Bytes recomputed = Bytes::b(0);
  /// Once per optimizer step: gradients summed, parameters updated. Empty until decided.
  std::vector<Op> step = {};
  std::vector<Weights> weights = {};
  /// The most parameters of it that ZeRO-3 gathers at once; absent: all.
  std::optional<double> gathered_at_once = {};
  std::vector<SavedActivation> saved = {};
  Away away = {};              ///< of its saved activations, per microbatch
  Bytes output = Bytes::b(0);  ///< data passed on, per microbatch
  /// Whole activations that sequence parallelism gathers, and sums that it scatters, while it runs.
  Bytes whole = Bytes::b(0);
  /// The host's work to launch it, relative to a dense Llama block. 0: unknown, so that only the
  /// number of its kernels counts.
  double host_work = 0;
  /// Layers whose outputs it takes; empty: the one before it.
  std::vector<std::uint32_t> inputs = {};

  double parameters() const;
  double trained_parameters() const;
  Bytes saved_bytes() const;  ///< without the transient ones
};

struct Workload {
  std::string name;
  NamePool names = {};
  std::vector<Layer> layers = {};
  double samples = 1;  ///< number of samples of the extents
  /// Tokens of a sample; 0 where samples have none (images).
  double tokens_per_sample = 0;
  /// An extent that the tensor degree must divide, such as {"heads", 96}.
  struct Divisor {
    std::string_view name;
    double count;
  };
  std::vector<Divisor> divided_by_tensor = {};
  std::uint32_t experts = 0;     ///< per mixture layer
  double experts_per_token = 0;  ///< experts that run for a token
  bool tied_embedding = false;   ///< first and last layer share a matrix

  std::uint32_t layer_count() const;  ///< with counts
  double parameters() const;
  double trained_parameters() const;
  /// Forward and backward of matrix operations over all layers, without recomputation.
  Flops model_flops() const;
};

Status verify(const Workload& workload);
/// Layers alone: invariants 1 and 3.
Status verify(std::span<const Layer> layers);

/// Multiplies extents by `samples`: the same step for a microbatch of that size.
Workload with_samples(Workload workload, double samples);

/// Whether a layer computes a convolution.
bool has_convolutions(const Workload& workload);

/// The op for samples of `to` instead of `from` tokens. Work on scores, which is `core` or a softmax
/// over all tokens, grows with their square. Fails where the extents do not tell: convolutions, and
/// batched products unless exactly two of their extents count tokens.
Result<Op> with_tokens(Op op, double from, double to);
/// Changes the tokens of each sample. A table of positions keeps its rows. Fails if samples have no
/// tokens, and as above, with the name of the layer.
Result<Workload> with_tokens(Workload workload, double tokens);

}  // namespace rehearse::workload
