// plan and recommend of a job with `serve`: their JSON, launch commands, and one line for wrong input.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse::serving_plans {
namespace {

using test::Json;

constexpr char kLoad[] = "rate: 30 per s, requests: 120, input: {uniform: [200, 900]}, output: 60";
constexpr char kNode[] = "cluster: {device: h100_sxm5_80, devices_per_node: 4, nodes: 1}\n";

std::string job(const std::string& server, const std::string& load = kLoad,
                const std::string& cluster = kNode) {
  return test::write_scratch("serve.yaml",
                             fmt::format("serve:\n  {}\n{}{}", server,
                                         load.empty() ? "" : "  load: {" + load + "}\n", cluster))
      .string();
}
constexpr char kRented[] = "cluster: {instance: p5.48xlarge, count: 1}\nregion: us-east-1\n";
const std::string kSmall = "model: llama3_8b\n  slo: {ttft: 500 ms, tpot: 20 ms}";

/// The job of a listed setting.
std::string with_setting(const std::string& server, const Json& setting) {
  return job(fmt::format("{}\n  plan: {}\n  flags: {}", server, setting["plan"].dump(),
                         setting["flags"].dump()),
             kLoad, kRented);
}

void check_as_simulated(const std::string& server, const Json& setting) {
  INFO(setting["plan"].dump() << " " << setting["flags"].dump());
  const Json alone = test::json_of({"simulate", with_setting(server, setting)});
  CHECK(setting["mean_ttft"] == alone["ttft"]["mean"]);
  CHECK(setting["mean_tpot"] == alone["tpot"]["mean"]);
  CHECK(setting["tokens_per_s_per_device"] == alone["throughput"]["tokens_per_s_per_device"]);
  CHECK(test::value(setting["goodput_per_device"]) * setting["devices"].get<double>() ==
        Approx(test::value(alone["goodput"])));
}

TEST_CASE("listed settings of a server have the numbers of simulate") {
  for (const std::string framework : {"vllm", "sglang", "trtllm"}) {
    const std::string server = fmt::format("{}\n  framework: {}", kSmall, framework);
    const Json json = test::checked_json_of({"plan", job(server, kLoad, kRented)});
    for (const char* path :
         {"candidates_seen", "candidates_per_s", "best[].plan", "best[].flags", "best[].ttft.mean",
          "best[].held_rate", "best[].memory_per_device", "pareto[].tokens_per_s_per_user"})
      test::check_has(json, path);
    CHECK(json["best"].size() <= 10);
    CHECK(json["candidates_evaluated"] <= json["candidates_seen"]);
    check_as_simulated(server, json["best"].front());
    check_as_simulated(server, json["best"].back());
    check_as_simulated(server, json["pareto"].front());
    const Json& best = json["best"].front();
    CHECK(best["ttft"]["mean"] == best["mean_ttft"]);
    for (const Json& other : json["best"])
      CHECK(test::value(other["goodput_per_device"]) <= test::value(best["goodput_per_device"]));
    for (std::size_t i = 1; i < json["pareto"].size(); ++i) {
      const Json &fast = json["pareto"][i - 1], &cheap = json["pareto"][i];
      CHECK(test::value(fast["tokens_per_s_per_user"]) >=
            test::value(cheap["tokens_per_s_per_user"]));
      CHECK(test::value(fast["tokens_per_s_per_device"]) <=
            test::value(cheap["tokens_per_s_per_device"]));
    }
  }
}

TEST_CASE("a search for a server keeps what the job gives, and follows its objective") {
  const std::string server = kSmall + "\n  plan: {tensor: 2}\n  flags: {max_num_seqs: 32}";
  const Json json = test::json_of({"plan", job(server)});
  for (const Json& each : json["best"]) {
    CHECK(each["plan"]["tensor"] == 2);
    CHECK(each["flags"]["max_num_seqs"] == 32);
  }
  const Json quick = test::json_of({"plan", job(kSmall), "--objective", "tpot"});
  const Json first = test::json_of({"plan", job(kSmall), "--objective", "ttft"});
  const auto of = [](const Json& d, const char* key) { return test::value(d["best"][0][key]); };
  CHECK(of(quick, "mean_tpot") <= of(json, "mean_tpot"));
  CHECK(of(quick, "mean_tpot") <= of(first, "mean_tpot"));
  CHECK(of(first, "mean_ttft") <= of(quick, "mean_ttft"));
  CHECK(of(quick, "goodput_per_device") <=
        of(json, "goodput_per_device") + of(json, "goodput_per_device"));
}

// 141 GB of weights do not fit on one GPU of 80 GB; on two they do.
TEST_CASE("settings that do not fit are counted with the reason") {
  const Json json = test::json_of({"plan", job("model: llama3_70b\n  slo: {ttft: 5 s}",
                                               "closed: 4, requests: 8, input: 200, output: 20")});
  REQUIRE(json["left_out"].size() == 1);
  CHECK(json["left_out"][0]["reason"] == "does not fit in memory");
  CHECK(json["left_out"][0]["count"] > 0);
  CHECK(json["left_out"][0]["example"].get<std::string>().find("GiB") != std::string::npos);
  for (const Json& each : json["best"])
    CHECK(each["plan"]["tensor"].get<int>() * each["plan"]["pipeline"].get<int>() >= 2);
}

TEST_CASE("the launch commands have the flags of each server") {
  struct Case {
    const char* framework;
    std::string more;
    std::vector<const char*> has;
  };
  for (const Case& c : std::vector<Case>{
           {"vllm",
            "plan: {tensor: 2, data: 2}\n  flags: {max_num_seqs: 64, max_num_batched_tokens: 4096, "
            "prefix_cache: false}",
            {"exec vllm serve \"$MODEL\"", "--tensor-parallel-size 2", "--data-parallel-size 2",
             "--max-num-seqs 64", "--max-num-batched-tokens 4096", "--no-enable-prefix-caching"}},
           {"sglang",
            "plan: {tensor: 2, data: 1}\n  flags: {max_running_requests: 64, memory: 0.8, "
            "enable_mixed_chunk: true, chunked_prefill_size: 4096}",
            {"sglang.launch_server", "--tp-size 2", "--max-running-requests 64",
             "--mem-fraction-static 0.8", "--enable-mixed-chunk", "--chunked-prefill-size 4096"}},
           {"trtllm",
            "plan: {tensor: 2, data: 1}\n  flags: {max_batch_size: 64, max_num_tokens: 4096, "
            "chunked_prefill: true, capacity_scheduler_policy: max_utilization}",
            {"trtllm-serve", "--tp_size 2", "--max_batch_size 64", "--max_num_tokens 4096",
             "enable_chunked_prefill: true", "capacity_scheduler_policy: MAX_UTILIZATION"}}}) {
    const std::string file =
        job(fmt::format("{}\n  framework: {}\n  {}", kSmall, c.framework, c.more));
    const test::Ran ran = test::rehearse({"plan", file, "--emit", c.framework, "--quiet"});
    CHECK(ran.code == 0);
    for (const char* words : c.has) {
      INFO(words << " in " << ran.out << ran.errors);
      CHECK(ran.out.find(words) != std::string::npos);
    }
  }
}

TEST_CASE("a launch command says which weights it needs unless they are published so") {
  const auto launch = [](const std::string& server) {
    const test::Ran ran =
        test::rehearse({"plan", job("model: gpt_oss_20b\n  " + server), "--emit", "vllm"});
    return ran.out + ran.errors;
  };
  const std::string say = "MODEL must have weights in";
  CHECK(launch("framework: vllm").find(say) == std::string::npos);
  CHECK(launch("precision: {weights: bf16}").find(say + " bf16") != std::string::npos);
}

TEST_CASE("wrong searches for servers get one line") {
  const auto check = [](const std::string& file, std::vector<std::string> more,
                        const std::string& says) {
    std::vector<std::string> words = {"plan", file, "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    test::check_failed(test::rehearse(words), 1, says);
  };
  check(job("model: llama3_8b\n  slo: {ttft: 1 s}", ""), {}, "load: is missing");
  check(job("model: llama3_70b", kLoad,
            "cluster: {device: a100_sxm4_40, devices_per_node: 2, nodes: 1}\n"),
        {}, "settings of the server runs the load");
  check(job("model: llama3_8b\n  slo: {ttft: 1 ms}"), {}, "no setting of the server keeps the SLO");
  check(job(kSmall + "\n  flags: {max_batch_size: 3}"), {}, "is a flag of trtllm");
  check(job(kSmall), {"--emit", "sglang"}, "describes a server by vllm");
  check(job(kSmall), {"--emit", "megatron"}, "applies to training");
  check(job(kSmall), {"--objective", "cost"}, "applies to training");
  check(job(kSmall), {"--within", "memory=60 GiB"},
        "--within applies to training, not to a server");
  check("examples/jobs/gpt2_xl_search.yaml", {"--objective", "tpot"}, "applies to a server");
  check("examples/jobs/gpt2_xl_search.yaml", {"--emit", "vllm"}, "applies to a server");
  test::check_failed(test::rehearse({"recommend", job(kSmall), "--target", "5 steps"}), 1,
                     "a server generates tokens");
  test::check_failed(test::rehearse({"recommend", job(kSmall), "--provider", "nowhere"}), 1,
                     "--provider: no provider 'nowhere'");
  test::check_failed(test::rehearse({"recommend", job(kSmall + "\n  plan: {tensor: 3}"),
                                     "--provider", "aws", "--counts", "1"}),
                     1, "degree 3 does not divide");
}

TEST_CASE("instances for a server") {
  const Json json = test::json_of({"recommend", job(kSmall, kLoad, ""), "--provider", "aws",
                                   "--region", "us-east-1", "--counts", "1,2"});
  test::check_values(json["options"][0]);
  for (const char* path :
       {"options[].provider", "options[].instance", "options[].count", "options[].plan.tensor",
        "options[].flags", "options[].tpot.mean", "options[].goodput", "why[]", "pareto[]"})
    test::check_has(json, path);
  const Json& options = json["options"];
  const Json& first = options[0];
  // The target is a million tokens, unless one is given.
  CHECK(first["cost_per_million_tokens"] == first["cost_to_target"]);
  for (const Json& other : options)
    if (!other["cost_to_target"].is_null())
      CHECK(test::value(first["cost_to_target"]) <= test::value(other["cost_to_target"]));
  // The numbers are those of `simulate` on those instances.
  const std::string cluster =
      fmt::format("cluster: {{instance: {}, count: {}}}\n", first["instance"].get<std::string>(),
                  first["count"].get<int>());
  const Json alone =
      test::json_of({"simulate", job(fmt::format("{}\n  plan: {}\n  flags: {}", kSmall,
                                                 first["plan"].dump(), first["flags"].dump()),
                                     kLoad, cluster)});
  CHECK(first["ttft"]["mean"] == alone["ttft"]["mean"]);
  CHECK(first["tpot"]["mean"] == alone["tpot"]["mean"]);
  CHECK(first["throughput"]["tokens_per_s"] == alone["throughput"]["tokens_per_s"]);
  const Json more =
      test::json_of({"recommend", job(kSmall, kLoad, ""), "--provider", "aws", "--region",
                     "us-east-1", "--counts", "1,2", "--target", "1e9 tokens"});
  CHECK(test::value(more["options"][0]["cost_to_target"]) ==
        Approx(1000 * test::value(first["cost_to_target"])));
  CHECK(more["options"][0]["cost_per_million_tokens"]["value"].get<double>() ==
        Approx(test::value(first["cost_per_million_tokens"])));
}

TEST_CASE("the load curve of a server rises to its saturation") {
  const auto curve = [](const std::string& load) {
    const Json json = test::json_of({"simulate", job(kSmall, load, kRented)});
    test::check_values(json, "saturation");
    const Json& points = json["load_curve"]["points"];
    for (std::size_t i = 1; i < points.size(); ++i) {
      CHECK(points[i]["load"] != points[i - 1]["load"]);
      CHECK(test::value(points[i]["requests_per_s"]) >
            0.95 * test::value(points[i - 1]["requests_per_s"]));
    }
    CHECK(test::value(points.back()["ttft"]["mean"]) > test::value(points[0]["ttft"]["mean"]));
    return json;
  };
  const Json closed = curve("closed: 16, requests: 160, input: 400, output: 60");
  bool at_given = false;
  for (const Json& point : closed["load_curve"]["points"])
    if (point["load"] == 16) {
      at_given = true;
      CHECK(point["ttft"]["mean"] == closed["ttft"]["mean"]);
      CHECK(point["tpot"]["p99"] == closed["tpot"]["p99"]);
    }
  CHECK(at_given);
  const Json open = curve(kLoad);
  CHECK(open["load_curve"]["saturation"] == open["capacity"]);
  CHECK(test::value(open["load_curve"]["held"]) <= 1.05 * test::value(open["held_rate"]));
}

}  // namespace
}  // namespace rehearse::serving_plans
