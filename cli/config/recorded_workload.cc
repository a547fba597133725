#include "cli/config/recorded_workload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "cli/calibrate/device_names.h"
#include "models/compute/op_cost.h"
#include "models/job/group_network.h"
#include "models/workload/host_work.h"
#include "models/workload/lift.h"
#include "models/workload/selective.h"
#include "profiler/ingest/input.h"
#include "profiler/replay/collectives.h"
#include "profiler/replay/interval.h"
#include "profiler/replay/transfers.h"
#include "sim/base/named_file.h"
#include "sim/base/statistics.h"
#include "sim/base/text.h"

namespace rehearse::cli {

namespace {

/// The times and prices of collectives within a node, or between nodes.
struct Compared {
  std::size_t count = 0;
  Seconds time = Seconds::s(0), price = Seconds::s(0);
  double least = 0, most = 0;  ///< ratio of one kind, size and group

  void add(const RecordedCollective& collective, Seconds priced) {
    const double ratio = collective.time / priced, times = static_cast<double>(collective.count);
    least = count == 0 ? ratio : std::min(least, ratio);
    most = std::max(most, ratio);
    count += collective.count;
    time += collective.time * times;
    price += priced * times;
  }

  double scale(std::string_view where, std::vector<std::string>& notes) const {
    if (count == 0) return 1;
    const double ratio = time / price;
    const bool used = ratio >= step::kLeastPart && ratio <= step::kMostPart;
    notes.push_back(fmt::format(
        "{} {}: {} without waiting for others, priced at {} (ratios {:.2f} to {:.2f}); {}",
        counted(count, "recorded collective"), where, to_string(time), to_string(price), least,
        most,
        used ? fmt::format("all collectives there are scaled by {:.3g}", ratio)
             : "not used, because links do not explain it"));
    return used ? ratio : 1;
  }
};

using workload::Layer, workload::Lifted, workload::Op;

/// Computes in `to` what was recorded in `from`. Casts of the weights, and of their gradients, are
/// added to each layer. Activations change in proportion.
void set_format(workload::Workload& workload, workload::Dtype from, workload::Dtype to) {
  const double ratio = bytes_of(to) / bytes_of(from);
  for (Layer& layer : workload.layers) {
    for (std::vector<Op>* ops : {&layer.forward, &layer.backward, &layer.recompute})
      for (Op& op : *ops)
        if (!op.communicates() && op.dtype == from) workload::set_format(op, to);
    for (workload::SavedActivation& saved : layer.saved) saved.bytes = saved.bytes * ratio;
    layer.output = layer.output * ratio;
    const bool stored_alike = bytes_of(from) == 4 && bytes_of(to) == 4;  // FP32 and TF32
    if (stored_alike || layer.parameters() == 0) continue;
    const Op cast{.name = "cast of weights",
                  .kind = workload::OpKind::kElementwise,
                  .dtype = to,
                  .bytes = Bytes::b(layer.parameters() * (bytes_of(from) + bytes_of(to)))};
    layer.forward.insert(layer.forward.begin(), cast);
    if (!layer.backward.empty()) layer.backward.push_back(cast);
  }
}

std::optional<workload::Dtype> commonest_dtype(const workload::Workload& workload) {
  std::array<double, std::size(workload::kDtypeNames)> flops = {};
  for (const Layer& layer : workload.layers)
    for (const Op& op : layer.forward)
      flops[static_cast<std::size_t>(op.dtype)] += flops_of(op).flop();
  const auto most = std::ranges::max_element(flops);
  if (*most == 0) return std::nullopt;
  return static_cast<workload::Dtype>(most - flops.begin());
}

constexpr double kLongestSample = 1e9;  // of a sample

/// The edits of the section `workload`.
struct LiftEdits {
  std::optional<double> sequence;
  std::vector<std::string> recompute_layers, keep_layers;
};

LiftEdits read_edits(const YamlMap& map) {
  LiftEdits edits{map.optional<double>("sequence"), map.list<std::string>("recompute_layers"),
                  map.list<std::string>("keep_layers")};
  if (edits.sequence && !(*edits.sequence >= 1 && *edits.sequence <= kLongestSample)) {
    map.report("sequence", fmt::format("{:g} is out of range", *edits.sequence),
               fmt::format("1 to {:g} tokens", kLongestSample));
    edits.sequence.reset();
  }
  return edits;
}

Status apply(const LiftEdits& edits, const std::string& source, Lifted& lifted) {
  const auto in_source = [&](auto result) {
    if (!result) result.error().diagnostics.front().file = source;
    return result;
  };
  workload::Workload& workload = lifted.workload;
  if (edits.sequence && *edits.sequence != workload.tokens_per_sample) {
    if (!lifted.shapes) return workload::needs_shapes(source, "another sequence length");
    lifted.notes.push_back(fmt::format(
        "recorded with {:g} tokens per sample; times are scaled to {:g} by the ratio of "
        "the cost model's predictions",
        workload.tokens_per_sample, *edits.sequence));
    workload = TRY(in_source(workload::with_tokens(std::move(workload), *edits.sequence)));
  }
  for (const std::string& pattern : edits.recompute_layers)
    TRY(in_source(workload::recompute_layers(workload, pattern)));
  for (const std::string& pattern : edits.keep_layers)
    TRY(in_source(workload::keep_layers(workload, pattern)));
  return {};
}

}  // namespace

std::vector<RecordedCollective> recorded_collectives(const trace::Trace& trace) {
  std::vector<replay::Recording> recordings;
  std::vector<std::vector<replay::CommunicationOp>> communication;
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    recordings.emplace_back(trace, r);
    communication.push_back(replay::find_communication(recordings.back()));
  }
  std::map<std::tuple<CollectiveKind, double, std::vector<std::uint32_t>>, std::vector<Seconds>>
      times;
  for (const auto& match : replay::match_collectives(recordings, communication).matched) {
    const auto& lead = match.members.front();
    const auto op = std::ranges::find_if(communication[lead.rank],
                                         [&](const auto& other) { return other.op == lead.op; });
    const auto size = replay::size_of(recordings[lead.rank], *op);
    if (!size || size->ranks != match.members.size()) continue;
    std::vector<std::uint32_t> ranks;
    Nanoseconds shortest(INT64_MAX);
    for (const auto& member : match.members) {
      ranks.push_back(
          trace.ranks[member.rank].info.rank.value_or(static_cast<std::uint32_t>(member.rank)));
      shortest = std::min(shortest, member.transfer);
    }
    std::ranges::sort(ranks);
    times[{op->what->kind, size->bytes.b(), std::move(ranks)}].push_back(shortest.seconds());
  }
  const auto host_of = [&](std::uint32_t rank) -> std::string_view {
    for (std::size_t r = 0; r < trace.ranks.size(); ++r)
      if (trace.ranks[r].info.rank.value_or(static_cast<std::uint32_t>(r)) == rank)
        return trace.ranks[r].info.host;
    return "";
  };
  std::vector<RecordedCollective> collectives;
  for (const auto& [what, all] : times) {
    const std::vector<std::uint32_t>& ranks = std::get<2>(what);
    const bool one_host = std::ranges::all_of(
        ranks, [&](std::uint32_t rank) { return host_of(rank) == host_of(ranks.front()); });
    collectives.push_back(
        {std::get<0>(what), Bytes::b(std::get<1>(what)), ranks, one_host, median(all), all.size()});
  }
  return collectives;
}

comm::LinkScales scales_of(std::span<const RecordedCollective> collectives,
                           const std::string& device, const cluster::Cluster& cluster,
                           std::vector<std::string>& notes) {
  const job::Rules rules{.calibrated = true};
  job::Schedules schedules(cluster, rules);
  Compared within, between;
  for (const RecordedCollective& collective : collectives) {
    if (collective.ranks.size() < 2 || collective.ranks.back() >= cluster.devices().size() ||
        !(collective.time > Seconds::s(0)))
      continue;
    std::vector<DeviceId> devices;
    for (const std::uint32_t rank : collective.ranks) devices.emplace_back(rank);
    const auto of = [&](DeviceId id) -> const cluster::Device& {
      return cluster.devices()[id.index()];
    };
    const bool one_node = std::ranges::all_of(
        devices, [&](DeviceId id) { return of(id).node == of(devices.front()).node; });
    if (one_node != collective.one_host ||
        std::ranges::any_of(devices, [&](DeviceId id) { return of(id).model != device; }))
      continue;
    const auto schedule = schedules.alike(collective.kind, devices);
    if (!schedule) continue;
    const Seconds price = (*schedule)->price(collective.bytes).value;
    if (price > Seconds::s(0)) (one_node ? within : between).add(collective, price);
  }
  return {within.scale("within a node", notes), between.scale("between nodes", notes)};
}

std::string device_of(const trace::Rank& rank) {
  for (const trace::Device& device : rank.devices)
    if (const Result<const cluster::Gpu*> gpu = device_named(device.name)) return (*gpu)->name;
  return "";
}

Result<RecordedWorkload> read_recording(const YamlMap& map, const std::filesystem::path& folder) {
  const std::filesystem::path path =
      TRY(named_file(folder, map.optional<std::string>("recording").value_or(std::string())));
  const std::optional<double> samples = map.optional<double>("samples");
  if (samples && !(std::isfinite(*samples) && *samples > 0))
    map.report("samples", fmt::format("{:g} is out of range", *samples), "a number above zero");
  const LiftEdits edits = read_edits(map);
  trace::Trace trace = TRY(ingest::read_inputs(std::span(&path, 1), {}));
  if (std::optional<trace::Trace> on_cores = workload::with_host_work_on_cores(trace))
    trace = std::move(*on_cores);
  Lifted lifted = TRY(workload::lift(trace, {.samples = samples}));
  const trace::Rank& rank = trace.ranks.front();
  if (!lifted.training)
    return fail_in(rank.info.source, "was recorded without a backward pass",
                   "a recording of training");
  TRY(lifted.plan);
  TRY(apply(edits, rank.info.source, lifted));
  const std::optional<workload::Dtype> dtype = commonest_dtype(lifted.workload);
  std::optional<double> batch = samples;
  if (lifted.shapes) batch = lifted.workload.samples;
  return RecordedWorkload{.workload = std::move(lifted.workload),
                          .batch = batch,
                          .shapes = lifted.shapes,
                          .source = rank.info.source,
                          .device = device_of(rank),
                          .dtype = dtype,
                          .idle_per_kernel = lifted.idle_per_layer_kernel,
                          .timings = std::move(trace.timings),
                          .collectives = recorded_collectives(trace),
                          .notes = std::move(lifted.notes)};
}

strategies::Training recorded_training(const RecordedWorkload& recorded) {
  strategies::Training training;
  training.microbatch = recorded.batch.value_or(training.microbatch);
  training.dtype = recorded.dtype.value_or(training.dtype);
  return training;
}

Status check_shapes(const RecordedWorkload& recorded, const strategies::Training& training,
                    const strategies::Plan& plan) {
  if (recorded.shapes) return {};
  const bool tensor =
      plan.tensor > 1 ||
      std::ranges::any_of(plan.stages, [](const strategies::StagePlan& s) { return s.tensor > 1; });
  if (tensor) return workload::needs_shapes(recorded.source, "tensor parallelism");
  if (plan.context > 1) return workload::needs_shapes(recorded.source, "context parallelism");
  if (recorded.batch && training.microbatch != *recorded.batch)
    return workload::needs_shapes(recorded.source,
                                  fmt::format("microbatch {:g} instead of the recorded {:g}",
                                              training.microbatch, *recorded.batch));
  return {};
}

Result<workload::Workload> place_recording(RecordedWorkload recorded,
                                           std::span<const std::string> devices,
                                           const strategies::Training& training,
                                           std::span<step::Conditions> conditions,
                                           std::vector<std::string>& notes) {
  const std::string file = std::filesystem::path(recorded.source).filename().string();
  for (const std::string& note : recorded.notes) notes.push_back(fmt::format("{}: {}", file, note));
  workload::Workload& workload = recorded.workload;
  if (!recorded.shapes) {
    // Its samples are those of the job; nothing in it depends on them.
    workload.samples = training.microbatch;
    notes.push_back(
        fmt::format("{}: parameters and activations are unknown, so gradient reduction, sends "
                    "between stages and memory are left out",
                    file));
  }
  if (recorded.device.empty())
    notes.push_back(
        fmt::format("{}: the device is not in the catalog; times are used unchanged for {}", file,
                    devices.front()));
  if (recorded.dtype && training.dtype != *recorded.dtype) {
    if (!recorded.shapes)
      return workload::needs_shapes(
          recorded.source, fmt::format("{} instead of the recorded {}", to_string(training.dtype),
                                       to_string(*recorded.dtype)));
    set_format(workload, *recorded.dtype, training.dtype);
    notes.push_back(fmt::format(
        "{}: recorded in {}; times are scaled to {} by the ratio of the cost model's predictions, "
        "with casts of weights",
        file, to_string(*recorded.dtype), to_string(training.dtype)));
  }
  const std::string& on = recorded.device.empty() ? devices.front() : recorded.device;
  for (const std::string& device : devices) {
    if (device == on) continue;
    if (on == workload::kCore || device == workload::kCore)
      return fail_in(recorded.source,
                     fmt::format("was recorded on {}, which tells nothing of {}", on, device),
                     fmt::format("cluster: {{device: {}}}", on));
    if (!recorded.shapes)
      return workload::needs_shapes(recorded.source,
                                    fmt::format("{} instead of the recorded {}", device, on));
    notes.push_back(fmt::format(
        "{}: recorded on {}; times are scaled to {} by the ratio of the cost model's predictions",
        file, on, device));
  }
  for (step::Conditions& each : conditions) {
    each.host_per_kernel = Seconds::s(0);
    step::set_fixed(each, Seconds::s(0));
    each.idle_per_kernel = recorded.idle_per_kernel;
    each.provenance = Provenance::kRecorded;
    each.source = fmt::format("recorded: {}", file);
  }
  if (on == workload::kCore) {
    for (step::Conditions& each : conditions)
      each.recorded = {std::exp(-replay::kOtherRanksError), std::exp(replay::kOtherRanksError)};
    notes.push_back(
        fmt::format("{}: operations of other extents take recorded time × the ratio of a roofline "
                    "with the rates "
                    "of a reference core; memory refers to it as well, and MFU is not known",
                    file));
  }
  workload.name = file;
  return workload::with_samples(std::move(workload), 1);
}

}  // namespace rehearse::cli
