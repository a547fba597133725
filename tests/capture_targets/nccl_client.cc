// Calls the real NCCL without a communicator: it refuses, but names the call and its bytes to NVTX
// before. Needs no GPU. The argument is the library.
#include <cstddef>

#include <dlfcn.h>
#include <stdio.h>

namespace {

constexpr int kBfloat16 = 9;
constexpr int kSum = 0;
constexpr std::size_t kCount = 1000;

template <class... Arguments>
void call(void* library, const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  if (!function) return;
  const int result = function(arguments...);
  printf("%s %d\n", name, result);
}

}  // namespace

int main(int, char** arguments) {
  void* library = dlopen(arguments[1], RTLD_NOW);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  char buffer[8] = {};
  void* const at = buffer;
  void* const none = nullptr;  // communicator and stream
  call(library, "ncclAllReduce", at, at, kCount, kBfloat16, kSum, none, none);
  call(library, "ncclAllGather", at, at, kCount, kBfloat16, none, none);
  call(library, "ncclReduceScatter", at, at, kCount, kBfloat16, kSum, none, none);
  call(library, "ncclBroadcast", at, at, kCount, kBfloat16, 1, none, none);
  call(library, "ncclReduce", at, at, kCount, kBfloat16, kSum, 2, none, none);
  call(library, "ncclSend", at, kCount, kBfloat16, 3, none, none);
  call(library, "ncclRecv", at, kCount, kBfloat16, 4, none, none);
  call(library, "ncclAlltoAll", at, at, kCount, kBfloat16, none, none);
  call(library, "ncclGather", at, at, kCount, kBfloat16, 5, none, none);
  call(library, "ncclScatter", at, at, kCount, kBfloat16, 6, none, none);
}
