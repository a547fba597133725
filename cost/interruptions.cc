#include "cost/interruptions.h"

#include <cmath>

#include <fmt/core.h>

#include "sim/base/check.h"
#include "sim/base/csv_row.h"
#include "sim/base/statistics.h"

namespace rehearse::cost {

Seconds young_interval(Seconds write, Seconds between) {
  return Seconds::s(std::sqrt(2 * write.s() * between.s()));
}

Seconds daly_interval(Seconds write, Seconds between) {
  REHEARSE_CHECK(write.s() > 0 && between.s() > 0);
  const double share = write / between / 2;
  if (share >= 1) return between;
  return young_interval(write, between) * (1 + std::sqrt(share) / 3 + share / 9) - write;
}

double slowdown(Seconds every, const Checkpointing& checkpointing, Seconds between) {
  return std::exp(checkpointing.restart / between) *
         std::expm1((every + checkpointing.write) / between) * (between / every);
}

Result<Estimate<Seconds>> mean_time_between(std::span<const Lifetime> lifetimes) {
  double held = 0, interruptions = 0;
  for (const Lifetime& life : lifetimes) {
    held += life.instances * life.held.s();
    if (life.interrupted) interruptions += life.instances;
  }
  if (interruptions == 0)
    return fail(fmt::format("no instance was interrupted in {}", to_string(Seconds::s(held))),
                "a log with interruptions, or interrupted_every");
  return Estimate<Seconds>{Seconds::s(held / interruptions),
                           Seconds::s(2 * held / chi_squared_limit(0.05, 2 * interruptions + 2)),
                           Seconds::s(2 * held / chi_squared_limit(0.95, 2 * interruptions)),
                           Provenance::kRecorded};
}

Result<std::vector<Lifetime>> parse_lifetimes(std::string_view text, std::string name) {
  return read_rows<Lifetime>(text, std::move(name), [](const CsvRow& row) {
    for (const char* column : {"instances", "held_h", "interrupted"}) row.required(column);
    const std::optional<std::uint32_t> instances = row.count("instances");
    const std::optional<Seconds> held = row.quantity<Seconds>("held_h", 3600);
    const std::optional<double> interrupted = row.number("interrupted");
    if (instances && *instances == 0) row.report("instances", "is zero", "one at least");
    if (held && held->s() == 0) row.report("held_h", "is zero", "hours, above zero");
    if (interrupted && *interrupted != 0 && *interrupted != 1)
      row.report("interrupted", "is neither 0 nor 1", "1 if the provider interrupted it");
    return Lifetime{static_cast<double>(instances.value_or(0)), held.value_or(Seconds::s(0)),
                    interrupted == 1.0};
  });
}

}  // namespace rehearse::cost
