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

/// The strength of the regularization of terms to 0, in rows of an error of 10 %.
constexpr double kFamilyPair = 0.3, kSlope = 1.0, kTenant = 1.0, kOverall = 0.01;
/// The same for terms with measured pairs in an earlier law.
constexpr double kKnown = 3;
constexpr const char* kOverallName = "*";
constexpr double kWhole = 0.999;

}  // namespace

double time_slice_share(const Resident& job, const Resident& other) {
  const double q = std::pow(job.step.s(), kLongerWins), r = std::pow(other.step.s(), kLongerWins);
  return std::min(1.0, kTurns * q / (q + r));
}

std::map<std::string, FamilyBatches> families_of(std::span<const MeasuredPair> pairs) {
  std::map<std::string, FamilyBatches> families;
  std::map<std::string, double> counts;
  for (const MeasuredPair& p : pairs)
    for (const Resident* r : {&p.a, &p.b}) {
      const auto [at, fresh] =
          families.try_emplace(r->family, FamilyBatches{0, r->batch, r->batch});
      at->second.mean_log2 += std::log2(r->batch);
      at->second.from = std::min(at->second.from, r->batch);
      at->second.to = std::max(at->second.to, r->batch);
      ++counts[r->family];
    }
  for (auto& [family, batches] : families) batches.mean_log2 /= counts[family];
  return families;
}

std::vector<PairTerm> pair_terms(const std::map<std::string, FamilyBatches>& families,
                                 const Resident& job, const Resident& other) {
  // Outside the known range, a batch counts as the nearest known one.
  const auto batch = [&](const Resident& r) {
    const auto found = families.find(r.family);
    return found == families.end() ? r.batch
                                   : std::clamp(r.batch, found->second.from, found->second.to);
  };
  const auto slope = [&](const Resident& r) {
    const auto found = families.find(r.family);
    return found == families.end() ? 0.0 : std::log2(batch(r)) - found->second.mean_log2;
  };
  const std::string &j = job.family, &o = other.family;
  const double own = slope(job), its = slope(other);
  return {{kOverallName, 1, kOverall, false, false},
          {fmt::format("{} with {}", j, o), 1, kFamilyPair, true, true},
          {fmt::format("{} and {}", std::min(j, o), std::max(j, o)), 1, kFamilyPair, true, true},
          {fmt::format("{} with *", j), 1, kFamilyPair, true, false},
          {fmt::format("* with {}", o), 1, kFamilyPair, false, true},
          {fmt::format("own batch: {} with {}", j, o), own, kSlope, true, true},
          {fmt::format("its batch: {} with {}", j, o), its, kSlope, true, true},
          {fmt::format("own batch: {} with *", j), own, kSlope, true, false},
          {fmt::format("its batch: * with {}", o), its, kSlope, false, true},
          {fmt::format("at {:g}: {} with *", batch(job), j), 1, kTenant, true, false},
          {fmt::format("at {:g}: * with {}", batch(other), o), 1, kTenant, false, true}};
}

PairLaw::PairLaw(std::span<const MeasuredPair> pairs, std::shared_ptr<const PairLaw> from)
    : from_(std::move(from)), families_(families_of(pairs)) {
  if (pairs.empty()) return;
  std::map<std::string, int> columns;
  std::vector<double> held_by_column;
  std::vector<std::vector<std::pair<int, double>>> rows;
  std::vector<double> target, share, sliced;
  const auto add = [&](const Resident& job, const Resident& other, double measured) {
    std::vector<std::pair<int, double>>& row = rows.emplace_back();
    for (const PairTerm& term : pair_terms(families_, job, other)) {
      const auto [at, fresh] = columns.emplace(term.name, static_cast<int>(columns.size()));
      const bool is_known = from_ && (!term.of_job || from_->knows(job.family)) &&
                            (!term.of_other || from_->knows(other.family));
      if (fresh) held_by_column.push_back(is_known ? std::max(term.held, kKnown) : term.held);
      row.emplace_back(at->second, term.value);
    }
    sliced.push_back(before(job, other));
    share.push_back(measured);
    target.push_back(std::log(measured / sliced.back()));
  };
  for (const MeasuredPair& p : pairs) {
    add(p.a, p.b, p.share_a);
    add(p.b, p.a, p.share_b);
  }

  const auto n = static_cast<Eigen::Index>(columns.size());
  const Eigen::VectorXd held = Eigen::Map<const Eigen::VectorXd>(held_by_column.data(), n);
  Eigen::VectorXd solution = Eigen::VectorXd::Zero(n);
  const auto predicted = [&](std::size_t r) {
    double sum = 0;
    for (const auto& [column, value] : rows[r]) sum += solution[column] * value;
    return sum;
  };
  // Least absolute errors by weighted least squares; errors below 2 % count as squares. Tables stop
  // at the speed alone: for a job that keeps all of it, a share above 1 is no error.
  const auto wanted = [&](std::size_t r) {
    return share[r] >= kWhole ? std::max(target[r], predicted(r)) : target[r];
  };
  constexpr int kRounds = 30;
  constexpr double kSmall = 0.02, kUnit = 0.1;
  for (int round = 0; round < kRounds; ++round) {
    Eigen::MatrixXd normal = held.asDiagonal();
    Eigen::VectorXd right = Eigen::VectorXd::Zero(n);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const double aim = round == 0 ? target[r] : wanted(r);
      const double error = std::abs(std::expm1(predicted(r) - aim));
      const double w = round == 0 ? 1 : kUnit / std::max(error, kSmall);
      for (const auto& [i, x] : rows[r]) {
        right[i] += w * x * aim;
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

double PairLaw::before(const Resident& job, const Resident& other) const {
  return from_ ? from_->share(job, other) : time_slice_share(job, other);
}

double PairLaw::share(const Resident& job, const Resident& other) const {
  double sum = 0;
  for (const PairTerm& term : pair_terms(families_, job, other)) {
    const auto found = coefficients_.find(term.name);
    if (found != coefficients_.end()) sum += found->second * term.value;
  }
  return std::min(1.0, before(job, other) * std::exp(sum));
}

}  // namespace rehearse::sharing
