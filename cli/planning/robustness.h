// Robustness: the probability that each of several plans is the best, given the errors of
// predictions.
//
// The interval of a step has two errors: of computing, and of exposed communication. Both are drawn
// as factors (normal, with the given 90 % interval on either side). A share of each error's
// variance is common to all plans, because one model errs alike on one machine. It changes the
// order only of plans with different shares of computing and communication. The rest is drawn
// separately for plans with different kernels (tensor, context or expert degree, microbatch or
// recomputation) or different groups (degrees, or placement). Draws are seeded.
//
// The common share was not measured. Four fifths are a judgement, and the results with none and all
// of it are also reported.
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

/// Returns for each plan the share of draws in which it is the best by the objective. Of plans with
/// the same errors whose values differ by less than kNoise, the first has the share of all.
/// Figure::kMemory uses the error of memory, which is drawn likewise. All other figures are taken
/// to have the relative error of the step time, though energy and carbon have a part that depends
/// only on computing. REQUIRES: every plan has its step; `common_share` is from 0 to 1.
std::vector<double> chances(const std::vector<FoundPlan>& plans, strategies::Figure objective,
                            std::uint64_t seed, double common_share = kCommonError);

}  // namespace rehearse::cli
