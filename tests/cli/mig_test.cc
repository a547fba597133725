// rehearse mig layouts: drawings, documents, and what is refused.
#include <catch2/catch.hpp>

#include "sim/base/csv.h"
#include "tests/support/data.h"
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

TEST_CASE("mig layouts: without profiles, every maximal layout") {
  const Json json = test::document(layouts({"--device", "a30", "--format", "json"}));
  CHECK(json["layouts"].size() == 5);
  for (const Json& layout : json["layouts"]) CHECK(layout["still_fit"].empty());
}

TEST_CASE("mig layouts: an error is one line") {
  test::check_failed(layouts({"--device", "h100_sxm5_80", "--profiles", "3g.40g"}), 1,
                     "did you mean '3g.40gb'?");
  test::check_failed(layouts({"--device", "h100_sxm_80"}), 1, "did you mean 'h100_sxm5_80'?");
  test::check_failed(layouts({"--device", "t4"}), 1, "it has no MIG");
  test::check_failed(layouts({"--device", "b300"}), 1, "profiles are unknown");
  test::check_failed(layouts({"--device", "a30", "--profiles", "4g.24gb,1g.6gb"}), 1,
                     "5 compute slices, but the device has 4");
  test::check_failed(layouts({}), 2, "--device");
  test::check_failed(test::rehearse({"mig"}), 2, "");
}

const std::string kSweep =
    "profile,batch,step_time_ms,memory_mib\n7g.40gb,1,10.0,2600\n7g.40gb,4,10.0,2600\n"
    "7g.40gb,16,11.0,2700\n7g.40gb,32,18.0,2900\n7g.40gb,64,34.0,9000\n";

Ran predicted(const std::string& steps, std::vector<std::string> more = {},
              const std::string& device = "a100_sxm4_40") {
  more.insert(more.begin(), {"mig", "predict", test::write_scratch("steps.csv", steps).string(),
                             "--device", device});
  return test::rehearse(more);
}

const Json& point(const Json& answer, const std::string& profile, std::size_t index) {
  for (const Json& slice : answer["slices"])
    if (slice["profile"] == profile) return slice["points"][index];
  FAIL("no " << profile);
  return answer;
}

TEST_CASE("mig predict: every slice from a sweep on the whole GPU") {
  const Ran ran = predicted(kSweep, {"--work", "transformer", "--inference", "--format", "json"});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  CHECK(ran.errors.empty());
  const Json json = Json::parse(ran.out);
  test::check_values(json);
  CHECK(json["law"]["identified"] == true);
  CHECK(json["law"]["exponent"] == 8);
  CHECK(json["law"]["slice_rate"] == 1.02);
  CHECK(json["warnings"].empty());
  // The host decides at batch 1 on every slice, the GPU at batch 64.
  const Json& small = point(json, "1g.5gb", 0);
  CHECK(small["step_time"]["value"].get<double>() == Approx(0.0102).epsilon(0.01));
  CHECK(small["gain"].get<double>() == Approx(6.87).epsilon(0.01));
  CHECK(point(json, "1g.5gb", 4)["gain"].get<double>() == Approx(1).epsilon(0.05));
  CHECK(point(json, "7g.40gb", 4)["slowdown"] == 1.0);
  // 9000 MiB at batch 64, less 84 multiprocessors' context.
  CHECK(point(json, "1g.5gb", 4)["memory"]["value"].get<double>() / 1048576 ==
        Approx(9000 - 84 * 4.27));
  CHECK(point(json, "1g.5gb", 4)["fits"] == false);
  CHECK(point(json, "3g.20gb", 4)["fits"] == true);
}

TEST_CASE("mig predict: steps on a slice determine the constants that the whole GPU hides") {
  const std::string flat = kSweep.substr(0, kSweep.find("7g.40gb,32"));
  const Ran alone = predicted(flat, {"--format", "json"});
  REQUIRE(alone.code == 0);
  CHECK(alone.errors.find("time one step at the largest batch on 1g.5gb") != std::string::npos);
  const Json before = Json::parse(alone.out);
  CHECK(before["law"]["identified"] == false);
  const Ran both = predicted(flat + "1g.5gb,16,60.0,\n", {"--format", "json"});
  REQUIRE(both.code == 0);
  CHECK(both.errors.empty());
  const Json after = Json::parse(both.out);
  CHECK(after["law"]["identified"] == true);
  CHECK(point(after, "1g.5gb", 2)["step_time"]["value"].get<double>() ==
        Approx(0.060).epsilon(0.1));
  const auto width = [](const Json& p) {
    return p["step_time"]["high"].get<double>() / p["step_time"]["low"].get<double>();
  };
  CHECK(width(point(after, "2g.10gb", 2)) < width(point(before, "2g.10gb", 2)));
}

TEST_CASE("mig predict: an error is one line") {
  test::check_failed(predicted("profile,batch\n"), 1, "step_time_ms");
  test::check_failed(predicted("profile,batch,step_time_ms\n7g.40g,1,1\n"), 1,
                     ":2: profile: a100_sxm4_40 has no profile '7g.40g'; did you mean '7g.40gb'?");
  test::check_failed(predicted("profile,batch,step_time_ms\n7g.40gb,1,0\n"), 1,
                     ":2: step_time_ms: is not a measurement; a number above zero");
  test::check_failed(predicted("profile,batch,step_time_ms\n1g.5gb,1,1\n"), 1,
                     "has no steps on 7g.40gb");
  test::check_failed(predicted("profile,batch,step_time_ms\n7g.40gb,1,1\n7g.40gb,2,1\n"), 1,
                     "steps at 2 batch sizes");
  test::check_failed(predicted(kSweep + "1g.5gb,1,10.0,\n2g.10gb,1,10.0,\n"), 1,
                     "has steps on 3 profiles");
  test::check_failed(predicted(kSweep, {}, "t4"), 1, "it has no MIG");
  test::check_failed(predicted(kSweep, {"--work", "transf"}), 2, "unknown kind 'transf'");
  const Ran other = predicted(
      "profile,batch,step_time_ms\n7g.80gb,1,1\n7g.80gb,8,2\n7g.80gb,64,9\n", {}, "h100_sxm5_80");
  CHECK(other.code == 0);
  CHECK(other.errors.find("from A100") != std::string::npos);
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
  std::vector<std::string> all = {"simulate", "--quiet"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return test::json_of(std::move(all));
}

TEST_CASE("simulate --slice: a job on an instance, by option or by device name") {
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

TEST_CASE("simulate --slice: an impossible request is one line") {
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

TEST_CASE("whatif --slice: kernels take their time on the slice") {
  std::string text = test::text_of(test::source_file(test::kExample));
  const std::string name = "Example GPU";
  REQUIRE(text.find(name) != std::string::npos);
  // Another GPU than the recording's.
  test::check_failed(test::rehearse({"whatif", test::kExample, "--slice", "1g.10gb"}), 1,
                     "Example GPU");
  text.replace(text.find(name), name.size(), "NVIDIA A100-SXM4-80GB");
  const std::string recording = test::write_scratch("a100.json", text).string();
  const auto with = [&](const std::string& profile) {
    const Json json = test::json_of({"whatif", recording, "--slice", profile});
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
  // A replay on the slice is the same run, next to the measurement; its error is that of the
  // replay.
  const Json replay = test::json_of({"replay", recording, "--slice", "1g.10gb"});
  test::check_values(replay);
  CHECK(replay["slice"] == "a100_sxm4_80:1g.10gb");
  CHECK(replay["step_time"]["simulated"] == one["step_time"]);
  CHECK(replay["error"] == one["error"]);
  CHECK(replay["step_time"]["measured"] == one["baseline"]["measured"]);
  test::check_failed(test::rehearse({"replay", recording, "--slice", "1g.10g"}), 1,
                     "did you mean '1g.10gb'?");
  CHECK(test::rehearse({"replay", recording, "--slice", "1g.10gb"})
            .out.find("on a100_sxm4_80:1g.10gb") != std::string::npos);
  // Instances cannot reach each other.
  std::string sums = text;
  const std::string kernel = "\"name\": \"relu\"";
  sums.replace(sums.find(kernel), kernel.size(),
               "\"name\": \"ncclKernel_AllReduce_RING_LL_Sum_float\"");
  test::check_failed(test::rehearse({"whatif", test::write_scratch("sums.json", sums).string(),
                                     "--slice", "1g.10gb"}),
                     1, "NCCL does not run between instances");
  // Two ranks, each on an instance of its own GPU.
  const std::string other = test::write_scratch("a100_too.json", text).string();
  const Ran both = test::rehearse(
      {"whatif", recording, other, "--slice", "1g.10gb", "--format", "json", "--quiet"});
  INFO(both.errors);
  REQUIRE(both.code == 0);
  CHECK(Json::parse(both.out)["step_time"] == one["step_time"]);
}

}  // namespace
}  // namespace rehearse
