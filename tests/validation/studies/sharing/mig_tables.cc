#include "tests/validation/studies/sharing/mig_tables.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "sim/base/csv.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "tests/validation/studies/measured_tables.h"

namespace rehearse::cli {
namespace {

using sharing::DescribedJob;
using sharing::WorkKind;

struct Model {
  std::string_view table;  ///< as the tables call it
  std::string_view name;
  WorkKind kind;
  bool transformer;
};

// Precision is not in the tables. By the rates, matrix products of the A100-40 server ran in TF32,
// those of the A100-80 server in FP32; convolutions in TF32 on both.
constexpr std::array<Model, 7> kModels = {
    {{"paraphrase-multilingual-MiniLM-L12-v2", "MiniLM", WorkKind::kTensorTransformer, true},
     {"bert-base-multilingual-cased", "bert-base", WorkKind::kTensorTransformer, true},
     {"distiluse-base-multilingual-cased-v1", "distil", WorkKind::kTensorTransformer, true},
     {"bert-base", "bert-base", WorkKind::kTensorTransformer, true},
     {"vision_transformer", "vit", WorkKind::kTensorTransformer, true},
     {"resnet50", "resnet50", WorkKind::kConvolutional, false},
     {"resnet50_moco", "resnet50 moco", WorkKind::kConvolutional, false}}};

/// FLOPs and sizes of published configurations; launches per layer and parameter tensors counted.
DescribedJob description_of(const Model& model, WorkKind kind, bool training, double sequence) {
  if (!model.transformer)
    return {.kind = kind,
            .training = training,
            .flops = Flops::flop(8.2e9),
            .bytes = Bytes::mb(280),
            .launches = 174,
            .parameters = 25.6e6,
            .parameter_tensors = 161};
  const bool vision = model.name == "vit", narrow = model.name == "MiniLM",
             shallow = model.name == "distil";
  constexpr double kPatches = 197;
  DescribedJob job = sharing::encoder_job(kind, shallow ? 6 : 12, narrow ? 384 : 768,
                                          vision ? kPatches : sequence, vision ? 13 : 18);
  job.training = training;
  job.parameters = vision ? 86e6 : 110e6;
  job.parameter_tensors = vision ? 150 : 199;
  return job;
}

/// Tables begin with a column of row numbers that has no name.
Result<CsvTable> load_table(const std::filesystem::path& path) {
  std::string text = TRY(read_file(path));
  if (text.starts_with(',')) text.insert(0, "row");
  return CsvTable::parse(text, path.string());
}

Result<double> required(const CsvTable& table, std::size_t row, std::string_view column) {
  const std::optional<double> value = TRY(table.number(row, column));
  if (!value) return fail(table.problem(row, column, "is empty", "a number"));
  return *value;
}

SlicedJob& job_named(std::vector<SlicedJob>& jobs, SlicedJob job) {
  for (SlicedJob& other : jobs)
    if (other.name == job.name) return other;
  jobs.push_back(std::move(job));
  return jobs.back();
}

Result<cluster::MigDevice> device_of(const char* gpu) {
  const cluster::Gpu& found = *TRY(cluster::find_gpu(gpu));
  return cluster::mig_device(found);
}

/// A table of MIGProfiler; `profile` empty where a column has it.
Status read_sweep(const std::filesystem::path& path, bool large, bool training, bool over_sequences,
                  const std::string& profile, std::vector<SlicedJob>& jobs) {
  const CsvTable table = TRY(load_table(path));
  const char* size = over_sequences ? "seq_length" : "batch_size";
  TRY(table.require({"model_name", size, "latency", "fb_used_mean"}));
  if (profile.empty()) TRY(table.require({"mig_profile"}));
  const cluster::MigDevice device = TRY(device_of(large ? "a100_sxm4_80" : "a100_sxm4_40"));
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto model = std::find_if(kModels.begin(), kModels.end(), [&](const Model& m) {
      return m.table == table.cell(row, "model_name");
    });
    if (model == kModels.end())
      return fail(table.problem(row, "model_name", "is no model that is known"));
    const double at = TRY(required(table, row, size));
    const double latency_ms = TRY(required(table, row, "latency"));
    const double used_mib = TRY(required(table, row, "fb_used_mean"));
    constexpr double kShortTexts = 256;
    if (large && over_sequences && at >= kShortTexts) continue;
    const std::uint32_t slice = TRY(cluster::find_profile(
        device, profile.empty() ? table.cell(row, "mig_profile") : std::string_view(profile)));
    const WorkKind kind = large && model->transformer ? WorkKind::kFp32Matmul : model->kind;
    SlicedJob& job = job_named(
        jobs,
        {.name =
             fmt::format("A100-{} {} {}{}", large ? 80 : 40, training ? "training" : "inference",
                         model->name, over_sequences ? ", sequences" : ""),
         .family = model->transformer && model->name != "vit" ? "text" : "vision",
         .device = device,
         .kind = kind,
         .training = training,
         .over_sequences = over_sequences,
         .described = over_sequences ? std::nullopt
                                     : std::optional(description_of(*model, kind, training, 64)),
         .fast_host = large});
    const bool ran = latency_ms > 0;
    job.steps.push_back({.profile = slice,
                         .size = at,
                         .time = ran ? std::optional(Seconds::ms(latency_ms)) : std::nullopt,
                         .used = ran ? std::optional(Bytes::mib(used_mib)) : std::nullopt});
  }
  return {};
}

/// The tables of A100-40 in which each row occurs once, by the end of their names: "05g_bsz.csv".
std::string_view profile_in(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kSlices = {
      {{"05g_", "1g.5gb"}, {"10g_", "2g.10gb"}, {"20g_", "3g.20gb"}, {"40g_", "7g.40gb"}}};
  const std::string_view table = name.substr(name.rfind("__") + 2);
  if (table.find("_infer_") == std::string_view::npos &&
      table.find("_finetune_") == std::string_view::npos)
    return {};
  for (const auto& [mark, profile] : kSlices)
    if (table.find(mark) != std::string_view::npos) return profile;
  return {};
}

Status read_training_jobs(const std::filesystem::path& path, std::vector<SlicedJob>& jobs) {
  const CsvTable table = TRY(CsvTable::load(path));
  TRY(table.require({"mig_profile", "model", "batch_size", "step_time_s_median"}));
  const cluster::MigDevice device = TRY(device_of("a100_sxm4_40"));
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string_view model = table.cell(row, "model");
    if (model == "deepspeech2") continue;
    const double batch = TRY(required(table, row, "batch_size"));
    const double time = TRY(required(table, row, "step_time_s_median"));
    const std::uint32_t slice = TRY(cluster::find_profile(device, table.cell(row, "mig_profile")));
    const bool text = model == "bert" || model == "transformer";
    job_named(jobs, {.name = fmt::format("MISO {}", model),
                     .family = "MISO",
                     .device = device,
                     .kind = text                   ? WorkKind::kTensorTransformer
                             : model == "embedding" ? WorkKind::kUnknown
                                                    : WorkKind::kConvolutional,
                     .training = true,
                     .over_sequences = false,
                     .described = std::nullopt,
                     .fast_host = false})
        .steps.push_back({slice, batch, Seconds::s(time), std::nullopt});
  }
  return {};
}

}  // namespace

std::vector<sharing::SweepPoint> SlicedJob::points(std::uint32_t profile) const {
  std::vector<sharing::SweepPoint> found;
  for (const SlicedStep& s : steps)
    if (s.profile == profile && s.time) found.push_back({s.size, *s.time});
  return found;
}

std::vector<std::uint32_t> SlicedJob::slices() const {
  std::vector<std::uint32_t> found;
  for (const SlicedStep& s : steps)
    if (s.profile != device.whole && s.time) found.push_back(s.profile);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

sharing::TimedJob SlicedJob::timed() const {
  sharing::TimedJob job = {.name = name,
                           .kind = kind,
                           .training = training,
                           .whole = points(device.whole),
                           .slices = {}};
  for (const std::uint32_t s : slices())
    job.slices.push_back({sharing::ratio_of(device, s), points(s)});
  return job;
}

Result<std::vector<SlicedJob>> read_sliced_jobs(const std::filesystem::path& data) {
  std::vector<SlicedJob> jobs;
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (std::filesystem::recursive_directory_iterator it(data, ignored), end; it != end;
       it.increment(ignored))
    if (it->path().extension() == ".csv") files.push_back(it->path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& path : files) {
    const std::string name = path.filename().string();
    Status ok;
    if (name.starts_with("A100-40g__")) {
      const std::string profile(profile_in(name));
      if (profile.empty()) continue;
      ok = read_sweep(path, false, name.find("__infer_") == std::string::npos,
                      name.ends_with("_seq.csv"), profile, jobs);
    } else if (name.starts_with("A100-80g__")) {
      ok = read_sweep(path, true, name.find("__train__") != std::string::npos,
                      name.ends_with("_seq.csv"), "", jobs);
    } else if (name == "miso_a100_40gb_train_step_times.csv") {
      ok = read_training_jobs(path, jobs);
    }
    TRY(ok);
  }
  return jobs;
}

}  // namespace rehearse::cli
