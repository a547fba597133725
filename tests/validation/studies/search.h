// The least of a function of positive unknowns, by pattern search: each unknown is multiplied and
// divided by a step that grows where it helps and shrinks where it does not. No derivatives, so
// that laws with a ceiling or a minimum in them can be fitted; no randomness.
#pragma once

#include <functional>
#include <vector>

namespace rehearse::compute {

/// An unknown and the bounds that physics sets it. REQUIRES: 0 < least <= start <= most.
struct Unknown {
  double start, least, most;
};

/// Where `loss` is least, as far as the search finds it: a local minimum. `rounds` bounds the work.
std::vector<double> minimize(const std::vector<Unknown>& unknowns,
                             const std::function<double(const std::vector<double>&)>& loss,
                             int rounds = 40);

}  // namespace rehearse::compute
