#include "models/compute/calibration.h"

#include <algorithm>

#include <fmt/core.h>

#include "models/compute/calibration_files.h"
#include "sim/base/check.h"
#include "sim/base/yaml.h"

namespace rehearse::compute {
namespace {

constexpr std::int64_t kVersion = 1;

/// A number in a range; `fallback` where it is absent.
double in_range(const YamlMap& map, std::string_view key, double fallback, double least,
                double most) {
  return map.within(key, least, most).value_or(fallback);
}

double time_in(const YamlMap& map, std::string_view key) {
  const Seconds time = map.required<Seconds>(key).value_or(Seconds::s(0));
  if (time < Seconds::s(0) || time > Seconds::ms(1))
    map.report(key, "is out of range", "a time from 0 s to 1 ms");
  return time.s();
}

FittedTo fitted_of(const YamlMap& map) {
  FittedTo f{.source = map.required<std::string>("source").value_or(""),
             .rows_used = map.required<std::string>("rows_used").value_or(""),
             .date = map.required<std::string>("date").value_or(""),
             .rows = 0,
             .residual = in_range(map, "residual", 0, 0, 10)};
  const std::int64_t rows = map.required<std::int64_t>("rows").value_or(0);
  if (rows < 0) map.report("rows", "is below 0", "a count");
  f.rows = static_cast<std::uint64_t>(std::max<std::int64_t>(rows, 0));
  return f;
}

WaveShape shape_of(const YamlMap& map) {
  WaveShape shape{.tiles = {},
                  .count = 0,
                  .cap = in_range(map, "cap", 1, 0.1, 1.5),
                  .memory = in_range(map, "memory", 0.75, 0.1, 1),
                  .launch = time_in(map, "launch"),
                  .smooth = in_range(map, "smooth", 5, 1, 20)};
  if (map.has("clock_mhz")) {
    shape.clock = in_range(map, "clock_mhz", 0, 100, 10000) * 1e6;
    shape.step = time_in(map, "step");
    shape.cut = time_in(map, "cut");
  }
  for (const YamlMap& tile : map.maps("tiles")) {
    if (shape.count == kTiles) {
      map.report("tiles", "are too many", fmt::format("up to {}", kTiles));
      break;
    }
    shape.tiles[shape.count++] = {.rows = in_range(tile, "rows", 0, 8, 1024),
                                  .columns = in_range(tile, "columns", 0, 8, 1024),
                                  .share = in_range(tile, "share", 0, 0.01, 2.5),
                                  .fixed = time_in(tile, "fixed")};
    tile.no_other_keys();
  }
  return shape;
}

MatrixCalibration matrix_of(const YamlMap& map) {
  MatrixCalibration m{
      .arithmetic = static_cast<Arithmetic>(map.choice("arithmetic", kArithmeticNames).value_or(0)),
      .constants = {}};
  if (!map.has("arithmetic")) map.report("arithmetic", "is missing", "such as half");
  MatrixConstants& c = m.constants;
  c.factor = in_range(map, "factor", 0, 0.05, 1.05);
  c.batched = in_range(map, "batched", 1, 0.3, 2);
  if (map.has("reread_from"))
    c.reread = {in_range(map, "reread_from", 0, 1, 1e6), in_range(map, "reread_extra", 0, 0, 10)};
  c.quantise = in_range(map, "quantise", 0, 0, 100);
  if (map.has("tiles"))
    c.shape = shape_of(map);
  else
    c.shape.count = 0;
  m.fitted = fitted_of(map);
  c.from = in_range(map, "from_gflop", 0, 0, 1e9) * 1e9;
  c.to = in_range(map, "to_gflop", 0, 0, 1e9) * 1e9;
  map.no_other_keys();
  return m;
}

MemoryCalibration memory_of(const YamlMap& map) {
  MemoryCalibration m;
  MemoryConstants& c = m.constants;
  c.elementwise = in_range(map, "elementwise", 0, 0.1, 1);
  m.elementwise_gddr = in_range(map, "elementwise_gddr", 0, 0, 1);
  c.norm = in_range(map, "norm", 1, 0.1, 2);
  c.softmax = in_range(map, "softmax", 1, 0.1, 2);
  c.norm_cache = in_range(map, "norm_cache", 1, 0.05, 5);
  c.softmax_cache = in_range(map, "softmax_cache", 0.6, 0.05, 5);
  c.norm_sweep = in_range(map, "norm_sweep", 0.5, 0, 3);
  c.softmax_sweep = in_range(map, "softmax_sweep", 0.5, 0, 3);
  c.call = time_in(map, "call");
  m.fitted = fitted_of(map);
  map.no_other_keys();
  return m;
}

AttentionFamily family_of(const YamlMap& map, std::string_view name) {
  AttentionFamily f;
  const auto family = map.map(name);
  if (!family) {
    map.report(name, "is missing", "its factor, start and tail");
    return f;
  }
  f.factor = in_range(*family, "factor", 0, 0.1, 10);
  f.start = time_in(*family, "start");
  f.tail = in_range(*family, "tail", 0, 0, 1);
  f.decoding = {.block = time_in(*family, "block"),
                .key = time_in(*family, "key"),
                .merge = time_in(*family, "merge"),
                .part = time_in(*family, "part")};
  family->no_other_keys();
  return f;
}

AttentionCalibration attention_of(const YamlMap& map) {
  AttentionCalibration a;
  AttentionConstants& c = a.constants;
  c.share = in_range(map, "share", 0, 0.1, 3);
  c.exponentials = in_range(map, "exponentials", 0, 0, 10);
  c.fixed = in_range(map, "fixed_clocks", 0, 0, 1e5);
  c.memory = in_range(map, "memory", 0, 0.1, 1);
  c.overlap = in_range(map, "overlap", 0, 1, 20);
  for (std::size_t i = 0; i < kAttentionFamilies; ++i)
    c.families[i] = family_of(map, kAttentionFamilyNames[i]);
  c.blackwell = family_of(map, "asynchronous_blackwell");
  a.fitted = fitted_of(map);
  map.no_other_keys();
  return a;
}

}  // namespace

Result<Calibration> parse_calibration(const std::string& text, std::string name) {
  const YamlFile file = TRY(YamlFile::parse(text, std::move(name)));
  const YamlMap map = file.root();
  if (map.required<std::int64_t>("operations") != kVersion)
    map.report("operations", "is not a supported version", "1");
  Calibration c{.device = map.required<std::string>("device").value_or("")};
  for (const YamlMap& m : map.maps("matrix")) c.matrix.push_back(matrix_of(m));
  if (const auto memory = map.map("memory")) c.memory = memory_of(*memory);
  if (const auto attention = map.map("attention")) c.attention = attention_of(*attention);
  if (const auto widths = map.map("widths")) {
    for (std::size_t i = 0; i < kOpClasses; ++i)
      if (const auto width = widths->map(kOpClassNames[i])) {
        c.widths[i] =
            Width{in_range(*width, "low", 0, 0.01, 1), in_range(*width, "high", 0, 1, 100)};
        width->no_other_keys();
      }
    widths->no_other_keys();
  }
  map.no_other_keys();
  TRY(file.status());
  return c;
}

const std::vector<Calibration>& shipped_calibrations() {
  static const std::vector<Calibration> all = [] {
    std::vector<Calibration> read;
    for (const std::string_view text : calibration_files::all()) {
      Result<Calibration> c = parse_calibration(std::string(text), "shipped calibration");
      REHEARSE_CHECK(c, "{}", to_string(c.error()));
      read.push_back(std::move(*c));
    }
    REHEARSE_CHECK(read.front().device == kTypical);
    return read;
  }();
  return all;
}

}  // namespace rehearse::compute
