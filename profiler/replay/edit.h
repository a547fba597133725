// Edits: what-if questions about a recording; each makes one program from another.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/replay/batch_requests.h"
#include "profiler/replay/lower.h"
#include "profiler/replay/selector.h"
#include "sim/base/units.h"

namespace rehearse::replay {

/// Multiplies durations: SELECTOR:FACTOR.
struct Scale {
  Selector what;
  double factor;
};
Result<Scale> parse_scale(std::string_view text);

/// Ops, and a time of theirs: SELECTOR:DURATION.
struct Timed {
  Selector what;
  Seconds time;
};
Result<Timed> parse_timed(std::string_view text);

/// The same where the time may be absent: SELECTOR or SELECTOR:DURATION.
struct MaybeTimed {
  Selector what;
  std::optional<Seconds> time;
};
Result<MaybeTimed> parse_maybe_timed(std::string_view text);

/// A rank, by its number in the job, and the factor of the time of its work: RANK:FACTOR. Without a
/// factor, RANK:none, its work takes as long as that of the other ranks.
struct Straggler {
  std::uint32_t rank;
  std::optional<double> factor;
};
Result<Straggler> parse_straggler(std::string_view text);

/// Loads batches on worker processes instead of on the thread that uses them:
/// "workers=4,prefetch=2". Each range that `load` matches becomes work of one of `workers`, at most
/// workers x prefetch batches ahead. The recording begins in steady state: with a full queue if the
/// workers keep up with the steps, else with an empty one. If workers and the thread that uses the
/// batches outnumber the CPUs of a process, they share them. `cpus` is their number if the
/// recording does not state it; without both, CPUs are unlimited. `receive` is the time that the
/// thread takes for a batch that is ready; receive_of() gives it if it is not stated.
struct InputPipeline {
  std::uint32_t workers;
  std::uint32_t prefetch = 2;
  std::uint32_t cpus = 0;
  std::string load = std::string(kLoadingRange);
  std::optional<Seconds> receive = {};
};
/// PyTorch's loader with worker processes: 80 us where a thread has put the batch in pinned memory,
/// as is usual with a GPU (67 to 92 us in the median of recordings on three GPUs), else 640 us
/// (measured on one CPU: two tensors whose files the worker hands over). No time for other loaders,
/// whose threads pass a pointer.
Seconds receive_of(const Recording& recording, const InputPipeline& edit);
Result<InputPipeline> parse_input_pipeline(std::string_view text);
/// Whether its workers and the threads that use the batches keep all CPUs of a rank busy.
bool fills_cpus(const std::vector<Recording>& recordings, const InputPipeline& edit);

/// Each returns the edited program, with records, steps and fitted constants kept. An edit that
/// matches no op is an error that lists the available names.
Result<RecordedProgram> scale(const std::vector<Recording>& recordings, RecordedProgram program,
                              const Scale& edit);
/// Multiplies the time of every device op by its `factor`.
RecordedProgram scale_each(
    const std::vector<Recording>& recordings, RecordedProgram program,
    const std::function<double(const Recording& recording, const trace::GpuOp& op)>& factor);
/// Sets the duration of ops, and the cost of the calls that launch them, to zero.
Result<RecordedProgram> remove(const std::vector<Recording>& recordings, RecordedProgram program,
                               const Selector& edit);
/// Adds time after each op; with a pattern for work of the host, after each of its ranges.
Result<RecordedProgram> insert(const std::vector<Recording>& recordings, RecordedProgram program,
                               const Timed& edit);
/// Each op lasts this long, or each outermost range of the host that has the name, with the same
/// share for each of its parts. Fails for other targets.
Result<RecordedProgram> replace(const std::vector<Recording>& recordings, RecordedProgram program,
                                const Timed& edit);
/// The ops of the ranks without a factor take the mean time of the corresponding ops of the ranks
/// that have one or are not named (slow_ranks.h). Then the time of a rank's own work, on host and
/// device, without waiting and collectives, is multiplied by its factors. Fails if the recording
/// lacks a rank, or if no work of other ranks corresponds.
Result<RecordedProgram> straggle(const std::vector<Recording>& recordings, RecordedProgram program,
                                 const std::vector<Straggler>& edits);
Result<RecordedProgram> overlap_input(const std::vector<Recording>& recordings,
                                      RecordedProgram program, const InputPipeline& edit);

/// Device ops, by rank.
using DeviceOps = std::vector<std::set<GpuIndex>>;
/// These ops take no time and leave no gap on their streams, and their launches no time either. A
/// call that launched nothing else costs nothing; with `operators` neither does an operator.
void take_away(const std::vector<Recording>& recordings, RecordedProgram& program,
               const DeviceOps& gone, bool operators);

/// Ops that are new, or that last another time than recorded, count as extrapolated.
void mark_edited(const RecordedProgram& recorded, RecordedProgram& program);

}  // namespace rehearse::replay
