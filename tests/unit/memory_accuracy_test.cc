// Errors of the memory model on published tables. Bounds are slightly above docs/accuracy.md.
#include "tests/validation/studies/memory_accuracy.h"

#include <cmath>
#include <fstream>

#include <catch2/catch.hpp>

#include "tests/support/data.h"
#include "tests/validation/studies/galvatron.h"

namespace rehearse::cli {
namespace {

double mean_error(const MemoryAccuracy& accuracy, const std::string& name) {
  for (const MemoryCase& c : accuracy.cases) {
    if (c.name != name) continue;
    double sum = 0;
    for (const MemoryRow& r : c.rows) sum += std::abs(r.error());
    return sum / static_cast<double>(c.rows.size());
  }
  FAIL("no case " << name);
  return 1;
}

TEST_CASE("memory of published jobs") {
  const auto data = test::shared_data(".");
  SKIP_WITHOUT_DATA(data);
  const Result<MemoryAccuracy> found = measure_memory_accuracy(*data);
  if (!found) FAIL(to_string(found.error()));
  CHECK(mean_error(*found, "megatron states") < 0.001);
  CHECK(mean_error(*found, "megatron activations") < 0.001);
  CHECK(mean_error(*found, "megatron activation shares") < 0.004);
  CHECK(mean_error(*found, "galvatron known, states") < 0.02);
  CHECK(mean_error(*found, "galvatron known, activations") < 0.03);
  CHECK(mean_error(*found, "galvatron known, peak") < 0.06);
  CHECK(mean_error(*found, "galvatron bert, peak") < 0.10);
  CHECK(mean_error(*found, "torchtitan") < 0.04);
  CHECK(mean_error(*found, "torchtitan, pipeline") < 0.12);
  for (const FitCheck& f : found->fits) {
    INFO(f.name);
    if (f.name != "sc21-table2") CHECK(f.wrong.empty());
    if (f.name == "mpt") CHECK(f.rows == 125);
    if (f.name == "vtrain-multi") CHECK(f.rows == 71);
  }
}

TEST_CASE("a folder without tables gives no cases") {
  const Result<MemoryAccuracy> found = measure_memory_accuracy(test::scratch_folder());
  REQUIRE(found);
  CHECK(found->cases.empty());
  CHECK(found->fits.empty());
  CHECK_FALSE(measure_memory_accuracy(test::scratch_folder() / "absent"));
}

TEST_CASE("a profile of Galvatron by its name and its keys") {
  const auto path =
      test::scratch_folder() / "llama_fa__memory_profiling_bf16_hidden4096_head32_seqlen2048.json";
  std::ofstream(path) << R"({"2_4_1_c_vtp_sp": {"layernum[2]_bsz8_rank0_ms": 10,
    "layernum[2]_bsz8_rank0_act": 20, "layernum[2]_bsz8_rank0_act_peak": 30,
    "layernum[2]_bsz8_rank7_ms": 10, "layernum[2]_bsz8_rank7_act": 20}, "other": 3})";
  std::vector<std::string> left_out;
  const auto profile = read_galvatron(path, left_out);
  REQUIRE(profile);
  CHECK(profile->model.feed_forward == 11008);
  CHECK(profile->model.vocabulary == 32000);
  REQUIRE(profile->rows.size() == 1);  // the other rank has no peak
  const GalvatronRow& row = profile->rows[0];
  CHECK(row.pipeline == 2);
  CHECK(row.tensor == 4);
  CHECK(row.data == 1);
  CHECK(row.recompute);
  CHECK(row.vocabulary_parallel);
  CHECK(row.sequence_parallel);
  CHECK(row.first);
  CHECK_FALSE(row.last);
  CHECK(row.sequence == 2048);
  CHECK(row.states == Bytes::mib(10));
  CHECK(row.peak == Bytes::mib(40));
  // Llama, hidden 4096: 37.5 bytes an element of the hidden state in a block, and log-sum-exps.
  const auto block = galvatron_block(*profile, 2048, 1, false);
  REQUIRE(block);
  CHECK(block->saved_bytes().b() == Approx(37.5 * 2048 * 4096).epsilon(0.001));
}

TEST_CASE("profiles that cannot be read") {
  std::vector<std::string> left_out;
  const auto path = test::scratch_folder() / "memory_profiling_bf16_swin-huge.json";
  std::ofstream(path) << "{}";
  REQUIRE(read_galvatron(path, left_out));
  REQUIRE(left_out.size() == 1);
  CHECK(left_out[0] == "memory_profiling_bf16_swin-huge: a model of unknown shape");
  std::ofstream(path) << "[1";
  const auto broken = read_galvatron(path, left_out);
  REQUIRE_FALSE(broken);
  CHECK(to_string(broken.error()) == path.string() + ": is not a JSON object");
}

}  // namespace
}  // namespace rehearse::cli
