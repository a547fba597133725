// The document of `rehearse recommend`.
#pragma once

#include <string>
#include <vector>

#include "cli/output/document.h"
#include "cli/recommending/evaluate.h"
#include "cost/recommend.h"
#include "sim/base/warning.h"

namespace rehearse::cli {

/// A search that found something.
struct Recommended {
  const JobOnOffers& job;
  const cost::Wish& wish;
  cost::Recommendation found;
};

/// Why the first option, against the others; one line each.
std::vector<std::string> why_of(const Recommended& r);
/// What of the first option limits it: the ends of its intervals, a stale price, what is not known.
std::vector<Warning> warnings_of(const Recommended& r);

Document recommend_document(const Recommended& r);

}  // namespace rehearse::cli
