// Captures with records of every table, cut and with bits flipped anywhere.
#include <random>

#include <catch2/catch.hpp>

#include "tests/fuzz/readers.h"
#include "tests/support/capture_builder.h"
#include "tests/support/capture_reading.h"
#include "tests/support/capture_run.h"
#include "tests/support/synthetic_job.h"

// Records are given by the fields that a case is about.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace rehearse::ingest {
namespace {

using namespace trace;
using namespace capture;
using test::CaptureBuilder;
using test::kBase;
using test::problems;
using test::read;

/// A small job, and one of every table that it has no record of.
std::string every_table() {
  const std::string job = test::as_capture(test::make_job({.steps = 1, .layers = 2}));
  CaptureBuilder rest;
  rest.text(901, "cupti.dropped").text(902, "3").text(903, "GPU");
  rest.records<GraphLaunchRecord>(1, {{.start = 1, .end = 2, .context = 1, .correlation = 1}})
      .records<MemoryRecord>(1, {{.time = kBase, .address = 1, .bytes = 8, .operation = 1}})
      .records<JitRecord>(1, {{.start = kBase, .end = kBase + 5}})
      .records<OverheadRecord>(1, {{.start = kBase, .end = kBase + 5, .kind = 65536}})
      .records<DeviceRecord>(1, {{.name = 903, .multiprocessors = 1, .gpu_instance = 1}})
      .records<ContextRecord>(1, {{.context = 1}})
      .records<FactRecord>(1, {{901, 902}});
  const std::size_t trailer = sizeof(BlockHeader) + 4;
  return job.substr(0, job.size() - trailer) + rest.bytes().substr(sizeof(FileHeader)) +
         job.substr(job.size() - trailer);
}

TEST_CASE("records survive any truncation and any flipped bit") {
  const std::string whole = every_table();
  const auto all = read(whole);
  REQUIRE(all->rank().gpu_ops.size() > 10);
  // What was sound before the damage is there: the rows of a prefix are a prefix of the rows.
  std::size_t last = 0;
  for (std::size_t cut = 16; cut < whole.size(); cut += 37) {
    const auto file = read(whole.substr(0, cut));
    REQUIRE(file->rank().gpu_ops.size() >= last);
    last = file->rank().gpu_ops.size();
    CHECK(problems(file->trace, ProblemKind::kTruncated) == 1);
  }
  CHECK(last == all->rank().gpu_ops.size());
  std::mt19937_64 random(1);
  for (int i = 0; i < 1500; ++i) {
    std::string bytes = whole;
    for (std::uint64_t flips = 1 + random() % 4; flips > 0; --flips)
      bytes[random() % bytes.size()] ^= static_cast<char>(1U << random() % 8);
    // With checksums as they are, and put right again, so that the damage gets through.
    fuzz::capture_file(std::string(1, static_cast<char>(i % 2)) + bytes);
  }
}

}  // namespace
}  // namespace rehearse::ingest
