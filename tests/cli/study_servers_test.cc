// study: jobs of inference servers.
#include <catch2/catch.hpp>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using Catch::Contains;
using test::Json;
using test::Ran;

constexpr const char* kServedJob =
    "{model: llama3_8b, slo: {ttft: 1 s, tpot: 30 ms}, load: {rate: 4 per s, requests: 60, input: "
    "500, output: 40}}";
constexpr const char* kServedOn = "{device: h100_sxm5_80, devices_per_node: 8, nodes: 1}";

/// A study of one server, and of the same one on two GPUs.
std::string servers_text(const std::string& measures, const std::string& serve = kServedJob) {
  return "name: servers\nsource: by hand\nbase: {cluster: " + std::string(kServedOn) +
         "}\njobs:\n  one: {serve: " + serve + "}\n  two: {serve: " + serve + "}\nmeasure:\n" +
         measures + "expect: {measure: a, range: [0, 1e9], sweep: within}\n";
}

Ran run_servers(const std::string& text) {
  return test::rehearse(
      {"study", test::write_scratch("servers.yaml", text).string(), "--format", "json"});
}

Json got_of(const Json& point, const std::string& name) {
  for (const Json& one : point["measured"])
    if (one["name"] == name) return one["got"];
  FAIL("no measure " << name);
  return {};
}

TEST_CASE("study: measures of servers are those of simulate") {
  const Ran ran = run_servers(servers_text(
      "  a: ttft_p99(one)\n  b: tpot_mean(one)\n  c: itl_p90(one)\n  d: end_to_end_p50(one)\n"
      "  e: goodput(one)\n  f: held_rate(one)\n  g: output_rate(one) / gpus(two)\n"
      "  h: tpot_mean(two) / tpot_mean(one)\n  i: hit_share(one)\n"));
  const Json point = test::document(ran)["studies"][0]["points"][0];
  const std::string job = "serve: " + std::string(kServedJob) + "\ncluster: " + kServedOn + "\n";
  const Json server = test::document(test::rehearse(
      {"simulate", test::write_scratch("job.yaml", job).string(), "--format", "json"}));
  const auto same = [&](const char* name, const Json& known) {
    CAPTURE(name);
    for (const char* end : {"value", "low", "high"})
      CHECK(got_of(point, name)[end].get<double>() == Approx(known[end].get<double>()));
  };
  same("a", server["ttft"]["p99"]);
  same("b", server["tpot"]["mean"]);
  same("c", server["itl"]["p90"]);
  same("d", server["end_to_end"]["p50"]);
  same("e", server["goodput"]);
  same("f", server["held_rate"]);
  same("g", server["throughput"]["tokens_per_s"]);
  CHECK(got_of(point, "h")["value"] == 1);
  CHECK(got_of(point, "i")["value"] == 0);  // prompts without a common prefix
}

TEST_CASE("study: chunks of SGLang leave room for running requests") {
  // Prompts of four chunks. If chunks came first, running requests would wait for all four, mixed or not.
  const std::string load =
      "{model: llama3_8b, framework: sglang, flags: {chunked_prefill_size: 512, "
      "enable_mixed_chunk: "
      "$mixed}, load: {rate: 6 per s, requests: 80, input: 2000, output: 100}}";
  const auto gap = [&](const std::string& mixed) {
    std::string serve = load;
    serve.replace(serve.find("$mixed"), 6, mixed);
    const Json point = test::document(
        run_servers(servers_text("  a: itl_p99(one)\n", serve)))["studies"][0]["points"][0];
    return got_of(point, "a")["value"].get<double>();
  };
  CHECK(gap("true") < 0.5 * gap("false"));
}

TEST_CASE("study: mistakes in servers are one line") {
  const auto refused = [](const std::string& measure, const std::string& from = "",
                          const std::string& to = "") {
    std::string serve = kServedJob;
    if (!from.empty()) serve.replace(serve.find(from), from.size(), to);
    const Ran ran = run_servers(servers_text("  a: " + measure + "\n", serve));
    CHECK(ran.code == 1);
    return ran.errors;
  };
  CHECK_THAT(refused("ttft_p99(on)"), Contains("unknown server 'on'") && Contains("one"));
  CHECK_THAT(refused("ttft_p98(one)"),
             Contains("unknown quantity 'ttft_p98'; did you mean 'ttft_p9"));
  CHECK_THAT(refused("step_time(one)"),
             Contains("unknown job 'one'") && Contains("a job of training"));
  CHECK_THAT(refused("goodput(one)", "slo: {ttft: 1 s, tpot: 30 ms}, ", ""),
             Contains("one: it has no SLO"));
  CHECK_THAT(refused("held_rate(one)", "rate: 4 per s", "closed: 4"),
             Contains("one: a closed loop has no rate"));
  CHECK_THAT(refused("gpus(one)", "model: llama3_8b", "model: llama3_8c"),
             Contains("one") && Contains("llama3_8b"));
}

}  // namespace
}  // namespace rehearse
