// Recommends instances for a job with a target: every offer of the catalog that the
// constraints allow, by time and cost to the target.
//
// The caller predicts the job on a number of instances (`Evaluator`). This module has the
// offers, bounds that avoid most evaluations, the total cost, and the choice.
//
// An offer is skipped only if its bounds show that it does not fit, or that an
// evaluated option that meets every constraint is both faster and cheaper. Both bounds hold for any
// plan, so the answer and the Pareto front equal those of evaluating everything (tested). The order
// of evaluation is fixed, and so is the result, with any number of threads.
//
// The first option is then evaluated a second time, as is the one that takes its place if it is no
// longer first, and so on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cost/functions.h"
#include "cost/whole_job.h"
#include "sim/base/progress.h"

namespace rehearse::cost {

struct Offer {
  const cluster::Instance* instance;
  std::uint32_t count;
  std::string region = {};  ///< empty: where it is cheapest
  Market market = Market::kOnDemand;
};

/// Parts of a step's time; an absent part does not apply to the job.
struct Stalls {
  std::optional<Seconds> interconnect = {};  ///< links within nodes
  std::optional<Seconds> network = {};       ///< links between nodes
  std::optional<Seconds> input = {};         ///< waiting for samples, reads included
  std::optional<Seconds> fetch = {};         ///< part of input that reading from storage causes
  /// Difference to a step with each device on its own node; negative if devices gain by sharing
  /// nodes. Absent if no node has two devices, or the network of such nodes is unknown.
  std::optional<Seconds> node_sharing = {};
};

struct Evaluation {
  JobTime job;
  std::string plan;                     ///< the best that was found; for people
  std::vector<PoweredDevices> devices;  ///< on all instances together
  Stalls stalls = {};
  std::size_t detail = 0;  ///< the caller's own; equal for offers that share their plan
  bool all_ranks = false;  ///< the step is of a run with all ranks
};

struct Evaluator {
  /// A lower bound: no plan reaches the target sooner. Nothing if no plan fits in memory, or the device
  /// lacks the number format. Cheap.
  std::function<std::optional<Seconds>(const Offer&)> least_time;
  /// A higher lower bound, which takes a part of the time of `evaluate`; may be absent. Called from
  /// several threads.
  std::function<Seconds(const Offer&)> least_time_by_plans = {};
  /// The prediction under the best plan, or why there is none. Called from several threads.
  std::function<Result<Evaluation>(const Offer&)> evaluate;
  /// A second, slower evaluation, of the option that would be recommended; may be absent.
  std::function<Result<Evaluation>(const Offer&)> look_again = {};
};

struct Wish {
  std::vector<std::string> providers = {};  ///< empty: any
  std::vector<std::string> regions = {};    ///< empty: of each instance where it is cheapest
  std::vector<Market> markets = {Market::kOnDemand};
  std::vector<std::uint32_t> counts;  ///< numbers of instances, ascending
  Place place = {};                   ///< without instance, region and market
  Keeping keeping = {};
  std::optional<Usd> budget = {};
  std::optional<Seconds> deadline = {};
  std::optional<double> most_carbon = {};  ///< grams
  /// Time, cost and carbon count as the value not exceeded with this probability. 0.5: their central
  /// values. 0.5 to 0.99, since bounds are below central values.
  double risk = 0.5;
  std::optional<FunctionJob> functions = {};  ///< where the job would do for them
};

struct Option {
  std::string provider, instance;
  std::string region;  ///< region of its price and carbon; empty: none is known
  Market market;
  std::uint32_t count;
  std::optional<Evaluation> evaluation;  ///< absent: functions
  JobAccount account;
  bool meets;                               ///< every wish, at its risk
  std::optional<Offer> offer = {};          ///< that it comes from; absent: functions
  std::optional<Seconds> step_before = {};  ///< by the first evaluation, if this is the second
};

struct Recommendation {
  std::vector<Option> options;      ///< those that meet every wish first; each part best first
  std::vector<std::size_t> pareto;  ///< options that meet all constraints, by time and cost
  std::size_t offers = 0;           ///< offers of the catalog under the constraints
  std::size_t bounded = 0;          ///< left out by bounds
  std::size_t impossible = 0;       ///< no plan for them
  std::string why_impossible;       ///< reason for the first of them
};

/// Offers of the catalog under the constraints: whole devices, of the providers, in each of the
/// given regions of a provider, also without a price. Of several markets, those with a price
/// there, or the first. Fails with one line on a provider or region that does not
/// exist or does not match the others; `key` of the diagnostic is then "provider" or "region".
Result<std::vector<Offer>> offers_of(const Wish& wish);

/// The criterion that orders the options.
enum class Aim : std::uint8_t { kCheapest, kFastest };
/// The cheapest; with a budget and no deadline, the fastest.
Aim aim_of(const Wish& wish);

/// Fails with one line if there is no offer, if no plan runs on any offer, or if no option meets
/// the wish. The last message names the nearest option and states by how much it misses.
Result<Recommendation> recommend(const Wish& wish, const std::vector<Offer>& offers,
                                 const Evaluator& evaluator, unsigned threads,
                                 const Progress& progress);

}  // namespace rehearse::cost
