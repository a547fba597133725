#include "models/sharing/pairs.h"

#include <algorithm>
#include <cmath>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <fmt/core.h>

namespace rehearse::sharing {
namespace {

/// Fitted to K80's pairs: docs/accuracy.md.
constexpr double kTurns = 1.05;
constexpr double kLongerWins = 0.15;

/// How hard terms are held to 0, in rows of an error of 10 %.
constexpr double kFamilyPair = 0.3, kSlope = 1.0, kTenant = 1.0, kOverall = 0.01;

double weight_of(std::string_view term) {
  switch (term.front()) {
    case 'f':
      return kFamilyPair;
    case 's':
      return kSlope;
    case 't':
      return kTenant;
    default:
      return kOverall;
  }
}

}  // namespace

double time_slice_share(const Resident& job, const Resident& other) {
  const double q = std::pow(job.step.s(), kLongerWins), r = std::pow(other.step.s(), kLongerWins);
  return std::min(1.0, kTurns * q / (q + r));
}

PairLaw::Terms PairLaw::terms_of(const Resident& job, const Resident& other) const {
  const auto batch = [&](const Resident& r) {
    const auto mean = mean_batch_.find(r.family);
    return mean == mean_batch_.end() ? 0.0 : std::log2(r.batch) - mean->second;
  };
  const std::string pair = job.family + "|" + other.family;
  return {{"overall", 1},
          {"f " + pair, 1},
          {"f job " + job.family, 1},
          {"f other " + other.family, 1},
          {"s own " + pair, batch(job)},
          {"s its " + pair, batch(other)},
          {"s own " + job.family, batch(job)},
          {"s its " + other.family, batch(other)},
          {fmt::format("t job {} {:g}", job.family, job.batch), 1},
          {fmt::format("t other {} {:g}", other.family, other.batch), 1}};
}

PairLaw::PairLaw(std::span<const MeasuredPair> pairs) {
  if (pairs.empty()) return;
  std::map<std::string, std::pair<double, double>> batches;  // sum, count
  for (const MeasuredPair& p : pairs)
    for (const Resident* r : {&p.a, &p.b}) {
      auto& [sum, count] = batches[r->family];
      sum += std::log2(r->batch);
      ++count;
    }
  for (const auto& [family, sum] : batches) mean_batch_[family] = sum.first / sum.second;

  std::map<std::string, int> columns;
  std::vector<std::vector<std::pair<int, double>>> rows;
  std::vector<double> target, share, sliced;
  const auto add = [&](const Resident& job, const Resident& other, double measured) {
    std::vector<std::pair<int, double>>& row = rows.emplace_back();
    for (const auto& [name, value] : terms_of(job, other))
      row.emplace_back(columns.emplace(name, static_cast<int>(columns.size())).first->second,
                       value);
    sliced.push_back(time_slice_share(job, other));
    share.push_back(measured);
    target.push_back(std::log(measured / sliced.back()));
  };
  for (const MeasuredPair& p : pairs) {
    add(p.a, p.b, p.share_a);
    add(p.b, p.a, p.share_b);
  }

  const auto n = static_cast<Eigen::Index>(columns.size());
  Eigen::VectorXd held(n), solution = Eigen::VectorXd::Zero(n);
  for (const auto& [name, column] : columns) held[column] = weight_of(name);
  const auto predicted = [&](std::size_t r) {
    double sum = 0;
    for (const auto& [column, value] : rows[r]) sum += solution[column] * value;
    return sum;
  };
  // Least absolute errors by weighted least squares; errors below 2 % count as squares.
  constexpr int kRounds = 30;
  constexpr double kSmall = 0.02, kUnit = 0.1;
  for (int round = 0; round < kRounds; ++round) {
    Eigen::MatrixXd normal = held.asDiagonal();
    Eigen::VectorXd right = Eigen::VectorXd::Zero(n);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const double error = std::abs(std::expm1(predicted(r) - target[r]));
      const double w = round == 0 ? 1 : kUnit / std::max(error, kSmall);
      for (const auto& [i, x] : rows[r]) {
        right[i] += w * x * target[r];
        for (const auto& [j, y] : rows[r]) normal(i, j) += w * x * y;
      }
    }
    solution = normal.ldlt().solve(right);
  }
  for (const auto& [name, column] : columns) coefficients_[name] = solution[column];
  for (std::size_t r = 0; r < rows.size(); ++r)
    residual_ += std::abs(std::min(1.0, sliced[r] * std::exp(predicted(r))) / share[r] - 1);
  residual_ /= static_cast<double>(rows.size());
}

double PairLaw::share(const Resident& job, const Resident& other) const {
  double sum = 0;
  for (const auto& [name, value] : terms_of(job, other)) {
    const auto found = coefficients_.find(name);
    if (found != coefficients_.end()) sum += found->second * value;
  }
  return std::min(1.0, time_slice_share(job, other) * std::exp(sum));
}

}  // namespace rehearse::sharing
