// Plans and their quantities in words, and plans in JSON.
#pragma once

#include <string>

#include "cli/output/value.h"
#include "strategies/plan.h"
#include "strategies/search/search.h"
#include "strategies/step/step.h"

namespace rehearse::cli {

/// "data 16 × tensor 8 × pipeline 12, microbatch 1, full recomputation": leaves out degrees of 1
/// and default settings.
std::string plan_words(const strategies::Training& training, const strategies::Plan& plan);

/// The number of settings that plan_words() names: how much a plan asks of those who run it.
std::size_t named_settings(const strategies::Training& training, const strategies::Plan& plan);

/// "1.7 s", "75.2 GiB", "0.31 USD".
std::string figure_words(strategies::Figure figure, double value);

/// Returns every field of the training and of its plan, by the tables of strategies/plan_fields.h;
/// fields that were left open have the value that was used.
Json plan_json(const step::Spec& spec);

}  // namespace rehearse::cli
