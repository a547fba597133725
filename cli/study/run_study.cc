#include "cli/study/run_study.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include <fmt/core.h>

#include "cli/config/job_account.h"
#include "cli/config/job_file.h"
#include "cli/config/job_input.h"
#include "cli/config/job_outline.h"
#include "cli/config/named_files.h"
#include "cli/recommending/stalls.h"
#include "models/sharing/crossover.h"
#include "sim/base/check.h"
#include "sim/engine/simgrid.h"
#include "sim/work/bytes.h"

namespace rehearse::cli {
namespace {

/// " with model vgg16, workers 8"
std::string point_text(const Setting& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters)
    text += fmt::format("{} {} {}", text.empty() ? " with" : ",", name, value);
  return text;
}

/// The result, whose first mistake names the key of the study and the point.
template <class T>
Result<T> at_point(const Study& study, std::string key, const Setting& parameters,
                   Result<T> result) {
  if (result) return result;
  Diagnostic d = result.error().diagnostics.front();
  if (!d.line) d.file = study.path.string();  // else the place of a mistake in this file or another
  d.key = std::move(key);
  d.problem += point_text(parameters);
  return fail(std::move(d));
}

/// How much of a step is predicted. Its interval and its communication take further runs.
enum class Extent : std::uint8_t { kValue, kWhole };

struct PredictedAt {
  Extent extent;
  JobFile file;
  step::Step step;  ///< without its run
  Seconds hidden;   ///< hidden_communication() of the run of a whole step
};
using SharedPrediction = std::shared_ptr<const PredictedAt>;

/// What points have in common.
struct Known {
  KnownRuns<const PredictedAt> jobs;
  KnownRuns<SharedFeedRun> feeds;
};

YamlFill filled_at(const Setting& parameters) {
  return [&parameters](const std::string& text) { return fill_in(text, parameters); };
}

Result<SharedPrediction> predict_at(const Study& study, const JobTemplate& job, Extent extent,
                                    const Setting& parameters, Known& known) {
  const bool whole = extent == Extent::kWhole;
  const auto make = [&](YamlFill fill) -> Result<SharedPrediction> {
    JobFile file = TRY(read_job(job.sections.filled(std::move(fill)), study.path.parent_path()));
    const auto predict = [&]() -> Result<step::Step> {
      step::Step step = TRY(step::predict(
          file.spec, file.cluster,
          {.fidelity = study.fidelity, .counterfactuals = false, .value_only = !whole}));
      if (file.input) TRY(feed(input::Feed(*file.input), file.cluster, step));
      return step;
    };
    step::Step step = TRY(at_point(study, "jobs." + job.name, parameters, predict()));
    const Seconds hidden = whole ? hidden_communication(step) : Seconds::s(0);
    step.drop_run();
    return std::make_shared<const PredictedAt>(
        PredictedAt{extent, std::move(file), std::move(step), hidden});
  };
  return known.jobs.of(
      fmt::format("{}\n{}{}", study.path.string(), job.name, whole ? "\nwhole" : ""),
      filled_at(parameters), make);
}

/// A quantity of the account of a step, such as its cost; fails with the reason if it is not known.
Result<Estimate<double>> account_quantity(const JobFile& file, const step::Step& step,
                                          Observed quantity) {
  const cost::StepAccount account = account_of_step(file, step);
  const auto plain = [](const auto& e) -> Result<Estimate<double>> {
    return mapped(e, [](const auto& end) { return end.si(); });
  };
  if (quantity == Observed::kCost && account.money) return plain(*account.money);
  if (quantity == Observed::kEnergy && account.energy) return plain(*account.energy);
  if (quantity == Observed::kCarbon && account.carbon) return *account.carbon;
  for (const std::string& note : account.notes)
    if (note.starts_with("no ")) return fail(note);
  return fail(fmt::format("no {} is known", kQuantityNames[static_cast<std::size_t>(quantity)]));
}

Result<Estimate<double>> stall_quantity(const JobFile& file, const step::Step& step,
                                        step::Fidelity fidelity, Observed quantity) {
  const auto stall = TRY([&]() -> Result<Seconds> {
    if (quantity == Observed::kNodeSharing) {
      const std::optional<Seconds> sharing =
          TRY(node_sharing(file.spec, file.cluster, file.place.rented, step, fidelity));
      if (!sharing)
        return fail("the network between nodes of one device each is unknown",
                    "inter_node, or an instance whose network the catalog has");
      return *sharing;
    }
    const cost::Stalls stalls = TRY(stalls_of(file.spec, file.cluster, step, fidelity));
    return quantity == Observed::kNetworkStall ? *stalls.network : *stalls.interconnect;
  }());
  const double part = stall.s();
  const Estimate<Seconds>& time = step.time;
  const double by_low = part * (time.low / time.value), by_high = part * (time.high / time.value);
  return Estimate<double>{part, std::min(by_low, by_high), std::max(by_low, by_high),
                          time.provenance};
}

Result<Estimate<double>> quantity_of(const JobFile& file, const step::Step& step,
                                     step::Fidelity fidelity, Observed quantity) {
  const Estimate<Seconds>& time = step.time;
  switch (quantity) {
    case Observed::kStepTime: return mapped(time, [](Seconds end) { return end.s(); });
    case Observed::kThroughput: return step.samples_per_s();
    case Observed::kExposedCommunication: {  // with the interval of the whole in proportion
      const Seconds part = step.communication;
      return Estimate<double>{part.s(), part.s() * (time.low / time.value),
                              part.s() * (time.high / time.value), time.provenance};
    }
    case Observed::kMemory: break;
    case Observed::kFits: {
      const double fit = step.fits() ? 1 : 0;
      return Estimate<double>{fit, fit, fit, Provenance::kExtrapolated};
    }
    case Observed::kCost:
    case Observed::kEnergy:
    case Observed::kCarbon: return account_quantity(file, step, quantity);
    case Observed::kInterconnectStall:
    case Observed::kNetworkStall:
    case Observed::kNodeSharing: return stall_quantity(file, step, fidelity, quantity);
    case Observed::kStates: {
      const double states = memory::fullest(step.memory).parts.states().b();
      return Estimate<double>{states, states, states, Provenance::kExtrapolated};
    }
  }
  return mapped(memory::fullest(step.memory).peak, [](Bytes end) { return end.b(); });
}

/// The parts of a study with these parameters, each run at most once.
class PointRun {
 public:
  /// Only the prices of controllers are measured with other parameters, by a run without controllers.
  PointRun(const Study& study, Setting parameters, Extent extent, Known& known,
           bool controls = true)
      : study_(study),
        parameters_(std::move(parameters)),
        extent_(extent),
        known_(known),
        jobs_(study.jobs.size()),
        feeds_(study.feeds, filled_at(parameters_),
               {study.path,
                study.fidelity,
                {parameters_,
                 [this, controls](const std::string& price, const Setting& replaced) {
                   return controls ? priced(price, replaced)
                                   : fail("a price depends on a controller",
                                          "quantities of other parts of the study");
                 }}},
               known.feeds) {}
  PointRun(const PointRun&) = delete;
  PointRun& operator=(const PointRun&) = delete;

  Result<const PredictedAt*> job(std::size_t index) { return job(index, extent_); }

  Result<Term> value(const std::string& expression) {
    return measure(
        expression, study_.jobs,
        {.of = [this](Observed quantity, std::size_t index) -> Result<Estimate<double>> {
           const bool parts = quantity == Observed::kExposedCommunication;
           const PredictedAt& at = *TRY(job(index, parts ? Extent::kWhole : extent_));
           return quantity_of(at.file, at.step, study_.fidelity, quantity);
         },
         .crossover = [this](auto jobs) { return crossover_of(jobs); },
         .feed = [this](std::string_view function,
                        std::string_view feed) { return feeds_.value(function, feed); },
         .parameter =
             [this](std::string_view name) { return parameter_value(name, parameters_); }});
  }

 private:
  Result<const PredictedAt*> job(std::size_t index, Extent extent) {
    SharedPrediction& job = jobs_[index];
    if (!job || job->extent < extent)
      job = TRY(predict_at(study_, study_.jobs[index], extent, parameters_, known_));
    return job.get();
  }

  Result<double> priced(const std::string& price, const Setting& replaced) {
    Setting parameters = parameters_;
    for (const auto& [name, value] : replaced) {
      const auto same = [&name = name](const auto& known) { return known.first == name; };
      const auto found = std::ranges::find_if(parameters, same);
      if (found == parameters.end())
        return fail(fmt::format("'{}' is not a parameter of the sweep", name),
                    fmt::format("sweep: {{{}: [its usual value]}}", name));
      found->second = value;
    }
    std::pair key(price, parameters);
    if (const auto known = prices_.find(key); known != prices_.end()) return known->second;
    PointRun run(study_, std::move(parameters), Extent::kValue, known_, false);
    if (run.parameters_ == parameters_) run.jobs_ = jobs_;
    const double value = TRY(run.value(price)).estimate.value;
    return prices_.emplace(std::move(key), value).first->second;
  }

  /// The gain of jobs that take turns on the devices. The hidden communication of each step overlaps
  /// with its backward pass, and the exposed communication follows it.
  Result<Estimate<double>> crossover_of(std::span<const std::size_t> jobs) {
    const std::string division = TRY(fill_in(study_.links, parameters_));
    const sharing::Links links = TRY(links_of(division));
    std::vector<sharing::TurnTaker> takers;
    std::optional<Bytes> usable;
    Provenance provenance = Provenance::kRecorded;
    const std::uint32_t ranks = TRY(job(jobs.front(), Extent::kWhole))->step.layout.ranks();
    for (const std::size_t index : jobs) {
      const PredictedAt& at = *TRY(job(index, Extent::kWhole));
      const step::Step& step = at.step;
      if (step.layout.ranks() != ranks)
        return fail(fmt::format("'{}' and '{}' have different numbers of ranks",
                                study_.jobs[jobs.front()].name, study_.jobs[index].name),
                    "jobs that take turns on the same devices");
      const memory::StageMemory& fullest = memory::fullest(step.memory);
      const Bytes here = fullest.device.usable;
      usable = usable ? std::min(*usable, here) : here;
      const Seconds exposed = step.communication;
      takers.push_back({.name = study_.jobs[index].name,
                        .compute = step.time.value - exposed,
                        .exposed = exposed,
                        .hidden = at.hidden,
                        .memory = fullest.peak.value});
      provenance = std::max(provenance, step.time.provenance);
    }
    const sharing::Turns turns = TRY(sharing::take_turns(takers, links, usable));
    // Steps with equal errors have the same gain, so an interval adds nothing.
    return Estimate<double>{turns.gain, turns.gain, turns.gain, provenance};
  }

  const Study& study_;
  Setting parameters_;
  Extent extent_;  // of jobs, unless a quantity needs more
  Known& known_;
  std::map<std::pair<std::string, Setting>, double> prices_;  // controllers share them
  std::vector<SharedPrediction> jobs_;
  FeedValues feeds_;
};

Result<StudyPoint> point_at(const Study& study, const Setting& parameters, Extent extent,
                            Known& known) {
  StudyPoint point{.parameters = parameters};
  PointRun run(study, parameters, extent, known);
  for (std::size_t j = 0; j < study.jobs.size(); ++j) {
    const PredictedAt& at = *TRY(run.job(j));
    point.jobs.push_back(
        {study.jobs[j].name, at.step.time, at.step.layout.ranks(), at.step.fits()});
  }
  for (const Measure& m : study.measures)
    point.measured.push_back(
        TRY(at_point(study, "measure." + m.name, parameters, run.value(m.expression))));
  return point;
}

std::string packed(const StudyPoint& point) {
  work::Packer packer;
  const auto put = [&](double value, double low, double high, Provenance provenance) {
    for (const double number : {value, low, high}) packer.put(number);
    packer.put(static_cast<std::uint64_t>(provenance));
  };
  for (const StudyJob& job : point.jobs) {
    const Estimate<Seconds>& time = job.step_time;
    put(time.value.s(), time.low.s(), time.high.s(), time.provenance);
    packer.put(std::uint64_t{job.ranks});
    packer.put(std::uint64_t{job.fits});
  }
  for (const Term& term : point.measured) {
    const Estimate<double>& estimate = term.estimate;
    put(estimate.value, estimate.low, estimate.high, estimate.provenance);
    packer.put(term.unit);
  }
  return packer.take();
}

StudyPoint unpacked(const std::string& bytes, const Study& study, Setting parameters) {
  work::Unpacker from(bytes);
  const auto estimate = [&] {
    const double value = from.number(), low = from.number(), high = from.number();
    return Estimate<double>{value, low, high, static_cast<Provenance>(from.count())};
  };
  StudyPoint point{.parameters = std::move(parameters)};
  for (const JobTemplate& job : study.jobs) {
    const Estimate<double> s = estimate();
    StudyJob one = {job.name,
                    {Seconds::s(s.value), Seconds::s(s.low), Seconds::s(s.high), s.provenance},
                    0,
                    false};
    one.ranks = static_cast<std::uint32_t>(from.count());
    one.fits = from.count() != 0;
    point.jobs.push_back(std::move(one));
  }
  for (std::size_t m = 0; m < study.measures.size(); ++m) {
    const Estimate<double> value = estimate();
    point.measured.push_back({value, from.text()});
  }
  REHEARSE_CHECK(from.whole(), "{} bytes is not a point of {}", bytes.size(), study.name);
  return point;
}

/// The minimum and the maximum of a measure over the points of a selection; over all if it is
/// empty.
std::pair<Term, Term> ends_of(const std::vector<StudyPoint>& points, std::size_t measure,
                              const Selection& selection) {
  const Term *least = nullptr, *most = nullptr;
  for (const StudyPoint& point : points) {
    if (!is_selected(selection, point.parameters)) continue;
    const Term& term = point.measured[measure];
    if (!least || term.estimate.value < least->estimate.value) least = &term;
    if (!most || term.estimate.value > most->estimate.value) most = &term;
  }
  REHEARSE_CHECK(least, "no point is selected");
  return {*least, *most};
}

std::vector<CurvePoint> curve_of(const Curve& curve, const std::vector<StudyPoint>& points,
                                 std::size_t measure) {
  std::vector<CurvePoint> found;
  for (const auto& [value, published] : curve.published) {
    const auto [least, most] = ends_of(points, measure, curve.points_of(value));
    const double below = least.estimate.value / published - 1,
                 above = most.estimate.value / published - 1;
    found.push_back(
        {value, published, least, most, std::abs(below) > std::abs(above) ? below : above});
  }
  return found;
}

std::size_t index_of(const Study& study, const std::string& measure) {
  const auto found =
      std::ranges::find_if(study.measures, [&](const Measure& m) { return m.name == measure; });
  return static_cast<std::size_t>(found - study.measures.begin());
}

Compared compare(const Expectation& e, const StudyResult& result) {
  Compared compared{.measure = index_of(result.study, e.measure)};
  std::tie(compared.least_of_all, compared.most_of_all) =
      ends_of(result.points, compared.measure, {});
  if (!e.is_curve()) {
    std::tie(compared.least, compared.most) = ends_of(result.points, compared.measure, e.curve.at);
    const double least = compared.least.estimate.value, most = compared.most.estimate.value;
    compared.errors = errors_of(e, least, most);
    compared.verdict = judge(e, compared.errors, least <= e.low && e.high <= most);
    return compared;
  }
  compared.curve = curve_of(e.curve, result.points, compared.measure);
  compared.errors = errors_of(compared.curve);
  const auto by = [](auto member) {
    return [member](const CurvePoint& a, const CurvePoint& b) {
      return (a.*member).estimate.value < (b.*member).estimate.value;
    };
  };
  const auto& curve = compared.curve;
  compared.least = std::ranges::min_element(curve, by(&CurvePoint::least))->least;
  compared.most = std::ranges::max_element(curve, by(&CurvePoint::most))->most;
  compared.verdict =
      judge(e, compared.errors, std::ranges::all_of(curve, [](const CurvePoint& p) {
              return p.least.estimate.value <= p.published && p.published <= p.most.estimate.value;
            }));
  return compared;
}

/// Marks a point if no other is better in one measure and no worse in the other.
void mark_front(StudyResult& result) {
  if (result.study.front.empty()) return;
  const std::size_t first = index_of(result.study, result.study.front[0]),
                    second = index_of(result.study, result.study.front[1]);
  const auto value = [](const StudyPoint& point, std::size_t measure) {
    return point.measured[measure].estimate.value;
  };
  for (StudyPoint& point : result.points)
    point.on_front = std::ranges::none_of(result.points, [&](const StudyPoint& other) {
      const double a = value(other, first) - value(point, first),
                   b = value(other, second) - value(point, second);
      return a <= 0 && b <= 0 && (a < 0 || b < 0);
    });
}

/// Fails with each tolerance that was chosen after its error.
Status compare_all(StudyResult& result) {
  std::vector<StudyVerdict> verdicts;
  for (const Expectation& e : result.study.expectations) {
    const Compared& compared = result.compared.emplace_back(compare(e, result));
    verdicts.push_back(compared.verdict);
    if (compared.verdict != StudyVerdict::kReproduced) continue;
    if (const auto chosen = chosen_tolerance(e, compared.errors))
      e.map.report("tolerance",
                   fmt::format("{:g} is within a tenth of its own error, {:.3g}", chosen->tolerance,
                               chosen->error),
                   fmt::format("{:g}, or one with a reason:", kUsualTolerance));
  }
  result.verdict = worst_or_best(verdicts);
  for (std::size_t f = 0; f < result.study.fits.size(); ++f) {
    const Fit& fit = result.study.fits[f];
    if (!fit.measure || fit.curve.published.empty()) continue;
    const std::size_t measure = index_of(result.study, *fit.measure);
    result.fitted.push_back({f, measure, curve_of(fit.curve, result.points, measure)});
  }
  return result.study.expectations.front().map.status();
}

}  // namespace

Result<work::Fingerprint> fingerprint_of(const std::vector<Study>& studies) {
  work::Fingerprint fingerprint;
  TRY(fingerprint.add_program());
  for (const Study& study : studies) {
    const std::vector<Setting> points = points_of(study);
    const auto spellings = [&points](const std::string& word) {
      std::vector<std::string> filled;
      for (const Setting& point : points)
        if (Result<std::string> text = fill_in(word, point)) filled.push_back(std::move(*text));
      return filled;
    };
    TRY(add_with_named_files(fingerprint, study.path, spellings));
  }
  return fingerprint;
}

Result<std::vector<StudyResult>> run_studies(std::vector<Study> studies, bool intervals,
                                             work::ExecutionOptions execution) {
  std::vector<StudyResult> results;
  std::vector<std::vector<Setting>> points;
  std::vector<std::pair<std::size_t, std::size_t>> items;  // study and point
  for (Study& study : studies) {
    if (study.fidelity == step::Fidelity::kSimgrid) {
      TRY(engine::check_simgrid());
      execution.threads = 1;  // it runs in processes, which are forked from a process of one thread
    }
    points.push_back(points_of(study));
    for (std::size_t p = 0; p < points.back().size(); ++p) items.emplace_back(results.size(), p);
    results.push_back({.study = std::move(study)});
  }
  const Extent extent = intervals ? Extent::kWhole : Extent::kValue;
  Known known;
  const work::Work work{
      .part = "points",
      .items = items.size(),
      .evaluate = [&](std::size_t item) -> Result<std::string> {
        const auto [s, p] = items[item];
        // A file under reading collects requested keys and errors, so each point
        // has its own.
        const Study study = TRY(read_study(results[s].study.path, results[s].study.text));
        const StudyPoint point = TRY(point_at(study, points[s][p], extent, known));
        return packed(point);
      }};
  const std::vector<std::string> done = TRY(work::run_all(work, execution));
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto [s, p] = items[i];
    results[s].points.push_back(unpacked(done[i], results[s].study, points[s][p]));
  }
  for (StudyResult& result : results) {
    mark_front(result);
    TRY(compare_all(result));
  }
  return results;
}

}  // namespace rehearse::cli
