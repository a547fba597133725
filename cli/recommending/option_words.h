// What the options of `recommend` have in common, whatever runs on them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/config/job_costs.h"
#include "cli/output/document.h"
#include "cost/recommend.h"
#include "sim/base/warning.h"

namespace rehearse::cli {

/// "2 × p5.48xlarge"
std::string name_of(const cost::Option& option);
/// "aws us-east-1 spot"
std::string place_of(const cost::Option& option);

/// Provider, region, market, instance, count and plan in words.
Value offer_fields(const cost::Option& option, const cost::Wish& wish, Look place);
/// Time, cost, energy and carbon to the target.
Value account_fields(const cost::JobAccount& account);
/// Adds the options, as the fields of each, and the indices of those on the front. `place`: how a
/// table shows the place of an option.
void show_options(Document& document, const cost::Recommendation& found,
                  const std::function<Value(std::size_t, Look place)>& fields);
/// The numbers of offers, and why some are no options.
Value offers_fields(const cost::Recommendation& found);
/// "yes" on the front, or "misses a limit".
std::string front_words(const cost::Option& option, bool front);

/// The reasons why the first option ranks above the others; one line each.
std::vector<std::string> ranking_lines(const cost::Recommendation& found, const cost::Wish& wish);
/// "12 options of 40 offers evaluated; bounds rule out 20, 8 cannot run the job"
std::string counts_line(const cost::Recommendation& found);
/// Limits that the ends of its intervals exceed, and a stale price of the first option.
std::vector<Warning> limit_warnings(const cost::Option& best, const cost::Wish& wish);

/// Takes providers, regions and markets from the file where the options give none, and finds the
/// offers. A wrong name is an error of the option that gives it, or of its line in `file`.
Result<std::vector<cost::Offer>> offers_of(cost::Wish& wish, const Rent& rent,
                                           const std::filesystem::path& file);

}  // namespace rehearse::cli
