// Plans and their quantities in words.
#pragma once

#include <string>

#include "strategies/plan.h"
#include "strategies/search/search.h"

namespace rehearse::cli {

/// "data 16 × tensor 8 × pipeline 12, microbatch 1, full recomputation": leaves out degrees of 1
/// and default settings.
std::string plan_words(const strategies::Training& training, const strategies::Plan& plan);

/// "1.7 s", "75.2 GiB", "0.31 USD".
std::string figure_words(strategies::Figure figure, double value);

}  // namespace rehearse::cli
