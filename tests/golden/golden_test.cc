// Tables that a person has reviewed: a change of what the program says about a recording shows as a
// difference of a file in this folder. REHEARSE_UPDATE_GOLDEN=1 writes the files anew.
#include <cmath>
#include <cstdlib>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/base/text.h"
#include "tests/support/data.h"
#include "tests/support/rehearse.h"
#include "tests/validation/studies/collective_report.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using test::kExample;
using test::Ran;

/// Compares a text with tests/golden/`name`, or puts it there.
void check_golden(const std::string& name, const std::string& text) {
  const fs::path path = test::source_file("tests/golden") / name;
  if (const char* update = std::getenv("REHEARSE_UPDATE_GOLDEN"); update && *update) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  REQUIRE(fs::exists(path));
  const std::string golden = test::text_of(path);
  const std::vector<std::string_view> expected = split(golden, '\n'), got = split(text, '\n');
  for (std::size_t i = 0; i < std::min(expected.size(), got.size()); ++i) {
    INFO(path.string() << ":" << i + 1);
    REQUIRE(got[i] == expected[i]);
  }
  CHECK(got.size() == expected.size());
}

std::string output_of(const std::vector<std::string>& arguments) {
  const Ran ran = test::rehearse(arguments);
  INFO(arguments.front() << ": " << ran.errors);
  REQUIRE(ran.code == 0);
  return ran.out;
}

/// The document with numbers of nine digits: the last ones differ between compilers.
Json rounded(const Json& json) {
  if (json.is_number_float()) {
    const double value = json.get<double>();
    if (std::abs(value) < 1e-12) return 0.0;
    const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - 8);
    return std::stod(fmt::format("{:.9g}", std::round(value / unit) * unit));
  }
  if (!json.is_structured()) return json;
  Json copy = json.is_array() ? Json::array() : Json::object();
  for (const auto& [key, value] : json.items()) {
    if (json.is_array()) {
      copy.push_back(rounded(value));
    } else {
      copy[key] = rounded(value);
    }
  }
  return copy;
}

TEST_CASE("the example gives the reviewed tables") {
  for (const char* command : {"inspect", "replay"}) {
    check_golden(fmt::format("three_steps.{}.txt", command), output_of({command, kExample}));
    const Json json = Json::parse(output_of({command, kExample, "--format", "json"}));
    check_golden(fmt::format("three_steps.{}.json", command), rounded(json).dump(2) + "\n");
  }
}

TEST_CASE("the recordings of this profiler give the reviewed tables") {
  const std::string job = test::source_file("traces/train-cpu-epyc").string();
  check_golden("train_cpu.replay.txt", output_of({"replay", job}));
  // 5 545 000 bytes over 2 GB/s in eight all-reduces of 2 us: 2.79 of the 4.28 ms between the
  // ranks; the rest is waiting for the slower one.
  check_golden("train_cpu.data_parallel.txt", output_of({"whatif", job, "--data-parallel", "2",
                                                         "--network", "latency=1us,rate=2GB/s"}));
}

/// Recordings of public profilers, below the data folder: a file, or a folder with a file per rank.
const std::vector<std::string> kJobs = {
    "kineto-resnet50-v100/resnet50_num_workers_0__worker0.1623143089861.pt.trace.json.gz",
    "kineto-resnet50-v100/resnet50_num_workers_4__worker0.1623212756351.pt.trace.json.gz",
    "triosim-h100/raw_vgg13_kineto_iter41.json.gz",
    "tracelens-h100-mi300/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens-h100-mi300/mi300/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens-h100-mi300/b200__eager_trace.json.gz",
    "param-et-replay-2080ti/resnet_kineto.json.gz",
    "param-dlrm-8rank-v100/kineto",
};

TEST_CASE("recorded jobs give the reviewed step times") {
  SKIP_WITHOUT_DATA(test::shared_data(kJobs.front()));
  std::string table = fmt::format("{:<84} {:>5} {:>9} {:>9} {:>9} {:>10} {:>10}\n", "recording",
                                  "steps", "simulated", "worst", "starts", "device x2", "host x2");
  for (const std::string& job : kJobs) {
    INFO(job);
    const auto path = test::shared_data(job);
    REQUIRE(path);
    const auto run = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.end(), {path->string(), "--format", "json", "--quiet"});
      return Json::parse(output_of(arguments));
    };
    const Json replay = run({"replay"});
    std::size_t whole = 0;
    for (const Json& rank : replay["ranks"])
      for (const Json& step : rank["steps"]) whole += step["partial"] == false;
    table += fmt::format("{:<84} {:>5} {:>9.4f} {:>9} {:>9} {:>10.3f} {:>10.3f}\n", job, whole,
                         replay["step_time"]["simulated"]["value"].get<double>() /
                             replay["step_time"]["measured"]["value"].get<double>(),
                         signed_percent(replay["error"]["worst"].get<double>()),
                         signed_percent(replay["kernel_start_error"].get<double>()),
                         1 + run({"whatif", "--scale", "gpu:2"})["change"].get<double>(),
                         1 + run({"whatif", "--scale", "host:2"})["change"].get<double>());
  }
  check_golden(
      "step_times.txt",
      "Step time over measured: simulated as recorded, its worst step, the median distance "
      "of device ops\nfrom their start (as a share of a step); and over simulated as "
      "recorded: device or host work twice as long.\n\n" +
          table);
}

TEST_CASE("collectives have the errors of the reviewed table") {
  const auto data = test::shared_data("aiconfigurator-kernels");
  SKIP_WITHOUT_DATA(data);
  const auto measured = cli::measure_collective_accuracy(data->parent_path());
  REQUIRE(measured);
  const std::string page = cli::collective_section(*measured);
  // The table of cases, and how often NCCL's choice was right: the rest follows from them.
  const std::size_t table = page.find("| case |"),
                    choice = page.find("At ", page.find("### Choice"));
  REQUIRE(table != std::string::npos);
  REQUIRE(choice != std::string::npos);
  check_golden("collectives.txt", page.substr(table, page.find("\n\n", table) + 1 - table) +
                                      page.substr(choice, page.find("\n\n", choice) + 1 - choice));
}

}  // namespace
}  // namespace rehearse
