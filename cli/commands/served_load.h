// A load that was run on an inference server, at the price of its steps and at both ends of their
// interval.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "cli/config/serve_file.h"
#include "models/serving/cache_space.h"
#include "sim/serving/measures.h"
#include "sim/serving/run.h"

namespace rehearse::cli {

struct ServedLoad {
  const ServeFile& file;
  serving::StepPrice price;
  serving::CacheSpace space;
  std::array<serving::Measures, 3> measures;  ///< at the price, its low end, its high end
  std::array<std::vector<serving::Run>, 3> replicas;
  Provenance provenance;

  /// Any measure: the interval is that of the three runs.
  template <class Q, class Of>
  Estimate<Q> estimate(const Of& of) const {
    const Q value = of(measures[0]), low = of(measures[1]), high = of(measures[2]);
    return {value, std::min({value, low, high}), std::max({value, low, high}), provenance};
  }

  /// A statistic of the time to the first token, from sending. Its errors on measured runs are wider than those
  /// of steps: most of it is the wait for prompts of others.
  Estimate<Seconds> ttft(double serving::Spread::*which) const;
  /// The same from the entry into the server's queue on.
  Estimate<Seconds> ttft_at_server(double serving::Spread::*which) const;
  /// The same of the time to the last token: the first token's, and then steps.
  Estimate<Seconds> end_to_end(double serving::Spread::*which) const;
  Estimate<Seconds> mean_tpot() const;

  /// Requests per second that keep the SLO; all of them without one.
  Estimate<double> goodput() const;
  /// Output tokens per second: of all devices, and of a user, which is 1 ÷ mean TPOT (0 where no
  /// request has a second token).
  Estimate<double> tokens_per_s() const;
  Estimate<double> tokens_per_user() const;

 private:
  Estimate<Seconds> first_token(serving::Spread serving::Measures::*since,
                                double serving::Spread::*which) const;
};

/// The memory of a replica under the file's settings. Fails where the model does not fit.
Result<serving::CacheSpace> space_of(const ServeFile& file);

/// Runs the first requests, at most `most` of them, on the replicas. Gaps between arrivals are
/// `stretch` times as long: 0 makes all wait from the beginning.
Result<std::vector<serving::Run>> run_load(const ServeFile& file, const serving::StepPrice& price,
                                           const serving::Rules& rules, double scale,
                                           double stretch = 1, std::size_t most = SIZE_MAX);

/// Fails for a server that is not priced, or whose model does not fit. REQUIRES: `file` outlives the
/// result.
Result<ServedLoad> serve(const ServeFile& file);

/// Requests per second that are served if all wait from the beginning.
Result<double> capacity_of(const ServedLoad& load);

/// The requests that keep every limit of the SLO.
std::size_t kept(const ServingSlo& slo, std::span<const serving::Run> replicas);

/// The share of requests that must keep the SLO at a rate that the server holds.
inline constexpr double kHeldShare = 0.9;

/// The highest rate of arrivals, in requests per second, that the server holds: the same requests
/// with all gaps scaled, at most the first 2,000 of them. Zero if it holds none, and nothing if no
/// two requests arrive apart. REQUIRES: an open load with an SLO.
Result<std::optional<Estimate<double>>> held_rate(const ServedLoad& load, double capacity);

}  // namespace rehearse::cli
