// The capture library goes into programs of any kind: what it needs of them, and of a build
// machine.
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include <catch2/catch.hpp>

#include "tests/support/capture_run.h"
#include "tests/support/data.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

/// The output of a command, both streams; its status in `status`.
std::string output_of(const std::string& command, int& status) {
  std::string output;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> part;
  while (const std::size_t n = std::fread(part.data(), 1, part.size(), pipe))
    output.append(part.data(), n);
  status = ::pclose(pipe);
  return output;
}

/// The values of one kind of entry in a library's dynamic section.
std::string dynamic_entries(const fs::path& library, const std::string& kind) {
  int status = 0;
  const std::string all = output_of("readelf -dW '" + library.string() + "'", status);
  REQUIRE(status == 0);
  std::string found;
  for (std::size_t at = all.find("(" + kind + ")"); at != std::string::npos;
       at = all.find("(" + kind + ")", at)) {
    const std::size_t end = all.find('\n', at);
    const std::size_t begin = all.find_first_not_of(' ', at + kind.size() + 2);
    found += all.substr(begin, end - begin) + "\n";
    at = end;
  }
  return found;
}

void check_library(const fs::path& library) {
  CHECK(dynamic_entries(library, "NEEDED") == "Shared library: [libc.so.6]\n");
  CHECK(dynamic_entries(library, "FLAGS_1").find("NODELETE") != std::string::npos);
  int status = 0;
  std::string names;
  const std::string symbols = output_of("nm -D --defined-only '" + library.string() + "'", status);
  for (std::size_t at = 0; at < symbols.size(); at = symbols.find('\n', at) + 1)
    names += symbols.substr(at + 19, symbols.find('\n', at) - at - 19) + "\n";
  CHECK(names ==
        "InitializeInjection\n"
        "InitializeInjectionNvtx2\n"
        "InitializeInjectionNvtxExtension\n"
        "ncclProfiler_v3\n"
        "ncclProfiler_v4\n"
        "ncclProfiler_v5\n"
        "ncclProfiler_v6\n"
        "rehearse_capture_ns_per_range\n"
        "rehearse_capture_pop\n"
        "rehearse_capture_push\n");
}

TEST_CASE("the capture library needs only libc and exports only its entry points") {
  check_library(test::capture_library());
}

TEST_CASE("the capture library builds alone, without the CUDA toolkit") {
  const fs::path build = test::scratch_folder();
  int status = 0;
  const std::string output = output_of(
      "cmake -S '" + test::source_file("profiler/capture").string() + "' -B '" + build.string() +
          "' -DCMAKE_BUILD_TYPE=Debug -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON && "
          "cmake --build '" +
          build.string() + "' --parallel 2",
      status);
  INFO(output);
  REQUIRE(status == 0);
  CHECK(output.find("warning") == std::string::npos);
  check_library(build / "librehearse_capture.so");
}

}  // namespace
}  // namespace rehearse
