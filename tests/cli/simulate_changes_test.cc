// simulate --scale and --network: what-ifs on a job.
#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;

const std::string kJob =
    "workload: {model: llama3_8b}\ntraining: {global_batch: 16}\nplan: {data: 2, tensor: 8}\n";
const std::string kUsual = "cluster: {device: h100_sxm5_80, devices_per_node: 8, nodes: 2}\n";

double step_of(const std::string& job, const std::vector<std::string>& more,
               double* unchanged = nullptr) {
  std::vector<std::string> arguments = {"simulate", test::write_scratch("job.yaml", job).string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Json json = test::json_of(arguments);
  if (unchanged) *unchanged = json["unchanged_step_time"]["value"].get<double>();
  return json["step_time"]["value"].get<double>();
}

TEST_CASE("kernels that take twice as long are as a job with twice the computing") {
  double unchanged = 0;
  const double changed = step_of(kJob + kUsual, {"--scale", "kernel:2"}, &unchanged);
  CHECK(unchanged == step_of(kJob + kUsual, {}));
  CHECK(changed == Approx(step_of(kJob + kUsual + "sustained: {scale: 2}\n", {})).epsilon(1e-9));
  // Edits combine, and every kernel has one of these names or another.
  CHECK(step_of(kJob + kUsual, {"--scale", "kernel=attention*:0.25", "--scale", "kernel:4"}) <
        step_of(kJob + kUsual, {"--scale", "kernel:4"}));
}

TEST_CASE("another network is the one that the cluster could state") {
  const auto on = [](const char* latency, const char* rate) {
    return fmt::format(
        "cluster: {{device: h100_sxm5_80, devices_per_node: 8, nodes: 2, inter_node: "
        "{{network: infiniband, latency: {}, rate: {}}}}}\n",
        latency, rate);
  };
  const double stated = step_of(kJob + on("20 us", "5 GB/s"), {});
  double unchanged = 0;
  const double changed =
      step_of(kJob + on("5 us", "50 GB/s"), {"--network", "latency=20us,rate=5GB/s"}, &unchanged);
  CHECK(changed == Approx(stated).epsilon(1e-6));
  CHECK(unchanged < 0.9 * changed);
  CHECK(step_of(kJob + kUsual, {"--scale", "collective:3"}) > step_of(kJob + kUsual, {}));
}

TEST_CASE("changes of a job that mean nothing are refused") {
  const std::string job = test::write_scratch("job.yaml", kJob + kUsual).string();
  const std::string alone =
      test::write_scratch("alone.yaml",
                          "workload: {model: llama3_8b}\ntraining: {global_batch: 8}\n"
                          "cluster: {device: h100_sxm5_80, devices_per_node: 8}\n")
          .string();
  const auto refused = [](const std::vector<std::string>& arguments, const char* what,
                          int code = 1) {
    const test::Ran ran = test::rehearse(arguments);
    INFO(ran.errors);
    CHECK(ran.code == code);
    CHECK(ran.out.empty());
    CHECK(ran.errors.find(what) != std::string::npos);
  };
  refused({"simulate", job, "--scale", "kernel"}, "has no factor", 2);
  refused({"simulate", job, "--scale", "kernl:2"}, "did you mean 'kernel'?", 2);
  refused({"simulate", job, "--scale", "host=a:2"}, "only kernels have names", 2);
  refused({"simulate", job, "--scale", "kernel:-1"}, "a number from 0 to 1000", 2);
  refused({"simulate", job, "--scale", "kernel:1e-320"}, "is not a factor", 2);
  refused({"simulate", job, "--scale", "host:0"}, "a number from 0.001 to 1000", 2);
  refused({"simulate", job, "--scale", "kernel=convolution:2"}, "one of activation");
  const auto no_link = [&](const char* text, const std::string& what, int code = 2) {
    const std::string names = code == 2 ? "--network: " : std::string(text) + ": ";
    refused({"simulate", job, "--network", text}, (names + what).c_str(), code);
    refused({"whatif", test::kExample, "--network", text}, (names + what).c_str(), code);
  };
  no_link("lat=2", "unknown key 'lat'; such as latency=5us,rate=100GB/s");
  no_link("latency=2,rate=1GB/s", "latency: '2' has no unit; one of ps, ns, us");
  no_link("latency=2us", "latency and rate are required; such as latency=5us,rate=100GB/s");
  no_link("latency=2us,rate=1GB/s,rate=2GB/s", "rate is given twice");
  no_link("latency=-1us,rate=1GB/s", "latency is out of range; a latency from 0 s to 1 s");
  no_link("5us", "cannot be read: No such file or directory; a link file, or numbers such as", 1);
  refused({"simulate", job, "--network", "latency=1ns,rate=5GB/s"}, "from one device to another");
  refused({"simulate", alone, "--network", "latency=5us,rate=5GB/s"}, "two nodes");
  refused({"simulate", "examples/jobs/serve_llama3_70b.yaml", "--scale", "kernel:2"},
          "jobs of training");
}

}  // namespace
}  // namespace rehearse
