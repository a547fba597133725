#include "models/control/controller.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "sim/base/random.h"

namespace rehearse::control {
namespace {

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

Result<Outcome> run(const Controller& controller, const PriceOf& price) {
  return Run(controller, price).run();
}

}  // namespace rehearse::control
