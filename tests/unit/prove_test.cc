// prove: the medians of rounds, what they say, and the files of pairs.
#include <catch2/catch.hpp>

#include "cli/proving/proof.h"
#include "sim/base/statistics.h"
#include "tests/support/data.h"
#include "tests/support/rehearse.h"

namespace rehearse::cli {
namespace {

Round round_of(double predicted_ms, double baseline_ms, double candidate_ms) {
  return {.recorded = Seconds::ms(baseline_ms * 1.1),
          .predicted = {Seconds::ms(predicted_ms), Seconds::ms(predicted_ms - 1),
                        Seconds::ms(predicted_ms + 1), Provenance::kExtrapolated},
          .baseline = Seconds::ms(baseline_ms),
          .candidate = Seconds::ms(candidate_ms)};
}

TEST_CASE("the interval of a median takes the samples that miss it with at most 10 %") {
  // P(no head of 4 coins) = 1/16: the ends miss with 1/8. Of 5: 2/32. Of 8: 2 x 9/256 = 7.0 %.
  CHECK_FALSE(median_interval(0));
  CHECK_FALSE(median_interval(4));
  CHECK(median_interval(5) == std::pair<std::size_t, std::size_t>(0, 4));
  CHECK(median_interval(7) == std::pair<std::size_t, std::size_t>(0, 6));
  CHECK(median_interval(8) == std::pair<std::size_t, std::size_t>(1, 6));
  CHECK(median_interval(1000)->first > 470);
}

TEST_CASE("a proof has the medians of its rounds, and knows how well it knows them") {
  std::vector<Round> rounds = {round_of(8, 10, 7.9), round_of(8.4, 10.2, 8.0),
                               round_of(8.2, 9.9, 8.1), round_of(8.2, 10, 8.2)};
  CHECK_FALSE(proof_of(rounds).precision);
  CHECK_FALSE(proof_of(rounds).right_direction());
  rounds.push_back(round_of(8.3, 10.1, 20));  // one slow run moves no median far
  const Proof proof = proof_of(rounds);
  CHECK(proof.baseline.value.ms() == Approx(10));
  CHECK(proof.candidate.value.ms() == Approx(8.1));
  CHECK(proof.predicted.value.ms() == Approx(8.2));
  CHECK(proof.predicted.low.ms() == Approx(7.2));
  CHECK(proof.error() == Approx(8.2 / 8.1 - 1));
  CHECK(proof.inside());
  CHECK(*proof.recording_cost == Approx(0.1));
  CHECK(*proof.precision == Approx((20 - 7.9) / 2 / 8.1));
  CHECK_FALSE(proof.right_direction());  // 7.9 to 20 overlaps 9.9 to 10.2
}

TEST_CASE("directions count where the measured change is above the noise") {
  std::vector<Round> faster(5, round_of(8, 10, 7)), slower(5, round_of(8, 10, 11));
  CHECK(proof_of(faster).right_direction() == true);
  CHECK(proof_of(slower).right_direction() == false);
  CHECK(*proof_of(faster).precision == 0);
  faster[0].candidate = Seconds::ms(12);
  CHECK_FALSE(proof_of(faster).right_direction());
}

Pair pair_with(const std::string& step) {
  const Result<Pair> pair = read_pair(test::write_scratch(
      "pair.yaml", "baseline: a\ncandidate: b\npredict: whatif recording\nstep: '" + step + "'\n"));
  REQUIRE(pair);
  return *pair;
}

TEST_CASE("a step is the last time that the output states") {
  const Pair pair = pair_with("step (.*)");
  CHECK(stated_step(pair, "step 4 ms\nstep 2.5 us\n")->us() == 2.5);
  for (const char* wrong : {"", "done", "step 4", "step fast", "step 0 ms", "step -1 ms"})
    CHECK_FALSE(stated_step(pair, wrong));
}

TEST_CASE("shipped pairs can be read, and predict by what-if or a job") {
  const std::string folders[] = {test::source_file("examples/pairs").string()};
  const auto files = find_pairs(folders);
  REQUIRE(files);
  CHECK(files->size() >= 12);
  for (const std::filesystem::path& file : *files) {
    const Result<Pair> pair = read_pair(file);
    INFO(file.string() << (pair ? "" : to_string(pair.error())));
    REQUIRE(pair);
    CHECK_FALSE(pair->about.empty());
    const bool by_edit = pair->predict.starts_with("whatif recording ");
    CHECK((by_edit || pair->predict.starts_with("simulate ")));
  }
}

TEST_CASE("a step with a number that regular expressions cannot count to is refused") {
  for (const char* step : {R"(step (.*)\34444444444444444444)", "step (.*) x{99999}"}) {
    INFO(step);
    const Result<Pair> pair = read_pair(test::write_scratch(
        "pair.yaml", std::string("baseline: a\ncandidate: b\npredict: whatif recording\nstep: '") +
                         step + "'\n"));
    REQUIRE_FALSE(pair);
    CHECK(to_string(pair.error()).find(":4:7: step: has a number of more than four digits") !=
          std::string::npos);
  }
  CHECK(pair_with("step (.*) x{9}").step.mark_count() == 1);
}

TEST_CASE("errors of a pair name their lines") {
  const auto path = test::write_scratch(
      "pair.yaml",
      "baseline: a\npredict: whatif recording\nstep: step .*\nlimit: 0 s\nlimits: x\n");
  const Result<Pair> pair = read_pair(path);
  REQUIRE_FALSE(pair);
  const std::string text = to_string(pair.error());
  for (const char* part : {"candidate", ":3:7: step: 'step .*' has 0 groups", ":4:", ":5:"}) {
    INFO(text << "\nlacks " << part);
    CHECK(text.find(part) != std::string::npos);
  }
}

}  // namespace
}  // namespace rehearse::cli
