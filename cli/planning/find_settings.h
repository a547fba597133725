// find_settings: the best settings of an inference server under a load.
//
// A setting is run as `simulate` runs it, at the price of its steps alone; the interval is left to
// the settings that are shown. Bounds, which are valid for any run of the load:
//   time of the load  >= the span of its arrivals, and >= Σ (output - 1) · TPOT ÷ rows
//   TPOT              >= shortest step ÷ (1 + drafts)
// With `scaling` only replicas that there are cost anything: at least the least number of them all
// the time, and Σ (output - 1) · TPOT ÷ rows of one replica. The shortest step has one decode row
// with the shortest prompt as its context, alone or with any number of prompt tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/planning/server_space.h"
#include "strategies/search/search.h"

namespace rehearse::cli {

/// Figures of a setting; less is better.
enum class ServerFigure : std::uint8_t {
  kPerRequest,  ///< device-seconds per request within the SLO
  kTpot,        ///< s, mean
  kTtft,        ///< s, mean
  kPerToken,    ///< device-seconds per output token
  kMissed,      ///< share of requests that miss the SLO; 0 without one
};
constexpr std::size_t slot(ServerFigure figure) { return static_cast<std::size_t>(figure); }

/// What a search of settings maximizes or minimizes.
enum class ServerObjective : std::uint8_t { kGoodput, kTpot, kTtft };
inline constexpr std::string_view kServerObjectiveNames[] = {"goodput", "tpot", "ttft"};

struct SettingsRequest {
  ServerObjective objective = ServerObjective::kGoodput;
  FlagChoice flags = FlagChoice::kAll;
  /// Compares goodput of all devices of the cluster, not per device: they are paid for anyway.
  bool whole_cluster = false;
  std::size_t keep = 10;
  strategies::SearchOptions search = {};
};

struct FoundSetting {
  ServerSetting setting;
  strategies::Figures figures;
};

struct FoundSettings {
  std::uint64_t seen = 0, evaluated = 0;
  double seen_per_s = 0, evaluated_per_s = 0;
  std::vector<LeftOut> left_out;
  std::vector<FoundSetting>
      best;  ///< of settings with equal results, the one with the least limits
  /// Settings that no other beats in both TPOT and output tokens per second and device.
  std::vector<FoundSetting> front;
};

/// The settings that keep the SLO for kHeldShare of the requests. Fails with one line if none fits,
/// or if none keeps the SLO; the message then names the nearest.
Result<FoundSettings> find_settings(const ServeFile& file, const SettingsRequest& request);

}  // namespace rehearse::cli
