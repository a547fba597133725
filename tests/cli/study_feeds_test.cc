// study: pipelines and caches in the place of jobs.
#include <map>

#include <catch2/catch.hpp>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using Catch::Contains;
using test::Json;
using test::Ran;

/// Both sides of a line can be replaced.
std::string feeds_text(const std::string& from = "", const std::string& to = "") {
  std::string text =
      "name: feeds\n"
      "source: by hand\n"
      "sweep: {workers: [1, 4]}\n"
      "pipelines:\n"
      "  plain:\n"
      "    samples: 100\n"
      "    stages: [{name: decode, workers: $workers, time: 20 ms}, {name: use, time: 5 ms, most: "
      "{workers: 1}}]\n"
      "caches:\n"
      "  ahead: {stream: {kind: recorded, file: keys.txt}, policy: next_use, share: 0.5}\n"
      "measure:\n"
      "  by_workers: rate(plain) / allowed_rate(plain)\n"
      "  seconds: epoch_time(plain) / epoch_time(plain)\n"
      "  gain: tuned_rate(plain) * workers / rate(plain)\n"
      "  hits: hit_ratio(ahead) * accesses(ahead) + misses(ahead) - reads(ahead)\n"
      "expect:\n"
      "  measure: hits\n"
      "  value: 3\n"
      "  tolerance: 1e-9\n";
  if (from.empty()) return text;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

Ran run_feeds(const std::string& text, const std::vector<std::string>& more = {}) {
  // The worked example of docs/concepts/store.md: four keys, two held, 3 hits of 7.
  std::string with_keys = text;
  if (const std::size_t at = with_keys.find("keys.txt"); at != std::string::npos)
    with_keys.replace(at, 8, test::write_scratch("keys.txt", "1 2 3\n1 4\n1 2\n").string());
  std::vector<std::string> arguments = {"study", test::write_scratch("f.yaml", with_keys).string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::rehearse(arguments);
}

double measured(const Json& point, const std::string& name) {
  for (const Json& one : point["measured"])
    if (one["name"] == name) return one["got"]["value"];
  FAIL("no measure " << name);
  return 0;
}

TEST_CASE("study: what is measured of pipelines and caches") {
  const Ran ran = run_feeds(feeds_text(), {"--format", "json"});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  const Json study = Json::parse(ran.out)["studies"][0];
  CHECK(study["verdict"] == "matched");
  REQUIRE(study["points"].size() == 2);
  for (const Json& point : study["points"]) {
    CHECK(measured(point, "by_workers") == Approx(1).epsilon(0.01));
    CHECK(measured(point, "seconds") == Approx(1));
    CHECK(measured(point, "hits") == Approx(3));
    // 200 samples a second, of one worker 50.
    CHECK(measured(point, "gain") == Approx(4).epsilon(0.02));
  }
}

TEST_CASE("study: mistakes in pipelines and caches are one line") {
  const auto refused = [](const std::string& from, const std::string& to) {
    const Ran ran = run_feeds(feeds_text(from, to));
    CHECK(ran.code == 1);
    CHECK(ran.out.empty());
    return ran.errors;
  };
  CHECK_THAT(refused("rate(plain) /", "rate(plan) /"),
             Contains("unknown pipeline 'plan'") && Contains("plain"));
  CHECK_THAT(refused("hit_ratio(ahead)", "hit_ratio(plain)"), Contains("unknown cache 'plain'"));
  CHECK_THAT(refused("allowed_rate", "alowed_rate"), Contains("allowed_rate"));
  CHECK_THAT(refused("* workers", "* wokers"), Contains("'wokers' is no parameter"));
  CHECK_THAT(refused("time: 20 ms", "time: 20"), Contains("plain") && Contains("time"));
  CHECK_THAT(refused("{name: decode, ", "{nam: decode, "), Contains("plain"));
  CHECK_THAT(refused("share: 0.5", "share: 1.5"), Contains("ahead: caches.ahead.share: 1.5"));
  CHECK_THAT(refused("file: keys.txt", "file: none.txt"), Contains("ahead"));
  CHECK_THAT(refused("kind: recorded", "kind: recorde"), Contains("did you mean 'recorded'"));
  CHECK_THAT(refused("{kind: recorded, file: keys.txt}",
                     "{kind: zipf, keys: 1000000, batch: 1000000, batches: 1000, exponent: 1}"),
             Contains("1e+09 accesses") && Contains("smaller copy"));
  CHECK_THAT(refused("{kind: recorded, file: keys.txt}",
                     "{kind: zipf, keys: 100, batch: 10, batches: 10}"),
             Contains("exponent"));
  CHECK_THAT(refused("policy: next_use", "policy: lfu, readahead: 2"), Contains("readahead of 2"));
  CHECK_THAT(refused("    samples: 100\n", ""), Contains("no length"));
}

TEST_CASE("study: what feeds jobs, published systems") {
  const std::map<std::string, std::size_t> fitted_of = {{"solar", 0},
                                                        {"chunked-streaming", 0},
                                                        {"concurrent-data-loader", 1},
                                                        {"envpool-async", 4},
                                                        {"envpool-sync", 5},
                                                        {"envpool-subprocess", 0},
                                                        {"madrona", 0},
                                                        {"parameter-server-null-step", 1},
                                                        {"backup-workers", 1},
                                                        {"serverless-fl", 0}};
  for (const auto& [file, fitted] : fitted_of) {
    const Ran ran = test::rehearse({"study", "studies/" + file + ".yaml", "--format", "json"});
    INFO(file << ": " << ran.errors);
    REQUIRE(ran.code == 0);
    const Json study = Json::parse(ran.out)["studies"][0];
    CHECK(study["verdict"] == "matched");
    CHECK(study["fitted"].size() == fitted);
  }
  // Of a curve whose points are not known nothing is claimed.
  const Ran numa = test::rehearse({"study", "studies/envpool-numa.yaml", "--format", "json"});
  CHECK(Json::parse(numa.out)["studies"][0]["verdict"] == "shown");
  // What was solved for is no match.
  const Ran kml = test::rehearse({"study", "studies/kml.yaml", "--format", "json"});
  CHECK(Json::parse(kml.out)["studies"][0]["verdict"] == "shown");
  // Its points are solved for by threads, of which the solver knows nothing: no word on stdout.
  const Ran plumber = test::rehearse({"study", "studies/plumber.yaml", "--format", "json"});
  CHECK(plumber.code == 0);
  const Json study = Json::parse(plumber.out)["studies"][0];
  CHECK(study["verdict"] == "shown");
  for (const Json& point : study["points"])
    CHECK(measured(point, "gain") == Approx(48 * 0.83 * 1.02).epsilon(0.02));
}

}  // namespace
}  // namespace rehearse
