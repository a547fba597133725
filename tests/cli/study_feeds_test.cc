// study: pipelines and caches instead of jobs.
#include <algorithm>
#include <map>

#include <catch2/catch.hpp>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"
#include "tests/support/study_run.h"

namespace rehearse {
namespace {

using Catch::Contains;
using test::Json;
using test::measured;
using test::Ran;

/// Both sides of a line can be replaced.
std::string feeds_text(const std::string& from = "", const std::string& to = "") {
  return test::replaced(
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
      "  twice:\n"
      "    stream: {segments: [{kind: runs, run: 10, keys: 1000000, batch: 10, batches: 3}, "
      "{kind: runs, run: 10, keys: 1000000, batch: 10, batches: 3}]}\n"
      "    share: 0.001\n"
      "  timed:\n"
      "    stream: {segments: [{kind: sequential, keys: 1000000, batch: 12, batches: 3}, "
      "{kind: runs, run: 1, keys: 1000000, batch: 12, batches: 3}], times: 1}\n"
      "    item: 1 MB\n"
      "    share: 0.0001\n"
      "    drive: {latency: 3 ms, rate: 1 GB/s}\n"
      "    prefetch: {ahead: 0, step: 10 ms, read: 1 ms, write: 1 ms}\n"
      "measure:\n"
      "  by_workers: rate(plain) / allowed_rate(plain)\n"
      "  seconds: epoch_time(plain) / epoch_time(plain)\n"
      "  gain: tuned_rate(plain) * workers / rate(plain)\n"
      "  bound: tuned_bound(plain) * workers / rate(plain)\n"
      "  reading: read_time(timed)\n"
      "  in_turn: batch_time(timed) / read_time(timed)\n"
      "  rhythm: batch_time(plain)\n"
      "  anew: misses(twice)\n"
      "  hits: hit_ratio(ahead) * accesses(ahead) + misses(ahead) - reads(ahead)\n"
      "expect:\n"
      "  measure: hits\n"
      "  value: 3\n"
      "  tolerance: 1e-9\n",
      from, to);
}

Ran run_feeds(const std::string& text, const std::vector<std::string>& more = {}) {
  // The worked example of docs/concepts/store.md: four keys, two held, 3 hits of 7.
  return test::run_study(test::with_file(text, "keys.txt", "1 2 3\n1 4\n1 2\n"), more);
}

TEST_CASE("study: measures of pipelines and caches") {
  const Json study = test::document(run_feeds(feeds_text(), {"--format", "json"}))["studies"][0];
  CHECK(study["verdict"] == "mechanism");
  REQUIRE(study["points"].size() == 2);
  // 20 ms, by one worker or by four, whose rate is then that of the next stage.
  CHECK(measured(study["points"][0], "rhythm") == Approx(0.020).epsilon(0.01));
  CHECK(measured(study["points"][1], "rhythm") == Approx(0.005).epsilon(0.01));
  for (const Json& point : study["points"]) {
    CHECK(measured(point, "by_workers") == Approx(1).epsilon(0.01));
    CHECK(measured(point, "seconds") == Approx(1));
    // Segments alike do not ask for the same keys.
    CHECK(measured(point, "anew") == 60);
    CHECK(measured(point, "hits") == Approx(3));
    // 200 samples a second, of one worker 50.
    CHECK(measured(point, "gain") == Approx(4).epsilon(0.02));
    CHECK(measured(point, "bound") == Approx(4).epsilon(0.01));
    // Six batches of 12 reads, 4 ms each; of a batch, 12 ms of units and 10 ms of work.
    CHECK(measured(point, "reading") == Approx(0.288));
    CHECK(measured(point, "in_turn") == Approx((10 + 12) / 288.0));
  }
}

/// The law of a slice as rehearse mig predict has it, from steps on the whole GPU alone.
TEST_CASE("study: a slice takes as long as mig predict says") {
  const std::string law =
      "name: slices\nsource: by hand\n"
      "sweep: {profile: [1g.5gb, 3g.20gb]}\n"
      "slices:\n"
      "  job: {device: a100_sxm4_40, profile: $profile, work: transformer, inference: true, batch: "
      "32, whole: {1: 10 ms, 4: 10 ms, 16: 11 ms, 32: 18 ms, 64: 34 ms}}\n"
      "measure: {time: slice_time(job), gain: collocation_gain(job)}\n"
      "expect: {measure: gain, range: [0, 7], sweep: within}\n";
  const Json study = test::document(run_feeds(law, {"--format", "json"}))["studies"][0];
  const Json predicted = test::document(
      test::rehearse({"mig", "predict", "examples/sharing/steps.csv", "--device", "a100_sxm4_40",
                      "--work", "transformer", "--inference", "--format", "json"}));
  for (const Json& point : study["points"]) {
    const auto slice = std::ranges::find_if(predicted["slices"], [&](const Json& s) {
      return s["profile"] == point["parameters"][0]["setting"];
    });
    REQUIRE(slice != predicted["slices"].end());
    const Json& same = (*slice)["points"][3];
    REQUIRE(same["batch"] == 32);
    CHECK(measured(point, "time") == Approx(double(same["step_time"]["value"])));
    CHECK(measured(point, "gain") == Approx(double(same["gain"])));
  }
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = law;
    return run_feeds(text.replace(text.find(from), from.size(), to)).errors;
  };
  CHECK_THAT(refused("1: 10 ms, 4: 10 ms, 16: 11 ms, ", ""), Contains("job: "));
  CHECK_THAT(refused("16: 11 ms", "x: 11 ms"), Contains("whole.x: is no batch"));
  CHECK_THAT(refused("1g.5gb, ", "1g.6gb, "), Contains("did you mean '1g.5gb'"));
  CHECK_THAT(refused("batch: 32, ", ""), Contains("job: ") && Contains("batch"));
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
  CHECK_THAT(refused("* workers", "* wokers"), Contains("'wokers' is not a parameter"));
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
  CHECK_THAT(refused("    item: 1 MB\n", ""), Contains("timed") && Contains("item"));
  CHECK_THAT(refused("    drive: {latency: 3 ms, rate: 1 GB/s}\n", ""), Contains("drive: {"));
  CHECK_THAT(refused("rate: 1 GB/s", "rate: 0 GB/s"), Contains("above 0"));
  CHECK_THAT(refused("latency: 3 ms", "latency: -3 ms"), Contains("latency"));
  CHECK_THAT(refused("ahead: 0", "ahead: -1"), Contains("ahead") && Contains("out of range"));
  CHECK_THAT(refused("read: 1 ms, ", ""), Contains("read"));
  CHECK_THAT(refused("    prefetch: {ahead: 0, step: 10 ms, read: 1 ms, write: 1 ms}\n", ""),
             Contains("timed") && Contains("take no time"));
  CHECK_THAT(refused("run: 1, ", ""), Contains("run") && Contains("is missing"));
  CHECK_THAT(refused("run: 1, ", "run: 2000000, "), Contains("1 to 1000000"));
  CHECK_THAT(refused("{kind: runs, run: 1, keys: 1000000", "{kind: runs, run: 1, keys: 1000"),
             Contains("1000, of the first segment 1000000"));
  CHECK_THAT(refused("times: 1", "times: 900000"), Contains("times") && Contains("1 to 10000"));
  CHECK_THAT(refused("batches: 3}], times: 1", "batches: 3000}], times: 10000"),
             Contains("3.6e+08 accesses") && Contains("smaller copy"));
  CHECK_THAT(refused("policy: next_use", "around: maybe"), Contains("around"));
}

/// The graph of docs/formats/study.md, and a flow; one run of it in four takes twice as long.
std::string lists_text(const std::string& from = "", const std::string& to = "") {
  return test::replaced(
      "name: lists\n"
      "source: by hand\n"
      "sweep: {pause: [500 ms], law: [fair, coflow, echelon]}\n"
      "jobs:\n"
      "  pipeline:\n"
      "    graph:\n"
      "      division: $law\n"
      "      links: {link: 1 B/s}\n"
      "      ops:\n"
      "        - {name: make, repeat: 3, time: 1 s, on: producer}\n"
      "        - {name: send, repeat: 3, after: make, work: 2 B, through: link, group: all, due: "
      "{first: 2 s, every: 1 s}}\n"
      "        - {name: use, repeat: 3, after: send, time: $(2 * pause), on: consumer}\n"
      "pipelines:\n"
      "  rounds: {samples: 4, stages: [{name: work, workers: 4, time: 10 ms}, {name: batch, time: "
      "2 "
      "ms}]}\n"
      "flows:\n"
      "  act: {runs: 20000, steps: [{name: one, time: 3 s, fails: 0.25, retries: 1}]}\n"
      "measure:\n"
      "  seconds: makespan(pipeline)\n"
      "expect: {measure: seconds, range: [7, 11], sweep: within}\n",
      from, to);
}

TEST_CASE("study: a graph of ops, lists and their reductions, and quantities with a unit") {
  const auto got = [](const std::string& expression, std::size_t point = 2) {
    const Ran ran = run_feeds(lists_text("makespan(pipeline)", expression), {"--format", "json"});
    INFO(expression << ": " << ran.errors);
    REQUIRE(!ran.out.empty());
    return measured(Json::parse(ran.out)["studies"][0]["points"][point], "seconds");
  };
  CHECK(got("makespan(pipeline)", 0) == Approx(8.5).epsilon(1e-9));
  CHECK(got("makespan(pipeline)", 1) == Approx(10).epsilon(1e-9));
  CHECK(got("makespan(pipeline)", 2) == Approx(8).epsilon(1e-9));
  // The three are used at 4, 6 and 8 s.
  CHECK(got("sum(arrivals(pipeline))") == Approx(18));
  CHECK(got("quantile(arrivals(pipeline), 0.75)") == Approx(7));
  CHECK(got("10 s * share_under(arrivals(pipeline), 6 s + pause)") == Approx(20.0 / 3));
  CHECK(got("min(arrivals(pipeline), 9 s) + max([1 s, 2500 ms], pause)") == Approx(6.5));
  CHECK(got("mean([makespan(pipeline), 6 s])") == Approx(7));
  // All four are there after 10 ms, and leave the last stage one after another.
  CHECK(got("1000 * sum(arrivals(rounds))") == Approx(12 + 14 + 16 + 18));
  // A run takes 3 s, or 6 s with probability 1/4.
  CHECK(got("10 s * share_under(makespans(act), 4 s)") == Approx(7.5).epsilon(0.03));
  CHECK(got("quantile(makespans(act), 0.9) + 2 s") == Approx(8));
  const auto refused = [](const std::string& from, const std::string& to) {
    const Ran ran = run_feeds(lists_text(from, to));
    CHECK(ran.code == 1);
    CHECK(ran.out.empty());
    return ran.errors;
  };
  const std::string measure = "makespan(pipeline)";
  CHECK_THAT(refused(measure, "arrivals(pipeline)"), Contains("a list is not a number"));
  CHECK_THAT(refused(measure, "arrivals(pipeline) / 2"), Contains("a list is not a number"));
  CHECK_THAT(refused(measure, "quantile(arrivals(pipeline), 2)"), Contains("not a share; 0 to 1"));
  CHECK_THAT(refused(measure, "quantile(0.5)"), Contains("before the last argument"));
  CHECK_THAT(refused(measure, "share_under(arrivals(pipeline), 3)"),
             Contains("'s' and '' cannot be compared"));
  CHECK_THAT(refused(measure, "sum([1 s, 2])"), Contains("'s' and '' cannot be compared"));
  CHECK_THAT(refused(measure, "3 sec"), Contains("'3 sec' has no known unit"));
  CHECK_THAT(refused("$law", "fast"), Contains("division") && Contains("fast"));
  CHECK_THAT(refused("after: make", "after: mak"),
             Contains("'mak' is no op above") && Contains("'make'"));
  CHECK_THAT(refused("through: link", "through: lnk"), Contains("'lnk' is not a link"));
  CHECK_THAT(refused("work: 2 B, ", ""), Contains("through: carries nothing"));
  CHECK_THAT(refused("group: all, ", ""), Contains("due") && Contains("group: NAME"));
  CHECK_THAT(refused("after: make", "after: make, first: 2"), Contains("2 of 1 ops before it"));
}

TEST_CASE("study: minimum and maximum of several measures") {
  const auto got = [](const std::string& expression) {
    const Ran ran = run_feeds(feeds_text("  hits: ", "  both: " + expression + "\n  hits: "),
                              {"--format", "json"});
    INFO(expression << ": " << ran.errors);
    REQUIRE(ran.code == 0);
    return measured(Json::parse(ran.out)["studies"][0]["points"][1], "both");
  };
  CHECK(got("min(3, workers, 5)") == 3);
  CHECK(got("max(3, workers * 2) - min(1)") == 7);
  CHECK(got("min(rate(plain), allowed_rate(plain), tuned_rate(plain)) / rate(plain)") ==
        Approx(1).epsilon(0.01));
  const auto refused = [](const std::string& expression) {
    return run_feeds(feeds_text("  hits: ", "  both: " + expression + "\n  hits: ")).errors;
  };
  CHECK_THAT(refused("min(rate(plain), 3)"), Contains("'1/s' and '' cannot be compared"));
  CHECK_THAT(refused("min(3, 4"), Contains("is incomplete"));
  CHECK_THAT(refused("min()"), Contains("unexpected ')'"));
}

/// Both sides of a line can be replaced.
std::string controlled_text(const std::string& from = "", const std::string& to = "") {
  return test::replaced(
      "name: knobs\n"
      "source: by hand\n"
      "fidelity: closed\n"
      "sweep:\n"
      "  algorithm: [linear]\n"
      "  tokens: [512]\n"
      "jobs:\n"
      "  layer:\n"
      "    workload: {kind: transformer, hidden: 2048, layers: 1, heads: 16, feed_forward: 1, "
      "sequence: $tokens, vocabulary: 1024, experts: 128, experts_per_token: 2, "
      "expert_feed_forward: 2048}\n"
      "    training: {dtype: fp16, microbatch: 16, global_batch: 1024}\n"
      "    plan: {data: 64, expert: 64, collectives: {all_to_all: $algorithm}}\n"
      "    cluster: {device: a100_sxm4_80, devices_per_node: 8, nodes: 8, intra_node: nvswitch, "
      "inter_node: {kind: switch, links: 8, link: ib_hdr_200}}\n"
      "controllers:\n"
      "  exchange:\n"
      "    context: {recorded: [512, 4096]}\n"
      "    windows: 4\n"
      "    knob: algorithm\n"
      "    follows: tokens\n"
      "    choices: [linear, two_dimensional]\n"
      "    price: step_time(layer)\n"
      "  linear: {context: {recorded: [512, 4096]}, windows: 4, knob: algorithm, follows: tokens, "
      "choices: [linear], price: step_time(layer)}\n"
      "flows:\n"
      "  act: {steps: [{name: one, time: 3 s, poll: {first: 2 s}}, {name: two, time: 1 s, then: "
      "[{to: end, share: 1}]}]}\n"
      "measure:\n"
      "  known: known_price(exchange)\n"
      "  late: controlled_price(exchange) / known_price(exchange)\n"
      "  linear: fixed_price(linear)\n"
      "  usual: step_time(layer)\n"
      "  seconds: makespan(act)\n"
      "expect: {measure: late, range: [1, 10], sweep: within}\n",
      from, to);
}

// The prices of the controller are the step times of the same study with the parameters replaced.
TEST_CASE("study: a controller sets a parameter of a job, at the job's own price") {
  const auto point_of = [](const std::string& text) {
    return test::document(run_feeds(text, {"--format", "json"}))["studies"][0]["points"][0];
  };
  const auto usual = [&](const std::string& algorithm, const std::string& tokens) {
    std::string text = controlled_text("algorithm: [linear]", "algorithm: [" + algorithm + "]");
    text.replace(text.find("tokens: [512]"), 13, "tokens: [" + tokens + "]");
    return measured(point_of(text), "usual");
  };
  const double linear_few = usual("linear", "512"), linear_many = usual("linear", "4096"),
               planes_few = usual("two_dimensional", "512"),
               planes_many = usual("two_dimensional", "4096");
  CHECK(linear_few != planes_few);
  const Json point = point_of(controlled_text());
  CHECK(measured(point, "linear") == Approx(2 * (linear_few + linear_many)));
  CHECK(measured(point, "known") ==
        Approx(2 * (std::min(linear_few, planes_few) + std::min(linear_many, planes_many))));
  CHECK(measured(point, "seconds") == 5);
}

TEST_CASE("study: mistakes in controllers and flows are one line") {
  const auto refused = [](const std::string& from, const std::string& to) {
    const Ran ran = run_feeds(controlled_text(from, to));
    CHECK(ran.code == 1);
    CHECK(ran.out.empty());
    return ran.errors;
  };
  CHECK_THAT(refused("knob: algorithm", "knob: algoritm"),
             Contains("s.yaml:17:11: measure.known: exchange: controllers.exchange.knob: "
                      "'algoritm' is not a parameter of the sweep") &&
                 Contains("did you mean 'algorithm'"));
  CHECK_THAT(
      refused("    price: step_time(layer)\n  linear", "    price: known_price(linear)\n  linear"),
      Contains("depends on a controller"));
  CHECK_THAT(refused("    knob: algorithm\n    follows: tokens\n", ""),
             Contains("'step_time' depends on no choice") && Contains("knob: PARAMETER"));
  CHECK_THAT(refused("{recorded: [512, 4096]}", "{states: {each: 2, of: [{token: 1}]}}"),
             Contains("'token' is not a parameter"));
  CHECK_THAT(refused("{recorded: [512, 4096]}", "{states: {of: [512, 4096]}}"),
             Contains("either each or hazard"));
  CHECK_THAT(refused("two_dimensional]", "two_dimensional]\n    first: linea"),
             Contains("'linea' is not a choice") && Contains("did you mean 'linear'"));
  CHECK_THAT(refused("known_price(exchange)\n", "fixed_choice(exchange)\n"),
             Contains("'choice' is") && Contains("a number"));
  CHECK_THAT(refused("to: end", "to: on"), Contains("unknown step 'on'"));
  CHECK_THAT(refused("share: 1}", "share: 0.5}"), Contains("the shares sum to 0.5"));
  CHECK_THAT(refused("name: two", "name: one"), Contains("'one' is the name of another step"));
  CHECK_THAT(refused("to: end", "to: two"), Contains("no end"));
  CHECK_THAT(refused("first: 2 s", "first: 0 s"), Contains("first") && Contains("out of range"));
  CHECK_THAT(refused("time: 3 s, ", ""), Contains("time") && Contains("is missing"));
  CHECK_THAT(refused("makespan(act)", "makespan(at)"),
             Contains("unknown flow or graph of ops 'at'"));
}

TEST_CASE("study: the stream of keys that other workers hold") {
  const auto text = [](const std::string& partition) {
    return feeds_text("{kind: recorded, file: keys.txt}",
                      "{kind: graph, keys: 600, degree: 4, exponent: 0, fan_out: [3, 2], batch: 5, "
                      "batches: 50" +
                          partition + "}");
  };
  const auto accesses = [&](const std::string& partition) {
    std::string with = text(partition);
    with.replace(with.find("  hits: "), 0, "  all: accesses(ahead)\n");
    const Ran ran = run_feeds(with, {"--format", "json"});
    INFO(ran.errors);
    return measured(Json::parse(ran.out)["studies"][0]["points"][0], "all");
  };
  const double all = accesses("");
  CHECK(accesses(", partition: {workers: 4}") / (all - 250) == Approx(0.75).epsilon(0.05));
  CHECK(accesses(", communities: 4, inside: 1, partition: {workers: 4, by: communities}") == 0);
  const auto refused = [&](const std::string& partition) {
    const Ran ran = run_feeds(text(partition));
    CHECK(ran.code == 1);
    return ran.errors;
  };
  CHECK_THAT(refused(", partition: {workers: 4, worker: 4}"), Contains("4 of 4 workers"));
  CHECK_THAT(refused(", partition: {workers: 4, by: communities}"),
             Contains("1 communities among 4 workers"));
  CHECK_THAT(refused(", partition: {}"), Contains("workers: is missing"));
  CHECK_THAT(refused(", communities: 601"), Contains("1 to 600"));
  // Of the ring of the page, with two batches each key is a seed once; nine draws of two neighbours
  // reach both.
  const auto of_file = [&](const std::string& more) {
    const std::string ring =
        test::write_scratch("ring.txt", "0 1 2\n1 2 3\n2 3 4\n3 4 5\n4 5 0\n5 0 1\n").string();
    std::string with = feeds_text("{kind: recorded, file: keys.txt}",
                                  "{kind: graph, file: " + ring + ", batch: 3, " + more + "}");
    with.replace(with.find("  hits: "), 0, "  all: accesses(ahead)\n");
    return run_feeds(with, {"--format", "json"});
  };
  const auto all_of = [&](const std::string& more) {
    const Ran ran = of_file(more);
    INFO(ran.errors);
    return measured(Json::parse(ran.out)["studies"][0]["points"][0], "all");
  };
  CHECK(all_of("batches: 2") == 6);
  CHECK(all_of("batches: 2, fan_out: [9, 9]") == 12);
  CHECK(all_of("batches: 2, fan_out: [9, 9], partition: {workers: 1}") == 0);
  CHECK_THAT(of_file("batches: 2, partition: {workers: 2, by: communities}").errors,
             Contains("0 communities"));
  CHECK_THAT(of_file("batches: 90000000").errors, Contains("accesses at most"));
}

TEST_CASE("study: settings are solved for on threads, without output of the solver") {
  const Ran ran = test::rehearse(
      {"study",
       test::write_scratch("tuned.yaml",
                           "name: tuned\n"
                           "source: by hand\n"
                           "sweep: {cores: [2, 3, 4, 5, 6, 7]}\n"
                           "pipelines:\n"
                           "  plain:\n"
                           "    host: {cores: $cores}\n"
                           "    samples: 100\n"
                           "    stages:\n"
                           "      - {name: decode, time: 20 ms, ordered: false}\n"
                           "      - {name: augment, time: 1 ms, ordered: false}\n"
                           "measure: {at_optimum: tuned_rate(plain) / tuned_bound(plain)}\n"
                           "expect: {measure: at_optimum, value: 1, tolerance: 0.02}\n")
           .string(),
       "--format", "json"});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  const Json study = Json::parse(ran.out)["studies"][0];
  CHECK(study["verdict"] == "mechanism");
  CHECK(study["points"].size() == 6);
}

}  // namespace
}  // namespace rehearse
