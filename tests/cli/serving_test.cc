// simulate of a job with `serve`: its JSON, and one line for wrong input.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;

std::string serving_job(const std::string& server, const std::string& load) {
  return test::write_scratch("serve.yaml",
                             fmt::format("serve:\n  model: llama3_8b\n  {}\n{}"
                                         "cluster: {{device: h100_sxm5_80, devices_per_node: 8, "
                                         "nodes: 1}}\n",
                                         server, load.empty() ? "" : "  load: {" + load + "}\n"))
      .string();
}

constexpr char kLoad[] = "closed: 4, requests: 12, input: 200, output: {uniform: [10, 20]}";

Json served(const std::string& file) {
  return test::document(test::rehearse({"simulate", file, "--format", "json"}));
}

TEST_CASE("a served load has the measures of the contract") {
  for (const char* framework : {"vllm", "sglang", "trtllm"}) {
    INFO(framework);
    const Json json = served(serving_job(fmt::format("framework: {}", framework), kLoad));
    for (const char* key : {"ttft", "tpot", "itl", "end_to_end"}) {
      const Json& mean = json[key]["mean"];
      CHECK(mean["low"] <= mean["value"]);
      CHECK(mean["value"] <= mean["high"]);
      CHECK(test::value(json[key]["p50"]) <= test::value(json[key]["p99"]));
    }
    CHECK(test::value(json["ttft"]["mean"]) > test::value(json["tpot"]["mean"]));
    // Little's law: requests in flight are their rate times their time. The last wave drains.
    const double in_flight =
        test::value(json["throughput"]["requests_per_s"]) * test::value(json["end_to_end"]["mean"]);
    CHECK(in_flight > 3);
    CHECK(in_flight < 4.01);
    CHECK(json["cache"]["blocks"] > 1000);
    CHECK(json["preemptions"] == 0);
    CHECK(json["saturated"] == false);
    CHECK(json["memory_per_device"]["fits"] == true);
    CHECK(test::value(json["energy_per_token"]) > 0);
    CHECK(json.contains("cost_per_million_tokens"));
  }
}

TEST_CASE("a server loads weights as they are published unless it is told") {
  const auto weights = [](const std::string& server) {
    const test::Ran ran = test::rehearse(
        {"simulate",
         test::write_scratch("serve.yaml", fmt::format("serve: {{{}, load: {{closed: 1, requests: "
                                                       "2, input: 200, output: 20}}}}\ncluster: "
                                                       "{{device: h200_sxm_141, devices_per_node: "
                                                       "8, nodes: 1}}\n",
                                                       server))});
    const std::size_t line = ran.out.find("\nweights");
    REQUIRE(line != std::string::npos);
    return ran.out.substr(line + 1, ran.out.find('\n', line + 1) - line - 1);
  };
  CHECK(weights("model: gpt_oss_120b").ends_with("60.7 GiB, mxfp4"));
  CHECK(weights("model: gpt_oss_20b, precision: {weights: bf16}").ends_with(", bf16"));
  CHECK(weights("model: deepseek_v3, plan: {tensor: 8}").ends_with(", fp8_block"));
  CHECK(weights("model: llama3_8b").ends_with(", bf16"));
}

TEST_CASE("SGLang leaves room for a chunk of prompts and for graphs unless it is told") {
  // H100: 8,192 tokens · 1.5 MiB, 256 graphs · 2 MiB, 128 MiB for a rank and 512 MiB, of 79.2 GiB.
  const double share = 1 - (8192 * 1.5 + 256 * 2 + 128 + 512) / (79.2 * 1024);
  const Json usual = served(serving_job("framework: sglang", kLoad));
  const Json told = served(serving_job(
      fmt::format(
          "framework: sglang\n  flags: {{chunked_prefill_size: 8192, mem_fraction_static: {}}}",
          share),
      kLoad));
  CHECK(usual["cache"]["blocks"].get<double>() ==
        Approx(told["cache"]["blocks"].get<double>()).epsilon(1e-3));
}

TEST_CASE("requests of one output token have no time per output token") {
  const std::string job =
      serving_job("framework: vllm", "closed: 2, requests: 8, input: 200, output: 1");
  const Json json = served(job);
  CHECK(json["tpot"].is_null());
  CHECK(json["itl"].is_null());
  CHECK(test::value(json["ttft"]["mean"]) > 0);
  CHECK(test::rehearse({"simulate", job}).out.find("TPOT 0") == std::string::npos);
}

TEST_CASE("a beginning that all prompts share is computed once") {
  // 512 of 515 tokens fill blocks. Requests that arrive before the first prompt is computed have no hit.
  const std::string load = "rate: 20 per s, requests: 40, input: 600, output: 5";
  const Json all = served(serving_job("framework: vllm", load + ", shared: 600")),
             half = served(serving_job("framework: vllm", load + ", shared: 515")),
             none = served(serving_job("framework: vllm", load));
  CHECK(test::value(none["cache"]["reused"]) == 0);
  CHECK(test::value(half["cache"]["reused"]) > 0.8 * 512 / 600);
  CHECK(test::value(half["cache"]["reused"]) < 512.0 / 600);
  CHECK(test::value(all["cache"]["reused"]) > test::value(half["cache"]["reused"]));
  CHECK(test::value(all["ttft"]["mean"]) < test::value(none["ttft"]["mean"]));
}

TEST_CASE("names of the server and common names of flags are the same") {
  const Json common = served(serving_job("flags: {max_num_seqs: 2, memory: 0.8}", kLoad));
  const Json own =
      served(serving_job("flags: {max_num_seqs: 2, gpu_memory_utilization: 0.8}", kLoad));
  CHECK(common["ttft"] == own["ttft"]);
  CHECK(common["cache"] == own["cache"]);
  CHECK(common["saturated"] == true);  // two of four wait
}

TEST_CASE("an open load beyond the capacity is saturated, and its interval is wider") {
  const auto at = [](double share, double capacity) {
    return served(
        serving_job("framework: vllm\n  flags: {max_num_seqs: 8}",
                    fmt::format("rate: {:.3f} per s, requests: 300, input: 300, output: 100",
                                share * capacity)));
  };
  const double capacity = test::value(at(1, 10)["capacity"]);
  const auto width = [](const Json& json) {
    const Json& e = json["end_to_end"]["mean"];
    return (e["high"].get<double>() - e["low"].get<double>()) / e["value"].get<double>();
  };
  const Json idle = at(0.2, capacity), busy = at(0.95, capacity), over = at(1.5, capacity);
  CHECK(idle["saturated"] == false);
  CHECK(over["saturated"] == true);
  CHECK(width(busy) > width(idle));
}

// The same requests with other gaps: the rate that is found does not depend on the one that is given,
// and at it about nine tenths of the requests keep the limits.
TEST_CASE("the rate that a server holds within an SLO") {
  const auto at = [](double rate, const std::string& limits) {
    return served(
        serving_job("framework: vllm\n  slo: {" + limits + "}",
                    fmt::format("rate: {} per s, requests: 800, input: 500, output: 100", rate)));
  };
  const Json json = at(5, "ttft: 300 ms, tpot: 15 ms");
  const double held = test::value(json["held_rate"]);
  CHECK(json["held_rate"]["low"] < held);
  CHECK(json["held_rate"]["high"] > held);
  CHECK(test::value(at(50, "ttft: 300 ms, tpot: 15 ms")["held_rate"]) == Approx(held));
  const auto share = [&](double rate) {
    const Json run = at(rate, "ttft: 300 ms, tpot: 15 ms");
    return test::value(run["goodput"]) / test::value(run["throughput"]["requests_per_s"]);
  };
  CHECK(share(0.98 * held) >= 0.9);
  CHECK(share(1.02 * held) < 0.9);
  CHECK(test::value(at(5, "ttft: 1 us")["held_rate"]) == 0);
  CHECK(test::value(at(5, "end_to_end: 1000 s")["held_rate"]) ==
        Approx(test::value(json["capacity"])));
  CHECK_FALSE(served(serving_job("slo: {ttft: 1 s}", kLoad)).contains("held_rate"));
  CHECK_FALSE(served(serving_job("slo: {ttft: 1 s}", "rate: 1, requests: 1, input: 9, output: 2"))
                  .contains("held_rate"));
}

TEST_CASE("a load that takes longer than a run can count is one line") {
  for (const char* load : {"rate: 0.0000001 per s, requests: 10, input: 10, output: 2",
                           "closed: 1, requests: 100000, input: 100, output: 30000"}) {
    INFO(load);
    const test::Ran ran =
        test::rehearse({"simulate", serving_job("slo: {ttft: 1 s}", load), "--quiet"});
    CHECK(ran.code == 1);
    CHECK(ran.errors.find("the load takes more than 90 days") != std::string::npos);
  }
}

TEST_CASE("traces of requests") {
  const std::string csv =
      test::write_scratch("trace.csv", "arrival_s,input_tokens,output_tokens\n0,100,5\n0.5,50,3\n")
          .string();
  CHECK(served(serving_job("framework: vllm", "trace: " + csv))["server"]["requests"] == 2);
  const std::string names = R"("hash_ids":[1,2]})";
  const std::string line = R"("input_length":1100,"output_length":4,)" + names + "\n";
  const std::string jsonl = test::write_scratch("trace.jsonl", R"({"timestamp":0,)" + line +
                                                                   R"({"timestamp":9000,)" + line)
                                .string();
  const Json cached = served(serving_job("framework: vllm", "trace: " + jsonl));
  // The second prompt has 1,024 of 1,100 tokens in the cache.
  CHECK(test::value(cached["cache"]["reused"]) == Approx(1024.0 / 2200));
  CHECK(test::value(cached["ttft"]["p50"]) < test::value(cached["ttft"]["p99"]));
  test::check_failed(
      test::rehearse(
          {"simulate",
           serving_job(
               "framework: vllm",
               "trace: " + test::write_scratch(
                               "b.csv", "arrival_s,input_tokens,output_tokens\n1,5,5\n0,5,5\n")
                               .string())}),
      1, "arrives before the one above");
}

TEST_CASE("replicas share the load through a router") {
  const std::string load = "rate: 40 per s, requests: 200, input: 500, output: {uniform: [1, 200]}";
  const auto with = [&](const std::string& plan) {
    return served(serving_job("plan: {" + plan + "}", load));
  };
  const Json one = with("data: 1"), in_turn = with("data: 2"),
             least = with("data: 2, router: least_outstanding");
  CHECK(in_turn["server"]["router"] == "round_robin");
  CHECK(in_turn["server"]["replicas"] == 2);
  CHECK(in_turn["server"]["devices"] == 2);
  CHECK(test::value(in_turn["tpot"]["mean"]) < test::value(one["tpot"]["mean"]));
  CHECK(least["ttft"] != in_turn["ttft"]);
  // Replicas that share nothing are as well known as one server.
  CHECK(in_turn["ttft"]["mean"]["provenance"] == one["ttft"]["mean"]["provenance"]);
  test::check_failed(test::rehearse({"simulate", serving_job("plan: {router: random}", load)}), 1,
                     "round_robin");
}

TEST_CASE("speculation shortens answers by what is accepted, and costs its draft") {
  const auto tpot = [&](const std::string& speculation) {
    const std::string server =
        "plan: {tensor: 1}" + (speculation.empty() ? "" : "\n  speculation: {" + speculation + "}");
    return served(
        serving_job(server, "closed: 1, requests: 4, input: 200, output: 400"))["tpot"]["mean"];
  };
  const double plain = test::value(tpot("")),
               free = test::value(tpot("draft_tokens: 2, mean: 2.5, draft: none")),
               heads = test::value(tpot("draft_tokens: 2, mean: 2.5")),
               model = test::value(tpot("draft_tokens: 2, accepted: [1, 0.5], draft: llama3.2_1b"));
  // One row is bound by its weights: a step that verifies two tokens more costs hardly more.
  CHECK(free == Approx(plain / 2.5).epsilon(0.06));
  CHECK(heads > free);
  CHECK(model > heads);
  CHECK(tpot("draft_tokens: 2, mean: 2.5")["provenance"] == "extrapolated");
  for (const auto& [speculation, says] : std::vector<std::pair<const char*, const char*>>{
           {"draft_tokens: 2", "exactly one of"},
           {"draft_tokens: 2, accepted: [0.5]", "2 numbers from 0 to 1"},
           {"mean: 1.5", "draft_tokens: is missing"},
           {"draft_tokens: 1, mean: 1.5, draft: bert_base", "does not generate tokens"}})
    test::check_failed(
        test::rehearse(
            {"simulate", serving_job(std::string("speculation: {") + speculation + "}", kLoad)}),
        1, says);
}

TEST_CASE("a server with weights on its host is slower, and says which key is wrong") {
  const auto tpot = [&](const std::string& server) {
    return served(serving_job(server, kLoad))["tpot"]["mean"];
  };
  CHECK(test::value(tpot("offload: {weights: {host: 1}}")) > 10 * test::value(tpot("")));
  for (const auto& [offload, says] : std::vector<std::pair<const char*, const char*>>{
           {"weights: {host: 0.6, nvme: 0.6}", "shares of at most 1 in all"},
           {"weights: {nvme: 0.5}",
            ": serve.offload: state is on NVMe drives, whose rate is not known"},
           {"attention: hots", "did you mean 'host'?"},
           {"cache: {host: 2}", "host"}})
    test::check_failed(
        test::rehearse({"simulate", serving_job(std::string("offload: {") + offload + "}", kLoad)}),
        1, says);
}

TEST_CASE("a tier below a small cache has what it lost") {
  // 40 prompts of 4,000 tokens with the same 8 beginnings, and a GPU that holds two of them.
  std::string trace;
  for (int i = 0; i < 40; ++i) {
    std::string names;
    for (int part = 0; part < 7; ++part)
      names += fmt::format("{}{}", part > 0 ? ", " : "", 10 * (i % 8) + part);
    trace += fmt::format(
        R"({{"timestamp": {}, "input_length": 4000, "output_length": 2, "hash_ids": [{}]}})"
        "\n",
        1000 * i, names);
  }
  const std::string file = test::write_scratch("tiers.jsonl", trace).string();
  const auto job = [&](const std::string& tiers) {
    return served(serving_job("flags: {memory: 0.24}\n  cache_tiers: " + tiers, "trace: " + file));
  };
  const Json none = job("{}"), host = job("{host: {size: 20 GB, rate: 25 GB/s}}"),
             slow = job("{host: {size: 1 GB, rate: 25 GB/s}, remote: {size: 1 TB, rate: 1 GB/s}}");
  const auto ttft = [](const Json& json) { return test::value(json["ttft"]["mean"]); };
  CHECK(test::value(none["cache"]["reused"]) == 0);
  // 32 of 40 prompts find 7 · 512 tokens.
  CHECK(test::value(host["cache"]["loaded"]) == Approx(32 * 3584 / (40 * 4000.0)));
  CHECK(test::value(slow["cache"]["loaded"]) == test::value(host["cache"]["loaded"]));
  CHECK(ttft(host) < 0.7 * ttft(none));
  // 128 KiB per token: 0.47 GB take 19 ms from the host, and 0.47 s from the other node.
  CHECK(ttft(slow) - ttft(host) == Approx(0.8 * 3584 * 131'072 * (1e-9 - 0.04e-9)).epsilon(0.05));
  for (const auto& [tiers, says] : std::vector<std::pair<const char*, const char*>>{
           {"{host: {rate: 25 GB/s}}", "size: is missing"},
           {"{host: {size: 1 MB, rate: 25 GB/s}}", "hold no block of"},
           {"{disk: {size: 1 TB, rate: 2 GB/s}}", "disk"},
           {"{host: {size: 1 TB, rate: 1 kB/s}}", "is too low"},
           {"{host: {size: 1 TB, rate: 1 GB/s}}\n  offload: {cache: {host: 1}}", "one of the two"}})
    test::check_failed(
        test::rehearse({"simulate", serving_job(std::string("cache_tiers: ") + tiers, kLoad)}), 1,
        says);
}

TEST_CASE("vLLM before 0.8 runs prompts apart, or chunks of 512 tokens") {
  // Two long prompts arrive during a short one's answer. P99 of 67 gaps is the second longest.
  const std::string csv = test::write_scratch("v0.csv",
                                              "arrival_s,input_tokens,output_tokens\n0,100,60\n"
                                              "0.1,4000,5\n0.35,4000,5\n")
                              .string();
  const auto largest_gap = [&](const std::string& server) {
    return test::value(served(serving_job(server, "trace: " + csv))["itl"]["p99"]);
  };
  const double whole = largest_gap("version: \"0.6\""),
               chunked = largest_gap("version: \"0.6\"\n  flags: {chunked_prefill: true}");
  CHECK(whole > 3 * chunked);
}

TEST_CASE("wrong servers and loads get one line") {
  struct Case {
    std::string server, load, says;
  };
  for (const Case& c : std::vector<Case>{
           {"slo: {ttft: 1 s}", "", "load: is missing"},
           {"flags: {block_size: 0}", kLoad, "block_size"},
           {"flags: {chunked_prefill_size: 4096}", kLoad, "is a flag of sglang"},
           {"flags: {max_num_batched_tokens: 16, max_num_seqs: 64}", kLoad,
            "max_num_seqs: exceeds"},
           {"flags: {block_size: 1000000}", kLoad, "smaller block_size"},
           {"framework: trtllm\n  precision: {weights: nvfp4}", kLoad, "one of bf16, fp8"},
           {"", "closed: 2, input: {uniform: [100, 200]}, output: 5, shared: 150", "load.shared"},
           {"framework: trtllm", "closed: 1, input: 9000, output: 1", "exceeds the 8192 of a step"},
           {"plan: {tensor: 16}", kLoad, "16 GPUs of the 8"},
           {"framework: vllm", "rate: fast, input: 1, output: 1", "'fast' is no rate"},
           {"framework: vllm", "rate: 2e9 per s, input: 1, output: 1",
            "is out of range; above 0, at most"},
           {"framework: vllm", "input: 9, output: 1", "exactly one kind of load"}})
    test::check_failed(test::rehearse({"simulate", serving_job(c.server, c.load)}), 1, c.says);
}

TEST_CASE("the answer names the version, its basis the versions of the constants") {
  const std::string job = serving_job("framework: vllm\n  version: \"0.11\"", kLoad);
  const std::string text = test::rehearse({"simulate", job}).out;
  for (const char* words : {"by vllm 0.11", "vllm from 0.8 on", ", P50 "}) {
    INFO(words << " in " << text);
    CHECK(text.find(words) != std::string::npos);
  }
}

}  // namespace
}  // namespace rehearse
