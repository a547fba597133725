// cuBLASLt of the mock GPU. Environment: MOCK_NO_FP8=1: no algorithm for it. With MOCK_OLD defined
// the library lacks cublasLtMatmulAlgoGetHeuristic.
#include "profiler/bench/cublaslt.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/gpu_mocks/clock.h"
#include "tests/gpu_mocks/law.h"

namespace {

using namespace rehearse;

struct Desc {
  std::int32_t turned[2] = {0, 0};
  int compute = 0;
};
struct Layout {
  int type;
  double rows, columns, batch = 1;
};

double element_of(int type) { return type == 0 ? 4 : type == 28 ? 1 : 2; }

}  // namespace

extern "C" {
std::size_t cublasLtGetVersion() { return 130002; }
int cublasLtCreate(void** handle) {
  *handle = new int(0);
  return 0;
}
int cublasLtDestroy(void* handle) {
  delete static_cast<int*>(handle);
  return 0;
}
int cublasLtMatmulDescCreate(void** desc, int compute, int) {
  *desc = new Desc{.compute = compute};
  return 0;
}
int cublasLtMatmulDescDestroy(void* desc) {
  delete static_cast<Desc*>(desc);
  return 0;
}
int cublasLtMatmulDescSetAttribute(void* desc, int attribute, const void* value, std::size_t) {
  if (attribute == 3 || attribute == 4)
    std::memcpy(&static_cast<Desc*>(desc)->turned[attribute - 3], value, 4);
  return 0;
}
int cublasLtMatrixLayoutCreate(void** layout, int type, std::uint64_t rows, std::uint64_t columns,
                               std::int64_t) {
  *layout = new Layout{type, static_cast<double>(rows), static_cast<double>(columns)};
  return 0;
}
int cublasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<Layout*>(layout);
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value, std::size_t) {
  std::int32_t batch = 0;
  std::memcpy(&batch, value, sizeof batch);
  if (attribute == 5) static_cast<Layout*>(layout)->batch = batch;
  return 0;
}
int cublasLtMatmulPreferenceCreate(void** preference) {
  *preference = new int(0);
  return 0;
}
int cublasLtMatmulPreferenceDestroy(void* preference) {
  delete static_cast<int*>(preference);
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, std::size_t) { return 0; }

#ifndef MOCK_OLD
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void* a, void*, void*, void*, void*, int,
                                   bench::cublaslt::HeuristicResult* result, int* count) {
  if (static_cast<Layout*>(a)->type == 28 && mock_number("MOCK_NO_FP8", 0)) return 15;
  result->state = 0;
  *count = 1;
  return 0;
}
#endif

/// Refuses factors that do not fit together, so that a wrong description of them is noticed.
int cublasLtMatmul(void*, void* desc, const void*, const void*, void* first, const void*,
                   void* second, const void*, const void*, void* third, void*, void*, const void*,
                   void*, std::size_t, void*) {
  const auto& d = *static_cast<Desc*>(desc);
  const auto &a = *static_cast<Layout*>(first), &b = *static_cast<Layout*>(second),
             &c = *static_cast<Layout*>(third);
  const double m = d.turned[0] ? a.columns : a.rows, k = d.turned[0] ? a.rows : a.columns;
  const double n = d.turned[1] ? b.rows : b.columns, other = d.turned[1] ? b.columns : b.rows;
  if (k != other || m != c.rows || n != c.columns || a.batch != c.batch) return 7;
  const double element = d.compute == 77 ? 2 : element_of(a.type);
  mock_cuda_run(mock::gemm(m, n, k, a.batch, element, mock_cuda_held() != 0));
  return 0;
}
}
