// Searching plans: what bounds may cut, and that nothing else decides the answer.
#include <random>

#include <catch2/catch.hpp>

#include "cli/planning/find_plans.h"
#include "cli/planning/try_algorithms.h"
#include "sim/base/estimate.h"
#include "strategies/lay_out.h"
#include "strategies/step/closed_step.h"
#include "strategies/step/collective_prices.h"
#include "strategies/step/devices.h"
#include "strategies/step/order_times.h"
#include "tests/support/plan_spaces.h"

namespace rehearse {
namespace {

using strategies::Candidate;
using strategies::Figure;
using strategies::Figures;
using strategies::Found;
using strategies::Judged;
using strategies::Question;
using test::PlanSpace;

constexpr Bytes kAnything = Bytes::gib(1e6);

Question random_question(std::mt19937& random, const PlanSpace& job) {
  Question question;
  question.objective = random() % 4;
  question.keep = 1 + random() % 12;
  if (random() % 3 == 0) question.front.push_back(slot(Figure::kEnergy));
  // Limits that some plans of the space keep.
  step::PlanCosts costs(job.spec, job.cluster);
  for (const Figure figure : {Figure::kMemory, Figure::kStepTime}) {
    if (random() % 2 == 0) continue;
    const Candidate c = job.space.at(random() % job.space.size());
    if (const auto cost = costs.of(c.training, c.plan, kAnything))
      question.at_most[static_cast<std::size_t>(figure)] = of(test::figures_of(*cost), figure);
  }
  return question;
}

Found searched(const PlanSpace& job, const Question& question, unsigned threads, bool bounds) {
  const Bytes most = Bytes::b(question.at_most[1]);
  Result<Found> found = strategies::search(
      job.space.size(), question, [&] { return test::judge_of(job, most, bounds); }, {threads, {}});
  REQUIRE(found);
  return std::move(*found);
}

void check_equal(const std::vector<Judged>& a, const std::vector<Judged>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].index == b[i].index);
    CHECK(a[i].figures == b[i].figures);
  }
}

}  // namespace

TEST_CASE("A plan never costs less than its bound") {
  std::mt19937 random(11);
  std::size_t bounded = 0, tight = 0;
  for (int round = 0; round < 30; ++round) {
    const PlanSpace job = test::random_plan_space(random);
    step::PlanCosts costs(job.spec, job.cluster);
    for (int i = 0; i < 120; ++i) {
      const std::uint64_t index = random() % job.space.size();
      const Candidate c = job.space.at(index);
      const auto least = costs.at_least(c.training, c.plan);
      const auto cost = costs.of(c.training, c.plan, kAnything);
      if (!cost) continue;
      INFO("round " << round << ", plan " << index);
      REQUIRE(least);
      CHECK(least->step <= cost->step);
      CHECK(least->memory <= cost->memory);
      for (std::size_t k = 0; k < cost->busy.size(); ++k) CHECK(least->busy[k] <= cost->busy[k]);
      ++bounded;
      tight += least->step > cost->step * 0.7;
    }
  }
  CHECK(bounded > 500);
  CHECK(tight > bounded / 3);  // a bound of zero would be none
}

TEST_CASE("The profile of an order is that of all its slots") {
  std::mt19937 random(3);
  step::OrderProfiles profiles;
  for (int i = 0; i < 300; ++i) {
    const auto schedule = static_cast<strategies::Schedule>(random() % 5);
    const bool interleaved = schedule == strategies::Schedule::kInterleaved;
    const auto stages = static_cast<std::uint32_t>(2 + random() % 7);
    const auto chunks = static_cast<std::uint32_t>(interleaved ? 2 + random() % 4 : 1);
    const auto microbatches =
        static_cast<std::uint32_t>((1 + random() % 12) * (interleaved ? stages : 1 + random() % 5));
    const strategies::PipelineShape shape{stages, microbatches, chunks};
    const auto stage = static_cast<std::uint32_t>(random() % stages);
    const bool recomputes = random() % 2 == 0;
    INFO("schedule " << static_cast<int>(schedule) << ", " << stage << " of " << stages << ", "
                     << microbatches << " microbatches, " << chunks << " chunks");
    CHECK(profiles.of(schedule, shape, stage, recomputes) ==
          step::profile_of(strategies::order_of(schedule, shape, stage, recomputes), chunks));
  }
}

TEST_CASE("What plans share changes none of their costs") {
  std::mt19937 random(5);
  for (int round = 0; round < 6; ++round) {
    const PlanSpace job = test::random_plan_space(random);
    step::PlanCosts costs(job.spec, job.cluster);
    for (int i = 0; i < 25; ++i) {
      const Candidate c = job.space.at(random() % job.space.size());
      const auto cost = costs.of(c.training, c.plan, kAnything);
      const auto alone = step::PlanCosts(job.spec, job.cluster).of(c.training, c.plan, kAnything);
      REQUIRE(cost.has_value() == alone.has_value());
      if (!cost) continue;
      CHECK(cost->step == alone->step);
      // And these are closed_step and memory_on, without omitted steps.
      const auto layout = strategies::lay_out(job.spec.workload, c.training, c.plan);
      REQUIRE(layout);
      const auto devices = step::Devices::of(*layout, job.cluster, job.spec);
      REQUIRE(devices);
      job::Rules rules;
      rules.calibrated = true;
      rules.fidelity = job::Fidelity::kClosed;
      step::CollectivePrices collectives(job.cluster, rules);
      const auto step = step::closed_step(*layout, collectives.step_prices(devices->prices()),
                                          {.job = step::job_options(job.spec.conditions),
                                           .overlap_loss = job.spec.conditions.overlap_penalty});
      REQUIRE(step);
      CHECK(step->step == cost->step);
      const auto memory = step::memory_on(*layout, job.cluster);
      REQUIRE(memory);
      CHECK(memory::fullest(*memory).peak.value.b() == Approx(cost->memory.b()));
    }
  }
}

TEST_CASE("Chosen algorithms are faster than NCCL's choice by the same prices") {
  std::mt19937 random(8);
  std::size_t tried = 0, chosen = 0;
  for (int round = 0; round < 100; ++round) {
    const PlanSpace job = test::random_plan_space(random);
    step::PlanCosts costs(job.spec, job.cluster);
    const cli::Objective time = [&](const Candidate& c,
                                    const Candidate& from) -> std::optional<double> {
      const auto cost = costs.of(c.training, c.plan, kAnything);
      if (!cost || !costs.prices_as(c.plan, from.plan)) return std::nullopt;
      return cost->step.s();
    };
    const Candidate plan = job.space.at(random() % job.space.size());
    const std::optional<double> usual = time(plan, plan);
    if (!usual) continue;
    ++tried;
    const auto better = cli::with_algorithms(job.spec.workload, plan, {}, time);
    if (!better) continue;
    ++chosen;
    step::PlanCosts anew(job.spec, job.cluster);
    const auto cost = anew.of(better->training, better->plan, kAnything);
    REQUIRE(cost);
    CHECK(cost->step.s() * (1 + cli::kNoise) <= *usual);
    // Nothing but algorithms differs.
    Candidate same = *better;
    same.plan.collectives = plan.plan.collectives;
    CHECK(time(same, plan) == usual);
  }
  CHECK(tried > 50);
  CHECK(chosen > 0);
}

TEST_CASE("A search finds what evaluating everything finds") {
  std::mt19937 random(7);
  std::uint64_t seen = 0, evaluated = 0;
  for (int round = 0; round < 8; ++round) {
    const PlanSpace job = test::random_plan_space(random);
    const Question question = random_question(random, job);
    INFO("round " << round << " of " << job.space.size());
    const Found found = searched(job, question, 1, true);
    const Found exhaustive = searched(job, question, 1, false);
    check_equal(found.best, exhaustive.best);
    check_equal(found.front, exhaustive.front);
    CHECK(found.seen == job.space.size());
    seen += found.seen;
    evaluated += found.evaluated;
  }
  CHECK(evaluated < seen * 9 / 10);  // spaces are small, and a few hundred are looked at at once
}

TEST_CASE("A search gives the same on any number of threads") {
  std::mt19937 random(23);
  for (int round = 0; round < 5; ++round) {
    const PlanSpace job = test::random_plan_space(random);
    const Question question = random_question(random, job);
    const Found found = searched(job, question, 1, true);
    const Found threads = searched(job, question, 3, true);
    check_equal(found.best, threads.best);
    check_equal(found.front, threads.front);
    CHECK(found.evaluated == threads.evaluated);
  }
}

}  // namespace rehearse
