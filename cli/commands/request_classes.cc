#include "cli/commands/request_classes.h"

#include <set>

namespace rehearse::cli {
namespace {

using serving::Measures, serving::Served;

/// The load with the requests of one priority, over the time of all.
ServedLoad only(const ServedLoad& load, std::int32_t priority) {
  ServedLoad of = load;
  for (std::size_t i = 0; i < of.measures.size(); ++i) {
    for (serving::Run& run : of.replicas[i])
      std::erase_if(run.served, [&](const Served& r) { return r.priority != priority; });
    of.measures[i] = serving::measure(of.replicas[i]);
    of.measures[i].duration = load.measures[i].duration;
  }
  return of;
}

/// The share of requests with a deadline that met it.
std::optional<Quantity> met_share(const ServedLoad& load) {
  std::array<double, 3> shares{};
  for (std::size_t i = 0; i < shares.size(); ++i) {
    double met = 0, all = 0;
    for (const serving::Run& run : load.replicas[i])
      for (const Served& r : run.served)
        if (r.deadline > Picoseconds(0)) {
          ++all;
          met += !r.dropped && r.last - r.sent <= r.deadline;
        }
    if (all == 0) return std::nullopt;
    shares[i] = met / all;
  }
  const auto [low, high] = std::ranges::minmax(shares);
  return Quantity(Estimate<double>{shares[0], low, high, load.provenance}, unit::kShare);
}

Value class_fields(const ServedLoad& of, std::int32_t priority) {
  const Measures& m = of.measures[0];
  const bool ended = std::ranges::all_of(of.measures, [](const auto& x) { return x.requests > 0; });
  Value row = {{"priority", "priority", priority},
               {"requests", "requests", m.requests + m.dropped, {"", 1, 0}}};
  row["ttft"] = Value();
  if (ended) {
    const auto mean = of.ttft(&serving::Spread::mean), late = of.ttft(&serving::Spread::p99);
    row["ttft"] = {{"mean", mean}, {"p99", late}};
    row.show("", "mean TTFT", mean, in::kMs);
    row.show("", "P99 TTFT", late, in::kMs);
  }
  row.show("goodput", "goodput/s", Quantity(of.goodput(), unit::kRate), {"1/s", 1, 3});
  if (const auto met = met_share(of))
    row.show("deadlines_met", "deadlines met", *met, in::kWholePercent);
  return row;
}

}  // namespace

void add_classes(Document& d, const ServedLoad& load) {
  const auto met = met_share(load);
  if (met) {
    d.show("deadlines_met", "deadlines met", *met);
    const double dropped = load.measures[0].dropped;
    d["dropped"] = dropped;
    if (dropped > 0) d.show("", "requests that left", fmt::format("{:.0f}", dropped));
  }
  std::set<std::int32_t> priorities;
  for (const serving::Request& request : load.file.requests) priorities.insert(request.priority);
  constexpr std::size_t kMostClasses = 100;
  if (priorities.size() < 2 || priorities.size() > kMostClasses) return;
  Value classes = Value::array();
  for (const std::int32_t priority : priorities)
    classes.push_back(class_fields(only(load, priority), priority));
  d["classes"] = std::move(classes);
  d.show("", "Priorities", d["classes"]);
}

}  // namespace rehearse::cli
