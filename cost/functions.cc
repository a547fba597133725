#include "cost/functions.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "cost/catalog.h"

namespace rehearse::cost {
namespace {

/// AWS gives one vCPU per this much memory.
constexpr double kBytesPerVcpu = 1769 * 1048576.0;

const FunctionPrice* find(std::string_view service, std::string_view item) {
  for (const FunctionPrice& price : function_prices())
    if (price.service == service && price.item == item) return &price;
  return nullptr;
}

Seconds step_time(const FunctionService& service, const FunctionJob& job, double functions,
                  FlopRate vcpu) {
  const Seconds compute = job.step / (vcpu * (service.vcpus * functions));
  if (functions < 2) return compute;
  const double passes = 2 + 2 * (functions - 1) / functions;
  return compute + job.parameters * passes / service.rate + kStoreLatency * 4;
}

}  // namespace

std::vector<FunctionService> function_services() {
  std::vector<FunctionService> services;
  for (const FunctionPrice& price : function_prices()) {
    if (price.item != "limits_memory_max") continue;
    const std::string_view name = price.service;
    const FunctionPrice *limit = find(name, "limits_timeout"), *cold = find(name, "cold_start"),
                        *rate = find(name, "connection"), *call = find(name, "request"),
                        *use = find(name, "duration"), *many = find(name, "default_concurrency");
    if (!limit || !cold || !rate || !call || !use || !many) continue;
    const Bytes memory = Bytes::mib(price.value);
    services.push_back({.name = std::string(name),
                        .memory = memory,
                        .vcpus = memory.b() / kBytesPerVcpu,
                        .limit = Seconds::s(limit->value),
                        .cold = Seconds::s(cold->value),
                        .rate = ByteRate::bytes_per_s(rate->value * 1e6),
                        .concurrent = many->value,
                        .usd_per_byte_second = use->value / 1073741824.0,
                        .usd_per_call = call->value / 1e6,
                        .as_of = use->origin.as_of});
  }
  return services;
}

Result<FunctionRun> run_on_functions(const FunctionService& service, const FunctionJob& job,
                                     std::uint32_t functions) {
  if (functions < 1 || functions > std::min<double>(job.samples, service.concurrent))
    return fail(
        fmt::format("{} functions of {}", functions, service.name),
        fmt::format("1 to {:.0f}: the samples of a step, and the limit of concurrent functions",
                    std::min<double>(job.samples, service.concurrent)));
  if (job.memory > service.memory)
    return fail(fmt::format("{} in a function of {}", to_string(job.memory), service.name),
                fmt::format("at most {}", to_string(service.memory)));
  const Seconds begin = service.cold + job.parameters / service.rate;
  const auto step = [&](FlopRate vcpu) { return step_time(service, job, functions, vcpu); };
  const Estimate<Seconds> one{step(kVcpuRate), step(kVcpuRateHigh), step(kVcpuRateLow),
                              Provenance::kExtrapolated};
  if (begin + one.high > service.limit)
    return fail(
        fmt::format("a step takes {} of functions of {}", to_string(one.high), service.name),
        fmt::format("at most {} with its start", to_string(service.limit)));
  const double share = 1 - begin / service.limit;
  const auto whole = [&](Seconds each) { return each * (job.steps / share); };
  const auto calls = [&](Seconds time) { return functions * std::ceil(time / service.limit); };
  const auto money = [&](Seconds time) {
    return Usd::usd(service.usd_per_byte_second * service.memory.b() * time.s() * functions +
                    service.usd_per_call * calls(time));
  };
  const Estimate<Seconds> time = mapped(one, whole);
  return FunctionRun{one, time, mapped(time, money), calls(time.value)};
}

}  // namespace rehearse::cost
