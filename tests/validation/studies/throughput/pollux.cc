// Profiles of Pollux and Sia: four jobs on four clusters, from one device to 64.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/core.h>

#include "models/comm/tcp.h"
#include "tests/support/zoo_model.h"
#include "tests/validation/studies/throughput/data_parallel_law.h"
#include "tests/validation/studies/throughput/step_tables.h"
#include "tests/validation/studies/throughput/throughput_accuracy.h"
#include "tests/validation/studies/throughput/zoo_steps.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;

/// What gradients go over. Two nodes are a kind of their own: they send to each other both ways
/// over one pair of hosts, more nodes each to another.
enum class Links : std::uint8_t { kWithin, kTwoNodes, kMoreNodes };
constexpr std::array kLinks = {Links::kWithin, Links::kTwoNodes, Links::kMoreNodes};

struct ClusterFacts {
  std::string_view folder, device;
  std::string_view within;  ///< what joins the devices of a node
  workload::Dtype full;     ///< what FP32 multiplies in: PyTorch then turned TF32 on by itself
};
constexpr ClusterFacts kClusters[] = {{"aws_t4", "t4", "pcie", workload::Dtype::kFp32},
                                      {"dgx", "a100_sxm4_40", "nvswitch", workload::Dtype::kTf32},
                                      {"quad", "quadro_rtx6000", "pcie", workload::Dtype::kFp32},
                                      {"rtx", "rtx2080ti", "pcie", workload::Dtype::kFp32}};

struct JobFacts {
  std::string_view name;
  std::string_view model;  ///< of the zoo; empty: not there
  double parameters;       ///< where the zoo does not say
  std::uint32_t sequence;  ///< 0: no tokens
  bool half;
};
/// ResNet-18 for images of 32 × 32 with ten classes; NeuMF of 32 factors on MovieLens-1M (6,040
/// users and 3,706 films, 160 numbers each). Precision is not stated: ResNet-50 is taken for half,
/// since 200 images in FP32 do not fit in the 15 GiB of a T4.
constexpr JobFacts kJobs[] = {{"bert", "bert_base", 0, 384, false},
                              {"cifar10", "", 11.17e6, 0, false},
                              {"imagenet", "resnet50", 0, 0, true},
                              {"ncf", "", 1.6e6, 0, false}};

/// Latency of a message: TCP through the kernel between nodes, a copy within one (catalog: tcp_50g,
/// pcie3_x16). Rates are published of one cluster alone: g4dn.12xlarge has 50 Gbit/s and PCIe 3.
constexpr Seconds kBetween = Seconds::us(30), kInside = Seconds::us(1);
constexpr std::string_view kKnownNetwork = "aws_t4";
constexpr std::string_view kDeclaredLink = "tcp_50g";
constexpr ByteRate kDeclaredBetween = ByteRate::gbit_per_s(50),
                   kDeclaredWithin = ByteRate::gb_per_s(12);

Links links_of(const PlacedStep& row) {
  if (row.devices.size() == 1) return Links::kWithin;
  return row.devices.size() == 2 ? Links::kTwoNodes : Links::kMoreNodes;
}

std::string name_of(const PlacedStep& row) {
  std::string text;
  for (const std::uint32_t n : row.devices) text += fmt::format("{}{}", text.empty() ? "" : "+", n);
  return fmt::format("{}, batch {:g}", text, row.batch);
}

/// What was measured of a job on a cluster, and what is taken from it.
struct Job {
  const JobFacts* facts;
  Bytes gradients;
  std::vector<PlacedStep> rows;
  StepAlone alone;
  std::set<std::size_t> alone_rows, sum_rows;  ///< that gave constants
  std::map<Links, double> s_per_byte;
};

/// One device at the smallest, the middle and the largest batch.
std::optional<StepAlone> alone_of(const std::vector<PlacedStep>& rows,
                                  std::set<std::size_t>& used) {
  std::map<double, std::size_t> by_batch;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].ranks() == 1) by_batch.emplace(rows[i].batch, i);
  if (by_batch.empty()) return std::nullopt;
  std::vector<std::size_t> ordered;
  for (const auto& [batch, i] : by_batch) ordered.push_back(i);
  used = {ordered.front(), ordered[ordered.size() / 2], ordered.back()};
  std::vector<BatchStep> steps;
  for (const std::size_t i : used) steps.push_back({rows[i].batch, rows[i].step});
  return StepAlone(std::move(steps));
}

GradientSum sum_of(const Job& job, Links links, double s_per_byte) {
  return {.gradients = job.gradients,
          .late = late_share(job.gradients),
          .s_per_byte = s_per_byte,
          .latency = links == Links::kWithin ? kInside : kBetween};
}

/// The links from two devices of a node, two nodes and three nodes with one device each, at the
/// smallest batch.
void fit_links(Job& job) {
  const std::map<Links, std::vector<std::uint32_t>> placements = {
      {Links::kWithin, {2}}, {Links::kTwoNodes, {1, 1}}, {Links::kMoreNodes, {1, 1, 1}}};
  double smallest = job.rows[*job.alone_rows.begin()].batch;
  for (const std::size_t i : job.alone_rows) smallest = std::min(smallest, job.rows[i].batch);
  for (const auto& [links, placement] : placements)
    for (std::size_t i = 0; i < job.rows.size(); ++i) {
      const PlacedStep& row = job.rows[i];
      if (row.devices != placement || row.batch != smallest) continue;
      job.s_per_byte[links] =
          s_per_byte_of(row.step, job.alone.at(row.batch), row.ranks(), sum_of(job, links, 0));
      job.sum_rows.insert(i);
      break;
    }
}

/// Of these links, else of the nearest that were measured.
std::optional<double> nearest(const std::map<Links, double>& known, Links links) {
  for (const Links l : {links, Links::kTwoNodes, Links::kWithin})
    if (const auto found = known.find(l); found != known.end()) return found->second;
  return std::nullopt;
}

Result<std::optional<Job>> read_job(const fs::path& folder, const JobFacts& facts) {
  std::vector<PlacedStep> rows;
  for (const char* kind : {"placements", "scalability"}) {
    const fs::path path = folder / fmt::format("{}_{}.csv", facts.name, kind);
    if (!fs::exists(path)) continue;
    const std::vector<PlacedStep> read = TRY(read_placed_steps(path));
    // One cluster has the same rows in both files.
    for (const PlacedStep& row : read)
      if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
  }
  std::set<std::size_t> used;
  std::optional<StepAlone> alone = alone_of(rows, used);
  if (!alone) return std::nullopt;
  double parameters = facts.parameters;
  if (!facts.model.empty()) {
    const workload::Workload model = TRY(test::zoo_model(facts.model));
    parameters = model.parameters();
  }
  constexpr double kBytesPerGradient = 4;
  Job job{.facts = &facts,
          .gradients = Bytes::b(parameters * kBytesPerGradient),
          .rows = std::move(rows),
          .alone = std::move(*alone),
          .alone_rows = std::move(used),
          .sum_rows = {},
          .s_per_byte = {}};
  fit_links(job);
  return job;
}

class ClusterSuites {
 public:
  ClusterSuites(const ClusterFacts& facts, std::vector<Job> jobs, ThroughputAccuracy& accuracy)
      : facts_(facts), jobs_(std::move(jobs)), accuracy_(accuracy) {}

  Status run() {
    for (const Job& job : jobs_) {
      of_its_steps(job);
      const std::map<Links, double> of_others = links_of_others(job);
      of_other_jobs(job, of_others);
      if (facts_.folder == kKnownNetwork) declared(job);
      TRY(from_zoo(job, of_others));
    }
    return {};
  }

 private:
  ThroughputCase& case_of(const std::string& suite, const Job& job) {
    return accuracy_.of("pollux, " + suite, fmt::format("{} {}", facts_.folder, job.facts->name));
  }

  void score(ThroughputCase& scored, const Job& job, const PlacedStep& row,
             std::optional<double> s_per_byte, double unsure = 1) {
    if (row.ranks() > 1 && !s_per_byte) return;
    GradientSum sum = sum_of(job, links_of(row), s_per_byte.value_or(0));
    sum.unsure = unsure;
    scored.rows.push_back(compared(fmt::format("{}, {}", scored.group, name_of(row)),
                                   data_parallel_step(job.alone.at(row.batch), sum, row.ranks()),
                                   row.step));
  }

  void of_its_steps(const Job& job) {
    ThroughputCase& scored = case_of("a few steps of the job", job);
    scored.fitted = job.alone_rows.size() + job.sum_rows.size();
    for (std::size_t i = 0; i < job.rows.size(); ++i)
      if (!job.alone_rows.contains(i) && !job.sum_rows.contains(i)) {
        // A ring that leaves a node is not quicker than its part inside.
        std::optional<double> slowest = nearest(job.s_per_byte, links_of(job.rows[i]));
        const auto within = job.s_per_byte.find(Links::kWithin);
        if (slowest && within != job.s_per_byte.end() && job.rows[i].devices.front() > 1)
          slowest = std::max(*slowest, within->second);
        score(scored, job, job.rows[i], slowest);
      }
  }

  /// The means of what the other jobs say.
  std::map<Links, double> links_of_others(const Job& job) const {
    std::map<Links, double> known;
    for (const Links links : kLinks) {
      double sum = 0, count = 0;
      for (const Job& other : jobs_)
        if (&other != &job)
          if (const auto found = nearest(other.s_per_byte, links)) {
            sum += *found;
            ++count;
          }
      if (count > 0) known[links] = sum / count;
    }
    return known;
  }

  void of_other_jobs(const Job& job, const std::map<Links, double>& known) {
    ThroughputCase& scored = case_of("one device and links of other jobs", job);
    scored.fitted = job.alone_rows.size();
    for (std::size_t i = 0; i < job.rows.size(); ++i)
      if (!job.alone_rows.contains(i))
        score(scored, job, job.rows[i], nearest(known, links_of(job.rows[i])));
  }

  void declared(const Job& job) {
    ThroughputCase& scored = case_of("one device and declared links", job);
    scored.fitted = job.alone_rows.size();
    for (std::size_t i = 0; i < job.rows.size(); ++i) {
      const PlacedStep& row = job.rows[i];
      if (row.ranks() == 1) continue;
      if (links_of(row) == Links::kWithin) {
        score(scored, job, row, 1 / kDeclaredWithin.bytes_per_s());
      } else {
        const Estimate<ByteRate> rate = comm::tcp_rate(kDeclaredBetween);
        score(scored, job, row, 1 / rate.value.bytes_per_s(),
              std::max(rate.high / rate.value, rate.value / rate.low));
      }
    }
  }

  /// From the model alone, and from three steps of it; on several devices as many in every node.
  Status from_zoo(const Job& job, const std::map<Links, double>& of_others) {
    if (job.facts->model.empty()) return {};
    const ZooJob zoo{.model = job.facts->model,
                     .sequence = job.facts->sequence,
                     .dtype = job.facts->half ? workload::Dtype::kFp16 : facts_.full,
                     .device = facts_.device,
                     .within = facts_.within};
    const step::Conditions plain = TRY(conditions_of(zoo));
    std::vector<PlacedStep> known;
    for (const std::size_t i : job.alone_rows) known.push_back(job.rows[i]);
    const Result<step::Conditions> anchor = anchored(zoo, known);
    if (!anchor)
      accuracy_.left_out.push_back(fmt::format("pollux, {} {} anchored: {}", facts_.folder,
                                               job.facts->name, to_string(anchor.error())));
    for (std::size_t i = 0; i < job.rows.size(); ++i) {
      const PlacedStep& row = job.rows[i];
      if (row.devices.front() != row.devices.back()) continue;
      const std::string devices = row.ranks() == 1 ? "one device" : "more devices";
      // The network is known of one cluster alone.
      if (row.ranks() == 1 || facts_.folder == kKnownNetwork)
        TRY(score_zoo("nothing measured, " + devices, job, row, zoo,
                      {.within = given(kDeclaredWithin, kInside),
                       .between = fmt::format("link: {}", kDeclaredLink)},
                      plain));
      if (!anchor || job.alone_rows.contains(i)) continue;
      ThroughputCase& scored = case_of("the zoo and three steps, " + devices, job);
      scored.fitted = known.size();
      TRY(score_zoo("the zoo and three steps, " + devices, job, row, zoo,
                    rates(of_others, links_of(row)), *anchor));
    }
    return {};
  }

  static std::string given(ByteRate rate, Seconds latency) {
    return fmt::format("rate: {:g} GB/s, latency: {:g} us", rate.gb_per_s(), latency.us());
  }

  static ClusterLinks rates(const std::map<Links, double>& known, Links links) {
    // What backward always hid is quick enough.
    constexpr double kQuick = 1e-12;
    const auto rate = [&](Links l) {
      return ByteRate::bytes_per_s(1 / std::max(kQuick, nearest(known, l).value_or(0)));
    };
    return {.within = given(rate(Links::kWithin), kInside),
            .between = given(rate(links), kBetween)};
  }

  Status score_zoo(const std::string& suite, const Job& job, const PlacedStep& row,
                   const ZooJob& zoo, const ClusterLinks& links,
                   const step::Conditions& conditions) {
    const Estimate<Seconds> step = TRY(zoo_step(zoo, row, links, conditions));
    ThroughputCase& scored = case_of(suite, job);
    scored.rows.push_back(
        compared(fmt::format("{}, {}", scored.group, name_of(row)), step, row.step));
    return {};
  }

  const ClusterFacts& facts_;
  std::vector<Job> jobs_;
  ThroughputAccuracy& accuracy_;
};

}  // namespace

Status measure_pollux(const fs::path& data, ThroughputAccuracy& accuracy) {
  for (const ClusterFacts& facts : kClusters) {
    const fs::path folder = data / "pollux-sia-throughput" / facts.folder;
    if (!fs::exists(folder)) continue;
    std::vector<Job> jobs;
    for (const JobFacts& job : kJobs) {
      std::optional<Job> read = TRY(read_job(folder, job));
      if (read) jobs.push_back(std::move(*read));
    }
    TRY(ClusterSuites(facts, std::move(jobs), accuracy).run());
  }
  return {};
}

}  // namespace rehearse::cli
