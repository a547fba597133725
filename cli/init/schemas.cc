#include "cli/init/schemas.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/check/budget.h"
#include "cli/config/job_file.h"
#include "cli/config/pack_file.h"
#include "cli/config/serve_file.h"
#include "cli/init/meaning_pages.h"
#include "cli/init/meanings.h"
#include "cli/init/templates.h"
#include "cli/proving/pair.h"
#include "cli/study/study.h"
#include "models/dataflow/read_dataflow.h"
#include "models/input/read_pipeline.h"
#include "profiler/bench/shape_file.h"
#include "sim/base/yaml_schema.h"
#include "sim/cluster/point_to_point.h"
#include "sim/cluster/read_cluster.h"
#include "sim/fleet/job_list.h"
#include "strategies/plan_fields.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using FormKind = YamlForm::Kind;

std::string child_of(std::string_view path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

class Schema {
 public:
  Schema(const YamlKeys& keys, const Meanings& meanings) : keys_(keys), meanings_(meanings) {}

  Json mapping(const std::string& path) const {
    Json schema = {{"type", "object"}};
    const auto at = keys_.find(path);
    if (at == keys_.end()) return schema;
    Json properties = Json::object(), required = Json::array();
    for (const YamlKey& key : at->second.keys) {
      properties[key.name] = described(child_of(path, key.name), key.forms);
      if (key.required) required.push_back(key.name);
    }
    schema["properties"] = std::move(properties);
    if (!required.list().empty()) schema["required"] = std::move(required);
    if (!at->second.other.empty())
      schema["additionalProperties"] = value(child_of(path, "any"), at->second.other);
    else if (at->second.closed)
      schema["additionalProperties"] = false;
    return schema;
  }

 private:
  /// With its meaning; a quantity says how it is written, too.
  Json described(const std::string& path, const std::vector<YamlForm>& forms) const {
    Json schema = value(path, forms);
    const std::optional<std::string> meaning = meanings_.of(path);
    if (!meaning) return schema;
    const auto* written = std::get_if<std::string>(&schema["description"].content());
    schema["description"] = written ? *meaning + "; " + *written : *meaning;
    return schema;
  }

  Json value(const std::string& path, const std::vector<YamlForm>& forms) const {
    if (forms.size() == 1) return form(path, forms.front());
    Json any = Json::array();
    for (const YamlForm& each : forms) any.push_back(form(path, each));
    return {{"anyOf", std::move(any)}};
  }

  Json form(const std::string& path, const YamlForm& of) const {
    switch (of.kind) {
      case FormKind::kMap: return mapping(path);
      case FormKind::kMaps: return {{"type", "array"}, {"items", mapping(path + "[]")}};
      case FormKind::kList: return {{"type", "array"}, {"items", scalar(of, of.item)}};
      default: return scalar(of, of.kind);
    }
  }

  static Json scalar(const YamlForm& of, FormKind kind) {
    switch (kind) {
      case FormKind::kWhole:
      case FormKind::kNumber:
        return {{"type", kind == FormKind::kWhole ? "integer" : "number"},
                {"minimum", maybe(of.least)},
                {"maximum", maybe(of.most)}};
      case FormKind::kFlag: return {{"type", "boolean"}};
      case FormKind::kQuantity:
        return {{"description", fmt::format("with its unit, such as 1 {}", of.unit)},
                {"type", "string"}};
      case FormKind::kChoice: return {{"enum", of.names}};
      // What looks like a number is a text too.
      default: return {{"type", Json::array({"string", "number", "boolean"})}};
    }
  }

  const YamlKeys& keys_;
  const Meanings& meanings_;
};

constexpr std::string_view kRequired = "required";

/// The value that a file without the field has. REQUIRES: there is one.
template <class Record>
Json default_of(const strategies::Field<Record>& field) {
  const strategies::FieldValue value = field.at.get(Record{});
  switch (field.at.kind) {
    case strategies::FieldKind::kFlag: return *value != 0;
    case strategies::FieldKind::kCount: return static_cast<std::int64_t>(*value);
    case strategies::FieldKind::kNumber: return *value;
    default: return value_words(field, *value);
  }
}

template <class Record>
Json field_of(const strategies::Field<Record>& field) {
  const bool in_words = !field.usual.empty() && field.usual != kRequired;
  Json schema = {{"description", in_words
                                     ? fmt::format("{}; default: {}", field.meaning, field.usual)
                                     : std::string(field.meaning)}};
  if (field.usual.empty() && field.at.get(Record{})) schema["default"] = default_of(field);
  switch (field.at.kind) {
    case strategies::FieldKind::kFlag: schema["type"] = "boolean"; return schema;
    case strategies::FieldKind::kChoice:
      schema["enum"] =
          std::vector<std::string_view>(field.at.choices.begin(), field.at.choices.end());
      return schema;
    case strategies::FieldKind::kSize: schema["type"] = "string"; return schema;
    case strategies::FieldKind::kCount: schema["type"] = "integer"; break;
    case strategies::FieldKind::kNumber: schema["type"] = "number"; break;
  }
  schema[field.range.above ? "exclusiveMinimum" : "minimum"] = field.range.least;
  schema["maximum"] = field.range.most;
  return schema;
}

/// The keys of a section that its table defines, with their meanings, ranges and defaults.
template <class Record>
void describe(std::span<const strategies::Field<Record>> fields, strategies::Section section,
              Json& mapping) {
  for (const strategies::Field<Record>& field : fields)
    if (field.at.section == section) mapping["properties"][field.name] = field_of(field);
}

void describe_job(Json& job) {
  using strategies::Section;
  describe(strategies::plan_fields(), Section::kTraining, job["properties"]["training"]);
  Json& plan = job["properties"]["plan"];
  describe(strategies::plan_fields(), Section::kPlan, plan);
  for (const auto& [section, key] : strategies::kMappingsOfPlan)
    describe(strategies::plan_fields(), section, plan["properties"][key]);
  describe(strategies::stage_fields(), Section::kStage, plan["properties"]["stages"]["items"]);
}

/// Studies with other names than that of `init`: names of measures are not the program's.
constexpr std::string_view kOtherStudy =
                               "name: other\nmeasure: {one: 1, two: 2}\nfitted: [{measure: "
                               "two}]\nexpect: [{measure: two}]\n",
                           kThirdStudy =
                               "name: third\nmeasure: {three: 3}\nexpect: [{measure: three}]\n";

/// Small, because each reading of a cached graph fills the cache. Bounds that follow from the number of
/// keys differ in the second.
constexpr std::string_view
    kGraphPipeline =
        "sources: [{name: network, latency: 50 us, total: 10 Gbit/s}]\n"
        "stages: [{name: sample, time: 3 ms}, {name: features, queue: 2, "
        "read: {from: network, bytes: 400 B, cache: {stream: {kind: graph, "
        "keys: 200, degree: 3, exponent: 0.6, communities: 4, inside: 0.8, "
        "fan_out: [2, 2], batch: 5, batches: 6, partition: {workers: 4, "
        "by: fennel}}, policy: static, share: 0.1, from_batch: 1}}}]\n"
        "accelerator: {step: 2 ms}\n",
    kOtherGraphPipeline =
        "sources: [{name: network, latency: 50 us}]\n"
        "stages: [{name: features, read: {from: network, bytes: 400 B, "
        "cache: {stream: {kind: graph, keys: 300, degree: 3, communities: 4, "
        "fan_out: [2, 2], batch: 5, batches: 7, partition: {workers: 4, "
        "by: fennel}}, policy: static, share: 0.1}}}]\n"
        "accelerator: {step: 2 ms}\n";

/// Readers of several kinds of jobs share one kind of file.
void read_any_job(const fs::path& path) {
  if (is_serve_file(path))
    (void)load_serve_file(path, {});
  else
    for (const JobUse use : {JobUse::kOnePlan, JobUse::kRent}) (void)load_job(path, {}, {}, use);
}

template <auto read>
void reads(const fs::path& path) {
  (void)read(path);
}

}  // namespace

std::span<const SchemaFile> schema_files() {
  using namespace templates;
  using namespace meaning_pages;
  static const std::array<SchemaFile, 11> kFiles = {{
      {"job",
       "A job: a model or a recording, its training or server, its plan and its cluster",
       {serve_llama3_70b_pools_yaml, gpt2_xl_mixed_yaml},
       read_any_job,
       {{"workload", model_md},
        {"serve", serve_md},
        {"serve", model_md},
        {"cluster", cluster_md},
        {"input", input_pipeline_md},
        {"input", study_md},
        {"", job_md}}},
      {"cluster",
       "A cluster: devices, nodes and links",
       {in_full_yaml, a100_and_v100_yaml},
       reads<cluster::load_cluster>,
       {{"", cluster_md}}},
      {"study",
       "A study: jobs, a sweep, measures and expected values",
       {kOtherStudy, kThirdStudy},
       reads<load_study>,
       {{"", study_md}}},
      {"budget", "Limits of a check", {}, reads<read_budget>, {{"", budget_md}}},
      {"pipeline",
       "An input pipeline: stages and sources",
       {kGraphPipeline, kOtherGraphPipeline, imagenet_s3_yaml},
       reads<input::load_pipeline>,
       {{"", input_pipeline_md}, {"", study_md}}},
      {"shapes",
       "Operations to measure",
       {gpt2_yaml},
       reads<bench::read_shapes>,
       {{"", shapes_md}}},
      {"pack", "Jobs to place on GPUs", {pack_yaml}, reads<load_pack>, {{"", pack_md}}},
      {"jobs", "Jobs of a fleet", {}, reads<fleet::load_jobs>, {{"", jobs_md}}},
      {"pair", "Two programs to run and compare", {}, reads<read_pair>, {{"", pair_md}}},
      {"dataflow",
       "Operations on symbolic extents, and their device",
       {gat_yaml},
       reads<dataflow::load_dataflow>,
       {{"", dataflow_md}, {"device", cluster_md}}},
      {"link", "A link between two devices", {}, reads<cluster::load_link>, {{"", link_md}}},
  }};
  return kFiles;
}

Json schema_of(const SchemaFile& file, std::vector<std::string> seeds) {
  seeds.insert(seeds.end(), file.seeds.begin(), file.seeds.end());
  const YamlKeys keys = describe_reader(file.read, seeds);
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", file.title}};
  schema.add(Schema(keys, Meanings(file.pages)).mapping(""));
  if (file.name == "job") describe_job(schema);
  return schema;
}

}  // namespace rehearse::cli
