// Units: the operators of one recorded step that put work on the device, each with its device ops,
// its phase, and for backward the forward unit that it belongs to.
#pragma once

#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "models/workload/lift.h"
#include "models/workload/lift_operands.h"
#include "profiler/replay/recording.h"
#include "profiler/replay/steps.h"

namespace rehearse::workload::lifting {

using replay::GpuIndex;
using replay::HostIndex;
using replay::Recording;

enum class Phase { kForward, kBackward, kRecompute, kOptimizer };

struct Unit {
  HostIndex op;  ///< the operator; the launching call where no operator was recorded
  std::string_view name;
  Phase phase;
  Nanoseconds start;
  Nanoseconds time{0};  ///< time of its device ops
  std::vector<GpuIndex> device = {};
  std::vector<Operand> operands = {};
  /// In backward: the innermost enclosing backward operator, or the previous one if there is none
  /// (the sum of a gradient).
  std::optional<HostIndex> node = {};
  /// The forward unit, by index, of a backward or recomputed unit.
  std::optional<std::size_t> forward = {};
  /// In forward: the chunk of the pipeline stage.
  std::uint32_t chunk = 0;
  std::uint32_t ring = 1;   ///< of attention: ranks around which its keys and values are passed
  std::uint32_t parts = 1;  ///< of attention in a ring: recorded operators for the keys of one rank
};

/// A gradient that backward gave to a parameter.
struct Gradient {
  Operand parameter;
  std::optional<std::size_t> unit;  ///< in backward, the last unit before it
};

/// A device op of a collective, or a copy that buckets of gradients need.
struct Message {
  GpuIndex op;
  Phase phase;
};

/// Messages that pass keys and values of attention around ranks.
struct Ring {
  std::set<GpuIndex> messages = {};
  std::vector<std::uint32_t> members = {};  ///< ascending; empty if not all are recorded
  std::uint32_t ranks = 0;                  ///< 0: not recorded, or contradictory
};

struct StepUnits {
  /// In order of start. With several microbatches, the units of the first with the time of all.
  std::vector<Unit> units;
  std::size_t microbatches = 1;
  std::uint32_t chunks = 1;  ///< of an interleaved pipeline stage
  std::vector<Gradient> gradients;
  std::vector<Message> messages;  ///< of all microbatches, in order of launch
  Ring ring = {};
  DeviceTime device;  ///< `layers` is the time of the units
  double kernels = 0;
  Nanoseconds first{0}, last{0};  ///< of its device ops
};

/// The units of the device ops launched in the step. Copies between host and device and
/// communication are counted separately.
StepUnits find_units(const Recording& recording, const replay::Step& step);

/// Backward operators carry the sequence number of the forward one and a thread other than 0.
bool is_backward_node(const Recording& recording, const trace::HostOp& op);

/// Operators recorded while gradients were to be computed carry a number; their thread is absent or
/// 0.
bool is_forward_node(const trace::HostOp& op);

/// The enclosing host ops on its thread, outermost first, itself last.
std::vector<HostIndex> chain_of(const Recording& recording, HostIndex op);

std::vector<Operand> operands_of(const Recording& recording, const trace::HostOp& op);

}  // namespace rehearse::workload::lifting
