#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <catch2/catch.hpp>

#include "profiler/ingest/input.h"
#include "tests/bench/peak_memory.h"
#include "tests/bench/synthetic_kineto.h"
#include "tests/support/data.h"

namespace rehearse::ingest {
namespace {

namespace fs = std::filesystem;

#ifndef __SANITIZE_ADDRESS__  // which keeps what is freed
fs::path trace_of(std::uint64_t bytes) {
  const fs::path path = test::scratch_folder() / "trace.json";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"),
                                                             &std::fclose);
  REQUIRE(file);
  bench::write_kineto(file.get(), bytes);
  return path;
}

TEST_CASE("the memory of an import hardly grows with the file") {
  const auto peak_of = [](std::uint64_t bytes) {
    const fs::path trace = trace_of(bytes);
    return bench::peak_memory([&] {
      const auto summary = import_inputs(std::array{trace}, trace.parent_path() / "x.rehearse", {});
      REQUIRE(summary);
    });
  };
  const auto small = peak_of(20'000'000);
  const auto large = peak_of(160'000'000);
  if (!small || !large) {
    WARN("skipped: the system does not tell the peak of memory");
    return;
  }
  INFO(*small << " and " << *large << " bytes");
  // SQLite's cache of pages grows up to 16 MiB, and the small store does not fill it. The rows
  // would be 27 MB.
  CHECK(*large < *small + 18'000'000);
}
#endif

}  // namespace
}  // namespace rehearse::ingest
