#include "cli/commands/networking.h"

#include <map>
#include <memory>

#include <fmt/core.h>

#include "models/job/group_network.h"
#include "models/job/roofline.h"
#include "profiler/replay/gradients.h"
#include "profiler/replay/selector.h"
#include "sim/base/yaml.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/engine.h"
#include "sim/program/lower.h"
#include "strategies/data_parallel.h"
#include "strategies/stragglers.h"

namespace rehearse::cli {

bool is_inline_link(std::string_view text) { return text.find('=') != std::string_view::npos; }

namespace {

/// Collectives on the first devices of a cluster.
class OnFirstDevices {
 public:
  explicit OnFirstDevices(cluster::Cluster cluster)
      : cluster_(std::move(cluster)), schedules_(cluster_, rules_) {}

  Result<Seconds> time(CollectiveKind kind, std::uint32_t ranks, Bytes size) {
    if (ranks < 2) return Seconds::s(0);
    if (ranks > cluster_.devices().size())
      return fail(fmt::format("a collective of {} ranks on a cluster of {} devices", ranks,
                              cluster_.devices().size()),
                  "at least one device per rank");
    auto known = groups_.find({kind, ranks});
    if (known == groups_.end()) {
      std::vector<DeviceId> devices;
      for (std::uint32_t i = 0; i < ranks; ++i) devices.emplace_back(i);
      job::GroupSchedule group = TRY(schedules_.of(kind, devices));
      known = groups_.emplace(std::pair(kind, ranks), std::move(group)).first;
    }
    return known->second.price(size).value;
  }

 private:
  const cluster::Cluster cluster_;
  const job::Rules rules_{.calibrated = true};
  job::Schedules schedules_;
  std::map<std::pair<CollectiveKind, std::uint32_t>, job::GroupSchedule> groups_;
};

}  // namespace

Status check_link(const std::string& text) {
  if (is_inline_link(text)) TRY(cluster::parse_link(text));
  return {};
}

Result<cluster::PointToPoint> read_link(const std::string& text) {
  if (is_inline_link(text)) return cluster::parse_link(text);
  if (!std::filesystem::exists(text))
    return fail_in(text, "cannot be read: No such file or directory",
                   "a link file, or numbers such as latency=5us,rate=100GB/s");
  return cluster::load_link(text);
}

Result<comm::CollectiveTime> parse_network(const std::string& text) {
  if (is_inline_link(text)) return comm::on_link(TRY(read_link(text)));
  const Result<YamlFile> file = YamlFile::load(text);
  if (!file || !file->root().has("cluster")) return comm::on_link(TRY(read_link(text)));
  cluster::Cluster cluster = TRY(cluster::load_cluster(text));
  return [on = std::make_shared<OnFirstDevices>(std::move(cluster))](
             CollectiveKind kind, std::uint32_t ranks, Bytes size) {
    return on->time(kind, ranks, size);
  };
}

Result<replay::RecordedProgram> data_parallel(const ReplayJob& job, replay::RecordedProgram program,
                                              std::uint32_t ranks, Bytes bucket,
                                              const comm::CollectiveTime& network) {
  const std::string& source = job.recordings.front().rank().info.source;
  if (job.recordings.size() != 1)
    return fail_in(source,
                   fmt::format("is one of {} ranks, so the job is already data-parallel",
                               job.recordings.size()),
                   "a job file with `workload: {recording: …}` and `plan: {data: N}`");
  if (const auto& communication = program.replays.front().communication; !communication.empty())
    return fail_in(
        source, fmt::format("already communicates, in {} collectives", communication.size()),
        "a recording of a single-rank job, or a job file with `workload: {recording: …}` "
        "and `plan: {data: N}`; --network changes the collectives of this recording");
  const replay::Gradients gradients =
      TRY(replay::find_gradients(job.recordings.front(), program.replays.front()));
  const program::Lowered lowered = TRY(program::lower(program));
  const graph::Timeline alone = TRY(engine::run(lowered.graph));
  const bool overlap = gradients.overlapped;
  TRY(strategies::data_parallel(
      program, gradients.steps,
      {.ranks = ranks,
       .bucket = bucket,
       .overlap = overlap,
       .lateness = strategies::lateness(gradients.steps, alone, ranks, overlap)}));
  TRY(job::price(program, network));
  return program;
}

Result<replay::RecordedProgram> on_network(const ReplayJob& job, replay::RecordedProgram program,
                                           const comm::CollectiveTime& network,
                                           const Globals& globals) {
  std::size_t all = 0;
  for (std::uint32_t rank = 0; rank < program.programs.size(); ++rank)
    for (program::OpIndex i = 0; i < program.programs[rank].ops.size(); ++i)
      if (program.programs[rank].ops[i].task == program::Task::kCollective &&
          !replay::is_gone(program, {rank, i}))
        ++all;
  const std::size_t priced = TRY(job::price(program, network));
  if (priced == 0)
    return fail_in(
        job.recordings.front().rank().info.source,
        all > 0 ? fmt::format("has {} collectives whose size and ranks were not recorded", all)
                : std::string("has no collectives for a network"),
        "collectives with their size, or --data-parallel N to add them");
  if (priced < all)
    globals.warn(
        fmt::format("{} collectives keep their recorded time: their size or ranks are not recorded",
                    all - priced));
  return program;
}

}  // namespace rehearse::cli
