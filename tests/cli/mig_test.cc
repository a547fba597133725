// rehearse mig layouts: drawings, documents, and what is refused.
#include <catch2/catch.hpp>

#include "sim/base/csv.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;
using test::Ran;

Ran layouts(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"mig", "layouts"});
  return test::rehearse(arguments);
}

TEST_CASE("mig layouts: the same layouts in each format") {
  const std::vector<std::string> asked = {"--device", "h100_sxm5_80", "--profiles",
                                          "3g.40gb,2g.20gb,1g.10gb"};
  const auto in = [&](const char* format) {
    std::vector<std::string> arguments = asked;
    arguments.insert(arguments.end(), {"--format", format});
    const Ran ran = layouts(arguments);
    INFO(ran.errors);
    REQUIRE(ran.code == 0);
    CHECK(ran.errors.empty());
    return ran.out;
  };
  const Json json = Json::parse(in("json"));
  test::check_values(json);
  CHECK(json["command"] == "mig layouts");
  REQUIRE(json["layouts"].size() == 5);
  const Json& first = json["layouts"][3];
  REQUIRE(first["instances"].size() == 3);
  CHECK(first["instances"][0]["profile"] == "3g.40gb");
  CHECK(first["instances"][0]["start"] == 0);
  CHECK(first["instances"][0]["multiprocessors"] == 60);
  CHECK(first["instances"][0]["shares"]["bandwidth"] == 0.5);
  CHECK(first["wasted"] == Json{{"compute_slices", 1}, {"memory_slices", 1}});
  const auto csv = CsvTable::parse(in("csv"), "stdout");
  REQUIRE(csv);
  CHECK(csv->rows() == 15);
  CHECK(in("table").find("|3g.40gb                                    |2g.20gb              |") !=
        std::string::npos);
}

TEST_CASE("mig layouts: without profiles, every layout to which nothing can be added") {
  const Ran ran = layouts({"--device", "a30", "--format", "json"});
  REQUIRE(ran.code == 0);
  const Json json = Json::parse(ran.out);
  CHECK(json["layouts"].size() == 5);
  for (const Json& layout : json["layouts"]) CHECK(layout["still_fit"].empty());
}

TEST_CASE("mig layouts: what is wrong is one line") {
  test::check_failed(layouts({"--device", "h100_sxm5_80", "--profiles", "3g.40g"}), 1,
                     "did you mean '3g.40gb'?");
  test::check_failed(layouts({"--device", "h100_sxm_80"}), 1, "did you mean 'h100_sxm5_80'?");
  test::check_failed(layouts({"--device", "t4"}), 1, "it has no MIG");
  test::check_failed(layouts({"--device", "b300"}), 1, "profiles are not known");
  test::check_failed(layouts({"--device", "a30", "--profiles", "4g.24gb,1g.6gb"}), 1,
                     "5 compute slices, and the device has 4");
  test::check_failed(layouts({}), 2, "--device");
  test::check_failed(test::rehearse({"mig"}), 2, "");
}

std::string job_on(const std::string& device, const std::string& plan = "") {
  return test::write_scratch("job.yaml",
                             "workload: {model: resnet50}\n"
                             "training: {global_batch: 16, microbatch: 8, dtype: tf32}\n" +
                                 plan + "cluster: {device: \"" + device +
                                 "\", devices_per_node: 1, nodes: 2}\n")
      .string();
}

Json simulated(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"simulate", "--format", "json", "--quiet"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Ran ran = test::rehearse(all);
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  return Json::parse(ran.out);
}

TEST_CASE("simulate --slice: a job on an instance, which a device of that name is too") {
  const std::string job = job_on("a100_sxm4_80");
  const double whole = simulated({job})["step_time"]["value"];
  const Json slice = simulated({job, "--slice", "1g.10gb"});
  const double on_slice = slice["step_time"]["value"];
  CHECK(on_slice > 2 * whole);
  CHECK(on_slice < 8 * whole);
  CHECK(simulated({job_on("a100_sxm4_80:1g.10gb")})["step_time"] == slice["step_time"]);
  // Larger instances are faster, and the one of all slices is nearly the whole GPU.
  double before = on_slice;
  for (const char* profile : {"2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}) {
    const double now = simulated({job, "--slice", profile})["step_time"]["value"];
    INFO(profile);
    CHECK(now <= before);
    CHECK(now >= whole * (1 - 1e-9));
    before = now;
  }
  CHECK(before < 1.15 * whole);
  CHECK(slice["memory_per_device"]["fits"] == simulated({job})["memory_per_device"]["fits"]);
}

TEST_CASE("simulate --slice: what does not go is one line") {
  const auto slice = [](const std::string& job, const std::string& profile) {
    return test::rehearse({"simulate", job, "--slice", profile});
  };
  test::check_failed(slice(job_on("a100_sxm4_80"), "1g.10g"), 1, "did you mean '1g.10gb'?");
  test::check_failed(slice(job_on("t4"), "1g.10gb"), 1, "it has no MIG");
  test::check_failed(slice(job_on("a100_sxm4_80", "plan: {data: 2}\n"), "1g.10gb"), 1, "2 ranks");
  test::check_failed(
      test::rehearse({"simulate", "--chakra", "a", "--cluster", "b", "--slice", "c"}), 2,
      "--slice needs a job file");
}

TEST_CASE("whatif --slice: kernels take as long as the slice makes them") {
  std::string text = test::text_of(test::kExample);
  const std::string name = "Example GPU";
  REQUIRE(text.find(name) != std::string::npos);
  // Another GPU than the recording's.
  test::check_failed(test::rehearse({"whatif", test::kExample, "--slice", "1g.10gb"}), 1,
                     "Example GPU");
  text.replace(text.find(name), name.size(), "NVIDIA A100-SXM4-80GB");
  const std::string recording = test::write_scratch("a100.json", text).string();
  const auto with = [&](const std::string& profile) {
    const Ran ran = test::rehearse({"whatif", recording, "--slice", profile, "--format", "json"});
    INFO(ran.errors);
    REQUIRE(ran.code == 0);
    const Json json = Json::parse(ran.out);
    test::check_values(json);
    return json;
  };
  const Json one = with("1g.10gb"), two = with("2g.20gb"), whole = with("7g.80gb");
  CHECK(whole["change"].get<double>() >= 0);
  CHECK(two["change"].get<double>() >= whole["change"].get<double>());
  CHECK(one["change"].get<double>() > two["change"].get<double>());
  CHECK(one["step_time"]["provenance"] == "extrapolated");
  CHECK(one["step_time"]["low"] <= one["step_time"]["value"]);
  CHECK(one["step_time"]["value"] <= one["step_time"]["high"]);
  test::check_failed(test::rehearse({"whatif", recording, "--slice", "1g.10g"}), 1,
                     "did you mean '1g.10gb'?");
}

}  // namespace
}  // namespace rehearse
