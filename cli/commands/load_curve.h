// Latency of a server against its load: the same requests at other rates, or with another number of
// them in flight.
#pragma once

#include <optional>
#include <vector>

#include "cli/commands/served_load.h"
#include "cli/output/value.h"

namespace rehearse::cli {

/// What a server answers at one load.
struct LoadPoint {
  double load;  ///< requests per second that arrive, or requests in flight
  Estimate<double> requests_per_s, tokens_per_s, tokens_per_user;
  Estimate<Seconds> mean_ttft, p99_ttft, mean_tpot, p99_tpot;
  double within = 1;  ///< share of requests that keep the SLO
};

struct LoadCurve {
  std::vector<LoadPoint> points;  ///< in ascending order; the load of the file is one of them
  /// The load beyond which more of it is not served sooner. Of rates: the capacity. Of requests in
  /// flight: the first point with 95 % of the capacity; absent if there is none.
  std::optional<double> saturation;
};

/// Rates are from a tenth to 1.25 times the capacity, with at most the first 2,000 requests. In a closed
/// loop 1/16 to 4 times as many requests are in flight, and the number of requests follows, so that as
/// many waves pass. Empty if no two requests arrive apart.
Result<LoadCurve> load_curve(const ServedLoad& load, double capacity);

/// Its fields in the document of `simulate`.
Value curve_fields(const ServeFile& file, const LoadCurve& curve);

}  // namespace rehearse::cli
