// lift: turns one step of a recorded job into a workload, layer by layer, with the time of each
// operation. docs/concepts/lifting.md has the rules for layers, extents and tags;
// docs/concepts/recorded-plans.md those for ranks that divided the work.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/workload/workload.h"
#include "profiler/trace/trace.h"

namespace rehearse::workload {

struct LiftOptions {
  /// Samples that the recorded step computes; absent: the commonest leading extent of activations.
  std::optional<double> samples = {};
};

/// One degree of a recorded plan, and the collectives that show it.
struct FoundDegree {
  std::string_view of;  ///< "tensor", "pipeline", "chunks", "context", "expert", "data", "ZeRO"
  std::uint32_t degree;
  std::string evidence;
};

/// The plan that a job was recorded under.
struct RecordedPlan {
  std::uint32_t tensor = 1;
  std::uint32_t pipeline = 1;
  std::uint32_t chunks = 1;  ///< of a pipeline stage
  std::uint32_t context = 1;
  std::uint32_t expert = 1;  ///< divides `data`
  std::uint32_t data = 1;
  std::uint32_t zero = 0;  ///< stage of ZeRO; 3 is FSDP
  bool sequence_parallel = false;
  bool whole_experts = false;  ///< tensor ranks do not divide them, but may hold different ones
  /// Context parallelism exchanges tokens for heads; else it gathers keys and values.
  bool context_by_heads = false;
  std::vector<FoundDegree> degrees = {};  ///< those above 1, and ZeRO
  std::vector<std::string> notes = {};
  std::uint32_t ranks() const { return tensor * context * pipeline * data; }
};

/// Device time of the selected step; the parts add up to `busy`.
struct DeviceTime {
  Nanoseconds busy{0};           ///< sum over the step's device ops
  Nanoseconds layers{0};         ///< measured time of the workload's ops
  Nanoseconds copies{0};         ///< between host and device
  Nanoseconds communication{0};  ///< collectives, and the copies that framework buckets need
  Nanoseconds unknown{0};        ///< device ops without a recorded launch
  Nanoseconds overlapped{0};     ///< part of `busy` that overlaps other device ops
  double share() const { return layers / busy; }
};

struct Lifted {
  /// The whole model: shards of tensor parallelism are joined, stages follow one another, and the
  /// times of ranks with equal work are averaged. An op that was divided keeps its recorded time
  /// and extents as `measured` and `measured_for`. Ops are those of `workload.samples` samples, all of one recorded microbatch. Every op carries
  /// `measured`. Layer::step holds the recorded optimizer, split over layers by parameters.
  Workload workload;
  std::string step_name;  ///< the selected step, with the median device time
  std::size_t steps = 0;  ///< whole steps, from which the intervals come
  /// Median over the whole steps; where the host runs ahead, the period of the device.
  Seconds step = Seconds::s(0);
  DeviceTime device;
  double kernels = 0;  ///< device ops of the step
  /// Passes forward and backward in the step. The workload is one of them: that many passes, and
  /// Layer::step once, take `device.layers`.
  std::size_t microbatches = 1;
  /// The device's idle time per kernel: launch gaps, input, waiting for others.
  Seconds idle_per_kernel = Seconds::s(0);
  /// All time of the step outside the layers and their collectives, per kernel of the layers: a
  /// plan that launches as many kernels is idle for as long. Of several ranks the least, because
  /// ranks also wait for one another.
  Seconds idle_per_layer_kernel = Seconds::s(0);
  /// Whether shapes were recorded. Without shapes, ops have only times: the step can be replicated
  /// and cut between layers, but nothing can be divided by tensor parallelism or rescaled to
  /// another microbatch, and no parameters or activations are known.
  bool shapes = false;
  bool training = false;                         ///< whether there is a backward pass
  std::optional<std::uint32_t> world_size = {};  ///< ranks it was recorded on
  /// Or the reason why the recording does not tell it: then the workload is that of the first rank.
  Result<RecordedPlan> plan = RecordedPlan{};
  std::vector<std::string> notes;  ///< caveats for the reader
};

/// Lifts all ranks of the recording, which may be a part of the job: one rank of each pipeline stage
/// suffices. Ranks without a device are lifted as with_host_work_on_cores (host_work.h) returns
/// them. Other values than those of the workload and the plan are of the first rank. Fails on a
/// recording without times or without work. Callers that need shapes check `shapes`, and refuse with
/// `needs_shapes`.
Result<Lifted> lift(const trace::Trace& trace, const LiftOptions& options);

/// The error for dividing a recording without shapes, with its remedy.
tl::unexpected<Error> needs_shapes(const std::string& source, std::string_view what_for);

}  // namespace rehearse::workload
