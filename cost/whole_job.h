// The cost of a job from its first step to its target: steps, checkpoints, interruptions, storage,
// transfer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/interruptions.h"
#include "cost/step_account.h"

namespace rehearse::cost {

/// Stored data of a job and its interruptions: the sections `storage` and `spot` of a job file.
struct Keeping {
  std::optional<Bytes> checkpoint = {};  ///< absent: the caller's value for the model
  std::optional<Seconds> every = {};   ///< work between checkpoints; absent: daly_interval on spot
  double keep = 2;                     ///< checkpoints at a time
  std::optional<ByteRate> write = {};  ///< total of all instances; absent: by their links
  Seconds restart = Seconds::s(300);
  std::optional<Bytes> dataset = {};  ///< kept as long as the job runs
  std::optional<Bytes> fetched = {};  ///< out of the cloud, at the end
  /// Mean time between interruptions of one spot instance.
  std::optional<Estimate<Seconds>> between = {};
};

struct JobTime {
  Estimate<Seconds> step;
  double steps;
  Bytes checkpoint;            ///< used where Keeping gives none
  Usd requests = Usd::usd(0);  ///< storage requests of one step
  double paid = 1;             ///< share of the machines' time that there are machines
};

struct Checkpoints {
  Seconds every, write;
  double slowdown;  ///< of the whole job, by writing checkpoints and by interruptions
};

struct JobAccount {
  Estimate<Seconds> time;                             ///< to the target, by the clock
  std::optional<Estimate<Usd>> money = {};            ///< machines, storage and transfer
  Usd storage = Usd::usd(0), transfer = Usd::usd(0);  ///< parts of money; storage includes requests
  std::optional<Estimate<Joules>> energy = {};
  std::optional<Estimate<double>> carbon = {};  ///< grams
  std::optional<Checkpoints> checkpoints = {};  ///< where any are written
  std::vector<std::string> notes;
};

/// Fails if interruptions leave no time for progress.
Result<JobAccount> account_for_job(const JobTime& job, std::span<const PoweredDevices> devices,
                                   const Place& place, const Keeping& keeping);

}  // namespace rehearse::cost
