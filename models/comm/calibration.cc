#include "models/comm/calibration.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/base/text.h"
#include "sim/base/yaml.h"

namespace rehearse::comm {
namespace {

constexpr std::int64_t kVersion = 1;

// --- Writing ----------------------------------------------------------------------------------

std::string number(double value) { return fmt::format("{:.6g}", value); }

/// "call: 8.1 us, rate: 116 GB/s": zero values and unlimited rates are left out.
class Fields {
 public:
  Fields& add(std::string_view key, Seconds time) {
    if (time > Seconds::s(0)) append(key, number(time.us()) + " us");
    return *this;
  }
  Fields& add(std::string_view key, ByteRate rate) {
    if (rate < kUnlimited) append(key, number(rate.gb_per_s()) + " GB/s");
    return *this;
  }
  Fields& add(std::string_view key, Bytes size) {
    append(key, number(size.b() / 1024) + " KiB");
    return *this;
  }
  Fields& add(std::string_view key, double value) {
    append(key, number(value));
    return *this;
  }
  std::string text() const { return "{" + text_ + "}"; }

 private:
  void append(std::string_view key, const std::string& value) {
    if (!text_.empty()) text_ += ", ";
    text_ += fmt::format("{}: {}", key, value);
  }
  std::string text_;
};

std::string fields_of(const LowLatency& l) {
  return Fields()
      .add("call", l.call)
      .add("step", l.step)
      .add("ramp", l.ramp)
      .add("rate", l.rate)
      .add("copy", l.copy)
      .text();
}

std::string fields_of(const Simple& s) {
  return Fields()
      .add("call", s.call)
      .add("step", s.step)
      .add("rate", s.rate)
      .add("copy", s.copy)
      .add("gather_copy", s.gather_copy.value_or(kUnlimited))
      .add("fill", s.fill)
      .add("q", s.q)
      .add("all_reduce_gain", s.all_reduce_gain)
      .text();
}

std::string list_text(const Widths& widths) {
  return fmt::format("[{:.3g}]", fmt::join(widths, ", "));
}

std::string fitted_text(const Fitted& f) {
  return fmt::format(
      "fitted:\n  source: {}\n  rows_used: {}\n  nccl_version: {}\n  date: {}\n  rows: {}\n"
      "  residual: {}\n  from: {} KiB\n  to: {} KiB\n  ranks: [{}]\n  kinds: [{}]\n",
      yaml_quoted(f.source), yaml_quoted(f.rows_used), yaml_quoted(f.nccl_version),
      yaml_quoted(f.date), f.rows, number(f.residual), number(f.envelope.from.b() / 1024),
      number(f.envelope.to.b() / 1024), fmt::join(f.envelope.ranks, ", "),
      join(f.envelope.kinds, ", ", [](CollectiveKind k) { return to_string(k); }));
}

// --- Reading ----------------------------------------------------------------------------------

Seconds time_of(const YamlMap& map, std::string_view key) {
  return map.within(key, Seconds::s(0), Seconds::s(10)).value_or(Seconds::s(0));
}

ByteRate rate_of(const YamlMap& map, std::string_view key) {
  const ByteRate rate = map.optional<ByteRate>(key).value_or(kUnlimited);
  if (!(rate > ByteRate::bytes_per_s(0)))
    map.report(key, "is not above 0", "a rate such as 200 GB/s");
  return rate;
}

/// A piece must cost something.
void check_costs(const YamlMap& map, Seconds call, ByteRate rate) {
  if (!(call > Seconds::s(0)) && !(rate < kUnlimited))
    map.report("call", "is missing, and so is rate", "at least one of them");
}

LowLatency low_latency_of(const YamlMap& map) {
  const LowLatency l{time_of(map, "call"), time_of(map, "step"), time_of(map, "ramp"),
                     rate_of(map, "rate"), rate_of(map, "copy")};
  check_costs(map, l.call + l.step, l.rate);
  map.no_other_keys();
  return l;
}

Simple simple_of(const YamlMap& map) {
  Simple s{.call = time_of(map, "call"),
           .step = time_of(map, "step"),
           .rate = rate_of(map, "rate"),
           .copy = rate_of(map, "copy"),
           .fill = time_of(map, "fill"),
           .q = map.within("q", 1.0, 10.0).value_or(1),
           .all_reduce_gain = map.within("all_reduce_gain", 0.1, 10.0).value_or(1)};
  if (map.has("gather_copy")) s.gather_copy = rate_of(map, "gather_copy");
  check_costs(map, s.call + s.step, s.rate);
  map.no_other_keys();
  return s;
}

template <class T>
T section(const YamlMap& map, std::string_view key, T (*read)(const YamlMap&)) {
  if (const std::optional<YamlMap> part = map.map(key)) return read(*part);
  if (!map.has(key)) map.report(key, "is missing", "the constants of this piece");
  return T{};
}

std::uint32_t count_of(const YamlMap& map, std::string_view key, std::int64_t most) {
  const std::int64_t value = map.required<std::int64_t>(key).value_or(0);
  if (value < 0 || value > most) {
    map.report(key, "is out of range", fmt::format("a whole number from 0 to {}", most));
    return 0;
  }
  return static_cast<std::uint32_t>(value);
}

Widths widths_of(const YamlMap& map, std::string_view key) {
  Widths widths;
  widths.fill(0.5);
  if (!map.has(key)) return widths;
  const std::vector<double> values = map.list<double>(key);
  const bool right = values.size() == kBands &&
                     std::ranges::all_of(values, [](double w) { return w >= 0 && w <= 100; });
  if (right)
    std::ranges::copy(values, widths.begin());
  else
    map.report(key, "is not a list of four widths", "as [0.05, 0.1, 0.1, 0.05], by size");
  return widths;
}

void read_fitted(const YamlMap& map, Fitted& fitted) {
  fitted.source = map.optional<std::string>("source").value_or("");
  fitted.rows_used = map.optional<std::string>("rows_used").value_or("");
  fitted.nccl_version = map.optional<std::string>("nccl_version").value_or("");
  fitted.date = map.optional<std::string>("date").value_or("");
  fitted.rows = count_of(map, "rows", 1'000'000'000);
  fitted.residual = map.optional<double>("residual").value_or(0);
  fitted.envelope.from = map.required<Bytes>("from").value_or(Bytes::b(0));
  fitted.envelope.to = map.required<Bytes>("to").value_or(Bytes::b(0));
  if (fitted.envelope.to < fitted.envelope.from)
    map.report("to", "is below from", "the largest size that was measured");
  for (const std::int64_t n : map.list<std::int64_t>("ranks")) {
    if (n < 2 || n > 1'000'000)
      map.report("ranks", fmt::format("{} is out of range", n), "2 or more");
    else
      fitted.envelope.ranks.push_back(static_cast<std::uint32_t>(n));
  }
  for (const std::string& name : map.list<std::string>("kinds")) {
    const auto* const found = std::ranges::find(kCollectiveNames, name);
    if (found == kCollectiveNames.end())
      map.report("kinds", fmt::format("unknown collective '{}'", name),
                 suggest(name, kCollectiveNames));
    else
      fitted.envelope.kinds.push_back(
          static_cast<CollectiveKind>(found - kCollectiveNames.begin()));
  }
  map.no_other_keys();
}

Pairwise pairwise_of(const YamlMap& map) {
  Pairwise p{section(map, "small", low_latency_of), section(map, "middle", low_latency_of),
             section(map, "large", simple_of)};
  map.no_other_keys();
  return p;
}

Curve curve_of(const YamlMap& map) {
  const std::optional<std::size_t> kind = map.choice("kind", kCollectiveNames);
  if (!kind && !map.has("kind")) map.report("kind", "is missing", "a collective");
  Curve curve{static_cast<CollectiveKind>(kind.value_or(0)), count_of(map, "ranks", 1'000'000),
              map.optional<Bytes>("knee").value_or(Bytes::b(0)),
              section(map, "below", low_latency_of), section(map, "above", low_latency_of)};
  map.no_other_keys();
  return curve;
}

void read_switched(const YamlMap& root, Calibration& c) {
  SwitchedConstants s{.ll = section(root, "ll", low_latency_of),
                      .ll128 = section(root, "ll128", low_latency_of),
                      .simple = section(root, "simple", simple_of)};
  if (const auto map = root.map("nvls")) {
    s.nvls = Nvls{map->required<Bytes>("from").value_or(Bytes::b(0)),
                  count_of(*map, "ranks", 1'000'000), time_of(*map, "call"), rate_of(*map, "rate")};
    map->no_other_keys();
  }
  if (const auto map = root.map("pairwise")) s.pairwise = pairwise_of(*map);
  c.switched = s;
}

void check_version(const YamlMap& root, std::string_view key) {
  const auto version = root.required<std::int64_t>(key);
  if (version && *version != kVersion)
    root.report(key, fmt::format("version {} is not known", *version),
                fmt::format("{}: {}", key, kVersion));
}

Result<Calibration> read_calibration(const YamlFile& file) {
  const YamlMap root = file.root();
  check_version(root, "calibration");
  const auto device = root.required<std::string>("device");
  const auto fabric = root.choice("fabric", kFabricNames);
  if (!fabric && !root.has("fabric")) root.report("fabric", "is missing", "such as nvswitch");
  const auto generation = root.choice("generation", kGenerationNames);
  if (!generation && !root.has("generation"))
    root.report("generation", "is missing", "such as hopper");
  Calibration c{.device = device.value_or(""),
                .fabric = static_cast<Fabric>(fabric.value_or(0)),
                .generation = static_cast<Generation>(generation.value_or(0)),
                .links = count_of(root, "links", 1000)};
  if (const auto map = root.map("fitted"))
    read_fitted(*map, c.fitted);
  else if (!root.has("fitted"))
    root.report("fitted", "is missing", "source, rows, from, to, ranks");
  if (const auto map = root.map("widths")) {
    c.ring_widths = widths_of(*map, "ring");
    c.pairwise_widths = widths_of(*map, "pairwise");
    c.send_recv_widths = widths_of(*map, "send_recv");
    map->no_other_keys();
  } else if (!root.has("widths")) {
    root.report("widths", "is missing", "half-widths of the intervals by size");
  }
  switch (c.fabric) {
    case Fabric::kNvswitch:
      if (c.links == 0 && root.has("links"))
        root.report("links", "is 0", "the NVLinks of a device");
      read_switched(root, c);
      break;
    case Fabric::kCubeMesh:
      if (const auto map = root.map("cube_mesh")) {
        c.cube_mesh = CubeMeshConstants{section(*map, "small", low_latency_of),
                                        section(*map, "large", low_latency_of)};
        map->no_other_keys();
      } else if (!root.has("cube_mesh")) {
        root.report("cube_mesh", "is missing", "its small and large pieces");
      }
      break;
    case Fabric::kBridgedPairs:
    case Fabric::kHostStaged:
      for (const YamlMap& map : root.maps("curves")) c.curves.push_back(curve_of(map));
      if (c.curves.empty()) root.report("curves", "is missing", "one per kind and number of ranks");
      break;
  }
  if (const auto map = root.map("send_recv")) {
    c.send_recv =
        Curve{CollectiveKind::kSendRecv, 2, map->optional<Bytes>("knee").value_or(Bytes::b(0)),
              section(*map, "below", low_latency_of), section(*map, "above", low_latency_of)};
    map->no_other_keys();
  }
  root.no_other_keys();
  TRY(file.status());
  return c;
}

}  // namespace

Result<Calibration> load_calibration(const std::filesystem::path& path) {
  return YamlFile::load(path).and_then(read_calibration);
}

Result<Calibration> parse_calibration(const std::string& text, std::string name) {
  return YamlFile::parse(text, std::move(name)).and_then(read_calibration);
}

Result<FrameworkTiming> parse_framework_timing(const std::string& text, std::string name) {
  const YamlFile file = TRY(YamlFile::parse(text, std::move(name)));
  const YamlMap root = file.root();
  check_version(root, "framework_timing");
  FrameworkTiming timing{time_of(root, "call"), time_of(root, "high")};
  if (timing.high < timing.call) root.report("high", "is below call", "call or more");
  if (const auto map = root.map("fitted")) read_fitted(*map, timing.fitted);
  root.no_other_keys();
  TRY(file.status());
  return timing;
}

std::string to_yaml(const Calibration& c) {
  std::string text = fmt::format(
      "calibration: {}\ndevice: {}\nfabric: {}\ngeneration: {}\nlinks: {}\n{}"
      "widths:\n  ring: {}\n  pairwise: {}\n  send_recv: {}\n",
      kVersion, yaml_quoted(c.device), to_string(c.fabric), to_string(c.generation), c.links,
      fitted_text(c.fitted), list_text(c.ring_widths), list_text(c.pairwise_widths),
      list_text(c.send_recv_widths));
  if (c.switched) {
    const SwitchedConstants& s = *c.switched;
    text += fmt::format("ll: {}\nll128: {}\nsimple: {}\n", fields_of(s.ll), fields_of(s.ll128),
                        fields_of(s.simple));
    if (s.nvls)
      text += fmt::format("nvls: {}\n", Fields()
                                            .add("from", s.nvls->from)
                                            .add("ranks", s.nvls->ranks)
                                            .add("call", s.nvls->call)
                                            .add("rate", s.nvls->rate)
                                            .text());
    if (s.pairwise)
      text += fmt::format("pairwise:\n  small: {}\n  middle: {}\n  large: {}\n",
                          fields_of(s.pairwise->small), fields_of(s.pairwise->middle),
                          fields_of(s.pairwise->large));
  }
  if (c.cube_mesh)
    text += fmt::format("cube_mesh:\n  small: {}\n  large: {}\n", fields_of(c.cube_mesh->small),
                        fields_of(c.cube_mesh->large));
  if (!c.curves.empty()) text += "curves:\n";
  for (const Curve& curve : c.curves)
    text += fmt::format("  - {{kind: {}, ranks: {}, knee: {} KiB, below: {}, above: {}}}\n",
                        to_string(curve.kind), curve.ranks, number(curve.knee.b() / 1024),
                        fields_of(curve.below), fields_of(curve.above));
  if (c.send_recv)
    text += fmt::format("send_recv:\n  knee: {} KiB\n  below: {}\n  above: {}\n",
                        number(c.send_recv->knee.b() / 1024), fields_of(c.send_recv->below),
                        fields_of(c.send_recv->above));
  return text;
}

std::string to_yaml(const FrameworkTiming& t) {
  return fmt::format("framework_timing: {}\ncall: {} us\nhigh: {} us\n{}", kVersion,
                     number(t.call.us()), number(t.high.us()), fitted_text(t.fitted));
}

}  // namespace rehearse::comm
