// The worked examples of docs/concepts/serving.md, serving-load.md and serving-pools.md give what they state.
#include <cstdio>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "sim/serving/pools.h"
#include "tests/support/data.h"
#include "tests/support/linear_pricer.h"
#include "tests/support/pages.h"

namespace rehearse {
namespace {

/// The steps of an example.
std::vector<std::string> steps_of(const test::Block& example) {
  serving::Rules rules{.overlapped = false, .blocks = 100};
  test::LinearPricer pricer;
  std::vector<serving::Request> requests;
  for (const std::string& line : example.lines) {
    INFO(line);
    double ms = 0;
    int priority = 0;
    long long tokens = 0, input = 0, output = 0;
    const auto time = [&] { return Picoseconds::from(Seconds::ms(ms)); };
    if (std::sscanf(line.c_str(), "tokens_per_step %lld", &tokens) == 1) {
      rules.tokens_per_step = tokens;
    } else if (std::sscanf(line.c_str(), "rows %lld", &tokens) == 1) {
      rules.most_rows = tokens;
    } else if (std::sscanf(line.c_str(), "prefix_cache of blocks of %lld tokens", &tokens) == 1) {
      rules.prefix_cache = true;
      rules.block_tokens = rules.prefix_tokens = tokens;
    } else if (line == "scheduling_policy priority") {
      rules.by_priority = true;
    } else if (line == "drop") {
      rules.drops = true;
    } else if (std::sscanf(line.c_str(), "step %lf ms", &ms) == 1) {
      pricer.step = Seconds::ms(ms);
    } else if (std::sscanf(line.c_str(), "prompt_token %lf ms", &ms) == 1) {
      pricer.token = Seconds::ms(ms);
    } else if (std::sscanf(line.c_str(), "decode_row %lf ms", &ms) == 1) {
      pricer.row = Seconds::ms(ms);
    } else if (std::sscanf(line.c_str(), "request %lf ms %lld %lld priority %d", &ms, &input,
                           &output, &priority) >= 3) {
      requests.push_back(
          {.planned = time(), .input = input, .output = output, .priority = priority});
    } else if (std::sscanf(line.c_str(), "deadline %lf ms", &ms) == 1) {
      requests.back().deadline = time();
    } else if (std::sscanf(line.c_str(), "turn %lf ms %lld %lld", &ms, &input, &output) == 3) {
      const std::int64_t before = requests.back().input + requests.back().output;
      requests.push_back(
          {.input = before + input, .output = output, .follows = true, .think = time()});
    } else {
      FAIL("not understood");
    }
  }
  const Result<serving::Run> run = serving::run(rules, pricer, requests);
  REQUIRE(run);
  std::vector<std::string> steps;
  for (const serving::StepRun& s : run->steps)
    steps.push_back(fmt::format("{:g} ms – {:g} ms: {} prompt tokens of {}, {} decode rows",
                                s.start.seconds().ms(), (s.start + s.each * s.steps).seconds().ms(),
                                s.prompt_tokens, s.prompts, s.decode_rows));
  return steps;
}

TEST_CASE("the worked examples of a server give the steps on their pages") {
  for (const auto& [page, count] : {std::pair("serving.md", 1u), {"serving-load.md", 2u}}) {
    INFO(page);
    const std::filesystem::path path = test::source_file(fmt::format("docs/concepts/{}", page));
    const auto examples = test::blocks_of(path, "server"), steps = test::blocks_of(path, "steps");
    REQUIRE(examples.size() == count);
    REQUIRE(steps.size() == count);
    for (std::size_t i = 0; i < examples.size(); ++i)
      CHECK(steps_of(examples[i]) == steps[i].lines);
  }
}

TEST_CASE("the worked example of tiers loads what its page says") {
  const std::filesystem::path page = test::source_file("docs/concepts/serving-tiers.md");
  const auto examples = test::blocks_of(page, "tiers"), results = test::blocks_of(page, "loads");
  REQUIRE(examples.size() == 1);
  REQUIRE(results.size() == 1);
  serving::Rules rules{.overlapped = false, .prefix_cache = true, .tiers = {{}}};
  test::LinearPricer pricer;
  std::vector<serving::Request> requests;
  for (const std::string& line : examples.front().lines) {
    INFO(line);
    double ms = 0;
    long long number = 0;
    char name = 0;
    if (std::sscanf(line.c_str(), "blocks %lld", &number) == 1)
      rules.blocks = number;
    else if (std::sscanf(line.c_str(), "host %lld", &number) == 1)
      rules.tiers[0].blocks = number;
    else if (std::sscanf(line.c_str(), "step %lf ms", &ms) == 1)
      pricer.step = Seconds::ms(ms);
    else if (std::sscanf(line.c_str(), "prompt_token %lf ms", &ms) == 1)
      pricer.token = Seconds::ms(ms);
    else if (std::sscanf(line.c_str(), "block %lf ms", &ms) == 1)
      rules.tiers[0].block = Seconds::ms(ms);
    else if (std::sscanf(line.c_str(), "request %lld %c", &number, &name) == 2)
      requests.push_back({.input = number, .prefix = {static_cast<std::uint64_t>(name)}});
    else
      FAIL("not understood");
  }
  const auto run = serving::run(rules, pricer, requests, {.most_in_flight = 1});
  REQUIRE(run);
  std::vector<std::string> loads;
  for (const serving::Served& r : run->served)
    loads.push_back(fmt::format("{:g} ms – {:g} ms: {} tokens reused, {} of them from the host",
                                r.sent.seconds().ms(), r.last.seconds().ms(), r.reused, r.loaded));
  CHECK(loads == results.front().lines);
}

/// The passes of the requests of an example through two pools.
std::vector<std::string> passes_of(const test::Block& example) {
  const serving::Rules rules{.overlapped = false, .blocks = 100};
  test::LinearPricer pricer;
  serving::Transfer transfer;
  std::vector<serving::Request> requests;
  for (const std::string& line : example.lines) {
    INFO(line);
    double ms = 0;
    long long layers = 0, input = 0, output = 0;
    if (std::sscanf(line.c_str(), "step %lf ms", &ms) == 1)
      pricer.step = Seconds::ms(ms);
    else if (std::sscanf(line.c_str(), "prompt_token %lf ms", &ms) == 1)
      pricer.token = Seconds::ms(ms);
    else if (std::sscanf(line.c_str(), "link_token %lf ms", &ms) == 1)
      transfer.out.token = Seconds::ms(ms);
    else if (std::sscanf(line.c_str(), "latency %lf ms", &ms) == 1)
      transfer.latency = Seconds::ms(ms);
    else if (std::sscanf(line.c_str(), "layers %lld", &layers) == 1)
      transfer.layers = layers;
    else if (std::sscanf(line.c_str(), "request %lf ms %lld %lld", &ms, &input, &output) == 3)
      requests.push_back({Picoseconds::from(Seconds::ms(ms)), input, output});
    else
      FAIL("not understood");
  }
  const auto runs = serving::run_pools({rules, pricer}, {rules, pricer}, transfer, requests);
  REQUIRE(runs);
  std::vector<std::string> passes;
  for (const serving::Served& r : runs->front().served)
    passes.push_back(fmt::format(
        "prompt until {:g} ms, arrived at {:g} ms, first token at {:g} ms, last token at {:g} ms",
        r.prefilled.seconds().ms(), r.arrived.seconds().ms(), r.first.seconds().ms(),
        r.last.seconds().ms()));
  return passes;
}

TEST_CASE("the worked examples of two pools pass as their page says") {
  const std::filesystem::path page = test::source_file("docs/concepts/serving-pools.md");
  const auto examples = test::blocks_of(page, "pools"), passes = test::blocks_of(page, "passes");
  REQUIRE(examples.size() == 2);
  REQUIRE(passes.size() == 2);
  for (std::size_t i = 0; i < examples.size(); ++i)
    CHECK(passes_of(examples[i]) == passes[i].lines);
}

}  // namespace
}  // namespace rehearse
