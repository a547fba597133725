#include "tests/validation/studies/sharing/slice_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace rehearse::sharing {
namespace {

/// A job with its law, but for constants.
struct Fitted {
  const TimedJob* job;
  JobLaw law;
};

void set_constants(JobLaw& law, const TimedJob& job, const SliceConstants& constants) {
  law.alpha = constants.alpha_of(job.kind);
  law.beta = constants.beta(job.training);
  law.kappa = constants.kappa;
}

/// Mean error of a job's steps on slices.
double error_of(const Fitted& fitted, const SliceConstants& constants) {
  JobLaw law = fitted.law;
  set_constants(law, *fitted.job, constants);
  double sum = 0, steps = 0;
  for (const TimedSlice& slice : fitted.job->slices)
    for (const SweepPoint& p : slice.points) {
      sum += std::abs(law.time(slice.ratio, p.size) / p.time - 1);
      ++steps;
    }
  return steps > 0 ? sum / steps : 0;
}

/// Sets `constant` to the value between the ends, in so many steps, with the least error of the
/// jobs that `counts` takes; keeps it where there are none.
void choose(double& constant, const SliceConstants& constants, const std::vector<Fitted>& jobs,
            double from, double to, int steps, const std::function<bool(const TimedJob&)>& counts) {
  double best = constant, least = -1;
  for (int i = 0; i <= steps; ++i) {
    constant = from + (to - from) * i / steps;
    double sum = 0;
    bool any = false;
    for (const Fitted& f : jobs)
      if (counts(*f.job)) {
        sum += error_of(f, constants);
        any = true;
      }
    if (!any) break;
    if (least >= 0 && sum >= least) continue;
    least = sum;
    best = constant;
  }
  constant = best;
}

SliceConstants shares_of(const std::vector<Fitted>& jobs) {
  SliceConstants c = {.alpha = {0.5, 0.5, 0.5, 0.5},
                      .beta_inference = 0.1,
                      .beta_training = 0.2,
                      .kappa = 1,
                      .spread = {}};
  constexpr int kRounds = 3;  // one constant after another, until they agree
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t k = 0; k < kWorkKinds; ++k) {
      if (k == static_cast<std::size_t>(WorkKind::kUnknown)) continue;
      choose(c.alpha[k], c, jobs, 0, 1, 50,
             [&](const TimedJob& j) { return static_cast<std::size_t>(j.kind) == k; });
    }
    choose(c.beta_inference, c, jobs, 0, 0.8, 40, [](const TimedJob& j) { return !j.training; });
    choose(c.beta_training, c, jobs, 0, 0.8, 40, [](const TimedJob& j) { return j.training; });
    choose(c.kappa, c, jobs, 0.96, 1.08, 12, [](const TimedJob&) { return true; });
  }
  return c;
}

/// How far each step on a slice is off: measured ÷ predicted or its inverse, less 1.
std::vector<std::pair<Regime, double>> misses(const Fitted& fitted,
                                              const SliceConstants& constants) {
  JobLaw law = fitted.law;
  set_constants(law, *fitted.job, constants);
  std::vector<std::pair<Regime, double>> all;
  for (const TimedSlice& slice : fitted.job->slices)
    for (const SweepPoint& p : slice.points) {
      const double ratio = law.time(slice.ratio, p.size) / p.time;
      all.emplace_back(law.regime(slice.ratio, p.size), std::max(ratio, 1 / ratio) - 1);
    }
  return all;
}

}  // namespace

Result<SliceConstants> fit_constants(const std::vector<TimedJob>& jobs) {
  std::vector<Fitted> fitted;
  for (const TimedJob& job : jobs) {
    const JobLaw law = TRY(fit_whole(job.whole, job.kind, job.training, {}));
    if (law.identified) fitted.push_back({&job, law});
  }
  if (fitted.empty())
    return fail("no job's steps on the whole GPU at least double over its batches");
  SliceConstants constants = shares_of(fitted);
  std::array<std::vector<double>, kRegimes> missed;
  for (std::size_t out = 0; out < fitted.size(); ++out) {
    std::vector<Fitted> others = fitted;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(out));
    for (const auto& [regime, miss] : misses(fitted[out], shares_of(others)))
      missed[static_cast<std::size_t>(regime)].push_back(miss);
  }
  for (std::size_t r = 0; r < kRegimes; ++r) {
    std::vector<double>& of_regime = missed[r];
    // So that 90 % of the steps are within, of few the worst.
    std::sort(of_regime.begin(), of_regime.end());
    const std::size_t at = (of_regime.size() * 9 + 9) / 10;
    constants.spread[r] = of_regime.empty() ? 0.25 : of_regime[std::max<std::size_t>(at, 1) - 1];
  }
  return constants;
}

}  // namespace rehearse::sharing
