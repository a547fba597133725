// One stage of a pipeline as ops: its workers, and the parts of a visit. lower.h joins the stages.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/input/ends.h"
#include "models/input/lower.h"
#include "models/input/pipeline.h"
#include "sim/program/rank_builder.h"

namespace rehearse::input {

/// Resources shared by the stages of a pipeline.
struct Resources {
  std::vector<std::uint32_t> cores;  ///< pools, by part of the host
  double core_speed = 1;
  std::vector<std::optional<std::uint32_t>> bandwidth;  ///< by source: a pool
  std::vector<std::optional<std::uint32_t>> admission;  ///< and a stream
};
Resources add_resources(const Pipeline& pipeline, NamePool& names, RankBuilder& builder);

/// The time in whole picoseconds. A heavy tail that would not fit in a run is cut.
Picoseconds whole(Seconds time);

class StageLowering {
 public:
  /// REQUIRES: all arguments outlive this object.
  StageLowering(const Pipeline& pipeline, std::size_t index, bool spread,
                const Resources& resources, NamePool& names, RankBuilder& builder);

  struct Take {
    OpIndex begin, end;
  };
  /// Adds take `take`, whose first op waits for `after`; returns its first and its last op.
  Take add_take(std::uint64_t take, const std::vector<OpIndex>& after);
  /// From here on, earlier work holds no worker.
  void free_workers();

  const std::vector<Held>& work() const { return work_; }
  NameId name() const { return name_; }

 private:
  void add_resources();
  void add_start(bool spread);
  program::Stream on_cores(std::uint32_t slots, std::uint32_t thread) const;
  /// An op, and its work in the pools of its stream.
  struct Part {
    program::ProgramOp op;
    double work = 0;
  };
  Part plain(Seconds time, std::uint32_t stream) const;
  Part core_op(Seconds drawn, std::uint32_t stream) const;
  Part read_op(bool hit, Bytes bytes, double requests);
  /// A draw of the stage's own work and of the client's for so many requests.
  Seconds draw(const ServiceTime& own, ServiceTime Source::*client, double requests);
  Take add_visit(std::span<const OpIndex> before);
  std::uint32_t lock_of(std::uint32_t worker);

  /// The consecutive parts of one visit.
  struct Parts {
    bool admitted = false;  // by a source that takes so many requests a second
    bool read = false, work = false, serial = false;
    int count() const { return admitted + read + work + serial; }
  };

  const Pipeline& pipeline_;
  const Stage& stage_;
  const Source* source_;
  const Resources& resources_;
  RankBuilder& builder_;
  Random random_;
  NameId name_;
  std::uint32_t first_thread_;  // of all that the host's parts are dealt to
  Parts parts_;
  bool pooled_ = false, shared_link_ = false;
  std::optional<std::uint32_t> read_;                // streams
  std::vector<std::uint32_t> work_streams_;          // of each thread, where they differ
  std::vector<std::optional<std::uint32_t>> locks_;  // of each worker, once it is used
  std::vector<InHand> threads_;
  std::vector<OpIndex> started_;  // of each thread
  std::vector<Held> work_;
  std::vector<OpIndex> after_;  // dependencies of the next part
  std::uint64_t visits_ = 0;
};

}  // namespace rehearse::input
