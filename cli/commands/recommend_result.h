// The document of `rehearse recommend`.
#pragma once

#include <string>
#include <vector>

#include "cli/output/document.h"
#include "cli/recommending/evaluate.h"
#include "cost/recommend.h"
#include "sim/base/warning.h"

namespace rehearse::cli {

/// A search that found at least one option.
struct Recommended {
  const JobOnOffers& job;
  const cost::Wish& wish;
  cost::Recommendation found;
};

/// The reasons why the first option ranks above the others; one line each.
std::vector<std::string> why_of(const Recommended& r);
/// The caveats of the first option: the ends of its intervals, a stale price, unknown quantities.
std::vector<Warning> warnings_of(const Recommended& r);

Document recommend_document(const Recommended& r);

}  // namespace rehearse::cli
