#include "tests/validation/studies/galvatron.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using nlohmann::json;
using workload::Layer;
using workload::SavedActivation;
using workload::Transformer;

std::optional<double> number_after(std::string_view text, std::string_view prefix) {
  const std::size_t at = text.find(prefix);
  if (at == std::string_view::npos) return std::nullopt;
  double value = 0;
  const char* from = text.data() + at + prefix.size();
  const auto [end, error] = std::from_chars(from, text.data() + text.size(), value);
  return error == std::errc() && end != from ? std::optional(value) : std::nullopt;
}

std::uint32_t count_after(std::string_view text, std::string_view prefix) {
  return static_cast<std::uint32_t>(number_after(text, prefix).value_or(0));
}

struct Known {
  std::string_view name;
  std::uint32_t hidden, heads;
};
constexpr Known kKnown[] = {
    {"llama2-7b", 4096, 32}, {"llama-7b", 4096, 32},    {"llama2-13b", 5120, 40},
    {"llama-13b", 5120, 40}, {"baichuan-7b", 4096, 32}, {"baichuan-13b", 5120, 40},
    {"gpt-1.5b", 1600, 25},  {"gpt-2.7b", 2560, 32},    {"gpt-6.7b", 4096, 32},
    {"bert-base", 768, 12},  {"bert-large", 1024, 16}};

/// Llama's rule: two thirds of 4 h, up to a multiple of 256.
std::uint32_t gated_size(std::uint32_t hidden) { return (hidden * 8 / 3 + 255) / 256 * 256; }

/// Dimensions that the family implies. False where the family is not known.
bool complete(Transformer& m, GalvatronFamily& family) {
  const auto starts = [&](std::string_view with) {
    return family.name.find(with) != std::string::npos;
  };
  if (starts("llama") || starts("qwen") || starts("baichuan")) {
    if (m.vocabulary == 0) m.vocabulary = starts("baichuan") ? 64000 : 32000;
    if (m.feed_forward == 0) m.feed_forward = gated_size(m.hidden);
    m.gated = true;
    m.activation = workload::Activation::kSilu;
    m.norm = workload::Norm::kRms;
    m.positions = workload::Positions::kRotary;
    m.query_bias = m.output_bias = m.linear_bias = false;
    family.copies = 1;
    family.copies_sequence_parallel = 2;
  } else if (starts("gpt")) {
    m.vocabulary = 50257;
    m.feed_forward = 4 * m.hidden;
    if (starts("_fa")) family.copies_sequence_parallel = 2;
  } else if (starts("bert")) {
    m.vocabulary = 30522;
    m.feed_forward = 4 * m.hidden;
    m.causal = false;
    m.token_types = 2;
    m.embedding_norm = true;
    family.transformed_head = true;
    family.mask_bytes = 2.0 * m.heads;  // one in half precision for each
  } else {
    return false;
  }
  m.tied_embedding = false;
  return m.hidden > 0 && m.heads > 0;
}

/// What the name of a file says, before `complete`.
GalvatronModel named_by(const std::string& file, std::string_view kind) {
  GalvatronModel named;
  Transformer& m = named.model;
  const std::size_t prefix = file.find("__");
  m.name = file.substr(file.find(kind) + kind.size());
  m.hidden = count_after(file, "_hidden");
  m.heads = count_after(file, "_head");
  m.sequence = count_after(file, "_seqlen");
  m.layers = 1;
  named.family.name = m.hidden > 0 && prefix != std::string::npos ? file.substr(0, prefix) : m.name;
  for (const Known& known : kKnown)
    if (m.hidden == 0 && m.name.find(known.name) != std::string::npos) {
      m.hidden = known.hidden;
      m.heads = known.heads;
    }
  return named;
}

struct Measured {
  std::optional<double> states, activations, above;
};

/// "layernum[2]_bsz8_seq2048_rank7_act_peak": MiB, by layers, batch, sequence and rank.
using Runs =
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, Measured>;

Runs runs_of(const json& object, std::uint32_t sequence) {
  Runs runs;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_number() || name.rfind("layernum[", 0) != 0) continue;
    const std::uint32_t s =
        name.find("_seq") != std::string::npos ? count_after(name, "_seq") : sequence;
    Measured& run = runs[{count_after(name, "layernum["), count_after(name, "_bsz"), s,
                          count_after(name, "_rank")}];
    if (name.ends_with("_ms")) run.states = value.get<double>();
    if (name.ends_with("_act")) run.activations = value.get<double>();
    if (name.ends_with("_act_peak")) run.above = value.get<double>();
  }
  return runs;
}

void add_strategy(GalvatronProfile& profile, const std::string& key, const json& object) {
  GalvatronRow row{.file = profile.file, .key = key};
  const std::vector<std::string_view> words = split(key, '_');
  std::uint32_t degrees[3];
  if (words.size() < 3) return;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto [end, error] =
        std::from_chars(words[i].data(), words[i].data() + words[i].size(), degrees[i]);
    if (error != std::errc() || end != words[i].data() + words[i].size() || degrees[i] == 0) return;
  }
  std::tie(row.pipeline, row.tensor, row.data) = std::tuple(degrees[0], degrees[1], degrees[2]);
  for (std::size_t i = 3; i < words.size(); ++i) {
    row.recompute |= words[i] == "c";
    row.vocabulary_parallel |= words[i] == "vtp";
    row.sequence_parallel |= words[i] == "sp";
  }
  for (const auto& [run, measured] : runs_of(object, profile.model.sequence)) {
    const auto [layers, batch, sequence, rank] = run;
    if (!measured.states || !measured.activations || !measured.above || layers == 0 || batch == 0 ||
        sequence == 0 || layers % row.pipeline != 0)
      continue;
    row.layers = layers;
    row.batch = batch;
    row.sequence = sequence;
    row.first = rank == 0 || row.pipeline == 1;
    row.last = rank != 0 || row.pipeline == 1;
    row.states = Bytes::mib(*measured.states);
    row.activations = Bytes::mib(*measured.activations);
    row.peak = row.states + Bytes::mib(*measured.above);
    profile.rows.push_back(row);
  }
}

void add_layer(GalvatronProfile& profile, const json& by_sequence) {
  for (const auto& [sequence, values] : by_sequence.items()) {
    const auto found = values.find("tp_activation_per_bsz_dict");
    if (found == values.end()) continue;
    for (const auto& [degree, mib] : found->items())
      if (const auto t = number_after(degree, ""); t && mib.is_number())
        profile.layer_rows.push_back({count_after(sequence, ""), static_cast<std::uint32_t>(*t),
                                      Bytes::mib(mib.get<double>())});
    if (const auto size = values.find("parameter_size"); size != values.end() && size->is_number())
      profile.layer_parameters = Bytes::mib(size->get<double>());
  }
}

std::uint32_t config(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint32_t>() : 0;
}

/// Bytes: saved by forward, and the gradient that the loss adds.
constexpr double kGradientPerLogit = 2;
double kept_per_logit(const GalvatronFamily& family) { return family.unfused ? 4 : 2; }

}  // namespace

Result<json> read_json_object(const std::filesystem::path& path) {
  const std::string text = TRY(read_file(path));
  json root = json::parse(text, nullptr, false);
  if (!root.is_object())
    return fail(Diagnostic{.file = path.string(), .problem = "is not a JSON object"});
  return root;
}

double galvatron_kept_share_of_loss(const GalvatronFamily& family) {
  return kept_per_logit(family) / (kept_per_logit(family) + kGradientPerLogit);
}

Result<GalvatronProfile> read_galvatron(const std::filesystem::path& path,
                                        std::vector<std::string>& left_out) {
  const json read = TRY(read_json_object(path));
  const json& root = read;
  GalvatronProfile profile{.file = path.stem().string(), .family = {}, .model = {}};
  const std::string& file = profile.file;
  constexpr std::string_view kKind = "memory_profiling_";
  if (file.find(kKind) == std::string::npos)
    return fail(Diagnostic{.file = path.string(),
                           .problem = "is named like no memory profile",
                           .expected = "[family__]memory_profiling_DTYPE_MODEL.json"});
  GalvatronModel named = named_by(file, kKind);
  profile.family = std::move(named.family);
  profile.model = std::move(named.model);
  Transformer& m = profile.model;
  if (const auto described = root.find("model_config"); described != root.end()) {
    m.hidden = config(*described, "dim");
    m.heads = config(*described, "n_heads");
    m.kv_heads = config(*described, "n_kv_heads");
    m.feed_forward = config(*described, "ffn_dim");
    m.vocabulary = config(*described, "vocab_size");
  }
  if (!complete(m, profile.family)) {
    left_out.push_back(fmt::format("{}: a model of unknown shape", file));
    return profile;
  }
  for (const auto& [key, value] : root.items()) {
    if (!value.is_object()) continue;
    if (root.contains("model_config")) {
      if (key.rfind("layertype_", 0) == 0) add_layer(profile, value);
    } else {
      add_strategy(profile, key, value);
    }
  }
  // The current version of Galvatron profiles by the names of models.
  profile.family.unfused =
      m.gated && m.name.find("hidden") == std::string::npos && profile.layer_rows.empty();
  if (profile.family.unfused) {
    profile.family.mask_bytes = 8;
    profile.family.copies = profile.family.copies_sequence_parallel = 0;
  }
  return profile;
}

std::optional<GalvatronModel> galvatron_model(const std::string& file, std::string_view kind) {
  if (file.find(kind) == std::string::npos) return std::nullopt;
  GalvatronModel named = named_by(file, kind);
  if (!complete(named.model, named.family)) return std::nullopt;
  return named;
}

Result<Layer> galvatron_block(const GalvatronProfile& profile, std::uint32_t sequence,
                              std::uint32_t tensor, bool sequence_parallel) {
  Transformer model = profile.model;
  model.sequence = sequence;
  const bool bert = profile.family.name.find("bert") != std::string::npos;
  workload::Implementation how;
  how.dropout = !model.gated;
  how.attention = bert ? workload::Attention::kUnfused : workload::Attention::kFlash;
  const workload::Workload w = TRY(workload::transformer(model, how));
  Layer block = w.layers[1];
  for (SavedActivation& k : block.saved)
    if (k.tensor || sequence_parallel) k.bytes = k.bytes / tensor;
  for (workload::Weights& weights : block.weights)
    if (weights.tensor) weights.count /= tensor;
  // Names point into the workload.
  for (SavedActivation& k : block.saved) k.name = k.input ? "input" : "kept";
  block.forward.clear();
  block.backward.clear();
  return block;
}

Bytes galvatron_fixed(const GalvatronProfile& profile, const GalvatronRow& row) {
  const GalvatronFamily& family = profile.family;
  const double local = row.batch / row.data;
  const bool masks = !family.unfused || row.tensor > 1;
  return Bytes::mib(18) +
         Bytes::b(masks ? family.mask_bytes * row.sequence * row.sequence * local : 0);
}

Result<workload::Layout> layout_of(const GalvatronProfile& profile, const GalvatronRow& row,
                                   double layer_factor) {
  const Transformer& m = profile.model;
  const GalvatronFamily& family = profile.family;
  const double t = row.tensor, s = row.sequence, h = m.hidden;
  const double batch = row.batch / row.data;
  // Without vtp embedding and head are data parallel over all ranks of the stage.
  const double vocabulary_batch = row.vocabulary_parallel ? batch : row.batch / (row.data * t);
  const double vocabulary_tensor = row.vocabulary_parallel ? t : 1;
  const double vocabulary_share =
      row.vocabulary_parallel && row.sequence_parallel ? t : 1;  // of what is no logit
  const double moved = row.vocabulary_parallel ? 0 : 2 * s * h * (batch - vocabulary_batch);
  const std::uint32_t copies =
      row.sequence_parallel ? family.copies_sequence_parallel : family.copies;

  Layer block = TRY(galvatron_block(profile, row.sequence, row.tensor, row.sequence_parallel));
  for (SavedActivation& k : block.saved)
    k.bytes = k.bytes * batch * (k.input && row.recompute ? 1 : layer_factor);
  if (row.recompute) {
    for (const SavedActivation& k : block.saved)
      if (!k.input) block.recomputed += k.bytes;
    std::erase_if(block.saved, [](const SavedActivation& k) { return !k.input; });
  }
  block.count = row.layers / row.pipeline;
  double sharded = block.count * block.parameters();

  workload::Chunk chunk{.layers = {}, .first_layer = 0};
  const double matrix = m.vocabulary * h / vocabulary_tensor;
  const double tables = m.positions == workload::Positions::kLearned ? (s + m.token_types) * h : 0;
  const auto vocabulary_layer = [&](std::string name) {
    Layer layer{.name = std::move(name), .forward = {}, .backward = {}};
    layer.weights.push_back({matrix});
    sharded += matrix * vocabulary_tensor / t;
    return layer;
  };
  if (row.first) {
    Layer embedding = vocabulary_layer("embedding");
    embedding.weights.push_back({tables / vocabulary_tensor});
    sharded += tables / t;
    // The mask of dropout, the input of a norm.
    const double kept = (m.gated ? 0 : 1) + (m.embedding_norm ? 2 : 0);
    embedding.saved.push_back(
        {.name = "embedded",
         .bytes = Bytes::b(kept * s * h * vocabulary_batch / vocabulary_share)});
    if (copies > 0) embedding.saved.push_back({.name = "copy", .bytes = Bytes::b(moved)});
    if (row.pipeline > 1)
      embedding.saved.push_back(
          {.name = "sent", .bytes = Bytes::b(2 * s * h * batch / (row.sequence_parallel ? t : 1))});
    chunk.layers.push_back(std::move(embedding));
  }
  chunk.layers.push_back(std::move(block));
  if (row.last) {
    Layer head = vocabulary_layer("head");
    const double per_element = family.unfused || family.transformed_head ? 8 : 4;
    head.saved.push_back(
        {.name = "input",
         .bytes = Bytes::b(per_element * s * h * vocabulary_batch / vocabulary_share)});
    if (copies > 1 || (copies > 0 && row.pipeline > 1))
      head.saved.push_back({.name = "copy", .bytes = Bytes::b(moved)});
    head.saved.push_back({.name = "logits",
                          .bytes = Bytes::b((kept_per_logit(family) + kGradientPerLogit) * s *
                                            vocabulary_batch * m.vocabulary / vocabulary_tensor),
                          .transient = true});
    chunk.layers.push_back(std::move(head));
  }

  workload::Stage stage{
      .name = row.key,
      .degrees = {},
      .first_rank = 0,
      .chunks = {std::move(chunk)},
      .order = {{workload::Pass::kForward, 0, 0}, {workload::Pass::kBackward, 0, 0}},
      .states = {}};
  // FP32 weights, gradients and Adam over all ranks of the stage.
  const double share = sharded / (stage.parameters() * row.data);
  stage.states = {4 * share, 4 * share, 8 * share};
  // Half-precision weights and gradients while a layer runs, and the copy that is reduced, unless
  // a pipeline puts the reduction off.
  stage.gathering = {.weights = 2, .gradient = row.pipeline > 1 ? 2. : 4.};
  workload::Layout layout{.names = {},
                          .stages = {},
                          .microbatches = 1,
                          .samples_per_step = row.batch,
                          .tokens_per_sample = s,
                          .model_flops = Flops::flop(0),
                          .applied = {}};
  layout.stages.push_back(std::move(stage));
  return layout;
}

}  // namespace rehearse::cli
