#include "cli/planning/no_plan.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "cli/planning/plan_words.h"
#include "strategies/step/devices.h"
#include "strategies/step/fit_recompute.h"

namespace rehearse::cli {
namespace {

using strategies::Candidate, strategies::Figure, strategies::Figures, strategies::Found,
    strategies::kFigures;

bool is_set(const Figures& limits, Figure figure) {
  return of(limits, figure) < of(strategies::kNoLimits, figure);
}

std::string limit_words(Figure figure, double value) {
  return fmt::format("{} of at most {}", strategies::kFigureNames[static_cast<std::size_t>(figure)],
                     figure_words(figure, value));
}

class Reason {
 public:
  Reason(const FailedSearch& failed, step::PlanCosts& costs, const SearchAgain& again)
      : failed_(failed), costs_(costs), again_(again) {
    fits_[static_cast<std::size_t>(Figure::kMemory)] = most();
  }

  /// The error if no plan fits on the devices: the memory that the nearest plan lacks, and the
  /// change that would help most.
  tl::unexpected<Error> nothing_fits() const {
    const Found least = TRY(again_(failed_.space, Figure::kMemory, strategies::kNoLimits));
    std::optional<memory::StageMemory> needs;
    std::optional<Candidate> c;
    if (!least.best.empty()) {
      c = failed_.space.at(least.best.front().index);
      needs = memory_of(*c);
    }
    if (!needs) {
      const Candidate one = c ? *c : failed_.space.at(0);
      costs_.of(one.training, one.plan, Bytes::b(most()));
      const std::vector<Diagnostic>& why = costs_.why().diagnostics;
      return fail("no plan of this job can be timed on the cluster" +
                  (why.empty() ? std::string() : ": " + why.front().problem));
    }
    const double may = most() * needs->device.usable.b() / costs_.usable().b();
    return fail(fmt::format("no plan fits: the nearest ({}) needs {}, but {} are usable on {}: {} "
                            "too much; model states take {}, activations {}",
                            words(*c), to_string(needs->peak.value), to_string(Bytes::b(may)),
                            needs->device.name, to_string(Bytes::b(needs->peak.value.b() - may)),
                            to_string(needs->parts.states()),
                            to_string(needs->parts.activations + needs->parts.loss)),
                {}, what_would_fit(*needs, may));
  }

  /// The least value of each figure that has a limit.
  tl::unexpected<Error> out_of_reach() const {
    std::string together;
    for (const Figure figure : set_figures()) {
      const Found one = TRY(again_(failed_.space, figure, fits_));
      if (one.best.empty()) return nothing_fits();
      const strategies::Judged& best = one.best.front();
      const double limit = of(failed_.asked, figure);
      if (of(best.figures, figure) > limit)
        return fail(fmt::format("no plan has a {}", limit_words(figure, limit)), {},
                    fmt::format("nearest: {} ({})", figure_words(figure, of(best.figures, figure)),
                                words(failed_.space.at(best.index))));
      together +=
          fmt::format("{}a {}", together.empty() ? "" : " and ", limit_words(figure, limit));
    }
    return fail(fmt::format("no plan has {} at once", together), {}, at_the_edges());
  }

 private:
  double most() const { return failed_.fits.b(); }
  static std::string words(const Candidate& c) { return plan_words(c.training, c.plan); }

  std::vector<Figure> set_figures() const {
    std::vector<Figure> figures;
    for (std::size_t f = 0; f < kFigures; ++f)
      if (is_set(failed_.asked, static_cast<Figure>(f))) figures.push_back(static_cast<Figure>(f));
    return figures;
  }

  /// With all limits except one: the plan that is nearest to that one.
  std::string at_the_edges() const {
    std::string text;
    for (const Figure figure : set_figures()) {
      Figures limits = failed_.question.at_most;
      limits[static_cast<std::size_t>(figure)] =
          figure == Figure::kMemory ? most() : of(strategies::kNoLimits, figure);
      const Result<Found> found = again_(failed_.space, figure, limits);
      if (!found || found->best.empty()) continue;
      const strategies::Judged& best = found->best.front();
      text += fmt::format("{}{} with {} instead ({})", text.empty() ? "nearest: " : ", or ",
                          strategies::kFigureNames[static_cast<std::size_t>(figure)],
                          figure_words(figure, of(best.figures, figure)),
                          words(failed_.space.at(best.index)));
    }
    return text;
  }

  std::optional<memory::StageMemory> memory_of(const Candidate& c) const {
    const Result<workload::Layout> layout =
        step::lay_out_on(failed_.cluster, failed_.spec.workload, c.training, c.plan);
    if (!layout) return std::nullopt;
    const auto memory = step::memory_on(*layout, failed_.cluster);
    if (!memory) return std::nullopt;
    return memory::fullest(*memory);
  }

  /// The nearest plan without given fields; otherwise the number of devices that would be needed.
  std::string what_would_fit(const memory::StageMemory& needs, double may) const {
    if (!failed_.look_beyond)
      return "rehearse plan searches more plans, also with interleaved stages and with weights or "
             "activations in host memory";
    const Result<strategies::Space> free = strategies::Space::of(
        failed_.spec.workload, failed_.spec.training, failed_.spec.plan, failed_.ranks, {});
    if (free && free->size() > failed_.space.size()) {
      const Result<Found> found = again_(*free, Figure::kStepTime, fits_);
      if (found && !found->best.empty()) {
        const strategies::Judged& best = found->best.front();
        return fmt::format("would fit without the keys given in the plan: {} ({})",
                           words(free->at(best.index)),
                           figure_words(Figure::kMemory, of(best.figures, Figure::kMemory)));
      }
    }
    return fmt::format(
        "would fit: about {} such devices, or as many with {} each",
        static_cast<std::uint64_t>(std::ceil(needs.peak.value.b() / may * failed_.ranks)),
        to_string(needs.peak.value));
  }

  const FailedSearch& failed_;
  step::PlanCosts& costs_;
  const SearchAgain& again_;
  Figures fits_ = strategies::kNoLimits;  // on the devices, and no limit but that
};

}  // namespace

tl::unexpected<Error> why_no_plan(const FailedSearch& failed, step::PlanCosts& costs,
                                  const SearchAgain& again) {
  const Reason reason(failed, costs, again);
  const bool asked =
      std::ranges::any_of(failed.asked, [](double limit) { return std::isfinite(limit); });
  return asked ? reason.out_of_reach() : reason.nothing_fits();
}

}  // namespace rehearse::cli
