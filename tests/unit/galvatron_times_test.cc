// Galvatron's computation profiles: runs of two depths to times of a layer, and runs that are none.
#include "tests/validation/studies/galvatron_times.h"

#include <fstream>

#include <catch2/catch.hpp>

#include "tests/support/data.h"

namespace rehearse::cli {
namespace {

Result<GalvatronTimes> times_in(const std::string& name, const std::string& text,
                                std::vector<std::string>& left_out) {
  const auto path = test::scratch_folder() / name;
  std::ofstream(path) << text;
  return read_galvatron_times(path, left_out);
}

constexpr char kGpt[] = "gpt_hf__computation_profiling_bf16_hidden4096_head32_seqlen2048.json";

TEST_CASE("the difference of two depths is the time of a layer") {
  std::vector<std::string> left_out;
  const auto times =
      times_in(kGpt, R"({"layernum[2]_bsz4": 57, "layernum[4]_bsz4": 91, "layernum[4]_bsz5": 100,
                "layertype_0_bsz4": 3.1, "layernum[2]_bsz8_seq1024": 60,
                "layernum[4]_bsz8_seq1024": 100, "layernum[3]_bsz4": 70})",
               left_out);
  REQUIRE(times);
  CHECK(left_out.empty());
  REQUIRE(times->layers.size() == 2);  // without its other depth, batch 5 says nothing
  CHECK(times->layers[0].sequence == 1024);
  CHECK(times->layers[0].time.ms() == Approx(20));
  CHECK(times->layers[1].sequence == 2048);
  CHECK(times->layers[1].batch == 4);
  CHECK(times->layers[1].fewer == 2);
  CHECK(times->layers[1].more == 4);
  CHECK(times->layers[1].time.ms() == Approx(17));
  CHECK(times->model.model.feed_forward == 16384);
  CHECK(galvatron_unfused(times->model));
}

TEST_CASE("runs with other work are omitted by name") {
  std::vector<std::string> left_out;
  const auto times =
      times_in(kGpt, R"({"layernum[2]_bsz1": 30, "layernum[2]_bsz2": 20, "layernum[2]_bsz4": 40,
                "layernum[4]_bsz1": 17, "layernum[4]_bsz2": 34, "layernum[4]_bsz4": 39})",
               left_out);
  REQUIRE(times);
  REQUIRE(times->layers.size() == 1);
  CHECK(times->layers[0].batch == 2);
  CHECK(times->layers[0].time.ms() == Approx(7));
  const std::string file = std::string(kGpt).substr(0, std::string(kGpt).size() - 5);
  CHECK(left_out ==
        std::vector<std::string>{
            file + " layernum[2]_bsz1: 30.0 ms a sample, against 10.0 ms in batches of 4",
            file + " bsz4: 4 layers take no longer than 2"});
}

TEST_CASE("errors in profiles of times") {
  std::vector<std::string> left_out;
  const auto unknown = times_in("swin__computation_profiling_bf16_swin-huge.json", "{}", left_out);
  REQUIRE(unknown);
  CHECK(unknown->layers.empty());
  REQUIRE(left_out.size() == 1);
  CHECK(left_out[0] == "swin__computation_profiling_bf16_swin-huge: a model of unknown shape");
  const auto broken = times_in(kGpt, "[1", left_out);
  REQUIRE_FALSE(broken);
  CHECK(to_string(broken.error()).ends_with(std::string(kGpt) + ": is not a JSON object"));
  const auto other = times_in("memory_profiling_bf16_llama2-7b.json", "{}", left_out);
  REQUIRE_FALSE(other);
  CHECK(to_string(other.error())
            .ends_with(": is named like no computation profile; "
                       "[family__]computation_profiling_DTYPE_MODEL.json"));
}

TEST_CASE("a layer of Galvatron begins with the cast of its parameters") {
  std::vector<std::string> left_out;
  const auto times = times_in(kGpt, "{}", left_out);
  REQUIRE(times);
  const auto ops = galvatron_forward(times->model, 2, 512);
  REQUIRE(ops);
  // 12 h² parameters, biases and norms, read in 4 bytes and written in 2.
  CHECK(ops->front().bytes.b() == Approx(6 * 12. * 4096 * 4096).epsilon(0.002));
  double flops = 0;
  for (const workload::Op& op : *ops) flops += workload::flops_of(op).flop();
  // Products, and attention to all keys, of 2 samples.
  CHECK(flops == Approx(2 * (24. * 512 * 4096 * 4096 + 4. * 512 * 512 * 4096)));
}

}  // namespace
}  // namespace rehearse::cli
