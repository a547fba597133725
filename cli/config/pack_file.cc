#include "cli/config/pack_file.h"

#include <algorithm>
#include <memory>

#include <fmt/core.h>

#include "cli/config/job_outline.h"
#include "cli/config/timed_slices.h"
#include "sim/base/named_file.h"
#include "sim/base/text.h"
#include "sim/base/yaml.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cli {
namespace {

using sharing::PackJob, sharing::Resident;

std::optional<Seconds> time_in(const YamlMap& map, std::string_view key) {
  return map.within(key, Seconds::s(0), Seconds::s(5e9));
}

/// All errors of a file that `key` names.
void report_file(const YamlMap& map, std::string_view key, const std::filesystem::path& file,
                 const Error& error) {
  for (Diagnostic d : error.diagnostics) {
    if (d.file.empty()) d.file = file.string();
    map.report(key, to_string(d));
  }
}

/// The device of the file, and its partitions.
struct Device {
  std::string name = {};
  std::optional<GpuSlices> slices = {};
};

/// Rates on slices from the job's steps in the file: a sweep, or a step and its host time.
SliceBasis read_slice_law(const YamlMap& map, const Device& device,
                          const std::filesystem::path& folder, std::optional<Seconds> step,
                          std::optional<double> batch, PackJob& job) {
  const auto sweep = map.optional<std::string>("sweep");
  const auto host = time_in(map, "host");
  sharing::WorkKind kind = sharing::WorkKind::kUnknown;
  map.choose("work", sharing::kWorkKindNames, kind);
  const bool inference = map.optional<bool>("inference").value_or(false);
  for (const std::string_view key : {"work", "inference"})
    if (map.has(key) && !sweep && !host)
      map.report(key, "has no effect without sweep or host",
                 "sweep: FILE or host: TIME in addition");
  if ((sweep || host) && !device.slices) {
    map.report(sweep ? "sweep" : "host", fmt::format("'{}' has no slices", device.name));
    return SliceBasis::kShare;
  }
  if (host && (!step || *host > *step)) {
    map.report("host", step ? "is longer than the step" : "needs a step",
               step ? to_string(*step) : "step: the time of a step alone");
    return SliceBasis::kShare;
  }
  if (sweep) {
    const Result<MigAnswer> answer = named_file(folder, *sweep).and_then([&](const auto& path) {
      return predict_slices(
          {.device = device.name, .steps = path, .kind = kind, .inference = inference});
    });
    if (!answer) {
      report_file(map, "sweep", folder / *sweep, answer.error());
      return SliceBasis::kShare;
    }
    const double size = batch.value_or(answer->law.largest);
    job.slice_rates = device.slices->rates([&](std::size_t k) {
      return sharing::rate_by_law(answer->law, device.slices->ratio(k), size);
    });
    return SliceBasis::kSweep;
  }
  if (host && step && step->s() > 0) {
    job.slice_rates = device.slices->rates([&](std::size_t k) {
      return sharing::rate_by_step(*step, *host, kind, !inference, device.slices->ratio(k),
                                   sharing::shipped_constants());
    });
    return SliceBasis::kStep;
  }
  if (device.slices)
    job.slice_rates = device.slices->rates([&](std::size_t k) {
      return sharing::rate_by_share(device.slices->device, device.slices->profiles[k]);
    });
  return SliceBasis::kShare;
}

/// Reads `predict`. Returns nothing if it is absent or wrong.
std::optional<JobOutline> read_prediction(const YamlMap& map, const std::filesystem::path& folder) {
  const auto file = map.optional<std::string>("predict");
  const auto steps = map.optional<double>("steps");
  if (map.has("steps") != (map.has("predict") && !map.has("duration")) ||
      (steps && !(*steps >= 0 && *steps <= 1e15)))
    map.report("steps", "is only valid with predict and without duration",
               "predict: FILE and steps: NUMBER, 0 or more");
  if (!file) return std::nullopt;
  const Result<JobOutline> predicted = named_file(folder, *file).and_then(outline_of);
  if (predicted) return *predicted;
  report_file(map, "predict", folder / *file, predicted.error());
  return std::nullopt;
}

PackJob read_job(const YamlMap& map, const sharing::Site& site, const Device& device,
                 const std::filesystem::path& folder, SliceBasis& basis) {
  const std::optional<JobOutline> predicted = read_prediction(map, folder);
  if (!predicted && !map.has("duration") && !map.has("predict"))
    map.report("duration", "is missing", "a time, such as 90 min, or predict: FILE, steps: NUMBER");
  PackJob job{.name = map.required<std::string>("job").value_or(""),
              .work = time_in(map, "duration").value_or(Seconds::s(0)),
              .memory = map.optional<Bytes>("memory"),
              .exposed = time_in(map, "exposed"),
              .deadline = time_in(map, "deadline")};
  std::optional<std::int64_t> gpus = map.optional<std::int64_t>("gpus");
  std::optional<Seconds> step = time_in(map, "step");
  std::optional<Seconds> all = time_in(map, "communication");
  if (predicted) {
    if (!map.has("duration"))
      job.work = predicted->step * map.optional<double>("steps").value_or(0);
    if (!gpus) gpus = predicted->ranks;
    if (!job.memory) job.memory = predicted->memory;
    // A measured step in the file takes precedence over a predicted one.
    if (!step && !map.has("exposed")) {
      step = predicted->step;
      job.exposed = predicted->exposed;
      if (!all) all = predicted->exposed + predicted->hidden;
    }
  }
  if (gpus) {
    if (*gpus < 1 || *gpus > static_cast<std::int64_t>(site.gpus))
      map.report("gpus", fmt::format("{} GPUs", *gpus), fmt::format("1 to {}", site.gpus));
    else
      job.gpus = static_cast<std::uint32_t>(*gpus);
  }
  if (job.memory && *job.memory > site.memory)
    map.report("memory", fmt::format("is more than the {} of a GPU", to_string(site.memory)));
  const auto batch = map.optional<double>("batch");
  if (step && !(step->s() > 0)) map.report("step", "is out of range", "above 0 s");
  if (batch && !(*batch > 0)) map.report("batch", "is out of range", "above 0");
  if (step)
    job.like =
        Resident{map.optional<std::string>("family").value_or(job.name), batch.value_or(1), *step};
  for (const std::string_view key : {"exposed", "family", "batch"})
    if (map.has(key) && !step && !(key == "batch" && map.has("sweep")))
      map.report(key, "needs a step", "step: the time of a step alone");
  if (step && job.exposed && *job.exposed > *step)
    map.report("exposed", "is longer than the step", to_string(*step));
  if (all) {
    if (!job.exposed || *all < *job.exposed || (step && *all > *step * (1 + 1e-9)))
      map.report("communication", "differs from the step", "from exposed to step");
    else
      job.hidden = *all - *job.exposed;
  }
  basis = read_slice_law(map, device, folder, step, batch, job);
  if (const auto rates = map.map("slices"))
    for (const std::string& name : rates->keys()) {
      const auto rate = rates->optional<double>(name);
      if (rate && !(*rate > 0 && *rate <= 1))
        rates->report(name, fmt::format("relative speed {} is out of range", *rate),
                      "above 0, 1 at most");
      std::vector<std::string_view> known;
      for (const fleet::SliceKind& kind : site.slices) known.push_back(kind.name);
      if (std::ranges::find(known, name) == known.end())
        rates->report(name, "is not a slice of the device", {}, suggest(name, known));
      if (rate) job.slice_rates[name] = {*rate, *rate, *rate, Provenance::kRecorded};
    }
  map.no_other_keys();
  return job;
}

using KnownPairs = std::map<std::pair<std::size_t, std::size_t>, std::pair<double, double>>;

/// Pairs as they were measured, the same two jobs named in any order.
KnownPairs read_pairs(const YamlMap& root, const std::vector<PackJob>& jobs) {
  KnownPairs pairs;
  std::vector<std::string_view> names;
  names.reserve(jobs.size());
  for (const PackJob& job : jobs) names.push_back(job.name);
  for (const YamlMap& map : root.maps("pairs")) {
    std::size_t index[2] = {names.size(), names.size()};
    double share[2] = {1, 1};
    constexpr std::string_view kJobs[] = {"a", "b"}, kShares[] = {"share_a", "share_b"};
    for (int i = 0; i < 2; ++i) {
      if (const auto name = map.required<std::string>(kJobs[i])) {
        index[i] = static_cast<std::size_t>(std::ranges::find(names, *name) - names.begin());
        if (index[i] == names.size())
          map.report(kJobs[i], fmt::format("'{}' is not a job of this file", *name), {},
                     suggest(*name, names));
      }
      share[i] = map.required<double>(kShares[i]).value_or(1);
      if (!(share[i] > 0 && share[i] <= 1))
        map.report(kShares[i], fmt::format("relative speed {} is out of range", share[i]),
                   "above 0, 1 at most");
    }
    map.no_other_keys();
    if (index[1] < index[0]) {
      std::swap(index[0], index[1]);
      std::swap(share[0], share[1]);
    }
    pairs[{index[0], index[1]}] = {share[0], share[1]};
  }
  return pairs;
}

}  // namespace

PackPairs::PackPairs(const std::vector<PackJob>& jobs, KnownPairs known,
                     const sharing::ShippedPairs* shipped)
    : known_(std::move(known)), shipped_(shipped) {
  for (const PackJob& job : jobs) jobs_.push_back(job.like);
  std::vector<sharing::MeasuredPair> measured;
  for (const auto& [who, shares] : known_)
    if (const auto& a = jobs_[who.first], &b = jobs_[who.second]; a && b)
      measured.push_back({*a, *b, shares.first, shares.second});
  any_pair_ = !measured.empty();
  law_ = std::make_shared<sharing::PairLaw>(measured, shipped ? shipped->law : nullptr);
}

std::optional<PairShares> PackPairs::shares(std::size_t a, std::size_t b) const {
  if (const auto found = known_.find(std::minmax(a, b)); found != known_.end()) {
    const auto [low, high] = found->second;
    return a < b ? PairShares{low, high, PairShares::Basis::kMeasured}
                 : PairShares{high, low, PairShares::Basis::kMeasured};
  }
  if (!jobs_[a] || !jobs_[b]) return std::nullopt;
  const sharing::Resident &first = *jobs_[a], &second = *jobs_[b];
  using Basis = PairShares::Basis;
  const Basis basis = law_->knows(first.family) && law_->knows(second.family) ? Basis::kFamilies
                      : any_pair_ || shipped_                                 ? Basis::kStrangers
                                                                              : Basis::kSliced;
  return PairShares{law_->share(first, second), law_->share(second, first), basis};
}

SliceBasis PackFile::basis_on(std::size_t job, const std::string& slice) const {
  const auto rate = jobs[job].slice_rates.find(slice);
  const bool given =
      rate != jobs[job].slice_rates.end() && rate->second.provenance == Provenance::kRecorded;
  return given ? SliceBasis::kGiven : slice_basis[job];
}

namespace {

Result<PackFile> read_pack(const YamlFile& file, const std::filesystem::path& folder) {
  const YamlMap root = file.root();
  PackFile pack{.site = {.gpus = 1, .memory = Bytes::b(0)}};
  const auto gpus = root.required<std::int64_t>("gpus");
  if (gpus && (*gpus < 1 || *gpus > 100'000))
    root.report("gpus", fmt::format("{} GPUs", *gpus), "1 to 100000");
  else if (gpus)
    pack.site.gpus = static_cast<std::uint32_t>(*gpus);
  Device slices;
  if (const auto device = root.required<std::string>("device")) {
    slices.name = pack.device = *device;
    if (const Result<const cluster::Gpu*> gpu = cluster::find_gpu(*device); !gpu) {
      const Diagnostic& d = gpu.error().diagnostics.front();
      root.report("device", d.problem, d.expected, d.nearest);
      return forward(root.status());
    } else {
      pack.site.memory = (*gpu)->memory;
      if (Result<GpuSlices> found = slices_of(**gpu)) {
        pack.site.positions = found->positions;
        pack.site.slices = found->kinds;
        slices.slices = std::move(*found);
      }
    }
  }
  root.choose("goal", sharing::kGoalNames, pack.goal);
  root.choose("links", sharing::kLinksNames, pack.site.links);
  pack.usd_per_gpu_hour = root.optional<double>("usd_per_gpu_hour");
  if (pack.usd_per_gpu_hour && !(*pack.usd_per_gpu_hour >= 0))
    root.report("usd_per_gpu_hour", "is out of range", "0 or more");
  if (!root.has("jobs")) root.report("jobs", "is missing", "a list of jobs");
  for (const YamlMap& map : root.maps("jobs")) {
    SliceBasis basis = SliceBasis::kShare;
    PackJob job = read_job(map, pack.site, slices, folder, basis);
    for (const PackJob& other : pack.jobs)
      if (other.name == job.name) map.report("job", fmt::format("'{}' appears twice", job.name));
    pack.jobs.push_back(std::move(job));
    pack.slice_basis.push_back(basis);
  }
  KnownPairs pairs = read_pairs(root, pack.jobs);
  root.no_other_keys();
  TRY(file.status());

  // Pairs of the file apply as they are, and adjust the law for the pairs that the file lacks.
  pack.pairs = std::make_shared<PackPairs>(pack.jobs, std::move(pairs),
                                           sharing::find_shipped_pairs(pack.device));
  pack.site.pair = [pairs = pack.pairs](std::size_t a,
                                        std::size_t b) -> std::optional<std::pair<double, double>> {
    const std::optional<PairShares> shares = pairs->shares(a, b);
    if (!shares) return std::nullopt;
    return std::pair(shares->first, shares->second);
  };
  return pack;
}

}  // namespace

Result<PackFile> load_pack(const std::filesystem::path& path) {
  const YamlFile file = TRY(YamlFile::load(path));
  return read_pack(file, path.parent_path());
}

Result<PackFile> parse_pack(const std::string& text, std::string name,
                            const std::filesystem::path& folder) {
  const YamlFile file = TRY(YamlFile::parse(text, std::move(name)));
  return read_pack(file, folder);
}

}  // namespace rehearse::cli
