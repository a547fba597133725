#include "tests/validation/studies/throughput_scaling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>

#include <fmt/core.h>

#include "models/compute/device_facts.h"
#include "sim/base/check.h"

namespace rehearse::compute {
namespace {

using Triple = std::array<double, 3>;  // arithmetic, memory, issue

// A100 SXM 80 GB, as in the catalog.
constexpr double kHalf = 312e12, kTf32 = 156e12, kMemory = 2039e9, kIssue = 108 * 1.41e9;

constexpr std::string_view kFitted[] = {"turing", "ampere", "ada", "hopper", "blackwell"};

/// How far a job's shares are drawn to the typical ones: a departure of 1 counts as an error of
/// this much of one known throughput. Errors of about 12 % over departures of about 25 %.
constexpr double kDraw = 0.5;

Triple triple(const Pace& p) { return {p.arithmetic, p.memory, p.issue}; }
Triple triple(const TimeShares& s) { return {s.arithmetic, s.memory, s.issue}; }

double dot(const Triple& a, const Triple& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/// The least squares of rows · w = 1 (what is known) and rows · w = 0 (the draw), w not negative:
/// coordinate by coordinate.
Triple least_squares(const std::vector<Triple>& ones, const std::vector<Triple>& zeros) {
  std::array<Triple, 3> normal = {};
  Triple right = {};
  for (const auto* rows : {&ones, &zeros})
    for (const Triple& row : *rows)
      for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 3; ++j) normal[i][j] += row[i] * row[j];
        if (rows == &ones) right[i] += row[i];
      }
  Triple w = {};
  constexpr int kSweeps = 2000;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double moved = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const double rest = right[i] - (dot(normal[i], w) - normal[i][i] * w[i]);
      const double next = std::max(0.0, rest / normal[i][i]);
      moved = std::max(moved, std::abs(next - w[i]));
      w[i] = next;
    }
    if (moved <= 1e-12 * (w[0] + w[1] + w[2])) break;
  }
  return w;
}

}  // namespace

Result<Pace> pace_of(const cluster::Gpu& gpu, workload::Dtype dtype) {
  if (!gpu.boost_hz)
    return fail(fmt::format("the catalog has no clock of '{}'", gpu.name),
                "a device whose clock is known");
  const DeviceFacts facts = facts_of(gpu);
  const bool full = dtype == workload::Dtype::kFp32 || dtype == workload::Dtype::kTf32;
  const double peak =
      facts.peak(arithmetic_of(facts, full ? workload::Dtype::kTf32 : dtype)).flop_per_s();
  return Pace{
      .arithmetic = (full ? kTf32 : kHalf) / peak,
      .memory = kMemory / facts.memory_rate.bytes_per_s(),
      .issue = kIssue / (facts.multiprocessors * *gpu.boost_hz),
      .vendor = gpu.vendor,
      .fitted = std::any_of(std::begin(kFitted), std::end(kFitted), [&](std::string_view name) {
        return gpu.architecture.starts_with(name);
      })};
}

Estimate<double> throughput_on(const Pace& to, std::span<const KnownThroughput> known,
                               const TimeShares& typical) {
  REHEARSE_CHECK(!known.empty());
  const Triple shares = triple(typical);
  // Times in units of the mean known one, so that the draw does not depend on the unit.
  double log_mean = 0;
  for (const KnownThroughput& k : known)
    log_mean += std::log(k.throughput) / static_cast<double>(known.size());
  const double unit = std::exp(log_mean);
  std::vector<Triple> ones, zeros;
  bool same_vendor = false, fitted = to.fitted;
  for (const KnownThroughput& k : known) {
    Triple row = triple(k.on);
    for (double& x : row) x *= k.throughput / unit;
    ones.push_back(row);
    same_vendor = same_vendor || k.on.vendor == to.vendor;
    fitted = fitted && k.on.fitted;
  }
  // w_i less its typical share of all of w.
  for (std::size_t i = 0; i < 3; ++i) {
    Triple row;
    for (std::size_t j = 0; j < 3; ++j) row[j] = kDraw * ((i == j ? 1 : 0) - shares[i]);
    zeros.push_back(row);
  }
  const double value = unit / dot(least_squares(ones, zeros), triple(to));
  const double width = !same_vendor || !fitted ? 2 : known.size() == 1 ? 1.4 : 1.3;
  return {value, value / width, value * width, Provenance::kExtrapolated};
}

TimeShares fit_shares(std::span<const std::vector<KnownThroughput>> jobs) {
  constexpr int kSteps = 100;
  TimeShares best;
  double least = std::numeric_limits<double>::infinity();
  for (int a = 0; a <= kSteps; ++a)
    for (int m = 0; m <= kSteps - a; ++m) {
      const Triple shares = {a * 0.01, m * 0.01, (kSteps - a - m) * 0.01};
      double squares = 0;
      for (const std::vector<KnownThroughput>& job : jobs) {
        double sum = 0, sum_of_squares = 0;
        for (const KnownThroughput& k : job) {
          const double constant = std::log(k.throughput * dot(shares, triple(k.on)));
          sum += constant;
          sum_of_squares += constant * constant;
        }
        if (!job.empty()) squares += sum_of_squares - sum * sum / static_cast<double>(job.size());
      }
      if (squares < least) {
        least = squares;
        best = {.arithmetic = shares[0], .memory = shares[1], .issue = shares[2]};
      }
    }
  return best;
}

}  // namespace rehearse::compute
