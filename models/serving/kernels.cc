#include "models/serving/kernels.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "models/serving/coefficient_files.h"
#include "models/serving/server.h"
#include "sim/base/check.h"
#include "sim/base/yaml.h"

namespace rehearse::serving {
namespace {

/// The products of one format with the kernels of a framework.
struct OtherProduct {
  std::string framework;
  std::size_t weights = 0;
  ProductLaw law;
};

/// From a version on, a framework's experts in one format run the kernel of another.
struct OtherMixture {
  std::string framework, since;
  std::size_t weights = 0, like = 0;
};

struct Table {
  std::string architecture, device, version;
  std::array<std::optional<ProductLaw>, kWeightFormats> products;
  std::array<std::optional<MixtureLaw>, kWeightFormats> mixtures;
  std::array<std::optional<DecodeLaw>, 2> decode;
  std::array<std::optional<ContextLaw>, 2> context;
  ReduceLaw reduce;
  std::vector<OtherProduct> other_products;
  std::vector<OtherMixture> other_mixtures;
};

double number(const YamlMap& map, std::string_view key) {
  return map.required<double>(key).value_or(1);
}
Seconds time(const YamlMap& map, std::string_view key) {
  return map.required<Seconds>(key).value_or(Seconds::s(0));
}

/// How the constants were obtained; for readers of the file.
void skip_evidence(const YamlMap& map) {
  for (const std::string_view key : {"rows", "residual", "left_out"}) map.required<double>(key);
  map.no_other_keys();
}

ProductLaw read_product(const YamlMap& map) {
  ProductLaw law{.start = time(map, "start"),
                 .depth = time(map, "depth"),
                 .memory = number(map, "memory"),
                 .quantise = number(map, "quantise")};
  const std::vector<double> share = map.list<double>("share");
  if (share.size() != law.share.size())
    map.report("share", "wrong number of shares", "one per range of rows");
  else
    std::copy(share.begin(), share.end(), law.share.begin());
  return law;
}

/// The table's own law with other shares of the last ranges of rows.
ProductLaw with_large_shares(const Table& table, const YamlMap& map) {
  ProductLaw law;
  if (const auto weights = map.choice("weights", kWeightsNames))
    law = table.products[*weights].value_or(law);
  const std::vector<double> share = map.list<double>("share");
  if (share.empty() || share.size() > law.share.size())
    map.report("share", "wrong number of shares", "those of the last ranges of rows");
  else
    std::copy_backward(share.begin(), share.end(), law.share.end());
  return law;
}

MixtureLaw read_mixture(const YamlMap& map) {
  return {.start = time(map, "start"),
          .depth = time(map, "depth"),
          .memory = number(map, "memory"),
          .pass = number(map, "pass"),
          .share = number(map, "share"),
          .tile = number(map, "tile")};
}

DecodeLaw read_decode(const YamlMap& map) {
  return {.start = time(map, "start"),
          .row = time(map, "row"),
          .root = time(map, "root"),
          .memory = number(map, "memory")};
}

ContextLaw read_context(const YamlMap& map) {
  return {.start = time(map, "start"),
          .share = number(map, "share"),
          .narrow = number(map, "narrow"),
          .tokens = number(map, "short"),
          .io = number(map, "io")};
}

/// The entries of a list, each at the place that its `key` names.
template <class Law, std::size_t N>
void read_laws(const YamlMap& table, std::string_view list, std::string_view key,
               std::span<const std::string_view> names, Law (*read)(const YamlMap&),
               std::array<std::optional<Law>, N>& laws) {
  for (const YamlMap& map : table.maps(list)) {
    if (const std::optional<std::size_t> at = map.choice(key, names)) laws[*at] = read(map);
    skip_evidence(map);
  }
}

Result<std::vector<Table>> parse_tables(std::string_view text) {
  YamlFile file = TRY(YamlFile::parse(std::string(text), "shipped kernels of servers"));
  const YamlMap root = file.root();
  root.required<std::string>("source");
  root.required<std::string>("date");
  std::vector<Table> tables;
  for (const YamlMap& map : root.maps("tables")) {
    Table& table = tables.emplace_back();
    table.architecture = map.required<std::string>("architecture").value_or("");
    table.device = map.required<std::string>("device").value_or("");
    table.version = map.required<std::string>("version").value_or("");
    read_laws(map, "products", "weights", kWeightsNames, read_product, table.products);
    for (const YamlMap& product : map.maps("other_products")) {
      table.other_products.push_back(
          {.framework = product.required<std::string>("framework").value_or(""),
           .weights = product.choice("weights", kWeightsNames).value_or(0),
           .law =
               product.has("start") ? read_product(product) : with_large_shares(table, product)});
      skip_evidence(product);
    }
    read_laws(map, "mixtures", "weights", kWeightsNames, read_mixture, table.mixtures);
    for (const YamlMap& mixture : map.maps("other_mixtures")) {
      table.other_mixtures.push_back(
          {.framework = mixture.required<std::string>("framework").value_or(""),
           .since = mixture.required<std::string>("since").value_or(""),
           .weights = mixture.choice("weights", kWeightsNames).value_or(0),
           .like = mixture.choice("like", kWeightsNames).value_or(0)});
      mixture.no_other_keys();
    }
    read_laws(map, "decode", "cache", kCacheFormatNames, read_decode, table.decode);
    read_laws(map, "context", "cache", kCacheFormatNames, read_context, table.context);
    if (const std::optional<YamlMap> reduce = map.map("all_reduce")) {
      table.reduce = {.one_start = time(*reduce, "one_start"),
                      .two_start = time(*reduce, "two_start"),
                      .rank = time(*reduce, "rank"),
                      .one = number(*reduce, "one"),
                      .two = number(*reduce, "two")};
      skip_evidence(*reduce);
    }
    map.no_other_keys();
  }
  root.no_other_keys();
  TRY(file.status());
  return tables;
}

const std::vector<Table>& tables() {
  static const std::vector<Table> kTables = [] {
    Result<std::vector<Table>> read = parse_tables(coefficient_files::kernels_yaml);
    REHEARSE_CHECK(read.has_value(), "{}", to_string(read.error()));
    return std::move(*read);
  }();
  return kTables;
}

std::string_view family_of(std::string_view architecture) {
  return architecture.substr(0, architecture.find('_'));
}

/// The table of the architecture; else of its family; else the oldest one with such a memory.
const Table& table_for(const compute::DeviceFacts& facts, Provenance& provenance) {
  provenance = Provenance::kInterpolated;
  for (const Table& table : tables())
    if (table.architecture == facts.architecture) return table;
  const auto named = [](std::string_view architecture) -> const Table& {
    for (const Table& table : tables())
      if (table.architecture == architecture) return table;
    REHEARSE_CHECK(false, "no table of {}", architecture);
  };
  provenance = Provenance::kExtrapolated;
  if (facts.stacked_memory)
    for (const Table& table : tables())
      if (family_of(table.architecture) == family_of(facts.architecture)) return table;
  if (family_of(facts.architecture) != "ada") provenance = Provenance::kDatasheet;
  return named(facts.stacked_memory ? "ampere_ga100" : "ada_ad102");
}

/// The first table of the family of an architecture; without one `otherwise`.
const Table& of_family(std::string_view architecture, const Table& otherwise) {
  const auto found = std::ranges::find_if(tables(), [&](const Table& table) {
    return family_of(table.architecture) == family_of(architecture);
  });
  return found == tables().end() ? otherwise : *found;
}

void scale_share(ProductLaw& law, double by) {
  for (double& share : law.share) share *= by;
}
void scale_share(MixtureLaw& law, double by) { law.share *= by; }

/// A format without a row takes the constants of the device's family (`relative`), else those of the
/// nearest format that has a row, with its own bytes.
/// Devices without units for 4 bits widen weights in registers, and multiply in half precision.
/// Shares of all formats but bf16 are relative to the FP8 peak, which is `low` times the other.
template <class Law>
std::array<Law, kWeightFormats> completed(
    std::array<std::optional<Law>, kWeightFormats> laws,
    const std::array<std::optional<Law>, kWeightFormats>& relative, double low,
    bool multiplies_fp4) {
  using enum workload::WeightFormat;
  const Weights nearest[] = {kBf16, kBf16, kFp8, multiplies_fp4 ? kFp8 : kBf16, kNvfp4, kBf16};
  std::array<Law, kWeightFormats> all;
  for (std::size_t i = 0; i < kWeightFormats; ++i) {
    if (!laws[i]) laws[i] = relative[i];
    all[i] = laws[i] ? *laws[i] : all[static_cast<std::size_t>(nearest[i])];
    if (!laws[i] && nearest[i] == kBf16) scale_share(all[i], 1 / low);
  }
  return all;
}

double sum4(double a, double b) { return std::sqrt(std::sqrt(a * a * a * a + b * b * b * b)); }

/// The time of blocks in waves ÷ what their work takes on all multiprocessors: half of the last
/// wave's gap shows, and fewer blocks than multiprocessors split their work.
double rounding(double waves) {
  return waves < 1 ? 1 / std::sqrt(waves) : 0.5 * (std::ceil(waves) / waves + 1);
}

}  // namespace

Kernels::Kernels(const compute::DeviceFacts& facts, ByteRate link, std::string_view framework,
                 std::string_view version)
    : memory_rate_(facts.memory_rate.bytes_per_s()),
      half_(peak_of(facts, workload::Dtype::kBf16).flop_per_s()),
      low_(peak_of(facts, workload::Dtype::kFp8).flop_per_s()),
      link_(link.bytes_per_s()),
      multiprocessors_(facts.multiprocessors) {
  const Table& table = table_for(facts, provenance_);
  const bool fp4 = family_of(facts.architecture) == "blackwell";
  const Table& relative = of_family(facts.architecture, table);
  products_ = completed(table.products, relative.products, low_ / half_, fp4);
  using enum workload::WeightFormat;
  for (const Weights w : {kFp8, kFp8Block, kNvfp4, kMxfp4, kInt4}) {
    const bool unit = w == kInt4 ? false : bytes_of(w) < 1 ? fp4 : low_ > half_;
    widened_[static_cast<std::size_t>(w)] = !unit;
  }
  for (const OtherProduct& other : table.other_products)
    if (other.framework == framework) products_[other.weights] = other.law;
  mixtures_ = completed(table.mixtures, relative.mixtures, low_ / half_, fp4);
  for (const OtherMixture& other : table.other_mixtures)
    if (other.framework == framework && has_reached(version, other.since)) {
      mixtures_[other.weights] = mixtures_[other.like];
      // Shares of both are relative to the FP8 peak. Tensor cores multiply 4 bits twice as fast.
      if (other.like == static_cast<std::size_t>(Weights::kNvfp4))
        scale_share(mixtures_[other.weights], 0.5);
    }
  for (std::size_t i = 0; i < decode_.size(); ++i) {
    decode_[i] = table.decode[i].value_or(*table.decode[0]);
    context_[i] = table.context[i].value_or(*table.context[0]);
  }
  reduce_ = table.reduce;
  source_ = table.device + ", " + table.version;
}

double Kernels::product(Weights weights, double m, double n, double k) const {
  const ProductLaw& law = products_[static_cast<std::size_t>(weights)];
  const double bytes = bytes_of(weights) * (n + m) * k + 2 * m * n;
  const std::size_t rung =
      static_cast<std::size_t>(std::lower_bound(kRungs.begin(), kRungs.end(), m) - kRungs.begin());
  // Marlin's tiles of widened weights have multiples of 16 rows.
  const double least = widened_[static_cast<std::size_t>(weights)] ? 16 * std::ceil(m / 16) : 64;
  const double rows = m <= 64 ? least : 128;
  const double tiles = std::ceil(m / rows) * std::ceil(n / 128);
  const double waves = tiles / multiprocessors_;
  const double computing = waves * rounding(waves) * multiprocessors_ * 2 * rows * 128 * k /
                           (law.share[rung] * peak(weights));
  return law.start.s() + law.depth.s() * k + law.quantise * m * k / memory_rate_ +
         sum4(bytes / (law.memory * memory_rate_), computing);
}

double Kernels::decode(CacheFormat cache, double bytes, double rows, double kv_heads,
                       double context, double flops) const {
  const DecodeLaw& law = decode_[static_cast<std::size_t>(cache)];
  const double share = context_[static_cast<std::size_t>(cache)].share;
  return law.start.s() + sum4(bytes / (law.memory * memory_rate_), flops / (share * half_)) +
         law.row.s() * rows * kv_heads + law.root.s() * std::sqrt(context);
}

double Kernels::context(CacheFormat cache, const ContextWork& work, double heads, double kv_heads,
                        double size) const {
  const ContextLaw& law = context_[static_cast<std::size_t>(cache)];
  const double share = law.share * (size <= 64 ? law.narrow : 1);
  const double waves = heads * work.blocks / multiprocessors_;
  const double computing = 4 * heads * size * (work.pairs + law.tokens * work.slowed) /
                           (share * half_) * rounding(waves);
  const double bytes = 4 * size * (heads * work.queries + kv_heads * work.keys);
  return law.start.s() + computing + bytes / (law.io * memory_rate_);
}

double Kernels::mixture(const Experts& e, double pairs, double active) const {
  const MixtureLaw& law = mixtures_[static_cast<std::size_t>(e.weights)];
  const double streaming =
      active * 3 * e.hidden * e.width * bytes_of(e.weights) / (law.memory * memory_rate_);
  const double computing =
      (pairs + active * law.tile) * 6 * e.hidden * e.width / (law.share * peak(e.weights));
  const double through = law.pass * 4 * pairs * (e.hidden + e.width) / memory_rate_;
  return law.start.s() + law.depth.s() * (e.hidden + e.width) + through +
         std::cbrt(streaming * streaming * streaming + computing * computing * computing);
}

double Kernels::all_reduce(double bytes, double g) const {
  if (g < 2) return 0;
  const double one =
      reduce_.one_start.s() + reduce_.rank.s() * (g - 2) + bytes * (g - 1) / (reduce_.one * link_);
  const double two = reduce_.two_start.s() + 2 * reduce_.rank.s() * (g - 2) +
                     2 * bytes * (g - 1) / g / (reduce_.two * link_);
  return std::min(one, two);
}

double Kernels::gather(double bytes, double g) const {
  if (g < 2) return 0;
  return reduce_.two_start.s() + reduce_.rank.s() * (g - 2) +
         bytes * (g - 1) / g / (reduce_.two * link_);
}

}  // namespace rehearse::serving
