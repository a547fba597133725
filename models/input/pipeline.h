// Pipeline: feeds an accelerator. Stages of workers pass units to one another through bounded
// queues; some read from a source. docs/concepts/input.md has the laws with worked examples.
//
// A *take* is the batch of a stage: `batch` units of the previous stage. It gives `split`
// units to the next stage. A *sample* is the finest unit that flows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/estimate.h"
#include "sim/base/random.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::input {

/// The distribution of a duration.
struct ServiceTime {
  Seconds mean = Seconds::s(0);
  /// Share of the mean that is exponentially distributed; the rest is a floor. From 0 to 1.
  double exponential = 0;
  /// Deviation over mean of a lognormal distribution. Not with `exponential`.
  double lognormal = 0;
  /// Recorded times, drawn with equal chance; the mean is theirs. Not with the two above.
  std::vector<Seconds> samples = {};

  bool varies() const { return exponential > 0 || lognormal > 0 || samples.size() > 1; }
  Seconds draw(Random& random) const;
  /// The 1/30,000 quantile, or none.
  Seconds least() const;
};

/// The source from which a stage reads: an object store, a file system, a disk.
struct Source {
  std::string name = {};
  ServiceTime latency = {};                 ///< from a request to its first byte
  std::optional<ByteRate> connection = {};  ///< transfer rate of one request
  std::optional<ByteRate> total = {};       ///< total rate of concurrent reads
  std::optional<double> requests_per_s = {};
  /// The most bytes of a request. A longer read is several requests, one after another (a
  /// readahead).
  std::optional<Bytes> request = {};
  double hits = 0;  ///< share of the reads that memory serves, at rate `memory`
  std::optional<ByteRate> memory = {};
  /// Work of the reading worker for each request: connection, encryption, copy. `client_serial` is
  /// for one request of a worker at a time, as under an interpreter's lock.
  ServiceTime client = {}, client_serial = {};
  Usd request_price = Usd::usd(0);
};

struct Stage {
  std::string name = {};
  std::uint32_t workers = 1;  ///< processes
  std::uint32_t threads = 1;  ///< takes in progress per worker
  ServiceTime time = {};      ///< core time of a take
  ServiceTime serial =
      {};  ///< besides, one take at a time in a worker: an interpreter's lock, a hand-off
  std::optional<std::size_t> source = {};  ///< index
  Bytes bytes = Bytes::b(0);               ///< read per take there; with `reads`, their mean
  /// Period, in takes, of unequal reads, such as the misses of a cache. A take that
  /// reads nothing makes no request.
  std::vector<Bytes> reads = {};
  double visits = 1;          ///< visits per take: 0.1 if one take of ten is worked on here
  std::uint32_t batch = 1;    ///< units taken at a time
  std::uint32_t split = 1;    ///< units given for each take
  std::uint32_t shuffle = 0;  ///< units in a shuffle buffer before the stage
  std::optional<std::uint32_t> queue = {};  ///< units that may wait after the stage; absent: as
                                            ///< many as its threads give at a time
  bool ordered = true;  ///< the units come out in the order in which they came in
  /// Start-up time of one worker. Workers start one after another, before any of them works.
  Seconds start_up = Seconds::s(0);
  Bytes worker_memory = Bytes::b(0);
  std::uint32_t most_workers = 64, most_threads = 1;  ///< how far tuning may go
  std::optional<Bytes> unit = {};  ///< size of an output unit: the memory to cache it

  std::uint32_t slots() const { return workers * threads; }
  std::uint64_t room() const { return queue ? *queue : std::uint64_t{slots()} * split; }
};

/// The cores that all stages share. Busy cores slow each other down in proportion: when all are
/// busy, each runs at `loaded` times the speed of one alone. A second thread on every core raises
/// the total to `smt` times that. Threads go to any free core, or keep to the part of the host that
/// they are assigned to.
struct Host {
  std::uint32_t cores = 1;
  double loaded = 1;
  double smt = 1;
  std::optional<Bytes> memory = {};
  std::uint32_t numa = 1;  ///< nodes, each with as many of the cores; threads keep to theirs
  bool pinned = false;     ///< each thread keeps to one core

  std::uint32_t parts() const { return pinned ? cores : numa; }

  /// Core-seconds per second of this many busy threads.
  double capacity(double busy) const;
  /// The speed of one thread on a separate core, and with two threads per core.
  double speed(double busy) const;
  double shared_speed(double busy) const;
};

/// The fate of samples that are late for a batch of the last stage.
enum class Late : std::uint8_t {
  kKept,       ///< they count for a later batch
  kFinished,   ///< thrown away, and their workers go on with them until their end
  kAbandoned,  ///< thrown away at once: their workers are free for the next round
};
inline constexpr std::string_view kLateNames[] = {"kept", "finished", "abandoned"};

/// From the consumer back to the source: consumed samples admit new ones.
struct Loop {
  std::uint64_t in_flight = 1;  ///< samples at most, between the source and their use
  /// Unless late samples are kept, samples come in rounds: `in_flight` samples begin when the last
  /// unit is used up, and the first ones that fill its batch become the next unit.
  Late late = Late::kKept;
  /// Once the round has lasted for `wait`, this many samples suffice. Only with rounds.
  std::optional<std::uint32_t> quorum = {};
  Seconds wait = Seconds::s(0);

  bool rounds() const { return late != Late::kKept; }
};

struct Pipeline {
  std::optional<Host> host = {};
  std::vector<Source> sources = {};
  std::vector<Stage> stages = {};
  std::optional<ServiceTime> step = {};       ///< accelerator time for each unit of the last stage
  std::optional<std::uint64_t> samples = {};  ///< samples of an epoch
  std::optional<Loop> loop = {};
  std::uint64_t seed = 1;
};

/// Counts per unit of the last stage.
struct Counts {
  std::vector<double> takes;   ///< by stage
  std::vector<double> visits;  ///< takes × visits
  double samples;
};
Counts counts_of(const Pipeline& pipeline);

/// Mean time that a visit holds its thread, alone on the host; its core time, with the client's work
/// for its requests; and the part of that which one visit of a worker at a time does.
Seconds hold_time(const Pipeline& pipeline, const Stage& stage);
Seconds core_time(const Pipeline& pipeline, const Stage& stage);
Seconds locked_time(const Pipeline& pipeline, const Stage& stage);
/// The mean time to read a take, its requests, and the bytes that the source moves for it.
Seconds read_time(const Pipeline& pipeline, const Stage& stage);
double requests_of(const Pipeline& pipeline, const Stage& stage);
Bytes moved_by(const Pipeline& pipeline, const Stage& stage);
/// Requests for one read of this many bytes.
double requests_of(const Source& source, const Stage& stage, Bytes read);

/// The number of samples that must be in flight to complete a first unit of the last stage.
double least_in_flight(const Pipeline& pipeline);

/// The number of concurrent threads on the host's cores that the stages themselves, and the number
/// of samples in flight, allow.
double busy_threads(const Pipeline& pipeline);
/// The threads of a stage that need a core of the host.
std::uint32_t threads_on_cores(const Pipeline& pipeline, const Stage& stage);
/// Core-seconds per second of each part of the host, over which the threads are dealt in turn.
/// REQUIRES: there is a host.
std::vector<double> part_capacities(const Pipeline& pipeline);

}  // namespace rehearse::input
