#include "profiler/ingest/capture_clock.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/statistics.h"

namespace rehearse::ingest {
namespace {

// Later instants are damage; sums and differences of earlier ones cannot overflow.
constexpr std::uint64_t kLatest = INT64_MAX / 4;

// Reading two clocks in turn takes less than this, unless the thread loses its core between them.
// Such a pair is off from both its neighbours, and a median of three removes it.
constexpr double kNoise = 100e3;      // ns
constexpr double kEdgeNoise = 5e6;    // ns, of the first and the last, which have one neighbour
constexpr double kUsualDrift = 1e-4;  // of the rate between two pairs from that of the file
constexpr double kFastestSlew = 0.1;  // chronyd slews by up to 8 %

struct Sample {
  double at;     // monotonic
  double ahead;  // realtime - monotonic
};

/// Usual gain of the wall clock per ns.
double usual_rate(const std::vector<Sample>& samples) {
  std::vector<double> rates;
  for (std::size_t i = 1; i < samples.size(); ++i)
    rates.push_back((samples[i].ahead - samples[i - 1].ahead) /
                    (samples[i].at - samples[i - 1].at));
  // With two or three pairs, an interval that contains a step would look usual.
  const double rate = rates.size() < 3 ? 0 : upper_median(rates);
  return std::abs(rate) < 1e-3 ? rate : 0;
}

void smooth(std::vector<Sample>& samples) {
  const std::vector<Sample> raw = samples;
  const double rate = usual_rate(raw);
  const auto level = [&](std::size_t i) { return raw[i].ahead - rate * raw[i].at; };
  for (std::size_t i = 1; i + 1 < raw.size(); ++i)
    samples[i].ahead =
        upper_median(std::vector{level(i - 1), level(i), level(i + 1)}) + rate * raw[i].at;
  const auto mend = [&](Sample& edge, const Sample& next) {
    const double expected = next.ahead + rate * (edge.at - next.at);
    if (std::abs(edge.ahead - expected) < kEdgeNoise) edge.ahead = expected;
  };
  if (samples.size() < 2) return;
  mend(samples.front(), samples[1]);
  mend(samples.back(), samples[samples.size() - 2]);
}

}  // namespace

MachineClock::MachineClock(std::vector<capture::ClockPair> pairs) {
  std::erase_if(pairs, [](const capture::ClockPair& pair) {
    return pair.monotonic_ns == 0 || pair.realtime_ns == 0 || pair.realtime_ns >= kLatest ||
           pair.monotonic_ns >= kLatest;
  });
  std::ranges::stable_sort(
      pairs, [](const auto& a, const auto& b) { return a.monotonic_ns < b.monotonic_ns; });
  if (pairs.size() < 2) return;
  realtime_ = pairs.front().realtime_ns;
  monotonic_ = pairs.front().monotonic_ns;
  std::vector<Sample> samples;
  for (const capture::ClockPair& pair : pairs) {
    const auto at = static_cast<double>(pair.monotonic_ns - monotonic_);
    const auto realtime = static_cast<double>(static_cast<std::int64_t>(pair.realtime_ns) -
                                              static_cast<std::int64_t>(realtime_));
    if (!samples.empty() && at - samples.back().at < 1e6) continue;  // too near to tell a rate
    samples.push_back({at, realtime - at});
  }
  smooth(samples);
  const double rate = usual_rate(samples);

  constexpr double kForever = std::numeric_limits<double>::infinity();
  double gained = 0;
  // The piece that lasts until the clock leaves its usual rate.
  Piece piece{-kForever, kForever, samples.front().at, samples.front().ahead, rate, 0, 0};
  for (std::size_t i = 0; i + 1 < samples.size(); ++i) {
    const Sample &a = samples[i], &b = samples[i + 1];
    const double elapsed = b.at - a.at;
    const double extra = b.ahead - a.ahead - rate * elapsed;
    if (std::abs(extra) <= kNoise + kUsualDrift * elapsed) continue;
    const bool slewed = std::abs(extra) < kFastestSlew * elapsed;
    piece.end = slewed ? a.at : b.at;  // a step may be as late as the second pair ...
    pieces_.push_back(piece);
    if (slewed)
      pieces_.push_back(
          {a.at, b.at, a.at, a.ahead, (b.ahead - a.ahead) / elapsed, gained, extra / elapsed});
    gained += extra;
    piece = {slewed ? b.at : a.at, kForever, b.at, b.ahead, rate, gained, 0};  // or early
  }
  if (!pieces_.empty()) pieces_.push_back(piece);
}

std::uint64_t MachineClock::steady(std::uint64_t realtime, std::uint64_t written_by) const {
  if (pieces_.empty() || realtime >= kLatest) return realtime;
  const auto r = static_cast<double>(static_cast<std::int64_t>(realtime) -
                                     static_cast<std::int64_t>(realtime_));
  const double limit = written_by == UINT64_MAX
                           ? std::numeric_limits<double>::infinity()
                           : static_cast<double>(static_cast<std::int64_t>(written_by) -
                                                 static_cast<std::int64_t>(monotonic_)) +
                                 kNoise;
  // The latest moment that it can have been; if none, of the piece that is nearest to having it.
  double latest = 0, gained = 0, miss = std::numeric_limits<double>::infinity();
  for (const Piece& piece : pieces_) {
    const double m = (r - piece.ahead + piece.slope * piece.from) / (1 + piece.slope);
    const double outside = std::max({piece.begin - m, m - std::min(piece.end, limit), 0.0});
    if (outside > miss || (outside == miss && m <= latest)) continue;
    miss = outside;
    latest = m;
    gained = piece.gained + piece.gain_slope * (m - piece.from);
  }
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(realtime) - std::llround(gained));
}

void CaptureClock::set_base(std::uint64_t realtime) {
  if (realtime < kLatest) base_ = static_cast<std::int64_t>(steady(realtime));
}

std::uint64_t CaptureClock::steady(std::uint64_t realtime) const {
  if (!machine_ || !machine_->was_set()) return realtime;
  const bool known = passed_ + 1 < own_.size();
  return machine_->steady(realtime, known ? own_[passed_ + 1].monotonic_ns : UINT64_MAX);
}

std::optional<Nanoseconds> CaptureClock::at(std::uint64_t realtime) const {
  if (realtime >= kLatest) return std::nullopt;
  const std::uint64_t steady_time = steady(realtime);
  if (steady_time >= kLatest) return std::nullopt;
  return Nanoseconds(static_cast<std::int64_t>(steady_time) - base_);
}

}  // namespace rehearse::ingest
