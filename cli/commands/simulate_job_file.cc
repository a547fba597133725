// rehearse simulate JOB.yaml: predict one step of a job file.
#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "cli/commands/predicted_job.h"
#include "cli/commands/share_policy.h"
#include "cli/commands/share_result.h"
#include "cli/commands/simulate_options.h"
#include "cli/commands/step_result.h"
#include "cli/config/job_file.h"
#include "cli/globals.h"
#include "cli/output/run_events.h"
#include "sim/base/check.h"
#include "sim/base/file.h"
#include "sim/base/result.h"
#include "sim/base/text.h"
#include "sim/base/watch.h"
#include "sim/cluster/catalog.h"
#include "sim/engine/engine.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {
namespace {

using sharing::DeviceOp, sharing::Tenant, step::Step;

struct Job {
  std::filesystem::path path;
  JobFile file;
  Step step;
};

Result<Step> predict(const JobFile& file, const cluster::Cluster& cluster,
                     const SimulateOptions& options, bool unfold) {
  return step::predict(
      file.spec, cluster,
      {.fidelity = options.fidelity, .unfold = options.unfold || unfold, .counterfactuals = false});
}

/// The limits for runs in which links are shared and every rank is run: ops of all ranks of both
/// jobs, and ranks.
constexpr std::size_t kManyOps = 500'000;
constexpr std::uint32_t kManyRanks = 64;

/// Whether the same ranks represent the same other ranks in both jobs.
bool fold_alike(const Step& a, const Step& b) {
  return a.lowered.folded && b.lowered.folded && a.lowered.ranks == b.lowered.ranks &&
         a.lowered.run_of == b.lowered.run_of;
}

/// Whether every rank must be run: if ranks cannot represent each other in both jobs, or if
/// messages share links. Fails if there are too many ranks.
Result<bool> unfolds(const Step& a, const Step& b, step::Fidelity fidelity) {
  const bool many = a.job.ops() + b.job.ops() > kManyOps;
  if (!fold_alike(a, b)) {
    if (many)
      return fail(
          fmt::format("{} and {} ranks: too few of them are equivalent to be simulated as one",
                      a.job.ranks(), b.job.ranks()),
          fmt::format("jobs with the same layout, or at most {} ops over all ranks", kManyOps));
    return true;
  }
  return fidelity == step::Fidelity::kMessage && a.job.ranks() > 1 && !many &&
         a.job.ranks() <= kManyRanks;
}

/// Predicts both jobs, the second on the cluster of the first.
Result<std::array<Job, 2>> predict_both(const SimulateOptions& options) {
  JobFile own = TRY(load_job(options.job_file, options.cluster));
  JobFile other = TRY(load_job(options.sharing.shared_with, options.cluster));
  for (const auto& [path, file] :
       {std::pair(options.job_file, &own), std::pair(options.sharing.shared_with, &other)})
    if (file->input)
      return fail(
          Diagnostic{.file = path.string(),
                     .key = "input",
                     .problem = "jobs on the same devices are predicted without input stalls",
                     .expected = "job files without it"});
  const cluster::Cluster& cluster = own.cluster;
  const std::filesystem::path &path = options.job_file, &its_path = options.sharing.shared_with;
  Step a = TRY(in_file(path, predict(own, cluster, options, false)));
  Step b = TRY(in_file(its_path, predict(other, other.cluster, options, false)));
  const std::uint32_t ranks = b.job.ranks();
  if (ranks > cluster.devices().size())
    return fail_in(its_path,
                   fmt::format("the second job has {} ranks, but the cluster has {}", ranks,
                               counted(cluster.devices().size(), "device")),
                   "at least one device per rank");
  for (std::uint32_t r = 0; r < std::min(ranks, a.job.ranks()); ++r)
    if (const std::string& here = cluster.devices()[r].model,
        &there = other.cluster.devices()[r].model;
        here != there)
      return fail(Diagnostic{
          .file = its_path.string(),
          .key = "cluster",
          .problem =
              fmt::format("rank {} of the second job is on {}, but rank {} of the first is on {}",
                          r, there, r, here),
          .expected = "the same device for a rank in both jobs"});
  const bool unfold = TRY(unfolds(a, b, options.fidelity));
  if (unfold) a = TRY(in_file(path, predict(own, cluster, options, true)));
  b = TRY(in_file(its_path, predict(other, cluster, options, unfold)));
  return std::array<Job, 2>{Job{path, std::move(own), std::move(a)},
                            Job{its_path, std::move(other), std::move(b)}};
}

/// The device usage of a kernel: matrix kernels use all multiprocessors, others as many as saturate
/// the memory bandwidth.
DeviceOp kernel(std::uint32_t program, program::OpIndex op, Picoseconds duration,
                const program::DeviceWork& work, ByteRate memory) {
  const Seconds length = duration.seconds();
  if (!(length > Seconds::s(0))) return {program, op};
  const double matrix = work.matrix.seconds() / length;
  const double moving = (work.kernels - work.matrix).seconds() / length;
  return {.program = program,
          .op = op,
          .multiprocessors = std::min(1.0, matrix + sharing::kDrawAll * moving),
          .bandwidth = std::min(1.0, work.bytes / memory / length)};
}

/// Runs the program as the step alone was run. REQUIRES: the job outlives it.
sharing::AddProgram add_as(const Job& job, step::Fidelity fidelity) {
  return [&job, rules = step::rules_of(job.file.spec, fidelity)](
             const program::Program& program, bool common_links,
             program::Assembly& onto) -> Result<program::Lowered> {
    const auto run = [](const graph::Graph& graph) { return engine::run(graph); };
    if (!job.step.lowered.folded)
      return job::add(program, job.file.cluster, rules, onto, common_links);
    std::optional<job::LoweredJob> folded =
        TRY(job::add_folded(program, job.file.cluster, rules, run, onto));
    if (!folded)
      return fail(fmt::format("{}: equivalent ranks diverge when the step is repeated alongside "
                              "another job",
                              job.path.string()),
                  "--unfold, which simulates every rank");
    return std::move(*folded);
  };
}

Result<Tenant> tenant_of(const Job& job, const cluster::Cluster& cluster, step::Fidelity fidelity) {
  const job::LoweredJob& lowered = job.step.lowered;
  std::vector<DeviceOp> on_device;
  std::vector<char> seen(job.step.job.programs.size(), 0);
  for (const RankId rank : lowered.ranks) {
    const std::uint32_t number = job.step.job.program_of[rank.index()];
    const Result<const cluster::Gpu*> gpu =
        cluster::find_gpu(cluster.devices()[rank.index()].model);
    if (!gpu || seen[number]++) continue;  // the processor of a host
    const program::RankProgram& program = job.step.job.programs[number];
    const std::vector<program::ProgramOp>& ops = program.ops;
    for (std::uint32_t i = 0; i < ops.size(); ++i) {
      if (ops[i].task == program::Task::kCompute)
        on_device.push_back(
            kernel(number, i, *ops[i].duration, program.device_work_of(i), (*gpu)->memory_rate));
      if (ops[i].task == program::Task::kMemory)
        on_device.push_back(
            {.program = number, .op = i, .multiprocessors = 0, .bandwidth = 0, .host_link = 1});
    }
  }
  return sharing::make_tenant(job.path.filename().string(), job.step.job, std::move(on_device), {},
                              add_as(job, fidelity));
}

const memory::StageMemory* memory_of(const Step& step, std::uint32_t rank) {
  for (std::size_t s = 0; s < step.layout.stages.size(); ++s) {
    const workload::Stage& stage = step.layout.stages[s];
    if (rank >= stage.first_rank && rank < stage.first_rank + stage.degrees.ranks())
      return &step.memory[s];
  }
  return nullptr;
}

/// Adds to `shared` the memory of the device that both fill most. Fails if that exceeds its
/// capacity.
Status add_memory(const std::array<Job, 2>& jobs, SharedJobs& shared) {
  const memory::StageMemory *first = nullptr, *second = nullptr;
  const std::uint32_t ranks = std::min(jobs[0].step.job.ranks(), jobs[1].step.job.ranks());
  for (std::uint32_t r = 0; r < ranks; ++r) {
    const memory::StageMemory *a = memory_of(jobs[0].step, r), *b = memory_of(jobs[1].step, r);
    if (!a || !b) continue;
    if (first && a->share() + b->share() <= first->share() + second->share()) continue;
    first = a;
    second = b;
  }
  if (!first) return {};
  const Bytes usable = first->device.usable;
  if (first->peak.value + second->peak.value > usable)
    return fail(fmt::format("{} needs {} and {} {} of the {} of a {}", shared.jobs[0].name,
                            to_string(first->peak.value), shared.jobs[1].name,
                            to_string(second->peak.value), to_string(usable), first->device.name),
                "jobs that fit in its memory at the same time",
                "smaller microbatches, or one after the other");
  shared.usable = usable;
  shared.jobs[0].memory = first->peak;
  shared.jobs[1].memory = second->peak;
  if (first->peak.high + second->peak.high > usable)
    shared.notes.push_back("memory: the upper ends of both intervals together do not fit");
  return {};
}

/// Places both jobs on the devices of the first, rank r of each on device r. Fails with one line if
/// they do not fit: other devices, more devices, or more memory than there is.
Result<Exit> share_predicted(const SimulateOptions& options, const Globals& globals) {
  std::optional<Watch> watch(std::in_place, globals.progress_of("simulating"));
  const std::array<Job, 2> jobs = TRY(predict_both(options));
  watch.reset();
  const cluster::Cluster& cluster = jobs[0].file.cluster;
  SharedJobs shared{};
  shared.sharing = sharing_of(options.sharing, shared.notes);
  std::vector<Tenant> tenants;
  for (const Job& job : jobs) {
    Tenant tenant = TRY(tenant_of(job, cluster, options.fidelity));
    shared.jobs.push_back({.name = tenant.name, .alone = job.step.time});
    tenants.push_back(std::move(tenant));
  }
  shared.devices = devices_words(jobs[0].step);
  TRY(add_memory(jobs, shared));
  if (jobs[0].step.job.ranks() > 1) {
    if (jobs[0].step.lowered.folded)
      shared.notes.push_back(
          "one rank is simulated for all equivalent ranks, so the jobs do not share links; "
          "--unfold with --fidelity message shares them");
    else if (options.fidelity == step::Fidelity::kClosed)
      shared.notes.push_back(
          "with --fidelity closed, the jobs do not share links; --fidelity message shares them");
  }
  return answer_shared(globals, "simulate", options.files,
                       {options.job_file, options.sharing.shared_with}, std::move(shared), tenants,
                       [&](const graph::Timeline& timeline, TimelineSink& sink) {
                         const Step& own = jobs[0].step;
                         show_job(own.job, own.lowered, timeline, sink);
                       });
}

}  // namespace

Result<Exit> simulate_job_file(const SimulateOptions& options, const Globals& globals) {
  TRY(check_writable({options.files.perfetto}));
  if (options.sharing.asked()) return share_predicted(options, globals);
  std::optional<Watch> watch(std::in_place, globals.progress_of("simulating"));
  PredictedJob job = TRY(predict_job(options.job_file, {.cluster = options.cluster,
                                                        .slice = options.sharing.slice,
                                                        .fidelity = options.fidelity,
                                                        .unfold = options.unfold,
                                                        .changes = options.changes}));
  watch.reset();  // its line ends before others begin
  for (const Warning& warning : job.step.warnings) globals.warn(to_string(warning));
  if (globals.format != Format::kCsv || !globals.report.empty()) TRY(try_changes(job, globals));
  const step::Step& step = job.step;
  return answer_run(globals, options.files, step_document(job),
                    view_of(step.job, step.lowered, step.timeline),
                    [&] { return step_details(job, options.job_file); });
}

}  // namespace rehearse::cli
