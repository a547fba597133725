// rehearse fleet: many jobs on many GPUs, under a policy.
#include "sim/fleet/fleet.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/core.h>

#include "cli/commands/catalog_names.h"
#include "cli/commands/options.h"
#include "cli/commands/shared_work.h"
#include "cli/config/job_outline.h"
#include "cli/config/named_files.h"
#include "cli/config/timed_slices.h"
#include "cli/output/document.h"
#include "sim/base/statistics.h"
#include "sim/base/text.h"
#include "sim/base/watch.h"
#include "sim/cluster/catalog.h"
#include "sim/fleet/job_list.h"
#include "sim/work/bytes.h"

namespace rehearse::cli {
namespace {

/// The basis of the rates on slices, by the number of jobs that ended on one, and the makespan with
/// the rates at either end of their intervals.
struct OnSlices {
  std::size_t by_law = 0, by_share = 0;
  Nanoseconds soonest{0}, latest{0};
};

struct FleetRun {
  fleet::JobList list;
  fleet::Fleet fleet;
  fleet::Options options;
  fleet::Outcome outcome;
  std::optional<OnSlices> on_slices = {};
};

constexpr std::size_t kRowsShown = 20;

/// A statistic over the jobs that ran.
template <class Of>
SampleSpread spread(const FleetRun& run, const Of& value) {
  std::vector<double> values;
  for (std::size_t j = 0; j < run.list.jobs.size(); ++j)
    if (run.outcome.jobs[j]) values.push_back(value(run.list.jobs[j], *run.outcome.jobs[j]));
  return rehearse::spread_of(std::move(values));
}

SampleSpread queueing(const FleetRun& run) {
  return spread(run, [](const fleet::Job& job, const fleet::JobRun& r) {
    return fleet::queued(job, r).seconds().s();
  });
}

SampleSpread slowdowns(const FleetRun& run) { return spread(run, fleet::slowdown_of); }

std::size_t never(const FleetRun& run) {
  return static_cast<std::size_t>(std::ranges::count_if(
      run.outcome.jobs, [](const std::optional<fleet::JobRun>& r) { return !r; }));
}

std::string slice_name(const FleetRun& run, const fleet::JobRun& job) {
  return job.slice ? run.fleet.slices[*job.slice].name : "";
}

/// Divided, not scaled: whole seconds stay whole.
Quantity seconds_of(Nanoseconds time) {
  return bare(Seconds::s(static_cast<double>(time.count()) / 1e9));
}

Value spread_fields(const SampleSpread& x, const Unit& unit) {
  const auto of = [&](double value) { return bare({value, unit}); };
  return {{"mean", "mean", of(x.mean)},
          {"median", "median", of(x.median)},
          {"p90", "90th percentile", of(x.p90)},
          {"worst", "worst", of(x.most)}};
}

Value job_fields(const FleetRun& run, std::size_t j) {
  const fleet::Job& job = run.list.jobs[j];
  const std::optional<fleet::JobRun>& r = run.outcome.jobs[j];
  Value one = {{"job", "job", job.name},
               {"user", "user", job.user},
               {"ran", r.has_value()},
               {"", "GPUs", job.gpus}};
  if (!r) {
    one.show("", "slice", "never fits");
    one.show("", "arrives", seconds_of(job.submit), in::kSeconds);
    return one;
  }
  one.show("slice", "slice", slice_name(run, *r));
  one.show("nodes", "nodes", r->nodes);
  one.show("submit_s", "arrives", seconds_of(job.submit), in::kSeconds);
  one.show("start_s", "starts", seconds_of(r->start), in::kSeconds, kSpan);
  one.show("end_s", "ends", seconds_of(r->end), in::kSeconds, kSpan);
  one["held_s"] = seconds_of(r->held);
  one.show("wait_s", "queued", seconds_of(fleet::queued(job, *r)), in::kSeconds);
  one.show("slowdown", "slowdown", factor(fleet::slowdown_of(job, *r)), in::kTimes);
  one.show("preemptions", "preemptions", r->preemptions);
  return one;
}

/// The document has a row per job.
Document fleet_document(const FleetRun& run) {
  const fleet::Outcome& o = run.outcome;
  Document d{.command = "fleet", .rows = "jobs", .methods = {Method::kScheduler}};
  if (!run.list.to_predict.empty()) d.methods.push_back(Method::kMessages);
  d.line(fmt::format("{} on {} ({} x {}), policy {}, placement {}",
                     counted(run.list.jobs.size(), "job"), counted(run.fleet.gpus(), "GPU"),
                     run.fleet.nodes, run.fleet.gpus_per_node,
                     fleet::kPolicyNames[static_cast<int>(run.options.policy)],
                     fleet::kPlacementNames[static_cast<int>(run.options.placement)]));
  if (const std::size_t left = never(run); left > 0)
    d.line(fmt::format("{} can never fit", counted(left, "job")));
  d["never_fits"] = never(run);
  d["gpus"] = run.fleet.gpus();
  d["policy"] = fleet::kPolicyNames[static_cast<int>(run.options.policy)];
  d["placement"] = fleet::kPlacementNames[static_cast<int>(run.options.placement)];
  d.show("makespan_s", "makespan", seconds_of(o.makespan));
  d.show("utilization", "utilization", share(o.utilization));
  d.show("fragmentation", "fragmentation", share(o.fragmentation));
  d.show("preemptions", "preemptions", o.preemptions);
  if (const auto& on = run.on_slices) {
    d["on_slices"] = {{"by_law", on->by_law},
                      {"by_share", on->by_share},
                      {"makespan_fast_s", "makespan with fast slices", seconds_of(on->soonest)},
                      {"makespan_slow_s", "makespan with slow slices", seconds_of(on->latest)}};
    d.line(fmt::format(
        "on slices: {} predicted from measured steps, {} by the share of the compute slices",
        counted(on->by_law, "job"), counted(on->by_share, "job")));
  }
  d.show("queued_s", "Queueing time", spread_fields(queueing(run), unit::kTime));
  d.show("slowdown", "Slowdown", spread_fields(slowdowns(run), unit::kFactor));
  Value jobs = Value::array();
  for (std::size_t j = 0; j < run.list.jobs.size(); ++j) jobs.push_back(job_fields(run, j));
  d.show("jobs", "Jobs", std::move(jobs), {}, first(kRowsShown));
  return d;
}

struct FleetOptions {
  std::filesystem::path jobs, journal;
  fleet::Fleet fleet = {.nodes = 1, .gpus_per_node = 8};
  fleet::Options how;
  std::string device;
  bool slices = false;
};

Result<Nanoseconds> time_of(const std::string& text) {
  const Seconds time = TRY(parse_quantity<Seconds>(text));
  if (time.s() < 0 || time.s() > 3e8)
    return fail(fmt::format("'{}' is out of range", text), "0 s to 3e8 s");
  return Nanoseconds(std::llround(time.s() * 1e9));
}

/// What a list takes from the prediction of a job file.
struct Predicted {
  Seconds step;
  Bytes memory;
  std::uint32_t ranks;
};

/// The predictions of job files, which many jobs of a list may share.
Result<std::vector<Predicted>> predict_files(const std::vector<std::filesystem::path>& files,
                                             const std::filesystem::path& list,
                                             SharedWork& shared) {
  const auto inputs = [&]() -> Result<work::Fingerprint> {
    work::Fingerprint fingerprint;
    TRY(fingerprint.add_program());
    for (const std::filesystem::path& file : files) TRY(add_with_named_files(fingerprint, file));
    return fingerprint;
  };
  const work::Evaluate predict = [&](std::size_t i) -> Result<std::string> {
    const JobOutline outline = TRY(outline_of(files[i]));
    work::Packer bytes;
    bytes.put(outline.step.s());
    bytes.put(outline.memory.b());
    bytes.put(std::uint64_t{outline.ranks});
    return bytes.take();
  };
  const work::ExecutionOptions execution =
      TRY(shared.begin("predicting jobs", "jobs of " + list.string(), inputs));
  const std::vector<std::string> all =
      TRY(work::run_all({.part = "jobs", .items = files.size(), .evaluate = predict}, execution));
  std::vector<Predicted> predicted;
  for (const std::string& bytes : all) {
    work::Unpacker from(bytes);
    const double step = from.number(), memory = from.number();
    predicted.push_back(
        {Seconds::s(step), Bytes::b(memory), static_cast<std::uint32_t>(from.count())});
  }
  return predicted;
}

/// Predicts the work, and other missing values, of jobs for which the list refers to predictions.
Status predict_works(fleet::JobList& list, const std::filesystem::path& path, SharedWork& shared) {
  if (list.to_predict.empty()) return {};
  std::vector<std::filesystem::path> files;
  for (const fleet::ToPredict& what : list.to_predict) files.push_back(what.file);
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  const std::vector<Predicted> all = TRY(predict_files(files, path, shared));
  for (const fleet::ToPredict& what : list.to_predict) {
    const auto at = std::ranges::lower_bound(files, what.file) - files.begin();
    const Predicted& predicted = all[static_cast<std::size_t>(at)];
    fleet::Job& job = list.jobs[what.job];
    const Seconds work = predicted.step * what.steps;
    if (work > fleet::kLongestWork.seconds())
      return fail(Diagnostic{
          .file = path.string(),
          .key = fmt::format("jobs[{}].steps", what.job),
          .problem = fmt::format("{:g} steps of {}", what.steps, to_string(predicted.step)),
          .expected = "at most 3e8 s"});
    job.work = Nanoseconds(std::llround(work.s() * 1e9));
    if (!what.gpus) job.gpus = predicted.ranks;
    if (!what.memory) job.memory = predicted.memory;
    if (!job.step) job.step = predicted.step;
    if (job.host && *job.host > *job.step)
      return fail(Diagnostic{
          .file = path.string(),
          .key = fmt::format("jobs[{}].host", what.job),
          .problem = fmt::format("{} is not part of the predicted step", to_string(*job.host)),
          .expected = "at most " + to_string(*job.step)});
  }
  return {};
}

/// The end of the intervals of the rates on slices.
enum class End : std::uint8_t { kLow, kValue, kHigh };

/// Rates on slices: by the law of a slice for jobs whose step and host time are known; for other
/// jobs, the share of the compute slices.
class SliceRates {
 public:
  SliceRates(const GpuSlices& slices, const std::vector<fleet::Job>& jobs) {
    for (std::size_t k = 0; k < slices.kinds.size(); ++k)
      shares_.push_back(sharing::rate_by_share(slices.device, slices.profiles[k]));
    for (const fleet::Job& job : jobs) {
      std::vector<Estimate<double>>& rates = by_job_.emplace_back();
      if (!job.step || !job.host) continue;
      for (std::size_t k = 0; k < slices.kinds.size(); ++k)
        rates.push_back(sharing::rate_by_step(*job.step, *job.host, sharing::WorkKind::kUnknown,
                                              true, slices.ratio(k), sharing::shipped_constants()));
    }
  }

  bool by_law(std::size_t job) const { return !by_job_[job].empty(); }
  double rate(std::uint32_t job, std::uint32_t kind, End end) const {
    const Estimate<double>& rate = (by_law(job) ? by_job_[job] : shares_)[kind];
    return end == End::kLow ? rate.low : end == End::kHigh ? rate.high : rate.value;
  }

 private:
  std::vector<Estimate<double>> shares_;                    // by kind
  std::vector<std::vector<Estimate<double>>> by_job_ = {};  // by kind; empty: nothing known
};

/// Runs the same list with slices at the slow and the fast end of their intervals.
Status run_ends(const SliceRates& rates, FleetRun& run) {
  OnSlices& ends = run.on_slices.emplace();
  for (std::size_t j = 0; j < run.list.jobs.size(); ++j)
    if (run.outcome.jobs[j] && run.outcome.jobs[j]->slice)
      ++(rates.by_law(j) ? ends.by_law : ends.by_share);
  // Because jobs wait for others, a faster job can make the whole list take longer.
  ends.soonest = ends.latest = run.outcome.makespan;
  for (const End end : {End::kHigh, End::kLow}) {
    fleet::Options options = run.options;
    options.rate = [&](std::uint32_t job, std::uint32_t kind) {
      return rates.rate(job, kind, end);
    };
    const fleet::Outcome outcome = TRY(fleet::run(run.fleet, run.list.jobs, options));
    ends.soonest = std::min(ends.soonest, outcome.makespan);
    ends.latest = std::max(ends.latest, outcome.makespan);
  }
  return {};
}

Result<Exit> run(const FleetOptions& options, const Globals& globals, SharedWork& shared) {
  FleetRun result;
  result.fleet = options.fleet;
  result.options = options.how;
  std::optional<GpuSlices> slices;
  if (!options.device.empty()) {
    const cluster::Gpu& gpu = *TRY(cluster::find_gpu(options.device));
    result.fleet.memory = gpu.memory;
    if (options.slices) {
      GpuSlices found = TRY(slices_of(gpu));
      result.fleet.positions = found.positions;
      result.fleet.slices = found.kinds;
      slices = std::move(found);
    }
  }
  result.list = TRY(fleet::load_jobs(options.jobs));
  TRY(predict_works(result.list, options.jobs, shared));
  if (!work::leads()) return Exit::kSuccess;
  if (result.list.jobs.empty()) return fail_in(options.jobs, "contains no job");
  std::optional<SliceRates> rates;
  if (slices) {
    rates.emplace(*slices, result.list.jobs);
    result.options.rate = [&](std::uint32_t job, std::uint32_t kind) {
      return rates->rate(job, kind, End::kValue);
    };
  }
  {
    const Watch watch(globals.progress_of("running jobs"));
    result.outcome = TRY(fleet::run(result.fleet, result.list.jobs, result.options));
    if (rates) TRY(run_ends(*rates, result));
  }
  return answer_with(globals, fleet_document(result));
}

}  // namespace

void add_fleet(CLI::App& app, Action& action) {
  auto options = std::make_shared<FleetOptions>();
  CLI::App& command = *app.add_subcommand(
      "fleet", "Simulate many jobs on many GPUs: waiting times, placement, utilization");
  add_value(command, "JOBS", "FILE", options->jobs, "list of jobs: CSV or YAML")->required();
  fleet::Fleet& fleet = options->fleet;
  add_number(command, "--nodes", fleet.nodes, 1U, 100'000U, "number of nodes")->required();
  add_number(command, "--gpus-per-node", fleet.gpus_per_node, 1U, 64U,
             "GPUs of a node (default: 8)");
  add_number(command, "--pod", fleet.nodes_per_pod, 1U, 1'000'000U,
             "nodes of a pod, for --placement rail (default: all)");
  CLI::Option* device = offer(add_value(command, "--device", "NAME", options->device,
                                        "GPU of the catalog: bounds memory, has slices"),
                              gpu_names);
  fleet::Options& how = options->how;
  add_choice(command, "--policy", how.policy, fleet::kPolicyNames,
             "fifo (default), backfill, shortest or fair");
  add_choice(command, "--placement", how.placement, fleet::kPlacementNames,
             "packed (default), spread or rail");
  command
      .add_flag("--slices", options->slices,
                "put jobs that fit on a MIG slice of the device on such a slice")
      ->needs(device);
  CLI::Option* preempt = command.add_flag("--preempt", how.preempt,
                                          "with shortest: preempt jobs with more remaining work");
  add_read(command, "--restart", "TIME", how.restart, time_of, "time to restart a preempted job")
      ->needs(preempt);
  add_read(command, "--checkpoint", "TIME", how.checkpoint, time_of,
           "work between checkpoints (default: one at each preemption)")
      ->needs(preempt);
  add_value(command, "--journal", "FILE", options->journal, kJournalHelp);
  command.footer(
      "Example: rehearse fleet examples/fleets/four_jobs.csv --nodes 1 --gpus-per-node 4 "
      "--policy backfill\n"
      "Under mpirun, all ranks share the predictions of job files.");
  command.callback([options, &action] {
    if (options->how.preempt && options->how.policy != fleet::Policy::kShortest)
      throw CLI::ValidationError("--preempt", "needs --policy shortest");
    action = shared_action(options, run);
  });
}

}  // namespace rehearse::cli
