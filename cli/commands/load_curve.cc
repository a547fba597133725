#include "cli/commands/load_curve.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace rehearse::cli {
namespace {

using serving::Measures;

constexpr std::size_t kMostRequests = 2000, kMostInLoop = 8000;
constexpr double kShares[] = {0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1, 1.1, 1.25};
constexpr double kTimes[] = {1. / 16, 1. / 8, 1. / 4, 1. / 2, 1, 1.5, 2, 4};
/// A rate this close to the file's is left out.
constexpr double kApart = 0.03;
constexpr double kSaturated = 0.95;

Result<LoadPoint> point_at(const ServeFile& file, double load) {
  const ServedLoad served = TRY(serve(file));
  const auto tpot =
      served.estimate<Seconds>([](const Measures& m) { return Seconds::s(m.tpot.p99); });
  LoadPoint point{.load = load,
                  .requests_per_s = served.estimate<double>(
                      [](const Measures& m) { return m.requests / m.duration; }),
                  .tokens_per_s = served.tokens_per_s(),
                  .tokens_per_user = served.tokens_per_user(),
                  .mean_ttft = served.ttft(&serving::Spread::mean),
                  .p99_ttft = served.ttft(&serving::Spread::p99),
                  .mean_tpot = served.mean_tpot(),
                  .p99_tpot = tpot};
  if (file.slo)
    point.within = static_cast<double>(kept(*file.slo, served.replicas[0])) /
                   static_cast<double>(file.requests.size());
  return point;
}

/// Requests in flight, with the same waves of them.
Result<LoadCurve> closed_curve(const ServeFile& file, double capacity) {
  std::set<std::int64_t> loads;
  for (const double times : kTimes)
    loads.insert(
        std::max<std::int64_t>(1, std::llround(times * static_cast<double>(file.in_flight))));
  LoadCurve curve{};
  for (const std::int64_t load : loads) {
    const double waves =
        static_cast<double>(file.requests.size()) / static_cast<double>(file.in_flight);
    const auto count = static_cast<std::size_t>(
        std::clamp(std::ceil(waves * static_cast<double>(load)), 1.0,
                   static_cast<double>(std::max(kMostInLoop, file.requests.size()))));
    ServeFile at = file;
    at.in_flight = load;
    at.requests.resize(std::min(count, file.requests.size()));
    for (std::size_t i = at.requests.size(); i < count; ++i)
      at.requests.push_back(file.requests[i % file.requests.size()]);
    const Result<LoadPoint> run = point_at(at, static_cast<double>(load));
    if (!run && file.rules.drops) continue;  // all requests left
    const LoadPoint point = TRY(run);
    if (!curve.saturation && point.requests_per_s.value >= kSaturated * capacity)
      curve.saturation = point.load;
    curve.points.push_back(point);
  }
  return curve;
}

Result<LoadCurve> open_curve(const ServeFile& file, double capacity) {
  LoadCurve curve{.points = {}, .saturation = capacity};
  const std::size_t count = std::min(file.requests.size(), kMostRequests);
  const double span = serving::last_planned(std::span(file.requests).first(count)).seconds().s();
  if (count < 2 || !(span > 0)) return curve;
  const double given = static_cast<double>(count - 1) / span;
  std::vector<double> rates = {given};
  for (const double share : kShares)
    if (std::abs(share * capacity / given - 1) > kApart) rates.push_back(share * capacity);
  std::ranges::sort(rates);
  for (const double rate : rates) {
    ServeFile at = file;
    at.requests.resize(count);
    at.scaling.reset();  // all replicas that there may be
    if (rate != given)
      for (serving::Request& request : at.requests)
        request.planned = Picoseconds::from(request.planned.seconds() * (given / rate));
    const Result<LoadPoint> point = point_at(at, rate);
    if (!point && file.rules.drops) continue;  // all requests left
    curve.points.push_back(TRY(point));
  }
  return curve;
}

}  // namespace

Result<LoadCurve> load_curve(const ServedLoad& load, double capacity) {
  return load.file.closed ? closed_curve(load.file, capacity) : open_curve(load.file, capacity);
}

Value curve_fields(const ServeFile& file, const LoadCurve& curve) {
  const auto of_load = [&](double load) -> Value {
    return file.closed ? Value(load) : Value(Quantity(load, unit::kRate));
  };
  const double devices = static_cast<double>(file.devices);
  Value points = Value::array();
  std::optional<double> held;
  for (const LoadPoint& p : curve.points) {
    Value row = {{"load", file.closed ? "in flight" : "requests/s", of_load(p.load), {"", 1, 4}}};
    row.show("requests_per_s", "served/s", Quantity(p.requests_per_s, unit::kRate), {"1/s", 1, 3});
    row.show("tokens_per_s_per_device", "tokens/s/GPU",
             Quantity(p.tokens_per_s * (1 / devices), unit::kTokens), {"1/s", 1, 4});
    row["tokens_per_s_per_user"] = Quantity(p.tokens_per_user, unit::kTokens);
    row["ttft"] = {{"mean", p.mean_ttft}, {"p99", p.p99_ttft}};
    row["tpot"] = {{"mean", p.mean_tpot}, {"p99", p.p99_tpot}};
    row.show("", "mean TTFT", p.mean_ttft, in::kMs);
    row.show("", "P99 TTFT", p.p99_ttft, in::kMs);
    row.show("", "mean TPOT", p.mean_tpot, in::kMs);
    if (file.slo) {
      row.show("within_slo", "within SLO", share(p.within), in::kWholePercent);
      if (p.within >= kHeldShare) held = p.load;
    }
    points.push_back(std::move(row));
  }
  Value fields = {{"of", file.closed ? "in_flight" : "requests_per_s"},
                  {"points", std::move(points)},
                  {"saturation", curve.saturation ? of_load(*curve.saturation) : Value()}};
  if (file.slo) {
    fields["held"] = held ? of_load(*held) : Value();
    Value limits = Value::object();
    for (const auto& [name, limit] : {std::pair{"ttft", file.slo->ttft},
                                      {"tpot", file.slo->tpot},
                                      {"end_to_end", file.slo->end_to_end}})
      if (limit) limits[name] = *limit;
    fields["slo"] = std::move(limits);
  }
  return fields;
}

}  // namespace rehearse::cli
