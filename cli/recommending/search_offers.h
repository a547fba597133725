// The search over offers, with a journal of the searches on each of them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/commands/shared_work.h"
#include "cli/globals.h"
#include "cost/recommend.h"
#include "strategies/search/search.h"

namespace rehearse::cli {

/// How the search on an offer has its candidates evaluated; `name` tells it from those on others.
using SpreadOf = std::function<strategies::Spread(const std::string& name)>;

/// Recommends one of the offers for the job of a file. `evaluator` makes one that evaluates as it is
/// told to. The journal belongs to the file alone: with other wishes, its results are used as well.
/// Fails as cost::recommend does, and with what is kept if it is asked to stop.
Result<cost::Recommendation> search_offers(
    const std::filesystem::path& file, const cost::Wish& wish,
    const std::vector<cost::Offer>& offers,
    const std::function<cost::Evaluator(SpreadOf)>& evaluator, const Globals& globals,
    SharedWork& shared);

}  // namespace rehearse::cli
