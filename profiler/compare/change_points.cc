#include "profiler/compare/change_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "sim/base/check.h"
#include "sim/base/statistics.h"

namespace rehearse::compare {
namespace {

// The prior, in words: a change comes every hundred values; a segment in ten drifts; levels lie
// within some 20 % of the median, drifts within some 0.5 % from one value to the next.
constexpr double kHazard = 1.0 / 100;
constexpr double kDrifts = 0.1;
constexpr double kLevelSpread = 0.2;
constexpr double kSlopeSpread = 0.005;
constexpr double kNoiseShape = 2;  ///< of the inverse gamma: its mean is known to a factor or so

/// The knowledge of a series before any of its values is weighed.
struct Prior {
  double level;  ///< logarithm
  double noise;  ///< relative
};

/// The noise from the differences of neighbours, whose median neither jumps nor drift move.
Prior prior_of(std::span<const double> logs) {
  std::vector<double> steps;
  for (std::size_t i = 1; i < logs.size(); ++i) steps.push_back(std::abs(logs[i] - logs[i - 1]));
  const double noise = upper_median(std::move(steps)) / (0.6745 * std::numbers::sqrt2);
  return {upper_median(std::vector<double>(logs.begin(), logs.end())),
          std::max(noise, kLeastNoise)};
}

/// A Student distribution.
struct Student {
  double centre, scale, freedom;
  double log_density(double x) const {
    const double t = (x - centre) / scale;
    return std::lgamma(0.5 * (freedom + 1)) - std::lgamma(0.5 * freedom) -
           0.5 * std::log(freedom * std::numbers::pi) - std::log(scale) -
           0.5 * (freedom + 1) * std::log1p(t * t / freedom);
  }
  double above(double x) const { return student_above((x - centre) / scale, freedom); }
};

/// A segment that began with its first value: y = level + slope x (number of the value), with
/// noise. The precision matrix and what it is applied to are those of the conjugate posterior; a
/// flat segment has no slope.
class Line {
 public:
  Line(const Prior& prior, bool drifts)
      : drifts_(drifts),
        p00_(square(prior.noise / kLevelSpread)),
        p11_(square(prior.noise / kSlopeSpread)),
        q0_(p00_ * prior.level),
        shape_(kNoiseShape),
        spread_(square(prior.noise) * (kNoiseShape - 1)),
        squares_(p00_ * square(prior.level)) {}

  std::size_t count() const { return count_; }
  bool drifts() const { return drifts_; }

  /// The expected value at position `at`; without noise, the expected level there.
  Student at(double at, bool with_noise) const {
    const auto [level, slope, c00, c01, c11] = solved();
    const double x = drifts_ ? at : 0;
    const double sure = c00 + 2 * x * c01 + x * x * c11;
    const double variance = spread() / shape_ * (sure + (with_noise ? 1 : 0));
    return {level + slope * x, std::sqrt(variance), 2 * shape_};
  }
  Student next() const { return at(static_cast<double>(count_), true); }

  void add(double y) {
    const double x = drifts_ ? static_cast<double>(count_) : 0;
    p00_ += 1;
    p01_ += x;
    p11_ += x * x;
    q0_ += y;
    q1_ += x * y;
    squares_ += y * y;
    shape_ += 0.5;
    ++count_;
  }

  double slope() const { return drifts_ ? solved().slope : 0; }
  /// Standard error of the rise from the first value to the last.
  double rise_error() const {
    const double last = static_cast<double>(count_ - 1);
    return std::sqrt(spread() / shape_ * solved().c11) * last;
  }
  double noise() const { return std::sqrt(spread() / shape_); }
  double freedom() const { return 2 * shape_; }

 private:
  struct Solved {
    double level, slope, c00, c01, c11;
  };
  static double square(double x) { return x * x; }

  Solved solved() const {
    if (!drifts_) return {q0_ / p00_, 0, 1 / p00_, 0, 0};
    const double det = p00_ * p11_ - p01_ * p01_;
    const double c00 = p11_ / det, c01 = -p01_ / det, c11 = p00_ / det;
    return {c00 * q0_ + c01 * q1_, c01 * q0_ + c11 * q1_, c00, c01, c11};
  }
  /// Scale of the inverse gamma.
  double spread() const {
    const Solved s = solved();
    const double explained = s.level * q0_ + s.slope * q1_;
    return spread_ + std::max(0.0, 0.5 * (squares_ - explained));
  }

  bool drifts_;
  std::size_t count_ = 0;
  double p00_, p01_ = 0, p11_;  ///< precision
  double q0_, q1_ = 0;
  double shape_, spread_, squares_;
};

/// The value below which a mixture has so much probability.
double quantile(const std::vector<std::pair<double, Student>>& mixture, double below) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const auto& [weight, part] : mixture) {
    const double reach = student_limit(0.001, part.freedom) * part.scale;
    low = std::min(low, part.centre - reach);
    high = std::max(high, part.centre + reach);
  }
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    double under = 0;
    for (const auto& [weight, part] : mixture) under += weight * (1 - part.above(middle));
    (under < below ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

/// The starts that the current segment may have had, each with its probability.
class Filter {
 public:
  explicit Filter(const Prior& prior) : prior_(prior) {}

  void add(double y) {
    const double before = hypotheses_.empty() ? 0 : std::log(kHazard);
    for (Hypothesis& h : hypotheses_)
      h.weight += std::log1p(-kHazard) + h.line.next().log_density(y);
    for (const bool drifts : {false, true}) {
      Line line(prior_, drifts);
      const double kind = std::log(drifts ? kDrifts : 1 - kDrifts);
      const double weight = before + kind + line.next().log_density(y);
      hypotheses_.push_back({line, weight});
    }
    for (Hypothesis& h : hypotheses_) h.line.add(y);
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (const Hypothesis& h : hypotheses_) most = std::max(most, h.weight);
    for (const Hypothesis& h : hypotheses_) sum += std::exp(h.weight - most);
    for (Hypothesis& h : hypotheses_) h.weight -= most + std::log(sum);
    // An improbable hypothesis changes nothing and costs time.
    std::erase_if(hypotheses_, [](const Hypothesis& h) { return h.weight < std::log(1e-9); });
  }

  /// The probability that the newest value is the first of its segment.
  double began() const {
    double sum = 0;
    for (const Hypothesis& h : hypotheses_)
      if (h.line.count() == 1) sum += std::exp(h.weight);
    return sum;
  }

  Belief belief() const {
    Belief belief;
    std::vector<std::pair<double, Student>> levels;
    std::vector<std::pair<std::size_t, double>> lengths;
    for (const Hypothesis& h : hypotheses_) {
      const double share = std::exp(h.weight);
      levels.push_back({share, h.line.at(static_cast<double>(h.line.count() - 1), false)});
      lengths.push_back({h.line.count(), share});
      if (h.line.drifts()) belief.drifts += share;
    }
    std::ranges::sort(lengths);
    const auto length = [&](double below) {
      double sum = 0;
      for (const auto& [count, share] : lengths)
        if ((sum += share) >= below) return static_cast<double>(count);
      return static_cast<double>(lengths.back().first);
    };
    belief.length = {length(0.5), length(0.05), length(0.95)};
    const auto level = [&](double below) { return std::exp(quantile(levels, below)); };
    belief.level = {level(0.5), level(0.05), level(0.95)};
    return belief;
  }

 private:
  struct Hypothesis {
    Line line;
    double weight;  ///< logarithm of the probability
  };
  Prior prior_;
  std::vector<Hypothesis> hypotheses_;
};

Ranged ranged(const Student& log_level) {
  const double reach = student_limit(0.05, log_level.freedom) * log_level.scale;
  return {std::exp(log_level.centre), std::exp(log_level.centre - reach),
          std::exp(log_level.centre + reach)};
}

/// A relative rise from one logarithm to another.
Effect rise(double from, double to, double error, double freedom) {
  const double factor = std::exp(to - from);
  return {.baseline = std::exp(from),
          .candidate = std::exp(to),
          .change = factor - 1,
          .scale = std::exp(from),
          .error = error * factor,
          .error_if_none = error,
          .freedom = freedom,
          .step_noise = 0};
}

struct Cut {
  std::size_t first;
  bool drifts;
};

/// The most probable cut, by dynamic programming over the ends of segments.
std::vector<Cut> best_cut(std::span<const double> logs, const Prior& prior) {
  const std::size_t n = logs.size();
  std::vector<double> best(n + 1, -std::numeric_limits<double>::infinity());
  std::vector<Cut> last(n + 1, {0, false});
  best[0] = 0;
  for (std::size_t first = 0; first < n; ++first)
    for (const bool drifts : {false, true}) {
      Line line(prior, drifts);
      double weight = best[first] + std::log(drifts ? kDrifts : 1 - kDrifts) +
                      (first > 0 ? std::log(kHazard) : 0);
      for (std::size_t i = first; i < n; ++i) {
        if (i > first) weight += std::log1p(-kHazard);
        weight += line.next().log_density(logs[i]);
        line.add(logs[i]);
        if (weight > best[i + 1]) {
          best[i + 1] = weight;
          last[i + 1] = {first, drifts};
        }
      }
    }
  std::vector<Cut> cuts;
  for (std::size_t end = n; end > 0; end = last[end].first) cuts.push_back(last[end]);
  std::ranges::reverse(cuts);
  return cuts;
}

}  // namespace

ChangePoints find_changes(std::span<const double> series) {
  REHEARSE_CHECK(series.size() >= 3);
  std::vector<double> logs;
  for (const double value : series) {
    REHEARSE_CHECK(value > 0 && std::isfinite(value));
    logs.push_back(std::log(value));
  }
  const Prior prior = prior_of(logs);
  ChangePoints found;
  Filter filter(prior);
  for (const double y : logs) {
    filter.add(y);
    found.began.push_back(filter.began());
  }
  found.belief = filter.belief();
  const std::vector<Cut> cuts = best_cut(logs, prior);
  std::optional<Student> before;  // the level that the segment before ended with
  for (std::size_t c = 0; c < cuts.size(); ++c) {
    const std::size_t end = c + 1 < cuts.size() ? cuts[c + 1].first : logs.size();
    Line line(prior, cuts[c].drifts);
    for (std::size_t i = cuts[c].first; i < end; ++i) line.add(logs[i]);
    const Student first = line.at(0, false);
    const Student last = line.at(static_cast<double>(line.count() - 1), false);
    Segment segment{.first = cuts[c].first,
                    .count = line.count(),
                    .drifts = line.drifts() && line.count() > 1,
                    .begin = ranged(first),
                    .end = ranged(last),
                    .slope = std::expm1(line.slope()),
                    .noise = line.noise(),
                    .freedom = line.freedom()};
    if (before)
      segment.jump = rise(before->centre, first.centre, std::hypot(before->scale, first.scale),
                          std::min(before->freedom, first.freedom));
    if (segment.drifts)
      segment.drift = rise(first.centre, last.centre, line.rise_error(), line.freedom());
    found.segments.push_back(segment);
    before = last;
  }
  return found;
}

}  // namespace rehearse::compare
