// The search over instances: whatever bounds leave out, the answer is that of evaluating all.
#include <algorithm>
#include <atomic>
#include <map>
#include <random>

#include <catch2/catch.hpp>

#include "cost/recommend.h"

namespace rehearse::cost {
namespace {

/// Times of a made-up job: each offer has one, not below its bound.
struct Made {
  explicit Made(std::uint64_t seed) : random(seed) {
    Wish all;
    all.counts = {1, 2, 4, 16};
    all.regions = {"us-east-1"};
    all.providers = {"aws"};
    offers = offers_of(all).value();
    for (const Offer& offer : offers) {
      const double least = 1e6 / (offer.instance->gpu_count * offer.count) *
                           std::uniform_real_distribution(0.5, 2.0)(random);
      bounds.push_back(least);
      second_bounds.push_back(least * std::uniform_real_distribution(0.9, 1.5)(random));
      times.push_back(std::max(least, second_bounds.back()) *
                      std::uniform_real_distribution(1.0, 3.0)(random));
      slowest.push_back(1.2 + 0.4 * static_cast<double>(slowest.size() % 5));
      possible.push_back(std::bernoulli_distribution(0.9)(random));
    }
  }
  std::size_t index(const Offer& offer) const {
    for (std::size_t i = 0; i < offers.size(); ++i)
      if (offers[i].instance == offer.instance && offers[i].count == offer.count) return i;
    throw std::out_of_range("no such offer");
  }
  Evaluator evaluator(bool bounded) {
    return {.least_time = [this, bounded](const Offer& offer) -> std::optional<Seconds> {
              return Seconds::s(bounded ? bounds[index(offer)] : 0);
            },
            .least_time_by_plans =
                [this, bounded](const Offer& offer) {
                  return Seconds::s(bounded ? second_bounds[index(offer)] : 0);
                },
            .evaluate = [this](const Offer& offer) -> Result<Evaluation> {
              ++evaluated;
              const std::size_t i = index(offer);
              if (!possible[i]) return fail("does not fit");
              const Seconds t = Seconds::s(times[i]);
              return Evaluation{
                  .job = {{t, t * 0.9, t * slowest[i], Provenance::kExtrapolated}, 1, Bytes::b(0)},
                  .plan = "any",
                  .devices = {},
                  .detail = i};
            }};
  }
  /// Second evaluations find some options up to twice as slow.
  Evaluator evaluator_that_looks_again(bool bounded) {
    Evaluator made = evaluator(bounded);
    made.look_again = [this, evaluate = made.evaluate](const Offer& offer) {
      Result<Evaluation> slower = evaluate(offer);
      if (slower) {
        Estimate<Seconds>& step = slower->job.step;
        const double factor = 1 + 0.25 * static_cast<double>(index(offer) % 5);
        step = {step.value * factor, step.low * factor, step.high * factor, step.provenance};
        slower->detail += offers.size();
      }
      return slower;
    };
    return made;
  }
  std::mt19937_64 random;
  std::vector<Offer> offers;
  std::vector<double> bounds, second_bounds, times, slowest;
  std::vector<bool> possible;
  std::atomic<int> evaluated = 0;
};

std::vector<std::string> pareto_names(const Recommendation& r) {
  std::vector<std::string> names;
  for (const std::size_t i : r.pareto)
    names.push_back(std::to_string(r.options[i].count) + r.options[i].instance);
  return names;
}

TEST_CASE("bounds change neither the best option nor the Pareto front") {
  int fewer = 0, met = 0, unmet = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO(seed);
    Made made(seed);
    Wish wish;
    wish.risk = seed % 2 ? 0.5 : 0.9;
    if (seed % 3 != 0)
      wish.deadline = Seconds::s(std::uniform_real_distribution(2e3, 4e5)(made.random));
    if (seed % 4 != 0)
      wish.budget = Usd::usd(std::uniform_real_distribution(20.0, 2000.0)(made.random));
    const auto all = recommend(wish, made.offers, made.evaluator(false), 1, {});
    const int every = made.evaluated.exchange(0);
    const auto some = recommend(wish, made.offers, made.evaluator(true), 3, {});
    fewer += made.evaluated < every;
    REQUIRE(all.has_value() == some.has_value());
    if (!all) {  // the nearest is the same one, missed by as much
      CHECK(to_string(all.error()) == to_string(some.error()));
      ++unmet;
      continue;
    }
    ++met;
    CHECK(all->options[0].instance == some->options[0].instance);
    CHECK(all->options[0].count == some->options[0].count);
    CHECK(all->options[0].meets);
    CHECK(pareto_names(*all) == pareto_names(*some));
    CHECK(some->options.size() + some->bounded + some->impossible == made.offers.size());
  }
  CHECK(fewer > 30);
  CHECK(met > 5);
  CHECK(unmet > 2);
}

TEST_CASE("the option that is recommended is still first after a second evaluation") {
  int replaced = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO(seed);
    Made made(seed);
    Wish wish;
    if (seed % 2 == 0) wish.budget = Usd::usd(2000);
    const auto once = recommend(wish, made.offers, made.evaluator(true), 1, {});
    const auto twice = recommend(wish, made.offers, made.evaluator_that_looks_again(true), 2, {});
    const auto all = recommend(wish, made.offers, made.evaluator_that_looks_again(false), 1, {});
    REQUIRE(once.has_value());
    REQUIRE((twice.has_value() && all.has_value()));
    const Option& first = twice->options.front();
    CHECK(first.instance == all->options.front().instance);
    CHECK(first.count == all->options.front().count);
    CHECK(pareto_names(*twice) == pareto_names(*all));
    const bool is_other = first.instance != once->options.front().instance ||
                          first.count != once->options.front().count;
    replaced += is_other;
    // Of those that were first, the recommended one is the best by its second evaluation, or too
    // many were first for a short time.
    const auto looked = std::count_if(twice->options.begin(), twice->options.end(),
                                      [](const Option& o) { return o.step_before.has_value(); });
    CHECK(looked >= 1);
    if (looked < 5) CHECK(first.step_before.has_value());
    if (is_other) CHECK(looked > 1);
  }
  CHECK(replaced > 10);
}

// At a risk of 0.95 the upper ends of the intervals count.
TEST_CASE("options are ordered by what they stay below with the probability that is asked for") {
  Made made(5);
  Wish wish;
  wish.budget = Usd::usd(1e6);
  const auto first = [&](double risk) {
    wish.risk = risk;
    return recommend(wish, made.offers, made.evaluator(true), 1, {}).value().options;
  };
  const auto ascends = [](const std::vector<Option>& options, Seconds Estimate<Seconds>::*end) {
    return std::is_sorted(options.begin(), options.end(), [end](const Option& a, const Option& b) {
      return a.meets && b.meets && a.account.time.*end < b.account.time.*end;
    });
  };
  CHECK(ascends(first(0.5), &Estimate<Seconds>::value));
  CHECK(ascends(first(0.95), &Estimate<Seconds>::high));
  CHECK_FALSE(ascends(first(0.95), &Estimate<Seconds>::value));
}

TEST_CASE("an exception of an evaluation on a thread reaches the caller") {
  Made made(5);
  Evaluator evaluator = made.evaluator(true);
  evaluator.evaluate = [](const Offer&) -> Result<Evaluation> {
    throw std::runtime_error("a fault");
  };
  Wish wish;
  CHECK_THROWS_WITH(recommend(wish, made.offers, evaluator, 4, {}), "a fault");
}

TEST_CASE("functions are offered where their provider has the region") {
  Made made(5);
  Wish wish;
  wish.functions = FunctionJob{.step = Flops::tflop(2.4),
                               .samples = 64,
                               .parameters = Bytes::mb(40),
                               .memory = Bytes::gib(2),
                               .steps = 1000};
  const auto functions_in = [&](const char* region) {
    wish.regions = {region};
    const Recommendation found = recommend(wish, made.offers, made.evaluator(true), 1, {}).value();
    return std::count_if(found.options.begin(), found.options.end(),
                         [](const Option& o) { return !o.evaluation; });
  };
  CHECK(functions_in("us-east-1") > 0);
  CHECK(functions_in("us-central1") == 0);
}

TEST_CASE("any number of threads finds the same options in the same order") {
  Made made(5);
  Wish wish;
  const auto one = recommend(wish, made.offers, made.evaluator(true), 1, {}).value();
  const auto many = recommend(wish, made.offers, made.evaluator(true), 7, {}).value();
  REQUIRE(one.options.size() == many.options.size());
  for (std::size_t i = 0; i < one.options.size(); ++i) {
    CHECK(one.options[i].instance == many.options[i].instance);
    CHECK(one.options[i].count == many.options[i].count);
  }
  const auto stop =
      recommend(wish, made.offers, made.evaluator(true), 2, [](double) { return false; });
  REQUIRE_FALSE(stop);
  CHECK(to_string(stop.error()) == "interrupted");
}

}  // namespace
}  // namespace rehearse::cost
