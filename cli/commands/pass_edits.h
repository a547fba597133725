// Edits of the passes of a recorded step: their size, their number per update, and what backward
// runs again. Operators, extents and phases are those of lifting (models/workload/lift_units.h). In a
// recording without a device, operators on threads are the kernels (models/workload/host_work.h).
#pragma once

#include <string_view>

#include "cli/commands/edited_run.h"
#include "models/workload/lift_units.h"
#include "profiler/replay/selector.h"

namespace rehearse::cli {

/// A whole number from 1 to 1e9.
Result<double> parse_count(std::string_view text);
/// range=PATTERN
Result<replay::Selector> parse_range(std::string_view text);

/// What a pass computes: a number of samples, or the tokens of each.
enum class PassExtent : std::uint8_t { kSamples, kTokens };

/// Each kernel of forward and backward takes recorded × modelled time of the new extents ÷ that of
/// the recorded ones, on the recorded GPU. Messages of activations follow MessageLaw. Copies to
/// the device, and loading of samples, take time in proportion, at the low bound none more. Kernels without shapes keep their
/// time, with a warning. Fails if that is true of all, if the GPU is not in the catalog, if a message
/// between stages has no partner, and where activation_messages and workload::with_tokens do.
Result<replay::RecordedProgram> resize_passes(const ReplayJob& job, replay::RecordedProgram program,
                                              PassExtent extent, double to, Bound bound,
                                              const Globals& globals);

/// Device ops of the messages after forward that hold no activations, in order of launch. Fails where
/// activation_messages does.
Result<std::vector<replay::GpuIndex>> sums_of_gradients(const replay::Recording& recording,
                                                        const workload::lifting::StepUnits& step);
/// Whether a message is an all-reduce or a reduce-scatter.
bool adds_up(const program::ProgramOp& op);

/// The part of an update that belongs to a recorded step if an update has that many passes. By the
/// first step of the first recording.
double share_of_update(const ReplayJob& job, double passes);
/// A step becomes as many of `passes` passes as were recorded, with that share of the update and of
/// the sums of gradients. Fails if no update was recorded, and where activation_messages does.
Result<replay::RecordedProgram> accumulate(const ReplayJob& job, replay::RecordedProgram program,
                                           double passes);

/// Forward of each instance of the range runs again, on host and device, at the first backward
/// kernel of the instance, with its messages of activations. Fails if no instance has backward
/// kernels, if one already runs again, or if one has other collectives.
Result<replay::RecordedProgram> recompute_range(const ReplayJob& job,
                                                replay::RecordedProgram program,
                                                const replay::Selector& range);

/// Operators that backward of the range runs again take no time. Fails if there are none.
Result<replay::RecordedProgram> keep_range(const ReplayJob& job, replay::RecordedProgram program,
                                           const replay::Selector& range);

}  // namespace rehearse::cli
