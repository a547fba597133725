// A session: measures shapes on the visible GPUs, one GPU of each kind, with the libraries that are
// found.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "profiler/bench/gpu.h"
#include "profiler/bench/measure.h"
#include "profiler/bench/shape.h"
#include "profiler/trace/op_timing.h"
#include "sim/base/progress.h"

namespace rehearse::bench {

struct Request {
  std::vector<Shape> shapes;
  Method method = {};
  std::string date = {};  ///< UTC, "2026-01-31"
  Progress progress = {};
};

/// A shape that was not timed, and the reason.
struct Skipped {
  Shape shape;
  std::string why;
};

/// Operations that could not be measured, because their library is missing or does not start.
struct LeftOut {
  Family family;
  std::size_t shapes;
  Error why;
};

struct Outcome {
  std::vector<GpuInfo> gpus;  ///< that were measured
  std::vector<trace::OpTiming> timings;
  std::vector<Skipped> skipped;
  std::vector<LeftOut> left_out;
  std::string clocks;        ///< why clocks and throttling are unknown; empty if known
  bool interrupted = false;  ///< `progress` asked to stop
};

/// The machine's GPUs, ready to measure on.
class Session {
 public:
  /// Fails, with one line and the remedy, without a driver or without a GPU.
  static Result<Session> open();
  Session(Session&&) noexcept;
  ~Session();

  const GpuInfo& gpu(std::size_t i) const { return gpus_[i]->info(); }
  std::size_t gpus() const { return gpus_.size(); }

  /// Measures each shape, hot and, if relevant, cold, on one GPU of each kind; collectives and peer
  /// copies run over all GPUs. An error with one shape does not affect the others.
  Outcome measure(const Request& request);

 private:
  Session() = default;
  std::unique_ptr<Cuda> cuda_;
  std::unique_ptr<Nvml> nvml_;  ///< null if unavailable
  std::string no_clocks_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
};

/// Whether a shape is also measured with L2 flushed: if its operands are in device memory.
bool has_cold(const Shape& shape);

/// The approximate time of measuring the shapes on one GPU.
Seconds estimated_time(const std::vector<Shape>& shapes);

}  // namespace rehearse::bench
