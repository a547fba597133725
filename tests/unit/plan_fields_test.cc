// The table of fields of a plan: it is whole, its functions agree with its members, and what reads
// by it keeps its ranges.
#include "strategies/plan_fields.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "cli/config/read_plan.h"
#include "cli/output/json.h"
#include "cli/planning/plan_words.h"
#include "models/comm/schedule.h"
#include "strategies/check_plan.h"
#include "tests/support/tiny_models.h"

namespace rehearse::strategies {
namespace {

/// How many members an aggregate has: as many initialisers as it takes.
struct Anything {
  template <class T>
  operator T() const {
    std::abort();  // only its type is used
  }
};
template <class T, class... Initialisers>
constexpr std::size_t members(Initialisers... some) {
  if constexpr (requires { T{some..., Anything{}}; })
    return members<T>(some..., Anything{});
  else
    return sizeof...(some);
}

std::size_t rows(Section section) {
  const auto of = [&](const auto& field) { return field.at.section == section; };
  return std::count_if(plan_fields().begin(), plan_fields().end(), of) +
         std::count_if(stage_fields().begin(), stage_fields().end(), of);
}

/// A value that is not as usual.
double other_value(const Field<Candidate>& field) {
  const FieldValue usual = field.at.get(Candidate{});
  if (field.at.kind == FieldKind::kFlag) return usual == 0.0 ? 1 : 0;
  if (field.at.kind == FieldKind::kChoice) return usual == 0.0 ? 1 : 0;
  const double next = usual.value_or(1) + 1;
  return is_within(field.range, next) ? next : field.range.most / 2;
}

std::optional<Error> error_of(const std::string& yaml) {
  const Result<YamlFile> file = YamlFile::parse(yaml, "job.yaml");
  if (!file) return file.error();
  const YamlMap root = file->root();
  if (const auto map = root.map("training")) cli::read_training(*map);
  if (const auto map = root.map("plan")) cli::read_plan(*map);
  root.no_other_keys();
  const Status status = file->status();
  return status ? std::nullopt : std::optional(status.error());
}

/// A file with one number in the mapping of a section.
std::string file_with(Section section, std::string_view key, double value) {
  const std::string given =
      fmt::format("{}: {:.0f}{}", key, value, value == std::floor(value) ? "" : ".5");
  switch (section) {
    case Section::kTraining:
      return key == "global_batch" ? "training: {" + given + "}"
                                   : "training: {global_batch: 8, " + given + "}";
    case Section::kPlan: return "plan: {" + given + (key == "bucket" ? " B}" : "}");
    case Section::kParameterServer: return "plan: {parameter_server: {" + given + "}}";
    case Section::kCollectives: return "plan: {collectives: {" + given + "}}";
    case Section::kStage: return "plan: {stages: [{" + given + "}]}";
  }
  return "";
}

template <class Record>
void check_range(const Field<Record>& field) {
  if (field.at.kind == FieldKind::kFlag || field.at.kind == FieldKind::kChoice) return;
  INFO(field.name);
  if (!field.range.above)
    CHECK_FALSE(error_of(file_with(field.at.section, field.name, field.range.least)));
  CHECK_FALSE(error_of(file_with(field.at.section, field.name, field.range.most)));
  for (const double wrong : {field.range.above ? field.range.least : field.range.least - 1,
                             field.range.most + 1, field.range.most * 1e6, -field.range.most}) {
    INFO(wrong);
    const std::optional<Error> error = error_of(file_with(field.at.section, field.name, wrong));
    REQUIRE(error);
    const Diagnostic& first = error->diagnostics.front();
    CHECK(first.line == 1);
    CHECK(first.column > 5);
    CHECK(first.key.ends_with(field.name));
  }
}

}  // namespace

TEST_CASE("every member of a plan and its training has a row") {
  CHECK(rows(Section::kTraining) == members<Training>());
  // `parameter_server`, `collectives` and `stages` have rows of their own.
  // `tiers` has a name in `offload`, four places and three shares.
  CHECK(rows(Section::kPlan) == members<Plan>() - 3 + 7);
  // `asynchronous` is another way to write `staleness`.
  CHECK(rows(Section::kParameterServer) == members<ParameterServer>() + 1);
  // `name` is no quantity.
  CHECK(rows(Section::kStage) == members<StagePlan>() - 1);
}

TEST_CASE("names are unique, and defaults are within their ranges") {
  std::set<std::string_view> names;
  for (const Field<Candidate>& field : plan_fields()) {
    INFO(field.name);
    CHECK(names.insert(field.name).second);
    CHECK_FALSE(field.meaning.empty());
    const bool number = field.at.kind != FieldKind::kFlag && field.at.kind != FieldKind::kChoice;
    if (const FieldValue usual = field.at.get(Candidate{}); usual && number)
      CHECK(is_within(field.range, *usual));
    CHECK((field.at.kind == FieldKind::kChoice) == !field.at.choices.empty());
    CHECK((field.axis.keep == nullptr) == (field.axis.kept == nullptr));
  }
  CHECK(check_ranges(Candidate{}));
}

/// `offload` is a name of what the tiers of single states say.
bool says_the_same(std::string_view a, std::string_view b) {
  const auto one = [](std::string_view name) {
    return name.ends_with("_on") || name.ends_with("_away");
  };
  return (a == "offload" && one(b)) || (b == "offload" && one(a));
}

TEST_CASE("setting a field changes that field and nothing else") {
  for (const Field<Candidate>& field : plan_fields()) {
    if (field.name == "asynchronous" || field.name == "staleness") continue;  // one member
    INFO(field.name);
    Candidate changed;
    field.at.set(changed, other_value(field));
    CHECK(field.at.get(changed) == other_value(field));
    for (const Field<Candidate>& other : plan_fields())
      if (other.name != field.name && !says_the_same(field.name, other.name))
        CHECK(other.at.get(changed) == other.at.get(Candidate{}));
  }
}

TEST_CASE("tiers without a name are not reported under one") {
  Candidate candidate;
  candidate.plan.tiers.optimizer = {.tier = Tier::kNvme};
  CHECK_FALSE(is_unusual(plan_field("offload"), candidate));
  CHECK(is_unusual(plan_field("optimizer_on"), candidate));
}

TEST_CASE("an axis keeps its given value") {
  for (const Field<Candidate>& field : plan_fields()) {
    if (field.axis.keep == nullptr) continue;
    INFO(field.name);
    Axes axes;
    CHECK_FALSE(field.axis.kept(axes));
    field.axis.keep(axes, other_value(field));
    CHECK(field.axis.kept(axes) == other_value(field));
  }
}

TEST_CASE("every number of a training, a plan and its stages keeps its range when it is read") {
  for (const Field<Candidate>& field : plan_fields()) check_range(field);
  for (const Field<StagePlan>& field : stage_fields()) check_range(field);
  // These ran for minutes, or ended as a fault of the program.
  for (const char* batch : {"8e15", "12345678901234567890123", "1e400", "-1", "0", "nan"}) {
    INFO(batch);
    CHECK(error_of(fmt::format("training: {{global_batch: {}}}", batch)));
  }
}

TEST_CASE("a collective has exactly the algorithms of its schedules") {
  for (const Field<Candidate>& field : plan_fields()) {
    if (field.at.section != Section::kCollectives) continue;
    INFO(field.name);
    const auto kind = static_cast<CollectiveKind>(
        std::find(kCollectiveNames.begin(), kCollectiveNames.end(), field.name) -
        kCollectiveNames.begin());
    for (const std::string_view name : kAlgorithmNames) {
      const auto algorithm =
          static_cast<Algorithm>(std::find(kAlgorithmNames.begin(), kAlgorithmNames.end(), name) -
                                 kAlgorithmNames.begin());
      bool can = false;
      for (const std::uint32_t per_node : {4U, 2U})
        can |= comm::schedule(kind, algorithm, {.ranks = 4, .per_node = per_node}).has_value();
      const auto& choices = field.at.choices;
      CHECK(can == (std::find(choices.begin(), choices.end(), name) != choices.end()));
    }
  }
}

TEST_CASE("an unknown collective or algorithm is one line with the nearest name") {
  const auto line = [](const char* collectives) {
    const std::optional<Error> error =
        error_of(fmt::format("plan: {{collectives: {{{}}}}}", collectives));
    return error ? to_string(*error) : std::string();
  };
  CHECK(line("all_to_all: two_dimensional, all_reduce: ring").empty());
  CHECK(line("all_to_all: two_dimensionl") ==
        "job.yaml:1:34: plan.collectives.all_to_all: unknown value 'two_dimensionl'; did you mean "
        "'two_dimensional'?");
  CHECK(line("all_to_all: tree").find("one of automatic, pairwise") != std::string::npos);
  CHECK(line("all_too_all: linear").find("did you mean 'all_to_all'?") != std::string::npos);
}

TEST_CASE("a plan with too many ranks or passes is refused in one line") {
  const workload::Workload model = test::tiny_gpt({});
  const auto why = [&](const Training& training, const Plan& plan) {
    const Status ok = check_plan(model, training, plan);
    return ok ? std::string() : to_string(ok.error());
  };
  CHECK(why({.global_batch = 8e8}, {}).find("800000000 microbatches") != std::string::npos);
  // 2^32 ranks are none in 32 bits.
  CHECK(
      why({.global_batch = 65'536}, {.data = 65'536, .context = 65'536}).find("4294967296 ranks") !=
      std::string::npos);
}

TEST_CASE("JSON has every field, with the values used for open ones") {
  const step::Spec spec = {.workload = test::tiny_gpt({}),
                           .training = {},
                           .plan = {.tensor = 2, .stages = {{.name = "all", .tensor = 2}}},
                           .conditions = {}};
  const std::string json = cli::json_text(cli::plan_json(spec));
  for (const Field<Candidate>& field : plan_fields()) {
    INFO(field.name);
    CHECK(json.find(fmt::format("\"{}\": ", field.name)) != std::string::npos);
  }
  CHECK(json.find("\"expert_tensor\": 2") != std::string::npos);
  CHECK(json.find("\"gradients\": \"fp32\"") != std::string::npos);
  CHECK(json.find("\"name\": \"all\"") != std::string::npos);
}

TEST_CASE("a plan in words: degrees first, then the fields that differ from their defaults") {
  CHECK(cli::plan_words({}, {}) == "one rank, microbatch 1");
  CHECK(cli::plan_words({.microbatch = 2, .recompute = Recompute::kFull},
                        {.data = 16, .tensor = 8, .pipeline = 12, .zero = 1}) ==
        "data 16 × tensor 8 × pipeline 12, microbatch 2, ZeRO-1, full recomputation");
  // One stage has no stated order of passes.
  CHECK(cli::plan_words({}, {.schedule = Schedule::kGpipe}) == "one rank, microbatch 1");
  CHECK(cli::plan_words({}, {.pipeline = 2, .schedule = Schedule::kGpipe}) ==
        "pipeline 2, microbatch 1, gpipe");
}

}  // namespace rehearse::strategies
