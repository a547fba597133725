// Loops found in sequences of words: clean, noisy, and none at all.
#include "profiler/replay/periods.h"

#include <random>

#include <catch2/catch.hpp>

#include "profiler/replay/steps.h"
#include "tests/support/synthetic_job.h"
#include "tests/support/trace_builder.h"

namespace rehearse::replay {
namespace {

using Words = std::vector<std::uint32_t>;

/// A step of a network: a batch in (1), layers of ten kernels, a loss (2), the layers backward with
/// twenty kernels each, an optimizer (3, and 4 for each layer).
Words step(int layers) {
  Words words = {1};
  for (int layer = 0; layer < layers; ++layer)
    for (std::uint32_t k = 0; k < 10; ++k) words.push_back(10 + k % 7);
  words.push_back(2);
  for (int layer = 0; layer < layers; ++layer)
    for (std::uint32_t k = 0; k < 20; ++k) words.push_back(30 + k % 9);
  words.push_back(3);
  for (int layer = 0; layer < layers; ++layer) words.push_back(4);
  return words;
}

Words repeated(const Words& turn, int times) {
  Words words;
  for (int k = 0; k < times; ++k) words.insert(words.end(), turn.begin(), turn.end());
  return words;
}

/// Distances between turns, each within `slack` of the period.
void check_period(const std::vector<std::size_t>& turns, std::size_t count, std::size_t period,
                  std::size_t slack = 0) {
  REQUIRE(turns.size() >= count);
  for (std::size_t k = 1; k < turns.size(); ++k) {
    CHECK(turns[k] - turns[k - 1] >= period - slack);
    CHECK(turns[k] - turns[k - 1] <= period + slack);
  }
}

TEST_CASE("steps of a network repeat as a whole, its layers do not count") {
  for (const int layers : {1, 4, 24, 96}) {
    INFO(layers << " layers");
    const Words turn = step(layers);
    check_period(find_turns(repeated(turn, 5)), 5, turn.size());
  }
}

TEST_CASE("a recording may begin and end within a step") {
  const Words turn = step(6);
  Words words = repeated(turn, 6);
  words.erase(words.begin(), words.begin() + 57);
  words.resize(words.size() - 100);
  check_period(find_turns(words), 4, turn.size());
}

TEST_CASE("missing, additional or different single kernels do not hide the steps") {
  const Words turn = step(12);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    Words noisy;
    for (const std::uint32_t word : repeated(turn, 8)) switch (random() % 100) {
        case 0: break;  // missing
        case 1:
          noisy.push_back(word);
          noisy.push_back(900);  // one too many
          break;
        case 2: noisy.push_back(901 + static_cast<std::uint32_t>(random() % 3)); break;
        default: noisy.push_back(word);
      }
    check_period(find_turns(noisy), 8, turn.size(), turn.size() / 20);
  }
}

TEST_CASE("without a kernel that occurs once per step, a sequence of kernels marks it") {
  // A A B B | A A B B: the change from B to A.
  check_period(find_turns(repeated({1, 1, 2, 2}, 12)), 10, 4);
}

TEST_CASE("an op in every second step is not a step") {
  Words words;
  const Words turn = step(3);
  for (int k = 0; k < 12; ++k) {
    words.insert(words.end(), turn.begin(), turn.end());
    if (k % 2 == 0) words.push_back(77);
  }
  check_period(find_turns(words), 12, turn.size(), 1);
}

TEST_CASE("no loop, no turns") {
  CHECK(find_turns({}).empty());
  CHECK(find_turns(Words{1, 2, 3}).empty());
  CHECK(find_turns(repeated(step(4), 2)).empty());  // twice is no habit
  CHECK(find_turns(Words(500, 7)).empty());         // one kernel over and over tells nothing
  for (const std::uint32_t kinds : {3U, 10U, 100U, 1000U})
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      INFO(kinds << " kinds, seed " << seed);
      std::mt19937_64 random(seed);
      Words words;
      for (int i = 0; i < 3000; ++i) words.push_back(static_cast<std::uint32_t>(random() % kinds));
      CHECK(find_turns(words).empty());
    }
  Words growing;  // a loop whose turns grow: no two alike
  for (std::uint32_t k = 1; k < 40; ++k)
    for (std::uint32_t i = 0; i < k; ++i) growing.push_back(i == 0 ? 1 : 100 * k + i);
  CHECK(find_turns(growing).empty());
}

/// Kernels launched 20 us apart and nothing else.
trace::Trace launched(const Words& words) {
  trace::Trace trace;
  test::RankBuilder rank(trace);
  for (std::size_t k = 0; k < words.size(); ++k) {
    const auto id = static_cast<std::uint32_t>(k + 1);
    rank.call("cudaLaunchKernel", 20.0 * static_cast<double>(k), 5, id);
    rank.kernel("kernel " + std::to_string(words[k]), 20.0 * static_cast<double>(k) + 8, 10, id);
  }
  return trace;
}

TEST_CASE("a recording of kernels alone has the steps that its kernels repeat in") {
  const Words turn = step(4);
  const trace::Trace trace = launched(repeated(turn, 5));
  const Steps steps = find_steps(Recording(trace, 0));
  CHECK(steps.source == StepSource::kKernels);
  REQUIRE(steps.steps.size() == 5);
  const double us = 20.0 * static_cast<double>(turn.size());
  for (std::size_t k = 0; k + 1 < 5; ++k)
    CHECK((steps.steps[k].end - steps.steps[k].start).seconds().us() == Approx(us));
  CHECK(steps.steps.back().partial);
}

TEST_CASE("if the program names its work, repeated kernels are not steps") {
  trace::Trace trace = launched(repeated(step(4), 5));
  test::RankBuilder rank(trace);
  const trace::HostOp named = rank.host("aten::mm", 1, 1);
  trace.ranks.pop_back();
  trace.ranks[0].host_ops.push_back(named);
  CHECK(find_steps(Recording(trace, 0)).source == StepSource::kSpan);
}

/// Turns of a decode loop: tokens are copied in, a graph of six kernels runs, tokens are copied out.
trace::Trace decode_loop(int turns, int graphs, bool copies) {
  trace::Trace trace;
  test::RankBuilder rank(trace);
  rank.host("aten::embedding", 0, 1);  // named work
  std::uint32_t id = 0;
  for (int turn = 0; turn < turns; ++turn) {
    double at = 1000.0 * turn;
    if (copies) {
      rank.call("cudaMemcpyAsync", at, 5, ++id);
      rank.copy(trace::CopyDirection::kHostToDevice, trace::HostMemory::kPinned, at + 8, 2, 64, id);
    }
    for (int g = 0; g < graphs; ++g) {
      rank.call("cudaGraphLaunch", at += 20, 5, ++id);
      for (int k = 0; k < 6; ++k)
        rank.kernel("graph " + std::to_string(g) + " kernel " + std::to_string(k), at + 60 + 10 * k,
                    9, id);
    }
  }
  return trace;
}

TEST_CASE("launches of a graph that repeat are the steps of a decode loop") {
  for (const int graphs : {1, 2}) {
    const trace::Trace trace = decode_loop(5, graphs, true);
    const Steps steps = find_steps(Recording(trace, 0));
    CHECK(steps.source == StepSource::kGraphs);
    REQUIRE(steps.steps.size() == 5);
    CHECK((steps.steps[1].end - steps.steps[1].start).seconds().us() == Approx(1000));
    CHECK(steps.steps.back().partial);
  }
  // Without tokens they may be the layers of one pass.
  const trace::Trace layers = decode_loop(5, 1, false);
  CHECK(find_steps(Recording(layers, 0)).source == StepSource::kSpan);
}

TEST_CASE("kernels without order are one step") {
  Words words;
  std::mt19937_64 random(5);
  for (int i = 0; i < 400; ++i) words.push_back(static_cast<std::uint32_t>(random() % 20));
  const trace::Trace trace = launched(words);
  CHECK(find_steps(Recording(trace, 0)).source == StepSource::kSpan);
}

TEST_CASE("a job with records of calls and devices alone has its steps") {
  const trace::Trace trace = test::make_job({.steps = 6, .layers = 5, .operators = false});
  const Steps steps = find_steps(Recording(trace, 0));
  CHECK(steps.source == StepSource::kRepetition);  // each step copies a batch in
  CHECK(steps.steps.size() == 6);
}

}  // namespace
}  // namespace rehearse::replay
