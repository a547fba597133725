// What `recommend` wishes for by its options and by its file together.
#pragma once

#include <filesystem>
#include <vector>

#include "cli/config/job_costs.h"
#include "cost/recommend.h"

namespace rehearse::cli {

/// Takes providers, regions and markets from the file where the options give none, and finds the
/// offers. A wrong name is an error of the option that gives it, or of its line in `file`.
Result<std::vector<cost::Offer>> offers_of(cost::Wish& wish, const Rent& rent,
                                           const std::filesystem::path& file);

}  // namespace rehearse::cli
