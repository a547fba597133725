#include "models/sharing/pair_choice.h"

#include <cmath>
#include <string>

#include <Eigen/Core>
#include <Eigen/LU>

#include "sim/base/check.h"

namespace rehearse::sharing {
namespace {

/// The variance of a measurement and of effects that no term describes, relative to that of a term
/// held with weight 1.
constexpr double kNoise = 0.1;

/// Covariances of the logarithms of the shares, two rows a pair.
Eigen::MatrixXd covariances(const std::vector<JobPair>& pairs) {
  std::vector<MeasuredPair> jobs;
  for (const auto& [a, b] : pairs) jobs.push_back({a, b, 1, 1});
  const std::map<std::string, FamilyBatches> families = families_of(jobs);
  // Rows by term: two rows are correlated by the terms that they have in common.
  std::map<std::string, std::vector<std::pair<Eigen::Index, double>>> rows_of;
  Eigen::Index row = 0;
  for (const auto& [a, b] : pairs)
    for (const auto& [job, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      for (const PairTerm& term : pair_terms(families, *job, *other))
        rows_of[term.name].emplace_back(row, term.value / std::sqrt(term.held));
      ++row;
    }
  Eigen::MatrixXd all = Eigen::MatrixXd::Zero(row, row);
  for (const auto& [name, rows] : rows_of)
    for (const auto& [i, x] : rows)
      for (const auto& [j, y] : rows) all(i, j) += x * y;
  return all;
}

}  // namespace

std::vector<std::size_t> pairs_to_measure(std::span<const JobPair> pairs, std::size_t count,
                                          std::span<const JobPair> known) {
  std::vector<JobPair> all(pairs.begin(), pairs.end());
  all.insert(all.end(), known.begin(), known.end());
  REHEARSE_CHECK(all.size() <= kMostToChooseFrom, "{} pairs to choose from", all.size());
  Eigen::MatrixXd doubt = covariances(all);
  const auto columns = [&](std::size_t pair) {
    return doubt.middleCols(2 * static_cast<Eigen::Index>(pair), 2);
  };
  // The information of both rows of a pair about all others, by how certain they are.
  const auto worth = [&](std::size_t pair) -> Eigen::Matrix2d {
    const auto at = 2 * static_cast<Eigen::Index>(pair);
    return (doubt.block<2, 2>(at, at) + kNoise * Eigen::Matrix2d::Identity()).inverse();
  };
  const auto measure = [&](std::size_t pair) {
    const Eigen::MatrixXd said = columns(pair);
    doubt -= said * worth(pair) * said.transpose();
  };
  for (std::size_t k = 0; k < known.size(); ++k) measure(pairs.size() + k);
  std::vector<std::size_t> chosen;
  std::vector<char> taken(pairs.size(), 0);
  while (chosen.size() < std::min(count, pairs.size())) {
    double most = -1;
    std::size_t best = 0;
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      if (taken[p]) continue;
      const double gain = (columns(p) * worth(p)).cwiseProduct(columns(p)).sum();
      if (gain <= most * (1 + 1e-9)) continue;
      most = gain;
      best = p;
    }
    measure(best);
    taken[best] = 1;
    chosen.push_back(best);
  }
  return chosen;
}

}  // namespace rehearse::sharing
