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

/// The worst of two: fail, then inconclusive.
Verdict worse(Verdict a, Verdict b);

/// The probability with which a verdict is wrong on either side: to fail a job that did not
/// change, to pass one that rose by one and a half times the limit.
inline constexpr double kWrong = 0.005;

/// Whether it rose, and not by chance.
bool is_rise(const Effect& effect, double wrong = kWrong);

/// `limit`: the largest rise that is allowed, relative (0.03).
///   pass          a rise by the limit is excluded; or the rise is at most the limit, and its
///                 interval is no wider than the limit
///   fail          the rise is above the limit, and it is no chance
///   inconclusive  neither
/// Once the interval is no wider than the limit, one of the first two is the case. Several limits
/// of one run share `wrong`.
Verdict judge(const Effect& effect, double limit, double wrong = kWrong);

/// How many steps of either run would have led to a verdict, at the noise that was observed and
/// the options it was measured with;
/// nothing where no number of steps would, since the noise between runs is too large.
std::optional<std::size_t> steps_needed(const Effect& effect, double limit,
                                        const EffectOptions& options, double wrong = kWrong);

/// Whether each of several changes is more than chance, such that one false among all of them is
/// as improbable as `wrong` (Holm 1979).
std::vector<bool> significant(const std::vector<double>& p_values, double wrong);

}  // namespace rehearse::compare
