// Least squares with unknowns that must not be negative: latencies and times per byte.
#pragma once

#include <cstddef>
#include <vector>

namespace rehearse::comm {

/// A system of weighted equations, row by row: coefficients · x ≈ value.
class Equations {
 public:
  explicit Equations(std::size_t unknowns) : unknowns_(unknowns) {}

  /// REQUIRES: one coefficient per unknown; finite numbers.
  void add(const std::vector<double>& coefficients, double value);

  std::size_t size() const { return values_.size(); }
  std::size_t unknowns() const { return unknowns_; }
  const std::vector<double>& coefficients() const { return coefficients_; }  ///< row by row
  const std::vector<double>& values() const { return values_; }

 private:
  std::size_t unknowns_;
  std::vector<double> coefficients_;
  std::vector<double> values_;
};

/// The x >= 0 with the least sum of squares of weight · (coefficients · x − value), by the
/// active-set method of Lawson and Hanson (Solving Least Squares Problems, 1974, ch. 23). At the
/// answer the conditions of Karush, Kuhn and Tucker hold: the gradient is 0 where x > 0 and not
/// negative where x = 0. Columns may differ in scale by any factor. REQUIRES: one weight per
/// equation.
std::vector<double> nnls(const Equations& equations, const std::vector<double>& weights);

/// The x >= 0 with about the least sum of |coefficients · x − value|: weights 1 / |residual|, not
/// above 1 / floor, are set anew until they settle (iteratively re-weighted least squares), so that
/// a few outliers do not move the rest. With values 1 and coefficients divided by the measured
/// time, residuals are relative errors.
std::vector<double> robust_nnls(const Equations& equations, double floor);

}  // namespace rehearse::comm
