#include "models/workload/description.h"

#include <optional>
#include <utility>

#include <fmt/core.h>

namespace rehearse::workload {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

constexpr double kMostRows = 1e12;

std::optional<std::uint32_t> count_at(const YamlMap& map, std::string_view key,
                                      std::int64_t least = 1) {
  const auto value = map.within<std::int64_t>(key, least, kMostOfDimension);
  return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

void set_count(const YamlMap& map, std::string_view key, std::uint32_t& to,
               std::int64_t least = 1) {
  to = count_at(map, key, least).value_or(to);
}

void set_number(const YamlMap& map, std::string_view key, double& to) {
  const std::optional<double> value = map.optional<double>(key);
  if (!value) return;
  if (*value > 0)
    to = *value;
  else
    map.report(key, fmt::format("{} is not above zero", *value));
}

void set_flag(const YamlMap& map, std::string_view key, bool& to) {
  to = map.optional<bool>(key).value_or(to);
}

void set_counts(const YamlMap& map, std::string_view key, std::vector<std::uint32_t>& to) {
  const std::vector<std::int64_t> values = map.list<std::int64_t>(key);
  if (values.empty()) return;
  to.clear();
  for (const std::int64_t value : values) {
    if (value < 1 || value > kMostOfDimension)
      return map.report(key, fmt::format("{} is out of range", value), "whole numbers above zero");
    to.push_back(static_cast<std::uint32_t>(value));
  }
}

void read_mixture(const YamlMap& map, Transformer& m) {
  Mixture x = m.mixture.value_or(Mixture{.experts = 0, .per_token = 1, .feed_forward = 0});
  set_count(map, "experts", x.experts);
  set_number(map, "experts_per_token", x.per_token);
  set_count(map, "expert_feed_forward", x.feed_forward);
  set_count(map, "shared_feed_forward", x.shared, 0);
  set_flag(map, "shared_gate", x.shared_gate);
  set_flag(map, "clamped_experts", x.clamped);
  set_count(map, "first_dense_layers", x.first_dense, 0);
  set_count(map, "mixture_every", x.every);
  if (x.experts > 0) m.mixture = x;
}

void read_latent(const YamlMap& map, Transformer& m) {
  Latent x = m.latent.value_or(Latent{});
  set_count(map, "query_rank", x.query_rank, 0);
  set_count(map, "key_value_rank", x.key_value_rank);
  set_count(map, "plain_head_size", x.plain_size);
  set_count(map, "rotary_head_size", x.rotary_size);
  set_count(map, "value_head_size", x.value_size);
  if (x.key_value_rank > 0) m.latent = x;
}

void read_image(const YamlMap& map, Transformer& m) {
  Image x = m.image.value_or(Image{});
  set_count(map, "image", x.side);
  set_count(map, "patch", x.patch);
  set_count(map, "channels", x.channels);
  set_count(map, "classes", x.classes);
  set_flag(map, "class_token", x.class_token);
  if (x.patch > 0) m.image = x;
}

void read(const YamlMap& map, Transformer& m) {
  set_count(map, "hidden", m.hidden);
  set_count(map, "layers", m.layers);
  set_count(map, "decoder_layers", m.decoder_layers, 0);
  set_count(map, "decoder_sequence", m.decoder_sequence);
  set_count(map, "heads", m.heads);
  set_count(map, "kv_heads", m.kv_heads);
  set_count(map, "head_size", m.head_size);
  set_count(map, "feed_forward", m.feed_forward);
  set_count(map, "vocabulary", m.vocabulary);
  set_count(map, "sequence", m.sequence);
  set_count(map, "position_table", m.position_table);
  set_flag(map, "gated", m.gated);
  map.choose("activation", kActivationNames, m.activation);
  map.choose("norm", kNormNames, m.norm);
  set_flag(map, "norm_bias", m.norm_bias);
  map.choose("positions", kPositionsNames, m.positions);
  set_flag(map, "causal", m.causal);
  set_flag(map, "tied_embedding", m.tied_embedding);
  if (const std::optional<bool> all = map.optional<bool>("bias"))
    m.query_bias = m.output_bias = m.linear_bias = *all;
  set_flag(map, "query_bias", m.query_bias);
  set_flag(map, "output_bias", m.output_bias);
  set_flag(map, "linear_bias", m.linear_bias);
  set_flag(map, "head_bias", m.head_bias);
  set_flag(map, "query_norm", m.query_norm);
  set_flag(map, "joint_query_norm", m.joint_query_norm);
  set_flag(map, "shared_norm", m.shared_norm);
  set_flag(map, "final_norm", m.final_norm);
  set_flag(map, "embedding_norm", m.embedding_norm);
  set_count(map, "token_types", m.token_types, 0);
  set_flag(map, "pooler", m.pooler);
  set_count(map, "embedding_size", m.embedding_size);
  set_count(map, "window", m.window, 0);
  set_count(map, "full_every", m.full_every, 0);
  read_mixture(map, m);
  read_latent(map, m);
  read_image(map, m);
  map.choose("published_weights", kWeightsNames, m.published);
}

void read(const YamlMap& map, Swin& m) {
  set_count(map, "hidden", m.hidden);
  set_counts(map, "blocks", m.blocks);
  set_counts(map, "heads", m.heads);
  set_count(map, "window", m.window);
  set_count(map, "patch", m.patch);
  set_count(map, "image", m.image);
  set_count(map, "classes", m.classes);
}

void read(const YamlMap& map, Dlrm& m) {
  set_count(map, "dense", m.dense);
  const std::vector<double> rows = map.list<double>("rows");
  for (const double row : rows)
    if (!(row >= 1 && row <= kMostRows))
      map.report("rows", fmt::format("{} is out of range", row), "numbers of rows from 1 to 1e12");
  if (!rows.empty()) m.rows = rows;
  set_count(map, "embedding_size", m.embedding_size);
  set_number(map, "lookups", m.lookups);
  set_counts(map, "bottom", m.bottom);
  set_counts(map, "top", m.top);
  set_count(map, "cross_layers", m.cross_layers, 0);
  set_count(map, "cross_rank", m.cross_rank);
}

void read(const YamlMap& map, ResNet& m) {
  set_counts(map, "blocks", m.blocks);
  set_flag(map, "bottleneck", m.bottleneck);
  set_count(map, "groups", m.groups);
  set_count(map, "width_per_group", m.width_per_group);
  set_count(map, "image", m.image);
  set_count(map, "classes", m.classes);
}

void read(const YamlMap& map, Vgg& m) {
  set_counts(map, "convolutions", m.convolutions);
  set_flag(map, "batch_norm", m.norm);
  set_count(map, "image", m.image);
  set_count(map, "classes", m.classes);
}

void read(const YamlMap& map, DenseNet& m) {
  set_counts(map, "blocks", m.blocks);
  set_count(map, "growth", m.growth);
  set_count(map, "initial", m.initial);
  set_count(map, "image", m.image);
  set_count(map, "classes", m.classes);
}

void read(const YamlMap& map, ConvNet& m) {
  set_count(map, "channels", m.channels);
  if (const std::optional<std::uint32_t> side = count_at(map, "image")) m.height = m.width = *side;
  if (map.has("pieces")) m.pieces = read_pieces(map, "pieces");
  if (const std::optional<std::uint32_t> classes = count_at(map, "classes"))
    set_classes(m, *classes);
}

// A side, or both: [height, width].
std::pair<std::uint32_t, std::uint32_t> sides(const YamlMap& map, std::string_view key,
                                              std::uint32_t otherwise) {
  if (!map.is_list(key)) {
    const std::uint32_t both = count_at(map, key, 0).value_or(otherwise);
    return {both, both};
  }
  const std::vector<std::int64_t> two = map.list<std::int64_t>(key);
  if (two.size() != 2 || two[0] < 0 || two[1] < 0 || two[0] > 65535 || two[1] > 65535) {
    map.report(key, "is not a height and a width", "one number, or two such as [1, 7]");
    return {otherwise, otherwise};
  }
  return {static_cast<std::uint32_t>(two[0]), static_cast<std::uint32_t>(two[1])};
}

constexpr std::string_view kPieceKeys[] = {"convolution", "pool",     "norm",
                                           "linear",      "branches", "repeat"};
constexpr std::string_view kPoolNames[] = {"max", "average", "global", "adaptive"};

void read_shape(const YamlMap& map, Piece& p, std::uint32_t stride) {
  std::tie(p.kernel_height, p.kernel_width) = sides(map, "kernel", 1);
  p.stride = count_at(map, "stride").value_or(stride);
  std::tie(p.padding_height, p.padding_width) = sides(map, "padding", 0);
}

void read_norm_and_bias(const YamlMap& map, Piece& p) {
  set_flag(map, "batch_norm", p.norm);
  p.bias = !p.norm;
  set_flag(map, "bias", p.bias);
  set_flag(map, "relu", p.relu);
}

std::optional<Piece> read_piece(const YamlMap& map) {
  Piece p{.kind = PieceKind::kConvolution};
  if (const std::optional<std::uint32_t> channels = count_at(map, "convolution")) {
    p.channels = *channels;
    read_shape(map, p, 1);
    set_count(map, "groups", p.groups);
    read_norm_and_bias(map, p);
  } else if (const std::optional<std::uint32_t> outputs = count_at(map, "linear")) {
    p.kind = PieceKind::kLinear;
    p.channels = *outputs;
    read_norm_and_bias(map, p);
  } else if (const std::optional<std::size_t> pool = map.choice("pool", kPoolNames)) {
    constexpr PieceKind kPools[] = {PieceKind::kMaxPool, PieceKind::kAveragePool,
                                    PieceKind::kGlobalPool, PieceKind::kAdaptivePool};
    p.kind = kPools[*pool];
    if (p.kind != PieceKind::kGlobalPool) read_shape(map, p, 1);
    set_flag(map, "round_up", p.round_up);
  } else if (map.optional<bool>("norm").value_or(false)) {
    p.kind = PieceKind::kNorm;
    p.norm = true;
    set_flag(map, "relu", p.relu);
  } else if (map.has("branches")) {
    p.kind = PieceKind::kBranches;
    map.choose("join", kJoinNames, p.join);
    set_flag(map, "relu", p.relu);
    for (const YamlMap& branch : map.maps("branches")) {
      p.branches.push_back(read_pieces(branch, "pieces"));
      branch.no_other_keys();
    }
    if (p.branches.size() < 2) {
      map.report("branches", "is not a list of branches", "at least two lists of layers");
      return std::nullopt;
    }
  } else if (const std::optional<std::uint32_t> times = count_at(map, "repeat")) {
    p.kind = PieceKind::kRepeat;
    p.times = *times;
    p.branches.push_back(read_pieces(map, "pieces"));
  } else {
    bool known = false;
    for (const std::string_view key : kPieceKeys) known = known || map.has(key);
    if (!known)
      map.report("convolution", "is missing",
                 "convolution, linear, pool, norm, branches or repeat");
    return std::nullopt;
  }
  map.no_other_keys();
  return p;
}

}  // namespace

Description empty_description(std::size_t kind) {
  switch (kind) {
    case 0: return Transformer{};
    case 1: return Swin{};
    case 2: return Dlrm{};
    case 3: return ResNet{};
    case 4: return Vgg{};
    case 5: return DenseNet{};
    default: return ConvNet{};
  }
}

void read_description(const YamlMap& map, Description& description) {
  std::visit([&](auto& m) { read(map, m); }, description);
}

std::vector<Piece> read_pieces(const YamlMap& map, std::string_view key) {
  std::vector<Piece> pieces;
  for (const YamlMap& piece : map.maps(key))
    if (std::optional<Piece> read_one = read_piece(piece)) pieces.push_back(std::move(*read_one));
  return pieces;
}

void set_name(Description& description, std::string name) {
  std::visit([&](auto& m) { m.name = std::move(name); }, description);
}

Result<Workload> workload_of(const Description& description, const Implementation& how) {
  return std::visit(Overloaded{[&](const Transformer& m) { return transformer(m, how); },
                               [&](const Swin& m) { return swin(m, how); },
                               [&](const Dlrm& m) { return dlrm(m, how); },
                               [&](const ConvNet& m) { return convnet(m, how); },
                               [&](const auto& family) -> Result<Workload> {
                                 const ConvNet net = TRY(convnet_of(family));
                                 return convnet(net, how);
                               }},
                    description);
}

}  // namespace rehearse::workload
