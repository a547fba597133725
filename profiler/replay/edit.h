// Edits: what-if questions about a recording; each makes one program from another.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/replay/batch_requests.h"
#include "profiler/replay/lower.h"
#include "sim/base/units.h"

namespace rehearse::replay {

/// Selects the ops of an edit. Written TARGET or TARGET=PATTERN, where `*` in the pattern matches
/// any characters: "kernel=*gemm*", "host=enumerate(DataLoader)*", "collective", "gpu".
struct Selector {
  enum class Target {
    kGpu,  ///< all device work (kernels, copies, sets, collectives) with unexplained waits for it
           ///< and its unexplained delays
    kKernel,      ///< kernels other than collectives, by their name
    kCopy,        ///< copies and sets, by their name
    kCollective,  ///< collectives, by their kind ("all_reduce") or kernel name
    kHost,        ///< work of host threads, by the name of any enclosing range
    kLaunch,      ///< the time from a launching call to the start on the device
    kProfiler,    ///< work of the profiler
  };
  Target target;
  std::string pattern;  ///< empty: every op of the target
  std::string text;     ///< as written, for messages
};

Result<Selector> parse_selector(std::string_view text);

/// Multiplies durations: SELECTOR:FACTOR.
struct Scale {
  Selector what;
  double factor;
};
Result<Scale> parse_scale(std::string_view text);

/// Adds time after each op: SELECTOR:DURATION.
struct Insert {
  Selector after;
  Seconds length;
};
Result<Insert> parse_insert(std::string_view text);

/// Loads batches on worker processes instead of on the thread that uses them:
/// "workers=4,prefetch=2". Each range that `load` matches becomes work of one of `workers`, at most
/// workers x prefetch batches ahead. The recording begins in steady state: with a full queue if the
/// workers keep up with the steps, else with an empty one.
struct InputPipeline {
  std::uint32_t workers;
  std::uint32_t prefetch = 2;
  std::string load = std::string(kLoadingRange);
};
Result<InputPipeline> parse_input_pipeline(std::string_view text);

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
Result<RecordedProgram> insert(const std::vector<Recording>& recordings, RecordedProgram program,
                               const Insert& edit);
Result<RecordedProgram> overlap_input(const std::vector<Recording>& recordings,
                                      RecordedProgram program, const InputPipeline& edit);

/// Ops that are new, or that last another time than recorded, count as extrapolated.
void mark_edited(const RecordedProgram& recorded, RecordedProgram& program);

/// An op of a rank.
struct RankOp {
  std::uint32_t rank;
  OpIndex op;
};

/// The selected ops, by rank and in their order.
std::vector<RankOp> select(const std::vector<Recording>& recordings, const RecordedProgram& program,
                           const Selector& selector);

}  // namespace rehearse::replay
