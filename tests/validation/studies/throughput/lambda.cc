// Lambda's benchmark: whole jobs on GPUs that are left out, from what other GPUs do.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/core.h>

#include "cli/calibrate/device_names.h"
#include "tests/validation/studies/throughput/step_tables.h"
#include "tests/validation/studies/throughput/throughput_accuracy.h"
#include "tests/validation/studies/throughput_scaling.h"

namespace rehearse::cli {
namespace {

using compute::KnownThroughput;
using compute::Pace;

constexpr std::array<std::string_view, 2> kPrecisions = {"fp16", "fp32"};

/// A job whose half precision is less than this much faster than its FP32 does not use it.
constexpr double kUsesHalf = 1.1;

/// Their input pipelines decide, not the GPU: two GPUs do up to 40 times what one does.
bool is_known_artefact(const std::string& job) { return job == "ncf" || job == "tacotron2"; }

/// Geometric means over the systems of a device.
class Means {
 public:
  void add(const std::string& device, double value) {
    auto& [sum, count] = sums_[device];
    sum += std::log(value);
    ++count;
  }
  double at(const std::string& device) const {
    const auto& [sum, count] = sums_.at(device);
    return std::exp(sum / count);
  }
  std::vector<std::string> devices() const {
    std::vector<std::string> names;
    for (const auto& [name, sum] : sums_) names.push_back(name);
    return names;
  }

 private:
  std::map<std::string, std::pair<double, double>> sums_;
};

using Jobs = std::map<std::string, Means>;                        // by name
using MeanTables = std::array<std::map<std::uint32_t, Jobs>, 2>;  // by precision and number of GPUs

class LambdaSuites {
 public:
  LambdaSuites(MeanTables tables, std::map<std::string, const cluster::Gpu*> gpus,
               ThroughputAccuracy& accuracy)
      : tables_(std::move(tables)), gpus_(std::move(gpus)), accuracy_(accuracy) {}

  Status run() {
    const Known all = TRY(known_without(""));
    accuracy_.shares = shares_of(all);
    for (const auto& [name, gpu] : gpus_) TRY(leave_out(name));
    return {};
  }

 private:
  /// What the job multiplies in, by devices of other chips.
  workload::Dtype dtype_of(std::size_t precision, const std::string& job,
                           const std::string& chip) const {
    if (precision == 1) return workload::Dtype::kFp32;
    double log_gain = 0, count = 0;
    const Means &half = tables_[0].at(1).at(job), &full = tables_[1].at(1).at(job);
    const std::vector<std::string> both = full.devices();
    for (const std::string& device : half.devices())
      if (gpus_.at(device)->architecture != chip &&
          std::find(both.begin(), both.end(), device) != both.end()) {
        log_gain += std::log(half.at(device) / full.at(device));
        ++count;
      }
    return log_gain > count * std::log(kUsesHalf) ? workload::Dtype::kFp16 : workload::Dtype::kFp32;
  }

  /// Throughputs by precision and job on so many GPUs of other chips than this, each.
  using Known = std::map<std::pair<std::size_t, std::string>, std::vector<KnownThroughput>>;
  Result<Known> known_without(const std::string& chip, std::uint32_t count = 1) const {
    Known known;
    for (std::size_t p = 0; p < kPrecisions.size(); ++p) {
      const auto table = tables_[p].find(count);
      if (table == tables_[p].end()) continue;
      for (const auto& [job, means] : table->second) {
        if (!tables_[p].at(1).contains(job)) continue;
        const workload::Dtype dtype = dtype_of(p, job, chip);
        std::vector<KnownThroughput>& rows = known[{p, job}];
        for (const std::string& device : means.devices()) {
          if (gpus_.at(device)->architecture == chip) continue;
          const Pace pace = TRY(compute::pace_of(*gpus_.at(device), dtype));
          rows.push_back({pace, means.at(device)});
        }
      }
    }
    return known;
  }

  static compute::TimeShares shares_of(const Known& known) {
    std::vector<std::vector<KnownThroughput>> jobs;
    for (const auto& [job, rows] : known) jobs.push_back(rows);
    return compute::fit_shares(jobs);
  }

  /// The device, from those of other chips.
  Status leave_out(const std::string& name) {
    const std::string& chip = gpus_.at(name)->architecture;
    const Known known = TRY(known_without(chip));
    const compute::TimeShares shares = shares_of(known);
    for (std::size_t p = 0; p < kPrecisions.size(); ++p) {
      // One GPU where that was measured, else the fewest: what scaling in a server lost is in it.
      std::set<std::string> seen;
      for (const auto& [count, by_job] : tables_[p])
        for (const auto& [job, means] : by_job) {
          if (!is_there(means, name) || !known.contains({p, job}) || !seen.insert(job).second)
            continue;
          const Pace pace = TRY(compute::pace_of(*gpus_.at(name), dtype_of(p, job, chip)));
          // What scaling in a server costs, others in a server know.
          Known alike = TRY(count == 1 ? known : known_without(chip, count));
          score(p, count, name, job, pace, alike[{p, job}], means.at(name), shares);
        }
    }
    return {};
  }

  static bool is_there(const Means& means, const std::string& name) {
    const std::vector<std::string> all = means.devices();
    return std::find(all.begin(), all.end(), name) != all.end();
  }

  void score(std::size_t precision, std::uint32_t count, const std::string& name,
             const std::string& job, const Pace& to, const std::vector<KnownThroughput>& known,
             double measured, const compute::TimeShares& shares) {
    const std::string suite = fmt::format("lambda {}, ", kPrecisions[precision]);
    const std::string row = fmt::format("{} {} {}{}", name, job, kPrecisions[precision],
                                        count > 1 ? fmt::format(", one of {} GPUs", count) : "");
    if (known.empty()) return;
    if (count > 1) {
      accuracy_.of(suite + "left out, one of several GPUs", name)
          .rows.push_back(compared(row, compute::throughput_on(to, known, shares), measured));
      return;
    }
    accuracy_.of(suite + "left out", name)
        .rows.push_back(compared(row, compute::throughput_on(to, known, shares), measured));
    for (const KnownThroughput& k : known)
      accuracy_.of(suite + "from one GPU", name)
          .rows.push_back(compared(row, compute::throughput_on(to, {&k, 1}, shares), measured));
  }

  MeanTables tables_;
  std::map<std::string, const cluster::Gpu*> gpus_;
  ThroughputAccuracy& accuracy_;
};

}  // namespace

Status measure_lambda(const std::filesystem::path& data, ThroughputAccuracy& accuracy) {
  MeanTables tables;
  std::map<std::string, const cluster::Gpu*> gpus;
  for (std::size_t p = 0; p < kPrecisions.size(); ++p)
    for (const char* version : {"", "v2-"}) {
      const std::filesystem::path path =
          data / "lambda-gpu-benchmark" /
          fmt::format("pytorch-train-throughput-{}{}.csv", version, kPrecisions[p]);
      if (!std::filesystem::exists(path)) continue;
      const std::vector<SystemThroughput> rows = TRY(read_system_throughputs(path));
      for (const SystemThroughput& row : rows) {
        if (is_known_artefact(row.job)) continue;
        const cluster::Gpu& gpu = *TRY(device_named(row.system));
        gpus.emplace(gpu.name, &gpu);
        tables[p][row.gpus][row.job].add(gpu.name, row.per_gpu);
      }
    }
  if (!tables[0].contains(1) || !tables[1].contains(1)) return {};
  for (const auto& [job, means] : tables[0].at(1))
    if (!tables[1].at(1).contains(job)) return fail(job + ": is in one precision alone");
  accuracy.left_out.push_back("lambda, ncf and tacotron2: their input pipelines decide");
  return LambdaSuites(std::move(tables), std::move(gpus), accuracy).run();
}

}  // namespace rehearse::cli
