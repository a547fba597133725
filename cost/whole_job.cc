#include "cost/whole_job.h"

#include <fmt/core.h>

#include "cost/power.h"
#include "cost/storage.h"

namespace rehearse::cost {
namespace {

double instances_of(const Place& place) {
  double count = 0;
  for (const Rented& rented : place.rented) count += rented.count;
  return count;
}

/// The rate at which all instances write together: over the links to storage, else over their
/// network.
std::optional<ByteRate> write_rate(const Place& place, const Keeping& keeping) {
  if (keeping.write) return keeping.write;
  ByteRate sum = ByteRate::bytes_per_s(0);
  for (const Rented& rented : place.rented) {
    const Result<const cluster::Instance*> found = cluster::find_instance(rented.instance);
    if (!found) return std::nullopt;
    const std::optional<ByteRate> rate =
        (*found)->storage_network ? (*found)->storage_network : (*found)->network;
    if (!rate) return std::nullopt;
    sum += *rate * rented.count;
  }
  return sum.si() > 0 ? std::optional(sum) : std::nullopt;
}

/// The factor by which the whole job takes longer, with the interval that results from the time
/// between interruptions.
struct Slowdown {
  double value = 1, low = 1, high = 1;
  std::optional<Checkpoints> checkpoints;
};

Result<Slowdown> slowdown_of(Bytes bytes, const Place& place, const Keeping& keeping,
                             std::vector<std::string>& notes) {
  const bool spot = place.market == Market::kSpot;
  if (spot && !keeping.between)
    notes.push_back(
        "interruptions are not counted: their frequency is unknown (spot: {interrupted_every: …})");
  const bool interrupted = spot && keeping.between;
  if (!interrupted && !keeping.every) return Slowdown{};
  const std::optional<ByteRate> rate = write_rate(place, keeping);
  if (!rate) return fail("the write rate of checkpoints is unknown", "storage: {write: 2 GB/s}");
  const Seconds write = bytes / *rate;
  if (!interrupted) {
    const double all = 1 + write / *keeping.every;
    return Slowdown{all, all, all, Checkpoints{*keeping.every, write, all}};
  }
  const double n = instances_of(place);
  const Seconds between = keeping.between->value / n;
  const Seconds every = keeping.every ? *keeping.every : daly_interval(write, between);
  const auto by = [&](Seconds mean) { return slowdown(every, {write, keeping.restart}, mean / n); };
  Slowdown all{by(keeping.between->value), by(keeping.between->high), by(keeping.between->low),
               std::nullopt};
  all.checkpoints = Checkpoints{every, write, all.value};
  constexpr double kHopeless = 100;
  if (!(all.value < kHopeless))
    return fail(
        fmt::format("interruptions every {} are too frequent for any progress", to_string(between)),
        "fewer instances, other instances, or on-demand prices");
  all.high = std::min(all.high, kHopeless);
  return all;
}

void add_storage(JobAccount& account, Bytes checkpoint, Usd requests, const Place& place,
                 const Keeping& keeping) {
  const std::string_view provider = provider_of(place);
  const auto left_out = [&](std::string_view what) {
    account.notes.push_back(fmt::format("{} left out: no price at {}", what, provider));
  };
  Bytes kept = keeping.dataset.value_or(Bytes::b(0));
  if (account.checkpoints) kept += checkpoint * keeping.keep;
  const auto add = [&](Usd amount) {
    if (!account.money) return;
    account.money->value += amount;
    account.money->low += amount;
    account.money->high += amount;
  };
  if (kept.b() > 0) {
    if (const auto price = storage_price(provider, place.region)) {
      account.storage = cost_of_keeping(*price, kept, account.time.value);
      add(account.storage);
      account.notes.push_back(fmt::format("storage: {} at {}", to_string(kept), price->text));
    } else {
      left_out("storage");
    }
  }
  if (requests > Usd::usd(0)) {
    account.storage += requests;
    add(requests);
    account.notes.push_back(fmt::format("storage: {} for requests", to_string(requests)));
  }
  if (!keeping.fetched) return;
  if (const auto price = egress_price(provider, place.region)) {
    account.transfer = cost_of_fetching(*price, *keeping.fetched);
    add(account.transfer);
    account.notes.push_back(
        fmt::format("transfer: {} at {}", to_string(*keeping.fetched), price->text));
  } else {
    left_out("transfer");
  }
}

/// Adds the energy of the transferred data, at the carbon intensity of the job's grid.
void add_transfer_energy(JobAccount& account, Bytes fetched) {
  if (!account.energy) return;
  const Joules more = transfer_energy(fetched);
  Estimate<Joules>& energy = *account.energy;
  if (account.carbon) {
    Estimate<double>& grams = *account.carbon;
    grams.value *= 1 + more / energy.value;
    grams.low *= 1 + more / energy.low;
    grams.high *= 1 + more / energy.high;
  }
  energy.value += more;
  energy.low += more;
  energy.high += more;
}

}  // namespace

Result<JobAccount> account_for_job(const JobTime& job, std::span<const PoweredDevices> devices,
                                   const Place& place, const Keeping& keeping) {
  std::vector<std::string> notes;
  const Bytes checkpoint = keeping.checkpoint.value_or(job.checkpoint);
  const Slowdown slowed = TRY(slowdown_of(checkpoint, place, keeping, notes));
  JobAccount account{
      .time = {job.step.value * job.steps * slowed.value, job.step.low * job.steps * slowed.low,
               job.step.high * job.steps * slowed.high, job.step.provenance},
      .checkpoints = slowed.checkpoints,
      .notes = std::move(notes)};
  Place here = place;
  here.lasts = account.time.value;
  StepAccount whole = account_of(account.time * job.paid, devices, here);
  account.money = whole.money;
  account.energy = whole.energy;
  account.carbon = whole.carbon;
  account.notes.insert(account.notes.end(), whole.notes.begin(), whole.notes.end());
  add_storage(account, checkpoint, job.requests * job.steps, place, keeping);
  if (keeping.fetched) add_transfer_energy(account, *keeping.fetched);
  return account;
}

}  // namespace rehearse::cost
