#include "profiler/replay/advice.h"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/core.h>

#include "profiler/replay/attribution.h"
#include "profiler/trace/recorder.h"
#include "sim/base/on_threads.h"

namespace rehearse::replay {
namespace {

using graph::Category;

struct Candidate {
  Advice advice;
  std::function<Result<RecordedProgram>()> apply;
};

/// "void at::native::kernel<4, float>(int)" -> "at::native::kernel": what survives another shape.
std::string kernel_family(std::string_view name) {
  if (name.starts_with("void ")) name.remove_prefix(5);
  return std::string(name.substr(0, name.find_first_of("<(")));
}

/// The names of a category that hold most time on the critical path, largest first.
template <class NameOf>
std::vector<std::string> heaviest(const CriticalSteps& critical, std::size_t count,
                                  NameOf name_of) {
  std::map<std::string, std::int64_t> time;
  for (const graph::PathStep& step : critical.path)
    if (const std::optional<std::string> name = name_of(step.op); name && !name->empty())
      time[*name] += (step.end - step.begin).count();
  std::vector<std::pair<std::int64_t, std::string>> ranked;
  ranked.reserve(time.size());
  for (const auto& [name, sum] : time) ranked.emplace_back(sum, name);
  std::ranges::stable_sort(ranked, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(count, ranked.size()); ++i)
    names.push_back(ranked[i].second);
  return names;
}

class Candidates {
 public:
  Candidates(const std::vector<Recording>& recordings, const RecordedProgram& program)
      : recordings_(recordings), program_(program) {}

  void scale(const std::string& what, double factor, std::string meaning) {
    const std::string text = fmt::format("{}:{}", what, factor);
    const Result<Scale> edit = parse_scale(text);
    if (!edit || select(recordings_, program_, edit->what).empty()) return;
    add(fmt::format("--scale '{}'", text), std::move(meaning),
        [this, edit = *edit] { return replay::scale(recordings_, program_, edit); });
  }

  void remove(const std::string& what, std::string meaning) {
    const Result<Selector> edit = parse_selector(what);
    if (!edit || select(recordings_, program_, *edit).empty()) return;
    add(fmt::format("--remove {}", what), std::move(meaning),
        [this, edit = *edit] { return replay::remove(recordings_, program_, edit); });
  }

  void overlap_input(InputPipeline pipeline, std::string meaning) {
    const auto loads = [](const program::ProgramOp& op) {
      return op.task == program::Task::kInput;
    };
    for (const program::RankProgram& rank : program_.programs)
      if (std::ranges::any_of(rank.ops, loads))
        return add(
            fmt::format("--input-pipeline workers={}", pipeline.workers), std::move(meaning),
            [this, pipeline] { return replay::overlap_input(recordings_, program_, pipeline); });
  }

  std::vector<Candidate> take() { return std::move(list_); }

 private:
  void add(std::string edit, std::string meaning, std::function<Result<RecordedProgram>()> apply) {
    list_.push_back({{.edit = std::move(edit), .meaning = std::move(meaning)}, std::move(apply)});
  }

  const std::vector<Recording>& recordings_;
  const RecordedProgram& program_;
  std::vector<Candidate> list_;
};

}  // namespace

std::vector<Advice> find_advice(const std::vector<Recording>& recordings, const ReplayGraph& replay,
                                const graph::Timeline& timeline, const Run& run, std::size_t count,
                                unsigned threads) {
  const Seconds before = compare(recordings, replay, timeline).step_time.simulated;
  if (!(before > Seconds::s(0))) return {};
  const CriticalSteps critical = find_critical_steps(replay, timeline);

  Candidates candidates(recordings, replay.program);
  candidates.scale("kernel", 0.5, "every kernel twice as fast");
  candidates.scale("collective", 0.5, "every collective twice as fast");
  candidates.scale("copy", 0.5, "every copy twice as fast");
  candidates.scale("host", 0.5, "all host work twice as fast");
  candidates.scale("launch", 0.5, "launches reach the device in half the time");
  candidates.remove("profiler", "without the profiler's own work");
  candidates.overlap_input({.workers = 4}, "load batches on 4 worker processes");
  for (const std::string& family : heaviest(critical, 3, [&](OpId op) {
         return replay.graph().category(op) == Category::kCompute
                    ? std::optional(kernel_family(replay.graph().name(op)))
                    : std::nullopt;
       }))
    candidates.scale(fmt::format("kernel=*{}*", family), 0.5,
                     fmt::format("kernels {} twice as fast", family));
  // Host work by the outermost named range, a phase of the step, and by the innermost operator.
  const auto host_names = [&](std::size_t most, auto name_of_row) {
    return heaviest(critical, most, [&](OpId op) -> std::optional<std::string> {
      const auto place = replay.lowered.place_of(op);
      if (!place) return std::nullopt;
      const Recorded& recorded = replay.program.programs[place->run].recorded[place->op];
      if (recorded.kind != Recorded::Kind::kHost || !recorded.row) return std::nullopt;
      return name_of_row(recordings[place->run], *recorded.row);
    });
  };
  std::vector<std::string> names = host_names(2, [](const Recording& r, HostIndex row) {
    std::optional<std::string> name;
    for (std::optional<HostIndex> at = row; at; at = r.parent(*at))
      if (r.host(*at).kind == trace::HostKind::kAnnotation &&
          !trace::is_step_name(r.name(r.host(*at))))
        name = std::string(r.name(r.host(*at)));
    return name;
  });
  for (std::string& name : host_names(2, [](const Recording&r, HostIndex row) {
         const bool is_operator = r.host(row).kind == trace::HostKind::kOperator;
         return is_operator ? std::optional(std::string(r.name(r.host(row)))) : std::nullopt;
       }))
    names.push_back(std::move(name));
  for (const std::string& name : names)
    candidates.scale(fmt::format("host={}", name), 0.5,
                     fmt::format("host work in {} twice as fast", name));

  std::vector<Candidate> list = candidates.take();
  on_threads(list.size(), threads, [&](std::size_t i) {
    Result<RecordedProgram> edited = list[i].apply();
    if (!edited) return;
    Result<ReplayGraph> graph = to_graph(std::move(*edited));
    if (!graph) return;
    graph->program.programs.clear();  // neither the run nor the comparison reads its ops
    const Result<graph::Timeline> result = run(graph->graph());
    if (!result) return;
    Advice& advice = list[i].advice;
    advice.step_time = compare(recordings, *graph, *result).step_time.simulated;
    advice.change = advice.step_time / before - 1;
  });

  std::vector<Advice> found;
  for (Candidate& candidate : list)
    if (candidate.advice.change < -0.001) found.push_back(std::move(candidate.advice));
  std::ranges::stable_sort(found, {}, &Advice::change);
  if (found.size() > count) found.resize(count);
  return found;
}

}  // namespace rehearse::replay
