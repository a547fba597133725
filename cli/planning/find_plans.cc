#include "cli/planning/find_plans.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/core.h>

#include "cli/planning/no_plan.h"
#include "cli/planning/plan_words.h"
#include "cli/planning/step_bill.h"
#include "models/step/devices.h"
#include "sim/engine/simgrid.h"
#include "sim/work/bytes.h"
#include "sim/work/queue.h"

namespace rehearse::cli {

using strategies::Figure;
using strategies::Figures;
using strategies::Found;
using strategies::Judge;
using strategies::Question;
using strategies::Space;

namespace {

/// Within 5 % of what is usable, memory models cannot say whether a plan fits.
constexpr double kFits = 0.95;
/// Of the plans, which are run message by message; and how many at most.
constexpr double kRunAgain = 0.05;
constexpr std::size_t kMostRunAgain = 100;

class Finder {
 public:
  Finder(const step::Spec& spec, const cluster::Cluster& cluster, const PlanRequest& request)
      : spec_(spec),
        cluster_(cluster),
        request_(request),
        ranks_(request.ranks.value_or(static_cast<std::uint32_t>(cluster.devices().size()))),
        costs_(spec, cluster),
        bill_(costs_.kinds(), request.place) {}

  Result<FoundPlans> run() {
    for (std::size_t f = 0; f < strategies::kFigures; ++f)
      if (Status ok = check_known(static_cast<Figure>(f)); !ok) return forward(ok);
    const Result<Space> space =
        Space::of(spec_.workload, spec_.training, spec_.plan, ranks_, request_.axes);
    if (!space) return forward(space);
    const Question question = question_of(*space);
    const auto begin = std::chrono::steady_clock::now();
    const Result<Found> found =
        strategies::search(*space, question, new_judge(question),
                           {request_.threads, request_.progress, request_.spread});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (!found) return forward(found);
    if (found->best.empty()) return no_plan(*space, question);
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
        strategies::Candidate c = space->at(judged.index);
        to->push_back({std::move(c.training), std::move(c.plan), judged.figures, {}});
      }
    if (Status ok = confirm(plans, question); !ok) return forward(ok);
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
    return fail(fmt::format("{} of a step is not known here{}{}",
                            strategies::kFigureNames[static_cast<std::size_t>(figure)],
                            why.empty() ? "" : ": ", why),
                figure == Figure::kEnergy ? "a device with a power limit in the catalog"
                : figure == Figure::kCost ? "a cluster of rented instances with a price"
                                          : "a region with a carbon intensity");
  }

  Question question_of(const Space& space) const {
    Question question{.objective = request_.objective, .at_most = request_.at_most};
    double& memory = question.at_most[static_cast<std::size_t>(Figure::kMemory)];
    memory = std::min(memory, kFits * costs_.usable().b());
    question.keep = request_.keep;
    if (request_.confirm && *request_.confirm != step::Fidelity::kClosed)
      question.keep = std::max(
          request_.keep,
          std::min(kMostRunAgain, static_cast<std::size_t>(
                                      std::ceil(kRunAgain * static_cast<double>(space.size())))));
    return question;
  }

  std::function<Judge()> new_judge(const Question& question) const {
    const Bytes most = Bytes::b(of(question.at_most, Figure::kMemory));
    return [this, most] {
      const auto costs = std::make_shared<step::PlanCosts>(spec_, cluster_);
      const auto figures =
          [this](const std::optional<step::PlanCost>& cost) -> std::optional<Figures> {
        if (!cost) return std::nullopt;
        return bill_.of(*cost);
      };
      return Judge{.bound =
                       [costs, figures](const strategies::Candidate& c) {
                         return figures(costs->at_least(c.training, c.plan));
                       },
                   .evaluate =
                       [costs, figures, most](const strategies::Candidate& c) {
                         return figures(costs->of(c.training, c.plan, most));
                       }};
    };
  }

  tl::unexpected<Error> no_plan(const Space& space, const Question& question) {
    const SearchAgain again = [&](const Space& other, Figure figure, const Figures& at_most) {
      const Question alone{.objective = figure, .at_most = at_most, .keep = 1};
      return strategies::search(other, alone, new_judge(alone),
                                {request_.threads, {}, request_.spread});
    };
    return why_no_plan(
        {spec_, cluster_, space, question, request_.at_most, ranks_, costs_.usable() * kFits},
        costs_, again);
  }

  /// Runs the best as simulate does, and ranks them anew.
  Status confirm(FoundPlans& plans, const Question& question) const {
    if (!request_.confirm) return {};
    const step::Fidelity first = *request_.confirm == step::Fidelity::kSimgrid
                                     ? step::Fidelity::kMessage
                                     : *request_.confirm;
    plans.confirmed = plans.best.size();
    if (request_.spread) {
      if (Status ok = spread_all(plans.best, first, question); !ok) return ok;
      if (plans.best.size() > request_.keep) plans.best.resize(request_.keep);
      if (!work::leads()) return {};
    }
    if (Status ok = run_all(plans.best, first, question); !ok) return ok;
    if (plans.best.size() > request_.keep) plans.best.resize(request_.keep);
    if (first == *request_.confirm) return {};
    if (Status ok = engine::check_simgrid(); !ok) return ok;
    plans.confirmed = plans.best.size();
    return run_all(plans.best, *request_.confirm, question);
  }

  Status run_all(std::vector<FoundPlan>& plans, step::Fidelity fidelity,
                 const Question& question) const {
    // SimGrid is one per process.
    const unsigned threads = fidelity == step::Fidelity::kSimgrid ? 1 : request_.threads;
    const auto run_one = [&](std::size_t i) -> Result<std::string> {
      Result<step::Step> step = step::predict(spec_of(spec_, plans[i]), cluster_,
                                              {.fidelity = fidelity, .counterfactuals = false});
      if (!step) return forward(step);
      plans[i].figures = figures_of(*step);
      plans[i].step = std::move(*step);
      return std::string();
    };
    const auto ran = work::run_all({.part = "runs", .items = plans.size(), .evaluate = run_one},
                                   {.threads = threads, .progress = request_.progress});
    if (!ran) return forward(ran);
    return rank(plans, question);
  }

  /// The figures that run_all finds, and the same order.
  Status spread_all(std::vector<FoundPlan>& plans, step::Fidelity fidelity,
                    const Question& question) const {
    const auto run_one = [&](std::size_t i) -> Result<std::string> {
      const Result<step::Step> step = step::predict(
          spec_of(spec_, plans[i]), cluster_, {.fidelity = fidelity, .counterfactuals = false});
      if (!step) return forward(step);
      work::Packer packer;
      for (const double figure : figures_of(*step)) packer.put(figure);
      return packer.take();
    };
    const Result<std::vector<std::string>> ran = request_.spread("runs", plans.size(), run_one);
    if (!ran) return forward(ran);
    for (std::size_t i = 0; i < plans.size(); ++i) {
      work::Unpacker from((*ran)[i]);
      for (double& figure : plans[i].figures) figure = from.number();
    }
    return rank(plans, question);
  }

  /// By what they were run as; those that break the limits now are left out.
  Status rank(std::vector<FoundPlan>& plans, const Question& question) const {
    std::stable_sort(plans.begin(), plans.end(), [&](const FoundPlan& a, const FoundPlan& b) {
      return of(a.figures, request_.objective) < of(b.figures, request_.objective);
    });
    const auto breaks = [&](const FoundPlan& plan) { return !keeps(plan, question); };
    if (!std::all_of(plans.begin(), plans.end(), breaks)) {
      std::erase_if(plans, breaks);
      return {};
    }
    const FoundPlan& first = plans.front();
    std::string nearest = "nearest: " + plan_words(first.training, first.plan);
    for (std::size_t f = 0; f < strategies::kFigures; ++f)
      if (const auto figure = static_cast<Figure>(f);
          of(request_.at_most, figure) < of(strategies::kNoLimits, figure))
        nearest += fmt::format(", {} {}", strategies::kFigureNames[f],
                               figure_words(figure, of(first.figures, figure)));
    return fail("no plan keeps the limits once it is run, though some do by closed forms",
                "limits that are a little wider", nearest);
  }

  /// Memory is the same in every model.
  static bool keeps(const FoundPlan& plan, const Question& question) {
    for (std::size_t f = 0; f < strategies::kFigures; ++f)
      if (f != static_cast<std::size_t>(Figure::kMemory) && plan.figures[f] > question.at_most[f])
        return false;
    return true;
  }

  Figures figures_of(const step::Step& step) const {
    step::PlanCost cost{
        step.time.value, costs_.usable() * memory::fullest(step.memory).share(), {}};
    for (const step::PlanCosts::Kind& kind : costs_.kinds()) {
      cost.busy.push_back(Seconds::s(0));
      for (const step::DeviceUse& use : step.devices)
        if (use.name == kind.name) cost.busy.back() = use.busy;
    }
    return bill_.of(cost);
  }

  const step::Spec& spec_;
  const cluster::Cluster& cluster_;
  const PlanRequest& request_;
  const std::uint32_t ranks_;
  step::PlanCosts costs_;
  StepBill bill_;
};

}  // namespace

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
