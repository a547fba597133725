// The recordings of a job as lifting reads them, for edits that find operators by their phase.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "cli/commands/replay_job.h"
#include "models/workload/host_work.h"
#include "profiler/replay/lower.h"

namespace rehearse::cli {

inline bool is_host_work(const program::Recorded& recorded) {
  return (recorded.kind == program::Recorded::Kind::kHost ||
          recorded.kind == program::Recorded::Kind::kCall) &&
         recorded.row;
}

/// The recordings as lifting reads them: work of a host without a device is that of its cores.
class Work {
 public:
  explicit Work(const ReplayJob& job)
      : job_(job), cores_(workload::with_host_work_on_cores(*job.trace)) {
    for (std::size_t rank = 0; rank < job.recordings.size(); ++rank)
      recordings_.emplace_back(cores_ ? *cores_ : *job.trace, rank);
  }

  const replay::Recording& operator[](std::size_t rank) const { return recordings_[rank]; }
  bool on_cores(std::size_t rank) const {
    return job_.recordings[rank].streams().empty() && !recordings_[rank].streams().empty();
  }
  /// The host op whose work a device op of the cores is.
  replay::HostIndex host(std::size_t rank, replay::GpuIndex i) const {
    return *recordings_[rank].parent(*recordings_[rank].launcher(i));
  }

  /// Multiplies the durations of host work in the operators and ranges; the innermost one counts.
  void scale(replay::RecordedProgram& program, std::uint32_t rank,
             const std::map<replay::HostIndex, double>& factors) const {
    program::RankProgram& of = program.programs[rank];
    for (program::OpIndex i = 0; i < of.ops.size(); ++i) {
      if (!is_host_work(of.recorded[i])) continue;
      for (std::optional<replay::HostIndex> op = of.recorded[i].row; op;
           op = job_.recordings[rank].parent(*op))
        if (const auto found = factors.find(*op); found != factors.end()) {
          of.ops[i].duration = *of.ops[i].duration * found->second;
          break;
        }
    }
  }

  /// Multiplies the durations of device ops of a rank.
  void scale_device(replay::RecordedProgram& program, std::uint32_t rank,
                    const std::map<replay::GpuIndex, double>& factors) const {
    if (on_cores(rank)) {
      std::map<replay::HostIndex, double> of_host;
      for (const auto& [i, factor] : factors) of_host.emplace(host(rank, i), factor);
      return scale(program, rank, of_host);
    }
    program::RankProgram& of = program.programs[rank];
    for (program::OpIndex i = 0; i < of.ops.size(); ++i) {
      const program::Recorded& recorded = of.recorded[i];
      if (recorded.kind != program::Recorded::Kind::kDevice || !recorded.row) continue;
      if (const auto found = factors.find(*recorded.row); found != factors.end())
        of.ops[i].duration = *of.ops[i].duration * found->second;
    }
  }

  /// The op of the program that ends with a device op.
  program::OpIndex last(const replay::RecordedProgram& program, std::size_t rank,
                        replay::GpuIndex i) const {
    const replay::RankReplay& replay = program.replays[rank];
    return on_cores(rank) ? *replay.host_last[host(rank, i)] : replay.device_last[i];
  }

 private:
  const ReplayJob& job_;
  std::optional<trace::Trace> cores_;
  std::vector<replay::Recording> recordings_;
};

}  // namespace rehearse::cli
