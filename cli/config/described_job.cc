#include "cli/config/described_job.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include <fmt/core.h>

#include "sim/base/number.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog.h"
#include "strategies/plan_fields.h"

namespace rehearse::cli {
namespace {

using strategies::Candidate, strategies::Field, strategies::Section;

/// GPUs of a node of a cluster that is given by its device.
constexpr std::uint32_t kUsualNode = 8;

struct Setting {
  const Field<Candidate>* field;
  std::string value;
};

/// What may have been meant by a word that is no key: "1f1b" is a value, "tp4xdp2" holds two keys.
std::string meant_by(std::string_view word, std::span<const std::string_view> names) {
  std::string values;
  for (const Field<Candidate>& field : strategies::plan_fields())
    if (const auto value = spelled_alike(word, field.at.choices))
      values += fmt::format("{}{}={}", values.empty() ? "" : " or ", field.name, *value);
  if (!values.empty()) return values;
  const std::size_t degree = word.find_first_of("0123456789");
  if (degree != word.npos && spelled_alike(word.substr(0, degree), names))
    return "commas between keys, such as tp8,pp4";
  return suggest(word, names);
}

Result<const Field<Candidate>*> find_field(std::string_view name) {
  std::vector<std::string_view> names;
  std::vector<const Field<Candidate>*> fields;
  for (const Field<Candidate>& field : strategies::plan_fields())
    for (const std::string_view key : {field.name, field.abbreviation})
      if (!key.empty() && key != "global_batch") {
        names.push_back(key);
        fields.push_back(&field);
      }
  if (name.empty()) return fail("--plan: an empty key", "such as tp8,pp4");
  if (const auto key = spelled_alike(name, names))
    return fields[static_cast<std::size_t>(std::ranges::find(names, *key) - names.begin())];
  return fail(fmt::format("--plan: unknown key '{}'", name), meant_by(name, names));
}

/// "tp8", "tensor=8" or "sequence_parallel".
Result<Setting> read_setting(std::string_view item) {
  const std::size_t equals = item.find('=');
  const std::size_t end = equals == item.npos ? item.find_last_not_of("0123456789") + 1 : equals;
  const Field<Candidate>& field = *TRY(find_field(trim(item.substr(0, end))));
  std::string value(trim(item.substr(std::min(item.size(), equals == item.npos ? end : end + 1))));
  if (value.empty() && field.at.kind == strategies::FieldKind::kFlag) value = "true";
  // Anything else would be YAML of its own. The reader of job files knows the valid values.
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == ' ';
  };
  if (value.empty() || !std::ranges::all_of(value, is_plain))
    return fail(fmt::format("--plan: '{}' has no valid value", item),
                strategies::expected_words(field));
  return Setting{&field, std::move(value)};
}

Result<std::vector<Setting>> read_settings(std::string_view text) {
  std::vector<Setting> settings;
  if (trim(text).empty()) return settings;
  for (const std::string_view item : split(text, ',')) {
    Setting setting = TRY(read_setting(trim(item)));
    for (const Setting& before : settings)
      if (before.field == setting.field)
        return fail(fmt::format("--plan: '{}' is given twice", setting.field->name));
    settings.push_back(std::move(setting));
  }
  return settings;
}

/// Adds the data-parallel degree with which the plan uses all GPUs that are no parameter servers.
Status add_data(std::uint32_t gpus, std::vector<Setting>& settings) {
  std::uint64_t ranks = 1;
  std::uint32_t servers = 0;
  for (const Setting& setting : settings) {
    if (setting.value == "parameter_server") servers = std::max(servers, 1U);
    if (setting.field->name == "servers")
      servers = parse_number<std::uint32_t>(setting.value).value_or(0);
    if (setting.field->said != strategies::Said::kDegree) continue;
    if (setting.field->name == "data") return {};
    // The reader of job files refuses what is no number.
    ranks *= std::max(1U, parse_number<std::uint32_t>(setting.value).value_or(1));
  }
  const std::uint64_t data = TRY(data_degree("--plan", gpus - std::min(servers, gpus - 1), ranks));
  settings.insert(settings.begin(), {&strategies::plan_field("data"), std::to_string(data)});
  return {};
}

Result<std::string> cluster_text(const std::string& device, std::uint32_t gpus) {
  const auto nodes_of = [&](std::uint32_t node) -> Result<std::uint32_t> {
    if (gpus % node == 0) return gpus / node;
    return fail(fmt::format("{} GPUs are no multiple of a node's {}", gpus, node),
                fmt::format("--gpus {} or {}, or a job file", gpus / node * node,
                            (gpus / node + 1) * node));
  };
  if (const Result<const cluster::Instance*> instance = cluster::find_instance(device)) {
    const std::uint32_t nodes =
        TRY(nodes_of(std::max(1U, static_cast<std::uint32_t>((*instance)->gpu_count))));
    return fmt::format("{{instance: {}, count: {}}}", device, nodes);
  }
  TRY(cluster::find_gpu(device));
  const std::uint32_t node = std::min(gpus, kUsualNode);
  const std::uint32_t nodes = TRY(nodes_of(node));
  return fmt::format("{{device: \"{}\", devices_per_node: {}, nodes: {}}}", device, node, nodes);
}

std::string section_text(Section section, const std::vector<Setting>& settings,
                         std::string text = "") {
  const auto add = [&text](std::string_view key, const std::string& value) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key, value);
  };
  for (const Setting& setting : settings)
    if (setting.field->at.section == section) add(setting.field->name, setting.value);
  if (section == Section::kPlan)
    for (const auto& [inner, key] : strategies::kMappingsOfPlan)
      if (const std::string mapping = section_text(inner, settings); !mapping.empty())
        add(key, fmt::format("{{{}}}", mapping));
  return text;
}

}  // namespace

Result<std::uint64_t> data_degree(std::string key, std::uint64_t gpus, std::uint64_t ranks) {
  if (gpus % ranks == 0) return gpus / ranks;
  return fail(Diagnostic{
      .key = std::move(key),
      .problem =
          fmt::format("its degrees multiply to {}, which does not divide {} GPUs", ranks, gpus),
      .expected = fmt::format("{} GPUs, or other degrees", (gpus / ranks + 1) * ranks)});
}

Result<std::string> job_text(const DescribedJob& job, JobUse use) {
  std::vector<Setting> settings = TRY(read_settings(job.plan));
  if (use == JobUse::kOnePlan) TRY(add_data(*job.gpus, settings));
  const bool config = std::filesystem::path(job.model).extension() == ".json";
  std::string text = fmt::format("workload: {{{}: \"{}\"{}}}\n", config ? "hugging_face" : "model",
                                 config ? std::filesystem::absolute(job.model).string() : job.model,
                                 job.sequence ? fmt::format(", sequence: {}", *job.sequence) : "");
  text += fmt::format(
      "training: {{{}}}\n",
      section_text(Section::kTraining, settings, fmt::format("global_batch: {:g}", *job.batch)));
  if (const std::string plan = section_text(Section::kPlan, settings); !plan.empty())
    text += fmt::format("plan: {{{}}}\n", plan);
  if (use == JobUse::kRent) return text;
  const std::string cluster = TRY(cluster_text(job.device, *job.gpus));
  return text + fmt::format("cluster: {}\n", cluster);
}

}  // namespace rehearse::cli
