// Space: all the plans of a job on a number of ranks, in sequence.
//
// A plan is included if degrees, batches and layers divide (check_plan.h). A cost model decides
// whether it fits into memory. Values without effect are omitted: ZeRO without data parallelism,
// schedules of one stage, recomputation of activations that are not saved. The order is fixed, so
// that a number names a plan: threads, processes and machines exchange numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/workload/workload.h"
#include "sim/base/result.h"
#include "strategies/plan.h"

namespace rehearse::strategies {

/// The values that each axis may take. Empty: all values that divide.
struct Axes {
  std::vector<std::uint32_t> data = {};
  std::vector<std::uint32_t> tensor = {};
  std::vector<std::uint32_t> pipeline = {};
  std::vector<std::uint32_t> context = {};
  std::vector<std::uint32_t> expert = {};
  std::vector<std::uint32_t> interleave = {};
  std::vector<double> microbatch = {};  ///< empty: powers of two
  std::vector<Schedule> schedule = {};
  std::vector<std::uint32_t> zero = {};
  std::vector<Recompute> recompute = {};
  std::vector<Offload> offload = {};
  bool tiers_given = false;  ///< the job names the tiers of its states
  std::vector<Placement> placement = {};
  /// Absent: wherever tensor parallelism leaves tokens to divide.
  std::optional<bool> sequence_parallel = {};
  /// Empty: no named algorithm, and also two_dimensional if a group has several ranks on several
  /// nodes.
  std::vector<std::optional<Algorithm>> all_to_all = {};
  /// Not part of the space: a search may try others on its best plans where these are empty.
  std::vector<std::optional<Algorithm>> all_reduce = {}, all_gather = {}, reduce_scatter = {};
  std::uint32_t ranks_per_node = 0;  ///< 0: all on one node
};

class Space {
 public:
  /// Plans that use all `ranks`, including parameter servers. Values that are not axes come from
  /// `training` and `plan`; a plan with explicit stages keeps their degrees. If nothing can be laid
  /// out, fails with one line: the first reason, and the largest smaller number of ranks that
  /// works.
  static Result<Space> of(const workload::Workload& workload, const Training& training,
                          const Plan& plan, std::uint32_t ranks, const Axes& axes);

  std::uint64_t size() const { return shapes_.size(); }
  /// REQUIRES: below size().
  Candidate at(std::uint64_t index) const;

 private:
  /// A plan in few bytes, because there are a million.
  struct Shape {
    double microbatch;
    std::uint32_t data, tensor, pipeline, context, expert, interleave;
    Schedule schedule;
    std::uint8_t zero;
    Recompute recompute;
    std::optional<Offload> offload;  ///< absent: the tiers of the job
    Placement placement;
    bool sequence_parallel;
    std::optional<Algorithm> all_to_all;
  };
  class Enumeration;

  Space(const Training& training, const Plan& plan) : training_(training), plan_(plan) {}
  static Candidate candidate(const Training& training, const Plan& plan, const Shape& shape);

  Training training_;
  Plan plan_;
  std::vector<Shape> shapes_ = {};
};

}  // namespace rehearse::strategies
