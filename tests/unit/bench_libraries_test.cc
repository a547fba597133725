// NVIDIA's own libraries, where they are installed: with no driver they fail cleanly, and what
// needs none works.
#include <catch2/catch.hpp>

#include "profiler/bench/cublaslt.h"
#include "profiler/bench/cuda.h"
#include "profiler/bench/cudnn.h"
#include "profiler/bench/library.h"
#include "profiler/bench/nccl.h"
#include "profiler/bench/nvrtc.h"
#include "profiler/bench/operation.h"
#include "profiler/bench/session.h"

namespace rehearse::bench {
namespace {

TEST_CASE("a library that is not there, or lacks a function, is one clear line") {
  void* function = nullptr;
  const Symbol none[] = {{"no_such_function", &function}};
  const auto missing = open_library("the thing", {"libno_such_thing.so.1"}, none, "get it");
  REQUIRE_FALSE(missing);
  CHECK(to_string(missing.error()) == "no the thing: libno_such_thing.so.1 is not found; get it");
  const auto other = open_library("the thing", {"libc.so.6"}, none, "get it");
  REQUIRE_FALSE(other);
  CHECK(to_string(other.error()) ==
        "libc.so.6 lacks no_such_function: it is too old, or another library of that name; "
        "get it");
  const Symbol older[] = {{"no_such_function", &function, "strlen"},
                          {"another", &function, nullptr, true}};
  CHECK(open_library("the thing", {"libc.so.6"}, older, ""));
}

TEST_CASE("without a driver a session names the requirement") {
  const Result<Cuda> cuda = Cuda::open();
  if (cuda) return;  // a machine with a GPU
  const std::string line = to_string(cuda.error());
  CHECK(line.find("NVIDIA driver") != std::string::npos);
  CHECK(line.find("rehearse doctor") != std::string::npos);
  CHECK_FALSE(Session::open());
}

TEST_CASE("NVIDIA's libraries have every function that is called") {
  const auto says_why = [](const auto& library, std::string_view what) {
    if (library) return true;
    const std::string line = to_string(library.error());
    INFO(line);
    CHECK(line.find("lacks") == std::string::npos);
    return line.find(fmt::format("no {}", what)) == 0;
  };
  CHECK(says_why(CublasLt::open(), "cuBLASLt"));
  CHECK(says_why(Cudnn::open(), "cuDNN"));
  CHECK(says_why(Nvrtc::open(), "NVRTC"));
  CHECK(says_why(Nccl::open(), "NCCL"));
}

TEST_CASE("without a driver NVIDIA's libraries refuse to start, and nothing crashes") {
  if (Cuda::open()) return;
  void* handle = nullptr;
  if (const Result<CublasLt> library = CublasLt::open())
    CHECK(library->cublasLtCreate(&handle) != 0);
  if (const Result<Cudnn> library = Cudnn::open()) {
    const int code = library->cudnnCreate(&handle);
    CHECK(code != 0);
    CHECK_FALSE(library->check(code, "starting"));
  }
  if (const Result<Nccl> library = Nccl::open()) {
    const int device = 0;
    CHECK(library->ncclCommInitAll(&handle, 1, &device) != 0);
  }
}

TEST_CASE("NVRTC compiles the kernels for every architecture it knows of") {
  const Result<Nvrtc> library = Nvrtc::open();
  if (!library) return;  // not installed
  for (const std::string_view dtype : {"bf16", "fp16", "fp32"})
    for (const auto& [major, minor] : {std::pair(8, 0), std::pair(9, 0)}) {
      const auto code = library->compile(kernel_source(dtype), major, minor);
      INFO((code ? "" : to_string(code.error())));
      REQUIRE(code);
      const std::string_view text(code->data(), code->size());
      for (const std::string_view kernel :
           {"elementwise_1", "elementwise_2", "reduction", "norm", "softmax"})
        CHECK(text.find(kernel) != std::string_view::npos);
    }
  const auto wrong = library->compile("void f( {", 9, 0);
  REQUIRE_FALSE(wrong);
  CHECK(to_string(wrong.error()).find("rehearse_bench.cu(1)") != std::string::npos);
  CHECK_FALSE(library->compile(kernel_source("bf16"), 1, 0));
}

/// What cuDNN checks without a device: every descriptor of the graphs, by itself.
TEST_CASE("cuDNN takes the descriptors of our graphs") {
  const Result<Cudnn> library = Cudnn::open();
  if (!library) return;
  cudnn::GraphBuilder graph(*library);
  const std::int64_t scores[] = {2, 3, 64, 64}, row[] = {2, 3, 64, 1}, q[] = {2, 3, 64, 32},
                     by_rows[] = {3 * 64 * 64, 64 * 64, 64, 1}, of_row[] = {3 * 64, 64, 1, 1},
                     of_q[] = {3 * 64 * 32, 64 * 32, 32, 1}, turned[] = {2, 3, 32, 64},
                     of_turned[] = {3 * 64 * 32, 64 * 32, 1, 32}, one[] = {1, 1, 1, 1};
  const auto between = [&](cudnn::DataType type) {
    return graph.tensor(scores, by_rows, {.type = type, .is_virtual = true});
  };
  auto* const s = between(cudnn::kFloat);
  graph.matmul(graph.tensor(q, of_q, {.type = cudnn::kBfloat16}),
               graph.tensor(turned, of_turned, {.type = cudnn::kBfloat16}), s);
  auto* const number = graph.tensor(one, one, {.type = cudnn::kFloat, .by_value = true});
  graph.pointwise(cudnn::kMultiply, s, between(cudnn::kFloat), number);
  auto *const rows = between(cudnn::kInt32), *const columns = between(cudnn::kInt32),
              *const seen = between(cudnn::kBoolean);
  graph.pointwise(cudnn::kIndex, s, rows, nullptr, nullptr, 2, cudnn::kInt32);
  graph.pointwise(cudnn::kIndex, s, columns, nullptr, nullptr, 3, cudnn::kInt32);
  graph.pointwise(cudnn::kGreaterOrEqual, rows, seen, columns, nullptr, {}, cudnn::kBoolean);
  graph.pointwise(cudnn::kSelect, s, between(cudnn::kFloat), number, seen);
  auto* const most = graph.tensor(row, of_row, {.type = cudnn::kFloat, .is_virtual = true});
  graph.reduce(cudnn::kMaximum, s, most);
  graph.pointwise(cudnn::kSubtract, s, between(cudnn::kFloat), most);
  graph.pointwise(cudnn::kExp, s, between(cudnn::kFloat));
  graph.reduce(cudnn::kSum, s, most);
  graph.pointwise(cudnn::kDivide, s, between(cudnn::kBfloat16), most);
  INFO((graph.status() ? "" : to_string(graph.status().error())));
  CHECK(graph.status());

  const std::int64_t x[] = {4, 16, 8, 8}, w[] = {32, 16, 3, 3}, y[] = {4, 32, 8, 8},
                     of_x[] = {16 * 64, 1, 8 * 16, 16}, of_w[] = {16 * 9, 1, 3 * 16, 16},
                     of_y[] = {32 * 64, 1, 8 * 32, 32};
  for (const cudnn::Kind kind : {cudnn::kConvolutionForward, cudnn::kConvolutionBackwardData,
                                 cudnn::kConvolutionBackwardFilter}) {
    cudnn::GraphBuilder conv(*library);
    conv.convolve(kind, {1, 1}, cudnn::kFloat, conv.tensor(x, of_x, {.type = cudnn::kHalf}),
                  conv.tensor(w, of_w, {.type = cudnn::kHalf}),
                  conv.tensor(y, of_y, {.type = cudnn::kHalf}));
    INFO((conv.status() ? "" : to_string(conv.status().error())));
    CHECK(conv.status());
  }
}

}  // namespace
}  // namespace rehearse::bench
