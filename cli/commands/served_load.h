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
#include "sim/serving/pools.h"

namespace rehearse::cli {

/// Replicas of one pool: what their steps cost, and their memory.
struct PricedPool {
  serving::StepPrice price;
  serving::CacheSpace space;
};

/// What serves a load: one pool, or one for tokens and one for prompts. Refers to the prices.
struct Servers {
  serving::Pool pool;
  std::optional<serving::Pool> prefill = {};
  serving::Transfer transfer = {};
};

struct ServedLoad {
  const ServeFile& file;
  serving::StepPrice price;
  serving::CacheSpace space;
  std::optional<PricedPool>
      prefill;  ///< as ServeFile::prefill; then the others are of the tokens' pool
  std::array<serving::Measures, 3> measures;          ///< at the price, its low end, its high end
  std::array<std::vector<serving::Run>, 3> replicas;  ///< first those that compute prompts alone
  Provenance provenance;

  /// With as many replicas as there may be.
  Servers servers() const;
  /// GPUs' time that is paid for, divided by the GPUs that there may be.
  Estimate<Seconds> rented() const;
  /// The replicas of the pool for prompts, or of that for tokens, in one of the three runs.
  std::span<const serving::Run> prompt_replicas(std::size_t run) const;
  std::span<const serving::Run> token_replicas(std::size_t run) const;
  /// Share of the rented time in which a GPU runs steps.
  double busy() const;
  /// Of steps, and of the time to the first token: of both pools the wider.
  Estimate<double> reach() const;
  Estimate<double> reach_of_first_token() const;

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
  /// The same, and output tokens, per GPU-second that is paid for.
  Estimate<double> goodput_per_device() const;
  Estimate<double> tokens_per_s_per_device() const;
  /// Output tokens per second: of all devices, and of a user, which is 1 ÷ mean TPOT (0 where no
  /// request has a second token).
  Estimate<double> tokens_per_s() const;
  Estimate<double> tokens_per_user() const;

 private:
  /// Requests that count in one of the three runs.
  double within(std::size_t run) const;
  Estimate<Seconds> first_token(serving::Spread serving::Measures::*since,
                                double serving::Spread::*which) const;
};

/// The memory of a replica under the file's settings. Fails where the model does not fit.
Result<serving::CacheSpace> space_of(const ServeFile& file);
/// The same of a replica that computes prompts alone. REQUIRES: `file.prefill`.
Result<serving::CacheSpace> prefill_space_of(const ServeFile& file);

/// The rule of the replicas, with the time to load the weights of one. REQUIRES: `file.scaling`.
serving::Scaling scaling_of(const ServeFile& file, const serving::CacheSpace& space);

/// GPU-seconds that are paid for: of all GPUs, or, with `scaling`, of the replicas that there are.
double device_seconds(const ServeFile& file, const serving::Measures& measures);

/// `prefill` is absent if `file.prefill` is. REQUIRES: prices outlive the result.
struct PoolPrice {
  const serving::StepPrice& price;
  const serving::CacheSpace& space;
};
Servers servers_of(const ServeFile& file, const PoolPrice& pool,
                   const std::optional<PoolPrice>& prefill);

/// Runs the first requests, at most `most` of them, on the replicas. Gaps between arrivals are
/// `stretch` times as long: 0 makes all wait from the beginning, and nobody thinks or leaves.
Result<std::vector<serving::Run>> run_load(const ServeFile& file, const Servers& servers,
                                           double scale, double stretch = 1,
                                           std::size_t most = SIZE_MAX);

/// Fails for a server that is not priced, or whose model does not fit. REQUIRES: `file` outlives the
/// result.
Result<ServedLoad> serve(const ServeFile& file);

/// Requests per second that are served if all wait from the beginning.
Result<double> capacity_of(const ServedLoad& load);

/// The requests that keep every limit of the SLO, and their deadlines.
std::size_t kept(const ServingSlo& slo, std::span<const serving::Run> replicas);

/// The share of requests that must keep the SLO at a rate that the server holds.
inline constexpr double kHeldShare = 0.9;

/// The highest rate of arrivals, in requests per second, that the server holds: the same requests
/// with all gaps scaled, at most the first 2,000 of them. Zero if it holds none, and nothing if no
/// two requests arrive apart. REQUIRES: an open load with an SLO.
Result<std::optional<Estimate<double>>> held_rate(const ServedLoad& load, double capacity);

}  // namespace rehearse::cli
