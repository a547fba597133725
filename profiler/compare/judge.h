// Verdicts: whether a measured change with its error exceeds the limit.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "profiler/compare/effect.h"

namespace rehearse::compare {

enum class Verdict { kPass, kFail, kInconclusive };
std::string_view to_string(Verdict verdict);

/// The worse of two verdicts: fail before inconclusive before pass.
Verdict worse(Verdict a, Verdict b);

/// The probability of a wrong verdict on either side: failing a job that did not change, or passing
/// one that rose by one and a half times the limit.
inline constexpr double kWrong = 0.005;

/// Whether the quantity rose, and not by chance.
bool is_rise(const Effect& effect, double wrong = kWrong);

/// Whether every step of one run differs from every step of the other by more than `least`, and not by
/// chance: evidence that does not need many steps.
bool in_each_step(const Effect& effect, double least, double wrong = kWrong);

/// `limit`: the largest rise that is allowed, relative (0.03).
///   pass          a rise by the limit is excluded; or the rise is at most the limit, and its
///                 interval is no wider than the limit
///   fail          the rise is above the limit, and it is no chance; or it is so in each step
///   inconclusive  neither
/// Once the interval is no wider than the limit, one of the first two is the case. Several limits
/// of one run share `wrong`.
Verdict judge(const Effect& effect, double limit, double wrong = kWrong);

/// The number of steps of either run that would have led to a verdict, at the observed noise and
/// with the same options. Nothing if no number of steps would, because the noise between runs is
/// too large.
std::optional<std::size_t> steps_needed(const Effect& effect, double limit,
                                        const EffectOptions& options, double wrong = kWrong);

/// For each of several changes, whether it is more than chance. The probability that any of them is
/// flagged by mistake is at most `wrong` (Holm 1979).
std::vector<bool> significant(const std::vector<double>& p_values, double wrong);

}  // namespace rehearse::compare
