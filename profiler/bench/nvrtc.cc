#include "profiler/bench/nvrtc.h"

#include <memory>

#include <fmt/core.h>

#include "profiler/bench/bench_files.h"
#include "profiler/bench/library.h"
#include "sim/base/text.h"

namespace rehearse::bench {

std::string kernel_source(std::string_view dtype) {
  return fmt::format("#define ELEMENT_{}\n{}", dtype, bench_files::kernels_cu);
}

Result<Nvrtc> Nvrtc::open() {
  Nvrtc library;
  const Symbol symbols[] = {REHEARSE_NVRTC_FUNCTIONS(REHEARSE_SYMBOL)};
  TRY(open_library("NVRTC",
                   {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so",
                    "/usr/local/cuda/lib64/libnvrtc.so"},
                   symbols,
                   "install the CUDA toolkit, or add the folder of PyTorch's to LD_LIBRARY_PATH"));
  int major = 0, minor = 0;
  if (const int code = library.nvrtcVersion(&major, &minor); code != 0)
    return fail(fmt::format("NVRTC does not start (error {})", code));
  library.name_ = fmt::format("NVRTC {}.{}", major, minor);
  return library;
}

Result<std::vector<char>> Nvrtc::compile(const std::string& source, int major, int minor) const {
  void* raw = nullptr;
  const auto check = [&](int code, std::string_view what) -> Status {
    if (code == 0) return {};
    const char* text = nvrtcGetErrorString(code);
    return fail(fmt::format("{}: {} ({})", what, text ? text : "NVRTC error", code));
  };
  TRY(check(nvrtcCreateProgram(&raw, source.c_str(), "rehearse_bench.cu", 0, nullptr, nullptr),
            "compiling kernels"));
  const auto destroy = [&](void* program) { nvrtcDestroyProgram(&program); };
  const std::unique_ptr<void, decltype(destroy)> program(raw, destroy);
  const std::string architecture = fmt::format("--gpu-architecture=sm_{}{}", major, minor);
  const char* const options[] = {architecture.c_str(), "--std=c++17"};
  if (Status ok = check(nvrtcCompileProgram(raw, 2, options),
                        fmt::format("compiling kernels for sm_{}{}", major, minor));
      !ok) {
    std::size_t size = 0;
    if (nvrtcGetProgramLogSize(raw, &size) == 0 && size > 1) {
      std::string log(size, '\0');
      if (nvrtcGetProgramLog(raw, log.data()) == 0)
        return fail(fmt::format("{}: {}", ok.error().diagnostics.front().problem,
                                split(trim(log), '\n').front()));
    }
    return forward(ok);
  }
  std::size_t size = 0;
  TRY(check(nvrtcGetCUBINSize(raw, &size), "reading compiled kernels"));
  std::vector<char> code(size);
  TRY(check(nvrtcGetCUBIN(raw, code.data()), "reading compiled kernels"));
  return code;
}

}  // namespace rehearse::bench
