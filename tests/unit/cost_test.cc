// Power, prices, carbon, storage and functions: worked by hand.
#include <cmath>

#include <catch2/catch.hpp>

#include "cost/carbon.h"
#include "cost/functions.h"
#include "cost/power.h"
#include "cost/prices.h"
#include "cost/step_account.h"
#include "cost/storage.h"

namespace rehearse::cost {
namespace {

using std::chrono::days;

const cluster::Instance& instance(const char* name) { return **cluster::find_instance(name); }

template <class T>
std::string error_of(const Result<T>& result) {
  REQUIRE_FALSE(result);
  return to_string(result.error());
}

TEST_CASE("a device draws from idle to its limit in proportion to how busy it is") {
  const cluster::Gpu& gpu = **cluster::find_gpu("a100_sxm4_80");
  const double idle = gpu.idle_power->w(), limit = gpu.power_limit->w();
  CHECK(device_power(gpu, 0)->value.w() == idle);
  CHECK(device_power(gpu, 1)->value.w() == limit);
  const Estimate<Watts> half = *device_power(gpu, 0.5);
  CHECK(half.value.w() == Approx((idle + limit) / 2));
  CHECK(half.low.w() == Approx((idle + 0.75 * limit) / 2));
  CHECK(half.high.w() == limit);
  CHECK_FALSE(device_power(**cluster::find_gpu("trainium1"), 0.5));
}

// p4d.24xlarge: 96 vCPUs of AWS, 1152 GiB, 400 Gbit/s.
TEST_CASE("hosts draw the power of processors and memory, and ports draw it by their rate") {
  double sum = 0;
  int makes = 0;
  for (const PowerCoefficient& p : power_coefficients())
    if (p.provider == "aws" && p.component == "cpu_per_vcpu") {
      sum += (*p.min + p.max) / 2;
      ++makes;
    }
  const double memory = 0.392 * 1152 * 1.073741824;
  const Estimate<Watts> host = *host_power(instance("p4d.24xlarge"));
  CHECK(host.value.w() == Approx(sum / makes * 96 + memory));
  CHECK(host.low.w() == Approx(0.4743 * 96 + memory));
  CHECK(host.high.w() == Approx(8.5754 * 96 + memory));
  const Estimate<Watts> ports = *network_power(instance("p4d.24xlarge"));
  CHECK(ports.value.w() == Approx(400 * 0.09));
  CHECK_FALSE(network_power(instance("gpu_1x_a10")));  // its network is not in the catalog
  CHECK(transfer_energy(Bytes::gb(2)).kwh() == Approx(0.002));
  CHECK(*pue_of("gcp", "us-east4") == Approx(1.08));
  CHECK(*pue_of("aws", "eu-north-1") == Approx(1.135));
  CHECK_FALSE(pue_of("lambda", ""));
}

TEST_CASE("energy of rented machines has its parts, and carbon is all of it on the grid") {
  const Estimate<Seconds> hour{Seconds::s(3600), Seconds::s(3600), Seconds::s(3600),
                               Provenance::kExtrapolated};
  const PoweredDevices devices[] = {{"a100_sxm4_40", *cluster::find_gpu("a100_sxm4_40"), 16, 0.8}};
  const Place place{.rented = {{"p4d.24xlarge", 2}}, .region = "eu-north-1"};
  const StepAccount account = account_of(hour, devices, place);
  REQUIRE(account.energy);
  const EnergyParts& parts = account.energy_parts;
  CHECK(parts.devices.j() == Approx(16 * 3600 * device_power(*devices[0].gpu, 0.8)->value.w()));
  CHECK(parts.hosts.j() == Approx(2 * 3600 * host_power(instance("p4d.24xlarge"))->value.w()));
  CHECK(parts.network.j() == Approx(2 * 3600 * 36));
  CHECK(parts.cooling.j() == Approx(0.135 * (parts.devices + parts.hosts + parts.network).j()));
  CHECK((parts.devices + parts.hosts + parts.network + parts.cooling).j() ==
        Approx(account.energy->value.j()));
  CHECK(account.carbon->value == Approx(account.energy->value.kwh() * 8.8));
  // The ratio between regions is that of their grids, to the last digit.
  Place elsewhere = place;
  elsewhere.region = "us-east-1";
  CHECK(account_of(hour, devices, elsewhere).carbon->value / account.carbon->value ==
        Approx(379.069 / 8.8).epsilon(1e-12));
  CHECK(account_of(hour, devices, {}).energy_parts.hosts.j() == 0);
}

constexpr const char* kHours =
    "region,time,gco2e_per_kwh\n"
    "here,2026-02-28T22:00Z,100\n"
    "here,2026-02-28T23:00Z,300\n"
    "there,2026-01-01T00:00Z,50\n"
    "here,2026-03-01T01:00Z,20\n";

// Here: 1 h of 100, 2 h of 300, then 2 h (as long as the one before) of 20, and anew.
TEST_CASE("hourly carbon equals an integral by hand") {
  const CarbonHours hours = CarbonHours::parse(kHours, "h.csv").value();
  const auto grams_per_kw = [&](double h) {  // of 1 kW for h hours
    return hours.mean("here", Seconds::s(h * 3600)).g_per_kwh() * h;
  };
  const double cases[][2] = {{0.5, 50},     {1, 100},        {2.25, 475}, {3, 700},
                             {4.5, 730},    {5, 740},        {6, 840},    {7.5, 740 + 100 + 450},
                             {10, 2 * 740}, {5e3, 1e3 * 740}};
  for (const auto& [h, grams] : cases) {
    INFO(h);
    CHECK(grams_per_kw(h) == Approx(grams).epsilon(1e-9));
  }
  CHECK(hours.mean("here").g_per_kwh() == Approx(740 / 5.0));
  CHECK(hours.mean("there", Seconds::s(1e6)).g_per_kwh() == Approx(50));
  CHECK(hours.mean("here", Seconds::s(0)).g_per_kwh() == Approx(100));

  // The same through the account of a job of 7.5 h.
  const cluster::Gpu& gpu = **cluster::find_gpu("a100_sxm4_80");
  const PoweredDevices devices[] = {{"a100_sxm4_80", &gpu, 8, 1}};
  const Seconds lasts = Seconds::s(7.5 * 3600);
  const Estimate<Seconds> whole{lasts, lasts, lasts, Provenance::kExtrapolated};
  const StepAccount account = account_of(whole, devices,
                                         {.rented = {},
                                          .region = "here",
                                          .hours = std::make_shared<const CarbonHours>(hours),
                                          .lasts = lasts});
  const double kilowatts = 8 * gpu.power_limit->w() / 1e3;
  CHECK(account.carbon->value == Approx(kilowatts * (740 + 100 + 450)).epsilon(1e-6));
}

TEST_CASE("hours of carbon that cannot be read are refused by line") {
  const auto refused = [](const std::string& rows) {
    return error_of(CarbonHours::parse("region,time,gco2e_per_kwh\n" + rows, "h.csv"));
  };
  CHECK(refused("") == "h.csv: has no rows; region,time,gco2e_per_kwh");
  CHECK(
      refused("a,2026-02-30T00:00Z,1\n")
          .starts_with("h.csv:2: time: '2026-02-30T00:00Z' is no time; such as 2026-01-31T18:00Z"));
  CHECK(refused("a,2026-02-01 00:00,1\n").find("is no time") != std::string::npos);
  CHECK(refused("a,2026-02-01T01:00Z,1\na,2026-02-01T01:00Z,1\n")
            .starts_with("h.csv:3: time: '2026-02-01T01:00Z' is not later than the previous one"));
  CHECK(refused("a,2026-02-01T01:00Z,-1\n").starts_with("h.csv:2: gco2e_per_kwh"));
}

constexpr const char* kPriceHead =
    "provider,instance_type,region,zone,ondemand_usd_per_h,spot_usd_per_h,source,as_of\n";

TEST_CASE("prices are of a region or the lowest, of spot the median of the zones") {
  const PriceBook book = PriceBook::over_shipped(std::string(kPriceHead) +
                                                     "aws,p4d.24xlarge,a,,30,,me,2026-10\n"
                                                     "aws,p4d.24xlarge,a,z1,,9,me,2026-10\n"
                                                     "aws,p4d.24xlarge,a,z2,,5,me,2026-10\n"
                                                     "aws,p4d.24xlarge,a,z3,,7,me,2026-10\n"
                                                     "aws,p4d.24xlarge,b,,28,,me,2026-10\n"
                                                     "aws,p4d.24xlarge,b,z,,8,me,2026-10\n",
                                                 "mine.csv")
                             .value();
  const auto usd = [&](const char* region, Market market) {
    return book.quote("p4d.24xlarge", region, market)->rate.usd_per_h();
  };
  CHECK(usd("a", Market::kOnDemand) == Approx(30));
  CHECK(usd("", Market::kOnDemand) == Approx(28));
  CHECK(usd("a", Market::kSpot) == Approx(7));
  CHECK(usd("", Market::kSpot) == Approx(7));
  // Shipped prices of instances in the file are replaced; the others remain.
  CHECK_FALSE(book.quote("p4d.24xlarge", "us-east-1", Market::kOnDemand));
  CHECK(book.quote("p5.48xlarge", "us-east-1", Market::kOnDemand)->rate.usd_per_h() ==
        Approx(55.04));
  CHECK_FALSE(PriceBook::shipped().quote("a4-highgpu-8g", "", Market::kOnDemand));
}

TEST_CASE("prices of the user need a date and an instance with GPUs") {
  const auto refused = [](const std::string& row) {
    return error_of(PriceBook::over_shipped(kPriceHead + row + "\n", "mine.csv"));
  };
  CHECK(refused("aws,p4d.24xlarge,a,,30,,me,").find("as_of: is empty") != std::string::npos);
  CHECK(refused("aws,p4d.24xlarge,a,,30,,me,soon").find("'soon' is not a date") !=
        std::string::npos);
  const std::string without = refused("aws,m5.large,a,,30,,me,2026-10");
  CHECK(without.starts_with(
      "mine.csv:2: instance_type: 'm5.large' is not a GPU instance of the catalog"));
}

TEST_CASE("a price is stale after half a year, counted from the end of its date") {
  const auto day = [](int y, unsigned m, unsigned d) {
    return Day(std::chrono::year{y} / std::chrono::month{m} / std::chrono::day{d});
  };
  CHECK(day_of("2026") == day(2026, 12, 31));
  CHECK(day_of("2024-02") == day(2024, 2, 29));
  CHECK(day_of("2022..2026-08-03") == day(2022, 12, 31));
  CHECK_FALSE(day_of(""));
  const Quote quote{UsdRate::usd_per_h(1), "a", "2026-01-10", false};
  CHECK_FALSE(stale(quote, day(2026, 1, 10) + days(180)));
  CHECK(*stale(quote, day(2026, 1, 10) + days(181)) ==
        "stale: of 2026-01-10, more than 180 days old");
  const Estimate<Seconds> hour{Seconds::s(3600), Seconds::s(3600), Seconds::s(3600),
                               Provenance::kExtrapolated};
  const auto notes = [&](std::optional<Day> today) {
    std::string all;
    for (const std::string& note :
         account_of(hour, {},
                    {.rented = {{"p5.48xlarge", 1}}, .region = "us-east-1", .today = today})
             .notes)
      all += note + "\n";
    return all;
  };
  CHECK(notes(day(2030, 1, 1)).find("as of 2026-07-20; stale: of 2026-07-20") != std::string::npos);
  CHECK(notes(day(2026, 8, 1)).find("stale") == std::string::npos);
}

TEST_CASE("storage is by the month and transfer by the byte") {
  // 1 TB for 73 h, a tenth of a month, at 0.023 USD/GB-month.
  const UnitPrice kept = *storage_price("aws", "us-east-1");
  CHECK(cost_of_keeping(kept, Bytes::gb(1000), Seconds::s(73 * 3600)).usd() == Approx(2.3));
  CHECK(storage_price("aws", "ap-south-1")->text == kept.text);  // as it is known
  CHECK(cost_of_fetching(*egress_price("aws", "ap-south-1"), Bytes::gb(100)).usd() ==
        Approx(10.93));
  CHECK_FALSE(egress_price("lambda", ""));
}

// 2.4 TFLOP on 4 functions of 10,240 MB, 5.927 vCPUs each at 20 GFLOP/s: 5.061 s. 40 MB of
// gradients: (2 + 2 × 3/4) × 40 MB / 75 MB/s = 1.867 s, and 4 × 30 ms.
TEST_CASE("a job on functions computes, exchanges through a store and starts cold") {
  const std::vector<FunctionService> services = function_services();
  REQUIRE(services.size() == 1);
  const FunctionService& lambda = services.front();
  CHECK(lambda.vcpus == Approx(10240 / 1769.0));
  const FunctionJob job{.step = Flops::tflop(2.4),
                        .samples = 64,
                        .parameters = Bytes::mb(40),
                        .memory = Bytes::gib(2),
                        .steps = 1000};
  const FunctionRun run = run_on_functions(lambda, job, 4).value();
  const double compute = 2.4e12 / (20e9 * 4 * 10240 / 1769.0);
  const double step = compute + 3.5 * 40 / 75 + 0.12;
  CHECK(run.step.value.s() == Approx(step));
  const double start = 0.5 + 40 / 75.0;
  const double time = 1000 * step / (1 - start / 900);
  CHECK(run.time.value.s() == Approx(time));
  const double calls = 4 * std::ceil(time / 900);
  CHECK(run.calls == calls);
  CHECK(run.money.value.usd() == Approx(1.66667e-05 * 10 * time * 4 + 0.2e-6 * calls));
  CHECK(run.step.low < run.step.value);
  CHECK(run.step.value < run.step.high);
  // One alone exchanges nothing.
  CHECK(run_on_functions(lambda, job, 1)->step.value.s() == Approx(4 * compute));

  CHECK(error_of(run_on_functions(lambda, job, 65)).starts_with("65 functions of aws_lambda"));
  FunctionJob large = job;
  large.memory = Bytes::gib(11);
  CHECK(error_of(run_on_functions(lambda, large, 4)) ==
        "11.0 GiB in a function of aws_lambda; at most 10.0 GiB");
  large = job;
  large.step = Flops::tflop(2400);
  CHECK(error_of(run_on_functions(lambda, large, 1)).find("at most 15.0 min with its start") !=
        std::string::npos);
}

}  // namespace
}  // namespace rehearse::cost
