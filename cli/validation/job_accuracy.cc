#include "cli/validation/job_accuracy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "cli/validation/job_tables/job_tables.h"
#include "cli/validation/job_tables/job_workload.h"
#include "models/step/predict.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"

namespace rehearse::cli {
namespace {

Result<cluster::Cluster> cluster_of(const JobRow& row) {
  std::string text =
      fmt::format("cluster: {{device: {}, devices_per_node: {}, nodes: {}, intra_node: {}",
                  row.device, row.devices_per_node, row.nodes, "nvswitch");
  if (row.nodes > 1)
    text +=
        fmt::format(", inter_node: {{links: {}, rate: {} Gbit/s, latency: 5 us}}",
                    row.devices_per_node, row.node_network.gb_per_s() * 8 / row.devices_per_node);
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

/// Kernels of PyTorch as they are, or fused.
workload::Elementwise elementwise_of(const JobRow& row) {
  return row.implementation == Implementation::kLlmFoundry ||
                 row.implementation == Implementation::kTorchtitan
             ? workload::Elementwise::kUnfused
             : workload::Elementwise::kEager;
}

step::Conditions conditions_of(const JobRow& row, const cluster::Gpu& gpu) {
  step::Conditions conditions = step::conditions_for(gpu, elementwise_of(row));
  if (row.fp8) conditions.fp8 = *row.fp8;
  // The Triton kernels of 2023, forward; made for A100.
  if (row.implementation == Implementation::kLlmFoundry)
    conditions.sustained.attention = gpu.architecture.starts_with("hopper") ? 0.20 : 0.35;
  return conditions;
}

}  // namespace

Result<JobPrediction> predict_row(const JobRow& row, const Adjust& adjust) {
  if (!row.step) return fail(fmt::format("{}: no measured step", row.name));
  const Result<const cluster::Gpu*> gpu = cluster::find_gpu(row.device);
  if (!gpu) return forward(gpu);
  const Result<cluster::Cluster> cluster = cluster_of(row);
  if (!cluster) return forward(cluster);
  Result<workload::Workload> workload = workload_of(row);
  if (!workload) return forward(workload);
  step::Spec spec{.workload = std::move(*workload),
                  .training = row.training,
                  .plan = row.plan,
                  .conditions = conditions_of(row, **gpu)};
  if (adjust) adjust(row, spec);
  std::vector<JobRow::Choice> choices = row.choices;
  if (choices.empty()) choices.push_back({row.training.microbatch, row.plan.interleave});
  std::optional<JobPrediction> best;
  std::optional<Status> refusal;
  for (const JobRow::Choice& choice : choices) {
    spec.training.microbatch = choice.microbatch;
    spec.plan.interleave = choice.interleave;
    if (choice.interleave > 1) spec.plan.schedule = strategies::Schedule::kInterleaved;
    const Result<step::Step> step = step::predict(
        spec, *cluster, {.fidelity = step::Fidelity::kClosed, .counterfactuals = false});
    if (!step) {
      if (!refusal) refusal = forward(step);
      continue;
    }
    if (!best || step->time.value < best->step.value)
      best = JobPrediction{row, *row.step, step->time, step->breakdown};
  }
  if (!best) return forward(*refusal);
  return std::move(*best);
}

Result<std::vector<JobTableAccuracy>> measure_job_accuracy(const std::filesystem::path& data) {
  const Result<std::vector<JobTable>> tables = read_job_tables(data);
  if (!tables) return forward(tables);
  std::vector<JobTableAccuracy> all;
  for (const JobTable& table : *tables) {
    JobTableAccuracy accuracy{table.name, {}, table.left_out, {}};
    for (const JobRow& row : table.rows) {
      if (!row.step) continue;
      Result<JobPrediction> prediction = predict_row(row);
      if (prediction)
        accuracy.rows.push_back(std::move(*prediction));
      else
        accuracy.left_out.push_back(fmt::format("{}: {}", row.name, to_string(prediction.error())));
    }
    accuracy.ordering = ordering_of(accuracy.rows);
    all.push_back(std::move(accuracy));
  }
  return all;
}

std::vector<SuiteSummary> summarize(const std::vector<JobTableAccuracy>& tables) {
  std::vector<SuiteSummary> suites;
  for (const JobTableAccuracy& table : tables) {
    if (table.rows.empty()) continue;
    std::vector<double> errors;
    double inside = 0;
    for (const JobPrediction& p : table.rows) {
      errors.push_back(p.error());
      inside += p.inside();
    }
    SuiteSummary suite = summary_of("jobs-" + table.table, std::move(errors));
    suite.interval_coverage = inside / static_cast<double>(table.rows.size());
    suite.blind_rows = table.rows.size();
    suites.push_back(std::move(suite));
  }
  return suites;
}

Table job_row_table(const std::vector<JobTableAccuracy>& tables) {
  Table table({{"table", Align::kLeft},
               {"job", Align::kLeft},
               {"measured (s)"},
               {"predicted (s)"},
               {"low"},
               {"high"},
               {"error (%)"},
               {"compute (s)"},
               {"recompute (s)"},
               {"exposed (s)"},
               {"bubble (s)"}});
  for (const JobTableAccuracy& t : tables)
    for (const JobPrediction& p : t.rows) {
      const auto seconds = [](Seconds time) { return fmt::format("{:.3f}", time.s()); };
      table.add({t.table, p.row.name, seconds(p.measured), seconds(p.step.value),
                 seconds(p.step.low), seconds(p.step.high), fmt::format("{:+.1f}", p.error() * 100),
                 seconds(p.parts.compute + p.parts.optimizer), seconds(p.parts.recompute),
                 seconds(p.parts.exposed_communication), seconds(p.parts.bubble)});
    }
  return table;
}

std::string job_section(const std::vector<JobTableAccuracy>& tables) {
  std::string text = "\n# Accuracy of whole jobs\n\n";
  text += job_row_table(tables).markdown();
  for (const JobTableAccuracy& table : tables) {
    if (table.left_out.empty()) continue;
    text += fmt::format("\n{}: {} left out\n\n", table.table, table.left_out.size());
    for (const std::string& line : table.left_out) text += "- " + line + "\n";
  }
  return text;
}

}  // namespace rehearse::cli
