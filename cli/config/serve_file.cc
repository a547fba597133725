#include "cli/config/serve_file.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "cli/config/job_file.h"
#include "cli/config/serve_load.h"
#include "cli/config/server_flags.h"
#include "models/workload/read_model.h"
#include "models/workload/zoo.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"

namespace rehearse::cli {
namespace {

/// The chance p of every draft to be accepted if 1 + p + p² + … + pⁿ is the mean.
double chance_of(double mean, std::size_t drafts) {
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    double sum = 1, power = 1;
    for (std::size_t k = 0; k < drafts; ++k) sum += power *= middle;
    (sum < mean ? low : high) = middle;
  }
  return low;
}

void read_speculation(const YamlMap& map, ServeFile& file) {
  const auto tokens = map.within<std::int64_t>("draft_tokens", 1, 64);
  if (!tokens && !map.has("draft_tokens")) map.report("draft_tokens", "is missing", "1 to 64");
  const auto count = static_cast<std::size_t>(tokens.value_or(1));
  std::vector<double>& chances = file.rules.drafts;
  chances = map.list<double>("accepted");
  const auto mean = map.within<double>("mean", 1, static_cast<double>(count + 1));
  if (map.has("accepted") == map.has("mean"))
    map.report("accepted", "exactly one of `accepted` and `mean` is required",
               "the chance of each draft, or mean: tokens per step");
  else if (mean)
    chances.assign(count, chance_of(*mean, count));
  else if (map.has("accepted") &&
           (chances.size() != count ||
            std::ranges::any_of(chances, [](double p) { return !(0 <= p && p <= 1); })))
    map.report("accepted", "is no chance for each of the draft tokens",
               fmt::format("{} numbers from 0 to 1", count));
  serving::Draft draft{.tokens = static_cast<std::int64_t>(count)};
  const std::string by = map.optional<std::string>("draft").value_or("heads");
  if (by != "heads" && by != "none") {
    const auto model = workload::find_description(by);
    if (model && std::holds_alternative<workload::Transformer>(*model))
      draft.model = std::get<workload::Transformer>(*model);
    else
      map.report("draft", fmt::format("'{}' proposes no tokens", by),
                 "heads, none, or a decoder such as llama3.2_1b");
  }
  if (by != "none") file.deployment.draft = std::move(draft);
  map.no_other_keys();
}

/// The degrees of `plan`, and its router.
void read_layout(const YamlMap& section, serving::ServingPlan& to, ServerGiven& given,
                 serving::Routing& routing) {
  const auto plan = section.map("plan");
  if (!plan) return;
  const auto degree = [&](std::string_view key, std::uint32_t& value, bool& is_given) {
    const auto read = plan->within<std::int64_t>(key, 1, 1024);
    if (read) value = static_cast<std::uint32_t>(*read);
    is_given = read.has_value();
  };
  degree("tensor", to.tensor, given.tensor);
  degree("pipeline", to.pipeline, given.pipeline);
  degree("expert", to.expert, given.expert);
  degree("data", to.data, given.data);
  bool context = false;  // a search keeps it
  degree("context", to.context, context);
  plan->choose("router", serving::kRoutingNames, routing);
  plan->no_other_keys();
}

void read_deployment(const YamlMap& serve, const std::filesystem::path& folder, ServeFile& file) {
  serving::Deployment& d = file.deployment;
  if (const auto model = workload::read_model_description(serve, folder)) {
    if (const auto* transformer = std::get_if<workload::Transformer>(&*model))
      d.model = *transformer;
    else
      serve.report("model", "is no transformer",
                   "a model that generates tokens, such as llama3_8b");
  }
  serve.choose("framework", serving::kFrameworkNames, d.framework);
  if (const auto version = serve.optional<std::string>("version")) {
    if (serving::is_version(*version))
      d.version = *version;
    else
      serve.report("version", fmt::format("'{}' is no version", *version),
                   "numbers with dots, such as \"0.11\"");
  }
  d.precision.weights = d.model.published;
  if (const auto precision = serve.map("precision")) {
    precision->choose("weights", serving::kWeightsNames, d.precision.weights);
    precision->choose("cache", serving::kCacheFormatNames, d.precision.cache);
    precision->no_other_keys();
  }
  read_layout(serve, d.plan, file.given, file.routing);
}

serving::OffDevice read_off_device(const YamlMap& map, std::string_view key) {
  serving::OffDevice shares;
  if (const auto of = map.map(key)) {
    shares.host = of->within<double>("host", 0, 1).value_or(0);
    shares.nvme = of->within<double>("nvme", 0, 1).value_or(0);
    if (shares.all() > 1)
      of->report("nvme", "is more than host leaves", "shares of at most 1 in all");
    of->no_other_keys();
  }
  return shares;
}

constexpr std::string_view kAttentions[] = {"device", "host"};

/// The section `offload`, of a device of this node.
serving::Offload read_offload(const YamlMap& map, const cluster::HostStore& store) {
  serving::Offload offload{.weights = read_off_device(map, "weights"),
                           .cache = read_off_device(map, "cache"),
                           .host_memory = store.memory,
                           .nvme = store.nvme,
                           .nvme_rate = store.nvme_rate};
  if (const auto batches = map.within<std::int64_t>("batches", 1, 1024))
    offload.batches = static_cast<std::uint32_t>(*batches);
  offload.host_attention = map.choice("attention", kAttentions) == 1u;
  if (const auto rate = map.optional<ByteRate>("host_memory_rate")) {
    offload.host_memory_rate = *rate;
    if (!(*rate >= ByteRate::gb_per_s(1e-3)))
      map.report("host_memory_rate", "is too low", "1 MB/s or more");
  }
  map.no_other_keys();
  return offload;
}

/// Where keys and values, or weights, are stored, the closest first.
constexpr std::string_view kTiers[] = {"host", "nvme", "remote"};

/// The section `cache_tiers`, if it is there.
std::vector<serving::CacheTier> read_tiers(const YamlMap& server) {
  std::vector<serving::CacheTier> tiers;
  const auto map = server.map("cache_tiers");
  if (!map) return tiers;
  for (const std::string_view name : kTiers) {
    const auto of = map->map(name);
    if (!of) continue;
    const auto size = of->required<Bytes>("size");
    const auto rate = of->required<ByteRate>("rate");
    if (rate && !(*rate >= ByteRate::gb_per_s(1e-3)))
      of->report("rate", "is too low", "1 MB/s or more");
    const auto latency = duration_in(*of, "latency", Seconds::s(0), Seconds::s(3600));
    if (size && rate) tiers.push_back({name, *size, *rate, latency.value_or(Seconds::s(0))});
    of->no_other_keys();
  }
  map->no_other_keys();
  return tiers;
}

constexpr std::string_view kSendings[] = {"whole", "layer"};

/// The section `prefill` on this device.
void read_prefill(const YamlMap& map, const cluster::Gpu* gpu, ServeFile& file) {
  PromptPool& pool = file.prefill.emplace();
  read_layout(map, pool.plan, pool.given, pool.routing);
  if (const auto device = map.optional<std::string>("device")) {
    const Result<const cluster::Gpu*> own = cluster::find_gpu(*device);
    pool.device = *device;
    if (own) {
      gpu = *own;
    } else {
      map.report("device", fmt::format("'{}' is no GPU of the catalog", *device),
                 "a name such as h100_sxm5_80");
    }
  }
  if (gpu != nullptr) {
    const serving::Deployment& d = file.deployment;
    ServerSettings settings = usual_settings(d.framework, d.version, *gpu);
    if (const auto flags = map.map("flags")) read_server_flags(*flags, d.framework, settings);
    pool.rules = settings.rules;
    pool.rules.prefix_tokens = settings.rules.block_tokens;
    pool.memory = settings.memory;
    pool.graphs = settings.graphs;
    pool.given.flags = settings.given;
  }
  if (const auto transfer = map.map("transfer")) {
    pool.network.rate = transfer->required<ByteRate>("rate").value_or(ByteRate::gb_per_s(1));
    if (!(pool.network.rate >= ByteRate::gb_per_s(1e-6)))
      transfer->report("rate", "is too low", "1 kB/s or more");
    pool.network.latency = transfer->optional<Seconds>("latency").value_or(Seconds::s(0));
    if (pool.network.latency < Seconds::s(0) || pool.network.latency > Seconds::s(3600))
      transfer->report("latency", "is out of range", "0 s to 1 h");
    pool.network.by_layer = transfer->choice("by", kSendings) == 1u;
    transfer->no_other_keys();
  } else if (!map.has("transfer")) {
    map.report("transfer", "is missing", "transfer: {rate: 50 GB/s}; the rate of a GPU");
  }
  pool.devices = devices_of(pool.plan);
  pool.tiers = read_tiers(map);
  map.no_other_keys();
}

/// The section `scaling`. REQUIRES: the plan was read.
void read_scaling(const YamlMap& map, ServeFile& file) {
  ReplicaScaling& scaling = file.scaling.emplace();
  serving::Scaling& rule = scaling.rule;
  const std::vector<std::int64_t> limits = map.list<std::int64_t>("replicas");
  if (limits.size() == 2 && 1 <= limits[0] && limits[0] <= limits[1] && limits[1] <= 1024) {
    rule.least = static_cast<std::size_t>(limits[0]);
    rule.most = static_cast<std::size_t>(limits[1]);
  } else {
    map.report("replicas", map.has("replicas") ? "is no range of replicas" : "is missing",
               "[least, most], from 1 to 1024");
  }
  map.choose("signal", serving::kSignalNames, rule.signal);
  std::optional<double> target;
  if (rule.signal != serving::Signal::kTtft)
    target = map.optional<double>("target");
  else if (const auto time = map.optional<Seconds>("target"))
    target = time->s();
  rule.target = target.value_or(0);
  if (target &&
      (!(*target > 0 && *target < 1e9) || (rule.signal == serving::Signal::kBusy && *target > 1)))
    map.report("target", "is out of range",
               "above 0, per replica; a share of the time, up to 1, where the signal is busy");
  const Seconds day = Seconds::s(86'400);
  if (const auto every = duration_in(map, "every", Seconds::ms(1), day)) rule.every = *every;
  if (const auto hold = duration_in(map, "hold", Seconds::s(0), day)) rule.hold = *hold;
  if (const auto start = duration_in(map, "start", Seconds::s(0), day)) rule.start = *start;
  if (const auto weights = map.map("weights")) {
    if (const auto tier = weights->choice("from", kTiers)) scaling.tier = kTiers[*tier];
    scaling.rate = weights->required<ByteRate>("rate");
    if (scaling.rate && !(*scaling.rate >= ByteRate::gb_per_s(1e-3)))
      weights->report("rate", "is too low", "1 MB/s or more");
    weights->no_other_keys();
  }
  if (file.given.data)
    map.report("replicas", "are given twice", "scaling without `data` in `plan`");
  if (file.deployment.plan.expert > 1)
    map.report("replicas", "share their experts (`expert` above 1), so that none can leave",
               "scaling with `expert: 1`");
  if (file.prefill)
    map.report("replicas", "of two pools have fixed numbers", "`data` in both plans");
  file.deployment.plan.data = static_cast<std::uint32_t>(rule.most);
  map.no_other_keys();
}

}  // namespace

Result<ServeFile> read_serve(const YamlMap& root, const std::filesystem::path& folder,
                             const std::filesystem::path& cluster_file) {
  if (cluster_file.empty()) return read_serve_on(root, folder, cluster::read_cluster(root));
  root.map("cluster");  // known, and overruled
  const cluster::Cluster other = TRY(cluster::load_cluster(cluster_file));
  return read_serve_on(root, folder, other);
}

Result<ServeFile> read_serve_on(const YamlMap& root, const std::filesystem::path& folder,
                                const std::optional<cluster::Cluster>& cluster) {
  const std::optional<YamlMap> section = root.map("serve");
  if (!section) {  // that of a study's job may be anything
    if (!root.has("serve")) root.report("serve", "is missing", "serve: {model: …}");
    return tl::unexpected(root.status().error());
  }
  ServeFile file;
  const YamlMap& serve = *section;
  read_deployment(serve, folder, file);
  const serving::Deployment& d = file.deployment;
  const cluster::Gpu* gpu = nullptr;
  if (cluster) {
    file.deployment.device = cluster->devices().front().model;
    gpu = TRY(cluster::find_gpu(d.device));
  }
  if (const auto prefill = serve.map("prefill")) {
    read_prefill(*prefill, gpu, file);
  }
  if (const auto scaling = serve.map("scaling")) read_scaling(*scaling, file);
  const bool apart = file.prefill && !file.prefill->device.empty();
  const std::size_t in_cluster =
      devices_of(d.plan) + (file.prefill && !apart ? file.prefill->devices : 0);
  file.devices = in_cluster + (apart ? file.prefill->devices : 0);
  if (cluster) {
    ServerSettings settings = usual_settings(d.framework, d.version, *gpu);
    if (const auto flags = serve.map("flags")) read_server_flags(*flags, d.framework, settings);
    file.rules = settings.rules;
    file.rules.prefix_tokens = settings.rules.block_tokens;
    file.memory = settings.memory;
    file.deployment.graphs = settings.graphs;
    file.given.flags = settings.given;
    file.in_cluster = cluster->devices().size();
    file.in_node = cluster->nodes().front().devices.size();
    if (cluster->nodes().size() > 1) {
      const cluster::PointToPoint path =
          cluster->route(cluster->nodes()[0].devices.front(), cluster->nodes()[1].devices.front())
              .path;
      file.deployment.nodes = {.devices = static_cast<std::uint32_t>(file.in_node),
                               .rate = path.rate,
                               .latency = path.latency};
    }
    if (in_cluster > cluster->devices().size())
      serve.report(
          "plan",
          fmt::format("{} GPUs of the {} in the cluster", in_cluster, cluster->devices().size()),
          file.prefill ? "as many in both pools at most" : "tensor × pipeline × data GPUs at most");
  }
  if (const auto map = serve.map("speculation")) read_speculation(*map, file);
  if (const auto map = serve.map("offload"))
    file.deployment.offload =
        read_offload(*map, cluster ? cluster->nodes().front().store : cluster::HostStore{});
  file.tiers = read_tiers(serve);
  if (d.offload && (!file.tiers.empty() || (file.prefill && !file.prefill->tiers.empty())))
    serve.report("cache_tiers", "are given along with `offload`", "one of the two");
  if (const auto slo = serve.map("slo")) {
    file.slo = ServingSlo{slo->optional<Seconds>("ttft"), slo->optional<Seconds>("tpot"),
                          slo->optional<Seconds>("end_to_end")};
    slo->no_other_keys();
  }
  if (const auto load = serve.map("load")) {
    TRY(read_load(*load, folder, file));
  } else if (!serve.has("load")) {
    serve.report("load", "is missing", "load: {closed: 64, input: 1024, output: 1024}");
  }
  serve.no_other_keys();
  file.place = place_of(root);
  JobCosts costs = TRY(read_job_costs(root, folder));
  file.place.hours = std::move(costs.hours);
  file.rent = costs.rent;
  if (costs.rent.regions.size() == 1) file.place.region = costs.rent.regions.front();
  if (costs.rent.markets.size() == 1) file.place.market = costs.rent.markets.front();
  if (apart && !file.place.rented.empty())
    serve.map("prefill")->report("device", "is of no instance, so that the pools have no price",
                                 "a cluster that is described by its device");
  root.no_other_keys();
  TRY(root.status());
  return file;
}

serving::Deployment prefill_deployment(const ServeFile& file) {
  serving::Deployment deployment = file.deployment;
  deployment.plan = file.prefill->plan;
  if (!file.prefill->device.empty()) deployment.device = file.prefill->device;
  deployment.graphs = file.prefill->graphs;
  deployment.draft.reset();
  return deployment;
}

ServeFile prefill_server(const ServeFile& file) {
  ServeFile server = file;
  server.deployment = prefill_deployment(file);
  server.memory = file.prefill->memory;
  server.rules = file.prefill->rules;
  server.tiers = file.prefill->tiers;
  server.given = file.prefill->given;
  server.routing = file.prefill->routing;
  server.devices = file.prefill->devices;
  server.prefill.reset();
  return server;
}

bool is_serve_file(const std::filesystem::path& path) {
  const Result<YamlFile> file = YamlFile::load(path);
  return file && file->root().has("serve");
}

Result<ServeFile> load_serve_file(const std::filesystem::path& path,
                                  const std::filesystem::path& cluster_file) {
  const YamlFile file = TRY(YamlFile::load(path));
  Result<ServeFile> read = read_serve(file.root(), path.parent_path(), cluster_file);
  if (!read) return wrong_in(path, std::move(read.error()));
  return read;
}

}  // namespace rehearse::cli
