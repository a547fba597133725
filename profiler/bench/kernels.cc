// Elementwise, reduction, norm and softmax kernels, compiled by NVRTC.
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "profiler/bench/nvrtc.h"
#include "profiler/bench/operation.h"

namespace rehearse::bench {
namespace {

class Kernel final : public Operation {
 public:
  Kernel(Gpu& gpu, CudaFunction function) : Operation({&gpu}), function_(function) {}

  Status prepare(const Shape& shape, std::size_t sets) {
    Gpu& gpu = *gpus().front();
    const std::uint64_t element = element_bytes(shape.dtype);
    const bool by_element = shape.op == "elementwise";
    two_ = by_element && shape["inputs"] == 2;
    by_element_ = by_element;
    if (by_element) {
      extents_[0] = shape["elements"];
    } else {
      extents_[0] = shape["rows"];
      extents_[1] = shape["width"];
    }
    const std::uint64_t in = by_element ? extents_[0] : extents_[0] * extents_[1];
    const std::uint64_t out = shape.op == "reduction" ? extents_[0] : in;
    const std::uint64_t blocks =
        by_element ? (in * element / 16 + kKernelThreads - 1) / kKernelThreads : extents_[0];
    // Enough blocks to fill a device several times over; the kernels loop over the rest.
    const std::uint64_t most = std::uint64_t{32} * std::max(1U, gpu.info().multiprocessors);
    blocks_ = static_cast<unsigned>(std::clamp<std::uint64_t>(blocks, 1, most));
    for (std::size_t i = 0; i < sets; ++i) {
      Buffer a = TRY(gpu.random(in * element, shape.dtype));
      Buffer b = TRY(gpu.random(two_ ? in * element : 16, shape.dtype));
      Buffer y = TRY(gpu.allocate(out * element));
      operands_.push_back({std::move(a), std::move(b), std::move(y)});
    }
    return {};
  }

  Status launch(std::size_t turn) override {
    const Operands& o = operands_[turn % operands_.size()];
    DeviceAddress a = o.a.address(), b = o.b.address(), y = o.y.address();
    void* elementwise[] = {&a, &b, &y, &extents_[0]};
    void* rows[] = {&a, &y, &extents_[0], &extents_[1]};
    const Cuda& cuda = gpus().front()->cuda();
    return cuda.check(
        cuda.cuLaunchKernel(function_, blocks_, 1, 1, kKernelThreads, 1, 1, 0,
                            gpus().front()->stream(), by_element_ ? elementwise : rows, nullptr),
        "launching a kernel");
  }

 private:
  struct Operands {
    Buffer a, b, y;
  };
  CudaFunction function_;
  std::vector<Operands> operands_;
  unsigned long long extents_[2] = {};
  unsigned blocks_ = 1;
  bool by_element_ = false, two_ = false;
};

class KernelRunner final : public Runner {
 public:
  KernelRunner(Gpu& gpu, Nvrtc library) : gpu_(gpu), library_(std::move(library)) {}
  ~KernelRunner() override {
    gpu_.make_current();
    for (const auto& [dtype, module] : modules_) gpu_.cuda().cuModuleUnload(module);
  }

  Result<std::unique_ptr<Operation>> prepare(const Shape& shape, std::size_t sets) override {
    const CudaModule module = TRY(module_of(shape.dtype));
    const std::string name = shape.op == "elementwise"
                                 ? fmt::format("rehearse_elementwise_{}", shape["inputs"])
                                 : "rehearse_" + shape.op;
    CudaFunction function = nullptr;
    TRY(gpu_.cuda().check(gpu_.cuda().cuModuleGetFunction(&function, module, name.c_str()),
                          fmt::format("finding the kernel {}", name)));
    auto kernel = std::make_unique<Kernel>(gpu_, function);
    TRY(kernel->prepare(shape, sets));
    return kernel;
  }
  std::string library() const override { return library_.name(); }

 private:
  Result<CudaModule> module_of(const std::string& dtype) {
    if (const auto found = modules_.find(dtype); found != modules_.end()) return found->second;
    const std::vector<char> code = TRY(library_.compile(
        kernel_source(dtype), gpu_.info().compute_major, gpu_.info().compute_minor));
    gpu_.make_current();
    CudaModule module = nullptr;
    TRY(gpu_.cuda().check(gpu_.cuda().cuModuleLoadData(&module, code.data()),
                          "loading compiled kernels"));
    modules_.emplace(dtype, module);
    return module;
  }

  Gpu& gpu_;
  Nvrtc library_;
  std::map<std::string, CudaModule> modules_;
};

}  // namespace

Result<std::unique_ptr<Runner>> open_kernels(Gpu& gpu) {
  Nvrtc library = TRY(Nvrtc::open());
  return std::make_unique<KernelRunner>(gpu, std::move(library));
}

}  // namespace rehearse::bench
