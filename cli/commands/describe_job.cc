#include "cli/commands/describe_job.h"

#include <fmt/core.h>

#include "cli/commands/catalog_names.h"
#include "cli/commands/options.h"
#include "cli/config/job_file.h"
#include "models/workload/zoo.h"
#include "sim/base/check.h"
#include "sim/base/file.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"

namespace rehearse::cli {

namespace {

/// The name under which the text of a job that is not saved is held.
constexpr const char* kUnsaved = "options.yaml";

/// The option that gives the key of a job file.
std::string option_of(std::string_view key) {
  if (key == "training.global_batch" || key == "training") return "--batch";
  if (key == "workload.sequence") return "--sequence";
  const std::size_t dot = key.find('.');
  const std::string_view section = key.substr(0, dot);
  if (section == "workload") return "--model";
  if (section == "cluster") return "--device";
  if (section != "training" && section != "plan") return std::string(key);
  return dot == key.npos ? "--plan" : fmt::format("--plan {}", key.substr(dot + 1));
}

/// Fails as the command would on the text that is held.
Status check_readable(const std::string& text, JobUse use) {
  if (use != JobUse::kRent) {
    TRY(load_job(kUnsaved, {}, {}, use));
    return {};
  }
  // On any instance: its mistakes are the same on all.
  const YamlFile job = TRY(YamlFile::parse(text, kUnsaved));
  const YamlFile rented = TRY(YamlFile::parse("cluster: {instance: p4d.24xlarge, count: 1}", ""));
  std::optional<cluster::Cluster> cluster = cluster::read_cluster(rented.root());
  REHEARSE_CHECK(cluster, "p4d.24xlarge is in the catalog");
  TRY(read_job_on(job.root(), {}, std::move(*cluster), {"p4d.24xlarge", 1}));
  return {};
}

}  // namespace

void add_described_job(CLI::App& command, DescribedJob& job, JobUse use) {
  offer(add_value(command, "--model", "NAME", job.model,
                  "instead of a job file: a model of the zoo, or the path of a Hugging Face "
                  "config.json"),
        workload::zoo_names);
  if (use != JobUse::kRent) {
    add_value(command, "--gpus", "N", job.gpus, "with --model: number of GPUs")
        ->check(CLI::Range(1U, 131'072U).description(""));
    offer(add_value(command, "--device", "NAME", job.device,
                    "with --model: a GPU of the catalog, on nodes of 8, or an instance"),
          device_names);
  }
  add_value(command, "--plan", "PLAN", job.plan,
            use == JobUse::kOnePlan
                ? "with --model: degrees such as tp8,pp4,cp2,ep8, and other keys of a plan: "
                  "zero=1,recompute=full (default: data parallel on all GPUs)"
                : "with --model: degrees and keys that the search keeps, such as tp8,zero=1");
  add_value(command, "--batch", "N", job.batch, "with --model: samples per step")
      ->check(CLI::Range(1.0, 1e9).description(""));
  add_value(command, "--sequence", "TOKENS", job.sequence,
            "with --model: tokens per sample (default: the model's)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40).description(""));
  add_value(command, "--save", "FILE", job.save, "with --model: write the job file");
}

void check_described_job(const std::filesystem::path& file, const DescribedJob& job, JobUse use) {
  if (job.model.empty()) {
    if (job.gpus || !job.device.empty() || !job.plan.empty() || job.batch || job.sequence ||
        !job.save.empty())
      wrong_usage("--gpus, --device, --plan, --batch, --sequence and --save need --model");
    if (file.empty() && use != JobUse::kOnePlan)
      wrong_usage("JOB is missing: a job file, or --model NAME");
    return;
  }
  if (!file.empty()) wrong_usage("a job file or --model, not both");
  if (!job.batch) wrong_usage("--model needs --batch N, the samples per step");
  if (use != JobUse::kRent && (!job.gpus || job.device.empty()))
    wrong_usage("--model needs --gpus N and --device NAME (rehearse catalog gpus)");
}

Status use_described_job(const DescribedJob& job, JobUse use, std::filesystem::path& file) {
  if (job.model.empty()) return {};
  std::string text = TRY(job_text(job, use));
  file = kUnsaved;
  hold_file(file, text);
  if (job.save.empty()) return {};
  if (const Status readable = check_readable(text, use); !readable)
    return tl::unexpected(naming_options(readable.error()));
  file = job.save;
  return write_file(file, text);
}

Error naming_options(Error error) {
  for (Diagnostic& d : error.diagnostics)
    if (d.file == kUnsaved) {
      d.file.clear();
      d.line = d.column = std::nullopt;
      d.key = option_of(d.key);
    }
  return error;
}

void run_on_job(CLI::App& command, Action& action, JobUse use, std::filesystem::path& file,
                const DescribedJob& job, Action run) {
  command.callback([&action, use, &file, &job, run = std::move(run)] {
    check_described_job(file, job, use);
    action = [use, &file, &job, run](const Globals& globals) {
      return on_described_job(job, use, file, [&] { return run(globals); });
    };
  });
}

}  // namespace rehearse::cli
