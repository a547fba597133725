#include "models/store/full_graph.h"

#include "sim/base/check.h"
#include "sim/program/rank_builder.h"

namespace rehearse::store {
namespace {

using program::ProgramOp;
using program::Task;

struct Names {
  NameId lend, borrow, sum, multiply, gradients;
};

class WorkerProgram {
 public:
  WorkerProgram(const Halo& halo, const GraphNetwork& network, std::uint32_t worker,
                const Names& names)
      : halo_(halo), network_(network), worker_(worker), names_(names) {
    held_ = static_cast<double>(halo.held[worker]);
    neighbours_ = static_cast<double>(halo.reads[worker]);
  }

  program::RankProgram made() {
    const std::size_t layers = network_.widths.size() - 1;
    for (std::size_t l = 0; l < layers; ++l) {
      exchange(l, true);
      sum(l);
      multiply(l, 1);
    }
    for (std::size_t l = layers; l-- > 0;) {
      multiply(l, l > 0 ? 2 : 1);  // gradients of the matrix and, except for data, of its inputs
      if (l == 0) continue;
      sum(l);
      exchange(l, false);
    }
    if (halo_.workers > 1) {
      double parameters = 0;
      for (std::size_t l = 0; l < layers; ++l) parameters += width(l) * width(l + 1);
      add({.name = names_.gradients,
           .task = Task::kCollective,
           .bytes = network_.value * parameters,
           .collective = CollectiveKind::kAllReduce});
    }
    return std::move(program_);
  }

 private:
  double width(std::size_t l) const { return network_.widths[l]; }

  /// Adds an op that waits for `after_`, and on which the next op waits.
  void add(const ProgramOp& op) { after_ = {program::append(program_, op, after_)}; }

  void sum(std::size_t l) {
    add({.name = names_.sum,
         .task = Task::kCompute,
         .flops = Flops::flop(neighbours_ * width(l)),
         .bytes = network_.value * ((neighbours_ + held_) * width(l))});
  }
  void multiply(std::size_t l, double times) {
    add({.name = names_.multiply,
         .task = Task::kCompute,
         .flops = Flops::flop(times * 2 * held_ * width(l) * width(l + 1)),
         .bytes = network_.value * (times * held_ * (width(l) + width(l + 1)))});
  }

  /// Values go to the workers that read them; gradients come back from them.
  void exchange(std::size_t l, bool forward) {
    std::vector<std::uint32_t> came;
    const auto tag = static_cast<std::uint32_t>(2 * l + (forward ? 0 : 1));
    const auto keys = [&](std::uint32_t from, std::uint32_t to) {
      return forward ? halo_.of(to, from) : halo_.of(from, to);
    };
    for (const Task task : {Task::kSend, Task::kReceive})
      for (std::uint32_t other = 0; other < halo_.workers; ++other) {
        if (other == worker_) continue;
        const bool send = task == Task::kSend;
        const std::uint64_t moved = send ? keys(worker_, other) : keys(other, worker_);
        if (moved == 0) continue;
        const program::OpIndex op =
            program::append(program_,
                            {.name = send ? names_.lend : names_.borrow,
                             .task = task,
                             .bytes = network_.value * (static_cast<double>(moved) * width(l)),
                             .peer = other < worker_ ? other : other - 1,
                             .tag = tag},
                            after_);
        if (!send) came.push_back(op);
      }
    // Its own values are available as well.
    came.insert(came.begin(), after_.begin(), after_.end());
    after_ = std::move(came);
  }

  const Halo& halo_;
  const GraphNetwork& network_;
  std::uint32_t worker_;
  Names names_;
  double held_ = 0, neighbours_ = 0;
  program::RankProgram program_;
  std::vector<std::uint32_t> after_;
};

}  // namespace

Bytes exchanged(const Halo& halo, const GraphNetwork& network) {
  double values = 0;  // of a key, on its way once each way; data go one way
  for (std::size_t l = 0; l + 1 < network.widths.size(); ++l)
    values += network.widths[l] * (l > 0 ? 2.0 : 1.0);
  return network.value * (static_cast<double>(halo.total()) * values);
}

program::Program full_graph_step(const Halo& halo, const GraphNetwork& network) {
  REHEARSE_CHECK(network.widths.size() >= 2);
  program::Program job;
  const Names names{.lend = job.names.intern("lend"),
                    .borrow = job.names.intern("borrow"),
                    .sum = job.names.intern("sum over neighbours"),
                    .multiply = job.names.intern("multiply"),
                    .gradients = job.names.intern("sum gradients")};
  std::vector<RankId> all;
  for (std::uint32_t w = 0; w < halo.workers; ++w) all.push_back(RankId(w));
  if (halo.workers > 1) job.groups.push_back({.name = "workers", .members = all});
  for (std::uint32_t w = 0; w < halo.workers; ++w) {
    job.programs.push_back(WorkerProgram(halo, network, w, names).made());
    job.program_of.push_back(w);
    job.groups_of.emplace_back();
    if (halo.workers > 1) job.groups_of.back().push_back(0);
    std::vector<RankId> others = all;
    others.erase(others.begin() + w);
    job.peers_of.push_back(std::move(others));
  }
  return job;
}

}  // namespace rehearse::store
