// What lifting finds in the units of a recorded step, in this order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/workload/lift_tags.h"
#include "models/workload/lift_units.h"

namespace rehearse::workload::lifting {

// --- The forward unit that each backward or recomputed unit belongs to.

/// Sets Unit::forward. A backward operator names its forward operator by the sequence number. Those
/// that do the work of several (a compiled graph, a fused block), and recordings without numbers,
/// are walked in reverse. Units of recomputation are matched with the forward pass in its order.
/// REQUIRES: `units` of the step in order of start, with phases and nodes set.
void pair_backward(const Recording& recording, const replay::Step& step, std::vector<Unit>& units);

// --- The passes of a recorded step: microbatches, and the chunks of an interleaved pipeline stage.

struct Passes {
  std::size_t microbatches = 1;
  std::uint32_t chunks = 1;
  /// Starts of the backward units of later microbatches than the first, ascending.
  std::vector<Nanoseconds> later = {};
};

/// Merges all microbatches into the first: units keep their place there and collect device ops and
/// time of all. Units of later ones only (adding to a gradient) are appended. Sets Unit::chunk.
/// Microbatches with different forward parts belong to different networks: they stay separate, as
/// one pass. REQUIRES: `units` in order of start, paired.
Passes fold_passes(std::vector<Unit>& units);

// --- The layer that each unit of a step belongs to.

enum class LayerSource {
  kModules,    ///< calls of nn.Module
  kRanges,     ///< ranges of the program: record_function, NVTX
  kOperators,  ///< each operator with parameters begins one
};
std::string_view to_string(LayerSource source);

struct Layers {
  LayerSource source;
  std::vector<std::string> names;
  std::vector<std::uint32_t> chunks;  ///< by layer: the chunk of the pipeline stage
  /// By unit; nothing for the optimizer, and for units that belong to none.
  std::vector<std::optional<std::size_t>> of_unit;
};

/// Layers are in the order of the forward pass. A unit without its own layer (an activation, an
/// addition between two modules) belongs to the previous layer of its chunk, or to the first.
Layers find_layers(const Recording& recording, const StepUnits& step);

// --- Memory of a recorded layer: parameters, saved activations, output.

/// Fills weights, saved activations and output of the layers; adds uncertainties to `notes`.
/// Parameters are counted by their recorded gradients, otherwise by operands.
void fill_memory(const StepUnits& step, const Layers& of, const OpMaker& maker,
                 const Shares& shares, Workload& workload, std::vector<std::string>& notes);

/// Finds the messages of a ring by their size and the attention next to them, and joins the parts in
/// which a rank computes attention, one for the keys of each rank, to one unit. Changes nothing if
/// no message in the forward pass holds the keys, the values or both of an attention next to it.
void join_ring(const Recording& recording, StepUnits& step);

}  // namespace rehearse::workload::lifting
