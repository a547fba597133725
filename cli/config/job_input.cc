#include "cli/config/job_input.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "models/input/limits.h"
#include "models/input/read_pipeline.h"
#include "models/input/simulate.h"
#include "sim/base/named_file.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cli {
namespace {

/// Providers count the threads of a core.
constexpr std::uint32_t kVcpusPerCore = 2;

std::optional<std::uint32_t> cores_of(const cost::Place& place) {
  std::optional<std::uint32_t> fewest;
  for (const cost::Rented& rented : place.rented) {
    const Result<const cluster::Instance*> instance = cluster::find_instance(rented.instance);
    if (!instance || !(*instance)->vcpus) continue;
    const std::uint32_t cores = std::max(1U, *(*instance)->vcpus / kVcpusPerCore);
    fewest = std::min(fewest.value_or(cores), cores);
  }
  return fewest;
}

/// Which data rank each node loads for, by node.
using Loads = std::vector<std::pair<NodeId, std::uint32_t>>;

/// Ranks that divide a sample among them on a node load it once.
Loads loads_of(const workload::Layout& layout, const cluster::Cluster& cluster) {
  const workload::Stage& first = layout.stages.front();
  const workload::Degrees& degrees = first.degrees;
  Loads loads;
  for (std::uint32_t number = 0; number < degrees.ranks(); ++number)
    loads.emplace_back(cluster.devices()[first.rank(number)].node,
                       number / (degrees.context * degrees.tensor));
  std::ranges::sort(loads);
  loads.erase(std::unique(loads.begin(), loads.end()), loads.end());
  return loads;
}

double samples_of_load(const workload::Layout& layout) {
  return layout.samples_per_step / layout.stages.front().degrees.data;
}

/// Mistakes that belong to no line are those of the section.
tl::unexpected<Error> in_section(Error error) {
  for (Diagnostic& d : error.diagnostics)
    if (d.key.empty()) d.key = "input";
  return tl::unexpected(std::move(error));
}

}  // namespace

Taken taken_by(const workload::Layout& layout, const cluster::Cluster& cluster,
               const input::Pipeline& pipeline) {
  const Loads loads = loads_of(layout, cluster);
  std::size_t most = 0, here = 0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    here = i > 0 && loads[i].first == loads[i - 1].first ? here + 1 : 1;
    most = std::max(most, here);
  }
  const double samples = samples_of_load(layout) / layout.microbatches * static_cast<double>(most);
  return {samples, samples / input::counts_of(pipeline).samples};
}

Usd requests_of_step(const workload::Layout& layout, const cluster::Cluster& cluster,
                     const input::Pipeline& pipeline) {
  const double samples =
      samples_of_load(layout) * static_cast<double>(loads_of(layout, cluster).size());
  return input::request_price_of(pipeline) * (samples / input::counts_of(pipeline).samples);
}

Result<std::optional<input::Pipeline>> read_job_input(const YamlMap& root,
                                                      const std::filesystem::path& folder) {
  Result<input::Pipeline> pipeline;
  if (root.is_map("input")) {
    const YamlMap here = *root.map("input");
    pipeline = input::read_pipeline(here, folder);
    here.no_other_keys();
    if (!root.status()) return std::optional<input::Pipeline>();  // which the file says
  } else {
    const auto file = root.optional<std::string>("input");
    if (!file) return std::optional<input::Pipeline>();
    pipeline = named_file(folder, *file).and_then(input::load_pipeline);
  }
  if (!pipeline) return forward(pipeline);
  return std::optional(std::move(*pipeline));
}

input::Pipeline on_hosts_of(const cost::Place& place, input::Pipeline pipeline) {
  if (!pipeline.host)
    if (const std::optional<std::uint32_t> cores = cores_of(place))
      pipeline.host = input::Host{.cores = *cores};
  return pipeline;
}

Result<Seconds> fed_time(const input::Feed& feed, const cluster::Cluster& cluster,
                         const workload::Layout& layout, Seconds step) {
  if (!(step > Seconds::s(0))) return step;
  const input::Work work{.units = taken_by(layout, cluster, feed.pipeline()).per_batch,
                         .time = step / layout.microbatches};
  const Result<Seconds> fed = feed.time_of(work);
  if (!fed) return in_section(fed.error());
  return *fed > work.time ? *fed * layout.microbatches : step;
}

void wait_for_samples(step::Step& step, Seconds fed) {
  const Estimate<Seconds> alone = step.time;
  // A step that is longer by so much is fed in at most so much more time, and in no less.
  const Seconds stall = fed - alone.value;
  step.time = {fed, alone.low + stall, alone.high + stall, alone.provenance};
  step.occupancy.input = stall;
  step.occupancy.total += stall;
}

Status feed(const input::Feed& by, const cluster::Cluster& cluster, step::Step& step) {
  const auto fed = [&](Seconds time) { return fed_time(by, cluster, step.layout, time); };
  const Seconds alone = step.time.value;
  const Seconds value = TRY(fed(alone));
  wait_for_samples(step, value);
  for (step::Counterfactual& c : step.counterfactuals) {
    const Seconds time = TRY(fed(c.step));
    c.step = std::min(time, step.time.value);
  }
  step.counterfactuals.push_back({"no input stalls", alone});
  std::ranges::stable_sort(step.counterfactuals,
                           [](const auto& a, const auto& b) { return a.step < b.step; });
  return {};
}

std::string feed_note(const input::Pipeline& pipeline, const cluster::Cluster& cluster,
                      const step::Step& step) {
  const Taken taken = taken_by(step.layout, cluster, pipeline);
  const Seconds alone = step.time.value - step.occupancy.input;
  std::string text = fmt::format(
      "input: a node needs {:g} samples per microbatch, {:g} of {}; {} samples/s without stalls",
      taken.samples, taken.per_batch, pipeline.stages.back().name,
      significant(taken.samples * step.layout.microbatches / alone.s(), 4));
  input::Pipeline loading = pipeline;
  loading.step.reset();
  if (const auto limits = input::limits_of(loading); !limits.empty())
    text +=
        fmt::format("; bounded by {}: {}", to_string(loading, limits.front()),
                    significant(limits.front().units_per_s * input::counts_of(loading).samples, 4));
  if (const Result<Seconds> first = input::time_to_first(loading, taken.per_batch))
    text += "; the first are ready after " + to_string(*first);
  if (!pipeline.host) text += "; the number of cores per node is not given and not limited";
  return text;
}

}  // namespace rehearse::cli
