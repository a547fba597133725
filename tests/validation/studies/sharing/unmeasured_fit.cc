#include "tests/validation/studies/sharing/unmeasured_fit.h"

#include <algorithm>
#include <cmath>

namespace rehearse::sharing {
namespace {

JobLaw law_of(const DescribedRuns& runs, const UnmeasuredFit& fit) {
  UnmeasuredConstants constants = fit.constants;
  constants.host = fit.hosts[runs.host];
  return describe(runs.job, *runs.gpu, constants);
}

double error_of(const std::vector<DescribedRuns>& all, const UnmeasuredFit& fit) {
  double sum = 0;
  for (const DescribedRuns& runs : all) {
    const JobLaw law = law_of(runs, fit);
    double of_job = 0;
    for (const DescribedStep& s : runs.steps)
      of_job += std::abs(law.time(s.ratio, s.size) / s.time - 1);
    sum += of_job / static_cast<double>(runs.steps.size());
  }
  return sum;
}

/// Multiplies one constant by a factor.
void scale(UnmeasuredFit& fit, std::size_t which, double by) {
  constexpr std::size_t kOthers = 3;
  UnmeasuredConstants& c = fit.constants;
  if (which == 0) c.launch = c.launch * by;
  if (which == 1) c.optimizer_passes *= by;
  if (which == 2) c.host_in_training *= by;
  if (which < kOthers) return;
  if (which < kOthers + kWorkKinds) {
    double& efficiency = c.efficiency[which - kOthers];
    efficiency = std::min(1.0, efficiency * by);
    return;
  }
  Seconds& host = fit.hosts[which - kOthers - kWorkKinds];
  host = host * by;
}

UnmeasuredFit without_spread(const std::vector<DescribedRuns>& runs) {
  std::size_t hosts = 1;
  for (const DescribedRuns& r : runs) hosts = std::max(hosts, r.host + 1);
  UnmeasuredFit fit = {.constants = shipped_unmeasured(),
                       .hosts = std::vector<Seconds>(hosts, Seconds::us(40))};
  // From what is plausible before anything was measured, not from what is shipped.
  fit.constants.efficiency = {0.75, 0.75, 0.75, 0.75};
  fit.constants.launch = Seconds::us(6);
  fit.constants.optimizer_passes = 20;
  fit.constants.host_in_training = 0.6;
  double least = error_of(runs, fit);
  constexpr double kFirst = 0.3, kLast = 0.01;
  for (double step = kFirst; step > kLast;) {
    bool moved = false;
    for (std::size_t which = 0; which < 3 + kWorkKinds + hosts; ++which)
      for (const double by : {1 + step, 1 / (1 + step)}) {
        UnmeasuredFit tried = fit;
        scale(tried, which, by);
        const double error = error_of(runs, tried);
        if (error >= least - 1e-9) continue;
        least = error;
        fit = tried;
        moved = true;
      }
    if (!moved) step /= 2;
  }
  fit.constants.host = fit.hosts.front();
  return fit;
}

}  // namespace

UnmeasuredFit fit_unmeasured(const std::vector<DescribedRuns>& runs) {
  UnmeasuredFit fit = without_spread(runs);
  std::vector<double> missed;
  for (std::size_t out = 0; out < runs.size(); ++out) {
    std::vector<DescribedRuns> others = runs;
    if (runs.size() > 1) others.erase(others.begin() + static_cast<std::ptrdiff_t>(out));
    UnmeasuredFit of_others = without_spread(others);
    of_others.hosts.resize(fit.hosts.size(), fit.constants.host);
    const JobLaw law = law_of(runs[out], of_others);
    for (const DescribedStep& s : runs[out].steps) {
      const double ratio = law.time(s.ratio, s.size) / s.time;
      missed.push_back(std::max(ratio, 1 / ratio) - 1);
    }
  }
  std::sort(missed.begin(), missed.end());
  fit.constants.spread = missed[(missed.size() * 9 + 9) / 10 - 1];
  return fit;
}

}  // namespace rehearse::sharing
