// What the capture library knows of steps.
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "profiler/capture/recording.h"
#include "profiler/capture/steps.h"
#include "profiler/trace/recorder.h"

namespace rehearse::capture {
namespace {

Row at(std::uint64_t time) { return {.time = time}; }
StepText named(std::uint64_t number) { return StepText::of("step " + std::to_string(number)); }

bool run_step(std::uint64_t number, std::uint64_t begin, std::uint64_t end) {
  const bool step = open_step(named(number), at(begin));
  if (step) close_step(end);
  return step;
}

Options window(std::uint64_t first, std::uint64_t end) {
  Options options;
  options.first_step = first;
  options.end_step = end;
  return options;
}

TEST_CASE("a text is a step mark if the readers of traces treat it as one") {
  const auto check = [](const std::string& text) {
    INFO("'" << text << "'");
    CHECK(StepText::of(text).is_mark() == trace::is_step_name(text));
  };
  for (const char* text : {"step 7",
                           "step",
                           "train_step_7",
                           "ProfilerStep#7",
                           "STEP-9",
                           "iter:3",
                           "training_step 1",
                           "iteration_12",
                           "step[DECODE bs=32]",
                           "[",
                           "",
                           "7",
                           "step 7a",
                           "a step 7",
                           "stepping 1",
                           "steps",
                           "step #_:- 9",
                           "step                                      9",
                           "step 123456789012345678901234567",
                           "iteration 0000000000000000000000",
                           "step 7 [x]"})
    check(text);
  std::mt19937_64 random(11);
  constexpr std::string_view kPieces[] = {"step", "iter", "_",     "#", " ",
                                          "7",    "12",   "train", "[", "S"};
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (auto n = random() % 6; n > 0; --n) text += kPieces[random() % std::size(kPieces)];
    check(text);
  }
}

TEST_CASE("the number of a step is at the end of its name") {
  CHECK(StepText::of("step 7").number() == 7);
  CHECK(StepText::of("ProfilerStep#0").number() == 0);
  CHECK(StepText::of("train_step_0012").number() == 12);
  CHECK(StepText::of("step 12[bs=3]").number() == 12);
  CHECK(StepText::of("anything at all that is longer than a mark 99").number() == 99);
  CHECK_FALSE(StepText::of("step").has_number());
  CHECK(StepText::of("step 2147483645").number() == 2147483645);
  CHECK_FALSE(StepText::of("step 2147483648").has_number());
  CHECK_FALSE(StepText::of("step 99999999999999999999").has_number());
  CHECK(StepText::of("step 00000000000000000005").number() == 5);
}

TEST_CASE("steps that ended are remembered") {
  start_steps({});
  CHECK(steps_ended() == 0);
  Step step;
  CHECK_FALSE(ended_step(0, step));
  CHECK(run_step(7, 100, 150));
  REQUIRE(ended_step(0, step));
  CHECK(step.number == 7);
  CHECK(step.begin == 100);
  CHECK(step.end == 150);
  for (std::uint64_t i = 0; i < kRememberedSteps; ++i) run_step(i, i, i + 1);
  CHECK(steps_ended() == kRememberedSteps + 1);
  CHECK_FALSE(ended_step(0, step));
  REQUIRE(ended_step(kRememberedSteps, step));
  CHECK(step.number == kRememberedSteps - 1);
}

TEST_CASE("the outer mark counts, and an abandoned mark is not a step") {
  start_steps({});
  REQUIRE(open_step(named(1), at(10)));
  CHECK_FALSE(open_step(named(1), at(11)));
  CHECK_FALSE(open_step(StepText::of("ProfilerStep#1"), at(12)));
  close_step(20);
  CHECK(steps_ended() == 1);
  REQUIRE(open_step(named(2), at(21)));
  abandon_step();
  CHECK(steps_ended() == 1);
  CHECK(run_step(3, 30, 40));
  CHECK(steps_ended() == 2);
}

TEST_CASE("without a number in the name, the payload or a count gives the step number") {
  start_steps({});
  const auto number_of = [](StepText text, Row row) {
    REQUIRE(open_step(text, row));
    close_step(row.time + 1);
    Step step;
    REQUIRE(ended_step(steps_ended() - 1, step));
    return step.number;
  };
  const StepText plain = StepText::of("step");
  CHECK(number_of(plain, at(1)) == 0);
  CHECK(number_of(plain, {.time = 2, .payload = 40, .payload_kind = PayloadKind::kUint64}) == 40);
  CHECK(number_of(plain, {.time = 3, .payload = 41, .payload_kind = PayloadKind::kInt32}) == 41);
  CHECK(number_of(plain, {.time = 4, .payload = UINT64_MAX, .payload_kind = PayloadKind::kInt64}) ==
        1);
  CHECK(number_of(plain, {.time = 5, .payload = 9, .payload_kind = PayloadKind::kDouble}) == 2);
  CHECK(number_of(named(5), {.time = 6, .payload = 9, .payload_kind = PayloadKind::kUint64}) == 5);
}

TEST_CASE("without a window all times are included") {
  start_steps({});
  CHECK(recording_now());
  CHECK(in_window(0, 0));
  run_step(3, 10, 20);
  CHECK(in_window(5, UINT64_MAX));
  CHECK(recording_now());
}

TEST_CASE("the window goes from its first step to the end of its last one") {
  start_steps(window(10, 12));
  CHECK_FALSE(recording_now());
  run_step(8, 100, 200);
  CHECK_FALSE(in_window(0, UINT64_MAX - 1));
  REQUIRE(open_step(named(10), at(300)));
  CHECK(recording_now());
  CHECK(in_window(350, 350));
  CHECK(in_window(250, 310));        // reaches into it
  CHECK_FALSE(in_window(250, 299));  // late, and of before
  close_step(400);
  CHECK(in_window(420, 430));  // between two of its steps
  run_step(11, 450, 500);
  CHECK_FALSE(recording_now());
  CHECK(in_window(490, 600));  // late, and begun within
  CHECK_FALSE(in_window(500, 600));
  run_step(10, 700, 800);  // numbers that begin anew begin no other window
  CHECK_FALSE(recording_now());
  CHECK_FALSE(in_window(750, 760));
  CHECK(steps_in_window() == 2);
  CHECK(steps_ended() == 4);
}

TEST_CASE("a window whose last step never comes ends with the one before") {
  start_steps(window(10, 20));
  run_step(10, 100, 200);
  run_step(15, 210, 300);
  CHECK(recording_now());
  run_step(25, 310, 400);
  CHECK_FALSE(recording_now());
  CHECK(in_window(290, 295));
  CHECK_FALSE(in_window(300, 305));
  CHECK(steps_in_window() == 2);
}

TEST_CASE("a window that begins with the first step leaves out what was before") {
  start_steps(window(0, 1));
  CHECK_FALSE(in_window(5, 6));
  run_step(0, 10, 20);
  CHECK(in_window(10, 11));
  CHECK_FALSE(in_window(5, 6));
  start_steps(window(3, UINT64_MAX));
  run_step(3, 10, 20);
  run_step(1000, 30, 40);
  CHECK(recording_now());
}

TEST_CASE("a record belongs to the window by its time, however late it comes") {
  static_assert(kIsFact<DeviceRecord> && kIsFact<ContextRecord> && kIsFact<CommunicatorRecord> &&
                kIsFact<FactRecord>);
  static_assert(!kIsFact<KernelRecord> && !kIsFact<EventRecord> && !kIsFact<PowerRecord> &&
                !kIsFact<CollectiveKernelRecord> && !kIsFact<MemoryRecord>);
  const auto kernel = [](std::uint64_t start, std::uint64_t end) {
    KernelRecord record = {};
    record.start = start;
    record.end = end;
    return record;
  };
  start_steps(window(10, 11));
  CHECK(wanted(DeviceRecord{}));
  CHECK(wanted(FactRecord{}));
  CHECK_FALSE(wanted(EventRecord{}));  // it has no time: when it comes is all that is known
  CHECK_FALSE(wanted(kernel(0, 0)));
  run_step(9, 100, 200);
  run_step(10, 210, 300);
  run_step(11, 310, 400);
  CHECK_FALSE(wanted(kernel(150, 160)));
  CHECK(wanted(kernel(205, 215)));
  CHECK(wanted(kernel(250, 260)));
  CHECK(wanted(kernel(290, 350)));
  CHECK_FALSE(wanted(kernel(300, 350)));
  CHECK(wanted(kernel(0, 0)));
  CHECK(wanted(EventRecord{}));
  PowerRecord power = {};
  power.time = 305;
  CHECK_FALSE(wanted(power));
  power.time = 295;
  CHECK(wanted(power));
  CHECK(time_of(power) == 295);
  CHECK(time_of(kernel(205, 215)) == 215);
  CHECK(time_of(EventRecord{}) == 0);
  CHECK(wanted(Row{.time = 320, .span = 30}));  // a range that began within
  CHECK_FALSE(wanted(Row{.time = 320, .span = 10}));
  CHECK_FALSE(wanted(Row{.time = 320, .kind = RowKind::kMark}));
  CHECK(wanted(Row{.time = 320, .kind = RowKind::kEnd}));
  CHECK(wanted(Row{.time = 320, .kind = RowKind::kCategoryName}));
  CHECK(wanted(Row{.time = 290, .kind = RowKind::kOpen}));
  CHECK_FALSE(wanted(Row{.time = 310, .kind = RowKind::kOpen}));
}

TEST_CASE("a mark that is called something else at its end was no step") {
  start_steps({});
  const auto state = std::make_unique<ThreadState>();
  const auto chunk = std::make_unique<Chunk>();
  state->chunk = chunk.get();
  const auto open = [&](std::string_view name) {
    push(*state, 0, [&](Row& row) { row.text = text_number(*state, name); });
  };
  const auto close = [&](std::string_view name) {
    pop(*state, 0, [&](Row& row) {
      if (!name.empty()) row.text = text_number(*state, name);
    });
  };
  open("step 1");
  open("inside");
  close("");
  close("");
  CHECK(steps_ended() == 1);
  open("step 2");
  close("after the last step");
  CHECK(steps_ended() == 1);
  open("step 3");
  close("step 4");
  CHECK(steps_ended() == 2);
  CHECK(chunk->used == 4);  // all of them are rows
  step_domain = 77;
  push(*state, 77, [&](Row& row) { row.text = text_number(*state, "batch 9"); });
  pop(*state, 77, [](Row&) {});
  step_domain = UINT32_MAX;
  Step step;
  REQUIRE(ended_step(2, step));
  CHECK(step.number == 9);
}

int begun = 0, ended = 0;

TEST_CASE("the begin and the end of the window are each reported once") {
  start_steps(window(2, 4));
  begun = ended = 0;
  on_window([] { ++begun; }, [] { ++ended; });
  run_step(1, 10, 20);
  CHECK(begun == 0);
  run_step(2, 30, 40);
  CHECK(begun == 1);
  CHECK(ended == 0);
  run_step(3, 50, 60);
  run_step(4, 70, 80);
  run_step(2, 90, 95);
  CHECK(begun == 1);
  CHECK(ended == 1);
  // Who asks late is told at once.
  on_window([] { ++begun; }, [] { ++ended; });
  CHECK(begun == 2);
  CHECK(ended == 2);
  start_steps({});
  on_window([] { ++begun; }, [] { ++ended; });
  CHECK(begun == 3);
  CHECK(ended == 2);
  on_window(nullptr, nullptr);
}

}  // namespace
}  // namespace rehearse::capture
