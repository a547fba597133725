// PyTorch's ranges as operators, and the ties between backward and forward ones.
#include <catch2/catch.hpp>

#include "profiler/ingest/torch_ranges.h"
#include "tests/support/capture_builder.h"
#include "tests/support/capture_reading.h"
#include "tests/support/capture_run.h"

namespace rehearse::ingest {
namespace {

using namespace trace;
using capture::Row;
using test::CaptureBuilder;
using test::kBase;
using test::read;

TEST_CASE("the text of a range by its grammar") {
  const auto whole = parse_torch_range(
      "aten::addmm, seq = 12, op_id = 40, sizes = [[8], [4, 16], [16, 8], [], []], "
      "input_op_ids = [(3,0), (7,1)]");
  REQUIRE(whole);
  CHECK(whole->name == "aten::addmm");
  CHECK(whole->is_operator);
  CHECK(whole->sequence == 12u);
  CHECK(whole->op_id == 40u);
  CHECK(whole->shapes == "[[8], [4, 16], [16, 8], [], []]");

  CHECK(parse_torch_range("AddmmBackward0, seq = 12, op_id = 80")->sequence == 12u);
  CHECK(parse_torch_range("aten::empty, op_id = 3")->is_operator);
  CHECK(parse_torch_range("aten::empty")->is_operator);
  CHECK(parse_torch_range("record_param_comms, op_id = 9, sizes = [[4]]")->is_operator);
  CHECK(parse_torch_range("aten::add, sizes = []")->shapes == "[]");

  // A name may hold commas and equals signs itself.
  const auto odd = parse_torch_range("f(a, b = 2), seq = 1");
  REQUIRE(odd);
  CHECK(odd->name == "f(a, b = 2)");

  // What the program names is no operator.
  for (const char* text :
       {"ProfilerStep#3, op_id = 5", "Optimizer.step#SGD.step, op_id = 6", "my block, op_id = 7"}) {
    INFO(text);
    const auto range = parse_torch_range(text);
    REQUIRE(range);
    CHECK_FALSE(range->is_operator);
    CHECK(std::string(text).starts_with(range->name));
    CHECK(range->name.find("op_id") == std::string_view::npos);
  }
  for (const char* text : {"forward", "loss = 3", "a, b", "step, seq = x", "x, op_id = ",
                           ", seq = 3", "aten:: x y", "f, seq = 1 and more", "x, sizes = 3", ""}) {
    INFO(text);
    CHECK_FALSE(parse_torch_range(text));
  }
}

TEST_CASE("a truncated text keeps its whole parts") {
  const auto cut = parse_torch_range("aten::cat, seq = 3, op_id = 9, sizes = [[[4, 5], [4, 6");
  REQUIRE(cut);
  CHECK(cut->is_operator);
  CHECK(cut->sequence == 3u);
  CHECK(cut->shapes.empty());
}

TEST_CASE("ranges of operators become operators, in any domain") {
  CaptureBuilder builder;
  builder.process({.host = "h", .process = 1, .realtime_ns = kBase, .monotonic_ns = 500})
      .text(1, "aten::mm, seq = 4, op_id = 2, sizes = [[2, 3], [3, 4]]")
      .text(2, "rehearse.module")
      .text(3, "layers.0")
      .text(4, "aten::mm, seq = 5, op_id = 3, sizes = [[2, 3], [3, 4]]")
      .rows(70, {{.time = kBase + 30, .span = 10, .text = 1, .domain = 2},
                 {.time = kBase + 35, .span = 20, .text = 3, .domain = 2},
                 {.time = kBase + 60, .span = 10, .text = 4}})
      .trailer(3, 0);
  const auto file = read(builder.bytes());
  const auto& ops = file->rank().host_ops;
  REQUIRE(ops.size() == 3);
  CHECK(ops[0].kind == HostKind::kOperator);
  CHECK(file->name(ops[0]) == "aten::mm");
  CHECK(ops[0].sequence == 4u);
  CHECK(ops[0].forward_thread == 0u);
  CHECK(ops[0].record_function == 2u);
  REQUIRE(ops[0].inputs);
  CHECK(file->trace.names[file->rank().inputs[0].shapes] == "[[2, 3], [3, 4]]");
  CHECK(ops[0].inputs == ops[2].inputs);
  CHECK(ops[0].name == ops[2].name);
  CHECK(ops[1].kind == HostKind::kAnnotation);
  CHECK(file->name(ops[1]) == "layers.0");
}

TEST_CASE("a backward operator has the thread of the latest forward one with its number") {
  CaptureBuilder builder;
  const auto row = [](std::uint64_t start, std::uint32_t text) {
    return Row{.time = kBase + start * 1'000'000 + 5, .span = 5, .text = text};
  };
  builder.process({.host = "h", .process = 1, .realtime_ns = kBase, .monotonic_ns = 500})
      .text(1, "aten::mm, seq = 4")
      .text(2, "MmBackward0, seq = 4")
      .text(3, "MmBackward0, seq = 99");
  // Threads are written one by one: backward may precede forward. Number 4 comes on two
  // threads and, of one, in two passes.
  builder.rows(80, {row(100, 2), row(120, 3), row(300, 2)})
      .clock(kBase + 400'000'000, 400'000'500)
      .rows(70, {row(10, 1), row(250, 1)})
      .rows(71, {row(50, 1)})
      .clock(kBase + 1'400'000'000, 1'400'000'500)
      .trailer(6, 0);
  const auto file = read(builder.bytes());
  std::vector<HostOp> backward;
  for (const HostOp& op : file->rank().host_ops)
    if (file->name(op) == "MmBackward0") backward.push_back(op);
  REQUIRE(backward.size() == 3);
  CHECK(file->rank().host_ops.size() == 6);
  CHECK(backward[0].start.seconds().ms() == Approx(100));
  CHECK(backward[0].forward_thread == 71u);
  CHECK(backward[0].sequence == 4u);
  CHECK_FALSE(backward[1].forward_thread);  // forward was not recorded: the number means nothing
  CHECK_FALSE(backward[1].sequence);
  CHECK(backward[2].forward_thread == 70u);
  CHECK(file->thread(backward[0]) == "80");
}

}  // namespace
}  // namespace rehearse::ingest
