// Whole jobs from a few measured steps, if the tables are next to the source tree. The limits are
// what docs/accuracy.md shows, and a little more.
#include "tests/validation/studies/throughput/throughput_accuracy.h"

#include <cmath>
#include <map>

#include <catch2/catch.hpp>

#include "tests/support/data.h"

namespace rehearse::cli {
namespace {

struct Sum {
  double error = 0, rows = 0, covered = 0;
};

TEST_CASE("whole jobs from a few measured steps") {
  const auto data = test::shared_data(".");
  SKIP_WITHOUT_DATA(data);
  const Result<ThroughputAccuracy> accuracy = measure_throughput_accuracy(*data);
  if (!accuracy) FAIL(to_string(accuracy.error()));
  std::map<std::string, Sum> suites;
  std::map<std::string, std::size_t> fitted;
  for (const ThroughputCase& c : accuracy->cases) {
    fitted[c.suite] += c.fitted;
    Sum& sum = suites[c.suite];
    for (const ThroughputRow& r : c.rows) {
      INFO(r.name);
      CHECK(std::isfinite(r.error));
      CHECK(r.error > -1);
      sum.error += std::abs(r.error);
      sum.covered += r.covered;
      ++sum.rows;
    }
  }
  const auto check = [&](const std::string& suite, double rows, double most) {
    INFO(suite);
    CHECK(suites[suite].rows == rows);
    CHECK(suites[suite].error / suites[suite].rows < most);
  };
  check("pollux, a few steps of the job", 10293, 0.12);
  check("pollux, one device and links of other jobs", 10327, 0.13);
  check("gavel, other batches", 15, 0.14);
  check("gavel, other batches of as many workers", 147, 0.12);
  check("lambda fp16, left out", 64, 0.12);
  check("lambda fp32, left out", 64, 0.10);
  check("lambda fp16, from one GPU", 384, 0.18);
  check("lambda fp32, from one GPU", 384, 0.16);
  for (const char* suite : {"pollux, a few steps of the job", "lambda fp16, left out"})
    CHECK(suites[suite].covered / suites[suite].rows > 0.9);
  // Six steps of a job at most: three alone, and one of each kind of links.
  CHECK(fitted["pollux, a few steps of the job"] <= 6 * 14);
  CHECK(fitted["lambda fp16, left out"] == 0);
  // The shipped shares are those of the rows.
  REQUIRE(accuracy->shares);
  const compute::TimeShares shipped;
  CHECK(accuracy->shares->arithmetic == Approx(shipped.arithmetic).margin(0.001));
  CHECK(accuracy->shares->memory == Approx(shipped.memory).margin(0.001));
  CHECK(accuracy->shares->issue == Approx(shipped.issue).margin(0.001));
}

TEST_CASE("a folder without such tables gives no suites") {
  const Result<ThroughputAccuracy> accuracy = measure_throughput_accuracy(test::scratch_folder());
  REQUIRE(accuracy);
  CHECK(accuracy->cases.empty());
}

}  // namespace
}  // namespace rehearse::cli
