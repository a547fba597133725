// Fitting the constants of the laws to measured rows: a pattern search (search.h) for the least
// mean |log(predicted / measured)|, each term bounded, so that a few rows measured while something
// else ran do not move the rest. Unknowns stay inside physical bounds. Equal rows give equal
// constants.
#pragma once

#include <span>
#include <vector>

#include "models/compute/constants.h"
#include "sim/base/units.h"

namespace rehearse::compute {

struct MeasuredOp {
  workload::Op op;
  Seconds time;
};

struct DeviceRows {
  DeviceFacts facts;
  std::vector<MeasuredOp> rows;
};

/// Adjustable constants besides factor and batched factor.
struct MatrixFreedom {
  bool shape = true;      ///< else it stays as in the start
  bool tiles = true;      ///< else all tiles are alike
  bool overhead = false;  ///< the rows were timed call by call
  bool reread = false;
  double copies = 0;  ///< of Timing; its cache is fitted
};

struct MatrixFit {
  std::vector<MatrixConstants> devices;  ///< sharing one shape
  Timing timing;
  double residual;  ///< mean |predicted / measured - 1|
};

/// One shape for all devices and a factor for each. The largest share of a tile is 1.
/// REQUIRES: products in this arithmetic, some of each device.
MatrixFit fit_matrix(Arithmetic arithmetic, std::span<const DeviceRows> devices,
                     const MatrixConstants& start, const MatrixFreedom& freedom);

/// The factor alone (and the reread, where rows are many), everything else as in `start`.
MatrixConstants fit_factor(Arithmetic arithmetic, const DeviceRows& device,
                           const MatrixConstants& start, const Timing& timing);

struct MemoryFit {
  MemoryConstants constants;
  double elementwise_overhead, norm_overhead, softmax_overhead;  ///< s, of timing
  double residual;
};

/// REQUIRES: only rows of elementwise ops, norms and softmax, at least one. For a kind without rows
/// the constants are those of `start`.
MemoryFit fit_memory(const DeviceRows& device, const MemoryConstants& start);

/// Rows of attention of one table, with the constants of its device and whose kernels they are.
struct AttentionRows {
  DeviceFacts facts;
  Constants constants;
  std::vector<MeasuredOp> rows;
};

struct AttentionFit {
  AttentionConstants constants;
  Timing timing;
  double residual;
};

/// Constants that all devices share; the factor of FlashAttention-2 is 1. A family without rows
/// keeps what the search begins with. REQUIRES: kernels that are named, and some rows of each table.
AttentionFit fit_attention(std::span<const AttentionRows> tables);

/// mean |predicted / measured - 1|.
double mean_error(const DeviceFacts& facts, const Constants& constants,
                  std::span<const MeasuredOp> rows, const Timing& timing = {});

}  // namespace rehearse::compute
