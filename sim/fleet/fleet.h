// Many jobs on many GPUs: start, end and place of each job, event by event.
//
// A job is a gang: it holds all of its GPUs, or one slice of a GPU, from its start to its end.
// Its work is its time alone on whole GPUs. On slower resources, work is done
// at the rate that `RateOf` returns. docs/concepts/many-jobs.md has the policies with examples.
//
// Promises:
//  - Determinism: the same jobs give the same outcome. Ties are resolved by arrival, and then by
//    the order of the list. Time is whole nanoseconds.
//  - No GPU holds more than its positions. Resources released at a time are free for jobs that
//    start at it.
//  - Cost: (jobs + starts) x (distinct demands) x log(jobs), plus the GPUs that are assigned. Only
//    preemption looks at all running jobs.
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

/// A part of a GPU for one job: a MIG instance, or a seat in a shared GPU. It takes `size`
/// positions of the GPU, from one of `starts`.
struct SliceKind {
  std::string name;
  Bytes memory;
  std::uint32_t size;
  std::vector<std::uint32_t> starts;
  double rate = 1;  ///< speed of a job relative to the whole GPU, without RateOf
};

/// Nodes of equal GPUs. A pod is a set of nodes with rails of their own.
struct Fleet {
  std::uint32_t nodes = 1;
  std::uint32_t gpus_per_node = 8;     ///< 64 at most
  std::uint32_t nodes_per_pod = 0;     ///< 0: all nodes are one pod
  std::optional<Bytes> memory = {};    ///< per GPU
  std::uint32_t positions = 1;         ///< per GPU, at most 8
  std::vector<SliceKind> slices = {};  ///< the smallest first; empty: GPUs are not shared

  std::uint32_t gpus() const { return nodes * gpus_per_node; }
};

struct Job {
  std::string name;
  std::string user = {};
  Nanoseconds submit{0};
  Nanoseconds work{0};  ///< alone on whole GPUs
  std::uint32_t gpus = 1;
  std::optional<Bytes> memory = {};  ///< per GPU; a job of unknown memory gets no slice
  /// For rates on slices: the time of a step alone, and the host's part of it.
  std::optional<Seconds> step = {}, host = {};
};

enum class Policy : std::uint8_t {
  kFifo,       ///< in the order of arrival; a job that does not fit blocks later ones
  kBackfill,   ///< the first that does not fit gets a reservation; others may go before it where
               ///< they do not delay it (EASY)
  kShortest,   ///< least remaining work first; a job that does not fit blocks the rest
  kFairShare,  ///< the user with the least charged GPU time first; then by arrival
};
inline constexpr std::string_view kPolicyNames[] = {"fifo", "backfill", "shortest", "fair"};

enum class Placement : std::uint8_t {
  kPacked,  ///< on as few nodes as can be now, the fullest that suffice
  kSpread,  ///< GPU by GPU on the node that has most left
  kRail,    ///< in one node, or in one pod where it is larger than a node; else it waits
};
inline constexpr std::string_view kPlacementNames[] = {"packed", "spread", "rail"};

/// Work done per time on a kind of slice, above zero; 1 is the rate alone on a whole GPU. The job is
/// an index in the list.
using RateOf = std::function<double(std::uint32_t job, std::uint32_t kind)>;

struct Options {
  Policy policy = Policy::kFifo;
  Placement placement = Placement::kPacked;
  /// With kShortest: a job that does not fit preempts running jobs that have more remaining work.
  bool preempt = false;
  Nanoseconds restart{0};     ///< time to restart a preempted job
  Nanoseconds checkpoint{0};  ///< work between checkpoints; 0: one at the moment of preemption
  RateOf rate = {};
};

struct JobRun {
  Nanoseconds start{0};       ///< the first start
  Nanoseconds end{0};         ///< the last end
  Nanoseconds held{0};        ///< time with its GPUs
  Nanoseconds restarting{0};  ///< part of that spent on restarts
  Nanoseconds lost{0};        ///< work repeated because the last checkpoint was older
  std::uint32_t preemptions = 0;
  std::uint32_t nodes = 0;  ///< of its last start, like the next two
  std::optional<std::uint32_t> slice = {};
  std::vector<std::uint32_t> gpus = {};
};

/// One stay of a job on its GPUs, for callers that draw or check a run.
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
  /// The parts of GPUs that are free while the next job requests no more than the total that is
  /// free, but not in a place that it could take; over the makespan.
  double fragmentation = 0;
  std::uint32_t preemptions = 0;
};

/// Nanoseconds of 64 bits hold arrivals up to this and runs that last a few times longer.
inline constexpr Nanoseconds kLatestSubmit(5'000'000'000'000'000'000);
inline constexpr Nanoseconds kLongestWork(300'000'000'000'000'000);   ///< 9.5 years
inline constexpr Nanoseconds kLongestRun(1'000'000'000'000'000'000);  ///< from the first arrival

/// Fails on jobs that arrive later, or take longer, than the limits above, on a fleet without GPUs,
/// on slices outside of a GPU, and on incompatible options.
Result<Outcome> run(const Fleet& fleet, std::span<const Job> jobs, const Options& options);

/// End minus arrival, against the work alone; 1 for a job without work.
double slowdown_of(const Job& job, const JobRun& run);
/// Time between arrival and end without GPUs.
Nanoseconds queued(const Job& job, const JobRun& run);

}  // namespace rehearse::fleet
