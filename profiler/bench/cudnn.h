// The backend of cuDNN, as far as measuring needs it: graphs of operations described by attributes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profiler/bench/cuda.h"
#include "profiler/bench/library.h"
#include "sim/base/result.h"

namespace rehearse::bench {

// Our own declarations of numbers in cudnn_graph.h.
namespace cudnn {
enum Kind : int {
  kPointwise = 0,
  kConvolution = 1,
  kEngineConfig = 3,
  kEngineHeuristic = 4,
  kExecutionPlan = 5,
  kConvolutionForward = 10,
  kConvolutionBackwardFilter = 11,
  kConvolutionBackwardData = 12,
  kOperationPointwise = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kOperationMatmul = 19,
  kReduction = 21,
  kOperationReduction = 22,
};
enum Attribute : int {
  kPointwiseMode = 0,
  kPointwisePrecision = 1,
  kPointwiseAxis = 9,
  kConvolutionType = 100,
  kConvolutionMode = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPostPaddings = 104,
  kConvolutionPrePaddings = 105,
  kConvolutionSpatialDims = 106,
  kHeuristicMode = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kPlanHandle = 400,
  kPlanEngineConfig = 401,
  kPlanWorkspaceSize = 402,
  kForwardAlpha = 700,  // then beta, description, W, X, Y
  kBackwardDataAlpha = 706,
  kBackwardFilterAlpha = 712,
  kOperationPointwiseDescription = 750,
  kOperationPointwiseX = 751,
  kOperationPointwiseB = 752,
  kOperationPointwiseY = 753,
  kOperationPointwiseT = 758,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorVirtual = 907,
  kTensorByValue = 908,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kMatmulType = 1500,
  kMatmulA = 1520,
  kMatmulB = 1521,
  kMatmulC = 1522,
  kMatmulDescription = 1523,
  kReductionOperator = 1600,
  kReductionType = 1601,
  kOperationReductionX = 1610,
  kOperationReductionY = 1611,
  kOperationReductionDescription = 1612,
};
enum Type : int {  // of an attribute's elements
  kHandleType = 0,
  kDataTypeType = 1,
  kBooleanType = 2,
  kInt64Type = 3,
  kFloatType = 4,
  kPointerType = 6,
  kConvolutionModeType = 7,
  kHeuristicModeType = 8,
  kPointwiseModeType = 14,
  kDescriptorType = 15,
  kReductionOperatorType = 18,
};
enum DataType : int { kFloat = 0, kHalf = 2, kInt32 = 4, kBfloat16 = 9, kBoolean = 11 };
enum PointwiseMode : int {
  kMultiply = 1,
  kDivide = 6,
  kSubtract = 9,
  kExp = 13,
  kGreaterOrEqual = 303,
  kIndex = 501,
  kSelect = 601,
};
inline constexpr int kSum = 0, kMaximum = 3;                   // reductions
inline constexpr int kCrossCorrelation = 1;                    // convolution mode
inline constexpr int kHeuristicA = 3, kHeuristicFallback = 2;  // heuristic modes
}  // namespace cudnn

// name in the library, return type, parameters. Handles and descriptors are opaque pointers.
#define REHEARSE_CUDNN_FUNCTIONS(X)                                                       \
  X(cudnnGetVersion, std::size_t, ())                                                     \
  X(cudnnGetErrorString, const char*, (int))                                              \
  X(cudnnCreate, int, (void**))                                                           \
  X(cudnnDestroy, int, (void*))                                                           \
  X(cudnnSetStream, int, (void*, CudaStream))                                             \
  X(cudnnBackendCreateDescriptor, int, (int, void**))                                     \
  X(cudnnBackendDestroyDescriptor, int, (void*))                                          \
  X(cudnnBackendFinalize, int, (void*))                                                   \
  X(cudnnBackendSetAttribute, int, (void*, int, int, std::int64_t, const void*))          \
  X(cudnnBackendGetAttribute, int, (void*, int, int, std::int64_t, std::int64_t*, void*)) \
  X(cudnnBackendExecute, int, (void*, void*, void*))

class Cudnn {
 public:
  static Result<Cudnn> open();
  REHEARSE_CUDNN_FUNCTIONS(REHEARSE_POINTER)
  const std::string& name() const { return name_; }  ///< with its version
  Status check(int code, std::string_view what) const;

 private:
  std::string name_;
};

namespace cudnn {

/// Builds a graph, descriptor by descriptor. Its status is the first failure, after which calls do
/// nothing.
class GraphBuilder {
 public:
  explicit GraphBuilder(const Cudnn& library) : library_(library) {}
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;
  ~GraphBuilder();

  using Descriptor = void*;
  struct Place {
    DataType type;
    bool is_virtual = false;  ///< never in memory
    bool by_value = false;    ///< one number of the host
  };
  /// Adds a tensor and returns its descriptor. Ids count from 1 in the order of the calls.
  Descriptor tensor(std::span<const std::int64_t> dimensions, std::span<const std::int64_t> strides,
                    Place place);
  std::int64_t last_id() const { return id_; }

  /// An operation of the graph that computes y from x, and from b and t if they are not null.
  void pointwise(PointwiseMode mode, Descriptor x, Descriptor y, Descriptor b = nullptr,
                 Descriptor t = nullptr, std::optional<std::int64_t> axis = {},
                 DataType computed_in = kFloat);
  void reduce(int operation, Descriptor x, Descriptor y);
  void matmul(Descriptor a, Descriptor b, Descriptor c);
  struct ConvolutionExtents {
    std::int64_t stride, padding;
  };
  void convolve(Kind kind, ConvolutionExtents extents, DataType computed_in, Descriptor x,
                Descriptor w, Descriptor y);

  const Status& status() const { return status_; }

  /// A plan of the graph: the first configuration, in the order of the heuristic, that the device
  /// can run. Fails if it can run none.
  struct Plan {
    Descriptor plan;
    std::size_t workspace;
  };
  Result<Plan> plan(void* handle);
  /// The data of a plan: pointers by tensor id.
  Result<Descriptor> pack(std::span<const std::int64_t> ids, std::span<void* const> pointers,
                          void* workspace);

 private:
  Descriptor make(Kind kind);
  void set(Descriptor d, int attribute, Type type, std::int64_t count, const void* values);
  void set_integer(Descriptor d, int attribute, std::int64_t value);
  void set_word(Descriptor d, int attribute, Type type, int value);
  void set_descriptor(Descriptor d, int attribute, Descriptor value);
  void finalize(Descriptor d, std::string_view what);
  Result<Plan> plan_of(void* handle, Descriptor graph, int heuristic);

  const Cudnn& library_;
  Status status_ = {};
  std::vector<Descriptor> all_;
  std::vector<Descriptor> operations_;
  std::int64_t id_ = 0;
};

}  // namespace cudnn
}  // namespace rehearse::bench
