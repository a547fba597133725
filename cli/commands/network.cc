// rehearse network: the time of one collective over sizes.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "cli/calibrate/nccl_log.h"
#include "cli/commands/network_prices.h"
#include "cli/commands/options.h"
#include "cli/config/fidelity_names.h"
#include "cli/output/document.h"
#include "models/comm/framework_timing.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// Draws columns of blocks, `height` lines high and `wide` characters each, one per value, from 0
/// at the bottom to the largest value at the top; the axis and its top label are to their left.
/// Values that are not above 0 leave their column empty.
std::string column_plot(std::span<const double> values, std::size_t height, std::size_t wide,
                        const std::string& top_label) {
  constexpr std::array<std::string_view, 9> kEighths = {" ", "▁", "▂", "▃", "▄",
                                                        "▅", "▆", "▇", "█"};
  double most = 0;
  for (const double v : values) most = std::max(most, v);
  std::string text;
  for (std::size_t line = height; line-- > 0;) {
    const std::string label = line + 1 == height ? top_label : line == 0 ? "0" : "";
    text += std::string(std::max(top_label.size(), label.size()) - label.size(), ' ') + label + " ";
    text += line == 0 ? "└" : "│";
    std::string drawn;
    for (const double v : values) {
      const double filled =
          most > 0 ? v / most * static_cast<double>(height) - static_cast<double>(line) : 0;
      const auto eighths = static_cast<std::size_t>(std::lround(std::clamp(filled, 0.0, 1.0) * 8));
      for (std::size_t i = 0; i < wide; ++i) drawn += kEighths[eighths];
    }
    text += drawn.substr(0, drawn.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

struct NetworkOptions {
  ScopeRequest scope;
  std::vector<std::string> ops = {"all_reduce"};
  std::vector<Bytes> sizes;  ///< empty: those of `measured`, else 1 KiB to 1 GiB
  comm::NcclOverrides overrides;
  std::string measured;
  step::Fidelity fidelity = step::Fidelity::kClosed;
  bool in_framework = false;
};

/// By NetworkOptions::in_framework.
constexpr std::string_view kTimingNames[] = {"nccl_tests", "framework"};

struct Point {
  CollectiveKind kind;
  std::uint32_t ranks;
  Bytes size;
  CollectivePrice price;
  std::optional<Seconds> measured;

  double error() const { return price.time.value / *measured - 1; }
  bool covered() const { return *measured >= price.time.low && *measured <= price.time.high; }
};

/// Bus bandwidth divided by (size / time), as in nccl-tests' doc/PERFORMANCE.md.
double bus_factor(CollectiveKind kind, double n) {
  switch (kind) {
    case CollectiveKind::kAllReduce: return 2 * (n - 1) / n;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll: return (n - 1) / n;
    case CollectiveKind::kBarrier: return 0;
    default: return 1;
  }
}

ByteRate bus_bandwidth(const Point& p, Seconds time) {
  return p.size * bus_factor(p.kind, p.ranks) / time;
}

/// "1KiB:1GiB" doubles; "1KiB,1MiB" is a list.
Result<std::vector<Bytes>> parse_sizes(const std::string& text) {
  const auto size_of = [](std::string_view word) -> Result<Bytes> {
    Result<Bytes> size = parse_quantity<Bytes>(trim(word));
    if (size && !(*size >= Bytes::b(1) && *size <= Bytes::gib(1 << 20)))
      return fail(fmt::format("{} is out of range", word), "from 1 B to 1 PiB");
    if (!size) return fail(to_string(size.error()), "1KiB:1GiB, or a list such as 1KiB,1MiB");
    return size;
  };
  std::vector<Bytes> sizes;
  const std::vector<std::string_view> ends = split(text, ':');
  if (ends.size() == 2) {
    const Bytes from = TRY(size_of(ends[0])), to = TRY(size_of(ends[1]));
    if (to < from) return fail(fmt::format("{} ends before it begins", text), "1KiB:1GiB");
    for (Bytes size = from; size <= to; size = size * 2) sizes.push_back(size);
    return sizes;
  }
  for (const std::string_view word : split(text, ',')) sizes.push_back(TRY(size_of(word)));
  return sizes;
}

/// The longer a collective takes, the lower its bus bandwidth.
Quantity bus_bandwidth(const Point& p) {
  return mapped(p.price.time, [&](Seconds time) { return bus_bandwidth(p, time); });
}

struct Findings {
  Scope scope;
  step::Fidelity fidelity;
  bool framework;  ///< as timed there, not as nccl-tests does
  std::vector<Point> points = {};
  std::vector<std::string> notes = {};
};

struct BandErrors {
  std::size_t rows = 0, covered = 0;
  double mean = 0, bias = 0, worst = 0;
};

std::array<BandErrors, comm::kBands> errors_by_band(const std::vector<Point>& points) {
  std::array<BandErrors, comm::kBands> bands{};
  for (const Point& p : points) {
    if (!p.measured) continue;
    BandErrors& b = bands[comm::band_of(p.size.b())];
    ++b.rows;
    b.covered += p.covered();
    b.mean += std::abs(p.error());
    b.bias += p.error();
    if (std::abs(p.error()) > std::abs(b.worst)) b.worst = p.error();
  }
  for (BandErrors& b : bands) {
    const double n = static_cast<double>(std::max<std::size_t>(b.rows, 1));
    b.mean /= n;
    b.bias /= n;
  }
  return bands;
}

bool any_measured(const std::vector<Point>& points) {
  return std::ranges::any_of(points, [](const Point& p) { return p.measured.has_value(); });
}

Value point_fields(const Findings& found, const Point& p) {
  const bool barrier = p.kind == CollectiveKind::kBarrier;
  Value point = {{"op", "op", to_string(p.kind)},
                 {"ranks", "ranks", p.ranks},
                 {"", "size", to_string(p.size), {}, kOnScreen},
                 {"bytes", "size", bare(p.size), {}, kInTables},
                 {"", "size", p.size, {}, kAxis},
                 {"time", "time", p.price.time, in::kShortUs},
                 {"bus_bandwidth", barrier ? Value() : Value(bus_bandwidth(p))},
                 {"algorithm", "algorithm", p.price.algorithm},
                 {"protocol", p.price.protocol.empty() ? Value() : Value(p.price.protocol)},
                 {"", "protocol", p.price.protocol},
                 {"channels", "channels", maybe(p.price.channels)},
                 {"", "provenance", to_string(p.price.time.provenance)}};
  if (!barrier) {
    point.show("", "bus bandwidth", bus_bandwidth(p, p.price.time.value), in::kGbPerS);
    point.show("", "bus bandwidth", bus_bandwidth(p), in::kGbPerS, kOnPage);
  }
  if (!any_measured(found.points) || !p.measured) return point;
  point.show("measured", "measured", *p.measured, in::kShortUs);
  point.show("error", "error", change(p.error()));
  point["covered"] = p.covered();
  return point;
}

std::string plots(const Findings& found) {
  std::string text;
  for (std::size_t first = 0; first < found.points.size();) {
    std::vector<double> rates;
    std::size_t last = first;
    for (; last < found.points.size() && found.points[last].kind == found.points[first].kind;
         ++last)
      rates.push_back(
          bus_bandwidth(found.points[last], found.points[last].price.time.value).gb_per_s());
    if (rates.size() > 2) {
      constexpr std::size_t kHeight = 8;
      const std::string top = significant(*std::ranges::max_element(rates), 3) + " GB/s";
      const std::size_t wide = std::max<std::size_t>(1, 60 / rates.size());
      text += fmt::format("\nBus bandwidth of {} by size\n", to_string(found.points[first].kind));
      text += column_plot(rates, kHeight, wide, top);
      const std::string from = to_string(found.points[first].size),
                        to = to_string(found.points[last - 1].size);
      const std::size_t width = rates.size() * wide;
      text += std::string(top.size() + 2, ' ') + from;
      text +=
          std::string(width > from.size() + to.size() ? width - from.size() - to.size() : 1, ' ') +
          to + "\n";
    }
    first = last;
  }
  return text;
}

Value band_rows(const std::vector<Point>& points) {
  Value rows = Value::array();
  const auto bands = errors_by_band(points);
  for (std::size_t b = 0; b < bands.size(); ++b)
    if (bands[b].rows > 0)
      rows.push_back({{"size", "size", comm::kBandNames[b]},
                      {"rows", "rows", bands[b].rows},
                      {"mean_error", "mean error", share(bands[b].mean)},
                      {"bias", "bias", change(bands[b].bias)},
                      {"worst_error", "worst", change(bands[b].worst)},
                      {"covered", "in the interval", bands[b].covered}});
  return rows;
}

std::string framework_text() {
  const comm::FrameworkTiming& t = comm::framework_timing();
  return fmt::format(
      "timed inside a framework: {} us more per call, 0 to {}, from {} calls on A100\n",
      significant(t.call.us(), 3), significant(t.high.us(), 3), grouped(t.fitted.rows));
}

Document document_of(const Findings& found) {
  Document d{.command = "network", .rows = "points", .rows_title = "Time of each size"};
  const std::string scope = describe(found.scope) + (found.framework ? framework_text() : "");
  for (const std::string_view line : split(trim(scope), '\n')) d.line(std::string(line));
  d["device"] = found.scope.on.device;
  d["nodes"] = found.scope.on.nodes;
  d["fidelity"] = name_of(found.fidelity);
  d.methods = {method_of(found.fidelity)};
  if (found.scope.calibrated)
    d["calibration"] = {{"source", found.scope.calibrated->calibration.fitted.source},
                        {"note", found.scope.calibrated->note}};
  d["timing"] = kTimingNames[found.framework ? 1 : 0];
  d["points"] = Value::array();
  for (const Point& p : found.points) d["points"].push_back(point_fields(found, p));
  d.line(plots(found));
  if (any_measured(found.points))
    d.show("bands", "Compared with the measured times", band_rows(found.points));
  return d;
}

/// The measured rows of a log for the requested kinds and ranks.
Result<std::vector<comm::MeasuredRow>> measured_rows(const NetworkOptions& options,
                                                     const std::vector<CollectiveKind>& kinds,
                                                     std::uint32_t ranks) {
  if (options.measured.empty()) return std::vector<comm::MeasuredRow>{};
  const std::vector<NcclRun> runs = TRY(read_nccl_log(options.measured));
  std::vector<comm::MeasuredRow> rows;
  std::string there;
  for (const NcclRun& run : runs) {
    there +=
        fmt::format("{}{} of {} ranks", there.empty() ? "" : ", ", to_string(run.kind), run.ranks);
    if (run.ranks == ranks && std::ranges::count(kinds, run.kind) > 0)
      rows.insert(rows.end(), run.rows.begin(), run.rows.end());
  }
  if (rows.empty())
    return fail_in(options.measured, fmt::format("has no run of this op on {} ranks", ranks),
                   "it has " + there);
  return rows;
}

Result<Findings> find(const NetworkOptions& options, const Progress& progress) {
  Scope scope = TRY(resolve_scope(options.scope));
  const std::uint32_t ranks = scope.on.ranks;
  std::vector<CollectiveKind> kinds;
  for (const std::string& op : options.ops)
    kinds.push_back(static_cast<CollectiveKind>(index_of(kCollectiveNames, op)));
  const std::vector<comm::MeasuredRow> rows = TRY(measured_rows(options, kinds, ranks));
  const std::vector<Bytes> sizes =
      options.sizes.empty() ? *parse_sizes("1KiB:1GiB") : options.sizes;
  Findings found{
      .scope = std::move(scope), .fidelity = options.fidelity, .framework = options.in_framework};
  found.notes = found.scope.on.notes;
  if (found.scope.calibrated && !found.scope.calibrated->note.empty())
    found.notes.push_back(found.scope.calibrated->note);
  double done = 0;
  for (const CollectiveKind kind : kinds) {
    const PriceOfSize price = TRY(prices_of(found.scope, {.kind = kind,
                                                          .overrides = options.overrides,
                                                          .fidelity = options.fidelity,
                                                          .in_framework = options.in_framework}));
    if (!price.why_not.empty())
      found.notes.push_back(fmt::format(
          "{}: {}; its times are from links alone, without launches, flags and protocols, which "
          "dominate small sizes",
          to_string(kind), price.why_not));
    std::vector<std::pair<Bytes, std::optional<Seconds>>> asked;
    if (kind == CollectiveKind::kBarrier) {
      asked.emplace_back(Bytes::b(0), std::nullopt);
    } else if (rows.empty() || !options.sizes.empty()) {
      for (const Bytes size : sizes) {
        std::optional<Seconds> measured;
        for (const comm::MeasuredRow& r : rows)
          if (r.kind == kind && r.size == size) measured = r.time;
        asked.emplace_back(size, measured);
      }
    } else {
      for (const comm::MeasuredRow& r : rows)
        if (r.kind == kind) asked.emplace_back(r.size, r.time);
    }
    for (const auto& [size, measured] : asked) {
      const CollectivePrice at = TRY(price.of(size));
      found.points.push_back({kind, ranks, size, at, measured});
      done += 1 / static_cast<double>(asked.size() * kinds.size());
      if (!progress(done)) return fail("interrupted");
    }
  }
  return found;
}

Result<Exit> run(const NetworkOptions& options, const Globals& globals) {
  const Findings found = TRY(find(options, globals.progress_of("pricing")));
  for (const std::string& note : found.notes) globals.warn(note);
  return answer_with(globals, document_of(found));
}

}  // namespace

void add_network(CLI::App& app, Action& action) {
  auto options = std::make_shared<NetworkOptions>();
  CLI::App* command =
      app.add_subcommand("network", "Predict the time of a collective over sizes, with intervals");
  add_scope_options(*command, options->scope);
  CLI::Option* ops = add_value(*command, "--op", "NAME,...", options->ops,
                               "all_reduce (default), all_gather, ...; several with commas");
  accept_names(ops->delimiter(','), kCollectiveNames, "collective");
  add_read(*command, "--sizes", "SIZES", options->sizes, parse_sizes,
           "FROM:TO doubling, or a list (default 1KiB:1GiB, or those of --measured)");
  add_choice(*command, "--algorithm", options->overrides.algorithm, kAlgorithmNames,
             "algorithm, as in NCCL_ALGO: ring, tree, nvls; as messages also pat, "
             "halving_doubling, hierarchical, ...",
             "algorithm");
  add_choice(*command, "--protocol", options->overrides.protocol, comm::kProtocolNames,
             "protocol, as in NCCL_PROTO: ll, ll128, simple", "protocol");
  add_value(*command, "--measured", "FILE", options->measured, "log of nccl-tests to compare with");
  add_choice(*command, "--fidelity", options->fidelity, kFidelityNames,
             "closed (default): by calibration; message: as messages on the cluster's links; "
             "simgrid: the same messages, carried by SimGrid",
             "fidelity");
  add_choice(*command, "--timing", options->in_framework, kTimingNames,
             "nccl_tests (default), or framework: including the cost of a call in PyTorch",
             "timing");
  command->footer(
      "Example: rehearse network --cluster cluster.yaml --op all_reduce --sizes 1KiB:1GiB");
  run_by(*command, action, options, run,
         [](const NetworkOptions& given) { check_scope_options(given.scope); });
}

}  // namespace rehearse::cli
