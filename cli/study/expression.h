// Arithmetic in study files: numbers, names, functions of names, + - * /, parentheses, and the
// least or the greatest of several terms.
//
//   step_time(parameter_server) / min(step_time(separated), step_time(whole))
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/estimate.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// A number with its interval and its unit; the unit is "" for a plain number.
struct Term {
  Estimate<double> estimate;
  std::string unit = {};
};

Term exact_term(double value);

/// The meaning of the names in an expression.
struct Vocabulary {
  std::function<Result<Term>(std::string_view name)> name;
  std::function<Result<Term>(std::string_view function, std::span<const std::string_view> of)>
      function;  ///< of one or several names
};

/// Evaluates an expression. Units must agree in sums and cancel in quotients. The interval is the
/// widest that the intervals of the terms allow, as if their errors were independent. Fails with
/// one line if the text is not an expression, units do not match, a divisor's interval contains 0,
/// or the vocabulary rejects a name.
Result<Term> evaluate(std::string_view expression, const Vocabulary& vocabulary);

}  // namespace rehearse::cli
