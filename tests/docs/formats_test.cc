// The pages on formats state what the program reads and writes.
#include <charconv>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/check/budget.h"
#include "models/comm/closed_form.h"
#include "models/comm/transfer.h"
#include "models/workload/hugging_face.h"
#include "models/workload/read_model.h"
#include "profiler/bench/shape.h"
#include "profiler/capture/blocks.h"
#include "sim/base/text.h"
#include "sim/cluster/point_to_point.h"
#include "sim/cluster/read_cluster.h"
#include "tests/support/capture_run.h"
#include "tests/support/data.h"
#include "tests/support/pages.h"
#include "tests/support/power_recording.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using test::kExample;

// --- model.md

TEST_CASE("the descriptions of models on the page can be read") {
  const fs::path page = test::source_file("docs/formats/model.md");
  const auto examples = test::blocks_of(page, "yaml");
  CHECK(examples.size() == 5);
  for (const test::Block& block : examples) {
    const Result<YamlFile> file = YamlFile::parse(test::join_lines(block.lines), "model.md");
    REQUIRE(file);
    const YamlMap map = file->root();
    CHECK(workload::read_model(map, {}));
    map.no_other_keys();
    const Status status = file->status();
    INFO((status ? "" : to_string(status.error())));
    CHECK(status);
  }
  const auto configs = test::blocks_of(page, "json");
  REQUIRE(configs.size() == 1);
  CHECK(workload::parse_hugging_face(test::join_lines(configs.front().lines), "config.json"));
  const std::string text = test::text_of(page);
  for (const std::string_view type : workload::hugging_face_types()) {
    INFO(type);
    CHECK(text.find(type) != std::string::npos);
  }
}

// --- flow.md, controller.md

TEST_CASE("the studies on the pages of flows and controllers give the values on the page") {
  for (const std::string page : {"docs/concepts/flow.md", "docs/concepts/controller.md"}) {
    const auto blocks = test::blocks_of(test::source_file(page), "yaml");
    REQUIRE(blocks.size() == 1);
    const auto ran = test::rehearse(
        {"study", test::write_scratch("page.yaml", test::join_lines(blocks[0].lines)).string()});
    INFO(page << ": " << ran.out << ran.errors);
    CHECK(ran.code == 0);
  }
}

// --- input-pipeline.md

TEST_CASE("the pipeline on the page can be read") {
  const auto blocks = test::blocks_of(test::source_file("docs/formats/input-pipeline.md"), "yaml");
  REQUIRE(blocks.size() == 1);
  const std::string file =
      test::write_scratch("page.yaml", test::join_lines(blocks.front().lines)).string();
  const test::Ran ran = test::rehearse({"input", file});
  INFO(ran.errors);
  CHECK(ran.code == 0);
}

// --- dataflow.md

TEST_CASE("the dataflow on the page can be run") {
  const auto blocks = test::blocks_of(test::source_file("docs/formats/dataflow.md"), "yaml");
  REQUIRE(blocks.size() == 1);
  const std::string file =
      test::write_scratch("page.yaml", test::join_lines(blocks.front().lines)).string();
  const test::Ran ran = test::rehearse({"simulate", file});
  INFO(ran.errors);
  CHECK(ran.code == 0);
}

// --- json.md

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
    if (value.is_structured()) check_keys(value, page);
  }
}

/// The study that the page of study files shows.
std::vector<std::string> study_of_the_page() {
  const auto blocks = test::blocks_of(test::source_file("docs/formats/study.md"), "yaml");
  REQUIRE(blocks.size() == 1);
  return blocks.front().lines;
}

TEST_CASE("the page of JSON names every key that a command writes") {
  const fs::path page = test::source_file("docs/formats/json.md");
  const std::string text = test::text_of(page);
  const std::string common = text.substr(0, text.find("## import"));
  const std::string store = (test::scratch_folder() / "a.rehearse").string();
  std::string input = test::kineto_recording(3);
  input.replace(input.find("\"dur\": 400"), 10, "\"dur\": -40");
  const std::string damaged = test::write_scratch("damaged.json", input).string();
  const std::string replay = test::section_of(page, "## replay");
  const auto check = [&](std::vector<std::string> arguments, const std::string& sections) {
    const std::string command = arguments.front();
    arguments.insert(arguments.begin(), {"--format", "json", "--quiet"});
    const test::Ran ran = test::rehearse(arguments);
    INFO(command << ": " << ran.errors);
    REQUIRE(ran.code == 0);
    check_keys(nlohmann::json::parse(ran.out),
               common + test::section_of(page, "## " + command) + sections);
  };
  check({"import", damaged, "-o", store}, "");
  check({"inspect", kExample}, "");
  check({"inspect", damaged}, "");
  check({"inspect", test::power_recording().string()}, "");
  check({"inspect", "examples/recordings/two_linears.json", "--workload"}, "");
  check({"inspect", "examples/ranks", "--workload"}, "");
  check({"inspect", "--cluster", "examples/clusters/ethernet_v100.yaml"}, "");
  check({"simulate", "examples/dataflows/rgat.yaml"}, "");
  check({"replay", kExample}, "");
  check({"whatif", kExample, "--scale", "gpu:2"}, replay);
  const std::string found = (test::scratch_folder() / "found.json").string();
  const std::vector<std::string> replays = {"validate", "examples/recordings"};
  std::vector<std::string> kept = replays, against = replays;
  kept.insert(kept.end(), {"--format", "json", "-o", found});
  REQUIRE(test::rehearse(kept).code == 0);
  against.insert(against.end(), {"--baseline", found});
  check(against, "");
  check({"prove", "examples/pair_by_hand"}, test::section_of(page, "## validate"));
  for (const char* kind : {"gpus", "mig", "instances", "links", "prices", "carbon", "pue", "power",
                           "storage", "storage-prices", "functions", "sources"})
    check({"catalog", kind}, "");
  check({"network", "--device", "h100_sxm5_80", "--sizes", "1MiB"}, "");
  check({"mig", "layouts", "--device", "a30"}, "");
  check({"mig", "predict", "examples/sharing/steps.csv", "--device", "a100_sxm4_40"}, "");
  check({"doctor"}, "");
  check({"help"}, "");
  ::setenv("LD_LIBRARY_PATH", (test::program_folder() / "tests/gpu_mocks/all").c_str(), 1);
  const std::string shapes =
      test::write_scratch("shapes.csv", "op,rows,width,bytes\nnorm,4,4,\nall_reduce,,,1\n")
          .string();
  const std::string costs = (test::scratch_folder() / "costs.rehearse").string();
  check({"bench-gpu", "--shapes", shapes, "-o", costs}, "");
  ::unsetenv("LD_LIBRARY_PATH");
  check({"inspect", costs}, test::section_of(page, "## bench-gpu"));
  const std::string job =
      test::write_scratch("job.yaml",
                          "workload: {model: gpt2}\ntraining: {global_batch: 8}\nplan: {data: 8}\n"
                          "cluster: {instance: p4d.24xlarge, count: 1}\nregion: us-east-1\n")
          .string();
  check({"simulate", job}, "");
  const std::string rent =
      test::write_scratch("rent.yaml",
                          "workload: {model: gpt2}\ntraining: {global_batch: 8}\n"
                          "region: us-east-1\ntarget: {tokens: 1e9}\n"
                          "storage: {fetched: 1 GB}\nspot: {interrupted_every: 30 h}\n")
          .string();
  check({"recommend", rent, "--provider", "aws", "--counts", "1", "--spot"},
        test::section_of(page, "## simulate"));
  check({"calibrate", "job", job, "--measured", "60 ms"}, "");
  const std::string shared = test::section_of(page, "## Two jobs on the same devices");
  check({"simulate", "examples/sharing/bert.yaml", "--share-with", "examples/sharing/resnet.yaml",
         "--share", "mps:40%"},
        shared);
  check({"replay", kExample, "--share-with", kExample}, shared);
  const std::string open =
      test::write_scratch("open.yaml",
                          "workload: {model: gpt2}\ntraining: {global_batch: 8}\n"
                          "plan: {context: 1, offload: none}\n"
                          "cluster: {instance: p4d.24xlarge, count: 1}\nregion: us-east-1\n")
          .string();
  check({"plan", open}, test::section_of(page, "## simulate"));
  check({"plan", open, "--emit", "deepspeed"}, test::section_of(page, "## simulate"));

  const std::string study =
      test::write_scratch("study.yaml", test::join_lines(study_of_the_page())).string();
  check({"study", study}, "");
  // A curve, what was fitted, and all that an expectation may say.
  std::string curve = test::join_lines(study_of_the_page());
  const std::size_t expect = curve.find("expect:");
  REQUIRE(expect != std::string::npos);
  curve = curve.substr(0, expect) +
          "fitted: [{constants: [a], source: b, measure: gain, over: workers, published: {2: 1}}]\n"
          "expect: {measure: gain, at: {batch: 32}, over: workers, published: {4: 3}, source: c,\n"
          "  source_kind: page, configuration: d, tolerance: {mean: 0.999, worst: 0.999},\n"
          "  reason: e}\n";
  check({"study", test::write_scratch("curve.yaml", curve).string()}, "");
  const std::string before = "examples/recordings/gate_before.json";
  const std::string again = "examples/recordings/gate_again.json";
  check({"check", "--baseline", before, "--candidate", again, "--instance", "p3.2xlarge",
         "--steps-per-epoch", "10"},
        "");
  check({"check", "--history", before, again, before, again, again}, "");
  check({"check", "--predictions", "examples/recordings"}, "");
  check({"pack", "examples/fleets/pack.yaml"}, "");
  check({"input", "examples/pipelines/imagenet_s3.yaml"}, "");
  check({"input", "examples/pipelines/graph_features.yaml"}, "");
  check({"input",
         test::write_scratch("kept.yaml",
                             "samples: 100\nhost: {cores: 2, memory: 1 GB}\n"
                             "stages: [{name: a, time: 5 ms, unit: 1 MB}, {name: b, time: 1 ms}]")
             .string()},
        "");
  check({"fleet", "examples/fleets/four_jobs.csv", "--nodes", "1"}, "");
  const std::vector<std::string> simulate = {"simulate",
                                             "--chakra",
                                             "examples/chakra/transformer",
                                             "--comm-groups",
                                             "examples/chakra/transformer.groups.json",
                                             "--ranks",
                                             "32",
                                             "--cluster",
                                             "examples/clusters/dgx_h100_x4.yaml"};
  check(simulate, "");
  const std::string folder = (test::scratch_folder() / "capture").string();
  check({"profile", "-o", folder, "--", test::capture_program("capture_target"), "ranges", "10"},
        "");
}

// --- budget.md

TEST_CASE("the budget on the page can be read, and every key is on the page") {
  const fs::path page = test::source_file("docs/formats/budget.md");
  const auto blocks = test::blocks_of(page, "yaml");
  REQUIRE(blocks.size() == 1);
  const auto limits = cli::parse_budget(test::join_lines(blocks.front().lines), "page");
  INFO((limits ? "" : to_string(limits.error())));
  REQUIRE(limits);
  CHECK(limits->size() == 7);
  const std::string text = test::text_of(page);
  for (const char* key : {"step_time", "compute", "exposed_communication", "copies", "launch_gaps",
                          "energy", "memory", "cost_per_step", "cost_per_epoch", "ops"})
    CHECK(text.find(fmt::format("`{}`", key)) != std::string::npos);
}

// --- shapes.md

TEST_CASE("the shapes on their page can be measured, and every operation is listed") {
  const fs::path page = test::source_file("docs/formats/shapes.md");
  const std::string mocks = (test::program_folder() / "tests/gpu_mocks/all").string();
  for (const auto& [language, file, rows] :
       {std::tuple("yaml", "shapes.yaml", 2 * (3 * 2 * 2 + 2 + 1)),
        std::tuple("csv", "shapes.csv", 4)}) {
    const auto blocks = test::blocks_of(page, language);
    REQUIRE(blocks.size() == 1);
    const std::string shapes =
        test::write_scratch(file, test::join_lines(blocks.front().lines)).string();
    const test::Ran ran =
        test::RunningRehearse({"bench-gpu", "--shapes", shapes, "--format", "json"},
                              {{"LD_LIBRARY_PATH", mocks}})
            .wait();
    INFO(ran.errors);
    REQUIRE(ran.code == 0);
    CHECK(nlohmann::json::parse(ran.out).at("rows").size() == static_cast<std::size_t>(rows));
  }
  const std::string text = test::text_of(page);
  for (const bench::OpRule& rule : bench::op_rules()) {
    INFO(rule.op);
    std::string line;
    for (const std::string_view each : split(text, '\n'))
      if (each.starts_with("|") &&
          each.find(fmt::format("`{}`", rule.op)) != std::string_view::npos)
        line = each;
    for (const bench::ExtentRule& extent : rule.extents)
      CHECK(line.find(fmt::format("`{}`", extent.name)) != std::string::npos);
    for (const auto* names : {&rule.dtypes, &rule.layouts, &rule.epilogues})
      for (const std::string_view name : *names)
        CHECK(line.find(fmt::format("`{}`", name)) != std::string::npos);
  }
}

// --- link.md

TEST_CASE("the file on the page of links can be read, and gives the times on the page") {
  const auto blocks = test::blocks_of(test::source_file("docs/formats/link.md"), "yaml");
  REQUIRE(blocks.size() == 1);
  const Result<cluster::PointToPoint> link =
      cluster::load_link(test::write_scratch("link.yaml", test::join_lines(blocks.front().lines)));
  INFO((link ? "" : to_string(link.error())));
  REQUIRE(link);
  CHECK(link->latency.us() == Approx(12));
  CHECK(link->rate.gb_per_s() == Approx(11.2));
  CHECK(comm::ring_time(CollectiveKind::kSendRecv, 2, Bytes::mb(1), *link).us() ==
        Approx(12 + 89.3).epsilon(0.001));
  CHECK(comm::ring_time(CollectiveKind::kAllReduce, 4, Bytes::mb(1), *link).us() ==
        Approx(206).epsilon(0.001));
  const Result<cluster::PointToPoint> line = cluster::parse_link("latency=12us,rate=11.2GB/s");
  REQUIRE(line);
  CHECK(line->latency == link->latency);
  CHECK(line->rate == link->rate);
}

// --- cluster.md

TEST_CASE("the clusters on the page can be read") {
  const auto blocks = test::blocks_of(test::source_file("docs/formats/cluster.md"), "yaml");
  REQUIRE(blocks.size() == 4);
  for (const test::Block& block : blocks) {
    const auto read = cluster::parse_cluster(test::join_lines(block.lines), "page");
    INFO((read ? "" : to_string(read.error())));
    CHECK(read);
  }
}

TEST_CASE("the routes of the worked example of clusters") {
  const auto read = cluster::load_cluster(test::source_file("examples/clusters/dgx_h100_x4.yaml"));
  REQUIRE(read);
  const cluster::Route near = read->route(DeviceId(0), DeviceId(1));
  CHECK(near.hops.size() == 2);
  CHECK(near.path.latency.us() == Approx(2));
  CHECK(near.path.rate.gb_per_s() == Approx(370));
  const cluster::Route far = read->route(DeviceId(0), DeviceId(8 + 3));
  CHECK(far.hops.size() == 6);
  CHECK(far.path.latency.us() == Approx(3));
  CHECK(far.path.rate.gb_per_s() == Approx(47));
}

// --- calibration.md

TEST_CASE(
    "the file on the page of calibrations can be read, gives prices, and is written with the same "
    "keys") {
  const auto blocks = test::blocks_of(test::source_file("docs/formats/calibration.md"), "yaml");
  REQUIRE(blocks.size() == 1);
  const Result<comm::Calibration> page = comm::parse_calibration(
      test::join_lines(blocks.front().lines), "docs/formats/calibration.md");
  INFO((page ? "" : to_string(page.error())));
  REQUIRE(page);
  const auto cost = comm::CollectiveCost::resolve({.calibration = *page},
                                                  {.kind = CollectiveKind::kAllReduce, .ranks = 8});
  REQUIRE(cost);
  // LL at 256 KiB: 4.5 + 14 * 0.84 + 0.86 + 262144 * 1.75 / 209e3 + 32768 / 248e3.
  CHECK(cost->seconds(262144) == Approx(19.447e-6).epsilon(1e-4));
  const std::string text = test::text_of(test::source_file("docs/formats/calibration.md"));
  for (const comm::Calibration& shipped : comm::shipped_calibrations()) {
    const std::string yaml = comm::to_yaml(shipped);
    for (const std::string_view line : split(yaml, '\n')) {
      const std::string key(trim(line.substr(0, line.find(':'))));
      if (key.empty() || key.front() == '-') continue;
      INFO(key);
      CHECK(text.find(key) != std::string::npos);
    }
  }
}

// --- capture.md

std::string bytes_of(const std::vector<std::string>& lines) {
  std::string bytes;
  for (const std::string& line : lines)
    for (const std::string_view word :
         split(trim(std::string_view(line).substr(0, line.find('#'))), ' ')) {
      unsigned value = 0;
      const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value, 16);
      REQUIRE(error == std::errc{});
      REQUIRE(rest == word.data() + word.size());
      bytes += static_cast<char>(value);
    }
  return bytes;
}

TEST_CASE("the file on the page of captures has the content that the page states") {
  using namespace capture;
  const auto blocks = test::blocks_of(test::source_file("docs/formats/capture.md"), "hex");
  REQUIRE(blocks.size() == 1);
  const std::string bytes = bytes_of(blocks.front().lines);
  std::size_t at = 0;
  BlockReader reader([&](std::span<char> into) {
    const std::size_t n = bytes.copy(into.data(), into.size(), at);
    at += n;
    return n;
  });
  REQUIRE(reader.begin() == BlockReader::Begin::kCapture);

  auto block = reader.next();
  REQUIRE(block);
  REQUIRE(block->type == BlockType::kProcess);
  const auto process = decode_process(block->payload);
  REQUIRE(process);
  CHECK(process->host == "h");
  CHECK(process->process == 7);
  CHECK(process->parent == 1);
  CHECK(process->forked_from == 0);
  CHECK_FALSE(process->rank);
  CHECK(process->realtime_ns == 1000);
  CHECK(process->monotonic_ns == 500);
  CHECK(process->command == std::vector<std::string>{"a"});

  block = reader.next();
  REQUIRE(block);
  REQUIRE(block->type == BlockType::kTexts);
  const auto texts = decode_texts(block->payload);
  REQUIRE(texts);
  REQUIRE(texts->size() == 1);
  CHECK(texts->front().number == 1);
  CHECK(texts->front().text == "fwd");

  block = reader.next();
  REQUIRE(block);
  REQUIRE(block->type == BlockType::kRows);
  RowsBlock rows;
  REQUIRE(decode_rows(block->payload, rows));
  CHECK(rows.thread == 7);
  REQUIRE(rows.rows.size() == 1);
  CHECK(rows.rows.front().kind == RowKind::kRange);
  CHECK(rows.rows.front().time == 1005);
  CHECK(rows.rows.front().span == 5);
  CHECK(rows.rows.front().text == 1);

  block = reader.next();
  REQUIRE(block);
  REQUIRE(block->type == BlockType::kTrailer);
  const auto trailer = decode_trailer(block->payload);
  REQUIRE(trailer);
  CHECK(trailer->rows == 1);
  CHECK(trailer->lost == 0);
  CHECK(trailer->clock.realtime_ns == 1010);

  CHECK_FALSE(reader.next());
  CHECK_FALSE(reader.cut());
  CHECK(reader.damaged() == 0);
}

}  // namespace
}  // namespace rehearse
