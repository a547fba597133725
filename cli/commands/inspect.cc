// rehearse inspect: what a recording holds, or what a step of it computes, or a cluster.
#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/commands/commands.h"
#include "cli/commands/inspect_cluster.h"
#include "cli/commands/inspect_energy.h"
#include "cli/commands/inspect_workload.h"
#include "cli/commands/replay_job.h"
#include "cli/output/op_timings.h"
#include "cli/output/result.h"
#include "profiler/replay/host_events.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct InspectOptions {
  ReplayRequest request;
  std::size_t top = 15;
  bool workload = false;               ///< the layers of the recording in the place of its ops
  std::filesystem::path cluster, svg;  ///< a cluster in the place of recordings; its drawing
};

/// Ops of one name, on the devices or (with the time spent in themselves) on the host.
struct OpSum {
  std::string name;
  std::string kind;
  std::size_t calls = 0;
  Seconds total = Seconds::s(0);
  Joules energy = Joules::j(0);
};

std::vector<OpSum> sum_ops(const std::vector<replay::Recording>& recordings,
                           const std::optional<replay::Energy>& energy) {
  std::map<std::pair<std::string, std::string_view>, OpSum> sums;
  const auto add = [&](std::string_view kind, std::string_view name, Seconds time,
                       bool call) -> OpSum& {
    OpSum& sum =
        sums.try_emplace({std::string(kind), name}, OpSum{std::string(name), std::string(kind)})
            .first->second;
    if (call) ++sum.calls;
    sum.total += time;
    return sum;
  };
  constexpr std::string_view kGpuKinds[] = {"kernel", "copy", "set"};
  for (std::size_t rank = 0; rank < recordings.size(); ++rank) {
    const replay::Recording& r = recordings[rank];
    for (std::size_t i = 0; i < r.rank().gpu_ops.size(); ++i) {
      const trace::GpuOp& op = r.rank().gpu_ops[i];
      OpSum& sum = add(kGpuKinds[static_cast<std::size_t>(op.kind)], r.name(op),
                       op.duration.seconds(), true);
      if (energy) sum.energy += energy->ops[rank][i];
    }
    for (const replay::HostThread& thread : r.threads()) {
      const replay::EventSequence sequence = replay::host_events(r, thread);
      for (std::size_t k = 0; k < sequence.events.size(); ++k) {
        const replay::HostEvent& event = sequence.events[k];
        if (event.is_start) add("host", r.name(r.host(event.op)), Seconds::s(0), true);
        if (k + 1 < sequence.events.size() && sequence.innermost[k])
          add("host", r.name(r.host(*sequence.innermost[k])),
              (sequence.events[k + 1].time - event.time).seconds(), false);
      }
    }
  }
  std::vector<OpSum> list;
  list.reserve(sums.size());
  for (auto& [key, sum] : sums) list.push_back(std::move(sum));
  std::stable_sort(list.begin(), list.end(), [](const OpSum& a, const OpSum& b) {
    return std::pair(a.total, a.calls) > std::pair(b.total, b.calls);
  });
  return list;
}

Table op_table(const std::vector<OpSum>& ops, std::size_t top, bool has_energy) {
  std::vector<Column> columns = {
      {"kind", Align::kLeft}, {"op", Align::kLeft}, {"calls"}, {"total (ms)"}, {"mean (us)"}};
  if (has_energy) columns.push_back({"energy (J)"});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < std::min(top, ops.size()); ++i) {
    std::vector<std::string> row = {
        ops[i].kind, ops[i].name, grouped(ops[i].calls), fmt::format("{:.3f}", ops[i].total.ms()),
        fmt::format("{:.1f}", ops[i].total.us() / static_cast<double>(ops[i].calls))};
    if (has_energy) row.push_back(ops[i].kind == "host" ? "" : joules(ops[i].energy));
    table.add(std::move(row));
  }
  return table;
}

std::string describe_rank(const replay::Recording& r, std::size_t index) {
  const trace::RankInfo& info = r.rank().info;
  std::string device = "no device";
  if (!r.streams().empty()) {
    device = fmt::format("device {}", r.streams().front().device);
    for (const trace::Device& d : r.rank().devices)
      if (d.ordinal == r.streams().front().device) device = d.name;
  }
  return fmt::format(
      "rank {}{}: {}, {}; {} on {}, {} on {}; {}\n",
      info.rank.value_or(static_cast<std::uint32_t>(index)),
      info.world_size ? fmt::format(" of {}", *info.world_size) : "", info.format, device,
      counted(r.rank().host_ops.size(), "host op"), counted(r.threads().size(), "thread"),
      counted(r.rank().gpu_ops.size(), "device op"), counted(r.streams().size(), "stream"),
      info.timed ? to_string((r.last() - r.first()).seconds()) : "no times");
}

/// How far, and how surely, the clock of a rank was moved to that of the others.
std::string describe_clock(const replay::Recording& r) {
  if (!r.rank().info.clock_fit) return "";
  const trace::ClockFit& fit = *r.rank().info.clock_fit;
  return fmt::format(
      "  clock of {} moved by {:+.3f} ms and {:+.2f} ppm; {:.1f} us off over {} ends of "
      "collectives\n",
      r.rank().info.host, fit.offset.seconds().ms(), fit.drift * 1e6, fit.residual.seconds().us(),
      fit.samples);
}

/// What was read and what follows from it.
struct Findings {
  InputTrace input;
  std::vector<OpSum> ops;
  std::optional<replay::ReplayGraph> graph;  ///< for steps; nothing without times
  std::optional<replay::Energy> energy;      ///< nothing where no power was recorded
  program::Occupancy breakdown;
};

/// Of a step of a rank, where it is known.
std::optional<replay::StepEnergy> energy_of(const Findings& found, std::size_t rank,
                                            std::size_t step) {
  return found.energy ? found.energy->steps[rank][step] : std::nullopt;
}

Json json_rank(const Findings& found, std::size_t index) {
  const trace::Rank& r = found.input.recordings[index].rank();
  Json steps = Json::array(), devices = Json::array();
  if (found.graph)
    for (std::size_t s = 0; s < found.graph->ranks[index].steps.size(); ++s) {
      const replay::Step& step = found.graph->ranks[index].steps[s].step;
      Json row = {{"name", step.name},
                  {"partial", step.partial},
                  {"measured_s", (step.end - step.start).seconds().s()}};
      if (const auto energy = energy_of(found, index, s)) {
        row["energy_j"] = energy->total().j();
        row["idle_energy_j"] = energy->idle.j();
      }
      steps.push_back(std::move(row));
    }
  for (const trace::Device& device : r.devices)
    devices.push_back({{"ordinal", device.ordinal}, {"name", device.name}});
  Json facts = Json::array();
  for (const trace::Fact& fact : r.info.facts)
    facts.push_back({{"name", fact.key}, {"detail", fact.value}});
  Json json = {{"rank", r.info.rank.value_or(static_cast<std::uint32_t>(index))},
               {"source", r.info.source},
               {"format", r.info.format},
               {"host_ops", r.host_ops.size()},
               {"gpu_ops", r.gpu_ops.size()},
               {"devices", std::move(devices)},
               {"facts", std::move(facts)},
               {"steps", std::move(steps)}};
  if (r.info.clock_fit)
    json["clock_fit"] = {{"offset", json_measured(r.info.clock_fit->offset.seconds())},
                         {"drift", r.info.clock_fit->drift},
                         {"residual", json_measured(r.info.clock_fit->residual.seconds())},
                         {"samples", r.info.clock_fit->samples}};
  return json;
}

Json to_json(const Findings& found) {
  Json json = json_root("inspect");
  json["ranks"] = Json::array();
  for (std::size_t rank = 0; rank < found.input.recordings.size(); ++rank)
    json["ranks"].push_back(json_rank(found, rank));
  json["ops"] = Json::array();
  for (const OpSum& op : found.ops) {
    Json row = {{"name", op.name},
                {"kind", op.kind},
                {"calls", op.calls},
                {"total", json_measured(op.total)}};
    if (found.energy && op.kind != "host") row["energy_j"] = op.energy.j();
    json["ops"].push_back(std::move(row));
  }
  if (found.energy) json["energy"] = json_energy(*found.energy);
  json["breakdown"] = json_breakdown(found.breakdown);
  json["problems"] = json_problems(found.input.trace->problems);
  if (!found.input.trace->timings.empty())
    json["op_costs"] = op_timing_json(found.input.trace->timings);
  return json;
}

Table measured_steps(const Findings& found) {
  Table table({{"rank"},
               {"step", Align::kLeft},
               {"measured (ms)"},
               {"energy (J)"},
               {"of it idle (J)"},
               {"note", Align::kLeft}});
  for (std::size_t rank = 0; rank < found.graph->ranks.size(); ++rank) {
    const std::vector<replay::StepOps>& steps = found.graph->ranks[rank].steps;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const auto energy = energy_of(found, rank, s);
      table.add({rank_name(found.input, rank), steps[s].step.name,
                 fmt::format("{:.3f}", (steps[s].step.end - steps[s].step.start).seconds().ms()),
                 energy ? joules(energy->total()) : "", energy ? joules(energy->idle) : "",
                 steps[s].step.partial ? "partial" : ""});
    }
  }
  return table;
}

std::string to_text(const Findings& found, std::size_t top) {
  std::string text;
  for (std::size_t rank = 0; rank < found.input.recordings.size(); ++rank)
    text += describe_rank(found.input.recordings[rank], rank) +
            describe_clock(found.input.recordings[rank]);
  if (found.graph) {
    text += fmt::format("\nSteps (from {})\n", to_string(found.graph->ranks.front().step_source));
    text += measured_steps(found).text(60, kStepsShown);
    text += "\nRank occupancy in an average step, as measured\n" + breakdown_text(found.breakdown);
  }
  if (found.energy) text += "\nWhat the boards drew\n" + energy_text(*found.energy);
  return text +
         fmt::format("\nLargest of {} (host: time in the op itself)\n",
                     counted(found.ops.size(), "op")) +
         op_table(found.ops, top, found.energy.has_value()).text() +
         (found.input.trace->timings.empty()
              ? ""
              : fmt::format("\nBy themselves, as bench-gpu measured: {}\n",
                            counted(found.input.trace->timings.size(), "measurement")) +
                    op_timing_table(found.input.trace->timings, false).text(60, top));
}

/// A store that holds no recording, but what bench-gpu measured.
Result<Exit> run_on_timings(const trace::Trace& trace, const Globals& globals) {
  const Formats formats = {
      .text = [&] { return op_timing_table(trace.timings, false).text(76); },
      .json =
          [&] {
            Json json = json_root("inspect");
            json["op_costs"] = op_timing_json(trace.timings);
            return json;
          },
      .table = [&] { return op_timing_table(trace.timings, true); },
      .markdown = [&] { return op_timing_table(trace.timings, false).markdown(); }};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return Exit::kSuccess;
}

Result<Exit> run(const InspectOptions& options, const Globals& globals) {
  Result<InputTrace> input = load_trace(options.request, globals, true);
  if (!input) return forward(input);
  if (input->trace->ranks.empty() && !input->trace->timings.empty())
    return run_on_timings(*input->trace, globals);
  Findings found{.input = std::move(*input), .ops = {}, .graph = {}, .energy = {}, .breakdown = {}};
  const auto& recordings = found.input.recordings;
  const bool timed = std::all_of(recordings.begin(), recordings.end(),
                                 [](const replay::Recording& r) { return r.rank().info.timed; });
  // Steps and the measured breakdown need the graph's view of the recording.
  if (timed) {
    Result<replay::ReplayGraph> lowered = replay::lower(recordings, {});
    if (!lowered) return forward(lowered);
    found.graph = std::move(*lowered);
    found.breakdown =
        replay::occupancy(*found.graph, replay::recorded_timeline(recordings, *found.graph));
    std::vector<std::vector<replay::StepSpan>> steps;
    for (const replay::RankGraph& rank : found.graph->ranks) {
      auto& spans = steps.emplace_back();
      for (const replay::StepOps& step : rank.steps)
        spans.push_back({step.step.start, step.step.end});
    }
    found.energy = replay::measure_energy(recordings, steps);
  }
  found.ops = sum_ops(recordings, found.energy);
  const Formats formats = {
      .text = [&] { return to_text(found, options.top); },
      .json = [&] { return to_json(found); },
      .table = [&] { return op_table(found.ops, found.ops.size(), found.energy.has_value()); },
      .markdown =
          [&] { return op_table(found.ops, options.top, found.energy.has_value()).markdown(); }};
  if (Status ok = write_result(globals, formats); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand(
      "inspect",
      "What a recording holds: ranks, steps, largest ops, where the time goes; or a cluster");
  add_input_options(*command, options->request);
  command->add_option("--top", options->top, "how many ops to list (default 15)")->type_name("N");
  command->add_flag("--workload", options->workload,
                    "what a step computes, layer by layer, of the first rank");
  command->get_option("INPUT")->required(false);
  command->add_option("--cluster", options->cluster, "a cluster file, in the place of recordings")
      ->type_name("FILE");
  command->add_option("--svg", options->svg, "write a drawing of the cluster")->type_name("FILE");
  command->footer(
      "Example: rehearse inspect trace.json.gz --top 30\n"
      "Example: rehearse inspect trace.json.gz --workload --format json\n"
      "Example: rehearse inspect --cluster examples/clusters/dgx_h100_x4.yaml --svg cluster.svg");
  command->callback([command, options, &action] {
    const auto usage = [](const char* what) {
      throw CLI::ValidationError(what, CLI::ExitCodes::ValidationError);
    };
    const bool recordings = !options->request.inputs.empty();
    if (options->cluster.empty()) {
      if (!recordings)
        throw CLI::RequiredError("INPUT or --cluster", CLI::ExitCodes::RequiredError);
      if (!options->svg.empty()) usage("--svg draws a cluster: it needs --cluster FILE");
    } else {
      if (recordings) usage("INPUT and --cluster exclude each other: one of them");
      for (const char* option : {"--top", "--ranks", "--workload"})
        if (command->count(option) > 0)
          usage("--top, --ranks and --workload are of recordings, not of --cluster");
    }
    if (options->workload && command->count("--top") > 0)
      usage("--top lists ops: it does not go with --workload");
    action = [options](const Globals& globals) {
      if (!options->cluster.empty())
        return inspect_cluster(options->cluster, options->svg, globals);
      return options->workload ? inspect_workload(options->request, globals)
                               : run(*options, globals);
    };
  });
}

}  // namespace rehearse::cli
