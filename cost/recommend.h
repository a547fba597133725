// Which instances to rent, how many, for a job with a target: every one of the catalog that the
// wish allows, by time and money to the target.
//
// What a job takes on so many instances is the caller's to say (`Evaluator`); here stand the
// offers, bounds that keep most from being evaluated, what all of it costs, and the choice.
//
// An offer is left out unevaluated only where its bounds show that it does not fit, or that an
// evaluated option that meets every wish is both sooner done and cheaper. Both bounds hold for any
// plan, so the answer and the Pareto front are those of evaluating everything (a test compares). As
// the order of evaluation is fixed, so is the result, with any number of threads.
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

/// Of a step, on top of what it would take without; absent: the job says nothing of it.
struct Stalls {
  std::optional<Seconds> interconnect = {};  ///< links within nodes
  std::optional<Seconds> network = {};       ///< links between nodes
  std::optional<Seconds> input = {};         ///< waiting for samples, reads included
  std::optional<Seconds> fetch = {};         ///< of that, what reading from storage causes
  /// On top of what it would take with each device on a node of its own; below zero they gain by
  /// sharing nodes. Absent where no node has two, or what would join such nodes is not known.
  std::optional<Seconds> node_sharing = {};
};

struct Evaluation {
  JobTime job;
  std::string plan;                     ///< the best that was found; for people
  std::vector<PoweredDevices> devices;  ///< of all instances
  Stalls stalls = {};
  std::size_t detail = 0;  ///< the caller's own
};

struct Evaluator {
  /// No plan is sooner at the target; nothing where none fits in memory. Cheap.
  std::function<std::optional<Seconds>(const Offer&)> least_time;
  /// Under the best plan, or why there is none. Called from several threads.
  std::function<Result<Evaluation>(const Offer&)> evaluate;
};

struct Wish {
  std::vector<std::string> providers = {};  ///< empty: any
  std::vector<std::string> regions = {};    ///< empty: of each instance where it is cheapest
  std::vector<Market> markets = {Market::kOnDemand};
  std::vector<std::uint32_t> counts;  ///< of instances, ascending
  Place place = {};                   ///< without what is rented, where and how
  Keeping keeping = {};
  std::optional<Usd> budget = {};
  std::optional<Seconds> deadline = {};
  std::optional<double> most_carbon = {};     ///< grams
  std::optional<FunctionJob> functions = {};  ///< where the job would do for them
};

struct Option {
  std::string provider, instance;
  std::string region;  ///< where its price is of, and its carbon; empty: none is known
  Market market;
  std::uint32_t count;
  std::optional<Evaluation> evaluation;  ///< absent: functions
  JobAccount account;
  bool meets;  ///< every wish, by its central values
};

struct Recommendation {
  std::vector<Option> options;      ///< those that meet every wish first; each part best first
  std::vector<std::size_t> pareto;  ///< of those that meet, by time and money; the sooner first
  std::size_t offers = 0;           ///< of the catalog, as wished
  std::size_t bounded = 0;          ///< left out by bounds
  std::size_t impossible = 0;       ///< no plan for them
  std::string why_impossible;       ///< of the first
};

/// Those of the catalog that the wish allows: whole devices, of the providers, in each of the
/// regions that the provider has, there without a price too. Of several markets those in which it
/// has a price there, or the first. Fails with one line on a provider or region that does not
/// exist, or does not go with the others; `key` of the diagnostic is then "provider" or "region".
Result<std::vector<Offer>> offers_of(const Wish& wish);

/// What the options are ordered by, in words.
enum class Aim : std::uint8_t { kCheapest, kFastest };
/// The cheapest, but with a budget and no deadline the fastest.
Aim aim_of(const Wish& wish);

/// Fails with one line: no offer, none that any plan runs on, or none that meets the wish; then it
/// names the one that comes nearest, and by how much it does not.
Result<Recommendation> recommend(const Wish& wish, const std::vector<Offer>& offers,
                                 const Evaluator& evaluator, unsigned threads,
                                 const Progress& progress);

}  // namespace rehearse::cost
