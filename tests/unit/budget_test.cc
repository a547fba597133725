// Budget files.
#include "cli/check/budget.h"

#include <catch2/catch.hpp>

namespace rehearse::cli {
namespace {

std::string error_of(const std::string& text) {
  const auto read = parse_budget(text, "b.yaml");
  return read ? "" : to_string(read.error());
}

TEST_CASE("a budget has rises, amounts and ops") {
  const auto limits = parse_budget(
      "step_time: +2%\nmemory: 76 GiB\nenergy: 900 J\ncost_per_epoch: 3 USD\nlaunch_gaps: 5 ms\n"
      "ops:\n  '*gemm*': +5 %\n",
      "b.yaml");
  REQUIRE(limits);
  REQUIRE(limits->size() == 6);
  const Limit& step = (*limits)[0];
  CHECK(describe(step) == "step_time");
  CHECK(step.rise == Approx(0.02));
  CHECK(allowed(step) == "+2 %");
  CHECK((*limits)[1].name == "launch_gaps");
  CHECK((*limits)[1].most == Approx(0.005));
  CHECK((*limits)[2].most == Approx(900));
  CHECK((*limits)[3].most == Approx(76.0 * 1073741824));
  CHECK(allowed((*limits)[3]) == "76.0 GiB");
  CHECK((*limits)[4].of == Limit::Of::kCostPerEpoch);
  CHECK((*limits)[4].most == Approx(3));
  CHECK((*limits)[5].of == Limit::Of::kOps);
  CHECK(describe((*limits)[5]) == "ops: *gemm*");
  CHECK((*limits)[5].rise == Approx(0.05));
}

TEST_CASE("rises are percents") {
  CHECK(*parse_rise("3%") == Approx(0.03));
  CHECK(*parse_rise(" +2.5 % ") == Approx(0.025));
  for (const char* wrong :
       {"3", "", "%", "x%", "3%%", "-3%", "0%", "nan%", "inf%", "1001%", "3 ms"})
    CHECK_FALSE(parse_rise(wrong));
  CHECK(to_string(parse_rise("3").error()).find("'3' has no unit") != std::string::npos);
  CHECK(to_string(parse_rise("-3%").error()).find("'-3%' is out of range") != std::string::npos);
}

TEST_CASE("an error in a budget has its place and a remedy") {
  CHECK(error_of("step_tme: +2%\n").find("b.yaml:1") != std::string::npos);
  CHECK(error_of("step_tme: +2%\n").find("did you mean 'step_time'?") != std::string::npos);
  CHECK(error_of("step_time: 3\n").find("+2% or 450 ms") != std::string::npos);
  CHECK(error_of("step_time: -2%\n").find("out of range") != std::string::npos);
  CHECK(error_of("memory: 76\n").find("+1% or 76 GiB") != std::string::npos);
  CHECK(error_of("memory: 3 ms\n").find("memory") != std::string::npos);
  CHECK(error_of("memory: -1 GiB\n").find("allows nothing") != std::string::npos);
  CHECK(error_of("cost_per_step: +3%\n").find("step_time: +3%") != std::string::npos);
  CHECK(error_of("ops:\n  gemm: 5\n").find("'5' has no unit") != std::string::npos);
  CHECK(error_of("- a\n").find("b.yaml") != std::string::npos);
  // All at once.
  const std::string both = error_of("step_time: 3\nmemory: 4\n");
  CHECK(both.find("step_time") != std::string::npos);
  CHECK(both.find("memory") != std::string::npos);
}

TEST_CASE("an empty budget limits nothing of its own") {
  const auto limits = parse_budget("{}\n", "b.yaml");
  REQUIRE(limits);
  CHECK(limits->empty());
}

}  // namespace
}  // namespace rehearse::cli
