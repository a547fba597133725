#include "models/input/limits.h"

#include <algorithm>

#include <fmt/core.h>

namespace rehearse::input {

namespace {

/// For each take that a stage begins: the share that must end, and the least time for which each of
/// these is in progress.
struct Due {
  double share = 1;
  bool least = false;  ///< the quickest count
};
Due due_of(const Pipeline& p) {
  if (!p.loop || p.loop->late != Late::kAbandoned) return {};
  const double taken = p.loop->quorum.value_or(p.stages.back().batch);
  return {.share = taken / static_cast<double>(p.loop->in_flight), .least = true};
}

/// The time that a visit holds its thread on cores of this speed.
double hold_of(const Pipeline& p, const Stage& stage, double speed, bool least) {
  if (!least) return read_time(p, stage).s() + core_time(p, stage).s() / speed;
  Pipeline quickest = p;
  Stage read = stage;
  if (stage.source) {
    Source& source = quickest.sources[*stage.source];
    source.latency.mean = source.latency.least();
    source.client.mean = source.client.least();
    source.client_serial.mean = source.client_serial.least();
    if (!read.reads.empty()) {
      read.bytes = *std::ranges::min_element(read.reads);
      read.reads = {read.bytes};
    }
    // The faster of a read from the source and one from memory.
    if (source.hits > 0 && source.hits < 1) {
      source.hits = 0;
      const Seconds from_source = read_time(quickest, read);
      source.hits = 1;
      if (from_source < read_time(quickest, read)) source.hits = 0;
    }
  }
  read.time.mean = stage.time.least();
  read.serial.mean = stage.serial.least();
  return read_time(quickest, read).s() + core_time(quickest, read).s() / speed;
}

/// The time that a unit of the last stage, or a whole round, is in flight.
double time_in_flight(const Pipeline& p, double speed) {
  double time = p.step ? (p.loop->rounds() ? p.step->least() : p.step->mean).s() : 0;
  for (const Stage& stage : p.stages)
    time += std::min(stage.visits, 1.0) * hold_of(p, stage, speed, p.loop->rounds());
  return time;
}

}  // namespace

std::vector<Limit> limits_of(const Pipeline& p) {
  const Counts counts = counts_of(p);
  const Due due = due_of(p);
  const double busy = busy_threads(p);
  const double speed = p.host ? p.host->speed(busy) : 1;
  std::vector<Limit> limits;
  const auto add = [&](LimitKind kind, std::size_t index, double capacity, double need) {
    if (need > 0) limits.push_back({kind, index, capacity / need});
  };
  for (std::size_t i = 0; i < p.stages.size(); ++i) {
    const Stage& stage = p.stages[i];
    const bool last = i + 1 == p.stages.size();
    const double visits = counts.visits[i] * (last ? 1 : due.share);
    add(LimitKind::kThreads, i, stage.slots(),
        visits * hold_of(p, stage, speed, due.least && !last));
    const Seconds locked = due.least && !last ? stage.serial.least() : locked_time(p, stage);
    add(LimitKind::kSerial, i, stage.workers * speed, visits * locked.s());
  }
  for (std::size_t s = 0; s < p.sources.size(); ++s) {
    double bytes = 0, requests = 0;
    for (std::size_t i = 0; i < p.stages.size(); ++i)
      if (p.stages[i].source == s) {
        bytes += counts.visits[i] * moved_by(p, p.stages[i]).b();
        requests += counts.visits[i] * requests_of(p, p.stages[i]);
      }
    if (p.sources[s].total) add(LimitKind::kBandwidth, s, p.sources[s].total->bytes_per_s(), bytes);
    if (p.sources[s].requests_per_s)
      add(LimitKind::kRequests, s, *p.sources[s].requests_per_s, requests);
  }
  if (p.host) {
    double work = 0;
    for (std::size_t i = 0; i < p.stages.size(); ++i)
      work += counts.visits[i] * core_time(p, p.stages[i]).s();
    double capacity = 0;
    for (const double part : part_capacities(p)) capacity += part;
    add(LimitKind::kHost, 0, capacity, work);
  }
  if (p.step) add(LimitKind::kStep, 0, 1, p.step->mean.s());
  if (p.loop) {
    const double units =
        p.loop->rounds() ? 1 : static_cast<double>(p.loop->in_flight) / counts.samples;
    add(LimitKind::kLoop, 0, units, time_in_flight(p, speed));
  }
  std::ranges::stable_sort(limits, [](const Limit& a, const Limit& b) {
    return a.units_per_s != b.units_per_s ? a.units_per_s < b.units_per_s : a.kind < b.kind;
  });
  return limits;
}

std::string to_string(const Pipeline& p, const Limit& limit) {
  const std::string_view kind = kLimitNames[static_cast<int>(limit.kind)];
  switch (limit.kind) {
    case LimitKind::kThreads:
    case LimitKind::kSerial: return fmt::format("{} of {}", kind, p.stages[limit.index].name);
    case LimitKind::kBandwidth:
    case LimitKind::kRequests: return fmt::format("{} of {}", kind, p.sources[limit.index].name);
    case LimitKind::kHost:
    case LimitKind::kStep:
    case LimitKind::kLoop: break;
  }
  return std::string(kind);
}

}  // namespace rehearse::input
