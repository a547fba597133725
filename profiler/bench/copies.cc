// Copies and memory sets, by the driver.

#include "profiler/bench/library.h"
#include "profiler/bench/operation.h"
#include "profiler/bench/random_data.h"

namespace rehearse::bench {
namespace {

class Copy final : public Operation {
 public:
  Copy(std::vector<Gpu*> gpus, const Shape& shape) : Operation(std::move(gpus)), shape_(shape) {}

  Status prepare(std::size_t sets, Gpu* peer) {
    Gpu& gpu = *gpus().front();
    peer_ = peer;
    const std::size_t bytes = shape_["bytes"];
    const bool host = shape_.layout.starts_with("h2d") || shape_.layout.starts_with("d2h");
    for (std::size_t i = 0; i < sets; ++i) {
      Operands& o = operands_.emplace_back();
      TRY(take(gpu.random(bytes, shape_.dtype), o.device));
      if (shape_.op == "copy" && !host) TRY(take((peer ? *peer : gpu).allocate(bytes), o.other));
      if (!host) continue;
      if (shape_.layout.ends_with("pinned")) {
        gpu.make_current();
        o.pinned.emplace(TRY(PinnedBuffer::make(gpu.cuda(), bytes)));
        o.host = o.pinned->pointer();
      } else {
        o.pageable.resize(bytes);  // written, so that every page is allocated
        o.host = o.pageable.data();
      }
      const std::vector<unsigned char>& block = random_block(shape_.dtype);
      for (std::size_t at = 0; at < bytes; at += block.size())
        std::copy_n(block.data(), std::min(block.size(), bytes - at),
                    static_cast<unsigned char*>(o.host) + at);
    }
    return {};
  }

  bool asynchronous() const override { return !shape_.layout.ends_with("pageable"); }
  std::string note() const override { return note_; }
  void set_note(std::string note) { note_ = std::move(note); }

  Status launch(std::size_t turn) override {
    const Operands& o = operands_[turn % operands_.size()];
    const Gpu& gpu = *gpus().front();
    const Cuda& cuda = gpu.cuda();
    const std::size_t bytes = shape_["bytes"];
    int code = 0;
    if (shape_.op == "set")
      code = cuda.cuMemsetD8Async(o.device.address(), static_cast<unsigned char>(turn), bytes,
                                  gpu.stream());
    else if (shape_.layout.starts_with("h2d"))
      code = cuda.cuMemcpyHtoDAsync_v2(o.device.address(), o.host, bytes, gpu.stream());
    else if (shape_.layout.starts_with("d2h"))
      code = cuda.cuMemcpyDtoHAsync_v2(o.host, o.device.address(), bytes, gpu.stream());
    else if (peer_)
      code = cuda.cuMemcpyPeerAsync(o.other.address(), peer_->context(), o.device.address(),
                                    gpu.context(), bytes, gpu.stream());
    else
      code = cuda.cuMemcpyDtoDAsync_v2(o.other.address(), o.device.address(), bytes, gpu.stream());
    return cuda.check(code, "copying");
  }

 private:
  struct Operands {
    Buffer device, other;
    std::optional<PinnedBuffer> pinned;
    std::vector<unsigned char> pageable;
    void* host = nullptr;
  };
  static Status take(Result<Buffer> from, Buffer& to) {
    to = TRY(std::move(from));
    return {};
  }

  Shape shape_;
  Gpu* peer_ = nullptr;
  std::vector<Operands> operands_;
  std::string note_;
};

class CopyRunner final : public Runner {
 public:
  explicit CopyRunner(std::span<const std::unique_ptr<Gpu>> gpus) : gpus_(gpus) {}

  Result<std::unique_ptr<Operation>> prepare(const Shape& shape, std::size_t sets) override {
    Gpu& gpu = *gpus_.front();
    Gpu* peer = nullptr;
    std::string note;
    if (shape.layout == "peer") {
      if (gpus_.size() < 2) return fail("one GPU is visible", "two, to copy from one to the other");
      peer = gpus_[1].get();
      if (!connect(gpu, *peer)) note = "staged through the host: the GPUs do not reach each other";
    }
    auto copy = std::make_unique<Copy>(std::vector<Gpu*>{&gpu}, shape);
    TRY(copy->prepare(sets, peer));
    copy->set_note(std::move(note));
    return copy;
  }
  std::string library() const override { return ""; }

 private:
  static bool connect(Gpu& from, Gpu& to) {
    const Cuda& cuda = from.cuda();
    int can = 0, source = 0, target = 0;
    if (cuda.cuDeviceGet(&source, from.ordinal()) != 0 ||
        cuda.cuDeviceGet(&target, to.ordinal()) != 0 ||
        cuda.cuDeviceCanAccessPeer(&can, source, target) != 0 || can == 0)
      return false;
    from.make_current();
    const int code = cuda.cuCtxEnablePeerAccess(to.context(), 0);
    return code == 0 || code == kCudaPeerAlreadyOn;
  }

  std::span<const std::unique_ptr<Gpu>> gpus_;
};

}  // namespace

Result<std::unique_ptr<Runner>> open_copies(std::span<const std::unique_ptr<Gpu>> gpus) {
  return std::make_unique<CopyRunner>(gpus);
}

}  // namespace rehearse::bench
