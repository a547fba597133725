// What recommend shows, in each format.
#pragma once

#include <string>
#include <vector>

#include "cli/output/json.h"
#include "cli/output/table.h"
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

std::string recommend_text(const Recommended& r);
Json recommend_json(const Recommended& r);
/// A row per option.
Table recommend_table(const Recommended& r);

}  // namespace rehearse::cli
