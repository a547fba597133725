// Every pair of edits of whatif, in both orders of the options.
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;
using EditWords = std::vector<std::string>;

/// What a run says of the step: its times, and the edits that change none.
struct PairRun {
  int code;
  Json steps = {};
  std::string idle = {}, errors = {};
};

PairRun run_pair(const std::string& recording, const EditWords& edits) {
  EditWords words = {"whatif", recording, "--format", "json"};
  words.insert(words.end(), edits.begin(), edits.end());
  const test::Ran ran = test::rehearse(words);
  PairRun said{.code = ran.code, .errors = ran.errors};
  if (ran.code != 0) return said;
  const Json document = Json::parse(ran.out);
  said.steps = document["ranks"];
  for (const Json& warning : document["warnings"]) said.idle += warning.get<std::string>() + "\n";
  return said;
}

const std::string kPairLink = "latency=10us,rate=100GB/s";

/// An edit by every option, and several of some, with the work of each in the recording.
std::map<std::string, std::vector<EditWords>> edits_of_recordings() {
  return {{"examples/recordings/late_gradient.json",
           {{"--remove", "kernel=update_1"},
            {"--accumulation", "4"},
            {"--replace", "collective:150us"},
            {"--scale", "collective:0.5"},
            {"--scale", "kernel:2"},
            {"--straggler", "0:1.5"},
            {"--graph", "range=Optimizer*"},
            {"--insert", "collective:20us"},
            {"--asynchronous", "host=cudaDeviceSynchronize"},
            {"--own-stream", "kernel=update_1"},
            {"--network", kPairLink},
            {"--bucket", "8MB"},
            {"--sum-order", "ready"}}},
          {"examples/recordings/two_blocks.json",
           {{"--dtype", "kernel=flash*:fp32"},
            {"--samples", "16"},
            {"--sequence", "4096"},
            {"--accumulation", "4"},
            {"--remove", "range=layers.0"},
            {"--recompute", "range=layers.0"},
            {"--keep", "range=layers.1"},
            {"--fuse", "range=layers.1"},
            {"--own-stream", "kernel=flash_backward"},
            {"--own-stream", "kernel=flash_forward"},
            {"--network", kPairLink, "--data-parallel", "4"},
            {"--slice", "2g.20gb"}}},
          {"examples/ranks",
           {{"--samples", "16"},
            {"--remove", "copy"},
            {"--replace", "collective:100us"},
            {"--straggler", "0:2"},
            {"--straggler", "1:none"},
            {"--recompute", "range=aten::*"},
            {"--input-pipeline", "workers=1,load=aten::*"},
            {"--network", kPairLink}}}};
}

TEST_CASE("pairs of edits say what they do in both orders") {
  for (const auto& [recording, of] : edits_of_recordings()) {
    std::vector<PairRun> alone;
    for (const EditWords& edit : of) alone.push_back(run_pair(recording, edit));
    for (std::size_t a = 0; a < of.size(); ++a)
      for (std::size_t b = a + 1; b < of.size(); ++b) {
        const auto both = [&](const EditWords& first, const EditWords& second) {
          EditWords words = first;
          words.insert(words.end(), second.begin(), second.end());
          return run_pair(recording, words);
        };
        INFO(fmt::format("{}: {} {}", recording, fmt::join(of[a], " "), fmt::join(of[b], " ")));
        const bool twice = of[a][0] == "--network" && of[b][0] == "--network";
        if (twice) continue;
        const PairRun one = both(of[a], of[b]), other = both(of[b], of[a]);
        // The order of the options is none of the edits.
        CHECK(one.code == other.code);
        CHECK(one.steps == other.steps);
        CHECK(one.errors == other.errors);
        if (one.code != 0) {
          CHECK((one.code == 1 || one.code == 2));
          CHECK(one.errors.find('\n') == one.errors.size() - 1);
          continue;
        }
        // An edit that another one overwrites or hides is named.
        REQUIRE(alone[a].code == 0);
        REQUIRE(alone[b].code == 0);
        const auto named = [&](const EditWords& edit) {
          return one.idle.find(edit[0]) != std::string::npos;
        };
        if (one.steps == alone[a].steps) CHECK(named(of[b]));
        if (one.steps == alone[b].steps) CHECK(named(of[a]));
      }
  }
}

}  // namespace
}  // namespace rehearse
