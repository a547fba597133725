// Matrix products by cuBLASLt. Matrices are stored by rows, as in frameworks. The library expects
// columns, so it computes the transposed product: C' = B' A'.

#include <fmt/core.h>

#include "profiler/bench/cublaslt.h"
#include "profiler/bench/library.h"
#include "profiler/bench/operation.h"

namespace rehearse::bench {
namespace {

int cublas_type(std::string_view dtype) {
  if (dtype == "bf16") return cublaslt::kReal16Bf;
  if (dtype == "fp16") return cublaslt::kReal16F;
  if (dtype == "fp8") return cublaslt::kReal8E4M3;
  return cublaslt::kReal32F;
}

int epilogue_of(std::string_view name) {
  if (name == "bias") return cublaslt::kEpilogueBias;
  if (name == "relu_bias") return cublaslt::kEpilogueReluBias;
  if (name == "gelu_bias") return cublaslt::kEpilogueGeluBias;
  return cublaslt::kEpilogueDefault;
}

class GemmRunner;

/// A descriptor of the library, destroyed at the end.
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(void* object, int (*destroy)(void*)) : object_(object), destroy_(destroy) {}
  Descriptor(Descriptor&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)), destroy_(other.destroy_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  ~Descriptor() {
    if (object_) destroy_(object_);
  }
  void* get() const { return object_; }

 private:
  void* object_ = nullptr;
  int (*destroy_)(void*) = nullptr;
};

class Gemm final : public Operation {
 public:
  Gemm(Gpu& gpu, const CublasLt& library, void* handle, const Buffer& workspace)
      : Operation({&gpu}), library_(library), handle_(handle), workspace_(workspace) {}

  Status prepare(const Shape& shape, std::size_t sets);
  Status launch(std::size_t turn) override {
    const Operands& o = operands_[turn % operands_.size()];
    constexpr float kOne = 1, kZero = 0;
    // B comes first: by columns it is the transposed left factor.
    return check(library_.cublasLtMatmul(
                     handle_, desc_.get(), &kOne, o.b.pointer(), b_.get(), o.a.pointer(), a_.get(),
                     &kZero, o.c.pointer(), c_.get(), o.c.pointer(), c_.get(), found_.algorithm,
                     workspace_.pointer(), workspace_.bytes(), gpus().front()->stream()),
                 "running the product");
  }

 private:
  struct Operands {
    Buffer a, b, c;
  };
  Status check(int code, std::string_view what) const {
    if (code == 0) return {};
    return fail(fmt::format("{}: cuBLASLt error {}", what, code));
  }
  Status describe(const Shape& shape);
  Result<Descriptor> matrix(int type, std::uint64_t rows, std::uint64_t columns,
                            std::uint64_t batch) const;

  const CublasLt& library_;
  void* handle_;
  const Buffer& workspace_;
  Descriptor desc_, a_, b_, c_;
  cublaslt::HeuristicResult found_ = {};
  std::vector<Operands> operands_;
  Buffer bias_;
};

/// A layout by columns, so that elements along `rows` are contiguous.
Result<Descriptor> Gemm::matrix(int type, std::uint64_t rows, std::uint64_t columns,
                                std::uint64_t batch) const {
  void* raw = nullptr;
  TRY(check(library_.cublasLtMatrixLayoutCreate(&raw, type, rows, columns,
                                                static_cast<std::int64_t>(rows)),
            "describing a matrix"));
  Descriptor layout(raw, library_.cublasLtMatrixLayoutDestroy);
  if (batch > 1) {
    const auto count = static_cast<std::int32_t>(batch);
    const auto stride = static_cast<std::int64_t>(rows * columns);
    int code = library_.cublasLtMatrixLayoutSetAttribute(raw, cublaslt::kLayoutBatchCount, &count,
                                                         sizeof count);
    if (code == 0)
      code = library_.cublasLtMatrixLayoutSetAttribute(raw, cublaslt::kLayoutBatchStride, &stride,
                                                       sizeof stride);
    TRY(check(code, "describing a batch"));
  }
  return layout;
}

Status Gemm::describe(const Shape& s) {
  const std::uint64_t m = s["m"], n = s["n"], k = s["k"], batch = s["batch"];
  const int type = cublas_type(s.dtype);
  const int result = s.dtype == "fp8" ? cublaslt::kReal16Bf : type;
  void* raw = nullptr;
  const int compute = s.dtype == "tf32" ? cublaslt::kComputeTf32 : cublaslt::kCompute32F;
  TRY(check(library_.cublasLtMatmulDescCreate(&raw, compute, cublaslt::kReal32F),
            "describing a product"));
  desc_ = Descriptor(raw, library_.cublasLtMatmulDescDestroy);
  // A, stored by rows as m x k, is k x m by columns: the second factor without transposition.
  const bool a_turned = s.layout[0] == 't', b_turned = s.layout[1] == 't';
  const std::int32_t first = b_turned ? 1 : 0, second = a_turned ? 1 : 0;
  const std::int32_t epilogue = epilogue_of(s.epilogue);
  struct Setting {
    int attribute;
    const void* value;
    std::size_t bytes;
  };
  void* bias = nullptr;
  std::vector<Setting> settings = {{cublaslt::kDescTransposeA, &first, sizeof first},
                                   {cublaslt::kDescTransposeB, &second, sizeof second},
                                   {cublaslt::kDescEpilogue, &epilogue, sizeof epilogue}};
  if (s.epilogue != "none") {
    bias_ = TRY(gpus().front()->random(n * 4, s.dtype == "fp8" ? "bf16" : s.dtype));
    bias = bias_.pointer();
    settings.push_back({cublaslt::kDescBiasPointer, &bias, sizeof bias});
  }
  for (const Setting& each : settings)
    TRY(check(library_.cublasLtMatmulDescSetAttribute(desc_.get(), each.attribute, each.value,
                                                      each.bytes),
              "describing a product"));
  a_ = TRY(matrix(type, a_turned ? m : k, a_turned ? k : m, batch));
  b_ = TRY(matrix(type, b_turned ? k : n, b_turned ? n : k, batch));
  c_ = TRY(matrix(result, n, m, batch));
  return {};
}

Status Gemm::prepare(const Shape& s, std::size_t sets) {
  TRY(describe(s));
  void* raw = nullptr;
  TRY(check(library_.cublasLtMatmulPreferenceCreate(&raw), "choosing an algorithm"));
  const Descriptor preference(raw, library_.cublasLtMatmulPreferenceDestroy);
  const std::uint64_t most = workspace_.bytes();
  int code = library_.cublasLtMatmulPreferenceSetAttribute(raw, cublaslt::kPreferenceWorkspace,
                                                           &most, sizeof most);
  int count = 0;
  if (code == 0)
    code = library_.cublasLtMatmulAlgoGetHeuristic(handle_, desc_.get(), b_.get(), a_.get(),
                                                   c_.get(), c_.get(), raw, 1, &found_, &count);
  if (code == cublaslt::kNotSupported || (code == 0 && (count == 0 || found_.state != 0)))
    return fail("cuBLASLt has no algorithm for it on this device");
  TRY(check(code, "choosing an algorithm"));
  const std::uint64_t m = s["m"], n = s["n"], k = s["k"], batch = s["batch"];
  const std::uint64_t element = element_bytes(s.dtype),
                      result = std::max<std::uint64_t>(2, element);
  for (std::size_t i = 0; i < sets; ++i) {
    Gpu& gpu = *gpus().front();
    Buffer a = TRY(gpu.random(batch * m * k * element, s.dtype));
    Buffer b = TRY(gpu.random(batch * k * n * element, s.dtype));
    Buffer c = TRY(gpu.allocate(batch * m * n * result));
    operands_.push_back({std::move(a), std::move(b), std::move(c)});
  }
  return {};
}

class GemmRunner final : public Runner {
 public:
  GemmRunner(Gpu& gpu, CublasLt library, void* handle, Buffer workspace)
      : gpu_(gpu),
        library_(std::move(library)),
        handle_(handle),
        workspace_(std::move(workspace)) {}
  ~GemmRunner() override {
    gpu_.make_current();
    library_.cublasLtDestroy(handle_);
  }

  Result<std::unique_ptr<Operation>> prepare(const Shape& shape, std::size_t sets) override {
    auto gemm = std::make_unique<Gemm>(gpu_, library_, handle_, workspace_);
    TRY(gemm->prepare(shape, sets));
    return gemm;
  }
  std::string library() const override { return library_.name(); }

 private:
  Gpu& gpu_;
  CublasLt library_;
  void* handle_;
  Buffer workspace_;
};

}  // namespace

Result<CublasLt> CublasLt::open() {
  CublasLt library;
  const Symbol symbols[] = {REHEARSE_CUBLASLT_FUNCTIONS(REHEARSE_SYMBOL)};
  TRY(open_library("cuBLASLt",
                   {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so",
                    "/usr/local/cuda/lib64/libcublasLt.so"},
                   symbols,
                   "install the CUDA toolkit, or add the folder of PyTorch's to LD_LIBRARY_PATH"));
  const std::size_t version = library.cublasLtGetVersion();
  library.name_ = fmt::format("cuBLASLt {}", release(version));
  return library;
}

Result<std::unique_ptr<Runner>> open_gemm(Gpu& gpu) {
  CublasLt library = TRY(CublasLt::open());
  gpu.make_current();
  void* handle = nullptr;
  if (const int code = library.cublasLtCreate(&handle); code != 0)
    return fail(fmt::format("cuBLASLt does not start (error {})", code),
                "a driver that is new enough for it: rehearse doctor");
  // The workspace that PyTorch uses on Hopper; its smaller ones elsewhere change few choices.
  constexpr std::size_t kWorkspace = std::size_t{32} << 20;
  Result<Buffer> workspace = gpu.allocate(kWorkspace);
  if (!workspace) {
    library.cublasLtDestroy(handle);
    return forward(workspace);
  }
  return std::make_unique<GemmRunner>(gpu, std::move(library), handle, std::move(*workspace));
}

}  // namespace rehearse::bench
