// Arithmetic in study files: numbers and quantities with their unit, names, functions of names, + -
// * /, parentheses, and reductions of several terms.
//
//   step_time(parameter_server) / min(step_time(separated), 20 ms)
//   share_under(makespans(publish), 60 s)
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/estimate.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// A number with its interval and its unit; the unit is "" for a plain number. Or a list of numbers,
/// which only reductions take; its `estimate` then means nothing.
struct Term {
  Estimate<double> estimate;
  std::string unit = {};
  std::vector<Estimate<double>> list = {};
};

Term exact_term(double value);
/// A number, or a number with a unit such as "5 ms"; nothing if the text is neither.
std::optional<Term> quantity_term(std::string_view text);

/// The meaning of the names in an expression.
struct Vocabulary {
  std::function<Result<Term>(std::string_view name)> name;
  std::function<Result<Term>(std::string_view function, std::span<const std::string_view> of)>
      function;  ///< of one or several names
};

/// Evaluates an expression. Units must agree in sums and cancel in quotients. The interval is the
/// widest that the intervals of the terms allow, as if their errors were independent. Reductions
/// have numbers and lists as arguments: `sum`, `mean`, `min` and
/// `max` of all; `quantile`, with a share as its last argument, linear between values; and
/// `share_under`, the share of the values that are at most the last argument. Fails with one line if
/// the text is not an expression, units do not match, a divisor's interval contains 0, or the
/// vocabulary rejects a name.
Result<Term> evaluate(std::string_view expression, const Vocabulary& vocabulary);

}  // namespace rehearse::cli
