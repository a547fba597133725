// Recommendation models (DLRM, Naumov et al., 2019): embedding tables, a network for dense inputs,
// products of all pairs, a network on top.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/transformer.h"

namespace rehearse::workload {

struct Dlrm {
  std::string name;
  std::uint32_t dense = 13;                ///< inputs that are numbers
  std::vector<double> rows = {};           ///< rows of each table
  std::uint32_t embedding_size = 0;        ///< common to all tables
  double lookups = 1;                      ///< per table and sample; summed if more than one
  std::vector<std::uint32_t> bottom = {};  ///< widths of the network of dense inputs
  std::vector<std::uint32_t> top = {};     ///< widths of the network on top
  /// Low-rank cross layers on the concatenation of all features (DCNv2), instead of pairs; 0:
  /// pairs.
  std::uint32_t cross_layers = 0;
  std::uint32_t cross_rank = 0;
};

/// For one sample. Tables count as experts: they are divided over data-parallel ranks, their rows
/// are exchanged, and their gradients are sparse. Layers: "tables", "bottom", "interaction", "top".
/// Fails where dimensions are missing or the bottom network does not end in the embedding's size.
Result<Workload> dlrm(const Dlrm& model, const Implementation& how);

}  // namespace rehearse::workload
