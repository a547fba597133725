#include "cli/planning/find_plans.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include <fmt/core.h>

#include "cli/config/job_input.h"
#include "cli/planning/no_plan.h"
#include "cli/planning/plan_feed.h"
#include "cli/planning/plan_order.h"
#include "cli/planning/run_budget.h"
#include "cli/planning/step_bill.h"
#include "cli/planning/try_algorithms.h"
#include "sim/engine/simgrid.h"
#include "sim/work/bytes.h"
#include "sim/work/queue.h"
#include "strategies/check_plan.h"
#include "strategies/lay_out.h"
#include "strategies/step/devices.h"

namespace rehearse::cli {

using strategies::Candidate, strategies::Figure, strategies::Figures, strategies::Found,
    strategies::Judge, strategies::Question, strategies::Space;

namespace {

/// The first plan is chosen among at least this number of the fastest (PlanOrder::prefer_simple()).
constexpr std::size_t kAmong = 100;
/// The algorithms of collectives are tried on this number of the best plans.
constexpr std::size_t kTried = 10;
/// The largest number of runs of the pipeline to feed the best plans.
constexpr std::size_t kMostFed = 24;

class Finder {
 public:
  Finder(const step::Spec& spec, const cluster::Cluster& cluster, const PlanRequest& request)
      : spec_(spec),
        cluster_(cluster),
        request_(request),
        ranks_(request.ranks.value_or(static_cast<std::uint32_t>(cluster.devices().size()))),
        costs_(spec, cluster),
        bill_(costs_.kinds(), request.place),
        order_(request, bill_) {}

  Result<FoundPlans> run() {
    for (std::size_t f = 0; f < strategies::kFigures; ++f) TRY(check_known(static_cast<Figure>(f)));
    Space space = TRY(Space::of(spec_.workload, spec_.training, spec_.plan, ranks_, request_.axes));
    const Question question = question_of(space);
    const auto begin = std::chrono::steady_clock::now();
    const Result<Found> found =
        strategies::search(space.size(), question, new_judge(space, question),
                           {request_.threads, request_.phase("searching plans"), request_.spread});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (!found) return forward(found);
    if (found->best.empty()) return no_plan(space, question);
    FoundPlans plans;
    plans.candidates_seen = found->seen;
    plans.candidates_evaluated = found->evaluated;
    plans.candidates_per_s = static_cast<double>(found->seen) / took.count();
    plans.evaluated_per_s = static_cast<double>(found->evaluated) / took.count();
    for (std::size_t f = 0; f < strategies::kFigures; ++f)
      plans.known[f] = bill_.knows(static_cast<Figure>(f));
    for (const auto& [from, to] :
         {std::pair{&found->best, &plans.best}, {&found->front, &plans.front}})
      for (const strategies::Judged& judged : *from) {
        Candidate c = space.at(judged.index);
        to->push_back(found_of({c.training, std::move(c.plan), judged.figures}));
      }
    if (ranks_anew() && !request_.thorough && !request_.most_runs)
      plans.runs_if_thorough = runs_of(spec_, space, true);
    const std::size_t runs = to_run(space);
    { const Space ended = std::move(space); }  // runs need the memory of millions of plans
    try_algorithms(plans.best, question);
    if (request_.confirm && request_.input == nullptr) order_.prefer_simple(plans.best, question);
    if (plans.best.size() > runs) plans.best.resize(runs);
    if (request_.first_answer) request_.first_answer(plans.best.front());
    TRY(confirm(plans, question));
    return plans;
  }

 private:
  Status check_known(Figure figure) const {
    const bool asked = figure == request_.objective ||
                       of(request_.at_most, figure) < of(strategies::kNoLimits, figure);
    if (!asked || bill_.knows(figure)) return {};
    std::string why;
    for (const std::string& note : bill_.notes())
      if (why.empty() && note.starts_with("no ")) why = note;
    return fail(fmt::format("the {} of a step is unknown here{}{}",
                            strategies::kFigureNames[static_cast<std::size_t>(figure)],
                            why.empty() ? "" : ": ", why),
                figure == Figure::kEnergy ? "a device with a power limit in the catalog"
                : figure == Figure::kCost ? "a cluster of rented instances with a price"
                                          : "a region with a carbon intensity");
  }

  Question question_of(const Space& space) const {
    Question question{.objective = slot(request_.objective), .at_most = request_.at_most};
    double& memory = question.at_most[static_cast<std::size_t>(Figure::kMemory)];
    memory = std::min(memory, kMostMemory * costs_.usable().b());
    question.keep = request_.confirm ? std::max(to_run(space), kAmong) : request_.keep;
    if (!request_.front) question.front = {question.objective};
    return question;
  }

  /// The number of plans that are run.
  std::size_t to_run(const Space& space) const {
    if (!ranks_anew()) return request_.keep;
    return std::max(request_.keep, std::min(runs_of(spec_, space, request_.thorough),
                                            request_.most_runs.value_or(SIZE_MAX)));
  }

  /// More plans are run than requested, because runs, or an input pipeline, may rank them
  /// differently from the search.
  bool ranks_anew() const {
    return request_.confirm &&
           (*request_.confirm != step::Fidelity::kClosed || request_.input != nullptr);
  }

  std::function<Judge()> new_judge(const Space& space, const Question& question) const {
    const Bytes most = Bytes::b(of(question.at_most, Figure::kMemory));
    return [this, most, &space] {
      struct Costs {
        step::PlanCosts plans;
        std::optional<PlanFeed> feed;
      };
      const auto costs = std::make_shared<Costs>(Costs{step::PlanCosts(spec_, cluster_), {}});
      if (request_.input != nullptr)
        costs->feed.emplace(request_.input->pipeline(), spec_, cluster_);
      // At least until the samples have come, in the bound as in the evaluation.
      const auto figures = [this, costs](
                               const Candidate& c,
                               std::optional<step::PlanCost> cost) -> std::optional<Figures> {
        if (!cost) return std::nullopt;
        cost->step += cost->mean_stall;
        const Figures alone = bill_.of(*cost);
        if (!costs->feed) return alone;
        return bill_.with_requests(
            bill_.with_waiting(alone, costs->feed->waiting(c.training, c.plan, cost->step)),
            costs->feed->requests(c.training, c.plan));
      };
      return Judge{.bound =
                       [costs, figures, &space](std::uint64_t index) {
                         const Candidate c = space.at(index);
                         return figures(c, costs->plans.at_least(c.training, c.plan));
                       },
                   .evaluate =
                       [costs, figures, most, &space](std::uint64_t index) {
                         const Candidate c = space.at(index);
                         return figures(c, costs->plans.of(c.training, c.plan, most));
                       }};
    };
  }

  /// The plan as it runs without stalls, which the search adds to its step (new_judge()), and how
  /// much they add.
  FoundPlan found_of(FoundPlan plan) {
    const auto cost = costs_.of(plan.training, plan.plan, Bytes::b(0));
    // A plan with an input pipeline is run again, with the pipeline.
    if (!cost || cost->mean_stall == Seconds::s(0) || request_.input != nullptr) return plan;
    const Seconds expected = Seconds::s(of(plan.figures, Figure::kStepTime));
    plan.figures = bill_.with_waiting(plan.figures, cost->mean_stall * -1);
    plan.slower = expected / (expected - cost->mean_stall);
    return plan;
  }

  /// Adds to the best plans those of them that named algorithms make better. A plan that waits for
  /// its samples keeps NCCL's choice.
  void try_algorithms(std::vector<FoundPlan>& plans, const Question& question) {
    if (request_.input != nullptr) return;
    const Bytes most = Bytes::b(of(question.at_most, Figure::kMemory));
    Figures figures = {};
    const Objective objective = [&](const Candidate& c,
                                    const Candidate& from) -> std::optional<double> {
      const auto cost = costs_.of(c.training, c.plan, most);
      if (!cost || !costs_.prices_as(c.plan, from.plan)) return std::nullopt;
      figures = bill_.of(*cost);
      return figures[question.objective];
    };
    for (std::size_t i = std::min(plans.size(), kTried); i-- > 0;) {
      const Candidate c{plans[i].training, plans[i].plan};
      const auto better = with_algorithms(spec_.workload, c, request_.axes, objective);
      if (!better || !objective(*better, c)) continue;
      FoundPlan found{better->training, better->plan, figures, plans[i].slower};
      if (PlanOrder::keeps(found, question)) plans.push_back(std::move(found));
    }
    std::ranges::stable_sort(plans, {}, order_);
    if (plans.size() > question.keep) plans.resize(question.keep);
  }

  tl::unexpected<Error> no_plan(const Space& space, const Question& question) {
    const SearchAgain again = [&](const Space& other, Figure figure, const Figures& at_most) {
      const Question alone{.objective = slot(figure), .at_most = at_most, .keep = 1};
      return strategies::search(other.size(), alone, new_judge(other, alone),
                                {request_.threads, {}, request_.spread});
    };
    return why_no_plan({spec_, cluster_, space, question, request_.at_most, ranks_,
                        costs_.usable() * kMostMemory, request_.look_beyond},
                       costs_, again);
  }

  /// Runs the best plans as simulate does, and ranks them again: first all kept plans for their
  /// figures, then the requested ones in full.
  Status confirm(FoundPlans& plans, const Question& question) {
    if (!request_.confirm) return {};
    const step::Fidelity last = *request_.confirm;
    const step::Fidelity first = last == step::Fidelity::kSimgrid ? step::Fidelity::kMessage : last;
    if (ranks_anew()) keep_runnable(spec_.workload, request_.thorough, plans.best);
    plans.confirmed = plans.best.size();
    bool unfold = false;
    if (ranks_anew() || request_.spread) {
      TRY(run_for_figures(plans.best, first, false, question));
      if (first == step::Fidelity::kMessage) unfold = keep_affordable(request_.keep, plans.best);
      if (unfold) {
        plans.all_ranks = plans.best.size();
        TRY(run_for_figures(plans.best, first, true, question));
      }
      if (!work::leads()) return {};
      if (request_.input == nullptr) order_.prefer_simple(plans.best, question);
      TRY(cut(plans.best, question));
    }
    if (last == step::Fidelity::kSimgrid) {
      TRY(engine::check_simgrid());
      plans.confirmed = plans.best.size();
    }
    if (first == step::Fidelity::kMessage && !unfold && request_.input == nullptr)
      TRY(look_again(plans, question));
    TRY(run_all(plans.best, last, unfold, question));
    order_.prefer_simple(plans.best, question);
    if (first == step::Fidelity::kMessage) {
      const Bytes most = Bytes::b(of(question.at_most, Figure::kMemory));
      for (FoundPlan& plan : plans.best)
        if (const auto cost = costs_.of(plan.training, plan.plan, most))
          plan.times.closed = cost->step;
    }
    return {};
  }

  /// Runs the first plan with all ranks, then the plan that becomes first as a result, and so on.
  /// Other plans keep their time without contention, which is a lower bound.
  Status look_again(FoundPlans& plans, const Question& question) const {
    const Progress progress = request_.phase("running the first plan with all ranks");
    Seconds sum = Seconds::s(0);
    while (!plans.best.front().times.all_ranks &&
           (sum += plans.best.front().size.by_messages()) <= kTimeOfAnswer) {
      FoundPlan& first = plans.best.front();
      step::Step step = TRY(predict(first, for_figures(step::Fidelity::kMessage, true)));
      first.times.all_ranks = step.time.value;
      take(step, first);
      first.step = std::move(step);
      ++plans.all_ranks;
      TRY(order_.rank(plans.best, question));
      order_.prefer_simple(plans.best, question);
    }
    return {};
  }

  Status run_all(std::vector<FoundPlan>& plans, step::Fidelity fidelity, bool unfold,
                 const Question& question) const {
    // Runs on SimGrid are one after another in a process (sim/engine/simgrid.h).
    const unsigned threads = fidelity == step::Fidelity::kSimgrid ? 1 : request_.threads;
    const auto run_one = [&](std::size_t i) -> Result<std::string> {
      const bool all_ranks = unfold || plans[i].times.all_ranks.has_value();
      step::Step step = TRY(completed(plans[i], fidelity, all_ranks));
      if (fidelity == step::Fidelity::kClosed) plans[i].times.closed = step.time.value;
      TRY(feed(plans[i], step, fidelity));
      take(step, plans[i]);
      if (request_.timelines) step::add_input(step, plans[i].path);
      plans[i].step = std::move(step);
      return std::string();
    };
    const auto ran = TRY(
        work::run_all({.part = "runs", .items = plans.size(), .evaluate = run_one},
                      {.threads = threads, .progress = request_.phase("running the shown plans")}));
    return order_.rank(plans, question);
  }

  /// Keeps the steps of the best plans alone, which are large.
  Status run_for_figures(std::vector<FoundPlan>& plans, step::Fidelity fidelity, bool unfold,
                         const Question& question) const {
    for (FoundPlan& plan : plans) plan.step.reset();
    std::mutex mutex;
    std::map<std::pair<double, std::size_t>, step::Step> best;  // by value and plan
    const auto run_one = [&](std::size_t i) -> Result<std::string> {
      step::PredictOptions how = for_figures(fidelity, unfold);
      how.size = fidelity == step::Fidelity::kMessage && !unfold;
      step::Step step = TRY(predict(plans[i], how));
      FoundPlan found = plans[i];
      take(step, found);
      const step::RunSize size = step.size.value_or(plans[i].size);
      work::Packer packer;
      packer.put(step.time.value.s());
      packer.put(size.ops);
      packer.put(size.messages);
      packer.put(static_cast<double>(size.ranks));
      packer.put(found.slower);
      packer.put(found.fuller);
      for (const double figure : found.figures) packer.put(figure);
      // Plans that wait for samples are ranked again, and other processes do not send steps.
      if (request_.input == nullptr && !request_.spread) {
        const std::lock_guard lock(mutex);
        best.emplace(std::pair(PlanOrder::counted(found, request_.objective), i), std::move(step));
        if (best.size() > request_.keep) best.erase(std::prev(best.end()));
      }
      return packer.take();
    };
    const Progress progress =
        request_.phase(unfold ? "running the best plans with all ranks" : "running the best plans");
    const std::vector<std::string> ran =
        TRY(request_.spread
                ? request_.spread("runs", plans.size(), run_one)
                : work::run_all({.part = "figures", .items = plans.size(), .evaluate = run_one},
                                {.threads = request_.threads, .progress = progress}));
    for (auto& [order, step] : best) plans[order.second].step = std::move(step);
    std::optional<PlanFeed> feed;
    if (request_.input != nullptr) feed.emplace(request_.input->pipeline(), spec_, cluster_);
    for (std::size_t i = 0; i < plans.size(); ++i) {
      FoundPlan& plan = plans[i];
      work::Unpacker from(ran[i]);
      const Seconds alone = Seconds::s(from.number());
      plan.size = {from.number(), from.number(), static_cast<std::uint32_t>(from.number())};
      plan.slower = from.number();
      plan.fuller = from.number();
      for (double& figure : plan.figures) figure = from.number();
      (fidelity == step::Fidelity::kClosed ? plan.times.closed
       : unfold                            ? plan.times.all_ranks
                                           : plan.times.message) = alone;
      if (feed)
        plan.figures =
            bill_.with_waiting(plan.figures, feed->waiting(plan.training, plan.plan, alone));
    }
    return order_.rank(plans, question);
  }

  static step::PredictOptions without_run(step::Fidelity fidelity, bool unfold) {
    return {.fidelity = fidelity, .unfold = unfold, .counterfactuals = false, .timeline = false};
  }
  step::PredictOptions for_figures(step::Fidelity fidelity, bool unfold) const {
    step::PredictOptions options = without_run(fidelity, unfold);
    options.value_only = order_.value_decides();
    return options;
  }
  Result<step::Step> predict(const FoundPlan& plan, const step::PredictOptions& options) const {
    return step::predict(spec_of(spec_, plan), cluster_, options);
  }

  /// The step with its interval: of the run that ranked the plan, if that is there. Its path is found
  /// before the runs of the interval, so that no two runs are held at a time.
  Result<step::Step> completed(FoundPlan& plan, step::Fidelity fidelity, bool unfold) const {
    const step::PredictOptions options = without_run(fidelity, unfold);
    const bool ran = plan.step && plan.step->has_run() && fidelity != step::Fidelity::kSimgrid;
    if (!ran && !request_.timelines) return predict(plan, options);
    step::Step step =
        ran ? std::move(*plan.step)
            : TRY(predict(plan, {.fidelity = fidelity, .unfold = unfold, .value_only = true}));
    if (request_.timelines) plan.path = step::path_of(step);
    TRY(step::complete(step, spec_of(spec_, plan), cluster_, options));
    return step;
  }

  /// Sets the time that the step waits for its samples, found when plans were cut.
  Status feed(const FoundPlan& plan, step::Step& step, step::Fidelity fidelity) const {
    if (request_.input == nullptr) return {};
    if (fidelity == step::Fidelity::kSimgrid || !plan.times.fed)
      return cli::feed(*request_.input, cluster_, step);
    wait_for_samples(step, *plan.times.fed);
    return {};
  }

  /// Keeps the requested number of plans. They are in the order of their least time, and an input
  /// pipeline may make them wait longer. If one of several plans with equal units at a time was
  /// fed, the slower ones are not fed sooner.
  Status cut(std::vector<FoundPlan>& plans, const Question& question) const {
    if (request_.input == nullptr) {
      if (plans.size() > request_.keep) plans.resize(request_.keep);
      return {};
    }
    struct Fed {
      Seconds alone, step;
    };
    std::map<std::pair<double, std::uint32_t>, std::vector<Fed>> fed;
    std::vector<FoundPlan> best, broken;
    std::size_t runs = 0;
    for (const FoundPlan& plan : plans) {
      const workload::Layout layout =
          TRY(strategies::lay_out(spec_.workload, plan.training, plan.plan));
      const Seconds alone = plan.times.last();
      std::vector<Fed>& alike = fed[{
          taken_by(layout, cluster_, request_.input->pipeline()).per_batch, layout.microbatches}];
      const auto fed_in = [&](Seconds step) {
        FoundPlan waits = plan;
        waits.figures = bill_.with_waiting(plan.figures,
                                           step - Seconds::s(of(plan.figures, Figure::kStepTime)));
        waits.times.fed = step;
        return waits;
      };
      Seconds least = Seconds::s(of(plan.figures, Figure::kStepTime)) - alone * kOwnTime;
      for (const Fed& other : alike)
        if (other.alone <= alone) least = std::max(least, other.step);
      // As slow as one that broke the limits.
      if (!broken.empty() && !PlanOrder::keeps(fed_in(least), question)) continue;
      if (best.size() >= request_.keep &&
          (order_(fed_in(least)) >= order_(best.back()) || runs >= kMostFed))
        continue;
      const Seconds step = TRY(fed_time(*request_.input, cluster_, layout, alone));
      ++runs;
      alike.push_back({alone, step});
      const FoundPlan waits = fed_in(step);
      std::vector<FoundPlan>& found = PlanOrder::keeps(waits, question) ? best : broken;
      found.insert(std::ranges::upper_bound(found, order_(waits), {}, order_), waits);
      if (found.size() > request_.keep) found.pop_back();
    }
    plans = std::move(best.empty() ? broken : best);
    return order_.rank(plans, question);
  }

  void take(const step::Step& step, FoundPlan& plan) const {
    plan.figures = figures_of(step);
    order_.take(step, plan);
  }

  Figures figures_of(const step::Step& step) const {
    step::PlanCost cost{step.time.value, costs_.usable() * step.memory_share(), {}};
    for (const step::PlanCosts::Kind& kind : costs_.kinds()) {
      cost.busy.push_back(Seconds::s(0));
      for (const step::DeviceUse& use : step.devices)
        if (use.name == kind.name) cost.busy.back() = use.busy;
    }
    const Figures figures = bill_.of(cost);
    if (request_.input == nullptr) return figures;
    return bill_.with_requests(figures,
                               requests_of_step(step.layout, cluster_, request_.input->pipeline()));
  }

  const step::Spec& spec_;
  const cluster::Cluster& cluster_;
  const PlanRequest& request_;
  const std::uint32_t ranks_;
  step::PlanCosts costs_;
  StepBill bill_;
  PlanOrder order_;
};

}  // namespace

int caution_of(const step::Step& step) {
  if (!step.regime.known()) return 2;
  return step.stall > Seconds::s(0) ? 1 : 0;
}

step::Spec spec_of(const step::Spec& spec, const FoundPlan& found) {
  step::Spec job = spec;
  job.training = found.training;
  job.plan = found.plan;
  return job;
}

Result<FoundPlans> find_plans(const step::Spec& spec, const cluster::Cluster& cluster,
                              const PlanRequest& request) {
  return Finder(spec, cluster, request).run();
}

}  // namespace rehearse::cli
