#include "profiler/replay/edit.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "profiler/replay/batch_requests.h"
#include "sim/base/text.h"

namespace rehearse::replay {
namespace {

using graph::Category;
using graph::GraphBuilder;
using Kind = Origin::Kind;
using Target = Selector::Target;

constexpr std::array<std::string_view, 7> kTargets = {"gpu",  "kernel", "copy",    "collective",
                                                      "host", "launch", "profiler"};

/// "SELECTOR:VALUE" at its last colon: names hold colons too.
Result<std::pair<Selector, std::string_view>> split_edit(std::string_view text,
                                                         std::string_view what) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return fail(fmt::format("'{}' has no {}", text, what),
                fmt::format("TARGET:{0} or TARGET=PATTERN:{0}", what));
  Result<Selector> selector = parse_selector(text.substr(0, colon));
  if (!selector) return forward(selector);
  return std::pair(std::move(*selector), text.substr(colon + 1));
}

/// Names that a pattern could have meant, for the message of an edit that matches nothing.
std::string names_of(const std::vector<Recording>& recordings, const ReplayGraph& replay,
                     const Selector& selector) {
  Selector all = selector;
  all.pattern.clear();
  std::set<std::string_view> names;
  for (const OpId op : select(recordings, replay, all)) names.insert(replay.graph.name(op));
  if (names.empty()) return fmt::format("the recording has no {}", selector.text);
  std::string bare;
  for (const char c : selector.pattern)
    if (c != '*') bare += c;
  const std::vector<std::string_view> list(names.begin(), names.end());
  if (const auto near = nearest(bare, list)) return fmt::format("did you mean '{}'?", *near);
  std::string shown;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, list.size()); ++i)
    shown += fmt::format("{}'{}'", i ? ", " : "", list[i].substr(0, 60));
  return fmt::format("there are {} names, such as {}", list.size(), shown);
}

Result<std::vector<OpId>> select_some(const std::vector<Recording>& recordings,
                                      const ReplayGraph& replay, const Selector& selector) {
  std::vector<OpId> ops = select(recordings, replay, selector);
  if (ops.empty())
    return fail(fmt::format("'{}' matches nothing", selector.text), "",
                names_of(recordings, replay, selector));
  return ops;
}

bool lies_in(const Recording& r, std::optional<HostIndex> op, std::string_view pattern) {
  for (; op; op = r.parent(*op))
    if (matches_wildcard(pattern, r.name(r.host(*op)))) return true;
  return false;
}

/// The edited graph, with its origins.
Result<ReplayGraph> built(const ReplayGraph& replay, GraphBuilder&& builder,
                          std::vector<Origin> origins) {
  Result<graph::Graph> graph = std::move(builder).build();
  if (!graph) return forward(std::move(graph));
  ReplayGraph edited = replay;
  edited.graph = std::move(*graph);
  edited.origins = std::move(origins);
  return edited;
}

}  // namespace

Result<Selector> parse_selector(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view target = text.substr(0, equals);
  const auto found = std::find(kTargets.begin(), kTargets.end(), target);
  if (found == kTargets.end())
    return fail(fmt::format("unknown target '{}'", target), suggest(target, kTargets));
  Selector selector{static_cast<Target>(found - kTargets.begin()), "", std::string(text)};
  if (equals == std::string_view::npos) return selector;
  selector.pattern = text.substr(equals + 1);
  if (selector.pattern.empty())
    return fail(fmt::format("'{}' has an empty pattern", text), "TARGET or TARGET=PATTERN");
  if (selector.target == Target::kGpu || selector.target == Target::kLaunch ||
      selector.target == Target::kProfiler)
    return fail(fmt::format("'{}' takes no pattern", target), "", "kernel=PATTERN or host=PATTERN");
  return selector;
}

Result<Scale> parse_scale(std::string_view text) {
  const auto parts = split_edit(text, "FACTOR");
  if (!parts) return forward(parts);
  const std::string_view number = trim(parts->second);
  double factor = 0;
  const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), factor);
  if (error != std::errc{} || rest != number.data() + number.size() || !(factor >= 0) ||
      factor > 1e6)
    return fail(fmt::format("'{}' is not a factor", number), "a number from 0 to 1e6, such as 0.5");
  return Scale{parts->first, factor};
}

Result<Insert> parse_insert(std::string_view text) {
  const auto parts = split_edit(text, "DURATION");
  if (!parts) return forward(parts);
  const Result<Seconds> length = parse_quantity<Seconds>(parts->second);
  if (!length) return forward(length);
  if (*length < Seconds::s(0) || *length > Seconds::s(86400))
    return fail(fmt::format("'{}' is not a valid duration", parts->second), "0 s to 1 d");
  return Insert{parts->first, *length};
}

Result<InputPipeline> parse_input_pipeline(std::string_view text) {
  InputPipeline pipeline{.workers = 0};
  constexpr std::array<std::string_view, 2> kKeys = {"workers", "prefetch"};
  std::array<bool, 2> given = {};
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view key = trim(part.substr(0, equals));
    const std::string_view value =
        equals == std::string_view::npos ? "" : trim(part.substr(equals + 1));
    const auto* const known = std::find(kKeys.begin(), kKeys.end(), key);
    if (known == kKeys.end())
      return fail(fmt::format("unknown key '{}'", key), suggest(key, kKeys));
    if (std::exchange(given[static_cast<std::size_t>(known - kKeys.begin())], true))
      return fail(fmt::format("'{}' appears twice", key), "workers=N[,prefetch=N]");
    std::uint32_t count = 0;
    const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), count);
    if (error != std::errc{} || rest != value.data() + value.size() || count == 0 || count > 4096)
      return fail(fmt::format("'{}' is not a number of {}", value, key), "1 to 4096");
    (key == "workers" ? pipeline.workers : pipeline.prefetch) = count;
  }
  if (pipeline.workers == 0) return fail("workers is missing", "workers=N");
  return pipeline;
}

ReplayGraph with_graph(const ReplayGraph& replay, graph::Graph graph) {
  ReplayGraph edited = replay;
  edited.graph = std::move(graph);
  edited.origins.resize(edited.graph.size(), {Kind::kAdded, 0, std::nullopt});
  return edited;
}

std::vector<OpId> select(const std::vector<Recording>& recordings, const ReplayGraph& replay,
                         const Selector& selector) {
  // What a communication op is called: the kernel's name alone hides an all-to-all.
  std::vector<std::vector<std::string_view>> kinds(recordings.size());
  if (selector.target == Target::kCollective)
    for (std::size_t rank = 0; rank < recordings.size(); ++rank) {
      kinds[rank].assign(recordings[rank].rank().gpu_ops.size(), "");
      for (const CommunicationOp& op : replay.ranks[rank].communication)
        if (op.what) kinds[rank][op.op] = to_string(op.what->kind);
    }
  std::vector<OpId> chosen;
  for (std::size_t i = 0; i < replay.origins.size(); ++i) {
    const OpId op(i);
    const Origin& origin = replay.origins[i];
    const Category category = replay.graph.category(op);
    const bool device = origin.kind == Kind::kDevice;
    const bool host = origin.kind == Kind::kHost || origin.kind == Kind::kCall;
    const auto named = [&](std::string_view name) {
      return selector.pattern.empty() || matches_wildcard(selector.pattern, name);
    };
    bool matches = false;
    switch (selector.target) {
      case Target::kGpu:
        matches = device || origin.kind == Kind::kUnexplained;
        break;
      case Target::kKernel:
        matches = device && category == Category::kCompute && named(replay.graph.name(op));
        break;
      case Target::kCopy:
        matches = device && category == Category::kMemory && named(replay.graph.name(op));
        break;
      case Target::kCollective:
        matches = device && category == Category::kCommunication &&
                  (named(replay.graph.name(op)) || named(kinds[origin.rank][*origin.row]));
        break;
      case Target::kHost:
        matches = host && (selector.pattern.empty() ||
                           lies_in(recordings[origin.rank], origin.row, selector.pattern));
        break;
      case Target::kLaunch:
        matches = origin.kind == Kind::kLaunch;
        break;
      case Target::kProfiler:
        matches = category == Category::kProfiler;
        break;
    }
    if (matches) chosen.push_back(op);
  }
  return chosen;
}

Result<ReplayGraph> scale(const std::vector<Recording>& recordings, const ReplayGraph& replay,
                          const Scale& edit) {
  const auto ops = select_some(recordings, replay, edit.what);
  if (!ops) return forward(ops);
  GraphBuilder builder(replay.graph);
  for (const OpId op : *ops) builder.set_duration(op, replay.graph.duration(op) * edit.factor);
  return built(replay, std::move(builder), replay.origins);
}

Result<ReplayGraph> scale_each(
    const std::vector<Recording>& recordings, const ReplayGraph& replay,
    const std::function<double(const Recording& recording, const trace::GpuOp& op)>& factor) {
  GraphBuilder builder(replay.graph);
  for (std::size_t i = 0; i < replay.origins.size(); ++i) {
    const Origin& origin = replay.origins[i];
    if (origin.kind != Kind::kDevice || !origin.row) continue;
    const Recording& recording = recordings[origin.rank];
    builder.set_duration(OpId(i), replay.graph.duration(OpId(i)) *
                                      factor(recording, recording.gpu(GpuIndex(*origin.row))));
  }
  return built(replay, std::move(builder), replay.origins);
}

Result<ReplayGraph> remove(const std::vector<Recording>& recordings, const ReplayGraph& replay,
                           const Selector& edit) {
  const auto ops = select_some(recordings, replay, edit);
  if (!ops) return forward(ops);
  GraphBuilder builder(replay.graph);
  std::vector<std::set<std::uint32_t>> removed(recordings.size());  // device ops, by rank
  for (const OpId op : *ops) {
    builder.set_duration(op, Picoseconds(0));
    const Origin& origin = replay.origins[op.index()];
    if (origin.kind == Kind::kDevice) removed[origin.rank].insert(*origin.row);
  }
  for (std::size_t i = 0; i < replay.origins.size(); ++i) {
    const Origin& origin = replay.origins[i];
    if (!origin.row) continue;
    const std::set<std::uint32_t>& gone = removed[origin.rank];
    if (origin.kind == Kind::kLaunch && gone.contains(*origin.row))
      builder.set_duration(OpId(i), Picoseconds(0));
    if (origin.kind != Kind::kHost && origin.kind != Kind::kCall) continue;
    // A call whose every device op is gone need not be made.
    const auto launched = recordings[origin.rank].launched(*origin.row);
    if (!launched.empty() && std::all_of(launched.begin(), launched.end(),
                                         [&](GpuIndex op) { return gone.contains(op); }))
      builder.set_duration(OpId(i), Picoseconds(0));
  }
  return built(replay, std::move(builder), replay.origins);
}

Result<ReplayGraph> insert(const std::vector<Recording>& recordings, const ReplayGraph& replay,
                           const Insert& edit) {
  const auto ops = select_some(recordings, replay, edit.behind);
  if (!ops) return forward(ops);
  // What runs behind an op, on the same resource and before all that waits for it, is more of it.
  GraphBuilder builder(replay.graph);
  for (const OpId op : *ops)
    if (replay.origins[op.index()].kind != Kind::kUnexplained)
      builder.set_duration(op, replay.graph.duration(op) + Picoseconds::from(edit.length));
  return built(replay, std::move(builder), replay.origins);
}

Result<ReplayGraph> overlap_input(const std::vector<Recording>& recordings,
                                  const ReplayGraph& replay, const InputPipeline& edit) {
  GraphBuilder builder(replay.graph);
  std::vector<Origin> origins = replay.origins;
  bool any = false;
  for (std::size_t rank = 0; rank < recordings.size(); ++rank) {
    const Recording& r = recordings[rank];
    const std::vector<Load> loads = loads_of(r, replay);
    if (loads.empty()) continue;
    any = true;
    const DemandId workers = builder.add(
        graph::Demand{.server = builder.add(graph::Server{
                          .name = builder.intern(fmt::format("rank {} input workers", rank)),
                          .slots = edit.workers})});
    const NameId name = builder.intern("load a batch");
    const std::size_t depth = std::size_t{edit.workers} * edit.prefetch;
    for (std::size_t k = 0; k < loads.size(); ++k) {
      Picoseconds work(0);
      for (const OpId op : loads[k].ops) {
        work += replay.graph.duration(op);
        builder.set_duration(op, Picoseconds(0));
      }
      // A full queue: the first batches were loaded before the recording began.
      if (k < depth) work = Picoseconds(0);
      const OpId load = builder.add(graph::Op{
          .name = name, .category = Category::kInput, .duration = work, .demand = workers});
      origins.push_back({Kind::kHost, static_cast<std::uint32_t>(rank), loads[k].range});
      builder.add_edge(load, loads[k].ops.back());
      if (k >= depth) builder.add_edge(loads[k - depth].ops.back(), load);
    }
  }
  if (!any)
    return fail("the recording has no loading ranges to overlap",
                "ranges named " + std::string(kLoadingRange));
  return built(replay, std::move(builder), std::move(origins));
}

}  // namespace rehearse::replay
