// NCCL of the mock GPUs. Calls of a group run together when it ends.
#include <algorithm>
#include <cstddef>

#include "tests/gpu_mocks/clock.h"
#include "tests/gpu_mocks/law.h"

namespace {

using namespace rehearse;

struct Comm {
  int ranks;
};
double together = 0;  // of the calls of the group

double element(int type) { return type == 7 ? 4 : 2; }
int ring(double bytes, void* comm, double steps_per_rank) {
  const double ranks = static_cast<Comm*>(comm)->ranks;
  together = std::max(together, mock::ring(bytes, ranks, steps_per_rank * (ranks - 1)));
  return 0;
}

}  // namespace

extern "C" {
int ncclGetVersion(int* version) {
  *version = 22809;
  return 0;
}
const char* ncclGetErrorString(int) { return "an NCCL error of the mock"; }
int ncclCommInitAll(void** comms, int ranks, const int*) {
  for (int r = 0; r < ranks; ++r) comms[r] = new Comm{ranks};
  return 0;
}
int ncclCommDestroy(void* comm) {
  delete static_cast<Comm*>(comm);
  return 0;
}
int ncclGroupStart() {
  together = 0;
  return 0;
}
int ncclGroupEnd() {
  mock_cuda_run(together);
  return 0;
}
int ncclAllReduce(const void*, void*, std::size_t n, int type, int, void* comm, void*) {
  return ring(static_cast<double>(n) * element(type), comm, 2);
}
int ncclAllGather(const void*, void*, std::size_t n, int type, void* comm, void*) {
  return ring(static_cast<double>(n) * element(type) * static_cast<Comm*>(comm)->ranks, comm, 1);
}
int ncclReduceScatter(const void*, void*, std::size_t n, int type, int, void* comm, void*) {
  return ring(static_cast<double>(n) * element(type) * static_cast<Comm*>(comm)->ranks, comm, 1);
}
int ncclBroadcast(const void*, void*, std::size_t n, int type, int, void* comm, void*) {
  return ring(static_cast<double>(n) * element(type), comm, 1);
}
int ncclSend(const void*, std::size_t n, int type, int, void* comm, void*) {
  return ring(static_cast<double>(n) * element(type) * static_cast<Comm*>(comm)->ranks, comm, 1);
}
int ncclRecv(void*, std::size_t, int, int, void*, void*) { return 0; }
}
