#include "cli/study/run_study.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "cli/config/job_file.h"
#include "models/sharing/crossover.h"
#include "sim/engine/simgrid.h"

namespace rehearse::cli {
namespace {

/// " with model vgg16, workers 8"
std::string point_text(const Setting& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters)
    text += fmt::format("{} {} {}", text.empty() ? " with" : ",", name, value);
  return text;
}

Result<step::Step> predict_at(const Study& study, const JobTemplate& job,
                              const Setting& parameters) {
  const YamlMap sections = job.sections.filled(
      [&parameters](const std::string& text) { return fill_in(text, parameters); });
  const Result<JobFile> file = read_job(sections, study.path.parent_path());
  if (!file) return forward(file);
  Result<step::Step> step =
      step::predict(file->spec, file->cluster,
                    {.fidelity = study.fidelity, .unfold = false, .counterfactuals = false});
  if (step) return step;
  const Diagnostic& d = step.error().diagnostics.front();
  return fail(Diagnostic{.file = study.path.string(),
                         .key = "jobs." + job.name,
                         .problem = d.problem + point_text(parameters),
                         .expected = d.expected,
                         .nearest = d.nearest});
}

Estimate<double> quantity_of(const step::Step& step, Quantity quantity) {
  const Estimate<Seconds>& time = step.time;
  switch (quantity) {
    case Quantity::kStepTime:
      return {time.value.s(), time.low.s(), time.high.s(), time.provenance};
    case Quantity::kThroughput:
      return step.samples_per_s();
    case Quantity::kExposedCommunication: {  // with the interval of the whole in proportion
      const Seconds part = step.breakdown.exposed_communication;
      return {part.s(), part.s() * (time.low / time.value), part.s() * (time.high / time.value),
              time.provenance};
    }
    case Quantity::kMemory:
      break;
  }
  const Estimate<Bytes>& peak = memory::fullest(step.memory).peak;
  return {peak.value.b(), peak.low.b(), peak.high.b(), peak.provenance};
}

/// What jobs gain that take turns on the devices; each communicates for what its step does not
/// hide.
Result<Estimate<double>> crossover_of(const Study& study, const std::vector<step::Step>& steps,
                                      std::span<const std::size_t> jobs) {
  std::vector<sharing::TurnTaker> takers;
  std::optional<Bytes> usable;
  Provenance provenance = Provenance::kRecorded;
  for (const std::size_t job : jobs) {
    const step::Step& step = steps[job];
    if (step.layout.ranks() != steps[jobs.front()].layout.ranks())
      return fail(fmt::format("'{}' and '{}' have not as many ranks", study.jobs[jobs.front()].name,
                              study.jobs[job].name),
                  "jobs that take turns on the same devices");
    const memory::StageMemory& fullest = memory::fullest(step.memory);
    const Bytes here = fullest.device.usable;
    usable = usable ? std::min(*usable, here) : here;
    const Seconds exposed = step.breakdown.exposed_communication;
    takers.push_back(
        {study.jobs[job].name, step.time.value - exposed, exposed, fullest.peak.value});
    provenance = std::max(provenance, step.time.provenance);
  }
  const Result<sharing::Turns> turns = sharing::take_turns(takers, usable);
  if (!turns) return forward(turns);
  // Steps that err alike gain the same; no interval says more.
  return Estimate<double>{turns->gain, turns->gain, turns->gain, provenance};
}

Result<StudyPoint> point_at(const Study& study, const Setting& parameters) {
  StudyPoint point{.parameters = parameters};
  std::vector<step::Step> steps;
  for (const JobTemplate& job : study.jobs) {
    Result<step::Step> step = predict_at(study, job, parameters);
    if (!step) return forward(step);
    const bool fits = memory::fullest(step->memory).fit != memory::Fit::kDoesNotFit;
    point.jobs.push_back({job.name, step->time, step->layout.ranks(), fits});
    steps.push_back(std::move(*step));
  }
  FeedValues feeds(study.feeds, study.path.parent_path(),
                   [&parameters](const std::string& text) { return fill_in(text, parameters); });
  const Measured measured = {
      .of = [&](Quantity quantity, std::size_t job) { return quantity_of(steps[job], quantity); },
      .crossover =
          [&](std::span<const std::size_t> jobs) { return crossover_of(study, steps, jobs); },
      .feed = [&](std::string_view function,
                  std::string_view feed) { return feeds.value(function, feed); },
      .parameter = [&](std::string_view name) { return parameter_value(name, parameters); }};
  for (const Measure& m : study.measures) {
    const Result<Term> term = measure(m.expression, study.jobs, measured);
    if (!term) {
      const Diagnostic& d = term.error().diagnostics.front();
      return fail(Diagnostic{.file = study.path.string(),
                             .key = "measure." + m.name,
                             .problem = d.problem + point_text(parameters),
                             .expected = d.expected,
                             .nearest = d.nearest});
    }
    point.measured.push_back(*term);
  }
  return point;
}

}  // namespace

StudyVerdict judge(const Expectation& e, double least, double most) {
  if (!e.tolerance) return StudyVerdict::kShown;
  const double low_slack = *e.tolerance * std::abs(e.low);
  const double high_slack = *e.tolerance * std::abs(e.high);
  const bool low_not_below = least >= e.low - low_slack, low_reached = least <= e.low + low_slack;
  const bool high_not_above = most <= e.high + high_slack,
             high_reached = most >= e.high - high_slack;
  const bool within = low_not_below && high_not_above, covers = low_reached && high_reached;
  const bool holds = e.comparison == Comparison::kWithin   ? within
                     : e.comparison == Comparison::kCovers ? covers
                                                           : within && covers;
  return holds ? StudyVerdict::kMatched : StudyVerdict::kMissed;
}

Result<StudyResult> run_study(Study study, const Progress& progress) {
  if (study.fidelity == step::Fidelity::kSimgrid)
    if (Status ok = engine::check_simgrid(); !ok) return forward(ok);
  StudyResult result{.study = std::move(study)};
  const Study& s = result.study;
  const std::vector<Setting> points = points_of(s);
  for (const Setting& parameters : points) {
    if (progress &&
        !progress(static_cast<double>(result.points.size()) / static_cast<double>(points.size())))
      return fail("interrupted");
    Result<StudyPoint> point = point_at(s, parameters);
    if (!point) return forward(point);
    result.points.push_back(std::move(*point));
  }
  for (std::size_t m = 0; m < s.measures.size(); ++m)
    if (s.measures[m].name == s.expectation.measure) result.expected = m;
  const auto [least, most] = std::minmax_element(
      result.points.begin(), result.points.end(), [&](const StudyPoint& a, const StudyPoint& b) {
        return a.measured[result.expected].estimate.value <
               b.measured[result.expected].estimate.value;
      });
  result.least = least->measured[result.expected];
  result.most = most->measured[result.expected];
  result.verdict = judge(s.expectation, result.least.estimate.value, result.most.estimate.value);
  return result;
}

}  // namespace rehearse::cli
