#include "models/comm/framework_timing.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "models/comm/timing_files.h"
#include "sim/base/check.h"

namespace rehearse::comm {
namespace {

/// Chosen with the halves in sight that the calls do not come from: with the interval of the price,
/// 95 % of Vidur's and 91 % of Galvatron's then lie inside, but 4 of 5 of AICB's
/// (docs/accuracy.md).
constexpr double kHigh = 0.9;

/// The least value that has `share` of the weight at or below it. REQUIRES: sorted, not empty.
double quantile(const std::vector<std::pair<double, double>>& values, double share) {
  double all = 0, sum = 0;
  for (const auto& [value, weight] : values) all += weight;
  for (const auto& [value, weight] : values) {
    sum += weight;
    if (sum >= share * all) return value;
  }
  return values.back().first;
}

}  // namespace

Result<FrameworkTiming> fit_framework_timing(Fitted about, std::span<const TimedCall> calls) {
  std::vector<std::pair<double, double>> overheads;
  std::set<std::uint32_t> ranks;
  std::set<CollectiveKind> kinds;
  for (const TimedCall& c : calls) {
    if (band_of(c.row.size.b()) + 1 < kBands)
      overheads.emplace_back(c.row.time.s() - c.price.s(), c.weight);
    ranks.insert(c.row.ranks);
    kinds.insert(c.row.kind);
  }
  if (overheads.size() < 3) return fail("fewer than three calls are below 32 MiB");
  std::sort(overheads.begin(), overheads.end());
  const auto at = [&](double share) {
    return Seconds::s(std::max(quantile(overheads, share), 0.0));
  };
  FrameworkTiming timing{.call = at(0.5), .high = at(kHigh)};
  about.rows = calls.size();
  about.envelope.from = about.envelope.to = calls.front().row.size;
  for (const TimedCall& c : calls) {
    about.residual += std::abs((c.price + timing.call) / c.row.time - 1);
    about.envelope.from = std::min(about.envelope.from, c.row.size);
    about.envelope.to = std::max(about.envelope.to, c.row.size);
  }
  about.residual /= static_cast<double>(calls.size());
  about.envelope.ranks.assign(ranks.begin(), ranks.end());
  about.envelope.kinds.assign(kinds.begin(), kinds.end());
  timing.fitted = std::move(about);
  return timing;
}

const FrameworkTiming& framework_timing() {
  static const FrameworkTiming kTiming = [] {
    Result<FrameworkTiming> read = parse_framework_timing(
        std::string(timing_files::framework_timing_yaml), "shipped framework timing");
    REHEARSE_CHECK(read.has_value(), "{}", to_string(read.error()));
    return *read;
  }();
  return kTiming;
}

Price in_framework(Price price, const FrameworkTiming& timing) {
  Estimate<Seconds>& t = price.time;
  const auto apart = [](Seconds a, Seconds b) { return Seconds::s(std::hypot(a.s(), b.s())); };
  const Seconds value = t.value + timing.call;
  t.low = value - apart(t.value - t.low, timing.call);
  t.high = value + apart(t.high - t.value, timing.high - timing.call);
  t.value = value;
  t.provenance = std::max(t.provenance, Provenance::kExtrapolated);
  return price;
}

}  // namespace rehearse::comm
