#include "cli/config/pack_file.h"

#include <algorithm>
#include <memory>

#include <fmt/core.h>

#include "cli/config/gpu_slices.h"
#include "sim/base/text.h"
#include "sim/base/yaml.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cli {
namespace {

using sharing::PackJob;
using sharing::Resident;

std::optional<Seconds> time_in(const YamlMap& map, std::string_view key) {
  const std::optional<Seconds> time = map.optional<Seconds>(key);
  if (!time || (time->s() >= 0 && time->s() <= 5e9)) return time;
  map.report(key, "is out of range", "0 s to 5e9 s");
  return std::nullopt;
}

PackJob read_job(const YamlMap& map, const sharing::Site& site) {
  if (!map.has("duration")) map.report("duration", "is missing", "a time, such as 90 min");
  PackJob job{.name = map.required<std::string>("job").value_or(""),
              .work = time_in(map, "duration").value_or(Seconds::s(0)),
              .memory = map.optional<Bytes>("memory"),
              .exposed = time_in(map, "exposed"),
              .deadline = time_in(map, "deadline")};
  if (const auto gpus = map.optional<std::int64_t>("gpus")) {
    if (*gpus < 1 || *gpus > static_cast<std::int64_t>(site.gpus))
      map.report("gpus", fmt::format("{} GPUs", *gpus), fmt::format("1 to {}", site.gpus));
    else
      job.gpus = static_cast<std::uint32_t>(*gpus);
  }
  if (job.memory && *job.memory > site.memory)
    map.report("memory", fmt::format("is more than the {} of a GPU", to_string(site.memory)));
  const auto step = time_in(map, "step");
  const auto batch = map.optional<double>("batch");
  if (step && !(step->s() > 0)) map.report("step", "is no time", "above 0 s");
  if (batch && !(*batch > 0)) map.report("batch", "is no batch", "above 0");
  if (step)
    job.like =
        Resident{map.optional<std::string>("family").value_or(job.name), batch.value_or(1), *step};
  for (const std::string_view key : {"exposed", "family", "batch"})
    if (map.has(key) && !step) map.report(key, "needs a step", "step: the time of a step alone");
  if (step && job.exposed && *job.exposed > *step)
    map.report("exposed", "is longer than the step", to_string(*step));
  if (const auto rates = map.map("slices"))
    for (const std::string& name : rates->keys()) {
      const auto rate = rates->optional<double>(name);
      if (rate && !(*rate > 0 && *rate <= 1))
        rates->report(name, fmt::format("{} of the speed alone", *rate), "above 0, 1 at most");
      std::vector<std::string_view> known;
      for (const fleet::SliceKind& kind : site.slices) known.push_back(kind.name);
      if (std::find(known.begin(), known.end(), name) == known.end())
        rates->report(name, "is no slice of the device", {}, suggest(name, known));
      if (rate) job.slice_rates[name] = *rate;
    }
  map.no_other_keys();
  return job;
}

/// Pairs as they were measured, the same two jobs named in any order.
std::vector<std::pair<std::pair<std::size_t, std::size_t>, std::pair<double, double>>> read_pairs(
    const YamlMap& root, const std::vector<PackJob>& jobs) {
  std::vector<std::pair<std::pair<std::size_t, std::size_t>, std::pair<double, double>>> pairs;
  std::vector<std::string_view> names;
  for (const PackJob& job : jobs) names.push_back(job.name);
  for (const YamlMap& map : root.maps("pairs")) {
    std::size_t index[2] = {names.size(), names.size()};
    double share[2] = {1, 1};
    constexpr std::string_view kJobs[] = {"a", "b"}, kShares[] = {"share_a", "share_b"};
    for (int i = 0; i < 2; ++i) {
      if (const auto name = map.required<std::string>(kJobs[i])) {
        index[i] =
            static_cast<std::size_t>(std::find(names.begin(), names.end(), *name) - names.begin());
        if (index[i] == names.size())
          map.report(kJobs[i], fmt::format("'{}' is no job of this file", *name), {},
                     suggest(*name, names));
      }
      share[i] = map.required<double>(kShares[i]).value_or(1);
      if (!(share[i] > 0 && share[i] <= 1))
        map.report(kShares[i], fmt::format("{} of the speed alone", share[i]),
                   "above 0, 1 at most");
    }
    map.no_other_keys();
    pairs.push_back({{index[0], index[1]}, {share[0], share[1]}});
  }
  return pairs;
}

}  // namespace

Result<PackFile> load_pack(const std::filesystem::path& path) {
  const Result<YamlFile> file = YamlFile::load(path);
  if (!file) return forward(file);
  const YamlMap root = file->root();
  PackFile pack{.site = {.gpus = 1, .memory = Bytes::b(0)}};
  const auto gpus = root.required<std::int64_t>("gpus");
  if (gpus && (*gpus < 1 || *gpus > 100'000))
    root.report("gpus", fmt::format("{} GPUs", *gpus), "1 to 100000");
  else if (gpus)
    pack.site.gpus = static_cast<std::uint32_t>(*gpus);
  if (const auto device = root.required<std::string>("device")) {
    pack.device = *device;
    if (const Result<const cluster::Gpu*> gpu = cluster::find_gpu(*device); !gpu) {
      const Diagnostic& d = gpu.error().diagnostics.front();
      root.report("device", d.problem, d.expected, d.nearest);
      return forward(root.status());
    } else {
      pack.site.memory = (*gpu)->memory;
      if (Result<GpuSlices> slices = slices_of(**gpu)) {
        pack.site.positions = slices->positions;
        pack.site.slices = std::move(slices->kinds);
      }
    }
  }
  root.choose("goal", sharing::kGoalNames, pack.goal);
  pack.usd_per_gpu_hour = root.optional<double>("usd_per_gpu_hour");
  if (pack.usd_per_gpu_hour && !(*pack.usd_per_gpu_hour >= 0))
    root.report("usd_per_gpu_hour", "is no price", "0 or more");
  if (!root.has("jobs")) root.report("jobs", "is missing", "a list of jobs");
  for (const YamlMap& map : root.maps("jobs")) {
    PackJob job = read_job(map, pack.site);
    for (const PackJob& other : pack.jobs)
      if (other.name == job.name) map.report("job", fmt::format("'{}' stands twice", job.name));
    pack.jobs.push_back(std::move(job));
  }
  const auto pairs = read_pairs(root, pack.jobs);
  root.no_other_keys();
  if (Status ok = file->status(); !ok) return forward(ok);

  // Pairs of the file speak for themselves, and through the law for the pairs that it lacks.
  std::vector<sharing::MeasuredPair> measured;
  std::map<std::pair<std::size_t, std::size_t>, std::pair<double, double>> known;
  for (const auto& [who, shares] : pairs) {
    known[who] = shares;
    known[{who.second, who.first}] = {shares.second, shares.first};
    const auto &a = pack.jobs[who.first].like, &b = pack.jobs[who.second].like;
    if (a && b) measured.push_back({*a, *b, shares.first, shares.second});
  }
  pack.measured_pairs = pairs.size();
  pack.site.pair = [known = std::move(known), law = sharing::PairLaw(measured), jobs = pack.jobs](
                       std::size_t a, std::size_t b) -> std::optional<std::pair<double, double>> {
    if (const auto found = known.find({a, b}); found != known.end()) return found->second;
    if (!jobs[a].like || !jobs[b].like) return std::nullopt;
    return std::pair(law.share(*jobs[a].like, *jobs[b].like),
                     law.share(*jobs[b].like, *jobs[a].like));
  };
  return pack;
}

}  // namespace rehearse::cli
