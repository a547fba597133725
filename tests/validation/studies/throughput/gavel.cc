// Gavel's jobs alone on K80 and V100: other batches, other numbers of workers, the other device.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "sim/cluster/catalog.h"
#include "tests/validation/studies/throughput/data_parallel_law.h"
#include "tests/validation/studies/throughput/step_tables.h"
#include "tests/validation/studies/throughput/throughput_accuracy.h"
#include "tests/validation/studies/throughput_scaling.h"

namespace rehearse::cli {
namespace {

/// Of its two tables the one of the physical cluster; the other repeats most of its rows, and
/// contradicts it on one job (Recommendation is ten times slower on V100).
constexpr std::string_view kTable = "physical_cluster";

/// Gradients of the jobs and how their sums hide are not stated: they are assumed to overlap with
/// backward, and their size cancels.
constexpr GradientSum kSum = {
    .gradients = Bytes::mb(1), .late = 1, .s_per_byte = 0, .latency = Seconds::s(0)};

struct Curve {
  std::map<std::uint32_t, std::map<double, Seconds>> by_workers;  ///< then by batch
};

using Key = std::tuple<std::string, std::string, bool>;  // gpu, job, one server

class Suites {
 public:
  Suites(const std::vector<IsolatedJob>& rows, ThroughputAccuracy& accuracy) : accuracy_(accuracy) {
    for (const IsolatedJob& row : rows)
      if (row.table == kTable)
        curves_[{row.gpu, row.job, row.one_server}].by_workers[row.workers].emplace(row.batch,
                                                                                    row.step);
  }

  Status run() {
    for (const auto& [key, curve] : curves_)
      if (std::get<2>(key)) other_batches(key, curve);
    for (const auto& [key, curve] : curves_) same_workers(key, curve);
    for (const auto& [key, curve] : curves_) other_workers(key, curve);
    for (const auto& [key, curve] : curves_)
      if (std::get<2>(key)) TRY(other_device(key, curve));
    return {};
  }

 private:
  ThroughputCase& case_of(const std::string& suite, const Key& key) {
    return accuracy_.of("gavel, " + suite,
                        fmt::format("{} {}{}", std::get<0>(key), std::get<1>(key),
                                    std::get<2>(key) ? "" : ", a server for each worker"));
  }

  static std::string name_of(const ThroughputCase& c, double batch, std::uint32_t workers) {
    return fmt::format("{}, batch {:g}{}", c.group, batch,
                       workers > 1 ? fmt::format(" on {} workers", workers) : "");
  }

  /// From one worker at the smallest, the middle and the largest batch.
  void other_batches(const Key& key, const Curve& curve) {
    const auto one = curve.by_workers.find(1);
    if (one == curve.by_workers.end() || one->second.size() < 4) return;
    std::vector<BatchStep> steps;
    for (const auto& [batch, step] : one->second) steps.push_back({batch, step});
    const std::vector<BatchStep> known = {steps.front(), steps[steps.size() / 2], steps.back()};
    const StepAlone alone(known);
    ThroughputCase& scored = case_of("other batches", key);
    scored.fitted = known.size();
    for (const BatchStep& s : steps) {
      const bool fitted = std::any_of(known.begin(), known.end(),
                                      [&](const BatchStep& k) { return k.batch == s.batch; });
      if (!fitted)
        scored.rows.push_back(compared(name_of(scored, s.batch, 1),
                                       data_parallel_step(alone.at(s.batch), kSum, 1), s.step));
    }
  }

  /// The sum of gradients from the smallest batch on `from` workers; every batch's step alone is
  /// known.
  void score(ThroughputCase& scored, const Curve& curve, std::uint32_t from,
             const std::vector<std::uint32_t>& to) {
    const auto one = curve.by_workers.find(1);
    if (one == curve.by_workers.end()) return;
    const std::map<double, Seconds>& alone = one->second;
    const std::map<double, Seconds>& measured = curve.by_workers.at(from);
    const auto first = std::find_if(measured.begin(), measured.end(),
                                    [&](const auto& row) { return alone.contains(row.first); });
    if (first == measured.end()) return;
    GradientSum sum = kSum;
    sum.s_per_byte = s_per_byte_of(first->second, alone.at(first->first), from, sum);
    ++scored.fitted;
    for (const std::uint32_t workers : to)
      for (const auto& [batch, step] : curve.by_workers.at(workers)) {
        if (!alone.contains(batch) || (workers == from && batch == first->first)) continue;
        sum.unsure = unsure_beyond(from, workers);
        scored.rows.push_back(compared(name_of(scored, batch, workers),
                                       data_parallel_step(alone.at(batch), sum, workers), step));
      }
  }

  void same_workers(const Key& key, const Curve& curve) {
    for (const auto& [workers, steps] : curve.by_workers)
      if (workers > 1 && steps.size() > 1)
        score(case_of("other batches of as many workers", key), curve, workers, {workers});
  }

  void other_workers(const Key& key, const Curve& curve) {
    std::vector<std::uint32_t> counts;
    for (const auto& [workers, steps] : curve.by_workers)
      if (workers > 1) counts.push_back(workers);
    if (counts.size() < 2) return;
    const std::uint32_t from = counts.front();
    counts.erase(counts.begin());
    score(case_of("more workers", key), curve, from, counts);
  }

  /// From the other device: by the law of throughput, and by its row of the middle batch.
  Status other_device(const Key& key, const Curve& curve) {
    const std::string& gpu = std::get<0>(key);
    const std::string other = gpu == "k80" ? "v100" : "k80";
    const auto found = curves_.find({other, std::get<1>(key), true});
    const auto one = curve.by_workers.find(1);
    if (found == curves_.end() || one == curve.by_workers.end()) return {};
    const auto known = found->second.by_workers.find(1);
    if (known == found->second.by_workers.end()) return {};
    const compute::Pace from = TRY(pace(other)), to = TRY(pace(gpu));
    std::vector<double> batches;
    for (const auto& [batch, step] : one->second)
      if (known->second.contains(batch)) batches.push_back(batch);
    if (batches.size() < 2) return {};
    ThroughputCase& sheet = case_of("from the other device", key);
    double width = 1;
    for (const double batch : batches) {
      const compute::KnownThroughput throughput{from, batch / known->second.at(batch).s()};
      const Estimate<double> there = compute::throughput_on(to, {&throughput, 1});
      sheet.rows.push_back(
          compared(name_of(sheet, batch, 1), there, batch / one->second.at(batch).s()));
      width = there.high / there.value;
    }
    const double middle = batches[batches.size() / 2];
    const double ratio = one->second.at(middle) / known->second.at(middle);
    ThroughputCase& row = case_of("from the other device and one row", key);
    row.fitted = 1;
    for (const double batch : batches) {
      if (batch == middle) continue;
      const Seconds step = known->second.at(batch) * ratio;
      row.rows.push_back(
          compared(name_of(row, batch, 1),
                   Estimate<Seconds>{step, step / width, step * width, Provenance::kExtrapolated},
                   one->second.at(batch)));
    }
    return {};
  }

  static Result<compute::Pace> pace(const std::string& gpu) {
    const cluster::Gpu& found = *TRY(cluster::find_gpu(gpu == "v100" ? "v100_sxm2_16" : gpu));
    return compute::pace_of(found, workload::Dtype::kFp32);
  }

  ThroughputAccuracy& accuracy_;
  std::map<Key, Curve> curves_;
};

}  // namespace

Status measure_gavel(const std::filesystem::path& data, ThroughputAccuracy& accuracy) {
  const std::filesystem::path path = data / "gavel-throughputs" / "isolated.csv";
  if (!std::filesystem::exists(path)) return {};
  const IsolatedJobs jobs = TRY(read_isolated_jobs(path));
  for (const std::string& line : jobs.left_out)
    if (line.starts_with(kTable)) accuracy.left_out.push_back("gavel, " + line);
  accuracy.left_out.push_back(
      "gavel, simulation: repeats most rows of physical_cluster, and contradicts it on "
      "Recommendation");
  return Suites(jobs.rows, accuracy).run();
}

}  // namespace rehearse::cli
