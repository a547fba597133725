// study: graphs that are divided among workers.
#include <string>
#include <vector>

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

/// The worked example of docs/concepts/partition.md, all of it on one of the two workers.
std::string graphs_text(const std::string& from = "", const std::string& to = "") {
  return test::replaced(
      "name: graphs\n"
      "source: by hand\n"
      "sweep: {workers: [1, 2]}\n"
      "graphs:\n"
      "  ring:\n"
      "    file: ring.txt\n"
      "    partition: {workers: $workers, by: random}\n"
      "    widths: [100, 20, 3]\n"
      "    cluster: {device: v100_sxm2_16, nodes: 2, inter_node: ethernet}\n"
      "  made: {keys: 900, degree: 5, exponent: 0.5, partition: {workers: $workers, by: fennel}}\n"
      "measure:\n"
      "  expected: expected_halo(ring)\n"
      "  bytes: exchanged(ring)\n"
      "  halo: halo(ring)\n"
      "  time: epoch_time(ring)\n"
      "  shape: cut(made) * fullest(made)\n"
      "expect:\n"
      "  measure: expected\n"
      "  range: [0, 4.5]\n"
      "  sweep: spans\n"
      "  tolerance: 1e-9\n",
      from, to);
}

Ran run_graphs(const std::string& text, const std::vector<std::string>& more = {}) {
  const std::string ring = "0 1 2\n1 2 3\n2 3 4\n3 4 5\n4 5 0\n5 0 1\n";
  return test::run_study(test::with_file(text, "ring.txt", ring), more);
}

TEST_CASE("study: measures of partitioned graphs") {
  const Json study = test::document(run_graphs(graphs_text(), {"--format", "json"}))["studies"][0];
  CHECK(study["verdict"] == "mechanism");
  const Json &alone = study["points"][0], &two = study["points"][1];
  CHECK(measured(alone, "halo") == 0);
  CHECK(measured(alone, "shape") == 0);
  CHECK(measured(alone, "time") > 0);
  // 100 values forward, 20 there and back.
  CHECK(measured(two, "halo") > 0);
  CHECK(measured(two, "bytes") == Approx(measured(two, "halo") * 140 * 4));
  CHECK(measured(two, "shape") > 0);
  CHECK(measured(two, "time") > measured(alone, "time"));
  // Closed forms of messages are no longer than their messages.
  const Ran closed = run_graphs(graphs_text("name: graphs\n", "name: graphs\nfidelity: closed\n"),
                                {"--format", "json"});
  REQUIRE(closed.code == 0);
  CHECK(measured(Json::parse(closed.out)["studies"][0]["points"][1], "time") <=
        measured(two, "time") * (1 + 1e-9));
}

TEST_CASE("study: mistakes in graphs are one line") {
  const auto refused = [](const std::string& from, const std::string& to) {
    const Ran ran = run_graphs(graphs_text(from, to));
    CHECK(ran.code == 1);
    CHECK(ran.out.empty());
    return ran.errors;
  };
  CHECK_THAT(refused("cut(made)", "cut(mad)"), Contains("unknown graph 'mad'") && Contains("made"));
  CHECK_THAT(refused("epoch_time(ring)", "epoch_time(none)"),
             Contains("unknown pipeline or graph 'none'"));
  CHECK_THAT(refused("epoch_time(ring)", "epoch_time(made)"),
             Contains("made") && Contains("widths"));
  CHECK_THAT(refused("    widths: [100, 20, 3]\n", ""), Contains("widths: is missing"));
  CHECK_THAT(refused("[100, 20, 3]", "[100]"), Contains("1 widths"));
  CHECK_THAT(refused("[100, 20, 3]", "[100, 0, 3]"), Contains("0 values of a key"));
  CHECK_THAT(refused("nodes: 2", "nodes: 1"), Contains("2 workers on 1 devices"));
  CHECK_THAT(refused("by: fennel", "by: fenel"), Contains("did you mean 'fennel'"));
  CHECK_THAT(refused("by: random", "by: communities"), Contains("0 communities among"));
  CHECK_THAT(refused("partition: {workers: $workers, by: fennel}", "exponen: 1"),
             Contains("made") && (Contains("partition: is missing") || Contains("exponen")));
  CHECK_THAT(refused("keys: 900", "keys: 90000000"), Contains("4.5e+08 neighbours in all"));
  CHECK_THAT(refused("degree: 5, ", ""), Contains("degree: is missing"));
  CHECK_THAT(refused("workers: $workers, by: fennel", "workers: 2000"), Contains("2000"));
  CHECK_THAT(refused("exponent: 0.5,", "exponent: 0.5, inside: 0.5,"),
             Contains("of no communities"));
  CHECK_THAT(refused("ring.txt", "none.txt"), Contains("ring") && Contains("none.txt"));
  CHECK_THAT(
      refused("workers: [1, 2]",
              "workers: [1, 2], a: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], b: [1, "
              "2, 3, 4, 5, 6, 7, 8, 9, 10], c: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], d: [1, 2, 3, 4, "
              "5, 6, 7, 8, 9, 10], e: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"),
      Contains("2e+05 points") && Contains("100000 at most"));
}

}  // namespace
}  // namespace rehearse
