#include "models/input/limits.h"

#include <algorithm>

#include <fmt/core.h>

namespace rehearse::input {

std::vector<Limit> limits_of(const Pipeline& p) {
  const Counts counts = counts_of(p);
  const double busy = busy_threads(p);
  const double speed = p.host ? p.host->speed(busy) : 1;
  std::vector<Limit> limits;
  const auto add = [&](LimitKind kind, std::size_t index, double capacity, double need) {
    if (need > 0) limits.push_back({kind, index, capacity / need});
  };
  for (std::size_t i = 0; i < p.stages.size(); ++i) {
    const Stage& stage = p.stages[i];
    const double hold = read_time(p, stage).s() + core_time(stage).s() / speed;
    add(LimitKind::kThreads, i, stage.slots(), counts.visits[i] * hold);
    add(LimitKind::kSerial, i, stage.workers * speed, counts.visits[i] * stage.serial.mean.s());
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
      work += counts.visits[i] * core_time(p.stages[i]).s();
    add(LimitKind::kHost, 0, p.host->capacity(std::max<double>(busy, p.host->cores)), work);
  }
  if (p.step) add(LimitKind::kStep, 0, 1, p.step->mean.s());
  std::stable_sort(limits.begin(), limits.end(), [](const Limit& a, const Limit& b) {
    return a.units_per_s != b.units_per_s ? a.units_per_s < b.units_per_s : a.kind < b.kind;
  });
  return limits;
}

std::string to_string(const Pipeline& p, const Limit& limit) {
  const std::string_view kind = kLimitNames[static_cast<int>(limit.kind)];
  switch (limit.kind) {
    case LimitKind::kThreads:
    case LimitKind::kSerial:
      return fmt::format("{} of {}", kind, p.stages[limit.index].name);
    case LimitKind::kBandwidth:
    case LimitKind::kRequests:
      return fmt::format("{} of {}", kind, p.sources[limit.index].name);
    case LimitKind::kHost:
    case LimitKind::kStep:
      break;
  }
  return std::string(kind);
}

}  // namespace rehearse::input
