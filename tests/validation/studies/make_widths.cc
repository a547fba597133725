#include "tests/validation/studies/make_widths.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog.h"
#include "strategies/step/conditions.h"
#include "tests/validation/studies/job_accuracy.h"
#include "tests/validation/studies/left_out_width.h"
#include "tests/validation/studies/memory_accuracy.h"
#include "tests/validation/studies/withheld_accuracy.h"

namespace rehearse::cli {
namespace {

/// ln of the factor on computing that would give the measured step: conditions scale all of a step
/// but its exposed communication.
double error_of_computing(const JobPrediction& p) {
  const Seconds rest = p.step.value - p.parts.exposed_communication;
  const double factor = 1 + (p.measured - p.step.value) / rest;
  return std::log(std::max(factor, 0.01));
}

const cluster::Gpu& gpu_of(const MeasuredJob& row) {
  return **cluster::find_gpu(row.job().cluster.devices().front().model);
}

/// Whether the architecture has a range of its own in strategies/step/conditions.cc.
bool has_published_jobs(const cluster::Gpu& gpu) {
  return step::conditions_for(gpu, workload::Elementwise::kEager).fastest == step::kKernelBound.low;
}

/// Rows of dense models that gave no constant and where kernels decide. A source is a publication.
struct Steps {
  LeftOutErrors half, fp8, all, other_gpu;
};

Result<Steps> steps_of(const std::filesystem::path& data) {
  const std::filesystem::path folder = TRY(converted(data));
  const std::vector<MeasuredJob> jobs = TRY(read_job_folder(folder / "jobs"));
  Steps steps;
  for (const MeasuredJob& row : jobs) {
    if (row.job().spec.workload.experts > 0 || row.of.ends_with("/zero3") ||
        row.table == "nanotron")
      continue;
    if (row.use != Use::kFitted && has_published_jobs(gpu_of(row))) {
      const Result<JobPrediction> p = predict_row(row);
      if (!p) continue;
      const double x = error_of_computing(*p);
      (row.of.ends_with("/fp8") ? steps.fp8 : steps.half)[row.table].push_back(x);
      steps.all[row.of].push_back(x);
    }
    const Result<JobPrediction> p = predict_withheld(row);
    if (p) steps.other_gpu[gpu_of(row).architecture].push_back(error_of_computing(*p));
  }
  return steps;
}

/// The family of models of a row of allocated memory; empty for other cases.
std::string family_of(const MemoryCase& from, const MemoryRow& row) {
  if (from.name.starts_with("megatron-golden")) return from.name;
  if (!from.name.starts_with("galvatron") || !from.name.ends_with(", peak") ||
      from.name.starts_with("galvatron measured"))
    return {};
  for (const std::string_view family : {"gpt", "llama", "baichuan", "bert"})
    if (row.name.find(family) != std::string::npos) return fmt::format("galvatron, {}", family);
  return {};
}

/// The publication of a row of reserved or device memory; empty for other cases. The interval of
/// nanotron's rows also holds blocks that may be held.
std::string publication_of(const MemoryCase& from) {
  constexpr std::string_view kPublications[] = {"bigscience", "gpt2-rented", "qwen", "torchtitan"};
  for (const std::string_view publication : kPublications)
    if (from.name.starts_with(publication)) return std::string(publication);
  return {};
}

/// Errors of memory, in units of the interval on their side: the rule gives −1 and 1 where the
/// interval of models/memory/memory.cc is its own.
struct Peaks {
  LeftOutErrors allocated, reserved;
};

Result<Peaks> peaks_of(const std::filesystem::path& data) {
  Peaks peaks;
  const MemoryAccuracy found = TRY(measure_memory_accuracy(data));
  for (const MemoryCase& each : found.cases)
    for (const MemoryRow& row : each.rows) {
      const std::string family = family_of(each, row), publication = publication_of(each);
      if (family.empty() && publication.empty()) continue;
      const Estimate<Bytes>& p = row.predicted;
      LeftOutErrors& into = family.empty() ? peaks.reserved : peaks.allocated;
      into[family + publication].push_back(
          (row.measured - p.value) / (row.measured > p.value ? p.high - p.value : p.value - p.low));
    }
  return peaks;
}

}  // namespace

Result<Table> make_widths(const std::filesystem::path& data, const std::filesystem::path& into) {
  const Steps steps = TRY(steps_of(data));
  const std::pair<const char*, const LeftOutErrors*> kinds[] = {
      {"computing, half precision", &steps.half},
      {"computing, FP8", &steps.fp8},
      {"computing, half precision or FP8", &steps.all},
      {"computing, architecture without published jobs", &steps.other_gpu}};
  const Peaks peaks = TRY(peaks_of(data));
  Table table({{"interval", Align::kLeft},
               {"low"},
               {"high"},
               {"sources"},
               {"rows"},
               {"left out, held (%)"}});
  for (const auto& [name, errors] : kinds) {
    const std::optional<LeftOutWidth> width = left_out_width(*errors);
    if (!width) {
      table.add({name, "–", "–", fmt::format("{}", errors->size()), "–", "–"});
      continue;
    }
    table.add({name, fmt::format("{:.3f}", width->low), fmt::format("{:.3f}", width->high),
               fmt::format("{}", width->sources), grouped(width->rows),
               width->held ? fmt::format("{:.0f}", *width->held * 100) : "–"});
  }
  for (const auto& [name, errors] :
       {std::pair{"allocated", &peaks.allocated}, {"reserved", &peaks.reserved}})
    if (const std::optional<LeftOutWidth> width = left_out_width(*errors))
      table.add({fmt::format("{} memory, in units of its interval", name),
                 fmt::format("{:.2f}", std::log(width->low)),
                 fmt::format("{:.2f}", std::log(width->high)), fmt::format("{}", width->sources),
                 grouped(width->rows),
                 width->held ? fmt::format("{:.0f}", *width->held * 100) : "–"});
  PendingFile file = TRY(PendingFile::create(into / "widths.csv"));
  TRY(file.write(table.csv()));
  TRY(file.commit());
  return table;
}

}  // namespace rehearse::cli
