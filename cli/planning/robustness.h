// Robustness: the probability that each of several plans is the best, given the errors of
// predictions.
//
// The interval of a step is made of two errors: of computing, and of the communication that nothing
// hides. Both are drawn as factors (normal, the 90 % interval as given on either side). A share of
// each error's variance is common to all plans: the model is off by the same on the same machine,
// which changes the order of plans only as far as they compute and communicate in other shares. The
// rest is drawn anew for plans that run other kernels (another tensor, context or expert degree,
// microbatch or recomputation) or have other groups (another degree, or placement). Draws are
// seeded.
//
// How large the common share is, nobody measured: four fifths are a judgement, and what none and
// all of it would give is also reported.
#pragma once

#include <vector>

#include "cli/planning/find_plans.h"

namespace rehearse::cli {

/// The share of an error's variance that all plans of a search have in common: a judgement.
inline constexpr double kCommonError = 0.8;
inline constexpr int kDraws = 4000;

/// The plans that are worth measuring before one is chosen: by their chance of being the best, at
/// most three, none below 5 %. Of plans whose errors are the same, one. Empty if fewer than two are
/// left, since a measurement would decide nothing. REQUIRES: as many chances as plans.
std::vector<std::size_t> worth_measuring(const std::vector<FoundPlan>& plans,
                                         const std::vector<double>& chance);

/// Returns for each plan the share of draws in which it is the best by the objective.
/// Figure::kMemory uses the error of memory, which is drawn likewise. All other figures are taken
/// to have the relative error of the step time, though energy and carbon have a part that depends
/// only on computing. REQUIRES: every plan has its step; `common_share` is from 0 to 1.
std::vector<double> chances(const std::vector<FoundPlan>& plans, strategies::Figure objective,
                            std::uint64_t seed, double common_share = kCommonError);

}  // namespace rehearse::cli
