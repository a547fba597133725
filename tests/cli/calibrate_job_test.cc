// calibrate job: measured steps correct the parts of a step that they consist of.
#include <cmath>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/one_node_job.h"

namespace rehearse::one_node {
namespace {

Ran calibrate(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"calibrate", "job"});
  return test::rehearse(std::move(arguments));
}

/// With a microbatch whose kernels take longer than its launches, so that its step shows how fast
/// computing is.
std::string kernel_bound(const std::string& plan = "data: 8") {
  return replaced(job("", plan), "microbatch: 2", "microbatch: 8");
}

// A single step differs from what its plans have in common by 8 % below and 12 % above, so about
// half of 20 % becomes factors.
TEST_CASE("a measured step corrects the part that it consists of, and simulate then predicts it") {
  const double before = value(step_json(kernel_bound())["step_time"]);
  const double measured = before * 1.2;
  const std::string path = job_file(kernel_bound());
  const auto file = std::filesystem::path(path).parent_path() / "mine.yaml";
  const Json json = test::document(calibrate({path, "--measured", fmt::format("{:.6f}s", measured),
                                              "-o", file.string(), "--format", "json"}));
  for (const char* key : {"rows", "residual", "envelope", "scale", "jobs[].measured.value",
                          "factors[].part", "factors[].factor", "factors[].before_low"})
    test::check_has(json, key);
  CHECK(json["rows"] == 1);
  CHECK(json["residual"] < 0.1);
  CHECK(json["scale"] > 1.01);
  CHECK(json["scale"] < 1.2);
  CHECK(json["warnings"].empty());
  CHECK(json["methods"][0]["name"] == "message");
  // The host of this step is hidden by its kernels, and there is no network.
  CHECK(json["factors"][2]["factor"] == 1);

  std::ofstream(path, std::ios::app) << "calibration: mine.yaml\n";
  const Json after = test::json_of({"simulate", path});
  const Json& step = after["step_time"];
  CHECK(value(step) > 1.08 * before);
  CHECK(value(step) < measured);
  CHECK(step["high"].get<double>() > measured);
  CHECK(value(step) == Approx(json["jobs"][0]["predicted_s"].get<double>()).epsilon(1e-3));
  CHECK(after["conditions"]["source"] == "calibrated: mine.yaml");
  CHECK(step["low"].get<double>() > 0.78 * measured);
  CHECK(step["high"].get<double>() < 1.32 * measured);
}

TEST_CASE("measured steps of several jobs, and impossible steps") {
  const std::string split = kernel_bound("data: 4, tensor: 2");
  const std::string one = job_file(kernel_bound()), other = job_file(split);
  const double first = value(step_json(kernel_bound())["step_time"]),
               second = value(step_json(split)["step_time"]);
  const Json json = test::document(
      calibrate({one, "--measured", fmt::format("{:.6f}s", first * 1.1), "--measured",
                 fmt::format("{}={:.6f}s", other, second * 1.2), "--format", "json"}));
  CHECK(json["rows"] == 2);
  CHECK(json["residual"] > 0.005);
  CHECK(json["residual"] < 0.08);

  test::check_failed(calibrate({one, "--measured", "1 ms"}), 1,
                     "measured 1.00 ms is implausible: its FLOPs take ");
  test::check_failed(calibrate({one, "--measured", "1000 s"}), 1,
                     "is implausible: with the largest factors on all its parts (computing 3) it ");
  test::check_failed(calibrate({one, "--measured", "2"}), 1,
                     "rehearse: --measured: '2' has no unit; one of ");
  const Ran usage = calibrate({"--measured", "2 s"});
  CHECK(usage.code == 2);
  CHECK(usage.errors.find("JOB, which is missing") != std::string::npos);
}

TEST_CASE("a step that launches determine corrects the host, and other plans keep computing") {
  const std::string path = job_file(job());
  const Json step = step_json(job());
  const double before = value(step["step_time"]), launches = step["host"]["share"];
  REQUIRE(launches > 0.5);
  const auto file = std::filesystem::path(path).parent_path() / "host.yaml";
  for (const double times : {0.8, 1.2}) {
    const Json json =
        test::document(calibrate({path, "--measured", fmt::format("{:.6f}s", before * times), "-o",
                                  file.string(), "--format", "json"}));
    const auto part = [&](std::size_t i) { return json["factors"][i]["factor"].get<double>(); };
    CHECK((part(1) > 1) == (times > 1));
    CHECK(std::abs(std::log(part(1))) > 2 * std::abs(std::log(part(0))));
    CHECK(json["residual"] < 0.06);
    CHECK_FALSE(json["next"].empty());
  }
  // A plan of kernels is known no better, and one of launches is.
  const auto width = [](const Json& of) {
    const Json& time = of["step_time"];
    return time["high"].get<double>() / value(time) - 1;
  };
  const std::string with = fmt::format("calibration: {}\n", file.string());
  CHECK(width(step_json(job() + with)) < 0.8 * width(step));
  // Computing is known to 25 % above its value before.
  CHECK(width(step_json(kernel_bound() + with)) > 0.95 * 0.25);
}

TEST_CASE("steps at three batches show the time of a step besides computing") {
  const auto at = [](int batch, const std::string& sustained) {
    return fmt::format(
        "workload: {{model: gpt2_medium}}\ntraining: {{global_batch: {}, microbatch: {}}}\n"
        "plan: {{data: 8}}\n{}{}",
        8 * batch, batch, kOneNode, sustained);
  };
  std::vector<std::string> arguments = {"--format", "json"};
  for (const int batch : {4, 16, 32}) {
    const double measured =
        value(step_json(at(batch, "sustained: {scale: 0.9, fixed: 300 ms}\n"))["step_time"]);
    arguments.insert(arguments.end(),
                     {"--measured", fmt::format("{}={:.6f}s", job_file(at(batch, "")), measured)});
  }
  const Json json = test::document(calibrate(arguments));
  // Priors and the error of each step leave them between 1 and the truth.
  CHECK(json["scale"] < 1.01);
  CHECK(json["fixed_s"] == Approx(0.3).epsilon(0.3));
  CHECK(json["residual"] < 0.05);
  // As a file, and in words.
  arguments.erase(arguments.begin(), arguments.begin() + 2);
  const Ran text = calibrate(arguments);
  REQUIRE(text.code == 0);
  CHECK(text.out.find("factors on the parts of a step from 3 measured steps, residual ") !=
        std::string::npos);
  CHECK(text.out.find("\n  fixed: 0.") != std::string::npos);
}

TEST_CASE("calibrations without factors are still read, and wrong ones are refused") {
  const std::string path = job_file(kernel_bound());
  const auto folder = std::filesystem::path(path).parent_path();
  std::ofstream(folder / "old.yaml")
      << "sustained: {scale: 1.1, fastest: 0.95, slowest: 1.075}\nmeasured: {residual: 0}\n";
  std::ofstream(folder / "wrong.yaml")
      << "sustained: {interval: {computing: [1.2, 0.9], host: [1, 1], network: [1, 1], "
         "fixed: [1, 1], step: [1, 1]}}\n";
  const Json old =
      step_json(kernel_bound() + fmt::format("calibration: {}\n", (folder / "old.yaml").string()));
  CHECK(old["step_time"]["low"].get<double>() > 0.94 * value(old["step_time"]));
  refused(kernel_bound() + fmt::format("calibration: {}\n", (folder / "wrong.yaml").string()),
          "interval.computing: is not an interval; two factors such as [0.9, 1.2], around 1");
}

}  // namespace
}  // namespace rehearse::one_node
