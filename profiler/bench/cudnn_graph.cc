#include <algorithm>

#include <fmt/core.h>

#include "profiler/bench/cudnn.h"
#include "profiler/bench/library.h"

namespace rehearse::bench {

Result<Cudnn> Cudnn::open() {
  Cudnn library;
  const Symbol symbols[] = {REHEARSE_CUDNN_FUNCTIONS(REHEARSE_SYMBOL)};
  TRY(open_library("cuDNN", {"libcudnn.so.9", "libcudnn.so", "/usr/local/cuda/lib64/libcudnn.so.9"},
                   symbols, "install cuDNN 9, or add the folder of PyTorch's to LD_LIBRARY_PATH"));
  const std::size_t version = library.cudnnGetVersion();
  if (version < 90000)
    return fail(fmt::format("cuDNN is of version {}.{}", version / 1000, version % 1000 / 100),
                "cuDNN 9 or newer");
  library.name_ = fmt::format("cuDNN {}", release(version));
  return library;
}

Status Cudnn::check(int code, std::string_view what) const {
  if (code == 0) return {};
  const char* text = cudnnGetErrorString(code);
  return fail(fmt::format("{}: {} ({})", what, text ? text : "cuDNN error", code));
}

namespace cudnn {

GraphBuilder::~GraphBuilder() {
  for (auto d = all_.rbegin(); d != all_.rend(); ++d) library_.cudnnBackendDestroyDescriptor(*d);
}

GraphBuilder::Descriptor GraphBuilder::make(Kind kind) {
  if (!status_) return nullptr;
  void* raw = nullptr;
  status_ =
      library_.check(library_.cudnnBackendCreateDescriptor(kind, &raw),
                     fmt::format("making a cuDNN descriptor of kind {}", static_cast<int>(kind)));
  if (status_) all_.push_back(raw);
  return raw;
}

void GraphBuilder::set(Descriptor d, int attribute, Type type, std::int64_t count,
                       const void* values) {
  if (!status_) return;
  status_ = library_.check(library_.cudnnBackendSetAttribute(d, attribute, type, count, values),
                           fmt::format("setting attribute {} of a cuDNN graph", attribute));
}

void GraphBuilder::set_integer(Descriptor d, int attribute, std::int64_t value) {
  set(d, attribute, kInt64Type, 1, &value);
}

void GraphBuilder::set_word(Descriptor d, int attribute, Type type, int value) {
  set(d, attribute, type, 1, &value);
}

void GraphBuilder::set_descriptor(Descriptor d, int attribute, Descriptor value) {
  set(d, attribute, kDescriptorType, 1, &value);
}

void GraphBuilder::finalize(Descriptor d, std::string_view what) {
  if (!status_) return;
  status_ = library_.check(library_.cudnnBackendFinalize(d), what);
}

GraphBuilder::Descriptor GraphBuilder::tensor(std::span<const std::int64_t> dimensions,
                                              std::span<const std::int64_t> strides, Place place) {
  const Descriptor d = make(kTensor);
  const auto rank = static_cast<std::int64_t>(dimensions.size());
  set_word(d, kTensorType, kDataTypeType, place.type);
  set(d, kTensorDimensions, kInt64Type, rank, dimensions.data());
  set(d, kTensorStrides, kInt64Type, rank, strides.data());
  set_integer(d, kTensorId, ++id_);
  set_integer(d, kTensorAlignment, 16);
  const bool yes = true;
  if (place.is_virtual) set(d, kTensorVirtual, kBooleanType, 1, &yes);
  if (place.by_value) set(d, kTensorByValue, kBooleanType, 1, &yes);
  finalize(d, "a tensor of the graph");
  return d;
}

void GraphBuilder::pointwise(PointwiseMode mode, Descriptor x, Descriptor y, Descriptor b,
                             Descriptor t, std::optional<std::int64_t> axis, DataType computed_in) {
  const Descriptor how = make(kPointwise);
  set_word(how, kPointwiseMode, kPointwiseModeType, mode);
  set_word(how, kPointwisePrecision, kDataTypeType, computed_in);
  if (axis) set_integer(how, kPointwiseAxis, *axis);
  finalize(how, "a pointwise function");
  const Descriptor op = make(kOperationPointwise);
  set_descriptor(op, kOperationPointwiseDescription, how);
  set_descriptor(op, kOperationPointwiseX, x);
  if (b) set_descriptor(op, kOperationPointwiseB, b);
  if (t) set_descriptor(op, kOperationPointwiseT, t);
  set_descriptor(op, kOperationPointwiseY, y);
  finalize(op, fmt::format("pointwise operation {}", static_cast<int>(mode)));
  operations_.push_back(op);
}

void GraphBuilder::reduce(int operation, Descriptor x, Descriptor y) {
  const Descriptor how = make(kReduction);
  set_word(how, kReductionOperator, kReductionOperatorType, operation);
  set_word(how, kReductionType, kDataTypeType, kFloat);
  finalize(how, "a reduction");
  const Descriptor op = make(kOperationReduction);
  set_descriptor(op, kOperationReductionDescription, how);
  set_descriptor(op, kOperationReductionX, x);
  set_descriptor(op, kOperationReductionY, y);
  finalize(op, fmt::format("reduction {}", operation));
  operations_.push_back(op);
}

void GraphBuilder::matmul(Descriptor a, Descriptor b, Descriptor c) {
  const Descriptor how = make(kMatmul);
  set_word(how, kMatmulType, kDataTypeType, kFloat);
  finalize(how, "a product");
  const Descriptor op = make(kOperationMatmul);
  set_descriptor(op, kMatmulDescription, how);
  set_descriptor(op, kMatmulA, a);
  set_descriptor(op, kMatmulB, b);
  set_descriptor(op, kMatmulC, c);
  finalize(op, "a product of the graph");
  operations_.push_back(op);
}

void GraphBuilder::convolve(Kind kind, ConvolutionExtents extents, DataType computed_in,
                            Descriptor x, Descriptor w, Descriptor y) {
  const Descriptor how = make(kConvolution);
  const std::int64_t paddings[] = {extents.padding, extents.padding},
                     strides[] = {extents.stride, extents.stride}, dilations[] = {1, 1};
  set_word(how, kConvolutionType, kDataTypeType, computed_in);
  set_word(how, kConvolutionMode, kConvolutionModeType, kCrossCorrelation);
  set_integer(how, kConvolutionSpatialDims, 2);
  set(how, kConvolutionPrePaddings, kInt64Type, 2, paddings);
  set(how, kConvolutionPostPaddings, kInt64Type, 2, paddings);
  set(how, kConvolutionStrides, kInt64Type, 2, strides);
  set(how, kConvolutionDilations, kInt64Type, 2, dilations);
  finalize(how, "a convolution");
  const int first = kind == kConvolutionForward        ? kForwardAlpha
                    : kind == kConvolutionBackwardData ? kBackwardDataAlpha
                                                       : kBackwardFilterAlpha;
  const float one = 1, zero = 0;
  const Descriptor op = make(kind);
  set(op, first, kFloatType, 1, &one);
  set(op, first + 1, kFloatType, 1, &zero);
  // The three operations number their description and tensors in the same order: description, W, X,
  // Y.
  set_descriptor(op, first + 2, how);
  set_descriptor(op, first + 3, w);
  set_descriptor(op, first + 4, x);
  set_descriptor(op, first + 5, y);
  finalize(op, "a convolution of the graph");
  operations_.push_back(op);
}

Result<GraphBuilder::Plan> GraphBuilder::plan_of(void* handle, Descriptor graph, int heuristic) {
  const Descriptor chooser = make(kEngineHeuristic);
  set_descriptor(chooser, kHeuristicGraph, graph);
  set_word(chooser, kHeuristicMode, kHeuristicModeType, heuristic);
  finalize(chooser, "cuDNN's heuristic");
  constexpr std::int64_t kMost = 16;
  std::vector<Descriptor> configurations;
  for (std::int64_t i = 0; i < kMost; ++i) configurations.push_back(make(kEngineConfig));
  TRY(status_);
  std::int64_t count = 0;
  TRY(library_.check(library_.cudnnBackendGetAttribute(chooser, kHeuristicResults, kDescriptorType,
                                                       kMost, &count, configurations.data()),
                     "asking cuDNN's heuristic"));
  for (std::int64_t i = 0; i < std::min(count, kMost); ++i) {
    const Descriptor plan = make(kExecutionPlan);
    set(plan, kPlanHandle, kHandleType, 1, &handle);
    set_descriptor(plan, kPlanEngineConfig, configurations[static_cast<std::size_t>(i)]);
    TRY(status_);
    if (library_.cudnnBackendFinalize(plan) != 0) continue;  // not on this device
    std::int64_t workspace = 0, got = 0;
    if (library_.cudnnBackendGetAttribute(plan, kPlanWorkspaceSize, kInt64Type, 1, &got,
                                          &workspace) == 0)
      return Plan{plan, static_cast<std::size_t>(std::max<std::int64_t>(workspace, 0))};
  }
  return fail("cuDNN has no engine for it on this device");
}

Result<GraphBuilder::Plan> GraphBuilder::plan(void* handle) {
  const Descriptor graph = make(kOperationGraph);
  set(graph, kGraphOperations, kDescriptorType, static_cast<std::int64_t>(operations_.size()),
      operations_.data());
  set(graph, kGraphHandle, kHandleType, 1, &handle);
  finalize(graph, "cuDNN does not support this graph");
  TRY(status_);
  Result<Plan> first = plan_of(handle, graph, kHeuristicA);
  if (first) return first;
  status_ = {};
  Result<Plan> fallback = plan_of(handle, graph, kHeuristicFallback);
  return fallback ? std::move(fallback) : std::move(first);
}

Result<GraphBuilder::Descriptor> GraphBuilder::pack(std::span<const std::int64_t> ids,
                                                    std::span<void* const> pointers,
                                                    void* workspace) {
  const Descriptor pack = make(kVariantPack);
  const auto count = static_cast<std::int64_t>(ids.size());
  set(pack, kPackPointers, kPointerType, count, pointers.data());
  set(pack, kPackIds, kInt64Type, count, ids.data());
  set(pack, kPackWorkspace, kPointerType, 1, &workspace);
  finalize(pack, "the operands of a graph");
  TRY(status_);
  return pack;
}

}  // namespace cudnn
}  // namespace rehearse::bench
