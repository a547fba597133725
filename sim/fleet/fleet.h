// Many jobs on many GPUs: who runs when and where, event by event.
//
// A job is a gang: it holds all of its GPUs, or one slice of a GPU, from its start to its end, or
// none. Its work is the time that it takes alone on whole GPUs; where it runs slower, work is done
// at the rate that `RateOf` says. docs/concepts/many-jobs.md has the policies with worked examples.
//
// Promises:
//  - Determinism: the same jobs give the same outcome; ties go in the order of arrival, and of the
//    list where jobs arrive together. Time is whole nanoseconds.
//  - No GPU holds more than it has positions; what ends at an instant is free for what starts at
//  it.
//  - Cost: (jobs + starts) x (distinct demands) x log(jobs), and the GPUs that are handed out. Only
//    preemption looks at all that runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/time.h"
#include "sim/base/units.h"

namespace rehearse::fleet {

/// A part of a GPU that one job can have: a MIG instance, or a seat beside others. It takes `size`
/// positions of the GPU, from one of `starts`.
struct SliceKind {
  std::string name;
  Bytes memory;
  std::uint32_t size;
  std::vector<std::uint32_t> starts;
  double rate = 1;  ///< of a job on it against the whole GPU, where no RateOf is given
};

/// Nodes of equal GPUs. A pod is a set of nodes with rails of their own.
struct Fleet {
  std::uint32_t nodes = 1;
  std::uint32_t gpus_per_node = 8;     ///< 64 at most
  std::uint32_t nodes_per_pod = 0;     ///< 0: all nodes are one pod
  std::optional<Bytes> memory = {};    ///< of a GPU
  std::uint32_t positions = 1;         ///< of a GPU, 8 at most
  std::vector<SliceKind> slices = {};  ///< the smallest first; empty: GPUs are not shared

  std::uint32_t gpus() const { return nodes * gpus_per_node; }
};

struct Job {
  std::string name;
  std::string user = {};
  Nanoseconds submit{0};
  Nanoseconds work{0};  ///< alone on whole GPUs
  std::uint32_t gpus = 1;
  std::optional<Bytes> memory = {};  ///< of each GPU; a job of unknown memory takes no slice
  /// For who knows by them how fast the job is on a slice: a step alone, and the host's part of it.
  std::optional<Seconds> step = {}, host = {};
};

enum class Policy : std::uint8_t {
  kFifo,       ///< in the order of arrival; who does not fit blocks who came later
  kBackfill,   ///< the first that does not fit gets a reservation; others may go before it where
               ///< they do not delay it (EASY)
  kShortest,   ///< the least remaining work first; who does not fit blocks the rest
  kFairShare,  ///< the user first who was charged the least GPU time; within a user by arrival
};
inline constexpr std::string_view kPolicyNames[] = {"fifo", "backfill", "shortest", "fair"};

enum class Placement : std::uint8_t {
  kPacked,  ///< on as few nodes as can be now, the fullest that suffice
  kSpread,  ///< GPU by GPU on the node that has most left
  kRail,    ///< in one node, or in one pod where it is larger than a node; else it waits
};
inline constexpr std::string_view kPlacementNames[] = {"packed", "spread", "rail"};

struct Tenant {
  std::uint32_t job;                   ///< index in the list
  std::optional<std::uint32_t> slice;  ///< index of its kind; nothing: whole GPUs
};

/// Where a job is.
struct Tenancy {
  Tenant self;
  std::span<const Tenant> beside;  ///< on the same GPU
  std::uint32_t nodes = 1, pods = 1;
};

/// Work done per time, above zero; 1 is alone on whole GPUs. Asked whenever a neighbour changes.
using RateOf = std::function<double(const Tenancy&)>;

struct Options {
  Policy policy = Policy::kFifo;
  Placement placement = Placement::kPacked;
  /// With kShortest: a job that does not fit takes the place of running ones that have longer to
  /// go.
  bool preempt = false;
  Nanoseconds restart{0};     ///< what a preempted job takes before it goes on
  Nanoseconds checkpoint{0};  ///< work between checkpoints; 0: one at the moment of preemption
  RateOf rate = {};
};

struct JobRun {
  Nanoseconds start{0};       ///< the first
  Nanoseconds end{0};         ///< the last
  Nanoseconds held{0};        ///< time with its GPUs
  Nanoseconds restarting{0};  ///< of that, restart cost
  Nanoseconds lost{0};        ///< work done again since a checkpoint was older
  std::uint32_t preemptions = 0;
  std::uint32_t nodes = 0;  ///< of its last start, as the next two
  std::optional<std::uint32_t> slice = {};
  std::vector<std::uint32_t> gpus = {};
};

/// One stay of a job on its GPUs, for who draws or checks a run.
struct Stay {
  std::uint32_t job;
  Nanoseconds from{0}, to{0};
  std::vector<std::uint32_t> gpus;
  std::uint32_t positions;  ///< bits of each GPU
};

struct Outcome {
  std::vector<std::optional<JobRun>> jobs;  ///< as in the list; nothing: it can never fit
  std::vector<Stay> stays;                  ///< in the order of their ends
  Nanoseconds makespan{0};                  ///< from the first arrival to the last end
  double utilization = 0;                   ///< parts of GPUs held, over the makespan
  /// Parts of GPUs free while the next job asks for no more than is free in all, but not in a place
  /// that it could take; over the makespan.
  double fragmentation = 0;
  std::uint32_t preemptions = 0;
};

/// Nanoseconds of 64 bits hold arrivals up to this and runs that last a few times longer.
inline constexpr Nanoseconds kLatestSubmit(5'000'000'000'000'000'000);
inline constexpr Nanoseconds kLongestWork(300'000'000'000'000'000);   ///< 9.5 years
inline constexpr Nanoseconds kLongestRun(1'000'000'000'000'000'000);  ///< from the first arrival

/// Fails on jobs that arrive later, or take longer, than the above, on a fleet without GPUs, slices
/// that do not lie on a GPU, and options that do not go together.
Result<Outcome> run(const Fleet& fleet, std::span<const Job> jobs, const Options& options);

/// End minus arrival, against the work alone; 1 for a job without work.
double slowdown_of(const Job& job, const JobRun& run);
/// Time between arrival and end without GPUs.
Nanoseconds queued(const Job& job, const JobRun& run);

}  // namespace rehearse::fleet
