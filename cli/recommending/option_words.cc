#include "cli/recommending/option_words.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/config/job_file.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cli {

using cost::Option;

std::string name_of(const Option& option) {
  return fmt::format("{} × {}", option.count, option.instance);
}

std::string place_of(const Option& option) {
  return option.provider + (option.region.empty() ? "" : " " + option.region) +
         (option.market == cost::Market::kSpot ? " spot" : "");
}

Value offer_fields(const Option& o, const cost::Wish& wish, Look place) {
  Value json = {{"provider", "provider", o.provider, {}, place},
                {"region", o.region.empty() ? Value() : Value(o.region)},
                {"", "region", o.region, {}, place},
                {"market", cost::kMarketKeys[static_cast<std::size_t>(o.market)]},
                {"", "instances", name_of(o)},
                {"", "plan", o.evaluation ? o.evaluation->plan : "functions", {}, kProse},
                {"instance", o.instance},
                {"count", o.count}};
  if (wish.markets.size() > 1)
    json.show("", "market", cost::kMarketNames[static_cast<std::size_t>(o.market)]);
  return json;
}

Value account_fields(const cost::JobAccount& a) {
  Value json = Value::object();
  json.show("time_to_target", "time", a.time, in::kHours);
  json.show("cost_to_target", "cost", a.money, in::kUsd);
  json["storage_cost"] = a.storage;
  json["transfer_cost"] = a.transfer;
  json["energy"] = a.energy;
  if (a.energy) json.show("", "energy", a.energy->value, in::kKwh);
  json["carbon"] = a.carbon ? Value(Quantity(*a.carbon, unit::kCarbon)) : Value();
  if (a.carbon) json.show("", "carbon", Quantity(a.carbon->value, unit::kCarbon), in::kKg);
  return json;
}

void show_options(Document& document, const cost::Recommendation& found,
                  const std::function<Value(std::size_t, Look)>& fields) {
  constexpr std::size_t kShown = 8;
  Value& options = document["options"] = Value::array();
  const bool one_place = std::ranges::all_of(found.options, [&](const Option& o) {
    const Option& best = found.options.front();
    return o.provider == best.provider && o.region == best.region;
  });
  const Look place = one_place ? kInTables : Look{};  // which the screen does not repeat
  for (std::size_t i = 0; i < found.options.size(); ++i) options.push_back(fields(i, place));
  document.show("options", "Options", options, {}, first(kShown));
  document["pareto"] = found.pareto;
}

Value offers_fields(const cost::Recommendation& found) {
  return {{"seen", found.offers},
          {"ruled_out", found.bounded},
          {"impossible", found.impossible},
          {"why_impossible", found.why_impossible}};
}

std::string front_words(const Option& option, bool front) {
  return option.meets ? (front ? "yes" : "") : "misses a limit";
}

namespace {

/// A ratio in one of two sentences, so that the number in it is never below one.
std::string ratio_words(double ratio, fmt::format_string<std::string> above,
                        fmt::format_string<std::string> below) {
  return ratio >= 1 ? fmt::format(above, significant(ratio))
                    : fmt::format(below, significant(1 / ratio));
}

/// "takes 2.1 times as long at 1.2 times the cost": b compared with a.
std::string against(const Option& a, const Option& b) {
  std::string text = ratio_words(b.account.time.value / a.account.time.value,
                                 "takes {} times as long", "is {} times faster");
  if (a.account.money && b.account.money)
    text += ratio_words(b.account.money->value / a.account.money->value, " at {} times the cost",
                        " and is {} times cheaper");
  return text;
}

}  // namespace

std::vector<std::string> ranking_lines(const cost::Recommendation& found, const cost::Wish& wish) {
  const Option& best = found.options.front();
  std::vector<std::string> lines;
  const auto meeting =
      std::ranges::count_if(found.options, [](const Option& o) { return o.meets; });
  const bool fastest = cost::aim_of(wish) == cost::Aim::kFastest;
  std::string wishes;
  const auto add = [&](const std::string& text) {
    wishes += (wishes.empty() ? " that " : " and ") + text;
  };
  if (wish.deadline) add("finish within " + to_string(*wish.deadline));
  if (wish.budget) add("cost at most " + unit::kMoney.text(wish.budget->usd()));
  if (wish.most_carbon) add("emit at most " + unit::kCarbon.text(*wish.most_carbon));
  lines.push_back(fmt::format("the {} of {}{}", fastest ? "fastest" : "cheapest",
                              counted(static_cast<std::uint64_t>(meeting), "option"), wishes));
  if (found.options.size() > 1 && found.options[1].meets)
    lines.push_back(fmt::format("the second, {}, {}", name_of(found.options[1]),
                                against(best, found.options[1])));
  if (!found.pareto.empty()) {
    const Option& other = found.options[fastest ? found.pareto.back() : found.pareto.front()];
    if (&other != &best && (found.options.size() < 2 || &other != &found.options[1]))
      lines.push_back(fmt::format("the {}, {}, {}", fastest ? "cheapest" : "fastest",
                                  name_of(other), against(best, other)));
  }
  return lines;
}

std::string counts_line(const cost::Recommendation& found) {
  return fmt::format("{} of {} evaluated; bounds rule out {}, {} cannot run the job",
                     counted(found.options.size(), "option"), counted(found.offers, "offer"),
                     grouped(found.bounded), grouped(found.impossible));
}

std::vector<Warning> limit_warnings(const Option& best, const cost::Wish& wish) {
  std::vector<Warning> lines;
  const cost::JobAccount& a = best.account;
  if (wish.deadline && a.time.high > *wish.deadline)
    lines.push_back({"may finish after the deadline: the upper end of its interval is later",
                     "choose an option whose whole interval meets it, or narrow the interval by "
                     "rehearse calibrate job with measured steps"});
  if (wish.budget && a.money && a.money->high > *wish.budget)
    lines.push_back({"may exceed the budget: the upper end of its cost interval is above it",
                     "choose an option whose whole interval meets it, or narrow the interval by "
                     "rehearse calibrate job with measured steps"});
  const cost::Place& place = wish.place;
  const cost::PriceBook& book = place.prices ? *place.prices : cost::PriceBook::shipped();
  if (const auto price = book.quote(best.instance, best.region, best.market); price && place.today)
    if (const auto old = cost::stale(*price, *place.today))
      lines.push_back({fmt::format("the price of {} is {}", best.instance, *old),
                       "pass a current price: --prices FILE"});
  return lines;
}

Result<std::vector<cost::Offer>> offers_of(cost::Wish& wish, const Rent& rent,
                                           const std::filesystem::path& file) {
  const bool providers_by_option = !wish.providers.empty();
  const bool regions_by_option = !wish.regions.empty();
  if (!providers_by_option) wish.providers = rent.providers;
  if (!regions_by_option) wish.regions = rent.regions;
  if (wish.markets.empty()) wish.markets = rent.markets;
  if (wish.markets.empty()) wish.markets = {cost::Market::kOnDemand};
  Result<std::vector<cost::Offer>> offers = cost::offers_of(wish);
  if (offers) return offers;
  Diagnostic wrong = offers.error().diagnostics.front();
  if (wrong.key.empty()) return offers;
  if (!(wrong.key == "region" ? regions_by_option : providers_by_option))
    return wrong_in(file, offers.error());
  wrong.key = "--" + wrong.key;
  return fail(std::move(wrong));
}

}  // namespace rehearse::cli
