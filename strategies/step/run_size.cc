#include "strategies/step/run_size.h"

#include <map>
#include <utility>
#include <vector>

#include "models/job/group_network.h"

namespace rehearse::step {
namespace {

using program::ProgramOp;
using program::Task;

// Processor time of SimGrid 3.32 (docs/performance.md): for the start, per op, per message, and per
// message and rank, since every rank may have one in transit.
constexpr double kStart = 0.03, kPerOp = 0.1e-6, kPerMessage = 1e-6, kPerMessageAndRank = 4e-9;
// Processor time of predict(): to lay out, for an op in two runs, for a message in one of them.
constexpr double kLayOut = 2e-3, kOwnOp = 1e-6, kOwnMessage = 0.3e-6, kOwnMessageAndRank = 1e-9;

}  // namespace

Seconds RunSize::by_messages() const {
  return Seconds::s(kLayOut + kOwnOp * ops + messages * (kOwnMessage + kOwnMessageAndRank * ranks));
}

Seconds RunSize::on_simgrid() const {
  return Seconds::s(kStart + kPerOp * ops + messages * (kPerMessage + kPerMessageAndRank * ranks));
}

Result<RunSize> run_size(const program::Program& job, const Algorithms& algorithms,
                         const cluster::Cluster& cluster) {
  const job::Rules rules{.algorithms = algorithms, .calibrated = true};
  job::Schedules schedules(cluster, rules);
  std::vector<std::uint32_t> ranks(job.programs.size(), 0), first(job.programs.size(), 0);
  for (std::uint32_t r = job.ranks(); r-- > 0;) {
    ++ranks[job.program_of[r]];
    first[job.program_of[r]] = r;
  }
  RunSize size{.ranks = job.ranks()};
  for (std::size_t p = 0; p < job.programs.size(); ++p) {
    if (ranks[p] == 0) continue;
    std::map<std::pair<std::uint32_t, CollectiveKind>, double> of_rank;  // messages of a rank
    double messages = 0;
    for (const ProgramOp& op : job.programs[p].ops) {
      if (op.task == Task::kSend) messages += 1;
      if (op.task != Task::kCollective) continue;
      const auto [known, fresh] = of_rank.try_emplace({op.group, op.collective}, 0);
      if (fresh) {
        // Groups of one number are alike on all ranks of a program.
        const auto& members = job.groups[job.groups_of[first[p]][op.group]].members;
        if (members.size() > 1) {
          std::vector<DeviceId> devices;
          devices.reserve(members.size());
          for (const RankId rank : members) devices.push_back(DeviceId(rank.index()));
          const auto sent = TRY(schedules.messages(op.collective, devices, op.bytes));
          known->second =
              static_cast<double>(sent.flows->messages()) / static_cast<double>(members.size());
        }
      }
      messages += known->second;
    }
    size.ops += static_cast<double>(job.programs[p].ops.size()) * ranks[p];
    size.messages += messages * ranks[p];
  }
  return size;
}

}  // namespace rehearse::step
