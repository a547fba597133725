// Steps of concurrent tenants, and the causes of their losses.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "models/sharing/tenants.h"

namespace rehearse::sharing {
namespace {

using graph::Timeline;

/// The most and least counted periods of the longest tenant, and ops of a run.
constexpr double kMostPeriods = 32, kLeastPeriods = 2;
constexpr double kOps = 2e5, kMostTenantOps = 2e6;
constexpr std::size_t kPhases = 4;
constexpr double kMostApart = 1000;

/// One more source of contention, and the loss that it causes.
struct Stage {
  Seconds Loss::*loss;
  Contended contended;
};

std::vector<Stage> stages_of(Policy policy) {
  switch (policy) {
    case Policy::kMps:
    case Policy::kPriority:
      return {{&Loss::compute, {.bandwidth = false, .links = false}},
              {&Loss::memory_bandwidth, {.links = false}},
              {&Loss::communication, {}}};
    case Policy::kTimeSlice:
      return {{&Loss::waiting, {.change = false, .links = false}},
              {&Loss::changes, {.links = false}},
              {&Loss::communication, {}}};
    case Policy::kCrossover:
    case Policy::kExclusive: break;
  }
  return {{&Loss::waiting, {.links = false}}, {&Loss::communication, {}}};
}

class Steps {
 public:
  Steps(std::span<const Tenant> tenants, const StepOf& step_of)
      : tenants_(tenants), step_of_(step_of) {}

  Status alone() {
    Seconds longest = Seconds::s(0), shortest = Seconds::s(INFINITY);
    for (std::size_t t = 0; t < tenants_.size(); ++t) {
      const Timeline& timeline = tenants_[t].timeline;
      const Seconds step = step_of_(t, timeline), period = timeline.makespan().seconds();
      if (!(step > Seconds::s(0)))
        return fail(fmt::format("a step of {} takes no time", tenants_[t].name));
      result_.push_back({.alone = step, .shared = step, .when_contended = step});
      periods_.push_back(period);
      longest = std::max(longest, period);
      shortest = std::min(shortest, period);
    }
    if (longest > shortest * kMostApart)
      return fail(fmt::format("periods of {} and {}", to_string(shortest), to_string(longest)),
                  "jobs whose steps differ by a factor of a thousand at most");
    double ops = 0;  // while the longest has one period
    for (std::size_t t = 0; t < tenants_.size(); ++t)
      ops += static_cast<double>(tenants_[t].alone.graph.size()) * (longest / periods_[t]);
    if (ops * kLeastPeriods > kMostTenantOps)
      return fail(fmt::format("{:.2g} ops per period of the longest job", ops),
                  fmt::format("{:.2g} at most", kMostTenantOps / kLeastPeriods));
    const double wanted = std::clamp(kOps / ops, kLeastPeriods, kMostPeriods);
    for (const Seconds period : periods_)
      counts_.push_back(static_cast<std::uint32_t>(std::ceil(wanted * (longest / period))) + 1);
    return {};
  }

  struct Mean {
    Seconds step;
    std::size_t periods;
    Timeline last;
  };

  /// Over phases: each tenant begins later by a share of the shortest period, so that all run
  /// before any is counted.
  Result<std::vector<Mean>> shared(const Sharing& sharing, const Contended& contended) {
    const bool leases =
        sharing.policy == Policy::kCrossover || sharing.policy == Policy::kExclusive;
    const std::size_t phases = leases ? 1 : kPhases;
    const Seconds shortest = *std::ranges::min_element(periods_);
    std::vector<Mean> sum(tenants_.size(), Mean{Seconds::s(0), 0, {}});
    for (std::size_t phase = 0; phase < phases; ++phase) {
      std::vector<Picoseconds> begins;
      for (std::size_t t = 0; t < tenants_.size(); ++t) {
        const double late = static_cast<double>(phase * t % kPhases) / kPhases;
        begins.push_back(Picoseconds::from(shortest) * late);
      }
      std::vector<Mean> means = TRY(shared(sharing, contended, begins));
      for (std::size_t t = 0; t < tenants_.size(); ++t) {
        sum[t].step += means[t].step / static_cast<double>(phases);
        sum[t].periods += means[t].periods;
        sum[t].last = std::move(means[t].last);
      }
    }
    return sum;
  }

  /// Counted from the second period on, while all tenants run.
  Result<std::vector<Mean>> shared(const Sharing& sharing, const Contended& contended,
                                   const std::vector<Picoseconds>& begins) {
    while (true) {
      const Together together = TRY(run_together(tenants_, sharing, counts_, contended, begins));
      Picoseconds until(std::numeric_limits<std::int64_t>::max());
      for (std::size_t t = 0; t < tenants_.size(); ++t)
        until = std::min(until, together.end(t, counts_[t] - 1));
      std::vector<std::size_t> counted(tenants_.size(), 0);
      for (std::size_t t = 0; t < tenants_.size(); ++t)
        while (counted[t] + 1 < counts_[t] && together.end(t, counted[t] + 1) <= until)
          ++counted[t];
      if (static_cast<double>(*std::ranges::min_element(counted)) >= kLeastPeriods)
        return means(together, counted);
      // The first tenant to finish left the others too little time alongside it.
      double ops = 0;
      for (std::size_t t = 0; t < tenants_.size(); ++t) {
        if (together.end(t, counts_[t] - 1) == until) counts_[t] *= 2;
        ops +=
            static_cast<double>(counts_[t]) * static_cast<double>(tenants_[t].alone.graph.size());
      }
      if (ops > kMostTenantOps)
        return fail("one of the jobs makes almost no progress",
                    "a policy that gives both a share of the device");
    }
  }

  Status lose(const Sharing& sharing) {
    const std::vector<Stage> stages = stages_of(sharing.policy);
    std::vector<Seconds> before;
    for (const TenantStep& step : result_) before.push_back(step.alone);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const Stage& stage = stages[s];
      // The last two stages differ only in links, if there are any.
      const bool last = s + 1 == stages.size();
      if (last && !uses_links()) break;
      std::vector<Mean> means = TRY(shared(sharing, stage.contended));
      for (std::size_t t = 0; t < tenants_.size(); ++t) {
        TenantStep& step = result_[t];
        step.loss.*stage.loss = means[t].step - before[t];
        step.shared = before[t] = means[t].step;
        step.periods = means[t].periods;
        step.last = std::move(means[t].last);
      }
    }
    return {};
  }

  Status contend(const Sharing& sharing) {
    for (TenantStep& step : result_) step.when_contended = step.shared;
    Sharing worst = sharing;
    Contended contended;
    switch (sharing.policy) {
      case Policy::kMps:
      case Policy::kPriority: contended.whole_kernels = true; break;
      case Policy::kCrossover: worst.policy = Policy::kExclusive; break;
      case Policy::kTimeSlice:
      case Policy::kExclusive: return {};
    }
    const std::vector<Mean> means = TRY(shared(worst, contended));
    for (std::size_t t = 0; t < tenants_.size(); ++t)
      result_[t].when_contended = std::max(result_[t].shared, means[t].step);
    return {};
  }

  std::vector<TenantStep> result() && { return std::move(result_); }

 private:
  bool uses_links() const {
    return std::ranges::any_of(tenants_, [](const Tenant& tenant) {
      const auto copies = [](const DeviceOp& op) { return op.host_link > 0; };
      const auto carried = [&](const graph::Transfer& transfer) {
        return std::any_of(
            transfer.routes->begin(), transfer.routes->end(), [&](const auto& route) {
              return !tenant.alone.graph.demands()[route.demand.index()].capacities.empty();
            });
      };
      const auto transfers = tenant.alone.graph.transfers();
      return std::ranges::any_of(tenant.on_device, copies) ||
             std::ranges::any_of(transfers, carried);
    });
  }

  std::vector<Mean> means(const Together& together, const std::vector<std::size_t>& counted) const {
    std::vector<Mean> means;
    for (std::size_t t = 0; t < tenants_.size(); ++t) {
      Mean mean{Seconds::s(0), counted[t], {}};
      for (std::size_t p = 1; p <= counted[t]; ++p) {
        mean.last = together.of_period(t, p);
        mean.step += step_of_(t, mean.last);
      }
      mean.step = mean.step / static_cast<double>(counted[t]);
      means.push_back(std::move(mean));
    }
    return means;
  }

  const std::span<const Tenant> tenants_;
  const StepOf& step_of_;
  std::vector<Seconds> periods_;  // alone
  std::vector<std::uint32_t> counts_;
  std::vector<TenantStep> result_;
};

struct Spread {
  double fastest, slowest;
};
constexpr Spread kK80{0.80, 1.28}, kV100{0.50, 2.6};

}  // namespace

Estimate<double> slowdown_of(const TenantStep& step, Policy policy) {
  const double value = step.slowdown(), contended = step.when_contended / step.alone;
  Estimate<double> estimate{value, value, std::max(value, contended), Provenance::kExtrapolated};
  const bool turns = policy == Policy::kCrossover || policy == Policy::kExclusive;
  if (!turns) {
    const Spread& spread = policy == Policy::kTimeSlice ? kK80 : kV100;
    estimate.low = std::min(value, std::max(1.0, value * spread.fastest));
    estimate.high = std::max(estimate.high, value * spread.slowest);
  }
  return estimate;
}

std::string_view why_that_wide(Policy policy) {
  switch (policy) {
    case Policy::kTimeSlice:
      return "interval: 90 % of 281 measured pairs on K80 with time slicing had 0.80 to 1.28 times "
             "the slowdown of turns; 5 of them, with ResNet-50, were simulated with 10 % error";
    case Policy::kMps:
    case Policy::kPriority:
      return "interval: 90 % of 305 measured pairs on V100 with spatial sharing had 0.5 to 2.6 "
             "times the slowdown of turns, which no property of the single jobs predicts; 7 of "
             "them, with ResNet-50, took 1.3 to 2.4 times as long as this value: measure the pair";
    case Policy::kCrossover:
      return "interval: from free switching to whole steps in turns, combined with the intervals "
             "of both steps alone";
    case Policy::kExclusive: return "interval: combined from both steps alone";
  }
  return "";
}

Result<std::vector<TenantStep>> share_devices(std::span<const Tenant> tenants,
                                              const Sharing& sharing, const StepOf& step_of) {
  Steps steps(tenants, step_of);
  TRY(steps.alone());
  TRY(steps.lose(sharing));
  TRY(steps.contend(sharing));
  return std::move(steps).result();
}

Result<std::vector<TenantStep>> share_devices(std::span<const Tenant> tenants,
                                              const Sharing& sharing) {
  return share_devices(tenants, sharing, [](std::size_t, const Timeline& period) {
    return period.makespan().seconds();
  });
}

}  // namespace rehearse::sharing
