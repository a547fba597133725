#include "profiler/bench/cuda.h"

#include <fmt/core.h>

#include "profiler/bench/library.h"

namespace rehearse::bench {
namespace {

constexpr std::string_view kRemedy =
    "a machine with an NVIDIA GPU and its driver; run rehearse doctor to see what is missing";
constexpr std::string_view kMemoryKey = "memory";

}  // namespace

Result<Cuda> Cuda::open() {
  Cuda library;
  const Symbol symbols[] = {
      REHEARSE_CUDA_FUNCTIONS(REHEARSE_SYMBOL){
          "cuStreamWaitValue32_v2", reinterpret_cast<void**>(&library.cuStreamWaitValue32),
          "cuStreamWaitValue32", true},
  };
  TRY(open_library("NVIDIA driver", {"libcuda.so.1"}, symbols, kRemedy));
  const auto refuse = [&](int code, std::string_view what) {
    Error error = library.check(code, what).error();
    error.diagnostics.front().expected = kRemedy;
    return tl::unexpected(std::move(error));
  };
  if (const int code = library.cuDriverGetVersion(&library.version_); code != 0)
    return refuse(code, "the NVIDIA driver does not report its version");
  if (const int code = library.cuInit(0); code == kCudaNoDevice)
    return fail("the NVIDIA driver sees no GPU", std::string(kRemedy),
                "CUDA_VISIBLE_DEVICES may hide it");
  else if (code != 0)
    return refuse(code, "the NVIDIA driver does not start");
  if (const int code = library.cuDeviceGetCount(&library.devices_); code != 0)
    return refuse(code, "the NVIDIA driver does not count its GPUs");
  if (library.devices_ == 0)
    return fail("the NVIDIA driver sees no GPU", std::string(kRemedy),
                "CUDA_VISIBLE_DEVICES may hide it");
  return library;
}

Status Cuda::check(int code, std::string_view what) const {
  if (code == 0) return {};
  const char* name = nullptr;
  if (!cuGetErrorName || cuGetErrorName(code, &name) != 0 || !name) name = "an unknown error";
  const std::string problem = fmt::format("{}: {} ({})", what, name, code);
  if (code == kCudaOutOfMemory) return fail_for_memory(problem);
  return fail(problem);
}

bool lacks_memory(const Error& error) {
  return !error.diagnostics.empty() && error.diagnostics.front().key == kMemoryKey;
}

tl::unexpected<Error> fail_for_memory(std::string problem) {
  return fail(Diagnostic{.key = std::string(kMemoryKey), .problem = std::move(problem)});
}

}  // namespace rehearse::bench
