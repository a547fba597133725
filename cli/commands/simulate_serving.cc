#include "cli/commands/simulate_serving.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/commands/load_curve.h"
#include "cli/commands/request_classes.h"
#include "cli/config/job_file.h"
#include "cli/output/document.h"
#include "cli/planning/server_space.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/watch.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cli {
namespace {

using serving::Measures, serving::Run;

/// Whether more load would not be served sooner: requests arrive as fast as the server works when
/// all of them wait, or, in a closed loop, some wait for admission most of the time.
bool saturated(const ServedLoad& load, double capacity) {
  const ServeFile& file = load.file;
  if (!file.closed) {
    const Seconds span = serving::last_planned(file.requests).seconds();
    return static_cast<double>(file.requests.size() - 1) >= capacity * span.s();
  }
  // By Little's law, how many prompts wait for blocks of the pool for tokens.
  const Measures& m = load.measures[0];
  return m.overloaded > 0.5 || m.room.mean * m.requests > 0.5 * m.duration;
}

/// `of` gives the estimate of a statistic.
template <class Of>
void add_spread(Document& d, std::string_view key, std::string_view label, const Of& of) {
  d[key] = {{"mean", of(&serving::Spread::mean)},
            {"p50", of(&serving::Spread::p50)},
            {"p90", of(&serving::Spread::p90)},
            {"p99", of(&serving::Spread::p99)}};
  d.show("", label,
         fmt::format("mean {}, P50 {}, P90 {}, P99 {}", range_words(of(&serving::Spread::mean)),
                     range_words(of(&serving::Spread::p50)), range_words(of(&serving::Spread::p90)),
                     range_words(of(&serving::Spread::p99))));
}

void add_costs(Document& d, const ServedLoad& load) {
  const ServeFile& file = load.file;
  std::vector<cost::PoweredDevices> devices;
  const auto add = [&](const std::string& name, std::size_t count, std::span<const Run> replicas) {
    const Result<const cluster::Gpu*> gpu = cluster::find_gpu(name);
    devices.push_back({.name = name,
                       .gpu = gpu ? *gpu : nullptr,
                       .count = static_cast<double>(count),
                       .busy = serving::use_of(replicas, load.measures[0]).busy});
  };
  add(file.deployment.device, devices_of(file.deployment.plan), load.token_replicas(0));
  if (file.prefill)
    add(prefill_deployment(file).device, file.prefill->devices, load.prompt_replicas(0));
  const cost::StepAccount account = cost::account_of(load.rented(), devices, file.place);
  const double tokens = load.measures[0].output_tokens;
  if (account.money)
    d.show("cost_per_million_tokens", "cost per million tokens", *account.money * (1e6 / tokens));
  else
    d["cost_per_million_tokens"] = nullptr;
  if (account.energy)
    d.show("energy_per_token", "energy per token", *account.energy * (1 / tokens));
  else
    d["energy_per_token"] = nullptr;
  for (const std::string& note : account.notes) d.line(note);
}

using Replicas = std::span<const Run> (ServedLoad::*)(std::size_t) const;

/// A measure of how these replicas were used.
Quantity share_of(const ServedLoad& load, Replicas replicas, double serving::Use::*of) {
  std::array<double, 3> at{};
  for (std::size_t i = 0; i < at.size(); ++i)
    at[i] = serving::use_of((load.*replicas)(i), load.measures[i]).*of;
  const auto [low, high] = std::ranges::minmax_element(at);
  return Quantity(Estimate<double>{at[0], *low, *high, load.provenance}, unit::kShare);
}

void add_pool(Document& d, const ServedLoad& load, std::string_view key, std::string_view label,
              const serving::ServingPlan& plan, Replicas replicas) {
  const serving::Use use = serving::use_of((load.*replicas)(0), load.measures[0]);
  d.show("", label,
         fmt::format("{} ({}), {:.0f} % busy, at most {:.0f} % of the blocks held",
                     counted(devices_of(plan), "GPU"), plan_words(plan), 100 * use.busy,
                     100 * use.peak_occupancy));
  d["pools"][key] = {{"devices", devices_of(plan)},
                     {"replicas", plan.data},
                     {"busy", share_of(load, replicas, &serving::Use::busy)},
                     {"occupancy", share_of(load, replicas, &serving::Use::occupancy)},
                     {"peak_occupancy", share_of(load, replicas, &serving::Use::peak_occupancy)},
                     {"blocks", (load.*replicas)(0).front().blocks},
                     {"running", use.running},
                     {"preemptions", use.preemptions}};
}

void add_scaling(Document& d, const ServedLoad& load) {
  const ServeFile& file = load.file;
  const double most = file.deployment.plan.data;
  const Estimate<Seconds> gpu_time = load.rented() * static_cast<double>(file.devices);
  const Estimate<double> mean =
      load.estimate<double>([](const Measures& m) { return m.rented / m.duration; });
  const Estimate<double> peak =
      load.estimate<double>([](const Measures& m) { return m.most_replicas; });
  d["scaling"] = {{"least", file.scaling->rule.least},
                  {"most", most},
                  {"start", Quantity(scaling_of(file, load.space).start)},
                  {"replicas", Quantity(mean, unit::kCount)},
                  {"peak_replicas", Quantity(peak, unit::kCount)},
                  {"gpu_time", gpu_time}};
  d.show("", "replicas",
         fmt::format("{:.2f} on average, at most {:.0f} ready at a time", mean.value, peak.value));
  const auto hours = [](Seconds time) { return time.s() / 3600; };
  d.show("", "GPU-hours",
         fmt::format("{:.2f} ({:.2f} – {:.2f})", hours(gpu_time.value), hours(gpu_time.low),
                     hours(gpu_time.high)));
}

/// Mean parts of the time of a request.
void add_parts(Document& d, const ServedLoad& load) {
  const auto mean = [&](const auto& of) {
    return load.estimate<Seconds>([&](const Measures& m) { return Seconds::s(of(m)); });
  };
  const auto queue = mean([](const Measures& m) { return m.queue.mean; });
  const auto prefill = mean([](const Measures& m) { return m.prefill.mean; });
  const auto decode = mean([](const Measures& m) { return m.end_to_end.mean - m.ttft.mean; });
  Value parts = {
      {"outside", mean([](const Measures& m) { return m.ttft.mean - m.ttft_at_server.mean; })},
      {"queue", queue},
      {"prefill", prefill}};
  std::string words =
      fmt::format("queue {}, prefill {}", to_string(queue.value), to_string(prefill.value));
  if (load.file.prefill) {
    const auto room = mean([](const Measures& m) { return m.room.mean; });
    const auto transfer = mean([](const Measures& m) { return m.transfer.mean; });
    parts["wait_for_blocks"] = room;
    parts["transfer"] = transfer;
    words += fmt::format(", wait for blocks {}, transfer {}", to_string(room.value),
                         to_string(transfer.value));
  }
  parts["decode"] = decode;
  d["time_of_request"] = std::move(parts);
  d.show("", "time of a request", fmt::format("{}, decode {}", words, to_string(decode.value)));
}

/// How much more the server could do, in requests per second.
struct Limits {
  double capacity;                            ///< if all wait
  std::optional<Estimate<double>> held = {};  ///< within the SLO, of an open load
};

Result<Limits> limits_of(const ServedLoad& load) {
  const double capacity = TRY(capacity_of(load));
  Limits limits{capacity};
  if (load.file.slo && !load.file.closed) {
    limits.held = TRY(held_rate(load, capacity));
  }
  return limits;
}

Document document_of(const ServedLoad& load, const Limits& limits) {
  const ServeFile& file = load.file;
  const serving::Deployment& s = file.deployment;
  const auto estimate = [&](const auto& of) { return load.estimate<double>(of); };
  const auto rate = [&](double Measures::*amount, double per) {
    return estimate([&](const Measures& m) { return m.*amount / m.duration / per; });
  };
  const std::string_view router = serving::kRoutingNames[static_cast<std::size_t>(file.routing)];
  // One output token has no time to the next.
  const bool generates =
      std::ranges::any_of(file.requests, [](const serving::Request& r) { return r.output > 1; });
  Document d{.command = "simulate", .methods = {Method::kServer}};
  const std::string_view framework =
      serving::kFrameworkNames[static_cast<std::size_t>(s.framework)];
  const std::string prompts_on =
      file.prefill && !file.prefill->device.empty()
          ? fmt::format("{} × {} and ", file.prefill->devices, file.prefill->device)
          : "";
  d.answer = sentence_of(fmt::format("{} on {}{} × {} by {}{}{}", s.model.name, prompts_on,
                                     prompts_on.empty() ? file.devices : devices_of(s.plan),
                                     s.device, framework, s.version.empty() ? "" : " ", s.version),
                         {fmt::format("TTFT {}", range_words(load.ttft(&serving::Spread::mean))),
                          generates ? fmt::format("TPOT {}", range_words(load.mean_tpot())) : "",
                          saturated(load, limits.capacity) ? "saturated" : ""});
  const std::string_view weights =
      serving::kWeightsNames[static_cast<std::size_t>(s.precision.weights)];
  d["server"] = {{"model", s.model.name},
                 {"device", s.device},
                 {"devices", file.devices},
                 {"framework", framework},
                 {"version", s.version},
                 {"weights", weights},
                 {"requests", file.requests.size()},
                 {"replicas", s.plan.data},
                 {"router", router}};
  const auto spread = [&](const serving::Spread Measures::*of) {
    return [&load, of](double serving::Spread::*which) {
      return load.estimate<Seconds>([&](const Measures& m) { return Seconds::s(m.*of.*which); });
    };
  };
  add_spread(d, "ttft", "time to first token", [&](auto which) { return load.ttft(which); });
  if (generates) {
    add_spread(d, "tpot", "time per output token", spread(&Measures::tpot));
    add_spread(d, "itl", "time between tokens", spread(&Measures::itl));
  } else {
    d["tpot"] = nullptr;
    d["itl"] = nullptr;
  }
  add_spread(d, "end_to_end", "end to end", [&](auto which) { return load.end_to_end(which); });
  add_spread(d, "queue", "in the queue", spread(&Measures::queue));
  if (file.prefill) add_spread(d, "transfer", "transfer", spread(&Measures::transfer));
  add_parts(d, load);
  const Quantity tokens(load.tokens_per_s(), unit::kTokens);
  d["throughput"] = {
      {"requests_per_s", Quantity(rate(&Measures::requests, 1), unit::kRate)},
      {"tokens_per_s", tokens},
      {"tokens_per_s_per_device", Quantity(load.tokens_per_s_per_device(), unit::kTokens)}};
  d.show("", "output tokens", tokens);
  d.show("duration", "duration",
         load.estimate<Seconds>([](const Measures& m) { return Seconds::s(m.duration); }));
  const bool deadlines = std::ranges::any_of(
      file.requests, [](const serving::Request& r) { return r.deadline > Picoseconds(0); });
  if (file.slo || deadlines)
    d.show("goodput", file.slo ? "requests within the SLO" : "requests within their deadlines",
           Quantity(load.goodput(), unit::kRate));
  if (limits.held)
    d.show("held_rate", fmt::format("rate with {:.0f} % within the SLO", 100 * kHeldShare),
           Quantity(*limits.held, unit::kRate));
  add_classes(d, load);
  const Quantity reused(
      estimate([](const Measures& m) { return m.reused_tokens / m.input_tokens; }), unit::kShare);
  d["cache"] = {
      {"blocks", load.space.blocks},
      {"block_tokens", file.rules.block_tokens},
      {"occupancy", share_of(load, &ServedLoad::token_replicas, &serving::Use::occupancy)},
      {"peak_occupancy",
       share_of(load, &ServedLoad::token_replicas, &serving::Use::peak_occupancy)},
      {"reused", reused}};
  if (!load.space.tiers.empty() || (load.prefill && !load.prefill->space.tiers.empty())) {
    const Quantity loaded(
        estimate([](const Measures& m) { return m.loaded_tokens / m.input_tokens; }), unit::kShare);
    d["cache"]["loaded"] = loaded;
    d.show("", "prompt tokens from tiers", loaded);
  }
  d.show("", "KV cache",
         fmt::format("{} blocks of {} tokens, at most {:.0f} % held",
                     grouped(static_cast<std::uint64_t>(load.space.blocks)),
                     file.rules.block_tokens, 100 * load.measures[0].peak_occupancy));
  if (file.prefill) {
    d["pools"] = Value::object();
    add_pool(d, load, "prefill", "pool for prompts", file.prefill->plan,
             &ServedLoad::prompt_replicas);
    add_pool(d, load, "decode", "pool for tokens", s.plan, &ServedLoad::token_replicas);
  }
  const Quantity overloaded(estimate([](const Measures& m) { return m.overloaded; }), unit::kShare);
  d["overloaded"] = overloaded;
  if (file.scaling) {
    add_scaling(d, load);
    d.show("", "time with requests that wait", overloaded);
  }
  d["preemptions"] = load.measures[0].preemptions;
  d["running"] = load.measures[0].running;
  d.show("", "concurrent requests", fmt::format("{:.1f} on average", load.measures[0].running));
  d["memory_per_device"] = {{"value", load.space.total().b()},
                            {"unit", "B"},
                            {"usable", load.space.usable},
                            {"fits", true},
                            {"parts",
                             {{"weights", load.space.weights},
                              {"context", load.space.context},
                              {"activations", load.space.activations},
                              {"cache", load.space.cache}}}};
  d.show("", "weights", fmt::format("{}, {}", to_string(load.space.weights), weights));
  add_costs(d, load);
  d["saturated"] = saturated(load, limits.capacity);
  d.show("capacity", "saturated throughput", Quantity(limits.capacity, unit::kRate));
  d.show("", "based on", load.price.sources());
  for (const std::string& note : file.notes) d.line(note);
  return d;
}

}  // namespace

Result<Document> serving_document(const ServedLoad& load) {
  const Limits limits = TRY(limits_of(load));
  return document_of(load, limits);
}

Result<Exit> simulate_serving(const SimulateOptions& options, const Globals& globals) {
  if (!options.files.perfetto.empty())
    return fail("--perfetto does not apply to a server", "--report FILE");
  if (!options.sharing.slice.empty())
    return fail("a slice is a device of the cluster",
                "cluster: {device: \"a100_sxm4_80:1g.10gb\"}");
  if (options.sharing.asked()) return share_servers(options, globals);
  ServeFile file = TRY(load_serve_file(options.job_file, options.cluster));
  std::optional<Watch> watch(std::in_place, globals.progress_of("simulating"));
  const Result<ServedLoad> load = serve(file);
  if (!load) return wrong_in(options.job_file, load.error());
  const Result<Limits> limits = limits_of(*load);
  if (!limits) return wrong_in(options.job_file, limits.error());
  const Result<LoadCurve> curve = load_curve(*load, limits->capacity);
  if (!curve) return wrong_in(options.job_file, curve.error());
  watch.reset();
  Document document = document_of(*load, *limits);
  if (!curve->points.empty()) {
    document["load_curve"] = curve_fields(file, *curve);
    document.show("", "Latency against load", document["load_curve"]["points"]);
  }
  return answer_with(globals, document, Exit::kSuccess, {.inputs = {options.job_file}});
}

}  // namespace rehearse::cli
