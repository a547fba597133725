// A CUDA driver with simulated devices: every launch moves a clock by what the law of law.h says.
// Memory is the host's, and not backed until it is touched.
//
// Environment: MOCK_DEVICES (2), MOCK_MIG=1, MOCK_INIT (result of cuInit), MOCK_MEMORY (bytes of a
// device), MOCK_SEED, MOCK_NO_WAIT=1 (streams cannot wait for the host), MOCK_QUEUE (launches that
// a held stream takes before the next one waits for the device).
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <set>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "tests/gpu_mocks/clock.h"
#include "tests/gpu_mocks/law.h"

namespace {

using namespace rehearse;

double now = 0;       // of the device, s
bool flushed = true;  // L2 holds no data of the operations
std::uint64_t seed = 0;
std::map<std::uint64_t, std::size_t> allocations;
std::size_t taken = 0;
std::set<const void*> pinned;

double host_rate(const void* at) {
  return pinned.count(at) ? mock::kHostRate : mock::kPageableRate;
}

double uniform() {
  if (seed == 0)
    seed = 88172645463325252ULL + static_cast<std::uint64_t>(mock_number("MOCK_SEED", 0));
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return static_cast<double>(seed >> 11) / 9007199254740992.0;
}

/// Of mean 0 and deviation 1.
double normal() {
  return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(6.283185307179586 * uniform());
}

// The flag that the stream waits for, and the launches after it.
const volatile std::uint32_t* flag = nullptr;
std::uint32_t flag_value = 0;
long queued = 0;

struct Event {
  double at = -1;
};
struct Function {
  std::string name;
  double element;
};

struct Module {
  std::string text;
  std::list<Function> functions;  // gone with it
};

std::size_t memory() { return static_cast<std::size_t>(mock_number("MOCK_MEMORY", 64L << 30)); }

}  // namespace

extern "C" {

long mock_number(const char* variable, long otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atol(text) : otherwise;
}
void mock_cuda_run(double seconds) {
  if (flag && ++queued > mock_number("MOCK_QUEUE", 1000))
    while (*flag < flag_value) ::usleep(1000);
  now += seconds * (1 + mock::kNoise * std::max(-3.0, std::min(3.0, normal())));
  flushed = false;
}
int mock_cuda_held() { return flushed ? 0 : 1; }

int cuInit(unsigned) { return static_cast<int>(mock_number("MOCK_INIT", 0)); }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuGetErrorName(int code, const char** name) {
  *name = code == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == 100 ? "CUDA_ERROR_NO_DEVICE"
          : code == 999 ? "CUDA_ERROR_UNKNOWN"
                        : "CUDA_ERROR_OF_THE_MOCK";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(mock_number("MOCK_DEVICES", 2));
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int size, int) {
  std::snprintf(name, static_cast<std::size_t>(size), "NVIDIA H100 80GB HBM3%s",
                mock_number("MOCK_MIG", 0) ? " MIG 1g.10gb" : "");
  return 0;
}
int cuDeviceGetAttribute(int* value, int which, int) {
  *value = which == 16   ? (mock_number("MOCK_MIG", 0) ? 16 : 132)
           : which == 36 ? 2619000
           : which == 38 ? static_cast<int>(mock::kL2)
           : which == 75 ? 9
                         : 0;
  return 0;
}
int cuDeviceGetPCIBusId(char* id, int size, int device) {
  std::snprintf(id, static_cast<std::size_t>(size), "0000:%02x:00.0", device + 1);
  return 0;
}
int cuDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(device) + 1);
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuCtxEnablePeerAccess(void*, unsigned) { return 0; }

int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
  if (taken + bytes > memory()) return 2;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return 2;
  *address = reinterpret_cast<std::uint64_t>(at);
  allocations[*address] = bytes;
  taken += bytes;
  return 0;
}
int cuMemFree_v2(unsigned long long address) {
  const auto found = allocations.find(address);
  if (found == allocations.end()) return 1;
  ::munmap(reinterpret_cast<void*>(address), found->second);
  taken -= found->second;
  allocations.erase(found);
  return 0;
}
int cuMemGetInfo_v2(std::size_t* available, std::size_t* all) {
  *all = memory();
  *available = *all - taken;
  return 0;
}
int cuMemHostAlloc(void** at, std::size_t bytes, unsigned) {
  *at = std::calloc(1, bytes);
  pinned.insert(*at);
  return *at ? 0 : 2;
}
int cuMemFreeHost(void* at) {
  pinned.erase(at);
  std::free(at);
  return 0;
}
int cuMemHostGetDevicePointer_v2(unsigned long long* address, void* at, unsigned) {
  *address = reinterpret_cast<std::uint64_t>(at);
  return 0;
}
// Data are not moved: nobody looks at them.
int cuMemcpyHtoDAsync_v2(unsigned long long, const void* from, std::size_t bytes, void*) {
  mock_cuda_run(mock::copy(static_cast<double>(bytes), host_rate(from)));
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long, std::size_t bytes, void*) {
  mock_cuda_run(mock::copy(static_cast<double>(bytes), host_rate(to)));
  return 0;
}
int cuMemcpyDtoDAsync_v2(unsigned long long, unsigned long long, std::size_t bytes, void*) {
  mock_cuda_run(mock::kernel(0, 1, 2 * static_cast<double>(bytes), mock_cuda_held() != 0));
  return 0;
}
int cuMemcpyPeerAsync(unsigned long long, void*, unsigned long long, void*, std::size_t bytes,
                      void*) {
  mock_cuda_run(mock::copy(static_cast<double>(bytes), mock::kPeerRate));
  return 0;
}
int cuMemsetD8Async(unsigned long long, unsigned char, std::size_t bytes, void*) {
  const double size = static_cast<double>(bytes);
  mock_cuda_run(mock::kernel(0, 1, size, mock_cuda_held() != 0));
  flushed = size >= 2 * mock::kL2;
  return 0;
}

int cuStreamCreate(void** stream, unsigned) {
  *stream = &now;
  return 0;
}
int cuStreamDestroy_v2(void*) { return 0; }
int cuStreamSynchronize(void*) { return 0; }
int cuStreamWaitValue32_v2(void*, unsigned long long address, std::uint32_t value, unsigned) {
  if (mock_number("MOCK_NO_WAIT", 0)) return 801;
  flag = reinterpret_cast<const volatile std::uint32_t*>(address);
  flag_value = value;
  queued = 0;
  return 0;
}
int cuEventCreate(void** event, unsigned) {
  *event = new Event;
  return 0;
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return 0;
}
int cuEventRecord(void* event, void*) {
  static_cast<Event*>(event)->at = now;
  return 0;
}
int cuEventSynchronize(void*) { return 0; }
int cuEventElapsedTime(float* ms, void* from, void* to) {
  *ms = static_cast<float>((static_cast<Event*>(to)->at - static_cast<Event*>(from)->at) * 1e3);
  return 0;
}

// A module is the text that the mock NVRTC was given.
int cuModuleLoadData(void** module, const void* image) {
  *module = new Module{static_cast<const char*>(image), {}};
  return 0;
}
int cuModuleUnload(void* module) {
  delete static_cast<Module*>(module);
  return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  auto& [text, functions] = *static_cast<Module*>(module);
  if (text.find(std::string("void ") + name + "(") == std::string::npos) return 500;
  *function = &functions.emplace_back(
      Function{name, text.find("#define ELEMENT_fp32") != std::string::npos ? 4. : 2.});
  return 0;
}
int cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned, void*, void** parameters, void**) {
  const auto& f = *static_cast<Function*>(function);
  const auto extent = [&](int i) {
    return static_cast<double>(*static_cast<unsigned long long*>(parameters[i]));
  };
  double elements = 0;
  if (f.name.rfind("rehearse_elementwise", 0) == 0)
    elements = extent(3) * (f.name.back() == '2' ? 3 : 2);
  else
    elements = extent(2) * (f.name == "rehearse_reduction" ? extent(3) + 1 : 2 * extent(3));
  mock_cuda_run(mock::kernel(0, 1, elements * f.element, mock_cuda_held() != 0));
  return 0;
}

}  // extern "C"
