// whatif with ranks and networks that the recording did not have.
#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;
using test::Ran;

constexpr char kGradients[] = "examples/recordings/two_gradients.json";

Json whatif(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "whatif");
  return test::json_of(std::move(arguments));
}

// docs/concepts/data-parallel.md derives the number.
TEST_CASE("data-parallel: the second all-reduce cannot hide") {
  const Json json =
      whatif({kGradients, "--data-parallel", "2", "--network", "latency=10us,rate=100GB/s"});
  const Json& step = json["step_time"];
  CHECK(step["value"].get<double>() == Approx(1350.325e-6));
  // Without a loss of kernels next to the sums 1338 us, and with 2.6 times as much 1367.
  CHECK(step["low"].get<double>() < 1338e-6);
  CHECK(step["high"].get<double>() > 1367e-6);
  CHECK(json["breakdown"]["exposed_communication"]["value"].get<double>() == Approx(321e-6));
  CHECK(json["notes"].size() == 1);
}

TEST_CASE("data-parallel: one rank is the recording, a faster network never hurts") {
  const auto step = [](const char* ranks, const std::string& network) {
    return whatif(
               {kGradients, "--data-parallel", ranks, "--network", network})["step_time"]["value"]
        .get<double>();
  };
  CHECK(step("1", "latency=10us,rate=100GB/s") == Approx(1e-3));
  double before = 1;
  for (const int rate : {1, 10, 100, 1000}) {
    const double now = step("4", fmt::format("latency=10us,rate={}GB/s", rate));
    CHECK(now <= before);
    before = now;
  }
}

TEST_CASE("a link may come from a file") {
  const std::string file =
      test::write_scratch("link.yaml", "link: {latency: 10 us, rate: 100 GB/s}\n").string();
  const Json json = whatif({kGradients, "--data-parallel", "2", "--network", file});
  CHECK(json["step_time"]["value"].get<double>() == Approx(1350.325e-6));
}

TEST_CASE("a recording that cannot be parallelised is one line") {
  const std::string link = "latency=10us,rate=100GB/s";
  test::check_failed(
      test::rehearse({"whatif", test::kExample, "--data-parallel", "2", "--network", link}), 1,
      "contains no gradients");
  test::check_failed(test::rehearse({"whatif", test::kExample, "--network", link}), 1,
                     "no collectives");
  test::check_failed(test::rehearse({"whatif", kGradients, "--data-parallel", "2"}), 2,
                     "--network");
  test::check_failed(
      test::rehearse({"whatif", kGradients, "--data-parallel", "0", "--network", link}), 2,
      "--data-parallel");
  test::check_failed(test::rehearse({"whatif", kGradients, "--network", "latency=10us"}), 2,
                     "rate");
  test::check_failed(test::rehearse({"whatif", kGradients, "--network", "no_such_file"}), 1,
                     "no_such_file: cannot be read");
}

TEST_CASE("all errors of a link file are reported, with their lines") {
  const std::string file =
      test::write_scratch("link.yaml", "link:\n  latncy: 10 us\n  rate: 100\n").string();
  const Ran ran = test::rehearse({"whatif", kGradients, "--network", file});
  CHECK(ran.code == 1);
  CHECK(ran.out.empty());
  for (const char* says :
       {":2:3: link.latncy: unknown key; did you mean 'latency'?", ":3:9: link.rate:"}) {
    INFO(ran.errors);
    CHECK(ran.errors.find(file + says) != std::string::npos);
  }
}

}  // namespace
}  // namespace rehearse
