#include "cli/commands/recommend_result.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/commands/step_result.h"
#include "cli/output/warnings.h"
#include "cli/planning/plan_json.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using cost::Option;

constexpr std::size_t kShown = 10;

std::string name_of(const Option& option) {
  return fmt::format("{} × {}", option.count, option.instance);
}

/// "44 012 USD": above a hundred without cents.
std::string usd_text(Usd amount) {
  if (amount.usd() < 100) return to_string(amount);
  return grouped(static_cast<std::uint64_t>(std::llround(amount.usd()))) + " USD";
}

std::string grams_text(double grams) {
  if (grams >= 1e6) return significant(grams / 1e6) + " tCO2e";
  return grams >= 1e3 ? significant(grams / 1e3) + " kgCO2e" : significant(grams) + " gCO2e";
}

/// "aws us-east-1 spot"
std::string place_of(const Option& option) {
  return option.provider + (option.region.empty() ? "" : " " + option.region) +
         (option.market == cost::Market::kSpot ? " spot" : "");
}

struct NamedStall {
  const char* name;
  const char* within;  ///< before it in a sentence
  std::optional<Seconds> time;
};

std::vector<NamedStall> stalls_of(const Option& option) {
  const cost::Stalls& s = option.evaluation->stalls;
  return {{"interconnect", "", s.interconnect},
          {"network", ", ", s.network},
          {"input", ", ", s.input},
          {"fetch", ", of which ", s.fetch}};
}

/// Share of the step.
double share(const Option& option, Seconds stall) {
  return stall / option.evaluation->job.step.value;
}

std::string percent(const Option& option, const std::optional<Seconds>& stall) {
  return stall ? fmt::format("{:.1f}", share(option, *stall) * 100) : "";
}

std::string sentence(const Recommended& r) {
  const Option& best = r.found.options.front();
  const cost::JobAccount& a = best.account;
  std::string text =
      fmt::format("{} on {} ({}): {} ({} – {})", r.job.job().name, name_of(best), place_of(best),
                  to_string(a.time.value), to_string(a.time.low), to_string(a.time.high));
  if (a.money)
    text += fmt::format(", {} ({} – {})", usd_text(a.money->value), usd_text(a.money->low),
                        usd_text(a.money->high));
  if (a.energy) text += ", " + significant(a.energy->value.kwh()) + " kWh";
  if (a.carbon) text += ", " + grams_text(a.carbon->value);
  return text + " to the target";
}

/// With the intervals of time and cost where there is room for them.
Table option_table(const Recommended& r, std::size_t most, bool intervals) {
  // How it is fed the job says of all of them or of none.
  const bool fed = r.job.job().input.has_value();
  const bool markets = r.wish.markets.size() > 1;
  std::vector<Column> columns = {{"provider", Align::kLeft}, {"region", Align::kLeft}};
  if (markets) columns.push_back({"market", Align::kLeft});
  columns.insert(columns.end(), {{"instances", Align::kLeft},
                                 {"plan", Align::kLeft},
                                 {"time (h)"},
                                 {"time low (h)"},
                                 {"time high (h)"},
                                 {"cost (USD)"},
                                 {"cost low (USD)"},
                                 {"cost high (USD)"},
                                 {"energy (kWh)"},
                                 {"carbon (kg)"},
                                 {"interconnect (%)"},
                                 {"network (%)"},
                                 {"node sharing (%)"}});
  if (fed) columns.push_back({"input (%)"});
  if (fed) columns.push_back({"fetch (%)"});
  columns.push_back({"Pareto", Align::kLeft});
  Table table(std::move(columns));
  const auto hours = [](Seconds t) { return significant(t.s() / 3600); };
  for (std::size_t i = 0; i < std::min(most, r.found.options.size()); ++i) {
    const Option& o = r.found.options[i];
    const cost::JobAccount& a = o.account;
    const bool front =
        std::find(r.found.pareto.begin(), r.found.pareto.end(), i) != r.found.pareto.end();
    std::vector<std::string> row = {o.provider, o.region};
    if (markets) row.emplace_back(cost::kMarketNames[static_cast<std::size_t>(o.market)]);
    const std::vector<std::string> cells = {
        name_of(o),
        o.evaluation ? o.evaluation->plan : "functions",
        hours(a.time.value),
        intervals ? hours(a.time.low) : "",
        intervals ? hours(a.time.high) : "",
        a.money ? significant(a.money->value.usd(), 4) : "",
        a.money && intervals ? significant(a.money->low.usd(), 4) : "",
        a.money && intervals ? significant(a.money->high.usd(), 4) : "",
        a.energy ? significant(a.energy->value.kwh()) : "",
        a.carbon ? significant(a.carbon->value / 1e3) : "",
        o.evaluation ? percent(o, o.evaluation->stalls.interconnect) : "",
        o.evaluation ? percent(o, o.evaluation->stalls.network) : "",
        o.evaluation ? percent(o, o.evaluation->stalls.node_sharing) : ""};
    row.insert(row.end(), cells.begin(), cells.end());
    if (fed && o.evaluation) {
      row.push_back(percent(o, o.evaluation->stalls.input));
      row.push_back(percent(o, o.evaluation->stalls.fetch));
    } else if (fed) {
      row.resize(row.size() + 2);
    }
    row.push_back(o.meets ? (front ? "yes" : "") : "misses a wish");
    table.add(std::move(row));
  }
  return table;
}

Json carbon_json(const std::optional<Estimate<double>>& grams) {
  return grams ? json_predicted(*grams, "gCO2e") : Json{};
}

Json option_json(const Recommended& r, const Option& o) {
  const cost::JobAccount& a = o.account;
  Json json = {{"provider", o.provider},
               {"region", o.region.empty() ? Json{} : Json(o.region)},
               {"market", cost::kMarketKeys[static_cast<std::size_t>(o.market)]},
               {"instance", o.instance},
               {"count", o.count}};
  if (const auto instance = cluster::find_instance(o.instance))
    json["gpus"] = std::llround((*instance)->gpu_count) * o.count;
  json["plan"] = o.evaluation ? plan_json(r.job.spec(o.evaluation->detail)) : Json{};
  json["meets"] = o.meets;
  json["time_to_target"] = json_predicted(a.time);
  json["cost_to_target"] =
      a.money ? json_predicted(Estimate<double>{a.money->value.usd(), a.money->low.usd(),
                                                a.money->high.usd(), a.money->provenance},
                               "USD")
              : Json{};
  json["storage_cost"] = {{"value", a.storage.usd()}, {"unit", "USD"}};
  json["transfer_cost"] = {{"value", a.transfer.usd()}, {"unit", "USD"}};
  json["energy"] = a.energy
                       ? json_predicted(Estimate<double>{a.energy->value.j(), a.energy->low.j(),
                                                         a.energy->high.j(), a.energy->provenance},
                                        "J")
                       : Json{};
  json["carbon"] = carbon_json(a.carbon);
  if (o.evaluation) {
    const Estimate<Seconds>& step = o.evaluation->job.step;
    const double samples = r.job.samples_per_step(o.evaluation->detail);
    json["step_time"] = json_predicted(step);
    json["throughput"] =
        json_predicted(Estimate<double>{samples / step.value.s(), samples / step.high.s(),
                                        samples / std::max(step.low.s(), 1e-12), step.provenance},
                       "1/s");
    json["memory_per_device"] = memory_json(r.job.memory(o.evaluation->detail));
    Json stalls = Json::object();
    const auto add = [&](const char* name, const std::optional<Seconds>& time) {
      if (time) stalls[name] = {{"value", time->s()}, {"unit", "s"}, {"share", share(o, *time)}};
    };
    for (const NamedStall& stall : stalls_of(o)) add(stall.name, stall.time);
    add("node_sharing", o.evaluation->stalls.node_sharing);
    json["stalls"] = std::move(stalls);
  }
  if (a.checkpoints)
    json["checkpoints"] = {{"every", json_measured(a.checkpoints->every)},
                           {"write", json_measured(a.checkpoints->write)},
                           {"slowdown", a.checkpoints->slowdown}};
  json["notes"] = a.notes;
  return json;
}

/// "12 % dearer and 2.1 times as long": of b against a.
std::string against(const Option& a, const Option& b) {
  const double time = b.account.time.value / a.account.time.value;
  std::string text = fmt::format("takes {} times as long", significant(time));
  if (a.account.money && b.account.money)
    text += fmt::format(" at {} times the cost",
                        significant(b.account.money->value / a.account.money->value));
  return text;
}

}  // namespace

std::vector<std::string> why_of(const Recommended& r) {
  const cost::Recommendation& found = r.found;
  const Option& best = found.options.front();
  std::vector<std::string> lines;
  const auto meeting = std::count_if(found.options.begin(), found.options.end(),
                                     [](const Option& o) { return o.meets; });
  const bool fastest = cost::aim_of(r.wish) == cost::Aim::kFastest;
  std::string wishes;
  const auto add = [&](const std::string& text) {
    wishes += (wishes.empty() ? " that " : " and ") + text;
  };
  if (r.wish.deadline) add("are done in " + to_string(*r.wish.deadline));
  if (r.wish.budget) add("cost at most " + usd_text(*r.wish.budget));
  if (r.wish.most_carbon) add("emit at most " + grams_text(*r.wish.most_carbon));
  lines.push_back(fmt::format("the {} of {}{}", fastest ? "fastest" : "cheapest",
                              counted(static_cast<std::uint64_t>(meeting), "option"), wishes));
  if (found.options.size() > 1 && found.options[1].meets)
    lines.push_back(fmt::format("the next, {}, {}", name_of(found.options[1]),
                                against(best, found.options[1])));
  if (!found.pareto.empty()) {
    const Option& other = found.options[fastest ? found.pareto.back() : found.pareto.front()];
    if (&other != &best && (found.options.size() < 2 || &other != &found.options[1]))
      lines.push_back(fmt::format("the {}, {}, {}", fastest ? "cheapest" : "fastest",
                                  name_of(other), against(best, other)));
  }
  if (best.evaluation) {
    std::string stalls;
    for (const NamedStall& stall : stalls_of(best))
      if (stall.time)
        stalls += fmt::format("{}{:.1f} % on the {}", stall.within, share(best, *stall.time) * 100,
                              stall.name);
    lines.push_back("of its step it waits " + stalls);
    if (const auto& sharing = best.evaluation->stalls.node_sharing)
      lines.push_back(fmt::format(
          "with each GPU on an instance of its own the step would be {:.1f} % {}",
          std::abs(share(best, *sharing)) * 100, *sharing < Seconds::s(0) ? "longer" : "shorter"));
  }
  if (best.account.checkpoints)
    lines.push_back(
        fmt::format("a checkpoint every {}: all takes {:.1f} % longer, writing and "
                    "interruptions together",
                    to_string(best.account.checkpoints->every),
                    (best.account.checkpoints->slowdown - 1) * 100));
  lines.push_back(fmt::format("{} evaluated of {}; bounds rule out {}, {} cannot run it",
                              counted(found.options.size(), "option"),
                              counted(found.offers, "offer"), grouped(found.bounded),
                              grouped(found.impossible)));
  return lines;
}

std::vector<Warning> warnings_of(const Recommended& r) {
  const Option& best = r.found.options.front();
  std::vector<Warning> lines;
  if (!r.wish.deadline && !r.wish.budget)
    lines.push_back({"neither --deadline nor --budget is given: the cheapest may take long",
                     "give one, such as --deadline '5 days'"});
  const cost::JobAccount& a = best.account;
  if (r.wish.deadline && a.time.high > *r.wish.deadline)
    lines.push_back({"the upper end of its time is behind the deadline",
                     "take an option whose whole interval meets it, or narrow the interval: "
                     "rehearse calibrate job on measured steps"});
  if (r.wish.budget && a.money && a.money->high > *r.wish.budget)
    lines.push_back({"the upper end of its cost is above the budget",
                     "take an option whose whole interval meets it, or narrow the interval: "
                     "rehearse calibrate job on measured steps"});
  const cost::Place& place = r.wish.place;
  const cost::PriceBook& book = place.prices ? *place.prices : cost::PriceBook::shipped();
  if (const auto price = book.quote(best.instance, best.region, best.market); price && place.today)
    if (const auto old = cost::stale(*price, *place.today))
      lines.push_back({fmt::format("the price of {} is {}", best.instance, *old),
                       "give the price of today: --prices FILE"});
  if (!best.evaluation) return lines;
  if (!best.evaluation->stalls.input)
    lines.push_back({"input and fetch stalls are not known: the job does not say how it is fed",
                     "describe the pipeline that feeds it in a file, and name it as `input` of the "
                     "job"});
  return lines;
}

std::string recommend_text(const Recommended& r) {
  std::string text = sentence(r) + "\n\n";
  text += option_table(r, kShown, false).text(36);
  if (r.found.options.size() > kShown)
    text += fmt::format("and {} more (--format csv)\n", r.found.options.size() - kShown);
  text += "\nWhy\n";
  for (const std::string& line : why_of(r)) text += "  " + line + "\n";
  for (const std::string& line : r.found.options.front().account.notes) text += line + "\n";
  return text;
}

Json recommend_json(const Recommended& r) {
  Json json = json_root("recommend");
  json["job"] = {{"workload", r.job.job().name}};
  json["options"] = Json::array();
  for (const Option& o : r.found.options) json["options"].push_back(option_json(r, o));
  json["pareto"] = r.found.pareto;
  json["why"] = why_of(r);
  json["offers"] = {{"seen", r.found.offers},
                    {"ruled_out", r.found.bounded},
                    {"impossible", r.found.impossible},
                    {"why_impossible", r.found.why_impossible}};
  put_warnings(json, warnings_of(r));
  return json;
}

Table recommend_table(const Recommended& r) {
  return option_table(r, r.found.options.size(), true);
}

}  // namespace rehearse::cli
