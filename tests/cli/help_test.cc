// The examples of help run as they are printed, in a folder with the files that they name.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "sim/base/text.h"
#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

/// Runs lines of the shell in a folder, which has what they print in out.txt; returns their exit code.
int shell(const fs::path& folder, std::string_view lines) {
  std::ofstream(folder / "lines.sh") << lines;
  return std::system(
      fmt::format("cd '{}' && HOME=$PWD PATH='{}':$PATH bash -e lines.sh >out.txt 2>&1 </dev/null",
                  folder.string(), test::program_folder().string())
          .c_str());
}

/// A folder with the files of the examples.
fs::path workplace() {
  fs::path folder = test::scratch_folder();
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
  };
  for (const char* linked : {"examples", "studies"})
    fs::create_directory_symlink(test::source_file(linked), folder / linked);
  REQUIRE(shell(folder, R"(
    packed() { gzip -c "examples/$1" > "$2"; }
    packed recordings/three_steps.json trace.json.gz
    packed recordings/gate_before.json before.json.gz
    packed recordings/gate_again.json after.json.gz
    packed ranks/rank0.json rank0.json.gz
    packed ranks/rank1.json rank1.json.gz
    rehearse import before.json.gz -o main.rehearse
    rehearse import after.json.gz -o branch.rehearse
    rehearse init cluster -o cluster.yaml
    cp examples/astra-sim/all_reduce.et job.et
    cp examples/astra-sim/network.yml examples/astra-sim/system.json .
    cp examples/sharing/steps.csv .
    mkdir recordings images
    cp trace.json.gz recordings
    cp trace.json.gz images/a
    mkdir -p ~/.zfunc ~/.config/fish/completions)") == 0);
  for (const char* device : {"h200_sxm_141", "b200_sxm_180"})
    write(fmt::format("{}.yaml", std::string_view(device).substr(0, 4)).c_str(),
          fmt::format("cluster: {{device: {}, devices_per_node: 8, nodes: 1}}\n", device));
  write("job.yaml",
        "workload: {model: gpt2_small}\ntraining: {global_batch: 32, microbatch: 1}\n"
        "plan: {data: 4, tensor: 2}\n"
        "cluster: {instance: p4d.24xlarge, count: 1}\n");
  write(
      "my_jobs.csv",
      "name,workload.model,training.global_batch,plan.data,cluster.device,"
      "cluster.devices_per_node,cluster.nodes,step_s\nmine,gpt2_small,8,8,h100_sxm5_80,8,1,0.05\n");
  write("my_collectives.csv",
        "device,op,ranks,size_bytes,time_us\na100_sxm4_80,all_reduce,8,1e9,8000\n");
  return folder;
}

TEST_CASE("help of each command begins with examples, and they run", "[long]") {
  // These need a GPU, PyTorch, logs of nccl-tests, a folder of pairs or an interrupt, and have tests of
  // their own.
  const std::set<std::string> elsewhere = {"bench-gpu", "profile", "calibrate nccl", "prove",
                                           "live"};
  const fs::path folder = workplace();
  const test::Json help = test::document(test::rehearse({"help", "--format", "json"}));
  for (const test::Json& command : help["commands"]) {
    const std::string name = command["name"], footer = command["examples"];
    INFO(name);
    CHECK(test::rehearse({"help", name.substr(0, name.find(' '))}).out.starts_with("Example"));
    for (std::string_view line : split(footer, '\n')) {
      for (const char* prefix : {"Example: ", "  "})
        if (line.starts_with(prefix)) line.remove_prefix(std::string_view(prefix).size());
      if (!line.starts_with("rehearse ") && !line.starts_with("source ")) continue;
      if (elsewhere.contains(name)) continue;
      INFO(line);
      if (name == "init") fs::remove(folder / "job.yaml");  // which it writes
      const int code = shell(folder, line);
      INFO(test::text_of(folder / "out.txt"));
      CHECK(code == 0);
    }
  }
}

}  // namespace
}  // namespace rehearse
