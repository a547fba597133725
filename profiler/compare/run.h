// A run: the measurements of one recording, step by step and op by op, for a comparison.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiler/replay/energy.h"
#include "profiler/replay/recording.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::compare {

enum class OpKind { kKernel, kCollective, kCopy, kSet, kHost };
std::string_view to_string(OpKind kind);

/// Work that recurs in every step: its name, origin and shape.
struct OpSlot {
  OpKind kind;
  std::string name;   ///< of the kernel, the copy, the host op
  std::string from;   ///< the operator that launched it; of a host op, its enclosing op
  std::string layer;  ///< the range around that, if there is one
  std::string shapes;
  std::string grid;           ///< launch shape, or bytes of a copy
  double place = 0;           ///< its position in a step, from 0 to 1
  double calls = 0;           ///< per rank, in an average step
  std::vector<double> times;  ///< s, by step: mean over ranks. Host ops: self time
};

/// Quantities by step are means over ranks; energy is a sum. A step is whole, and lasts as long as
/// the longer of its host and device periods (docs/concepts/trace.md).
struct Run {
  std::string source;       ///< for people
  std::string commit = {};  ///< of the program, if the recording has it
  std::size_t ranks = 0;
  std::vector<std::string> devices = {};  ///< that did work, each name once, sorted; may be empty
  std::string_view steps_from;            ///< source of the steps
  std::vector<double> step_time = {};     ///< s

  /// Parts of the step by activity of the devices, s; empty without device activity.
  std::vector<double> compute = {}, exposed_communication = {}, copies = {}, launch_gaps = {};
  std::vector<double> energy = {};   ///< J; empty if power was not read throughout
  std::optional<Bytes> memory = {};  ///< peak of any rank, if it was recorded
  std::vector<OpSlot> slots = {};    ///< sorted by kind, then by what they are
  /// The step intervals of each rank; empty for a run that was stored without its recording.
  std::vector<std::vector<replay::StepSpan>> windows = {};
  bool incomplete = false;  ///< the recording lacks records: steps after the first gap are left out
  std::size_t steps() const { return step_time.size(); }
};

/// Whether a trace lacks records, according to its problems: it is truncated, a part of it is
/// unreadable, or the profiler lost some.
bool lacks_records(const trace::Trace& trace);

/// Fails if the recording has no times, no ops, or fewer than two whole steps. In an `incomplete`
/// one, a step counts only as long as everything active in the first step is still active: every
/// thread and stream does something in a later step. REQUIRES: recordings of one aligned trace.
Result<Run> measure_run(const std::vector<replay::Recording>& recordings, std::string source,
                        bool incomplete = false);

}  // namespace rehearse::compare
