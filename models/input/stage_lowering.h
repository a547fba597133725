// One stage of a pipeline as ops: its workers, and the parts of a visit. lower.h joins
// the stages.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/input/ends.h"
#include "models/input/lower.h"
#include "models/input/pipeline.h"
#include "sim/graph/graph.h"

namespace rehearse::input {

/// Resources shared by the stages of a pipeline.
struct Resources {
  std::vector<CapacityId> cores;  ///< by part of the host
  double core_speed = 1;
  std::vector<std::optional<CapacityId>> bandwidth;  ///< by source
  std::vector<std::optional<ServerId>> admission;
};
Resources add_resources(const Pipeline& pipeline, graph::GraphBuilder& builder);

/// The time in whole picoseconds. A heavy tail that would not fit in a run is cut.
Picoseconds whole(Seconds time);

/// An op that takes no time.
graph::Op instant(NameId name);

class StageLowering {
 public:
  /// REQUIRES: all arguments outlive this object.
  StageLowering(const Pipeline& pipeline, std::size_t index, bool spread,
                const Resources& resources, graph::GraphBuilder& builder);

  /// Adds take `take`, which begins after `after`; returns the op that ends it.
  OpId add_take(std::uint64_t take, const std::vector<OpId>& after);
  /// From here on, earlier work holds no worker.
  void free_workers();

  /// An op that waits for all of `after`, each named once or more.
  OpId add(graph::Op op, std::vector<OpId> after);

  const std::vector<Held>& work() const { return work_; }
  NameId name() const { return name_; }

 private:
  void add_resources();
  void add_start(bool spread);
  graph::Demand on_cores(std::optional<ServerId> server, std::uint32_t thread) const;
  graph::Op core_op(const ServiceTime& time, DemandId demand);
  graph::Op read_op(bool hit, Bytes bytes);
  OpId add_visit(std::vector<OpId> after);
  DemandId lock_of(std::uint32_t worker);

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
  graph::GraphBuilder& builder_;
  Random random_;
  NameId name_;
  std::uint32_t first_thread_;  // of all that the host's parts are dealt to
  Parts parts_;
  bool pooled_ = false, shared_link_ = false;
  std::optional<DemandId> admission_, read_;
  std::vector<DemandId> work_demands_;          // of each thread, where they differ
  std::vector<std::optional<DemandId>> locks_;  // of each worker, once it is used
  std::vector<InHand> threads_;
  std::vector<OpId> started_;  // of each thread
  std::vector<Held> work_;
  std::uint64_t visits_ = 0;
};

}  // namespace rehearse::input
