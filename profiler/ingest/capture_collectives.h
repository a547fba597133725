// NCCL data of a capture: communicators, the collectives in each kernel, and from both the
// collectives of the trace's kernels.
#pragma once

#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiler/capture/blocks.h"
#include "profiler/ingest/capture_lookup.h"
#include "profiler/trace/recorder.h"

namespace rehearse::ingest {

/// A collective from the bytes of one rank's argument, as NCCL counts them: the output of a
/// reduce-scatter, scatter or receive, the input of every other call, and for an all-to-all the
/// part for one peer. `name` is the call's name.
trace::Collective nccl_collective(CollectiveKind kind, std::string_view name, std::uint64_t bytes,
                                  std::optional<std::uint32_t> group_size);

/// NCCL launches a kernel and then reports its contents. Kernels are held back until all is read;
/// then each gets the collectives whose launch contains its call. One kernel may hold several,
/// which form one collective in the trace: their bytes are added if they are of one kind, otherwise
/// the kind with the most bytes represents all.
class CaptureCollectives {
 public:
  /// REQUIRES: the recorder outlives it.
  CaptureCollectives(trace::Recorder& recorder, CaptureLookup lookup)
      : recorder_(recorder), lookup_(std::move(lookup)) {}

  /// Reads the records of a block. False if it does not read their table.
  bool read(const capture::RecordsBlock& block);

  void note_group(std::uint64_t communicator, std::uint32_t ranks) {
    group_sizes_[communicator] = ranks;
  }
  std::optional<std::uint32_t> group_size(std::uint64_t communicator) const;
  /// The name of a group in traces.
  NameId group_name(std::uint64_t communicator);

  /// Holds a kernel of a communication library, to add it to the recorder at the end. False if
  /// the capture has no further data about it.
  bool hold(const trace::GpuOp& kernel);

  /// Adds the held kernels, and collectives without a kernel as ranges of the host. Sets the rank
  /// and the size of the job from the largest communicator if the environment did not state them.
  void finish();

 private:
  struct Asked {
    capture::CollectiveRecord record;
    CollectiveKind kind;
    NameId function;
    Nanoseconds start, end;
    std::optional<Nanoseconds> launch_start = {}, launch_end = {};
  };
  struct Held {
    trace::GpuOp kernel;
    Nanoseconds called;
    std::vector<const Asked*> parts;
  };

  void read(const capture::CommunicatorRecord& record);
  void read(const capture::CollectiveRecord& record);
  std::vector<Held> called_kernels();
  void tie(std::vector<Held>& kernels, std::vector<const Asked*>& left);
  void describe(Held& held);
  void add_range(const Asked& asked);
  void set_rank();
  std::optional<NameId> text(std::uint64_t number) {
    return number == 0 ? std::nullopt : lookup_.name(number);
  }

  trace::Recorder& recorder_;
  CaptureLookup lookup_;
  bool has_records_ = false;
  std::unordered_map<std::uint64_t, std::uint32_t> group_sizes_;
  std::map<std::uint64_t, std::vector<capture::CommunicatorRecord>> communicators_;
  std::vector<Asked> asked_;
  std::vector<trace::GpuOp> held_;
};

}  // namespace rehearse::ingest
