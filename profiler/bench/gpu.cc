#include "profiler/bench/gpu.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <fmt/core.h>

#include "profiler/bench/random_data.h"

namespace rehearse::bench {
namespace {

std::string to_text(const char* text, std::size_t most) {
  return {text, std::find(text, text + most, '\0')};
}

}  // namespace

Buffer::Buffer(Buffer&& other) noexcept
    : gpu_(std::exchange(other.gpu_, nullptr)), address_(other.address_), bytes_(other.bytes_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (!gpu_) return;
  gpu_->make_current();
  gpu_->cuda().cuMemFree_v2(address_);
}

Result<PinnedBuffer> PinnedBuffer::make(const Cuda& cuda, std::size_t bytes) {
  void* pointer = nullptr;
  TRY(cuda.check(
      cuda.cuMemHostAlloc(&pointer, bytes, kHostPortable | kHostMapped),
      fmt::format("pinning {} of the host", to_string(Bytes::b(static_cast<double>(bytes))))));
  return PinnedBuffer(cuda, pointer);
}

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept
    : cuda_(other.cuda_), pointer_(std::exchange(other.pointer_, nullptr)) {}

PinnedBuffer::~PinnedBuffer() {
  if (pointer_) cuda_->cuMemFreeHost(pointer_);
}

Result<std::unique_ptr<Gpu>> Gpu::open(const Cuda& cuda, const Nvml* nvml, int ordinal) {
  std::unique_ptr<Gpu> gpu(new Gpu(cuda, ordinal));
  TRY(gpu->start(nvml));
  return gpu;
}

Status Gpu::start(const Nvml* nvml) {
  int device = 0;
  char name[128] = "", pci[32] = "";
  TRY(cuda_->check(cuda_->cuDeviceGet(&device, ordinal_), "finding the GPU"));
  TRY(cuda_->check(cuda_->cuDeviceGetName(name, sizeof name, device), "asking a GPU for its name"));
  info_.name = to_text(name, sizeof name);
  if (const std::size_t mig = info_.name.find(" MIG "); mig != std::string::npos) {
    info_.partition = info_.name.substr(mig + 5);
    info_.name.resize(mig);
  }
  const auto attribute = [&](int which) {
    int value = 0;
    return cuda_->cuDeviceGetAttribute(&value, which, device) == 0 ? value : 0;
  };
  info_.multiprocessors = static_cast<unsigned>(attribute(kMultiprocessors));
  info_.compute_major = attribute(kComputeMajor);
  info_.compute_minor = attribute(kComputeMinor);
  info_.l2 = Bytes::b(attribute(kL2Bytes));
  info_.memory_clock_hz = attribute(kMemoryClockKhz) * 1e3;
  if (nvml && cuda_->cuDeviceGetPCIBusId(pci, sizeof pci, device) == 0) {
    nvml_ = nvml;
    nvml_device_ = nvml->device_at(to_text(pci, sizeof pci));
    // CUDA 13 no longer reports it.
    if (nvml_device_ && info_.memory_clock_hz == 0)
      info_.memory_clock_hz = nvml->memory_clock_hz(nvml_device_);
  }
  TRY(cuda_->check(cuda_->cuDevicePrimaryCtxRetain(&context_, device),
                   fmt::format("starting on {}", info_.name)));
  make_current();
  TRY(cuda_->check(cuda_->cuStreamCreate(&stream_, kStreamNonBlocking), "making a stream"));
  flag_.emplace(TRY(PinnedBuffer::make(*cuda_, sizeof(std::uint32_t))));
  *static_cast<std::uint32_t*>(flag_->pointer()) = 0;
  return cuda_->check(cuda_->cuMemHostGetDevicePointer_v2(&flag_address_, flag_->pointer(), 0),
                      "mapping memory of the host");
}

Gpu::~Gpu() {
  if (!context_) return;
  make_current();
  if (stream_) {
    release();
    cuda_->cuStreamSynchronize(stream_);
  }
  for (CudaEvent event : events_) cuda_->cuEventDestroy_v2(event);
  flush_ = Buffer();
  flag_.reset();
  if (stream_) cuda_->cuStreamDestroy_v2(stream_);
  int device = 0;
  if (cuda_->cuDeviceGet(&device, ordinal_) == 0) cuda_->cuDevicePrimaryCtxRelease_v2(device);
}

Result<Buffer> Gpu::allocate(std::size_t bytes) const {
  make_current();
  DeviceAddress address = 0;
  TRY(cuda_->check(
      cuda_->cuMemAlloc_v2(&address, std::max<std::size_t>(bytes, 16)),
      fmt::format("taking {} of {}", to_string(Bytes::b(static_cast<double>(bytes))), info_.name)));
  return Buffer(*this, address, bytes);
}

Result<Buffer> Gpu::random(std::size_t bytes, std::string_view dtype) const {
  Buffer buffer = TRY(allocate(bytes));
  // One block is copied from the host, and doubled until it fills the buffer.
  const std::vector<unsigned char>& block = random_block(dtype);
  std::size_t filled = std::min(bytes, block.size());
  int code = cuda_->cuMemcpyHtoDAsync_v2(buffer.address(), block.data(), filled, stream_);
  while (code == 0 && filled < bytes) {
    const std::size_t more = std::min(filled, bytes - filled);
    code = cuda_->cuMemcpyDtoDAsync_v2(buffer.address() + filled, buffer.address(), more, stream_);
    filled += more;
  }
  TRY(cuda_->check(code, "filling operands"));
  TRY(synchronize());
  return buffer;
}

bool Gpu::hold() {
  return cuda_->cuStreamWaitValue32 &&
         cuda_->cuStreamWaitValue32(stream_, flag_address_, ++turn_, kWaitUntilAtLeast) == 0;
}

void Gpu::release() {
  if (flag_)
    std::atomic_ref(*static_cast<std::uint32_t*>(flag_->pointer()))
        .store(turn_, std::memory_order_seq_cst);
}

Status Gpu::record(CudaEvent event) const {
  return cuda_->check(cuda_->cuEventRecord(event, stream_), "recording an event");
}

Result<CudaEvent> Gpu::event(std::size_t number) {
  while (events_.size() <= number) {
    CudaEvent event = nullptr;
    TRY(cuda_->check(cuda_->cuEventCreate(&event, 0), "making an event"));
    events_.push_back(event);
  }
  return events_[number];
}

Result<Seconds> Gpu::between(CudaEvent from, CudaEvent to) const {
  float ms = 0;
  TRY(cuda_->check(cuda_->cuEventSynchronize(to), "waiting for the GPU"));
  TRY(cuda_->check(cuda_->cuEventElapsedTime(&ms, from, to), "reading a time"));
  return Seconds::ms(static_cast<double>(ms));
}

Status Gpu::synchronize() const {
  return cuda_->check(cuda_->cuStreamSynchronize(stream_), "waiting for the GPU");
}

Status Gpu::flush() {
  if (flush_.bytes() == 0) {
    constexpr double kLeast = 256e6;
    flush_ = TRY(allocate(static_cast<std::size_t>(std::max(kLeast, 4 * info_.l2.b()))));
  }
  return cuda_->check(cuda_->cuMemsetD8Async(flush_.address(), 0, flush_.bytes(), stream_),
                      "flushing L2");
}

ClockState Gpu::clocks() const { return nvml_device_ ? nvml_->clocks(nvml_device_) : ClockState{}; }

}  // namespace rehearse::bench
