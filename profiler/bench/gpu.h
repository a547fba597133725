// A GPU to measure on: its context and stream, memory, events, and the gate that holds the stream
// while launches are queued.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiler/bench/cuda.h"
#include "profiler/bench/nvml.h"
#include "sim/base/units.h"

namespace rehearse::bench {

struct GpuInfo {
  std::string name;       ///< without the MIG profile
  std::string partition;  ///< MIG profile, "1g.10gb"; empty on a whole device
  unsigned multiprocessors = 0;
  int compute_major = 0, compute_minor = 0;
  Bytes l2 = Bytes::b(0);
  double memory_clock_hz = 0;  ///< 0: unknown
};

class Gpu;

/// Device memory, freed by the destructor. REQUIRES: its Gpu outlives it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Gpu& gpu, DeviceAddress address, std::size_t bytes)
      : gpu_(&gpu), address_(address), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();
  DeviceAddress address() const { return address_; }
  void* pointer() const { return reinterpret_cast<void*>(address_); }
  std::size_t bytes() const { return bytes_; }

 private:
  const Gpu* gpu_ = nullptr;
  DeviceAddress address_ = 0;
  std::size_t bytes_ = 0;
};

/// Pinned host memory, freed by the destructor. REQUIRES: its Cuda outlives it.
class PinnedBuffer {
 public:
  static Result<PinnedBuffer> make(const Cuda& cuda, std::size_t bytes);
  PinnedBuffer(PinnedBuffer&& other) noexcept;
  PinnedBuffer& operator=(PinnedBuffer&&) = delete;
  ~PinnedBuffer();
  void* pointer() const { return pointer_; }

 private:
  PinnedBuffer(const Cuda& cuda, void* pointer) : cuda_(&cuda), pointer_(pointer) {}
  const Cuda* cuda_;
  void* pointer_;
};

class Gpu {
 public:
  /// REQUIRES: `cuda` (and `nvml`, if not null) outlive it.
  static Result<std::unique_ptr<Gpu>> open(const Cuda& cuda, const Nvml* nvml, int ordinal);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  const Cuda& cuda() const { return *cuda_; }
  const GpuInfo& info() const { return info_; }
  int ordinal() const { return ordinal_; }
  CudaContext context() const { return context_; }
  CudaStream stream() const { return stream_; }

  /// Makes its context current on the calling thread.
  void make_current() const { cuda_->cuCtxSetCurrent(context_); }
  /// Fails (lacks_memory) if it does not fit into the free memory.
  Result<Buffer> allocate(std::size_t bytes) const;
  /// The same, filled with random numbers of a format between -1 and 1. Constant operands would
  /// take less power, so that the clock stays higher and the times are too short.
  Result<Buffer> random(std::size_t bytes, std::string_view dtype) const;

  /// Makes the stream wait until `release`. Returns false if the driver cannot do that.
  bool hold();
  void release();

  Status record(CudaEvent event) const;
  /// The reusable event of this device with this number.
  Result<CudaEvent> event(std::size_t number);
  /// Waits for the second event. REQUIRES: both were recorded.
  Result<Seconds> between(CudaEvent from, CudaEvent to) const;
  Status synchronize() const;
  /// Replaces the contents of L2.
  Status flush();
  ClockState clocks() const;

 private:
  Gpu(const Cuda& cuda, int ordinal) : cuda_(&cuda), ordinal_(ordinal) {}
  Status start(const Nvml* nvml);

  const Cuda* cuda_;
  int ordinal_;
  GpuInfo info_;
  CudaContext context_ = nullptr;
  CudaStream stream_ = nullptr;
  std::vector<CudaEvent> events_;
  Buffer flush_;
  std::optional<PinnedBuffer> flag_;
  DeviceAddress flag_address_ = 0;
  std::uint32_t turn_ = 0;  ///< the stream waits for the flag to reach it
  const Nvml* nvml_ = nullptr;
  void* nvml_device_ = nullptr;
};

}  // namespace rehearse::bench
