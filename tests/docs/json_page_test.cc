// The page of JSON names every key that a command writes, and the classes of results in Python have it.
// REHEARSE_UPDATE_GOLDEN=1 writes the classes anew.
#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/support/capture_run.h"
#include "tests/support/data.h"
#include "tests/support/pages.h"
#include "tests/support/power_recording.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using test::kExample;

/// Checks that every key below `json` is on the page as `key`, or as the end of `a.b.key`.
void check_keys(const nlohmann::json& json, const std::string& page) {
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) {
      INFO(key);
      const bool named = page.find("`" + key + "`") != std::string::npos ||
                         page.find("." + key + "`") != std::string::npos ||
                         page.find("`" + key + "[]") != std::string::npos ||
                         page.find("." + key + "[]") != std::string::npos ||
                         page.find("\"" + key + "\":") != std::string::npos ||
                         page.find("`" + key + ".") != std::string::npos;
      CHECK(named);
    }
    // The flags of a server have its own names.
    if (value.is_structured() && !(json.is_object() && key == "flags")) check_keys(value, page);
  }
}

/// The study that the page of study files shows.
std::vector<std::string> study_of_the_page() {
  const auto blocks = test::blocks_of(test::source_file("docs/formats/study.md"), "yaml");
  REQUIRE(blocks.size() == 1);
  return blocks.front().lines;
}

/// A log of nccl-tests on eight devices.
std::string nccl_log() {
  std::string text = "# nThread 1 nGpus 8 minBytes 1024 maxBytes 268435456 step: 2(factor)\n";
  for (int rank = 0; rank < 8; ++rank)
    text += fmt::format("#  Rank {} Group 0 Pid 1 on host device {} NVIDIA A100-SXM4-80GB\n", rank,
                        rank);
  text += "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
  for (double size = 1024; size <= 268435456; size *= 2)
    text += fmt::format("{:.0f} {:.0f} float sum -1 {:.2f} 1 1 0 {:.2f} 1 1 0\n", size, size / 4,
                        20 + size / 1e5, 20 + size / 1e5);
  return text;
}

/// The documents of commands with all their keys. Their keys and types are the same on every machine.
class Documents {
 public:
  Documents();

  struct Each {
    std::string command;  ///< the words without options that name it
    std::string section;  ///< that has keys too, or empty
    std::string text;
  };
  std::vector<Each> all;

 private:
  void add(std::vector<std::string> arguments, std::string section = "") {
    const std::string command = arguments.front();
    arguments.insert(arguments.begin(), {"--format", "json", "--quiet"});
    test::Ran ran = test::rehearse(arguments);
    INFO(command << ": " << ran.errors);
    REQUIRE(ran.code == 0);
    all.push_back({command, std::move(section), std::move(ran.out)});
  }
};

Documents::Documents() {
  const std::string store = (test::scratch_folder() / "a.rehearse").string();
  std::string input = test::kineto_recording(3);
  input.replace(input.find("\"dur\": 400"), 10, "\"dur\": -40");
  const std::string damaged = test::write_scratch("damaged.json", input).string();
  add({"import", damaged, "-o", store});
  add({"inspect", kExample});
  add({"inspect", damaged});
  add({"inspect", test::power_recording().string()});
  add({"inspect", "examples/recordings/two_linears.json", "--workload"});
  add({"inspect", "examples/ranks", "--workload"});
  add({"inspect", "--cluster", "examples/clusters/ethernet_v100.yaml"});
  add({"inspect", "examples/recordings/checkpoint.json", "--workload"});
  for (const char* model : {"gat", "gat_primitives", "hgt", "rgat", "rgcn"})
    add({"simulate", fmt::format("examples/dataflows/{}.yaml", model)});
  add({"inspect", "examples/ranks"});
  add({"replay", kExample});
  add({"replay", "examples/ranks"});
  add({"replay", "examples/recordings/slow_rank.csv"});
  add({"export", "examples/ranks", "--chakra", (test::scratch_folder() / "a").string()});
  add({"whatif", kExample, "--scale", "gpu:2"}, "## replay");
  add({"whatif", kExample, "--input-pipeline", "examples/pipelines/two_workers.yaml"}, "## replay");
  const std::string found = (test::scratch_folder() / "found.json").string();
  const std::vector<std::string> replays = {"validate", "examples/recordings"};
  std::vector<std::string> kept = replays, against = replays;
  kept.insert(kept.end(), {"--format", "json", "-o", found});
  REQUIRE(test::rehearse(kept).code == 0);
  against.insert(against.end(), {"--baseline", found});
  add(against);
  add({"prove", "examples/pair_by_hand"}, "## validate");
  for (const char* kind : {"gpus", "mig", "instances", "links", "prices", "carbon", "pue", "power",
                           "storage", "storage-prices", "functions", "sources"})
    add({"catalog", kind});
  add({"network", "--device", "h100_sxm5_80", "--sizes", "1MiB"});
  const std::string log = test::write_scratch("all_reduce.log", nccl_log()).string();
  const std::string fitted = (test::scratch_folder() / "fitted.yaml").string();
  add({"calibrate", "nccl", log, "--device", "a100_sxm4_80", "-o", fitted});
  add({"network", "--calibration", fitted, "--ranks", "8", "--measured", log});
  add({"mig", "layouts", "--device", "a30"});
  add({"mig", "predict", "examples/sharing/steps.csv", "--device", "a100_sxm4_40"});
  add({"doctor"});
  add({"explain", "MFU"});
  add({"help"});
  ::setenv("LD_LIBRARY_PATH", (test::program_folder() / "tests/gpu_mocks/all").c_str(), 1);
  const std::string shapes =
      test::write_scratch("shapes.csv", "op,rows,width,bytes\nnorm,4,4,\nall_reduce,,,1\n")
          .string();
  const std::string costs = (test::scratch_folder() / "costs.rehearse").string();
  add({"bench-gpu", "--shapes", shapes, "-o", costs});
  ::unsetenv("LD_LIBRARY_PATH");
  add({"inspect", costs}, "## bench-gpu");
  const std::string job =
      test::write_scratch("job.yaml",
                          "workload: {model: gpt2}\ntraining: {global_batch: 8}\nplan: {data: 8}\n"
                          "cluster: {instance: p4d.24xlarge, count: 1}\nregion: us-east-1\n")
          .string();
  add({"simulate", job});
  for (const char* name : {"cpu_ranks", "gpt2_xl_mixed", "llama3_8b_lora", "llama_3b_host"})
    add({"simulate", fmt::format("examples/jobs/{}.yaml", name)});
  const std::string offloaded =
      test::write_scratch("offloaded.yaml",
                          "workload: {model: gpt2}\ntraining: {global_batch: 8}\n"
                          "plan: {data: 8, offload: optimizer}\ntarget: {tokens: 1e9}\n"
                          "cluster: {instance: p4d.24xlarge, count: 1}\nregion: us-east-1\n")
          .string();
  add({"simulate", offloaded});
  add({"compare", job, "examples/jobs/gpt2_xl_mixed.yaml"});
  for (const char* name : {"70b", "70b_pools", "8b_scaled"})
    add({"simulate", fmt::format("examples/jobs/serve_llama3_{}.yaml", name)});
  const std::string served =
      test::write_scratch("served.yaml",
                          "serve:\n  model: llama3_8b\n  framework: vllm\n"
                          "  flags: {prefix_cache: true, max_num_seqs: 8}\n"
                          "  cache_tiers: {host: {size: 64 GB, rate: 40 GB/s}}\n"
                          "  load: {rate: 4 per s, requests: 60, priorities: [0.5, 0.5],\n"
                          "    deadline: [1 s, 10 s], drop: true, input: 700, output: 60}\n"
                          "cluster: {device: h100_sxm5_80, devices_per_node: 1, nodes: 1}\n")
          .string();
  add({"simulate", served});
  const std::string server = "examples/jobs/serve_llama3_8b_search.yaml";
  add({"plan", server}, "## simulate");
  add({"plan", server, "--emit", "vllm"}, "## simulate");
  add({"recommend", server, "--provider", "aws", "--counts", "1"}, "## simulate");
  const std::string rent =
      test::write_scratch("rent.yaml",
                          "workload: {model: gpt2}\ntraining: {global_batch: 8}\n"
                          "region: us-east-1\ntarget: {tokens: 1e9}\n"
                          "storage: {fetched: 1 GB}\nspot: {interrupted_every: 30 h}\n")
          .string();
  add({"recommend", rent, "--provider", "aws", "--counts", "1", "--spot"}, "## simulate");
  add({"calibrate", "job", job, "--measured", "60 ms"});
  const std::string shared = "## Two jobs on the same devices";
  add({"simulate", "examples/sharing/bert.yaml", "--share-with", "examples/sharing/resnet.yaml",
       "--share", "mps:40%"},
      shared);
  add({"replay", kExample, "--share-with", kExample}, shared);
  add({"simulate", "examples/sharing/bert.yaml", "--share-with", "examples/sharing/resnet.yaml",
       "--share", "timeslice"},
      shared);
  add({"whatif", kExample, "--scale", "gpu:2", "--share-with", kExample}, shared);
  const std::string open =
      test::write_scratch("open.yaml",
                          "workload: {model: gpt2}\ntraining: {global_batch: 8}\n"
                          "plan: {context: 1, offload: none}\n"
                          "cluster: {instance: p4d.24xlarge, count: 1}\nregion: us-east-1\n")
          .string();
  add({"plan", open}, "## simulate");
  add({"plan", open, "--emit", "deepspeed"}, "## simulate");

  const std::string study =
      test::write_scratch("study.yaml", test::join_lines(study_of_the_page())).string();
  add({"study", study});
  // A curve, what was fitted, and all that an expectation may say.
  std::string curve = test::join_lines(study_of_the_page());
  const std::size_t expect = curve.find("expect:");
  REQUIRE(expect != std::string::npos);
  curve = curve.substr(0, expect) +
          "fitted: [{constants: [a], source: b, measure: gain, over: workers, published: {2: 1}}]\n"
          "expect: {measure: gain, at: {batch: 32}, over: workers, published: {4: 3}, source: c,\n"
          "  source_kind: page, configuration: d, tolerance: {mean: 0.999, worst: 0.999},\n"
          "  reason: e}\n";
  add({"study", test::write_scratch("curve.yaml", curve).string()});
  const std::string before = "examples/recordings/gate_before.json";
  const std::string again = "examples/recordings/gate_again.json";
  add({"check", "--baseline", before, "--candidate", again, "--instance", "p3.2xlarge",
       "--steps-per-epoch", "10"});
  add({"check", "--history", before, again, before, again, again});
  const std::string accepted = (test::scratch_folder() / "accepted").string();
  for (const char* name : {"a", "b"})
    add({"check", "--history", accepted, "--candidate", before, "--accept", "--name", name});
  add({"check", "--history", accepted, "--candidate", again});
  add({"check", "--predictions", "examples/recordings"});
  const fs::path some = test::write_scratch("a.json", "{").parent_path();
  fs::copy(test::source_file(before), some);
  add({"check", "--predictions", some.string()});
  add({"pack", "examples/fleets/pack.yaml"});
  add({"input", "examples/pipelines/imagenet_s3.yaml"});
  add({"input", "examples/pipelines/graph_features.yaml"});
  add({"input",
       test::write_scratch("kept.yaml",
                           "samples: 100\nhost: {cores: 2, memory: 1 GB}\n"
                           "stages: [{name: a, time: 5 ms, unit: 1 MB}, {name: b, time: 1 ms}]")
           .string()});
  add({"fleet", "examples/fleets/four_jobs.csv", "--nodes", "1"});
  const std::vector<std::string> simulate = {"simulate",
                                             "--chakra",
                                             "examples/chakra/transformer",
                                             "--comm-groups",
                                             "examples/chakra/transformer.groups.json",
                                             "--ranks",
                                             "32",
                                             "--cluster",
                                             "examples/clusters/dgx_h100_x4.yaml"};
  add(simulate);
  const std::string folder = (test::scratch_folder() / "capture").string();
  const std::string measured = (test::scratch_folder() / "measured").string();
  add({"profile", "-o", folder, "--", test::capture_program("capture_target"), "ranges", "10"});
  add({"profile", "-o", measured, "--overhead", "2", "--", test::capture_program("capture_target"),
       "ranges", "10"});
}

/// Writes the classes of these documents; stdout has them.
std::string classes_of(const Documents& documents) {
  const fs::path folder = test::scratch_folder(), written = test::scratch_folder() / "results.py";
  std::string command = fmt::format("python3 '{}' '{}'",
                                    test::source_file("python/backend/result_classes.py").string(),
                                    test::source_file("docs/formats/json.md").string());
  std::size_t count = 0;
  for (const Documents::Each& each : documents.all) {
    const fs::path file = folder / fmt::format("{:03}.json", count++);
    test::write_file(file, each.text);
    command += fmt::format(" '{}'", file.string());
  }
  INFO(command);
  REQUIRE(std::system(fmt::format("{} >'{}'", command, written.string()).c_str()) == 0);
  return test::text_of(written);
}

TEST_CASE("the page of JSON and the classes of Python have every key that a command writes") {
  static const Documents documents;
  SECTION("the page") {
    const fs::path page = test::source_file("docs/formats/json.md");
    const std::string text = test::text_of(page);
    const std::string common = text.substr(0, text.find("## import"));
    for (const Documents::Each& each : documents.all) {
      INFO(each.command);
      check_keys(nlohmann::json::parse(each.text),
                 common + test::section_of(page, "## " + each.command) +
                     (each.section.empty() ? "" : test::section_of(page, each.section)));
    }
  }
  SECTION("the classes") {
    if (std::system("python3 -c '' 2>/dev/null") != 0) {
      WARN("skipped: no python3");
      return;
    }
    const fs::path module = test::source_file("python/rehearse/results.py");
    if (std::getenv("REHEARSE_UPDATE_GOLDEN"))
      test::write_file(module, classes_of(documents));
    else
      CHECK(test::text_of(module) == classes_of(documents));
  }
}

}  // namespace
}  // namespace rehearse
