#include "strategies/data_parallel.h"

#include <map>
#include <optional>

#include "sim/base/check.h"
#include "sim/program/rank_builder.h"

namespace rehearse::strategies {
namespace {

using program::Gradient, program::GradientStep, program::ProgramOp, program::RankBuilder,
    program::RankProgram, program::Task;

/// Consecutive gradients that are sent together.
struct Bucket {
  Bytes size = Bytes::b(0);
  std::vector<std::uint32_t> ready;
  std::size_t last = 0;  ///< position of its last gradient in the step
};

std::vector<Bucket> fill_buckets(const std::vector<Gradient>& gradients, Bytes at_least) {
  std::vector<Bucket> buckets;
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    const Gradient& gradient = gradients[k];
    if (buckets.empty() || buckets.back().size >= at_least) buckets.emplace_back();
    Bucket& bucket = buckets.back();
    bucket.size += gradient.size;
    bucket.last = k;
    if (bucket.ready.empty() || bucket.ready.back() != gradient.ready)
      bucket.ready.push_back(gradient.ready);
  }
  return buckets;
}

/// Adds the all-reduces of one rank.
class Sums {
 public:
  Sums(program::Program& program, const DataParallelPlan& plan)
      : program_(program),
        plan_(plan),
        before_(program.programs.front()),
        builder_(before_),
        name_(program.names.intern("all_reduce of gradients")),
        slowest_(program.names.intern("the slowest rank's gradient")),
        group_(static_cast<std::uint32_t>(program.groups_of.front().size())) {
    program.groups_of.front().push_back(static_cast<std::uint32_t>(program.groups.size()));
    program.groups.push_back({"data parallel", {RankId(0)}, plan.ranks});
  }

  /// On the thread itself: between the op that completes the gradient and all later ops.
  void in_line(const GradientStep& step) {
    for (std::size_t k = 0; k < step.gradients.size(); ++k) {
      const Gradient& gradient = step.gradients[k];
      const std::uint32_t sum = add(gradient.size, before_.ops[gradient.ready].stream);
      in_line_.emplace(gradient.ready, sum);
      wait_for({gradient.ready}, k, sum);
    }
  }

  void overlapped(const GradientStep& step) {
    for (const Bucket& bucket : fill_buckets(step.gradients, plan_.bucket)) {
      const std::uint32_t sum = add(bucket.size, stream());
      wait_for(bucket.ready, bucket.last, sum);
      for (const std::uint32_t user : step.users) builder_.depend(user, sum);
    }
  }

  void build() {
    if (!in_line_.empty())
      for (std::uint32_t i = 0; i < before_.ops.size(); ++i)
        for (std::uint32_t d = before_.first_dependency[i]; d < before_.first_dependency[i + 1];
             ++d) {
          const auto [sum, end] = in_line_.equal_range(before_.dependencies[d]);
          for (auto s = sum; s != end; ++s) builder_.depend(i, s->second);
        }
    program_.programs.front() = std::move(builder_).build();
  }

 private:
  std::uint32_t add(const ProgramOp& op) {
    return before_.recorded.empty() ? builder_.add(op)
                                    : builder_.add(op, {program::Recorded::Kind::kAdded, {}});
  }
  std::uint32_t add(Bytes size, std::uint32_t stream) {
    return add(ProgramOp{.name = name_,
                         .task = Task::kCollective,
                         .duration = Picoseconds(0),
                         .bytes = size,
                         .collective = CollectiveKind::kAllReduce,
                         .group = group_,
                         .stream = stream});
  }
  std::uint32_t stream() {
    if (!stream_)
      stream_ = builder_.add(
          program::Stream{.name = program_.names.intern("communication"),
                          .number = static_cast<std::uint32_t>(before_.streams.size())});
    return *stream_;
  }

  /// Makes the all-reduce wait for these ops, or for those of the slowest rank.
  void wait_for(const std::vector<std::uint32_t>& ready, std::size_t position, std::uint32_t sum) {
    std::uint32_t target = sum;
    if (position < plan_.lateness.size() && plan_.lateness[position] > Seconds::s(0)) {
      target = add(ProgramOp{.name = slowest_,
                             .task = Task::kCollective,
                             .duration = Picoseconds::from(plan_.lateness[position]),
                             .group = group_,
                             .stream = program::kNoStream,
                             .sized = false});
      builder_.depend(sum, target);
    }
    for (const std::uint32_t op : ready) builder_.depend(target, op);
  }

  program::Program& program_;
  const DataParallelPlan& plan_;
  const RankProgram before_;
  RankBuilder builder_;
  const NameId name_, slowest_;
  const std::uint32_t group_;
  std::optional<std::uint32_t> stream_;
  std::multimap<std::uint32_t, std::uint32_t> in_line_;  // by gradient: its sum on the thread
};

}  // namespace

Status data_parallel(program::Program& program, const std::vector<GradientStep>& steps,
                     const DataParallelPlan& plan) {
  REHEARSE_CHECK(program.ranks() == 1);
  if (plan.ranks == 0) return fail("0 ranks", "1 or more");
  std::size_t gradients = 0;
  for (const GradientStep& step : steps) gradients += step.gradients.size();
  if (gradients == 0) return fail("the workload has no gradients to all-reduce");
  if (plan.ranks == 1) return {};
  Sums sums(program, plan);
  for (const GradientStep& step : steps)
    if (plan.overlap)
      sums.overlapped(step);
    else
      sums.in_line(step);
  sums.build();
  return {};
}

}  // namespace rehearse::strategies
