#include "models/control/controller.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/core.h>

#include "sim/base/random.h"

namespace rehearse::control {

namespace {

class Levels {
 public:
  Levels(std::size_t windows, std::uint64_t seed) : levels_(windows), random_(seed) {}

  std::vector<double> of(const Segments& segments) {
    double level = 0;
    for (double& each : levels_) {
      const bool begins = random_.uniform() < segments.hazard || level == 0;
      if (begins) level = segments.low * std::pow(segments.high / segments.low, random_.uniform());
      each = level;
    }
    return levels_;
  }

  std::vector<double> of(const Walk& walk) {
    const double low = std::log(walk.low), high = std::log(walk.high);
    double at = (low + high) / 2;
    for (double& each : levels_) {
      each = std::exp(at);
      // Reflections repeat after twice the width.
      const double width = high - low,
                   over = std::fmod(at + walk.step * random_.normal() - low, 2 * width);
      const double inside = over < 0 ? over + 2 * width : over;
      at = width > 0 ? low + (inside > width ? 2 * width - inside : inside) : low;
    }
    return levels_;
  }

  std::vector<double> of(const Recorded& recorded) {
    for (std::size_t w = 0; w < levels_.size(); ++w)
      levels_[w] = recorded.levels[w % recorded.levels.size()];
    return levels_;
  }

  std::vector<double> of(const States& states) {
    std::uint32_t state = 0;
    for (double& each : levels_) {
      if (states.count > 1 && random_.uniform() < states.hazard)
        state = (state + 1 + random_.below(states.count - 1)) % states.count;
      each = state + 1.0;
    }
    return levels_;
  }

 private:
  std::vector<double> levels_;
  Random random_;
};

class Run {
 public:
  Run(const Controller& controller, const PriceOf& price)
      : c_(controller),
        price_(price),
        levels_(levels_of(controller.context, controller.windows, controller.seed)),
        random_(controller.seed + 1),
        estimator_(controller.estimate) {
    const auto [low, high] = range_of(controller.context);
    low_ = std::log(low);
    high_ = std::log(high);
  }

  Result<Outcome> run() {
    Outcome outcome;
    std::vector<double> fixed(c_.choices, 0);
    double squares = 0;
    std::size_t estimated = 0;
    for (std::size_t w = 0; w < levels_.size(); ++w) {
      while (!known_.empty() && known_.front().known_at <= w) {
        estimator_.observe(known_.front().logarithm, c_.every);
        begun_ = true;
        known_.pop_front();
      }
      if (begun_) {
        const double off = estimator_.estimate() - std::log(levels_[w]);
        squares += c_.states > 0 ? std::abs(off) > 1e-9 : off * off;
        ++estimated;
      }
      const std::size_t choice = begun_ ? TRY(chosen(estimate())) : c_.first;
      const double paid = TRY(priced(choice, levels_[w]));
      outcome.chosen += paid;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < c_.choices; ++i) {
        const double other = TRY(priced(i, levels_[w]));
        fixed[i] += other;
        least = std::min(least, other);
      }
      outcome.known += least;
      if (w % c_.every > 0) continue;
      outcome.chosen += c_.cost;
      const double logarithm =
          c_.states > 0 ? std::log(state_seen(levels_[w]))
                        : TRY(level_with(choice, paid * std::exp(c_.noise * random_.normal())));
      known_.push_back({w + c_.delay, logarithm});
    }
    const auto best = std::min_element(fixed.begin(), fixed.end());
    outcome.fixed = *best;
    outcome.fixed_choice = static_cast<std::size_t>(best - fixed.begin());
    const double mean = estimated > 0 ? squares / static_cast<double>(estimated) : 0;
    outcome.error = c_.states > 0 ? mean : std::sqrt(mean);
    return outcome;
  }

 private:
  /// The level, or the state.
  double estimate() const {
    const double level = std::exp(estimator_.estimate());
    return c_.states > 0 ? std::round(level) : level;
  }

  /// Each other state alike with the probability of an error.
  double state_seen(double state) {
    if (c_.states < 2 || random_.uniform() >= c_.noise) return state;
    return std::fmod(state + random_.below(c_.states - 1), c_.states) + 1;
  }

  Result<double> priced(std::size_t choice, double level) const {
    const double price = TRY(price_(choice, level));
    if (!(price > 0 && std::isfinite(price)))
      return fail(
          fmt::format("the price of choice {} at level {:g} is {:g}", choice + 1, level, price),
          "a price above 0");
    return price;
  }

  Result<std::size_t> chosen(double level) const {
    if (!c_.classes.empty()) {
      std::size_t choice = c_.classes.front().second;
      for (const auto& [least, best] : c_.classes)
        if (level >= least) choice = best;
      return choice;
    }
    std::optional<std::pair<double, std::size_t>> best;  // price, choice
    for (std::size_t choice = 0; choice < c_.choices; ++choice)
      if (const double price = TRY(priced(choice, level)); !best || price < best->first)
        best = {price, choice};
    return best->second;
  }

  /// The prices of a choice at both ends of the context.
  Result<std::pair<double, double>> ends_of(std::size_t choice) {
    if (const auto found = ends_.find(choice); found != ends_.end()) return found->second;
    const double low = TRY(priced(choice, std::exp(low_))),
                 high = TRY(priced(choice, std::exp(high_)));
    if (low == high && low_ < high_)
      return fail(fmt::format("the price of choice {} is {:g} at both ends of the context",
                              choice + 1, low),
                  "a price that rises or falls with the level");
    return ends_.emplace(choice, std::pair(low, high)).first->second;
  }

  /// The logarithm of the level at which the choice has this price; beyond the range of the context,
  /// its end. By the secant in logarithms, on which a power of the level is a line, and by bisection
  /// where that does not halve the range.
  Result<double> level_with(std::size_t choice, double price) {
    const auto [at_low, at_high] = TRY(ends_of(choice));
    double low = low_, high = high_;
    double below = std::log(at_low / price), above = std::log(at_high / price);
    if (below == 0 || (below > 0) == (above > 0))
      return std::abs(below) <= std::abs(above) ? low : high;
    constexpr double kFine = 1e-12;
    while (high - low > kFine * (high_ - low_)) {
      const double width = high - low;
      for (const double at : {low - below * width / (above - below), (low + high) / 2}) {
        if (!(low < at && at < high)) continue;
        const double off = std::log(TRY(priced(choice, std::exp(at))) / price);
        if (std::abs(off) <= kFine) return at;
        const bool left = (off > 0) == (below > 0);
        (left ? low : high) = at;
        (left ? below : above) = off;
        if (high - low <= width / 2) break;
      }
      if (high - low == width) break;
    }
    return (low + high) / 2;
  }

  struct Known {
    std::size_t known_at;
    double logarithm;
  };
  const Controller& c_;
  const PriceOf& price_;
  std::vector<double> levels_;
  Random random_;
  Estimator estimator_;
  double low_, high_;  // logarithms
  std::deque<Known> known_;
  std::map<std::size_t, std::pair<double, double>> ends_;  // of choices
  bool begun_ = false;
};

}  // namespace

void Estimator::observe(double logarithm, double windows) {
  switch (rule_.kind) {
    case EstimateKind::kLast: estimate_ = logarithm; break;
    case EstimateKind::kWindow:
      last_.push_back(logarithm);
      if (last_.size() > rule_.windows) last_.erase(last_.begin());
      estimate_ =
          std::accumulate(last_.begin(), last_.end(), 0.0) / static_cast<double>(last_.size());
      break;
    case EstimateKind::kExponential:
      estimate_ = begun_ ? estimate_ + rule_.share * (logarithm - estimate_) : logarithm;
      break;
    case EstimateKind::kBelief: update_belief(logarithm, windows); break;
  }
  begun_ = true;
}

/// The recursion of online change-point detection: each beginning either continues or gives way to a
/// new segment; each is weighted by the density of the observation under it (Adams and MacKay,
/// arXiv 0710.3742, 2007), and its level is updated as a normal mean of known noise is.
void Estimator::update_belief(double logarithm, double windows) {
  const double noise = std::max(rule_.noise * rule_.noise, 1e-12);
  const double continues = begun_ ? std::pow(1 - rule_.hazard, windows) : 0;
  for (Beginning& b : belief_) b.weight *= continues;
  belief_.push_back({1 - continues, rule_.mean, rule_.spread * rule_.spread});
  // Densities relative to the largest, because all may be too small.
  std::vector<double> exponents;
  for (const Beginning& b : belief_) {
    const double variance = b.variance + noise, off = logarithm - b.mean;
    exponents.push_back(-0.5 * (off * off / variance + std::log(variance)));
  }
  const double largest = *std::max_element(exponents.begin(), exponents.end());
  double sum = 0;
  for (std::size_t i = 0; i < belief_.size(); ++i) {
    Beginning& b = belief_[i];
    b.weight *= std::exp(exponents[i] - largest);
    const double gain = b.variance / (b.variance + noise);
    b.mean += gain * (logarithm - b.mean);
    b.variance *= 1 - gain;
    sum += b.weight;
  }
  if (!(sum > 0)) {  // nothing else explains it
    belief_ = {belief_.back()};
    sum = belief_.front().weight = 1;
  }
  constexpr double kNegligible = 1e-6;
  std::erase_if(belief_, [&](const Beginning& b) { return b.weight < kNegligible * sum; });
  double all = 0, mean = 0;
  for (const Beginning& b : belief_) {
    all += b.weight;
    mean += b.weight * b.mean;
  }
  for (Beginning& b : belief_) b.weight /= all;
  estimate_ = mean / all;
}

std::pair<double, double> range_of(const Context& context) {
  if (const auto* recorded = std::get_if<Recorded>(&context)) {
    const auto [low, high] = std::minmax_element(recorded->levels.begin(), recorded->levels.end());
    return {*low, *high};
  }
  if (const auto* states = std::get_if<States>(&context)) return {1, states->count};
  const auto* segments = std::get_if<Segments>(&context);
  return segments != nullptr ? std::pair(segments->low, segments->high)
                             : std::pair(std::get<Walk>(context).low, std::get<Walk>(context).high);
}

std::vector<double> levels_of(const Context& context, std::size_t windows, std::uint64_t seed) {
  return std::visit([&](const auto& process) { return Levels(windows, seed).of(process); },
                    context);
}

Result<Outcome> run(const Controller& controller, const PriceOf& price) {
  return Run(controller, price).run();
}

}  // namespace rehearse::control
