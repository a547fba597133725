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
#include "tests/support/data.h"
#include "tests/support/pages.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

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
