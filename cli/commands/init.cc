// rehearse init: a commented file to start from, and the schemas of files.
#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "cli/catalog/glossary.h"
#include "cli/commands/options.h"
#include "cli/init/schemas.h"
#include "cli/init/templates.h"
#include "cli/output/document.h"
#include "cli/output/json.h"
#include "sim/base/file.h"
#include "strategies/plan_fields.h"

namespace rehearse::cli {
namespace {

using strategies::Candidate, strategies::Section;

enum class FileKind { kJob, kStudy, kCluster, kBudget, kPipeline };
constexpr std::array<std::string_view, 5> kKinds = {"job", "study", "cluster", "budget",
                                                    "pipeline"};

struct InitOptions {
  FileKind kind = FileKind::kJob;
  std::filesystem::path schemas;
};

/// The fields of a section in their order, each after its meaning: with a value where the job sets
/// it, else as a comment with the default.
std::string section_lines(Section section, std::string_view set, std::string_view value) {
  std::string text;
  for (const strategies::Field<Candidate>& field : strategies::plan_fields()) {
    if (field.at.section != section) continue;
    const strategies::FieldValue usual = field.at.get(Candidate{});
    text +=
        fmt::format("  # {}: {}\n", plain_text(field.meaning), strategies::expected_words(field));
    if (field.name == set)
      text += fmt::format("  {}: {}\n", set, value);
    else
      text += fmt::format("  # {}:{}\n", field.name,
                          usual ? " " + strategies::value_words(field, *usual) : "");
  }
  return text;
}

/// Its keys, meanings, ranges and defaults are those of the table that job files are read by.
std::string job_template() {
  return "# A job, for `rehearse simulate FILE`; `rehearse plan FILE` searches its plan.\n"
         "# All keys: docs/formats/job.md.\n"
         "# Remove the # before a key to set it.\n"
         "workload:\n"
         "  model: llama3_8b  # of the zoo; or hugging_face: config.json, or recording: "
         "trace.json.gz\n"
         "  # sequence: 8192  # tokens per sample\n"
         "training:\n" +
         section_lines(Section::kTraining, "global_batch", "64") + "plan:\n" +
         section_lines(Section::kPlan, "tensor", "8") +
         "cluster:\n"
         "  device: h100_sxm5_80  # rehearse catalog gpus; rehearse init cluster shows more\n"
         "  devices_per_node: 8\n"
         "  nodes: 1\n";
}

std::string template_of(FileKind kind) {
  switch (kind) {
    case FileKind::kJob: return job_template();
    case FileKind::kStudy: return std::string(templates::study_yaml);
    case FileKind::kCluster: return std::string(templates::cluster_yaml);
    case FileKind::kBudget: return std::string(templates::budget_yaml);
    case FileKind::kPipeline: return std::string(templates::pipeline_yaml);
  }
  return "";
}

/// The line by which editors find the schema that was installed with the program; empty if none was.
std::string schema_line(std::string_view kind) {
  std::error_code error;
  const std::filesystem::path schema = installed_files() / "schemas" / fmt::format("{}.json", kind);
  if (!std::filesystem::exists(schema, error)) return "";
  return fmt::format("# yaml-language-server: $schema={}\n", schema.string());
}

Status write_schemas(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail_in(folder, "cannot be made: " + error.message(), "a folder to write to");
  for (const SchemaFile& file : schema_files()) {
    std::vector<std::string> seeds;
    for (std::size_t k = 0; k < kKinds.size(); ++k)
      if (kKinds[k] == file.name) seeds.push_back(template_of(static_cast<FileKind>(k)));
    TRY(write_file(folder / fmt::format("{}.json", file.name), json_text(schema_of(file, seeds))));
  }
  return {};
}

Result<Exit> write_template(const InitOptions& options, const Globals& globals) {
  if (!options.schemas.empty()) {
    TRY(write_schemas(options.schemas));
    return Exit::kSuccess;
  }
  std::error_code ignored;
  if (!globals.output.empty() && std::filesystem::exists(globals.output, ignored))
    return fail_in(globals.output, "exists", "the name of a new file: init replaces none");
  TRY(write_text(globals, schema_line(kKinds[static_cast<std::size_t>(options.kind)]) +
                              template_of(options.kind)));
  return Exit::kSuccess;
}

}  // namespace

void add_init(CLI::App& app, Action& action) {
  auto options = std::make_shared<InitOptions>();
  CLI::App& command = *app.add_subcommand(
      "init", "Write a commented job, study, cluster, budget or pipeline to start from (-o FILE)");
  CLI::Option* kind = add_choice(command, "KIND", options->kind, kKinds,
                                 "job, study, cluster, budget or pipeline", "kind");
  CLI::Option* schemas =
      add_value(command, "--schemas", "FOLDER", options->schemas,
                "instead of KIND: write a JSON Schema of each kind of file, for editors");
  command.footer(
      "Example: rehearse init job -o job.yaml && rehearse simulate job.yaml\n"
      "With values: rehearse simulate --model NAME ... --save job.yaml");
  run_by(command, action, options, write_template, [kind, schemas](const InitOptions&) {
    if (kind->empty() && schemas->empty()) throw CLI::RequiredError("KIND");
    if (!kind->empty() && !schemas->empty()) wrong_usage("KIND or --schemas FOLDER, not both");
  });
}

}  // namespace rehearse::cli
