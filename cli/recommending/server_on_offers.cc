#include "cli/recommending/server_on_offers.h"

#include <cmath>

#include <fmt/format.h>

#include "cli/globals.h"
#include "cli/planning/find_settings.h"
#include "cli/planning/setting_fields.h"
#include "sim/base/file.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"

namespace rehearse::cli {
namespace {

using serving::Measures;

/// The job on a device. Its degrees are held against the devices of an offer later.
Result<ServeFile> job_on(const std::string& text, const std::filesystem::path& path,
                         const std::string& device) {
  const YamlFile file = TRY(YamlFile::parse(text, path.string()));
  const cluster::Cluster cluster = TRY(cluster::parse_cluster(
      fmt::format("cluster: {{device: {}, devices_per_node: 8, nodes: 1}}", device), device));
  const YamlMap root = file.root();
  root.map("cluster");  // known, and overruled
  return read_serve_on(root, path.parent_path(), cluster);
}

}  // namespace

Result<ServerOnOffers> ServerOnOffers::load(const std::filesystem::path& path, double tokens,
                                            const cost::Offer& first) {
  std::string text = TRY(read_file(path));
  ServeFile job = TRY(job_on(text, path, first.instance->gpu));
  return ServerOnOffers(path, std::move(text), tokens, std::move(job));
}

cost::Evaluator ServerOnOffers::evaluator(const SpreadOf& spread) const {
  // No bound in time: an option that costs more may still have the shortest time per token.
  const auto least_time = [this](const cost::Offer& offer) {
    return has_basis(offer.instance->gpu) ? std::optional(Seconds::s(0)) : std::nullopt;
  };
  const auto evaluate_with = [this, spread](FlagChoice flags) {
    return
        [this, spread, flags](const cost::Offer& offer) { return evaluate(offer, flags, spread); };
  };
  return {.least_time = least_time,
          .evaluate = evaluate_with(FlagChoice::kAsGiven),
          .look_again = evaluate_with(FlagChoice::kAll)};
}

bool ServerOnOffers::has_basis(const std::string& device) const {
  const serving::Deployment& d = job_.deployment;
  const Result<serving::StepPrice> price = serving::StepPrice::of(
      {.model = d.model, .device = device, .framework = d.framework, .version = d.version});
  return price && price->reach().provenance != Provenance::kDatasheet;
}

Result<cost::Evaluation> ServerOnOffers::evaluate(const cost::Offer& offer, FlagChoice flags,
                                                  const SpreadOf& spread) const {
  const std::string key =
      fmt::format("{} {} × {} {}", offer.instance->gpu, offer.instance->gpu_count, offer.count,
                  static_cast<int>(flags));
  return kept_->evaluations.of(key, [&] { return evaluate_anew(offer, flags, spread(key)); });
}

Result<cost::Evaluation> ServerOnOffers::evaluate_anew(const cost::Offer& offer, FlagChoice flags,
                                                       strategies::Spread spread) const {
  const std::string& device = offer.instance->gpu;
  const Result<ServeFile>& read =
      kept_->jobs.of(device, [&] { return job_on(text_, path_, device); });
  if (!read) return forward(read);
  ServeFile job = *read;
  job.in_node = static_cast<std::size_t>(std::llround(offer.instance->gpu_count));
  job.in_cluster = job.in_node * offer.count;
  // An instance is rented as long as its replica is.
  if (job.scaling) job.scaling->whole_nodes = true;
  const FoundSettings found =
      TRY(find_settings(job, {.flags = flags,
                              .whole_cluster = true,
                              .keep = 1,
                              .search = {.progress = [](double) { return !interrupted.load(); },
                                         .spread = std::move(spread)}}));
  const ServerSetting& setting = found.best.front().setting;
  set(job, setting);
  const ServedLoad load = TRY(serve(job));
  const std::vector<ServerFlag> own = TRY(flags_of(job));
  const Value fields = TRY(setting_fields(job));
  const cluster::Gpu& gpu = *TRY(cluster::find_gpu(device));
  const auto time = load.estimate<Seconds>(
      [&](const Measures& m) { return Seconds::s(m.duration * tokens_ / m.output_tokens); });
  const double devices = static_cast<double>(job.in_cluster);
  const double used = static_cast<double>(job.devices);
  const std::lock_guard lock(kept_->mutex);
  kept_->found.push_back(
      {.setting = setting,
       .flags = flag_words(own),
       .fields = fields,
       .devices = static_cast<std::uint32_t>(job.in_cluster),
       .used = static_cast<std::uint32_t>(job.devices),
       .goodput = load.goodput(),
       .tokens_per_s = load.tokens_per_s(),
       .tokens_per_user = load.tokens_per_user(),
       .mean_ttft = load.ttft(&serving::Spread::mean),
       .p99_ttft = load.ttft(&serving::Spread::p99),
       .mean_tpot = load.mean_tpot(),
       .p99_tpot = load.estimate<Seconds>([](const Measures& m) { return Seconds::s(m.tpot.p99); }),
       .memory = load.space});
  const double paid =
      job.scaling ? device_seconds(job, load.measures[0]) / (devices * load.measures[0].duration)
                  : 1;
  return cost::Evaluation{
      .job = {.step = time, .steps = 1, .checkpoint = Bytes::b(0), .paid = paid},
      .plan = plan_words(setting),
      .devices =
          {{.name = device, .gpu = &gpu, .count = devices, .busy = load.busy() * used / devices}},
      .detail = kept_->found.size() - 1};
}

}  // namespace rehearse::cli
