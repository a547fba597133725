#include "cli/config/timed_slices.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/csv.h"
#include "sim/base/text.h"

namespace rehearse::cli {

namespace {

using cluster::MigDevice, sharing::JobLaw, sharing::SweepPoint;

struct TimedSteps {
  std::map<std::uint32_t, std::vector<SweepPoint>> by_profile;
  std::map<double, Bytes> memory;  ///< of the whole, by batch
};

Result<double> positive(const CsvTable& table, std::size_t row, std::string_view column) {
  const std::optional<double> value = TRY(table.number(row, column));
  if (!value || !(*value > 0))
    return fail(table.problem(row, column, "is not a measurement", "a number above zero"));
  return *value;
}

Result<TimedSteps> read_steps(const std::filesystem::path& path, const MigDevice& device) {
  const CsvTable table = TRY(CsvTable::load(path));
  TRY(table.require({"profile", "batch", "step_time_ms"}));
  TimedSteps steps;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const Result<std::uint32_t> profile = cluster::find_profile(device, table.cell(row, "profile"));
    if (!profile) {
      const Diagnostic& d = profile.error().diagnostics.front();
      return fail(table.problem(row, "profile", d.problem, d.expected, d.nearest));
    }
    const double batch = TRY(positive(table, row, "batch"));
    const double time_ms = TRY(positive(table, row, "step_time_ms"));
    steps.by_profile[*profile].push_back({batch, Seconds::ms(time_ms)});
    if (*profile != device.whole || !table.has("memory_mib") ||
        table.cell(row, "memory_mib").empty())
      continue;
    const double memory_mib = TRY(positive(table, row, "memory_mib"));
    steps.memory.emplace(batch, Bytes::mib(memory_mib));
  }
  return steps;
}

Result<JobLaw> fit(const MigQuestion& question, const MigDevice& device, const TimedSteps& steps) {
  const sharing::SliceConstants constants = sharing::shipped_constants();
  const auto whole = steps.by_profile.find(device.whole);
  const std::string& name = device.profile(device.whole).name;
  if (whole == steps.by_profile.end())
    return fail(Diagnostic{.file = question.steps.string(),
                           .key = "profile",
                           .problem = fmt::format("has no steps on {}", name),
                           .expected = "a sweep of batches on the instance of all slices"});
  if (steps.by_profile.size() > 2)
    return fail(
        Diagnostic{.file = question.steps.string(),
                   .key = "profile",
                   .problem = fmt::format("has steps on {} profiles", steps.by_profile.size()),
                   .expected = name + " and at most one smaller"});
  for (const auto& [profile, points] : steps.by_profile)
    if (profile != device.whole)
      return sharing::fit_with_slice(whole->second, sharing::ratio_of(device, profile), points,
                                     question.kind, !question.inference, constants);
  return sharing::fit_whole(whole->second, question.kind, !question.inference, constants);
}

MigPoint point_at(const MigDevice& device, const JobLaw& law, const TimedSteps& steps,
                  std::uint32_t profile, double batch) {
  const sharing::SliceRatio ratio = sharing::ratio_of(device, profile);
  MigPoint point = {
      .batch = batch,
      .time = sharing::predict(law, ratio, batch),
      .slowdown = law.time(ratio, batch) / law.time({}, batch),
      .gain = sharing::collocation_gain(law, ratio, device.profile(profile).max_instances, batch),
      .memory = std::nullopt};
  if (const auto used = steps.memory.find(batch); used != steps.memory.end())
    point.memory = sharing::memory_on_slice(device, profile, used->second,
                                            cluster::multiprocessors_of(device, device.whole));
  return point;
}

}  // namespace

Result<MigAnswer> predict_slices(const MigQuestion& question) {
  const cluster::Gpu& gpu = *TRY(cluster::find_gpu(question.device));
  MigDevice device = TRY(cluster::mig_device(gpu));
  const TimedSteps steps = TRY(read_steps(question.steps, device));
  const JobLaw law = TRY(fit(question, device, steps));
  MigAnswer answer = {.device = device, .law = law, .timed_on = device.profile(device.whole).name};
  for (const auto& [profile, points] : steps.by_profile)
    if (profile != device.whole) answer.timed_on += " and " + device.profile(profile).name;
  if (!law.identified)
    answer.warnings.push_back(
        {fmt::format("the longest step on {} is less than twice the shortest, so the GPU's share "
                     "is nearly unknown",
                     answer.timed_on),
         fmt::format("time one step at the largest batch on {} and add it to the table",
                     device.profile(0).name)});
  if (!gpu.architecture.starts_with("ampere"))
    answer.warnings.push_back({"the constants are from A100 and untested on this GPU",
                               "time steps on slices of this GPU and add them to the table"});
  std::vector<double> batches;
  for (const SweepPoint& p : steps.by_profile.at(device.whole)) batches.push_back(p.size);
  std::ranges::sort(batches);
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  for (std::uint32_t p = 0; p < device.profiles.size(); ++p) {
    if (device.profile(p).name.ends_with("+me")) continue;
    MigAnswer::Slice slice = {.profile = p};
    for (const double batch : batches)
      slice.points.push_back(point_at(device, law, steps, p, batch));
    answer.slices.push_back(std::move(slice));
  }
  return answer;
}

Result<GpuSlices> slices_of(const cluster::Gpu& gpu) {
  cluster::MigDevice device = TRY(cluster::mig_device(gpu));
  GpuSlices slices{.device = std::move(device), .positions = 1};
  slices.positions = slices.device.positions;
  for (std::uint32_t i = 0; i < slices.device.profiles.size(); ++i) {
    const cluster::MigProfile& p = slices.device.profile(i);
    if (!p.media_extensions && p.placement_size < p.memory_slices_total)
      slices.profiles.push_back(i);
  }
  const auto rate = [&](std::uint32_t i) { return sharing::rate_by_share(slices.device, i).value; };
  std::ranges::stable_sort(slices.profiles, [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(slices.device.profile(a).placement_size, rate(a)) <
           std::pair(slices.device.profile(b).placement_size, rate(b));
  });
  for (const std::uint32_t i : slices.profiles) {
    const cluster::MigProfile& p = slices.device.profile(i);
    slices.kinds.push_back({p.name, p.usable_memory.value_or(p.memory), p.placement_size,
                            p.placement_starts, rate(i)});
  }
  return slices;
}

}  // namespace rehearse::cli
