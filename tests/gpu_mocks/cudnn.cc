// cuDNN's backend of the mock GPU: descriptors keep what they are told, a plan adds up the products
// and convolutions of its graph. Environment: MOCK_NO_ATTENTION=1: no engine for its graph.
#include "profiler/bench/cudnn.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "tests/gpu_mocks/clock.h"
#include "tests/gpu_mocks/law.h"

namespace {

using namespace rehearse;
using namespace rehearse::bench::cudnn;

struct Descriptor {
  int kind;
  bool finalized = false;
  std::map<int, std::vector<std::uint64_t>> values = {};

  Descriptor* at(int attribute) const {
    return reinterpret_cast<Descriptor*>(values.at(attribute).front());
  }
  double extent(std::size_t i) const {
    return static_cast<double>(values.at(kTensorDimensions).at(i));
  }
  double element() const { return values.at(kTensorType).front() == kFloat ? 4 : 2; }
};

/// All operations of a graph; the time of the graph as a whole, as nothing between reaches memory.
double time_of(const Descriptor& graph, bool held) {
  double matmuls = 0, first_k = 0;
  const Descriptor* scores = nullptr;
  for (const std::uint64_t raw : graph.values.at(kGraphOperations)) {
    const auto& op = *reinterpret_cast<Descriptor*>(raw);
    if (op.kind == kOperationMatmul) {
      const Descriptor &a = *op.at(kMatmulA), &c = *op.at(kMatmulC);
      if (matmuls++ == 0) {
        scores = &c;
        first_k = a.extent(3);
      }
      continue;
    }
    if (op.kind != kConvolutionForward && op.kind != kConvolutionBackwardData &&
        op.kind != kConvolutionBackwardFilter)
      continue;
    const int first = op.kind == kConvolutionForward        ? kForwardAlpha
                      : op.kind == kConvolutionBackwardData ? kBackwardDataAlpha
                                                            : kBackwardFilterAlpha;
    const Descriptor &w = *op.at(first + 3), &x = *op.at(first + 4), &y = *op.at(first + 5);
    const double positions = y.extent(0) * y.extent(2) * y.extent(3);
    const double summed = w.extent(1) * w.extent(2) * w.extent(3);
    const auto count = [](const Descriptor& t) {
      return t.extent(0) * t.extent(1) * t.extent(2) * t.extent(3);
    };
    return mock::kernel(2 * positions * w.extent(0) * summed, mock::rate_of(x.element()),
                        x.element() * (count(x) + count(w) + count(y)), held);
  }
  return mock::attention(scores->extent(0) * scores->extent(1), scores->extent(2),
                         scores->extent(3), first_k, 2, held);
}

}  // namespace

extern "C" {
std::size_t cudnnGetVersion() { return 91900; }
const char* cudnnGetErrorString(int) { return "CUDNN_STATUS_OF_THE_MOCK"; }
int cudnnCreate(void** handle) {
  *handle = new int(0);
  return 0;
}
int cudnnDestroy(void* handle) {
  delete static_cast<int*>(handle);
  return 0;
}
int cudnnSetStream(void*, void*) { return 0; }
int cudnnBackendCreateDescriptor(int kind, void** descriptor) {
  *descriptor = new Descriptor{.kind = kind};
  return 0;
}
int cudnnBackendDestroyDescriptor(void* descriptor) {
  delete static_cast<Descriptor*>(descriptor);
  return 0;
}
int cudnnBackendSetAttribute(void* descriptor, int attribute, int type, std::int64_t count,
                             const void* values) {
  auto& d = *static_cast<Descriptor*>(descriptor);
  if (d.finalized) return 2000;
  const bool wide =
      type == kHandleType || type == kInt64Type || type == kPointerType || type == kDescriptorType;
  const std::size_t size = wide ? 8 : type == kBooleanType ? 1 : 4;
  auto& to = d.values[attribute];
  to.assign(static_cast<std::size_t>(count), 0);
  for (std::size_t i = 0; i < to.size(); ++i)
    std::memcpy(&to[i], static_cast<const char*>(values) + i * size, size);
  return 0;
}
int cudnnBackendFinalize(void* descriptor) {
  auto& d = *static_cast<Descriptor*>(descriptor);
  if (d.kind == kOperationGraph && d.values[kGraphOperations].size() > 1 &&
      mock_number("MOCK_NO_ATTENTION", 0))
    return 3000;
  d.finalized = true;
  return 0;
}
int cudnnBackendGetAttribute(void* descriptor, int attribute, int, std::int64_t, std::int64_t* got,
                             void* to) {
  auto& d = *static_cast<Descriptor*>(descriptor);
  *got = 1;
  if (attribute == kHeuristicResults)  // of the configuration, the graph
    (*static_cast<Descriptor**>(to))->values[0] = d.values.at(kHeuristicGraph);
  else if (attribute == kPlanWorkspaceSize)
    *static_cast<std::int64_t*>(to) = 1 << 20;
  else
    return 2000;
  return 0;
}
int cudnnBackendExecute(void*, void* plan, void* pack) {
  const auto& p = *static_cast<Descriptor*>(plan);
  const auto& operands = *static_cast<Descriptor*>(pack);
  if (!p.finalized || !operands.finalized ||
      operands.values.at(kPackIds).size() != operands.values.at(kPackPointers).size())
    return 5000;
  const Descriptor& graph = *p.at(kPlanEngineConfig)->at(0);
  mock_cuda_run(time_of(graph, mock_cuda_held() != 0));
  return 0;
}
}
