// The run of a dataflow on a device: kernels, time and memory.
//
//   time     the host launches the kernels in order and the device runs them in order: a kernel
//            starts when the host has launched it and the kernel before it has ended
//   kernel   by the laws of operations (models/compute/op_cost.h), with their time of a call
//   memory   inputs, weights and indices, and each computed value from its operation to its last use
#pragma once

#include <string>
#include <vector>

#include "models/compute/op_cost.h"
#include "models/dataflow/dataflow.h"
#include "models/memory/memory.h"
#include "sim/base/estimate.h"

namespace rehearse::dataflow {

/// How long the host is busy with an operation: `operation` for each time it runs, which includes
/// one kernel, and `kernel` for each further kernel of it.
struct Host {
  /// PyTorch eager takes 6.5 us for each operator record (docs/concepts/host.md).
  Estimate<Seconds> operation{Seconds::us(6.5), Seconds::us(4.2), Seconds::us(10.4),
                              Provenance::kExtrapolated};
  Estimate<Seconds> kernel{Seconds::us(5), Seconds::us(3.2), Seconds::us(8),
                           Provenance::kExtrapolated};
};

/// An operation as it runs.
struct Kernel {
  std::string name;  ///< of its result
  Kind kind;
  double runs = 1;     ///< once for each group of rows
  double kernels = 1;  ///< in all
  Flops flops;
  Bytes bytes;             ///< read and written
  Estimate<Seconds> time;  ///< of the device
  Estimate<Seconds> host;
  Bytes live;  ///< while it runs
};

struct MemoryParts {
  Bytes inputs = Bytes::b(0), weights = Bytes::b(0), indices = Bytes::b(0), computed = Bytes::b(0),
        context = Bytes::b(0);
  Bytes live() const { return inputs + weights + indices + computed; }
};

struct Run {
  std::vector<Kernel> kernels;
  Estimate<Seconds> time;
  Seconds waiting;  ///< in which the device waits for the host
  Estimate<Bytes> peak;
  std::size_t peak_at;  ///< the kernel at the peak
  MemoryParts parts;    ///< at the peak
  Bytes usable;
  memory::Fit fit;
  double kernel_count() const;
  Flops flops() const;
};

/// The minimum bytes that an operation reads and writes. A gather reads a row for each row of its
/// result, but a source that fits in half of the last cache only once. `cache` may be 0.
Bytes bytes_of(const Dataflow& flow, const Operation& operation, Bytes cache);

/// Fails for a device that the catalog lacks. REQUIRES: at least one operation.
Result<Run> run(const Dataflow& flow, std::string_view device, const Host& host);

}  // namespace rehearse::dataflow
