// Convolutions and attention as graphs of cuDNN.
#include <array>
#include <cmath>
#include <limits>

#include "profiler/bench/cudnn.h"
#include "profiler/bench/operation.h"

namespace rehearse::bench {
namespace {

using cudnn::DataType;
using cudnn::GraphBuilder;
using Extents = std::array<std::int64_t, 4>;

DataType data_type(std::string_view dtype) {
  if (dtype == "bf16") return cudnn::kBfloat16;
  if (dtype == "fp16") return cudnn::kHalf;
  return cudnn::kFloat;
}

std::int64_t count_of(const Extents& e) { return e[0] * e[1] * e[2] * e[3]; }

/// Strides with which the last axis is contiguous.
Extents by_rows(const Extents& e) { return {e[1] * e[2] * e[3], e[2] * e[3], e[3], 1}; }
/// Strides with which the second axis, channels, is contiguous.
Extents channels_last(const Extents& e) { return {e[1] * e[2] * e[3], 1, e[3] * e[1], e[1]}; }

/// A plan with its operands.
class CudnnOperation final : public Operation {
 public:
  CudnnOperation(Gpu& gpu, const Cudnn& library, void* handle)
      : Operation({&gpu}), library_(library), handle_(handle), graph_(library) {}

  Status prepare(const Shape& shape, std::size_t sets) {
    if (shape.rule().family == Family::kConv)
      convolution(shape);
    else
      attention(shape);
    if (!graph_.status()) return graph_.status();
    GraphBuilder::Plan plan = TRY(graph_.plan(handle_));
    plan_ = plan.plan;
    workspace_ = TRY(gpus().front()->allocate(plan.workspace));
    for (std::size_t i = 0; i < sets; ++i) TRY(add_operands(shape.dtype));
    return {};
  }

  Status launch(std::size_t turn) override {
    return library_.check(
        library_.cudnnBackendExecute(handle_, plan_, packs_[turn % packs_.size()]),
        "running the graph");
  }

 private:
  struct Operand {
    std::int64_t id;
    std::size_t bytes;
    bool result;
  };

  GraphBuilder::Descriptor operand(const Extents& dimensions, const Extents& strides, DataType type,
                                   bool result) {
    const auto d = graph_.tensor(dimensions, strides, {.type = type});
    const std::int64_t element = type == cudnn::kFloat ? 4 : 2;
    operands_.push_back(
        {graph_.last_id(), static_cast<std::size_t>(count_of(dimensions) * element), result});
    return d;
  }
  GraphBuilder::Descriptor between(const Extents& dimensions, DataType type = cudnn::kFloat) {
    return graph_.tensor(dimensions, by_rows(dimensions), {.type = type, .is_virtual = true});
  }
  /// A number that is passed to the graph by value; its storage lives as long as the operation.
  GraphBuilder::Descriptor number(float value) {
    constexpr Extents kOne = {1, 1, 1, 1};
    const auto d = graph_.tensor(kOne, kOne, {.type = cudnn::kFloat, .by_value = true});
    numbers_.push_back({graph_.last_id(), std::make_unique<float>(value)});
    return d;
  }

  void convolution(const Shape& s);
  void attention(const Shape& s);
  Status add_operands(const std::string& dtype);

  const Cudnn& library_;
  void* handle_;
  GraphBuilder graph_;
  GraphBuilder::Descriptor plan_ = nullptr;
  Buffer workspace_;
  std::vector<Operand> operands_;
  std::vector<std::pair<std::int64_t, std::unique_ptr<float>>> numbers_;
  std::vector<Buffer> buffers_;
  std::vector<GraphBuilder::Descriptor> packs_;
};

void CudnnOperation::convolution(const Shape& s) {
  const auto at = [&](std::string_view extent) { return static_cast<std::int64_t>(s[extent]); };
  const ConvResult out = conv_result(s);
  const DataType type = data_type(s.dtype);
  const Extents x = {at("images"), at("channels"), at("height"), at("width")},
                w = {at("filters"), at("channels") / at("groups"), at("filter_height"),
                     at("filter_width")},
                y = {at("images"), at("filters"), static_cast<std::int64_t>(out.height),
                     static_cast<std::int64_t>(out.width)};
  const auto strides = s.layout == "nhwc" ? channels_last : by_rows;
  const cudnn::Kind kind = s.op == "conv"         ? cudnn::kConvolutionForward
                           : s.op == "conv_input" ? cudnn::kConvolutionBackwardData
                                                  : cudnn::kConvolutionBackwardFilter;
  const auto dx = operand(x, strides(x), type, kind == cudnn::kConvolutionBackwardData),
             dw = operand(w, strides(w), type, kind == cudnn::kConvolutionBackwardFilter),
             dy = operand(y, strides(y), type, kind == cudnn::kConvolutionForward);
  graph_.convolve(kind, {at("stride"), at("padding")}, cudnn::kFloat, dx, dw, dy);
}

/// softmax(scale Q K') V; its intermediate results are virtual, as they never reach memory.
void CudnnOperation::attention(const Shape& s) {
  const auto at = [&](std::string_view extent) { return static_cast<std::int64_t>(s[extent]); };
  const std::int64_t b = at("batch"), h = at("heads"), m = at("queries"), n = at("keys"),
                     d = at("head_size");
  const DataType type = data_type(s.dtype);
  const Extents q = {b, h, m, d}, k = {b, h, n, d}, turned = {b, h, d, n}, scores = {b, h, m, n},
                row = {b, h, m, 1};
  // Sequence before heads, as projections leave them.
  const auto laid_out = [&](const Extents& e) {
    return Extents{e[2] * e[1] * e[3], e[3], e[1] * e[3], 1};
  };
  const Extents of_k = laid_out(k);
  const auto dq = operand(q, laid_out(q), type, false);
  const auto dk = operand(turned, {of_k[0], of_k[1], of_k[3], of_k[2]}, type, false);
  const auto dv = operand(k, of_k, type, false);
  auto last = between(scores);
  graph_.matmul(dq, dk, last);
  const auto then = [&](cudnn::PointwiseMode mode, GraphBuilder::Descriptor with) {
    const auto next = between(scores);
    graph_.pointwise(mode, last, next, with);
    last = next;
  };
  then(cudnn::kMultiply, number(1 / std::sqrt(static_cast<float>(d))));
  if (s.layout == "causal") {
    const auto rows = between(scores, cudnn::kInt32), columns = between(scores, cudnn::kInt32),
               seen = between(scores, cudnn::kBoolean), masked = between(scores);
    graph_.pointwise(cudnn::kIndex, last, rows, nullptr, nullptr, 2, cudnn::kInt32);
    graph_.pointwise(cudnn::kIndex, last, columns, nullptr, nullptr, 3, cudnn::kInt32);
    graph_.pointwise(cudnn::kGreaterOrEqual, rows, seen, columns, nullptr, {}, cudnn::kBoolean);
    graph_.pointwise(cudnn::kSelect, last, masked, number(std::numeric_limits<float>::lowest()),
                     seen);
    last = masked;
  }
  const auto most = between(row), sum = between(row);
  graph_.reduce(cudnn::kMaximum, last, most);
  then(cudnn::kSubtract, most);
  then(cudnn::kExp, nullptr);
  graph_.reduce(cudnn::kSum, last, sum);
  const auto shares = between(scores, type);
  graph_.pointwise(cudnn::kDivide, last, shares, sum);
  graph_.matmul(shares, dv, operand(q, laid_out(q), type, true));
}

Status CudnnOperation::add_operands(const std::string& dtype) {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  for (const Operand& o : operands_) {
    Gpu& gpu = *gpus().front();
    Buffer buffer = TRY(o.result ? gpu.allocate(o.bytes) : gpu.random(o.bytes, dtype));
    ids.push_back(o.id);
    pointers.push_back(buffer.pointer());
    buffers_.push_back(std::move(buffer));
  }
  for (const auto& [id, value] : numbers_) {
    ids.push_back(id);
    pointers.push_back(value.get());
  }
  packs_.push_back(TRY(graph_.pack(ids, pointers, workspace_.pointer())));
  return {};
}

class CudnnRunner final : public Runner {
 public:
  CudnnRunner(Gpu& gpu, Cudnn library, void* handle)
      : gpu_(gpu), library_(std::move(library)), handle_(handle) {}
  ~CudnnRunner() override {
    gpu_.make_current();
    library_.cudnnDestroy(handle_);
  }
  Result<std::unique_ptr<Operation>> prepare(const Shape& shape, std::size_t sets) override {
    // For FP32 the library may choose TF32; nothing here prevents that.
    if (shape.dtype == "fp32" && gpu_.info().compute_major >= 8)
      return fail("cuDNN computes fp32 as tf32 here", "dtype tf32");
    auto operation = std::make_unique<CudnnOperation>(gpu_, library_, handle_);
    TRY(operation->prepare(shape, sets));
    return operation;
  }
  std::string library() const override { return library_.name(); }

 private:
  Gpu& gpu_;
  Cudnn library_;
  void* handle_;
};

}  // namespace

Result<std::unique_ptr<Runner>> open_cudnn(Gpu& gpu) {
  Cudnn library = TRY(Cudnn::open());
  gpu.make_current();
  void* handle = nullptr;
  TRY(library.check(library.cudnnCreate(&handle), "cuDNN does not start"));
  if (Status ok =
          library.check(library.cudnnSetStream(handle, gpu.stream()), "cuDNN does not start");
      !ok) {
    library.cudnnDestroy(handle);
    return forward(ok);
  }
  return std::make_unique<CudnnRunner>(gpu, std::move(library), handle);
}

}  // namespace rehearse::bench
