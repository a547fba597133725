#include "tests/validation/studies/sharing/slice_accuracy.h"

#include <algorithm>
#include <functional>

#include <fmt/core.h>

#include "models/sharing/slice_rate.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using sharing::JobLaw;
using sharing::SliceConstants;
using sharing::TimedJob;

std::string row_name(const SlicedJob& job, const SlicedStep& step) {
  return fmt::format("{} on {}, {} {}", job.name, job.device.profile(step.profile).name,
                     job.over_sequences ? "sequence" : "batch", step.size);
}

SliceRow compared(const SlicedJob& job, const SlicedStep& step,
                  const Estimate<Seconds>& predicted) {
  return {.name = row_name(job, step),
          .job = job.name,
          .profile = job.device.profile(step.profile).name,
          .error = predicted.value / *step.time - 1,
          .covered = predicted.low <= *step.time && *step.time <= predicted.high};
}

std::vector<const SlicedJob*> over_batches(const std::vector<SlicedJob>& jobs) {
  std::vector<const SlicedJob*> found;
  for (const SlicedJob& j : jobs)
    if (!j.over_sequences) found.push_back(&j);
  return found;
}

/// Constants of the batch sweeps that `keep` wants.
Result<SliceConstants> constants_of(const std::vector<SlicedJob>& jobs,
                                    const std::function<bool(const SlicedJob&)>& keep) {
  std::vector<TimedJob> kept;
  for (const SlicedJob* j : over_batches(jobs))
    if (keep(*j)) kept.push_back(j->timed());
  return sharing::fit_constants(kept);
}

/// Steps on slices but `without`, by this law.
void add_slices(SliceCase& c, const SlicedJob& job, const JobLaw& law,
                std::optional<std::uint32_t> without = {}) {
  for (const SlicedStep& s : job.steps)
    if (s.time && s.profile != job.device.whole && s.profile != without)
      c.rows.push_back(compared(
          job, s, sharing::predict(law, sharing::ratio_of(job.device, s.profile), s.size)));
}

/// From the whole GPU alone: jobs that say what the GPU takes, and those that do not.
Status add_whole(const std::vector<SlicedJob>& jobs, SliceAccuracy& accuracy) {
  SliceCase clear = {.name = "whole GPU alone",
                     .about =
                         "sweeps of batches on 7g that at least double; constants of the other "
                         "jobs",
                     .rows = {}};
  SliceCase flagged = {.name = "whole GPU alone, flagged",
                       .about =
                           "sweeps that do not double: the program says so, widens the "
                           "interval and asks for one run on the smallest slice",
                       .rows = {}};
  for (const SlicedJob* job : over_batches(jobs)) {
    const Result<SliceConstants> constants =
        constants_of(jobs, [&](const SlicedJob& other) { return other.name != job->name; });
    if (!constants) return forward(constants);
    const auto law = TRY(
        sharing::fit_whole(job->points(job->device.whole), job->kind, job->training, *constants));
    SliceCase& c = law.identified ? clear : flagged;
    add_slices(c, *job, law);
    c.fitted += job->points(job->device.whole).size();
  }
  accuracy.cases.push_back(std::move(clear));
  accuracy.cases.push_back(std::move(flagged));
  return {};
}

/// From the whole GPU and the smallest slice to the others.
Status add_two(const std::vector<SlicedJob>& jobs, bool of_family, SliceAccuracy& accuracy) {
  SliceCase c = {
      .name = of_family ? "whole GPU and one slice, another family" : "whole GPU and one slice",
      .about = of_family ? "the same with constants of the other families (text, vision, MISO)"
                         : "sweeps on 7g and on the smallest slice that was run; constants of "
                           "the other jobs",
      .rows = {}};
  for (const SlicedJob* job : over_batches(jobs)) {
    const std::vector<std::uint32_t> slices = job->slices();
    if (slices.size() < 2) continue;
    const Result<SliceConstants> constants = constants_of(jobs, [&](const SlicedJob& other) {
      return of_family ? other.family != job->family : other.name != job->name;
    });
    if (!constants) return forward(constants);
    const auto law = TRY(sharing::fit_with_slice(
        job->points(job->device.whole), sharing::ratio_of(job->device, slices.front()),
        job->points(slices.front()), job->kind, job->training, *constants));
    add_slices(c, *job, law, slices.front());
    c.fitted += job->points(job->device.whole).size() + job->points(slices.front()).size();
  }
  accuracy.cases.push_back(std::move(c));
  return {};
}

Status add_sequences(const std::vector<SlicedJob>& jobs, SliceAccuracy& accuracy) {
  SliceCase c = {.name = "sequences, whole GPU alone",
                 .about =
                     "sweeps of sequence lengths at batch 32 on 7g; constants of the batch "
                     "sweeps of other models",
                 .rows = {}};
  for (const SlicedJob& job : jobs) {
    if (!job.over_sequences || job.points(job.device.whole).size() < 3) continue;
    const Result<SliceConstants> constants = constants_of(
        jobs, [&](const SlicedJob& other) { return !job.name.starts_with(other.name); });
    if (!constants) return forward(constants);
    const auto fit = TRY(
        sharing::fit_sequence(job.points(job.device.whole), job.kind, job.training, *constants));
    for (const SlicedStep& s : job.steps)
      if (s.time && s.profile != job.device.whole)
        c.rows.push_back(
            compared(job, s,
                     sharing::predict(fit.law, sharing::ratio_of(job.device, s.profile),
                                      fit.size_of(s.size))));
    c.fitted += job.points(job.device.whole).size();
  }
  accuracy.cases.push_back(std::move(c));
  return {};
}

sharing::DescribedRuns runs_of(const SlicedJob& job) {
  sharing::DescribedRuns runs = {
      .job = *job.described, .gpu = job.device.gpu, .host = job.fast_host ? 0U : 1U, .steps = {}};
  for (const SlicedStep& s : job.steps)
    if (s.time)
      runs.steps.push_back({sharing::ratio_of_gpu(job.device, s.profile), s.size, *s.time});
  return runs;
}

void add_unmeasured(const std::vector<SlicedJob>& jobs, SliceAccuracy& accuracy) {
  SliceCase c = {.name = "nothing measured",
                 .about =
                     "FLOPs, bytes and launches of the layers, the datasheet of the GPU, and "
                     "constants of the other jobs, the host's among them",
                 .rows = {}};
  std::vector<sharing::DescribedRuns> all;
  for (const SlicedJob& job : jobs) {
    if (!job.described) continue;
    all.push_back(runs_of(job));
    std::vector<sharing::DescribedRuns> others;
    for (const SlicedJob& other : jobs)
      if (other.described && other.name != job.name) others.push_back(runs_of(other));
    const sharing::UnmeasuredFit fit = sharing::fit_unmeasured(others);
    sharing::UnmeasuredConstants constants = fit.constants;
    constants.host = fit.hosts[job.fast_host ? 0 : 1];
    const JobLaw law = sharing::describe(*job.described, *job.device.gpu, constants);
    for (const SlicedStep& s : job.steps)
      if (s.time)
        c.rows.push_back(compared(
            job, s, sharing::predict(law, sharing::ratio_of_gpu(job.device, s.profile), s.size)));
  }
  accuracy.unmeasured = sharing::fit_unmeasured(all);
  accuracy.cases.push_back(std::move(c));
}

/// What is used on the whole GPU at this size.
std::optional<Bytes> used_on_whole(const SlicedJob& job, double size) {
  for (const SlicedStep& s : job.steps)
    if (s.profile == job.device.whole && s.size == size) return s.used;
  return std::nullopt;
}

void add_memory(const std::vector<SlicedJob>& jobs, SliceAccuracy& accuracy) {
  SliceCase memory = {.name = "memory",
                      .about =
                          "memory used on a slice, from that on 7g; the context's size per "
                          "multiprocessor was chosen with these rows in sight",
                      .rows = {}};
  SliceCase fits = {.name = "runs or fails",
                    .about =
                        "whether a job that ran on 7g runs on a slice; an error is a wrong "
                        "answer",
                    .intervals = false,
                    .rows = {}};
  for (const SlicedJob& job : jobs) {
    const std::uint32_t whole = cluster::multiprocessors_of(job.device, job.device.whole);
    for (const SlicedStep& s : job.steps) {
      const std::optional<Bytes> used = used_on_whole(job, s.size);
      if (s.profile == job.device.whole || !used) continue;
      const sharing::SliceMemory on_slice =
          sharing::memory_on_slice(job.device, s.profile, *used, whole);
      fits.rows.push_back({.name = row_name(job, s),
                           .job = job.name,
                           .profile = job.device.profile(s.profile).name,
                           .error = on_slice.fits == s.time.has_value() ? 0.0 : 1.0});
      if (!s.used) continue;
      memory.rows.push_back(
          {.name = row_name(job, s),
           .job = job.name,
           .profile = job.device.profile(s.profile).name,
           .error = on_slice.used.value / *s.used - 1,
           .covered = on_slice.used.low <= *s.used && *s.used <= on_slice.used.high});
    }
  }
  memory.fitted = memory.rows.size();
  accuracy.cases.push_back(std::move(memory));
  accuracy.cases.push_back(std::move(fits));
}

}  // namespace

Result<SliceAccuracy> measure_slice_accuracy(const std::vector<SlicedJob>& jobs) {
  SliceAccuracy accuracy = {};
  const Result<SliceConstants> all = constants_of(jobs, [](const SlicedJob&) { return true; });
  if (!all) return forward(all);
  accuracy.constants = *all;
  TRY(add_whole(jobs, accuracy));
  TRY(add_two(jobs, false, accuracy));
  TRY(add_two(jobs, true, accuracy));
  TRY(add_sequences(jobs, accuracy));
  add_unmeasured(jobs, accuracy);
  add_memory(jobs, accuracy);
  return accuracy;
}

}  // namespace rehearse::cli
