#include "cli/commands/recommend_serving.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/commands/plan_result.h"
#include "cli/output/document.h"
#include "cli/recommending/option_words.h"
#include "cli/recommending/server_on_offers.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using cost::Option;

constexpr double kMillion = 1e6;

struct RecommendedServer {
  const ServerOnOffers& job;
  const cost::Wish& wish;
  cost::Recommendation found;  ///< its front is that of time per token and cost
  const ServerOnOffer& of(const Option& option) const {
    return job.found(option.evaluation->detail);
  }
};

/// Options that no other beats in both the time per token and the cost, by the time per token.
std::vector<std::size_t> front_of(const RecommendedServer& r) {
  const std::vector<Option>& options = r.found.options;
  const auto key = [&](const Option& o) {
    return std::pair(r.of(o).mean_tpot.value, o.account.money->value);
  };
  const auto counts = [](const Option& o) { return o.meets && o.account.money; };
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (!counts(options[i])) continue;
    const auto own = key(options[i]);
    const bool beaten = std::ranges::any_of(options, [&](const Option& other) {
      if (!counts(other)) return false;
      const auto its = key(other);
      return its.first <= own.first && its.second <= own.second && its != own;
    });
    if (!beaten) front.push_back(i);
  }
  std::ranges::stable_sort(
      front, [&](std::size_t a, std::size_t b) { return key(options[a]) < key(options[b]); });
  return front;
}

Value option_fields(const RecommendedServer& r, std::size_t index, Look place) {
  const Option& o = r.found.options[index];
  const ServerOnOffer& server = r.of(o);
  const bool front = std::ranges::find(r.found.pareto, index) != r.found.pareto.end();
  Value json = offer_fields(o, r.wish, place);
  json["gpus"] = server.devices;
  json.add(server.fields);
  json.show("", "flags", server.flags, {}, kInTables);
  json["meets"] = o.meets;
  json.add(without_labels(account_fields(o.account)));
  const double each = kMillion / r.job.tokens();
  const cost::JobAccount& a = o.account;
  json.show("cost_per_million_tokens", "USD per M tokens",
            a.money ? Value(*a.money * each) : Value(), in::kUsd);
  if (a.energy) json.show("", "kWh per M tokens", a.energy->value * each, in::kKwh);
  if (a.carbon)
    json.show("", "kgCO2e per M tokens", Quantity(a.carbon->value * each, unit::kCarbon), in::kKg);
  json.show("goodput", r.job.job().slo ? "requests/s in SLO" : "requests/s",
            Quantity(server.goodput, unit::kRate), {"1/s", 1, 3});
  json["throughput"] = {{"tokens_per_s", Quantity(server.tokens_per_s, unit::kTokens)},
                        {"tokens_per_s_per_device",
                         Quantity(server.tokens_per_s * (1. / server.devices), unit::kTokens)}};
  json["tokens_per_s_per_user"] = Quantity(server.tokens_per_user, unit::kTokens);
  json["ttft"] = {{"mean", server.mean_ttft}, {"p99", server.p99_ttft}};
  json["tpot"] = {{"mean", server.mean_tpot}, {"p99", server.p99_tpot}};
  json.show("", "TTFT", server.mean_ttft, in::kMs);
  json.show("", "TPOT", server.mean_tpot, in::kMs);
  json["notes"] = o.account.notes;
  json.show("", "Pareto", front_words(o, front));
  return json;
}

std::vector<std::string> why_of(const RecommendedServer& r) {
  std::vector<std::string> lines = ranking_lines(r.found, r.wish);
  const Option& best = r.found.options.front();
  const ServerOnOffer& server = r.of(best);
  if (!r.found.pareto.empty())
    if (const Option& other = r.found.options[r.found.pareto.front()]; &other != &best)
      lines.push_back(fmt::format("the least time per token, {} on {}, instead of {}",
                                  to_string(r.of(other).mean_tpot.value), name_of(other),
                                  to_string(server.mean_tpot.value)));
  if (server.used < server.devices)
    lines.push_back(fmt::format("its settings use {} of the {}; the rest is idle and paid for",
                                server.used, counted(server.devices, "GPU")));
  if (best.step_before) {
    const std::string before = to_string(*best.step_before),
                      time = to_string(best.account.time.value);
    lines.push_back(fmt::format("with searched flags {} output tokens take {}{}",
                                grouped(static_cast<std::uint64_t>(r.job.tokens())), time,
                                time == before ? ", as before" : " instead of " + before));
  }
  lines.push_back(counts_line(r.found));
  return lines;
}

Document document_of(const RecommendedServer& r) {
  const Option& best = r.found.options.front();
  const ServerOnOffer& server = r.of(best);
  const cost::JobAccount& a = best.account;
  Document d{.command = "recommend", .rows = "options", .rows_title = "Options"};
  const double each = kMillion / r.job.tokens();
  d.answer = sentence_of(
      fmt::format("{} on {} ({}), {}", r.job.job().deployment.model.name, name_of(best),
                  place_of(best), best.evaluation->plan),
      {a.money ? range_words(*a.money * each, " per million output tokens") : "",
       "TTFT " + range_words(server.mean_ttft), "TPOT " + range_words(server.mean_tpot),
       a.energy ? range_words(*a.energy * each, " per million") : "",
       a.carbon ? range_words(Quantity(*a.carbon * each, unit::kCarbon), " per million") : ""});
  d["job"] = {{"workload", r.job.job().deployment.model.name}};
  d["target"] = {{"output_tokens", r.job.tokens()}};
  show_options(d, r.found, [&](std::size_t i, Look place) { return option_fields(r, i, place); });
  d.show("", "flags of the first option", server.flags);
  d.show("why", "Why", why_of(r));
  d.show("", "Notes", a.notes);
  d["offers"] = offers_fields(r.found);
  d.methods = {Method::kOffers, Method::kServerSearch, Method::kServer};
  d.add_warnings(limit_warnings(best, r.wish));
  return d;
}

}  // namespace

Result<Exit> recommend_serving(const RecommendServingOptions& options, cost::Wish wish,
                               const Globals& globals, SharedWork& shared) {
  if (options.target && !options.target->tokens)
    return fail("--target: a server generates tokens", "--target '1e9 tokens'");
  const ServerOnOffers job = TRY(
      ServerOnOffers::load(options.job_file, options.target ? *options.target->tokens : kMillion,
                           {&cluster::instances().front(), 1}));
  wish.place.hours = job.job().place.hours;
  const std::vector<cost::Offer> offers = TRY(offers_of(wish, job.job().rent, options.job_file));
  cost::Recommendation found = TRY(in_file(
      options.job_file,
      search_offers(
          options.job_file, wish, offers,
          [&job](const SpreadOf& spread) { return job.evaluator(spread); }, globals, shared)));
  RecommendedServer recommended{job, wish, std::move(found)};
  recommended.found.pareto = front_of(recommended);
  const Document document = document_of(recommended);
  for (const Warning& warning : limit_warnings(recommended.found.options.front(), wish))
    globals.warn(to_string(warning));
  return answer_with(globals, document, Exit::kSuccess, {.inputs = {options.job_file}});
}

}  // namespace rehearse::cli
