#include "models/comm/nnls.h"

#include <cmath>

#include <Eigen/Dense>

#include "sim/base/check.h"

namespace rehearse::comm {

void Equations::add(const std::vector<double>& coefficients, double value) {
  REHEARSE_CHECK(coefficients.size() == unknowns_, "{} coefficients for {} unknowns",
                 coefficients.size(), unknowns_);
  coefficients_.insert(coefficients_.end(), coefficients.begin(), coefficients.end());
  values_.push_back(value);
}

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The unconstrained answer in the passive columns; zero elsewhere.
Eigen::VectorXd solve_passive(const Eigen::MatrixXd& a, const Eigen::VectorXd& b,
                              const std::vector<bool>& passive) {
  std::vector<Eigen::Index> columns;
  for (Eigen::Index c = 0; c < a.cols(); ++c)
    if (passive[static_cast<std::size_t>(c)]) columns.push_back(c);
  Eigen::MatrixXd part(a.rows(), static_cast<Eigen::Index>(columns.size()));
  for (std::size_t k = 0; k < columns.size(); ++k)
    part.col(static_cast<Eigen::Index>(k)) = a.col(columns[k]);
  // Rank-revealing: equations of one size and one rank count do not tell latency from rate.
  const Eigen::VectorXd solved = part.colPivHouseholderQr().solve(b);
  Eigen::VectorXd full = Eigen::VectorXd::Zero(a.cols());
  for (std::size_t k = 0; k < columns.size(); ++k)
    full[columns[k]] = solved[static_cast<Eigen::Index>(k)];
  return full;
}

Eigen::VectorXd lawson_hanson(const Eigen::MatrixXd& a, const Eigen::VectorXd& b) {
  const auto n = static_cast<std::size_t>(a.cols());
  std::vector<bool> passive(n, false);
  Eigen::VectorXd x = Eigen::VectorXd::Zero(a.cols());
  const double tolerance = 1e-12 * (a.transpose() * b).cwiseAbs().maxCoeff();
  // Each round adds a column; a bound far above what any system needs keeps rounding from cycling.
  for (std::size_t round = 0; round < 30 * n; ++round) {
    const Eigen::VectorXd gradient = a.transpose() * (b - a * x);
    Eigen::Index enter = -1;
    double steepest = tolerance;
    for (Eigen::Index c = 0; c < a.cols(); ++c)
      if (!passive[static_cast<std::size_t>(c)] && gradient[c] > steepest) {
        steepest = gradient[c];
        enter = c;
      }
    if (enter < 0) break;
    passive[static_cast<std::size_t>(enter)] = true;
    while (true) {
      const Eigen::VectorXd target = solve_passive(a, b, passive);
      double step = 1;
      for (Eigen::Index c = 0; c < a.cols(); ++c)
        if (passive[static_cast<std::size_t>(c)] && target[c] <= 0)
          step = std::min(step, x[c] > 0 ? x[c] / (x[c] - target[c]) : 0);
      x += step * (target - x);
      if (step >= 1) break;
      for (Eigen::Index c = 0; c < a.cols(); ++c)
        if (passive[static_cast<std::size_t>(c)] && target[c] <= 0 &&
            x[c] <= 1e-14 * x.maxCoeff()) {
          passive[static_cast<std::size_t>(c)] = false;
          x[c] = 0;
        }
    }
  }
  return x;
}

}  // namespace

std::vector<double> nnls(const Equations& equations, const std::vector<double>& weights) {
  REHEARSE_CHECK(weights.size() == equations.size(), "{} weights for {} equations", weights.size(),
                 equations.size());
  const auto rows = static_cast<Eigen::Index>(equations.size());
  const auto columns = static_cast<Eigen::Index>(equations.unknowns());
  std::vector<double> answer(equations.unknowns(), 0.0);
  if (rows == 0) return answer;
  const Eigen::Map<const Eigen::VectorXd> w(weights.data(), rows);
  Eigen::MatrixXd a =
      w.asDiagonal() * Eigen::Map<const RowMajor>(equations.coefficients().data(), rows, columns);
  const Eigen::VectorXd b =
      w.cwiseProduct(Eigen::Map<const Eigen::VectorXd>(equations.values().data(), rows));
  Eigen::VectorXd scale(columns);
  for (Eigen::Index c = 0; c < columns; ++c) {
    const double norm = a.col(c).norm();
    scale[c] = norm > 0 ? norm : 1;
    a.col(c) /= scale[c];
  }
  const Eigen::VectorXd x = lawson_hanson(a, b).cwiseQuotient(scale);
  for (Eigen::Index c = 0; c < columns; ++c) answer[static_cast<std::size_t>(c)] = x[c];
  return answer;
}

std::vector<double> robust_nnls(const Equations& equations, double floor) {
  constexpr int kRounds = 15;
  std::vector<double> weights(equations.size(), 1.0), x;
  for (int round = 0; round < kRounds; ++round) {
    x = nnls(equations, weights);
    for (std::size_t r = 0; r < equations.size(); ++r) {
      double residual = -equations.values()[r];
      for (std::size_t c = 0; c < x.size(); ++c)
        residual += equations.coefficients()[r * x.size() + c] * x[c];
      // nnls squares the weight.
      weights[r] = 1 / std::sqrt(std::max(std::abs(residual), floor));
    }
  }
  return x;
}

}  // namespace rehearse::comm
