#include "tests/validation/studies/search.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace rehearse::compute {

std::vector<double> minimize(const std::vector<Unknown>& unknowns,
                             const std::function<double(const std::vector<double>&)>& loss,
                             int rounds) {
  constexpr double kFirstStep = 0.2, kGrow = 1.4, kShrink = 0.5, kLastStep = 5e-4;
  std::vector<double> x, steps(unknowns.size(), kFirstStep);
  for (const Unknown& u : unknowns) {
    REHEARSE_CHECK(u.least > 0 && u.least <= u.start && u.start <= u.most, "{} {} {}", u.least,
                   u.start, u.most);
    x.push_back(u.start);
  }
  double best = loss(x);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double was = x[i];
      bool better = false;
      for (const double way : {1.0, -1.0}) {
        x[i] = std::clamp(was * std::exp(way * steps[i]), unknowns[i].least, unknowns[i].most);
        if (x[i] == was) continue;
        if (const double found = loss(x); found < best) {
          best = found;
          better = true;
          break;
        }
      }
      if (!better) x[i] = was;
      steps[i] = better ? std::min(steps[i] * kGrow, 1.0) : steps[i] * kShrink;
    }
    if (steps.empty() || *std::max_element(steps.begin(), steps.end()) < kLastStep) break;
  }
  return x;
}

}  // namespace rehearse::compute
