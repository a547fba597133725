#include "models/serving/step_price.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/compute/device_facts.h"
#include "models/serving/formats.h"

namespace rehearse::serving {
namespace {

/// The work of a step as its kernels see it.
struct Tokens {
  double all = 0, decode = 0, verified = 0, prompt = 0, decode_context = 0, ending = 0;
};

/// Rows of a decode-only step are padded to the next captured size.
double padded(double rows) {
  if (rows > kMostGraphRows) return rows;
  if (rows <= 8) return std::exp2(std::ceil(std::log2(std::max(rows, 1.0))));
  return rows <= 256 ? 8 * std::ceil(rows / 8) : 16 * std::ceil(rows / 16);
}

/// Queries of a chunk times the keys that each sees.
double pairs_of(double queries, double before, const std::optional<double>& window) {
  if (!window) return queries * (before + 0.5 * (queries + 1));
  const double growing = std::clamp(*window - before, 0.0, queries);
  return growing * (before + 0.5 * (growing + 1)) + (queries - growing) * *window;
}

ContextWork context_work(const Step& step, double groups, const std::optional<double>& window) {
  ContextWork work;
  for (const PrefillChunk& chunk : step.prefill) {
    const double queries = static_cast<double>(chunk.new_tokens) / groups;
    const double before = static_cast<double>(chunk.context);
    const double keys = before + queries;
    const double pairs = pairs_of(queries, before, window);
    work.pairs += pairs;
    work.slowed += pairs / std::min(keys, window.value_or(keys));
    work.blocks += std::ceil(queries / 128);
    work.queries += queries;
    work.keys += std::min(keys, queries + window.value_or(keys));
  }
  return work;
}

/// Of `experts` that tokens choose at random, `per_token` each, those that any of them chose.
double active_share(double tokens, double experts, double per_token) {
  return -std::expm1(tokens * std::log1p(-per_token / experts));
}

/// The most loaded of `ranks` that share `pairs`, relative to the mean (normal approximation).
double fullest_rank(double pairs, double ranks) {
  return ranks < 2 ? 1 : 1 + std::sqrt(2 * std::log(ranks) * ranks / std::max(pairs, 1.0));
}

/// One direction of an exchange among expert ranks, some of them in other nodes: DeepEP at low
/// latency. Within a node 9.5 % median on combines. Both links send at the same time. Between
/// nodes every pair is a message of its own over RDMA; the start is that of dispatches on 16 and 32
/// H800 with 400 Gbit/s each (DeepEP's published table, recalled), which predicts the other eight
/// times within 14 %.
double one_way(double bytes, double away, const std::optional<NodePaths>& nodes) {
  if (away <= 0) return 11.6e-6 + bytes / 224e9;
  return 42e-6 + nodes->latency.s() +
         std::max(bytes * (1 - away) / 224e9, bytes * away / nodes->rate.bytes_per_s());
}

}  // namespace

Result<ServedModel> served_draft(const Deployment& d) {
  if (d.plan.pipeline > 1) return fail("a draft is not divided into stages", "pipeline: 1");
  return d.draft->model ? served(*d.draft->model, d.precision, d.plan)
                        : extra_layer(d.model, d.precision, d.plan);
}

namespace {

Status check_offload(const Deployment& d) {
  const auto wrong = [](std::string problem, std::string expected) {
    return fail(Diagnostic{
        .key = "serve.offload", .problem = std::move(problem), .expected = std::move(expected)});
  };
  if (d.plan.tensor * d.plan.pipeline * d.plan.data > 1)
    return wrong("state off the device with several GPUs",
                 "plan: {tensor: 1, pipeline: 1, data: 1}");
  if (d.draft) return wrong("state off the device with a draft", "one of speculation and offload");
  if (d.offload->weights.nvme + d.offload->cache.nvme > 0 && !d.offload->nvme_rate)
    return wrong("state is on NVMe drives, whose rate is not known",
                 "cluster: {host: {nvme_rate: 2 GB/s}}");
  return {};
}

/// Without its generated tokens.
Step prompts_of(Step step) {
  step.decode_rows = step.drafted = 0;
  step.decode_context = 0;
  return step;
}

}  // namespace

Result<StepPrice> StepPrice::of(const Deployment& d) {
  const cluster::Gpu& gpu = *TRY(cluster::find_gpu(d.device));
  TRY(check_formats(d.framework, d.version, d.precision, gpu));
  ServedModel model = TRY(served(d.model, d.precision, d.plan));
  Server server = server_for(d.framework, d.version, gpu.architecture);
  // Per lane and direction: 1 GB/s in the third generation, twice that in each later one.
  const cluster::Pcie pcie = gpu.pcie.value_or(cluster::Pcie{.generation = 4, .lanes = 16});
  const ByteRate link =
      gpu.link ? gpu.link->per_direction
               : ByteRate::gb_per_s(pcie.lanes * std::exp2(double{1} * pcie.generation - 3));
  StepPrice price(Kernels(compute::facts_of(gpu), link,
                          kFrameworkNames[static_cast<std::size_t>(d.framework)], d.version),
                  std::move(model), std::move(server), d.plan);
  if (d.offload) {
    TRY(check_offload(d));
    price.offload_ = d.offload;
    // As copies of training: 0.8 of the rate of the lanes.
    price.host_link_ = ByteRate::gb_per_s(0.8 * pcie.lanes * std::exp2(1.0 * pcie.generation - 3));
  }
  price.nodes_ = d.nodes;
  price.cache_ = d.precision.cache;
  price.graphs_ = d.graphs.value_or(price.server_.graphs);
  if (d.draft) {
    ServedModel draft = TRY(served_draft(d));
    price.draft_ = std::move(draft);
    price.draft_tokens_ = d.draft->tokens;
  }
  return price;
}

StepParts StepPrice::parts(const Step& step) const { return parts_of(model_, step); }

StepParts StepPrice::parts_of(const ServedModel& model, const Step& step) const {
  const double batches = offload_ ? offload_->batches : 1;
  const double groups = plan_.pipeline * batches;
  Tokens tokens;
  for (const PrefillChunk& chunk : step.prefill)
    tokens.prompt += static_cast<double>(chunk.new_tokens) / groups;
  tokens.decode = static_cast<double>(step.decode_rows) / groups;
  tokens.verified = static_cast<double>(step.decode_rows + step.drafted) / groups;
  tokens.decode_context = step.decode_context / groups;
  tokens.ending = static_cast<double>(step.finished_prefills) / groups;
  tokens.all = tokens.prompt > 0 ? tokens.prompt + tokens.verified : padded(tokens.verified);
  const double mean_context = tokens.decode > 0 ? tokens.decode_context / tokens.decode : 0;

  StepParts parts;
  const double reduced = all_reduce(2 * tokens.all * model.hidden);
  // A sum of squares of queries and one of keys per token, in single precision.
  const double normed = model.joint_query_norm ? 2 * all_reduce(4 * tokens.all) : 0;
  for (const LayerShape& layer : model.layers) {
    for (const Product& p : layer.products)
      parts.products += layer.count * kernels_.product(p.weights, tokens.all, p.n, p.k);
    const AttentionShape& a = layer.attention;
    if (tokens.decode > 0) {
      const double keys = tokens.decode * std::min(mean_context + 1, layer.window.value_or(1e18));
      parts.attention +=
          layer.count * kernels_.decode(cache_, keys * a.bytes, tokens.decode, a.kv_heads,
                                        keys / tokens.decode / plan_.context,
                                        keys * a.flops * tokens.verified / tokens.decode);
      parts.communication += layer.count * divided_attention(a, tokens.verified);
    }
    if (tokens.prompt > 0) {
      const ContextWork work = context_work(step, groups, layer.window);
      parts.attention += layer.count * kernels_.context(cache_, work, a.heads, a.kv_heads, a.size);
      if (const double before = work.keys - work.queries; before > 0)
        parts.communication +=
            layer.count * kernels_.gather(before * a.bytes * plan_.context, plan_.context);
      for (const Product& p : layer.context_products)
        parts.products += layer.count * kernels_.product(p.weights, work.keys, p.n, p.k);
    }
    if (layer.experts) {
      const double together = tokens.all * (plan_.expert > 1 ? plan_.data : 1);
      const double ranks = model.experts / layer.experts->held;
      const double mean = together * model.per_token / ranks;
      const double active =
          layer.experts->held * active_share(together, model.experts, model.per_token);
      parts.experts +=
          layer.count *
          kernels_.mixture(*layer.experts, mean * fullest_rank(mean * ranks, ranks), active);
      if (plan_.expert > 1 && plan_.data > 1)
        parts.communication +=
            layer.count * exchange(tokens.all * model.per_token / plan_.tensor, model.hidden);
    }
    parts.communication += layer.count * (2 * reduced + normed);
  }
  parts.communication += reduced;  // of the embedding
  if (const double rows = tokens.verified + tokens.ending; rows > 0)
    parts.head = kernels_.product(model.head.weights, rows, model.head.n, model.head.k);
  for (double StepParts::*part : {&StepParts::products, &StepParts::attention, &StepParts::experts,
                                  &StepParts::communication, &StepParts::head})
    parts.*part *= batches;
  return parts;
}

double StepPrice::all_reduce(double bytes) const {
  const double whole = plan_.tensor,
               in_node = nodes_ ? std::min<double>(whole, nodes_->devices) : whole;
  const double within = kernels_.all_reduce(bytes, in_node);
  if (in_node >= whole) return within;
  // Each device reduces its share of the node's sum with its counterparts, in a ring.
  const double count = std::ceil(whole / in_node);
  return within + 2 * (count - 1) *
                      (nodes_->latency.s() + bytes / in_node / count / nodes_->rate.bytes_per_s());
}

double StepPrice::divided_attention(const AttentionShape& a, double queries) const {
  const double ranks = plan_.context, all = queries * ranks;
  return kernels_.gather(2 * all * a.queried, ranks) + kernels_.gather(4 * all * a.heads, ranks) +
         kernels_.gather(2 * all * a.attended, ranks);
}

double StepPrice::exchange(double pairs, double hidden) const {
  const double ranks = double{1} * plan_.tensor * plan_.data;
  const double away = nodes_ && ranks > nodes_->devices ? 1 - nodes_->devices / ranks : 0;
  // Dispatched tokens have one byte per element, results two.
  return one_way(pairs * hidden, away, nodes_) + one_way(2 * pairs * hidden, away, nodes_);
}

double StepPrice::layers_of(const ServedModel& model) const {
  const double reduces = plan_.tensor < 2 ? 0 : model.joint_query_norm ? 4 : 2;
  return model.layer_count * (server_.glue.s() + reduces * server_.ready.s());
}

double StepPrice::drafting(const Step& step) const {
  if (!draft_) return 0;
  const auto pass = [&](const Step& s) {
    return server_.kernels * parts_of(*draft_, s).kernels() + layers_of(*draft_);
  };
  const Step rows{.decode_rows = step.decode_rows, .decode_context = step.decode_context};
  return pass(step) + (step.drafted > 0 ? static_cast<double>(draft_tokens_ - 1) * pass(rows) : 0);
}

Seconds StepPrice::with_transfers(Seconds device, const Step& step) const {
  double prompts_read = 0, written = static_cast<double>(step.decode_rows);
  for (const PrefillChunk& chunk : step.prefill) {
    prompts_read += static_cast<double>(chunk.context);
    written += static_cast<double>(chunk.new_tokens);
  }
  const Bytes token = model_.cache_per_token + model_.windowed_per_token;
  const OffloadTimes times =
      times_of(*offload_,
               {model_.weights, token * step.decode_context, token * prompts_read, token * written},
               host_link_);
  return std::max({device + times.host_attention, times.loads, times.stores, times.drives});
}

StepTime StepPrice::price(const Step& step) const {
  StepParts p = parts(step);
  if (offload_ && offload_->host_attention && step.decode_rows > 0) {
    const double prompts = step.prefill.empty() ? 0 : parts(prompts_of(step)).attention;
    p.attention = prompts + (p.attention - prompts) * (1 - offload_->cache.all());
  }
  double prompt = 0;
  for (const PrefillChunk& chunk : step.prefill) prompt += static_cast<double>(chunk.new_tokens);
  const double tokens = static_cast<double>(step.decode_rows + step.drafted) + prompt;
  const double experts = p.experts * (server_.prompts - 1) * std::min(1.0, prompt / 512);
  double passes = server_.passes * model_.layer_count;
  for (const LayerShape& layer : model_.layers)
    if (layer.experts) passes += server_.expert_passes * layer.count;
  double device = server_.kernels * (p.kernels() + experts) +
                  kernels_.moving(passes * 2 * tokens / plan_.pipeline * model_.hidden) +
                  layers_of(model_);
  const double rows = static_cast<double>(step.decode_rows + step.finished_prefills);
  const double most = step.prefill.empty() ? std::max(kMostGraphRows, graphs_) : graphs_;
  if (tokens / plan_.pipeline > most)
    device = std::max(device, server_.launch.s() * model_.layer_count);
  const Seconds all = Seconds::s(device + drafting(step)) + server_.step + server_.row * rows;
  const Seconds time = offload_ ? with_transfers(all, step) : all;
  const double kernels = server_.kernels * (p.kernels() + experts);
  return {.device = time, .use = std::min(1.0, kernels / time.s())};
}

RequestTime StepPrice::request(std::int64_t input_tokens) const {
  return {.serial = server_.client + server_.kilotoken * (1e-3 * static_cast<double>(input_tokens)),
          .latency = server_.request};
}

Estimate<double> StepPrice::reach() const { return widened(server_.low, server_.high); }

Estimate<double> StepPrice::reach_of_first_token() const {
  return widened(server_.first_low, server_.first_high);
}

Estimate<double> StepPrice::widened(double low, double high) const {
  // Shares of another device's peaks: the spread of shares among the devices with tables.
  const Provenance provenance = kernels_.provenance();
  const double wider = provenance == Provenance::kInterpolated   ? 1
                       : provenance == Provenance::kExtrapolated ? 1.15
                                                                 : 1.4;
  // No measured run has drafts, state off the device, keys divided by tokens, or ranks of one replica
  // in several nodes.
  const bool apart = nodes_ && plan_.tensor * (plan_.expert > 1 ? plan_.data : 1) > nodes_->devices;
  const bool unproven = draft_.has_value() || offload_.has_value() || apart || plan_.context > 1;
  // Ranks that share experts wait for the slowest one in every step: 41 runs took 1.2 to 1.7 times
  // as long at the median, by device, and up to 2.4 times.
  const bool waits = plan_.data > 1 && plan_.expert > 1;
  const double unknown = wider * (unproven ? 1.15 : 1);
  return {1, low / unknown, high * unknown * (waits ? 2 : 1),
          waits || unproven ? std::max(provenance, Provenance::kExtrapolated) : provenance};
}

std::vector<std::string> StepPrice::sources() const {
  return {"kernels: " + kernels_.source(), "server: " + server_.name};
}

}  // namespace rehearse::serving
