#include "cli/planning/no_plan.h"

#include <fmt/core.h>

#include "cli/planning/plan_words.h"
#include "models/step/devices.h"
#include "strategies/lay_out.h"
#include "strategies/memory_savers.h"

namespace rehearse::cli {
namespace {

using strategies::Candidate;
using strategies::Figure;
using strategies::Figures;
using strategies::Found;
using strategies::kFigures;

bool is_set(const Figures& limits, Figure figure) {
  return of(limits, figure) < of(strategies::kNoLimits, figure);
}

std::string limit_words(Figure figure, double value) {
  return fmt::format("{} of at most {}", strategies::kFigureNames[static_cast<std::size_t>(figure)],
                     figure_words(figure, value));
}

class Reason {
 public:
  Reason(const FailedSearch& failed, step::PlanCosts& costs) : failed_(failed), costs_(costs) {}

  /// Nothing fits on the devices: what the nearest lacks, and the change that would help most.
  tl::unexpected<Error> nothing_fits(const std::optional<strategies::Judged>& nearest) const {
    const double most = of(failed_.question.at_most, Figure::kMemory);
    if (!nearest)
      return fail("no plan of this job can be laid out on the cluster: " +
                  costs_.why().diagnostics.front().problem);
    const Candidate c = failed_.space.at(nearest->index);
    const std::optional<memory::StageMemory> needs = memory_of(c);
    if (!needs)
      return fail("no plan of this job can be laid out on the cluster: " +
                  costs_.why().diagnostics.front().problem);
    const double missing = needs->peak.value.b() - most * needs->device.usable.b() / usable();
    return fail(
        fmt::format("no plan fits: the nearest ({}) needs {} of the {} that may be used on {}, {} "
                    "too much; of these {} states, {} activations",
                    plan_words(c.training, c.plan), to_string(needs->peak.value),
                    to_string(Bytes::b(most)), needs->device.name, to_string(Bytes::b(missing)),
                    to_string(needs->parts.states()),
                    to_string(needs->parts.activations + needs->parts.loss)),
        {}, what_would_fit(c, most));
  }

 private:
  double usable() const { return costs_.usable().b(); }

  std::optional<memory::StageMemory> memory_of(const Candidate& c) const {
    const Result<workload::Layout> layout =
        strategies::lay_out(failed_.spec.workload, c.training, c.plan);
    if (!layout) return std::nullopt;
    const auto memory = step::memory_on(*layout, failed_.cluster);
    if (!memory) return std::nullopt;
    return memory::fullest(*memory);
  }

  /// One change of the nearest plan, or two, whichever fits first.
  std::string what_would_fit(const Candidate& c, double most) const {
    const double share = most / usable();
    std::optional<strategies::MemorySaver> least;
    double least_share = 0;
    for (const auto& saver : strategies::memory_savers(c.training, c.plan)) {
      const auto memory = memory_of({saver.training, saver.plan});
      if (!memory) continue;
      if (memory->share() <= share)
        return fmt::format("would fit: {} ({})", saver.change, to_string(memory->peak.value));
      if (!least || memory->share() < least_share) {
        least = saver;
        least_share = memory->share();
      }
    }
    if (least)
      for (const auto& saver : strategies::memory_savers(least->training, least->plan)) {
        const auto memory = memory_of({saver.training, saver.plan});
        if (memory && memory->share() <= share)
          return fmt::format("would fit: {} and {} ({})", least->change, saver.change,
                             to_string(memory->peak.value));
      }
    return "more devices, or devices with more memory";
  }

  const FailedSearch& failed_;
  step::PlanCosts& costs_;
};

}  // namespace

tl::unexpected<Error> why_no_plan(const FailedSearch& failed, const Found& found,
                                  step::PlanCosts& costs,
                                  const std::function<Figures(const step::PlanCost&)>& figures,
                                  const std::function<Result<Found>(Figure)>& least) {
  // Each limit alone: is it within reach?
  std::string together;
  for (std::size_t f = 0; f < kFigures; ++f) {
    const auto figure = static_cast<Figure>(f);
    if (!is_set(failed.asked, figure)) continue;
    const Result<Found> one = least(figure);
    if (!one) return forward(one);
    if (one->best.empty()) return Reason(failed, costs).nothing_fits(found.nearest);
    const strategies::Judged& best = one->best.front();
    const Candidate c = failed.space.at(best.index);
    if (of(best.figures, figure) > of(failed.asked, figure))
      return fail(fmt::format("no plan has a {}", limit_words(figure, of(failed.asked, figure))),
                  {},
                  fmt::format("nearest: {} ({})", figure_words(figure, of(best.figures, figure)),
                              plan_words(c.training, c.plan)));
    together += fmt::format("{}a {}", together.empty() ? "" : " and ",
                            limit_words(figure, of(failed.asked, figure)));
  }
  if (together.empty() || !found.nearest) return Reason(failed, costs).nothing_fits(found.nearest);
  const Candidate c = failed.space.at(found.nearest->index);
  const auto cost = costs.of(c.training, c.plan, Bytes::gib(1e9));
  std::string nearest = fmt::format("nearest: {}", plan_words(c.training, c.plan));
  if (cost)
    for (std::size_t f = 0; f < kFigures; ++f)
      if (const auto figure = static_cast<Figure>(f); is_set(failed.asked, figure))
        nearest += fmt::format(", {} {}", strategies::kFigureNames[f],
                               figure_words(figure, of(figures(*cost), figure)));
  return fail(fmt::format("no plan has {} at once", together), {}, nearest);
}

}  // namespace rehearse::cli
