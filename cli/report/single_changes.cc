#include "cli/report/single_changes.h"

#include <algorithm>

#include <fmt/core.h>

#include "cli/config/job_input.h"

namespace rehearse::cli {
namespace {

using strategies::Plan;
using strategies::Recompute;
using strategies::Schedule;
using strategies::Training;

/// The same cluster with faster links of one type. Nothing if routes would change: which routes
/// were given is not known here.
std::optional<cluster::Cluster> with_faster(const cluster::Cluster& from, std::uint32_t faster,
                                            double factor) {
  cluster::ClusterBuilder builder;
  // Vertices keep their order, and so their ids.
  std::vector<std::optional<DeviceId>> device_at(from.vertices().size());
  for (std::size_t d = 0; d < from.devices().size(); ++d)
    device_at[from.devices()[d].vertex.index()] = DeviceId(d);
  for (const cluster::Node& node : from.nodes()) builder.add_node(node.name, node.store);
  for (std::size_t v = 0; v < from.vertices().size(); ++v) {
    const cluster::Vertex& vertex = from.vertices()[v];
    if (!device_at[v]) {
      builder.add(vertex);
      continue;
    }
    const cluster::Device& device = from.devices()[device_at[v]->index()];
    const DeviceId added = builder.add_device(device.node, vertex.name, device.model);
    builder.set_forwards(added, vertex.forwards);
  }
  for (std::uint32_t t = 0; t < from.link_types().size(); ++t) {
    cluster::LinkType type = from.link_types()[t];
    if (t == faster) type.rate = type.rate * factor;
    builder.add(std::move(type));
  }
  for (const cluster::Link& link : from.links()) {
    const LinkId added = builder.connect(link.a, link.b, link.type);
    if (!link.changes.empty()) builder.set_changes(added, link.changes);
  }
  Result<cluster::Cluster> built = std::move(builder).build();
  if (!built || built->devices().size() != from.devices().size()) return std::nullopt;
  constexpr std::size_t kCompared = 32;
  const std::size_t every = 1 + from.devices().size() / kCompared;
  for (std::size_t d = 0; d < from.devices().size(); d += every)
    if (built->route(DeviceId(0), DeviceId(d)).hops != from.route(DeviceId(0), DeviceId(d)).hops)
      return std::nullopt;
  return std::move(*built);
}

struct Edited {
  std::string change;
  Training training;
  Plan plan;
  host::Implementation host;
};

/// `waits`: passes of blocks wait for their launches.
std::vector<Edited> edits_of(const step::Spec& spec, bool waits) {
  const Training& training = spec.training;
  const Plan& plan = spec.plan;
  const host::Implementation& host = spec.conditions.host;
  std::vector<Edited> edits;
  const auto add = [&](std::string change, const auto& edit) {
    Edited edited{std::move(change), training, plan, host};
    edit(edited);
    edits.push_back(std::move(edited));
  };
  add(fmt::format("microbatch {:g}", training.microbatch * 2),
      [](Edited& e) { e.training.microbatch *= 2; });
  if (training.microbatch >= 2)
    add(fmt::format("microbatch {:g}", training.microbatch / 2),
        [](Edited& e) { e.training.microbatch /= 2; });
  const host::Implementation &compiled = host::implementation_named("compiled"),
                             &graphs = host::implementation_named("cuda_graphs");
  if (waits && host.name != compiled.name && host.name != graphs.name)
    add("compiled layers (fewer launches alone)", [&](Edited& e) {
      e.host = host::scaled(host, compiled.layer / host::implementation_named("eager").layer);
    });
  if (waits && host.name != graphs.name)
    add("CUDA graphs (fewer launches alone)", [&](Edited& e) { e.host = graphs; });
  if (training.recompute == Recompute::kFull)
    add("selective recomputation", [](Edited& e) { e.training.recompute = Recompute::kSelective; });
  if (training.recompute != Recompute::kNone)
    add("no recomputation", [](Edited& e) { e.training.recompute = Recompute::kNone; });
  if (plan.tensor > 1 && !plan.sequence_parallel)
    add("sequence parallelism", [](Edited& e) { e.plan.sequence_parallel = true; });
  if (plan.tensor > 1 && !plan.asynchronous_tensor)
    add("tensor-parallel collectives overlapped with matrix products",
        [](Edited& e) { e.plan.asynchronous_tensor = true; });
  if (plan.pipeline > 1 && plan.interleave == 1 && plan.schedule == Schedule::k1f1b)
    add("interleaved schedule, 2 chunks per stage", [](Edited& e) {
      e.plan.schedule = Schedule::kInterleaved;
      e.plan.interleave = 2;
    });
  if ((plan.pipeline > 1 || plan.stages.size() > 1) && plan.interleave == 1 &&
      plan.schedule != Schedule::kZeroBubble)
    add("zero-bubble schedule", [](Edited& e) { e.plan.schedule = Schedule::kZeroBubble; });
  if (!plan.overlap_gradients)
    add("gradient reduction overlapped with the backward pass",
        [](Edited& e) { e.plan.overlap_gradients = true; });
  if (plan.zero > 0)
    add(plan.zero == 1 ? std::string("no ZeRO") : fmt::format("ZeRO-{}", plan.zero - 1),
        [](Edited& e) { e.plan.zero -= 1; });
  if (!plan.stages.empty()) return edits;
  const auto trade = [&](std::uint32_t Plan::*less, std::uint32_t Plan::*more, const char* text) {
    if (plan.*less % 2 == 0)
      add(fmt::format("{} (data {})", fmt::format(fmt::runtime(text), plan.*less / 2),
                      plan.*more * 2),
          [less, more](Edited& e) {
            e.plan.*less /= 2;
            e.plan.*more *= 2;
          });
  };
  trade(&Plan::tensor, &Plan::data, "tensor parallelism {}");
  trade(&Plan::pipeline, &Plan::data, "pipeline of {}");
  return edits;
}

}  // namespace

Result<std::vector<SingleChange>> single_changes(const step::Spec& spec,
                                                 const cluster::Cluster& cluster,
                                                 const std::optional<input::Pipeline>& input,
                                                 const step::Step& step, step::Fidelity fidelity,
                                                 const Progress& progress) {
  constexpr double kLeastGain = 0.002;
  const auto types = static_cast<std::uint32_t>(cluster.link_types().size());
  const std::vector<Edited> edits = edits_of(spec, step.host_share > 0);
  const double all = static_cast<double>(types + edits.size());
  const std::optional<input::Feed> feed = input ? std::optional<input::Feed>(*input) : std::nullopt;
  std::vector<SingleChange> changes;
  const auto consider = [&](const std::string& change, const step::Spec& edited,
                            const cluster::Cluster& on) {
    const Result<step::Step> predicted =
        step::predict(edited, on, {.fidelity = fidelity, .value_only = true, .timeline = false});
    if (!predicted || predicted->memory.empty()) return;
    Seconds time = predicted->time.value;
    if (!(time < step.time.value * (1 - kLeastGain))) return;
    if (feed) {
      const Result<Seconds> fed = fed_time(*feed, on, predicted->layout, time);
      if (!fed || !(*fed < step.time.value * (1 - kLeastGain))) return;
      time = *fed;
    }
    changes.push_back({change, time, memory::fullest(predicted->memory)});
  };
  for (std::uint32_t t = 0; t < types; ++t) {
    if (!progress(t / all)) return fail("interrupted");
    if (const std::optional<cluster::Cluster> faster = with_faster(cluster, t, 2))
      consider(fmt::format("links {} twice as fast", cluster.link_types()[t].name), spec, *faster);
  }
  for (std::size_t e = 0; e < edits.size(); ++e) {
    if (!progress((types + static_cast<double>(e)) / all)) return fail("interrupted");
    step::Spec edited = spec;
    edited.training = edits[e].training;
    edited.plan = edits[e].plan;
    edited.conditions.host = edits[e].host;
    consider(edits[e].change, edited, cluster);
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const SingleChange& a, const SingleChange& b) { return a.step < b.step; });
  return changes;
}

Json changes_json(const std::vector<SingleChange>& changes, Seconds step) {
  Json list = Json::array();
  for (const SingleChange& c : changes)
    list.push_back({{"change", c.change},
                    {"step_s", c.step.s()},
                    {"gain", 1 - c.step / step},
                    {"memory_b", c.memory.peak.value.b()},
                    {"usable_b", c.memory.device.usable.b()},
                    {"fits", memory::kFitNames[static_cast<int>(c.memory.fit)]}});
  return list;
}

Value change_rows(const std::vector<SingleChange>& changes, const Estimate<Seconds>& step) {
  Value rows = Value::array();
  for (const SingleChange& c : changes) {
    const double gain = 1 - c.step / step.value;
    rows.push_back({{"change", "change", c.change},
                    {"step_time", part_of(step, c.step)},
                    {"", "step time", c.step},
                    {"gain", share(gain)},
                    {"", "change in step time", cli::change(-gain)},
                    {"memory", c.memory.peak.value},
                    {"usable", c.memory.device.usable},
                    {"fits", "memory", memory::kFitNames[static_cast<int>(c.memory.fit)]}});
  }
  return rows;
}

}  // namespace rehearse::cli
