// OpTiming: the time of a single operation, run alone on a device, measured by `rehearse
// bench-gpu`.
//
// Two timings are of the same operation if everything before `median` is equal (same_key). A trace
// store keeps them in its table op_cost (docs/formats/store.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.h"

namespace rehearse::trace {

struct OpTiming {
  std::string op = {};     ///< "gemm", "conv", "softmax", "all_reduce", …
  std::string shape = {};  ///< extents in a fixed order: "m=4096 n=4096 k=1024 batch=1"
  std::string dtype = {};  ///< operand type: "bf16"
  std::string layout =
      {};  ///< transposes, order of axes or ends of a copy; empty where there is none
  std::string epilogue = {};  ///< epilogue of a product; empty if there is none
  bool cold = false;          ///< operands were not in L2; else L2 holds those of previous calls
  std::string device = {};    ///< its product name
  std::uint32_t multiprocessors = 0;
  std::string partition = {};  ///< MIG profile, "1g.10gb"; empty on a whole device
  double memory_clock_hz = 0;  ///< 0: not known
  std::string libraries = {};  ///< libraries with versions: "driver 13.0, cuBLASLt 13.0.2"

  Seconds median = Seconds::s(0), mean = Seconds::s(0), min = Seconds::s(0), p10 = Seconds::s(0),
          p90 = Seconds::s(0);
  std::uint64_t samples = 0;  ///< hot: each the mean of a batch of launches
  double half_width = 0;      ///< 95 % interval of the mean, as a share of the mean
  std::uint64_t dropped = 0;  ///< batches measured while the device was throttled
  double capped = 0;          ///< share of batches in which the power limit held the clock down
  double sm_clock_hz = 0;     ///< mean over the batches; 0: not known
  std::string date = {};      ///< UTC, "2026-01-31"
  std::string note = {};      ///< caveat for its use; usually empty
};

bool same_key(const OpTiming& a, const OpTiming& b);

/// Adds timings; each replaces an existing one with the same key.
void merge(std::vector<OpTiming>& into, std::vector<OpTiming> timings);

}  // namespace rehearse::trace
