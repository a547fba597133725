// rehearse inspect: the contents of a recording, the work of one of its steps, or a cluster.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "cli/commands/inspect_cluster.h"
#include "cli/commands/inspect_workload.h"
#include "cli/commands/options.h"
#include "cli/commands/replay_job.h"
#include "cli/output/document.h"
#include "cli/output/op_timings.h"
#include "cli/output/value.h"
#include "profiler/replay/energy.h"
#include "profiler/replay/host_events.h"
#include "sim/base/text.h"
#include "sim/engine/engine.h"

namespace rehearse::cli {
namespace {

using replay::BoardEnergy;

// With a larger error, the counter and the power readings do not describe the same energy.
constexpr double kCounterAgrees = 0.05;

double seconds(const BoardEnergy& board) { return (board.last - board.first).seconds().s(); }

/// The excess of the energy from power readings over the counter, as a share.
std::optional<double> counter_error(const BoardEnergy& board) {
  if (!board.counted || board.counted->j() <= 0) return std::nullopt;
  return *board.counted_by_power / *board.counted - 1;
}

std::string note(const BoardEnergy& board) {
  std::string text;
  if (board.shared) text = "shared: an estimate";
  if (const auto error = counter_error(board); error && std::abs(*error) > kCounterAgrees)
    text += fmt::format("{}its energy counter differs by {:+.0f} %", text.empty() ? "" : "; ",
                        *error * 100);
  return text;
}

/// Returns a row per board, with the caveats of its values.
Value energy_fields(const replay::Energy& energy) {
  Value boards = Value::array();
  for (const BoardEnergy& board : energy.boards) {
    const auto joules = [](Joules j) { return bare(j); };
    Value row = {
        {"", "board", board.host.empty() ? board.uuid : board.host + " " + board.uuid},
        {"host", board.host},
        {"uuid", board.uuid},
        {"name", board.name},
        {"seconds", "read for", bare(Seconds::s(seconds(board))), in::kSeconds},
        {"", "mean", board.total.j() / seconds(board), in::kWatts},
        {"energy_j", "energy", joules(board.total), in::kJoules},
        {"ops_j", "of it ops", joules(board.ops), in::kJoules},
        {"idle_j", "idle", joules(board.idle), in::kJoules},
        {"other_j", board.other.j() > 0 ? "not recorded" : "", joules(board.other), in::kJoules},
        {"shared", board.shared},
        {"", "note", note(board), {}, kProse}};
    if (board.counted) {
      row["counter_j"] = board.counted->j();
      row["counter_by_power_j"] = board.counted_by_power->j();
    }
    boards.push_back(std::move(row));
  }
  return {{"boards", "Energy of the boards", std::move(boards)}};
}

struct InspectOptions {
  ReplayRequest request;
  std::size_t top = 15;
  bool workload = false;               ///< the layers of the recording instead of its ops
  std::filesystem::path cluster, svg;  ///< a cluster instead of recordings; its drawing
};

/// Ops of one name, on the devices or (with their self time) on the host.
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
  std::ranges::stable_sort(list, [](const OpSum& a, const OpSum& b) {
    return std::pair(a.total, a.calls) > std::pair(b.total, b.calls);
  });
  return list;
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
      "rank {}{}: {}, {}; {} on {}, {} on {}; {}",
      info.rank.value_or(static_cast<std::uint32_t>(index)),
      info.world_size ? fmt::format(" of {}", *info.world_size) : "", info.format, device,
      counted(r.rank().host_ops.size(), "host op"), counted(r.threads().size(), "thread"),
      counted(r.rank().gpu_ops.size(), "device op"), counted(r.streams().size(), "stream"),
      info.timed ? to_string((r.last() - r.first()).seconds()) : "no times");
}

/// The shift of a rank's clock to that of the others, and its certainty.
std::string describe_clock(const replay::Recording& r) {
  if (!r.rank().info.clock_fit) return "";
  const trace::ClockFit& fit = *r.rank().info.clock_fit;
  return fmt::format(
      "  clock of {} adjusted by {:+.3f} ms and {:+.2f} ppm; error {:.1f} us over {} ends of "
      "collectives",
      r.rank().info.host.empty() ? r.rank().info.source : r.rank().info.host,
      fit.offset.seconds().ms(), fit.drift * 1e6, fit.residual.seconds().us(), fit.samples);
}

/// The input and the results derived from it.
struct Inspected {
  InputTrace input;
  std::vector<OpSum> ops = {};
  std::optional<replay::ReplayGraph> graph = {};  ///< for steps; nothing without times
  std::optional<replay::Energy> energy = {};      ///< nothing where no power was recorded
  bool has_device = true;
  program::Occupancy breakdown = {};
};

/// The energy of a rank's step, if it is known.
std::optional<replay::StepEnergy> energy_of(const Inspected& found, std::size_t rank,
                                            std::size_t step) {
  return found.energy ? found.energy->steps[rank][step] : std::nullopt;
}

Value rank_fields(const Inspected& found, std::size_t index) {
  const trace::Rank& r = found.input.recordings[index].rank();
  const std::uint32_t number = r.info.rank.value_or(static_cast<std::uint32_t>(index));
  Value steps = Value::array(), devices = Value::array(), facts = Value::array();
  std::optional<Nanoseconds> device_ended;
  if (found.graph)
    for (std::size_t s = 0; s < found.graph->program.replays[index].steps.size(); ++s) {
      const replay::StepOps& ops = found.graph->program.replays[index].steps[s];
      const replay::Step& step = ops.step;
      Value row = {{"", "rank", number},
                   {"name", "step", step.name},
                   {"partial", step.partial},
                   {"measured_s", "measured", bare((step.end - step.start).seconds()), in::kMs}};
      if (ops.measured_device_end) {
        const Nanoseconds from = device_ended.value_or(step.start);
        row["gpu"] = {{"measured_s", "GPU measured",
                       bare((*ops.measured_device_end - from).seconds()), in::kMs}};
        device_ended = ops.measured_device_end;
      }
      if (const auto energy = energy_of(found, index, s)) {
        row.show("energy_j", "energy", bare(energy->total()), in::kJoules);
        row.show("idle_energy_j", "of it idle", bare(energy->idle), in::kJoules);
      }
      row.show("", "note", step.partial ? "partial" : "");
      steps.push_back(std::move(row));
    }
  for (const trace::Device& device : r.devices)
    devices.push_back({{"ordinal", device.ordinal}, {"name", device.name}});
  for (const trace::Fact& fact : r.info.facts)
    facts.push_back({{"name", fact.key}, {"detail", fact.value}});
  Value fields = {{"rank", number},
                  {"source", r.info.source},
                  {"format", r.info.format},
                  {"host_ops", r.host_ops.size()},
                  {"gpu_ops", r.gpu_ops.size()},
                  {"devices", std::move(devices)},
                  {"facts", std::move(facts)},
                  {"steps", std::move(steps)}};
  if (const auto& fit = r.info.clock_fit)
    fields["clock_fit"] = {{"offset", fit->offset.seconds()},
                           {"drift", fit->drift},
                           {"residual", fit->residual.seconds()},
                           {"samples", fit->samples}};
  return fields;
}

Document document_of(const Inspected& found, std::size_t top) {
  Document d{.command = "inspect", .rows = "ops"};
  Value ranks = Value::array(), steps = Value::array();
  for (std::size_t rank = 0; rank < found.input.recordings.size(); ++rank) {
    d.line(describe_rank(found.input.recordings[rank], rank));
    d.line(describe_clock(found.input.recordings[rank]));
    ranks.push_back(rank_fields(found, rank));
    for (const Entry& field : ranks.list().back().fields())
      if (field.key == "steps")
        for (const Value& step : field.value.list()) steps.push_back(step);
  }
  d["ranks"] = std::move(ranks);
  if (found.input.recordings.size() > 1) show_recorded_plan(*found.input.trace, d);
  if (found.graph)
    d.show(
        "",
        fmt::format("Steps (from {})", to_string(found.graph->program.replays.front().step_source)),
        std::move(steps), {}, first(kStepsShown));
  d.show("breakdown",
         found.graph
             ? std::string(kOccupancyTitle) + (found.has_device ? ", as measured" : ", as replayed")
             : "",
         occupancy_fields(found.breakdown), {}, found.graph ? kBars : kInTables);
  if (found.energy) d.show("energy", "", energy_fields(*found.energy));
  Value ops = Value::array();
  for (const OpSum& op : found.ops) {
    Value row = {{"kind", "kind", op.kind},
                 {"name", "op", op.name},
                 {"calls", "calls", op.calls},
                 {"total", "total", op.total, in::kMs},
                 {"", "mean", op.total * (1 / static_cast<double>(op.calls)), in::kUs}};
    if (found.energy && op.kind != "host")
      row.show("energy_j", "energy", bare(op.energy), in::kJoules);
    ops.push_back(std::move(row));
  }
  d.show("ops",
         fmt::format("Largest of {} (host: time excluding nested ops)",
                     counted(found.ops.size(), "op")),
         std::move(ops), {}, first(top));
  d.add_problems(found.input.trace->problems);
  if (const auto& timings = found.input.trace->timings; !timings.empty())
    d.show("op_costs",
           fmt::format("Measured alone by bench-gpu: {}", counted(timings.size(), "measurement")),
           op_timing_rows(timings), {}, first(top));
  return d;
}

/// For a store that contains only bench-gpu measurements and no recording.
Result<Exit> run_on_timings(const trace::Trace& trace, const Globals& globals) {
  Document document{.command = "inspect", .rows = "op_costs"};
  document["op_costs"] = op_timing_rows(trace.timings);
  return answer_with(globals, document);
}

Result<Exit> run(const InspectOptions& options, const Globals& globals) {
  InputTrace input = TRY(load_trace(options.request, globals, true));
  if (input.trace->ranks.empty() && !input.trace->timings.empty())
    return run_on_timings(*input.trace, globals);
  Inspected found{.input = std::move(input)};
  const auto& recordings = found.input.recordings;
  const bool timed = std::ranges::all_of(
      recordings, [](const replay::Recording& r) { return r.rank().info.timed; });
  // Steps and the measured breakdown need the graph's view of the recording.
  if (timed) {
    found.graph = TRY(replay::to_graph(recordings));
    // Where no rank has a device the host's work is compute, and only a run has its times.
    const auto& ranks = found.graph->program.replays;
    found.has_device =
        std::ranges::any_of(ranks, [](const replay::RankReplay& rank) { return rank.has_device; });
    const graph::Timeline timeline =
        TRY(found.has_device ? replay::recorded_timeline(recordings, *found.graph)
                             : engine::run(found.graph->graph()));
    found.breakdown = replay::occupancy(*found.graph, timeline);
    std::vector<std::vector<replay::StepSpan>> steps;
    for (const replay::RankReplay& rank : found.graph->program.replays) {
      auto& spans = steps.emplace_back();
      for (const replay::StepOps& step : rank.steps)
        spans.push_back({step.step.start, step.step.end});
    }
    found.energy = replay::measure_energy(recordings, steps);
  }
  found.ops = sum_ops(recordings, found.energy);
  return answer_with(globals, document_of(found, options.top));
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand("inspect",
                                         "Show the contents of a recording (ranks, steps, largest "
                                         "ops, time breakdown) or of a cluster");
  add_input_options(*command, options->request);
  add_value(*command, "--top", "N", options->top, "number of ops to list (default 15)");
  command->add_flag("--workload", options->workload,
                    "show the layers of a step, and the plan of its ranks");
  command->get_option("INPUT")->required(false);
  add_value(*command, "--cluster", "FILE", options->cluster,
            "show a cluster file instead of recordings");
  add_value(*command, "--svg", "FILE", options->svg, "write a drawing of the cluster");
  command->footer(
      "Examples:\n"
      "  rehearse inspect trace.json.gz --top 30\n"
      "  rehearse inspect trace.json.gz --workload --format json\n"
      "  rehearse inspect --cluster examples/clusters/dgx_h100_x4.yaml --svg cluster.svg");
  command->callback([command, options, &action] {
    const bool recordings = !options->request.inputs.empty();
    if (options->cluster.empty()) {
      if (!recordings) throw CLI::RequiredError("INPUT or --cluster");
      if (!options->svg.empty()) wrong_usage("--svg needs --cluster FILE");
    } else {
      if (recordings) wrong_usage("INPUT and --cluster exclude each other");
      for (const char* option : {"--top", "--ranks", "--workload"})
        if (command->count(option) > 0)
          wrong_usage(
              "--top, --ranks and --workload need a recording; they do not apply to --cluster");
    }
    if (options->workload && command->count("--top") > 0)
      wrong_usage("--top cannot be combined with --workload");
    action = [options](const Globals& globals) {
      if (!options->cluster.empty())
        return inspect_cluster(options->cluster, options->svg, globals);
      return options->workload ? inspect_workload(options->request, globals)
                               : run(*options, globals);
    };
  });
}

}  // namespace rehearse::cli
