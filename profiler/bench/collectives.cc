// Collectives over the visible GPUs, by NCCL, all from this process.
#include <map>

#include <fmt/core.h>

#include "profiler/bench/library.h"
#include "profiler/bench/nccl.h"
#include "profiler/bench/operation.h"

namespace rehearse::bench {
namespace {

constexpr int kHalf = 6, kFloat = 7, kBfloat16 = 9, kSum = 0;

int data_type(std::string_view dtype) {
  return dtype == "fp32" ? kFloat : dtype == "fp16" ? kHalf : kBfloat16;
}

class CollectiveOperation final : public Operation {
 public:
  CollectiveOperation(std::vector<Gpu*> gpus, const Nccl& library, std::vector<void*> comms,
                      const Shape& shape)
      : Operation(std::move(gpus)), library_(library), comms_(std::move(comms)), op_(shape.op) {
    const std::uint64_t ranks = comms_.size();
    type_ = data_type(shape.dtype);
    element_ = element_bytes(shape.dtype);
    whole_ = shape["bytes"] / element_ / ranks * ranks;
    share_ = whole_ / ranks;
  }

  Status prepare(const std::string& dtype, std::size_t sets) {
    if (share_ == 0)
      return fail(fmt::format("less than one element per rank of {}", comms_.size()));
    for (std::size_t i = 0; i < sets; ++i)
      for (const Gpu* gpu : gpus()) {
        Buffer from = TRY(gpu->random(whole_ * element_, dtype)),
               to = TRY(gpu->allocate(whole_ * element_));
        buffers_.emplace_back(std::move(from), std::move(to));
      }
    return {};
  }

  std::string note() const override {
    return comms_.size() == 1 ? "one GPU: nothing is sent, a lower bound" : "";
  }

  Status launch(std::size_t turn) override {
    const std::size_t sets = buffers_.size() / comms_.size();
    int code = library_.ncclGroupStart();
    for (std::size_t r = 0; r < comms_.size() && code == 0; ++r) {
      const auto& [from, to] = buffers_[turn % sets * comms_.size() + r];
      gpus()[r]->make_current();
      code = enqueue(r, from.address(), to.address());
    }
    const int ended = library_.ncclGroupEnd();
    gpus().front()->make_current();
    return library_.check(code != 0 ? code : ended, op_);
  }

 private:
  int enqueue(std::size_t r, DeviceAddress from, DeviceAddress to) const {
    void* const in = reinterpret_cast<void*>(from);
    void* const out = reinterpret_cast<void*>(to);
    void* const comm = comms_[r];
    const CudaStream stream = gpus()[r]->stream();
    if (op_ == "all_reduce")
      return library_.ncclAllReduce(in, out, whole_, type_, kSum, comm, stream);
    if (op_ == "all_gather") return library_.ncclAllGather(in, out, share_, type_, comm, stream);
    if (op_ == "reduce_scatter")
      return library_.ncclReduceScatter(in, out, share_, type_, kSum, comm, stream);
    if (op_ == "broadcast") return library_.ncclBroadcast(in, out, whole_, type_, 0, comm, stream);
    // All-to-all is a send and a receive for each pair, which NCCL fuses within the group.
    int code = 0;
    for (std::size_t peer = 0; peer < comms_.size() && code == 0; ++peer) {
      const std::size_t at = peer * share_ * element_;
      code = library_.ncclSend(reinterpret_cast<void*>(from + at), share_, type_,
                               static_cast<int>(peer), comm, stream);
      if (code == 0)
        code = library_.ncclRecv(reinterpret_cast<void*>(to + at), share_, type_,
                                 static_cast<int>(peer), comm, stream);
    }
    return code;
  }

  const Nccl& library_;
  std::vector<void*> comms_;
  std::string op_;
  int type_ = 0;
  std::uint64_t element_ = 1, whole_ = 0, share_ = 0;
  std::vector<std::pair<Buffer, Buffer>> buffers_;
};

class CollectiveRunner final : public Runner {
 public:
  CollectiveRunner(std::span<const std::unique_ptr<Gpu>> gpus, Nccl library)
      : gpus_(gpus), library_(std::move(library)) {}
  ~CollectiveRunner() override {
    for (const auto& [ranks, comms] : comms_)
      for (void* comm : comms) library_.ncclCommDestroy(comm);
  }

  Result<std::unique_ptr<Operation>> prepare(const Shape& shape, std::size_t sets) override {
    const std::uint64_t ranks = shape["ranks"];
    if (ranks > gpus_.size())
      return fail(fmt::format("{} visible, {} ranks wanted", gpus_.size(), ranks),
                  "one GPU per rank");
    const std::vector<void*> comms = TRY(comms_of(ranks));
    std::vector<Gpu*> gpus;
    for (std::uint64_t r = 0; r < ranks; ++r) gpus.push_back(gpus_[r].get());
    auto operation = std::make_unique<CollectiveOperation>(std::move(gpus), library_, comms, shape);
    TRY(operation->prepare(shape.dtype, sets));
    return operation;
  }
  std::string library() const override { return library_.name(); }

 private:
  Result<std::vector<void*>> comms_of(std::uint64_t ranks) {
    if (const auto found = comms_.find(ranks); found != comms_.end()) return found->second;
    std::vector<void*> comms(ranks);
    std::vector<int> devices;
    for (std::uint64_t r = 0; r < ranks; ++r) devices.push_back(gpus_[r]->ordinal());
    TRY(library_.check(
        library_.ncclCommInitAll(comms.data(), static_cast<int>(ranks), devices.data()),
        "starting NCCL"));
    return comms_.emplace(ranks, std::move(comms)).first->second;
  }

  std::span<const std::unique_ptr<Gpu>> gpus_;
  Nccl library_;
  std::map<std::uint64_t, std::vector<void*>> comms_;
};

}  // namespace

Result<Nccl> Nccl::open() {
  Nccl library;
  const Symbol symbols[] = {REHEARSE_NCCL_FUNCTIONS(REHEARSE_SYMBOL)};
  TRY(open_library("NCCL", {"libnccl.so.2"}, symbols,
                   "install libnccl2, or add the folder of PyTorch's to LD_LIBRARY_PATH"));
  int version = 0;
  TRY(library.check(library.ncclGetVersion(&version), "NCCL does not start"));
  library.name_ = fmt::format("NCCL {}", release(static_cast<std::size_t>(version)));
  return library;
}

Status Nccl::check(int code, std::string_view what) const {
  if (code == 0) return {};
  const char* text = ncclGetErrorString(code);
  return fail(fmt::format("{}: {} ({})", what, text ? text : "NCCL error", code));
}

Result<std::unique_ptr<Runner>> open_collectives(std::span<const std::unique_ptr<Gpu>> gpus) {
  Nccl library = TRY(Nccl::open());
  return std::make_unique<CollectiveRunner>(gpus, std::move(library));
}

}  // namespace rehearse::bench
