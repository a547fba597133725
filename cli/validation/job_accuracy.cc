#include "cli/validation/job_accuracy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "cli/validation/job_tables/job_tables.h"
#include "cli/validation/job_tables/job_workload.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"
#include "strategies/step/predict.h"

namespace rehearse::cli {
namespace {

Result<cluster::Cluster> cluster_of(const JobRow& row) {
  std::string text =
      fmt::format("cluster: {{device: {}, devices_per_node: {}, nodes: {}, intra_node: nvlink",
                  row.device, row.devices_per_node, row.nodes);
  if (row.nodes > 1) {
    // Tables give the rate of a node. NICs of nodes with such GPUs carry 100 Gbit/s or more.
    const double gbit = row.node_network.gb_per_s() * 8;
    const double nics =
        std::clamp(std::floor(gbit / 99), 1.0, static_cast<double>(row.devices_per_node));
    text += fmt::format(", inter_node: {{links: {}, rate: {} Gbit/s, latency: 5 us}}", nics,
                        gbit / nics);
  }
  return cluster::parse_cluster(text + "}\n", row.table);
}

/// Share of pairs in the measured order less the share in the other; of rows of one model on
/// equally many devices.
std::optional<double> ordering_of(const std::vector<JobPrediction>& rows) {
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::string>;
  std::map<Key, std::vector<const JobPrediction*>> groups;
  for (const JobPrediction& p : rows)
    groups[{p.row.model.hidden, p.row.model.layers, p.row.model.sequence, p.row.devices(),
            p.row.device}]
        .push_back(&p);
  double agree = 0, pairs = 0;
  for (const auto& [key, members] : groups)
    for (std::size_t i = 0; i < members.size(); ++i)
      for (std::size_t j = i + 1; j < members.size(); ++j) {
        // Per sample, as batches differ.
        const auto per_sample = [](const JobPrediction& p, Seconds step) {
          return step.s() / p.row.training.global_batch;
        };
        const double measured = per_sample(*members[i], members[i]->measured) -
                                per_sample(*members[j], members[j]->measured);
        const double predicted = per_sample(*members[i], members[i]->step.value) -
                                 per_sample(*members[j], members[j]->step.value);
        if (measured == 0 || predicted == 0) continue;
        agree += (measured > 0) == (predicted > 0) ? 1 : -1;
        pairs += 1;
      }
  if (pairs == 0) return std::nullopt;
  return agree / pairs;
}

step::Conditions conditions_of(const JobRow& row, const cluster::Gpu& gpu) {
  step::Conditions conditions = step::conditions_for(gpu, elementwise_of(row));
  if (row.fp8) conditions.fp8 = *row.fp8;
  if (row.model.experts > 0) conditions.scale = step::mixture_scale(row.fused_experts);
  if (row.attention) conditions.sustained.attention = row.attention;
  return conditions;
}

bool is_fitted(std::string_view table, const JobRow& row, std::size_t index) {
  if (table == "vtrain-multi") return index % 5 == 0;
  if (table == "nemo") return row.model.experts > 0 && index % 2 == 0;
  if (table == "mpt") return index % 3 == 0;
  return false;
}

}  // namespace

workload::Elementwise elementwise_of(const JobRow& row) {
  return row.implementation == Implementation::kLlmFoundry ||
                 row.implementation == Implementation::kTorchtitan
             ? workload::Elementwise::kUnfused
             : workload::Elementwise::kEager;
}

std::string case_of(const std::string& table, const JobRow& row) {
  std::string name = table;
  if (row.training.dtype == workload::Dtype::kFp8) name += "/fp8";
  if (row.model.experts > 0) name += "/experts";
  // DeepSpeed as it was in 2021, beside Megatron-LM in one table.
  if (table == "sc21-table2" && row.plan.zero == 3) name += "/zero3";
  return name;
}

Result<JobPrediction> predict_row(const JobRow& row) {
  const Result<const cluster::Gpu*> gpu = cluster::find_gpu(row.device);
  if (!gpu) return forward(gpu);
  return predict_row(row, conditions_of(row, **gpu), compute::shipped_calibrations());
}

Result<JobPrediction> predict_row(const JobRow& row, const step::Conditions& conditions,
                                  std::span<const compute::Calibration> calibrations) {
  if (!row.step) return fail(fmt::format("{}: no measured step", row.name));
  const Result<cluster::Cluster> cluster = cluster_of(row);
  if (!cluster) return forward(cluster);
  Result<workload::Workload> workload = workload_of(row);
  if (!workload) return forward(workload);
  step::Spec spec{.workload = std::move(*workload),
                  .training = row.training,
                  .plan = row.plan,
                  .conditions = conditions};
  std::vector<JobRow::Choice> choices = row.choices;
  if (choices.empty()) choices.push_back({row.training.microbatch, row.plan.interleave});
  std::optional<JobPrediction> best;
  std::optional<Status> refusal;
  for (const JobRow::Choice& choice : choices) {
    spec.training.microbatch = choice.microbatch;
    spec.plan.interleave = choice.interleave;
    if (choice.interleave > 1) spec.plan.schedule = strategies::Schedule::kInterleaved;
    const Result<step::Step> step = step::predict(spec, *cluster,
                                                  {.fidelity = step::Fidelity::kClosed,
                                                   .counterfactuals = false,
                                                   .calibrations = calibrations});
    if (!step) {
      if (!refusal) refusal = forward(step);
      continue;
    }
    if (!best || step->time.value < best->step.value)
      best = JobPrediction{
          .row = row, .measured = *row.step, .step = step->time, .parts = step->breakdown};
  }
  if (!best) return forward(*refusal);
  return std::move(*best);
}

JobAccuracy measure_job_accuracy(const std::vector<JobTable>& tables) {
  JobAccuracy accuracy;
  for (const JobTable& table : tables) {
    accuracy.left_out.insert(accuracy.left_out.end(), table.left_out.begin(), table.left_out.end());
    std::map<std::string, JobCase> cases;
    std::size_t index = 0;
    for (const JobRow& row : table.rows) {
      if (!row.step) continue;
      const bool fitted = is_fitted(table.name, row, index++);
      Result<JobPrediction> prediction = predict_row(row);
      if (!prediction) {
        accuracy.left_out.push_back(fmt::format("{}: {}", row.name, to_string(prediction.error())));
        continue;
      }
      prediction->fitted = fitted;
      const std::string name = case_of(table.name, row);
      JobCase& found = cases[name];
      found.name = name;
      found.rows.push_back(std::move(*prediction));
    }
    for (auto& [name, found] : cases) {
      found.ordering = ordering_of(found.rows);
      accuracy.cases.push_back(std::move(found));
    }
  }
  return accuracy;
}

}  // namespace rehearse::cli
