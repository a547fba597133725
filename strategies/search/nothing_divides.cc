#include "strategies/search/nothing_divides.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "strategies/check_plan.h"
#include "strategies/plan_fields.h"

namespace rehearse::strategies {
namespace {

/// A number that the job gives and that the search keeps.
struct Given {
  const Field<Candidate>& field;
  double value;

  std::string words_of(double other) const {
    return fmt::format("{} {}", field.name, value_words(field, other));
  }
  bool is(std::string_view name) const { return field.name == name; }
  std::string key() const {
    return fmt::format("{}.{}", field.at.section == Section::kTraining ? "training" : "plan",
                       field.name);
  }
};

std::vector<Given> given_numbers(const Axes& axes) {
  std::vector<Given> given;
  for (const Field<Candidate>& field : plan_fields()) {
    const bool is_number =
        field.at.kind == FieldKind::kCount || field.at.kind == FieldKind::kNumber;
    if (!is_number || field.axis.kept == nullptr || field.name == "zero") continue;
    if (const FieldValue value = field.axis.kept(axes)) given.push_back({field, *value});
  }
  return given;
}

bool multiplies_ranks(const Given& number) {
  return number.is("data") || number.is("tensor") || number.is("pipeline") || number.is("context");
}

/// "tensor 3 x pipeline 5 = 15 does not divide 16 ranks".
std::optional<std::string> wrong_product(const UndividedJob& job, const std::vector<Given>& given) {
  std::uint32_t ranks = job.ranks;
  if (job.plan.synchronization == Synchronization::kParameterServer)
    ranks -= std::min(ranks, job.plan.parameter_server.servers);
  double product = 1;
  std::string words;
  int factors = 0, above_one = 0;
  for (const Given& number : given) {
    if (!multiplies_ranks(number)) continue;
    ++factors;
    product *= number.value;
    if (number.value == 1) continue;
    words += (++above_one > 1 ? " x " : "") + number.words_of(number.value);
  }
  if (above_one > 1) words += fmt::format(" = {:.0f}", product);
  if (product > ranks || ranks % static_cast<std::uint32_t>(product) != 0)
    return fmt::format("{} does not divide {} ranks", words, ranks);
  constexpr int kAllFactors = 4;
  if (factors < kAllFactors || product == ranks) return std::nullopt;
  return fmt::format("{} leaves {:.0f} of {} ranks without work",
                     words.empty() ? "a product of 1" : words, ranks - product, ranks);
}

/// The plan nearest to the given numbers, and those that it changes.
struct Nearest {
  Candidate plan;
  std::vector<Given> changed = {};
  double distance = 0;
};

/// Of all plans that divide, the one that changes the fewest numbers, by the smallest factors;
/// nothing if no plan of these ranks divides the job, whatever its degrees.
std::optional<Nearest> nearest_plan(const UndividedJob& job, const std::vector<Given>& given) {
  Axes free = job.axes;
  for (std::vector<std::uint32_t>* axis :
       {&free.data, &free.tensor, &free.pipeline, &free.context, &free.expert, &free.interleave})
    axis->clear();
  free.microbatch.clear();
  free.offload = {Offload::kNone};
  free.placement = {Placement::kTensorDataPipeline};
  const Result<Space> space = Space::of(job.workload, job.training, job.plan, job.ranks, free);
  if (!space) return std::nullopt;
  std::optional<Nearest> best;
  for (std::uint64_t i = 0; i < space->size(); ++i) {
    Nearest near{space->at(i)};
    for (const Given& number : given) {
      const double value = number.field.at.get(near.plan).value_or(number.value);
      if (value == number.value) continue;
      near.changed.push_back(number);
      near.distance += std::abs(std::log(value / number.value));
    }
    const auto order = [](const Nearest& n) { return std::pair(n.changed.size(), n.distance); };
    if (!best || order(near) < order(*best)) best = std::move(near);
  }
  return best;
}

/// The reason why the nearest plan cannot have the given numbers instead.
std::optional<std::string> wrong_in_nearest(const UndividedJob& job, const Nearest& nearest) {
  Candidate plan = nearest.plan;
  for (const Given& number : nearest.changed) number.field.at.set(plan, number.value);
  const Status ok = check_plan(job.workload, plan.training, plan.plan);
  if (ok) return std::nullopt;
  return ok.error().diagnostics.front().problem;
}

}  // namespace

tl::unexpected<Error> nothing_divides(const UndividedJob& job, const std::optional<Error>& refused,
                                      std::uint32_t fewer) {
  const std::vector<Given> given =
      job.plan.stages.empty() ? given_numbers(job.axes) : std::vector<Given>();
  const std::optional<Nearest> nearest = given.empty() ? std::nullopt : nearest_plan(job, given);
  std::optional<std::string> why = wrong_product(job, given);
  if (!why && nearest) why = wrong_in_nearest(job, *nearest);
  if (!why && refused) why = refused->diagnostics.front().problem;
  Diagnostic d{.problem = fmt::format("no plan of {} ranks divides this job{}", job.ranks,
                                      why ? ": " + *why : "")};
  if (nearest)
    for (const Given& number : nearest->changed) {
      if (d.key.empty()) d.key = number.key();
      const double value = *number.field.at.get(nearest->plan);
      d.nearest += (d.nearest.empty() ? "nearest: " : ", ") + number.words_of(value);
    }
  if (d.nearest.empty()) d.expected = "degrees that divide layers, heads and batch";
  if (fewer > 0)
    d.nearest += fmt::format("{}{} ranks", d.nearest.empty() ? "nearest: " : ", or ", fewer);
  return fail(std::move(d));
}

}  // namespace rehearse::strategies
