#include "strategies/search/search.h"

#include <algorithm>

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

namespace rehearse::strategies {
namespace {

/// So many plans between two looks at what is the best so far. A constant, so that what is
/// evaluated does not depend on the number of threads.
constexpr std::size_t kRound = 256;

bool keeps(const Figures& figures, const Figures& at_most) {
  for (std::size_t f = 0; f < kFigures; ++f)
    if (figures[f] > at_most[f]) return false;
  return true;
}

/// How far above the limits, as the worst ratio.
double excess(const Figures& figures, const Figures& at_most) {
  double worst = 0;
  for (std::size_t f = 0; f < kFigures; ++f)
    if (at_most[f] < kNoLimits[f]) worst = std::max(worst, figures[f] / at_most[f]);
  return worst;
}

/// The best so far and the front.
class Keeper {
 public:
  Keeper(const Question& question, Found& found) : question_(question), found_(found) {}

  /// Whether a plan with these bounds may still be kept.
  bool may_matter(const Figures& bound) const {
    if (found_.best.size() < question_.keep ||
        of(bound, question_.objective) <= of(found_.best.back().figures, question_.objective))
      return true;
    return std::none_of(found_.front.begin(), found_.front.end(),
                        [&](const Judged& f) { return beats(f.figures, bound); });
  }

  void take(const Judged& plan) {
    const auto before = [&](const Judged& a, const Judged& b) { return is_before(a, b); };
    auto& best = found_.best;
    best.insert(std::upper_bound(best.begin(), best.end(), plan, before), plan);
    if (best.size() > question_.keep) best.pop_back();
    take_into_front(plan);
  }

  void near(const Judged& bound) {
    if (!found_.nearest || further(*found_.nearest, bound)) found_.nearest = bound;
  }

 private:
  bool is_before(const Judged& a, const Judged& b) const {
    for (const Figure f : {question_.objective, Figure::kMemory, Figure::kStepTime})
      if (of(a.figures, f) != of(b.figures, f)) return of(a.figures, f) < of(b.figures, f);
    return a.index < b.index;
  }
  bool further(const Judged& a, const Judged& b) const {
    const double ea = excess(a.figures, question_.at_most),
                 eb = excess(b.figures, question_.at_most);
    return ea != eb ? eb < ea : is_before(b, a);
  }
  /// In no figure of the front worse, in some better.
  bool beats(const Figures& a, const Figures& b) const {
    bool better = false;
    for (const Figure f : question_.front) {
      if (of(a, f) > of(b, f)) return false;
      better |= of(a, f) < of(b, f);
    }
    return better;
  }
  bool equals(const Figures& a, const Figures& b) const {
    return std::all_of(question_.front.begin(), question_.front.end(),
                       [&](Figure f) { return of(a, f) == of(b, f); });
  }

  /// Of plans with equal figures the first stays.
  void take_into_front(const Judged& plan) {
    for (Judged& other : found_.front) {
      if (beats(other.figures, plan.figures)) return;
      if (equals(other.figures, plan.figures)) {
        if (plan.index < other.index) other = plan;
        return;
      }
    }
    auto& front = found_.front;
    std::erase_if(front, [&](const Judged& f) { return beats(plan.figures, f.figures); });
    const auto before = [](const Judged& a, const Judged& b) {
      const double x = of(a.figures, Figure::kStepTime), y = of(b.figures, Figure::kStepTime);
      return x != y ? x < y : a.index < b.index;
    };
    front.insert(std::upper_bound(front.begin(), front.end(), plan, before), plan);
  }

  const Question& question_;
  Found& found_;
};

class Run {
 public:
  Run(const Space& space, const Question& question, const std::function<Judge()>& new_judge,
      const SearchOptions& options)
      : space_(space),
        question_(question),
        judges_(new_judge),
        options_(options),
        threads_(tbb::global_control::max_allowed_parallelism, std::max(1U, options.threads)),
        arena_(static_cast<int>(std::max(1U, options.threads))) {}

  Result<Found> of(Range range) {
    found_.seen = range.end - range.first;
    Result<std::vector<Judged>> possible = bounds_of(range);
    if (!possible) return forward(possible);
    const Figure objective = question_.objective;
    std::sort(possible->begin(), possible->end(), [&](const Judged& a, const Judged& b) {
      const double x = strategies::of(a.figures, objective),
                   y = strategies::of(b.figures, objective);
      return x != y ? x < y : a.index < b.index;
    });
    if (Status ok = evaluate(*possible); !ok) return forward(ok);
    if (!found_.best.empty()) found_.nearest.reset();
    return std::move(found_);
  }

 private:
  using Judgement = std::function<std::optional<Figures>(const Candidate&)> Judge::*;

  /// Of each plan, in the order given.
  std::vector<std::optional<Figures>> judge(const std::vector<std::uint64_t>& indices,
                                            Judgement judgement) {
    std::vector<std::optional<Figures>> figures(indices.size());
    arena_.execute([&] {
      tbb::parallel_for(std::size_t{0}, indices.size(), [&](std::size_t i) {
        figures[i] = (judges_.local().*judgement)(space_.at(indices[i]));
      });
    });
    return figures;
  }

  Result<std::vector<Judged>> bounds_of(Range range) {
    std::vector<Judged> possible;
    Keeper keeper(question_, found_);
    constexpr std::uint64_t kPart = 8192;
    for (std::uint64_t first = range.first; first < range.end; first += kPart) {
      std::vector<std::uint64_t> indices;
      for (std::uint64_t i = first; i < std::min(range.end, first + kPart); ++i)
        indices.push_back(i);
      const auto bounds = judge(indices, &Judge::bound);
      for (std::size_t i = 0; i < indices.size(); ++i) {
        if (!bounds[i]) continue;
        keeper.near({indices[i], *bounds[i]});
        if (keeps(*bounds[i], question_.at_most)) possible.push_back({indices[i], *bounds[i]});
      }
      if (!go_on(0.5 * static_cast<double>(first - range.first) / static_cast<double>(found_.seen)))
        return stopped();
    }
    return possible;
  }

  Status evaluate(const std::vector<Judged>& possible) {
    Keeper keeper(question_, found_);
    std::vector<std::uint64_t> round;
    const auto run = [&] {
      const auto figures = judge(round, &Judge::evaluate);
      for (std::size_t i = 0; i < round.size(); ++i) {
        if (!figures[i]) continue;
        if (keeps(*figures[i], question_.at_most))
          keeper.take({round[i], *figures[i]});
        else if (found_.best.empty())
          nearest_evaluated(keeper, {round[i], *figures[i]});
      }
      found_.evaluated += round.size();
      round.clear();
    };
    for (std::size_t i = 0; i < possible.size(); ++i) {
      if (keeper.may_matter(possible[i].figures)) round.push_back(possible[i].index);
      if (round.size() < kRound) continue;
      run();
      if (!go_on(0.5 + 0.5 * static_cast<double>(i) / static_cast<double>(possible.size())))
        return stopped();
    }
    if (!round.empty()) run();
    return {};
  }

  /// Bounds that keep the limits say nothing of how near a plan is that does not.
  void nearest_evaluated(Keeper& keeper, const Judged& plan) {
    if (found_.nearest && keeps(found_.nearest->figures, question_.at_most)) found_.nearest = plan;
    keeper.near(plan);
  }

  bool go_on(double share) const { return !options_.progress || options_.progress(share); }
  static tl::unexpected<Error> stopped() { return fail("stopped before all plans were judged"); }

  const Space& space_;
  const Question& question_;
  tbb::enumerable_thread_specific<Judge> judges_;
  const SearchOptions& options_;
  /// Threads that were asked for are made, on however few cores.
  const tbb::global_control threads_;
  tbb::task_arena arena_;
  Found found_;
};

}  // namespace

Result<Found> search(const Space& space, Range range, const Question& question,
                     const std::function<Judge()>& new_judge, const SearchOptions& options) {
  return Run(space, question, new_judge, options).of(range);
}

Found merged(const Found& a, const Found& b, const Question& question) {
  Found both = a;
  both.seen += b.seen;
  both.evaluated += b.evaluated;
  Keeper keeper(question, both);
  if (b.nearest) keeper.near(*b.nearest);
  // What is among the best of both may be in the front of neither, and the other way round.
  Found all;
  Keeper taking(question, all);
  std::vector<Judged> plans = a.best;
  for (const std::vector<Judged>* more : {&a.front, &b.best, &b.front})
    plans.insert(plans.end(), more->begin(), more->end());
  std::sort(plans.begin(), plans.end(),
            [](const Judged& x, const Judged& y) { return x.index < y.index; });
  plans.erase(std::unique(plans.begin(), plans.end(),
                          [](const Judged& x, const Judged& y) { return x.index == y.index; }),
              plans.end());
  for (const Judged& plan : plans) taking.take(plan);
  both.best = std::move(all.best);
  both.front = std::move(all.front);
  if (!both.best.empty()) both.nearest.reset();
  return both;
}

}  // namespace rehearse::strategies
