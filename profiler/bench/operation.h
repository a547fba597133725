// An Operation enqueues one run of a shape; a Runner, one library on a GPU, makes
// operations from shapes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "profiler/bench/gpu.h"
#include "profiler/bench/measure.h"
#include "profiler/bench/shape.h"
#include "sim/base/result.h"

namespace rehearse::bench {

class Operation {
 public:
  explicit Operation(std::vector<Gpu*> gpus) : gpus_(std::move(gpus)) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() = default;

  /// Enqueues one run. Consecutive turns alternate between the sets of operands, so that the cache
  /// never has exactly the data of the previous run.
  virtual Status launch(std::size_t turn) = 0;
  /// Whether `launch` returns before the device has run it. If not, streams cannot be held
  /// meanwhile.
  virtual bool asynchronous() const { return true; }
  /// Caveat for the use of its time; usually empty.
  virtual std::string note() const { return ""; }
  /// The GPUs that it runs on; the stream of the first is timed.
  const std::vector<Gpu*>& gpus() const { return gpus_; }

 private:
  std::vector<Gpu*> gpus_;
};

class Runner {
 public:
  virtual ~Runner() = default;
  /// Allocates this many sets of operands. Fails (lacks_memory) if they do not fit, and on
  /// a shape that the library does not support on this device.
  virtual Result<std::unique_ptr<Operation>> prepare(const Shape& shape, std::size_t sets) = 0;
  /// The library with its version: "cuBLASLt 13.0.2".
  virtual std::string library() const = 0;
};

/// Matrix products by cuBLASLt, with the first algorithm of its heuristic, as in frameworks.
Result<std::unique_ptr<Runner>> open_gemm(Gpu& gpu);
/// Convolutions and attention by cuDNN's graphs, with the first engine of its heuristic that runs.
Result<std::unique_ptr<Runner>> open_cudnn(Gpu& gpu);
/// Elementwise, reduction, norm and softmax kernels of our own, compiled by NVRTC.
Result<std::unique_ptr<Runner>> open_kernels(Gpu& gpu);
/// Copies and memory sets, by the driver. Peer copies go from the first GPU to the second.
Result<std::unique_ptr<Runner>> open_copies(std::span<const std::unique_ptr<Gpu>> gpus);
/// Collectives over these GPUs, by NCCL.
Result<std::unique_ptr<Runner>> open_collectives(std::span<const std::unique_ptr<Gpu>> gpus);

/// An operation on its streams, launched back to back (hot), or with L2 flushed before each launch
/// (cold).
class StreamSubject final : public Subject {
 public:
  /// REQUIRES: the operation outlives it.
  StreamSubject(Operation& operation, bool cold) : operation_(operation), cold_(cold) {}
  Result<Batch> run(std::size_t launches) override;

 private:
  Gpu& timed() { return *operation_.gpus().front(); }
  Result<Batch> back_to_back(std::size_t launches);
  Result<Batch> one_by_one(std::size_t launches);
  Status launch() { return operation_.launch(turn_++); }
  /// Enqueues work while the streams are held, then releases them.
  template <class Enqueue>
  Status enqueue(Enqueue enqueue);

  Operation& operation_;
  bool cold_;
  bool held_ = true;  ///< false once a launch has waited for the device
  std::size_t turn_ = 0;
};

}  // namespace rehearse::bench
