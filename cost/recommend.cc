#include "cost/recommend.h"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "sim/base/check.h"
#include "sim/base/on_threads.h"
#include "sim/base/statistics.h"
#include "sim/base/text.h"

namespace rehearse::cost {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
/// The number of offers that get their second bound at a time, and the most of the promising ones
/// that are evaluated before bounds are checked again. Offers of many devices take seconds each: of
/// those, the first is evaluated alone, because it rules out most of the others, and then up to
/// `kLargeBatch`.
constexpr std::size_t kBatch = 32, kLargeBatch = 8;
constexpr double kManyDevices = 16'384;  // of a batch
/// Second evaluations take seconds. A first option seldom loses to several rivals.
constexpr std::size_t kMostLooks = 5;

/// An offer before its evaluation, with its bounds.
struct Candidate {
  const Offer* offer;
  Seconds least;
  std::optional<Usd> least_cost;  ///< absent: it has no price
};

/// The distance from the wishes: 0 if all are met, 0.1 if one is missed by a tenth. An unknown
/// value misses its wish by far.
double excess_of(const Wish& wish, Seconds time, std::optional<Usd> cost,
                 std::optional<double> carbon) {
  double most = 0;
  const auto add = [&](double ratio) { most = std::max(most, ratio - 1); };
  if (wish.deadline) add(time / *wish.deadline);
  if (wish.budget) add(cost ? *cost / *wish.budget : kInfinite);
  if (wish.most_carbon) add(carbon ? *carbon / *wish.most_carbon : kInfinite);
  return most;
}

/// What counts of an option: its values at the wish's risk.
struct Counted {
  Seconds time;
  std::optional<Usd> money;
  std::optional<double> carbon;
};
Counted counted(const Wish& wish, const Option& option) {
  const JobAccount& account = option.account;
  Counted values{value_at(account.time, wish.risk), {}, {}};
  if (account.money) values.money = value_at(*account.money, wish.risk);
  if (account.carbon) values.carbon = value_at(*account.carbon, wish.risk);
  return values;
}

double excess_of(const Wish& wish, const Option& option) {
  const Counted values = counted(wish, option);
  return excess_of(wish, values.time, values.money, values.carbon);
}

/// The excess at its bounds; carbon has no bound.
double least_excess(const Wish& wish, const Candidate& c) {
  Wish bounded = wish;
  bounded.most_carbon.reset();
  return excess_of(bounded, c.least, c.least_cost, std::nullopt);
}

Place place_of(const Wish& wish, const Offer& offer) {
  Place place = wish.place;
  place.rented = {{offer.instance->name, static_cast<double>(offer.count)}};
  place.region = offer.region;
  place.market = offer.market;
  return place;
}

std::optional<Quote> quote_of(const Wish& wish, const Offer& offer) {
  const PriceBook& book = wish.place.prices ? *wish.place.prices : PriceBook::shipped();
  return book.quote(offer.instance->name, offer.region, offer.market);
}

Result<Option> option_of(const Wish& wish, const Offer& offer,
                         const std::function<Result<Evaluation>(const Offer&)>& evaluate) {
  Evaluation evaluation = TRY(evaluate(offer));
  JobAccount account =
      TRY(account_for_job(evaluation.job, evaluation.devices, place_of(wish, offer), wish.keeping));
  std::string region = offer.region;
  if (const std::optional<Quote> quote = quote_of(wish, offer); region.empty() && quote)
    region = quote->region;
  Option option{offer.instance->provider,
                offer.instance->name,
                std::move(region),
                offer.market,
                offer.count,
                std::move(evaluation),
                std::move(account),
                false,
                offer};
  option.meets = excess_of(wish, option) <= 0;
  return option;
}

/// At least as soon and at least as cheap, and better in one of them.
bool dominates(const Counted& a, Seconds time, Usd cost) {
  return a.money && a.time <= time && *a.money <= cost && (a.time < time || *a.money < cost);
}

/// The bound of the cost that a bound of the time implies.
std::optional<Usd> least_cost(const Wish& wish, const Offer& offer, Seconds least) {
  const std::optional<Quote> quote = quote_of(wish, offer);
  return quote ? std::optional(quote->rate * least * offer.count) : std::nullopt;
}

/// The most promising ones first: they rule out most of the others.
void sort_by_promise(const Wish& wish, std::vector<Candidate>& candidates) {
  const Aim aim = aim_of(wish);
  std::ranges::stable_sort(candidates, [&](const Candidate& a, const Candidate& b) {
    const auto key = [&](const Candidate& c) {
      if (aim == Aim::kFastest) return c.least.s();
      return c.least_cost ? c.least_cost->usd() : kInfinite;
    };
    return key(a) < key(b);
  });
}

std::vector<Candidate> candidates_of(const Wish& wish, const std::vector<Offer>& offers,
                                     const Evaluator& evaluator, std::size_t& without) {
  std::vector<Candidate> candidates;
  for (const Offer& offer : offers) {
    const std::optional<Seconds> least = evaluator.least_time(offer);
    if (!least) {
      ++without;
      continue;
    }
    candidates.push_back({&offer, *least, least_cost(wish, offer, *least)});
  }
  sort_by_promise(wish, candidates);
  return candidates;
}

void order(const Wish& wish, Recommendation& found) {
  const Aim aim = aim_of(wish);
  std::ranges::stable_sort(found.options, [&](const Option& a, const Option& b) {
    const auto key = [&](const Option& o) {
      const Counted values = counted(wish, o);
      const double time = values.time.s();
      const double cost = values.money ? values.money->usd() : kInfinite;
      return aim == Aim::kFastest ? std::tuple(!o.meets, time, cost)
                                  : std::tuple(!o.meets, cost, time);
    };
    return key(a) < key(b);
  });
  found.pareto.clear();
  for (std::size_t i = 0; i < found.options.size(); ++i) {
    const Option& option = found.options[i];
    const Counted values = counted(wish, option);
    if (!option.meets || !values.money) continue;
    const bool beaten = std::ranges::any_of(found.options, [&](const Option& other) {
      return other.meets && dominates(counted(wish, other), values.time, *values.money);
    });
    if (!beaten) found.pareto.push_back(i);
  }
  std::ranges::stable_sort(found.pareto, [&](std::size_t a, std::size_t b) {
    return counted(wish, found.options[a]).time < counted(wish, found.options[b]).time;
  });
}

class Search {
 public:
  Search(const Wish& wish, const Evaluator& evaluator, unsigned threads, const Progress& progress)
      : wish_(wish), evaluator_(evaluator), threads_(threads), progress_(progress) {}

  Status run(const std::vector<Candidate>& candidates) {
    total_ = candidates.size();
    std::vector<Candidate> bounded;
    for (const Candidate& c : candidates) {
      if (is_promising(c)) bounded.push_back(c);
      if (bounded.size() == kBatch) TRY(evaluate_promising(bounded));
    }
    TRY(evaluate_promising(bounded));
    found.bounded += hopeless_.size();
    if (any_meets()) return {};
    return find_nearest(std::move(hopeless_));
  }

  /// Evaluates the first option again, then the one that is first as a result, and so on. REQUIRES:
  /// options are in order.
  Status look_again() {
    for (std::size_t looks = 0; looks < kMostLooks && !found.options.empty(); ++looks) {
      const Option& first = found.options.front();
      if (!first.meets || !first.evaluation || first.step_before) break;
      evaluate_again(first.evaluation->detail);
      TRY(evaluate_no_longer_dominated());
      order(wish_, found);
    }
    return {};
  }

  Recommendation found;
  std::optional<Error> first_error;

 private:
  /// Whether its bounds leave it a chance; else it is kept among those without.
  bool is_promising(const Candidate& c) {
    if (least_excess(wish_, c) > 0) {
      hopeless_.push_back(c);
      return false;
    }
    if (!is_dominated(c)) return true;
    dominated_.push_back(c);
    ++found.bounded;
    return false;
  }

  /// Evaluates those that keep their chance with the second bound, and empties the list.
  Status evaluate_promising(std::vector<Candidate>& some) {
    if (evaluator_.least_time_by_plans) {
      on_threads(some.size(), threads_, [&](std::size_t i) {
        Candidate& c = some[i];
        c.least = std::max(c.least, evaluator_.least_time_by_plans(*c.offer));
        c.least_cost = least_cost(wish_, *c.offer, c.least);
      });
      sort_by_promise(wish_, some);
    }
    std::vector<Candidate> batch;
    double devices = 0;
    for (const Candidate& c : some) {
      if (!is_promising(c)) continue;
      batch.push_back(c);
      devices += c.offer->instance->gpu_count * c.offer->count;
      if (devices < kManyDevices || batch.size() < std::min(kLargeBatch, found.options.size() + 1))
        continue;
      TRY(evaluate(batch));
      devices = 0;
    }
    some.clear();
    return evaluate(batch);
  }

  /// An option and those that share its plan; those that turn out to be impossible are removed.
  void evaluate_again(std::size_t detail) {
    std::vector<Option> options;
    for (Option& option : found.options) {
      if (!option.evaluation || option.evaluation->detail != detail) {
        options.push_back(std::move(option));
        continue;
      }
      Result<Option> again = option_of(wish_, *option.offer, evaluator_.look_again);
      if (again) {
        again->step_before = option.evaluation->job.step.value;
        options.push_back(std::move(*again));
      } else {
        ++found.impossible;
        if (!first_error) first_error = again.error();
      }
    }
    found.options = std::move(options);
  }

  Status evaluate_no_longer_dominated() {
    std::vector<Candidate> batch;
    std::erase_if(dominated_, [&](const Candidate& c) {
      if (is_dominated(c)) return false;
      batch.push_back(c);
      return true;
    });
    found.bounded -= batch.size();
    return batch.empty() ? Status() : evaluate(batch);
  }

  bool any_meets() const {
    return std::ranges::any_of(found.options, [](const Option& o) { return o.meets; });
  }

  bool is_dominated(const Candidate& c) const {
    return c.least_cost && std::ranges::any_of(found.options, [&](const Option& o) {
             return o.meets && dominates(counted(wish_, o), c.least, *c.least_cost);
           });
  }

  /// Nothing meets the wishes. Evaluates in order of the nearest bounds, until none of the rest can
  /// come nearer than the evaluated options.
  Status find_nearest(std::vector<Candidate> rest) {
    std::ranges::stable_sort(rest, [&](const Candidate& a, const Candidate& b) {
      return least_excess(wish_, a) < least_excess(wish_, b);
    });
    std::vector<Candidate> batch;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      double nearest = kInfinite;
      for (const Option& o : found.options) nearest = std::min(nearest, excess_of(wish_, o));
      // The distance of an offer without a price from the budget is unknown; a few are evaluated,
      // so that the message can say so.
      if (!found.options.empty() && least_excess(wish_, rest[i]) >= nearest) break;
      batch.push_back(rest[i]);
      --found.bounded;
      if (batch.size() == kBatch || i + 1 == rest.size()) TRY(evaluate(batch));
    }
    return evaluate(batch);
  }

  /// Evaluates the whole batch and empties it. Results are kept in its order.
  Status evaluate(std::vector<Candidate>& batch) {
    std::vector<std::optional<Result<Option>>> results(batch.size());
    on_threads(batch.size(), threads_, [&](std::size_t i) {
      results[i] = option_of(wish_, *batch[i].offer, evaluator_.evaluate);
    });
    for (std::optional<Result<Option>>& result : results) {
      if (*result) {
        found.options.push_back(std::move(**result));
        continue;
      }
      ++found.impossible;
      if (!first_error) first_error = result->error();
    }
    done_ += batch.size();
    batch.clear();
    const std::size_t seen = done_ + found.bounded;
    if (progress_ && total_ > 0 &&
        !progress_(std::min(1.0, static_cast<double>(seen) / static_cast<double>(total_))))
      return fail("interrupted");
    return {};
  }

  const Wish& wish_;
  const Evaluator& evaluator_;
  unsigned threads_;
  const Progress& progress_;
  std::vector<Candidate> hopeless_ = {}, dominated_ = {};  // not evaluated
  std::size_t total_ = 0, done_ = 0;
};

/// Adds options on each service, with 1, 4, 16 … functions.
void add_functions(const Wish& wish, std::vector<Option>& options) {
  const auto wanted = [](const auto& list, const auto& value) {
    return list.empty() || std::ranges::find(list, value) != list.end();
  };
  if (!wish.functions || !wanted(wish.markets, Market::kOnDemand)) return;
  const PriceBook& book = wish.place.prices ? *wish.place.prices : PriceBook::shipped();
  for (const FunctionService& service : function_services()) {
    const std::string provider = service.name.substr(0, service.name.find('_'));
    const std::vector<std::string> regions = book.regions(provider);
    const bool there = std::ranges::any_of(
        regions, [&](const std::string& region) { return wanted(wish.regions, region); });
    if (!wanted(wish.providers, provider) || !there) continue;
    for (std::uint32_t n = 1; n <= service.concurrent; n *= 4) {
      Result<FunctionRun> run = run_on_functions(service, *wish.functions, n);
      if (!run) break;
      JobAccount account{.time = run->time,
                         .money = run->money,
                         .notes = {fmt::format("functions: {:.0f} calls; price of {}", run->calls,
                                               service.as_of)}};
      // Their price is the same in many regions, so they have no region.
      Option option{provider,     service.name,       "",   Market::kOnDemand, n,
                    std::nullopt, std::move(account), false};
      option.meets = excess_of(wish, option) <= 0;
      options.push_back(std::move(option));
    }
  }
}

/// The wishes that the option misses, and by how much: "costs 44000.00 USD, 10 % above the budget",
/// or "3 times the budget"; and its unknown values. Not empty if it misses a limit.
std::string missed_by(const Wish& wish, const Option& option) {
  std::string text;
  const auto tell = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  const auto add = [&](double ratio, const std::string& what, std::string_view limit) {
    if (ratio <= 1) return;
    const std::string far = ratio < 2 ? fmt::format("{} % above", significant((ratio - 1) * 100))
                                      : fmt::format("{} times", significant(ratio));
    tell(fmt::format("{}, {} {}", what, far, limit));
  };
  const Counted values = counted(wish, option);
  if (wish.deadline)
    add(values.time / *wish.deadline, "takes " + to_string(values.time), "the deadline");
  if (wish.budget && values.money)
    add(*values.money / *wish.budget, "costs " + to_string(*values.money), "the budget");
  if (wish.most_carbon && values.carbon)
    add(*values.carbon / *wish.most_carbon,
        fmt::format("emits {:.3g} kgCO2e", *values.carbon / 1e3), "the limit");
  if (wish.budget && !values.money) tell("has no price");
  if (wish.most_carbon && !values.carbon) tell("has no known carbon intensity");
  return text;
}

Error nothing_meets(const Wish& wish, const std::vector<Option>& options) {
  const auto nearest = std::ranges::min_element(options, [&](const Option& a, const Option& b) {
    return excess_of(wish, a) < excess_of(wish, b);
  });
  std::string wishes;
  const auto add = [&](const std::string& text) {
    wishes += (wishes.empty() ? "" : " and ") + text;
  };
  if (wish.budget) add("the budget of " + to_string(*wish.budget));
  if (wish.deadline) add("the deadline of " + to_string(*wish.deadline));
  if (wish.most_carbon) add(fmt::format("{:.4g} kgCO2e", *wish.most_carbon / 1e3));
  return fail(fmt::format("nothing meets {}", wishes),
              fmt::format("the nearest, {} × {}, {}", nearest->count, nearest->instance,
                          missed_by(wish, *nearest)))
      .value();
}

}  // namespace

Result<Recommendation> recommend(const Wish& wish, const std::vector<Offer>& offers,
                                 const Evaluator& evaluator, unsigned threads,
                                 const Progress& progress) {
  REHEARSE_CHECK(!offers.empty());
  std::size_t without = 0;
  const std::vector<Candidate> candidates = candidates_of(wish, offers, evaluator, without);
  Search search(wish, evaluator, threads, progress);
  add_functions(wish, search.found.options);
  TRY(search.run(candidates));
  Recommendation& found = search.found;
  found.offers = offers.size();
  found.impossible += without;
  if (search.first_error) found.why_impossible = to_string(search.first_error->diagnostics.front());
  if (found.options.empty()) {
    if (search.first_error) return tl::unexpected(std::move(*search.first_error));
    return fail("no instance type has enough memory for the model states of the job",
                "more instances: --counts");
  }
  order(wish, found);
  if (evaluator.look_again) {
    TRY(search.look_again());
    if (found.options.empty()) return tl::unexpected(std::move(*search.first_error));
  }
  if (!found.options.front().meets) return tl::unexpected(nothing_meets(wish, found.options));
  return std::move(found);
}

}  // namespace rehearse::cost
