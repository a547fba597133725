// The shipped catalogs: every row reads, names are found, and the facts agree with each other.
// Where they do not, the exception is listed here with its reason.
#include "cost/catalog.h"

#include <functional>
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "sim/base/text.h"
#include "sim/cluster/catalog.h"
#include "sim/cluster/storage_kinds.h"

namespace rehearse {
namespace {

using namespace cluster;
using namespace cost;

using Names = std::set<std::string, std::less<>>;

/// The names of the rows for which something holds.
template <class Rows, class Holds>
Names names_where(const Rows& rows, const Holds& holds) {
  Names names;
  for (const auto& row : rows)
    if (holds(row)) names.insert(row.name);
  return names;
}

/// Fails on a key that two rows share.
template <class Rows, class Key>
void check_unique(const Rows& rows, const Key& key) {
  CHECK_FALSE(rows.empty());
  Names seen;
  for (const auto& row : rows) {
    INFO(key(row));
    CHECK(seen.insert(key(row)).second);
  }
}

TEST_CASE("rows of a catalog are unique") {
  check_unique(gpus(), [](const Gpu& g) { return g.name; });
  check_unique(instances(), [](const Instance& i) { return i.name; });
  check_unique(storage_kinds(), [](const StorageKind& s) { return s.name; });
  check_unique(links(), [](const LinkSpec& l) { return l.name; });
  check_unique(sources(), [](const Source& s) { return s.id; });
  check_unique(mig_profiles(), [](const MigProfile& p) { return p.family + " " + p.name; });
  check_unique(instance_prices(), [](const InstancePrice& p) {
    return p.provider + " " + p.instance + " " + p.region + " " + p.zone + " " + p.origin.source;
  });
  check_unique(grid_carbon(), [](const GridCarbon& c) {
    return c.provider + " " + c.region + " " + c.location + " " + c.origin.source + " " +
           std::string(to_string(c.basis));
  });
  check_unique(pues(),
               [](const Pue& p) { return p.provider + " " + p.region + " " + p.origin.source; });
  check_unique(power_coefficients(), [](const PowerCoefficient& p) {
    return p.provider + " " + p.component + " " + p.item;
  });
  check_unique(storage_prices(),
               [](const StoragePrice& p) { return p.provider + " " + p.item + " " + p.region; });
  check_unique(function_prices(), [](const FunctionPrice& p) {
    return p.service + " " + p.architecture + " " + p.item;
  });
}

TEST_CASE("every source is used, and only recalled or defined rows lack a date") {
  Names used;
  const auto use = [&](const auto& rows) {
    for (const auto& row : rows)
      for (const std::string_view id : split(row.origin.source, '+')) used.insert(std::string(id));
  };
  use(gpus());
  use(mig_profiles());
  use(instances());
  use(links());
  use(storage_kinds());
  use(instance_prices());
  use(grid_carbon());
  use(pues());
  use(power_coefficients());
  use(storage_prices());
  use(function_prices());
  for (const Source& source : sources()) {
    INFO(source.id);
    CHECK(used.contains(source.id));
    CHECK(source.as_of.empty() == (source.id == "REC" || source.id == "DEF"));
  }
}

TEST_CASE("dates are years, months, days or ranges of them") {
  for (const char* date : {"2024", "2024-03", "2024-03-25", "2022..2026-08-03", "2024-02..2024-03"})
    CHECK(is_date(date));
  for (const char* other : {"", "24", "2024-3", "2024-13", "2024-00", "2024-03-32", "2024-03-25-1",
                            "2024..", "..2024", "2024..2023", "v8 snapshot", "2024 ", "20x4"})
    CHECK_FALSE(is_date(other));
}

TEST_CASE("an unknown name is answered with the nearest one") {
  CHECK((*find_gpu("h100_sxm5_80"))->memory == Bytes::gb(80));
  CHECK((*find_instance("p5.48xlarge"))->gpu == "h100_sxm5_80");
  CHECK((*find_storage("s3_standard"))->latency == Seconds::ms(150));
  CHECK(to_string(find_storage("s3_standart").error()) ==
        "unknown storage 's3_standart'; did you mean 's3_standard'?");
  CHECK((*find_link("ib_ndr_400"))->kind == LinkKind::kInterNode);
  CHECK((*find_source("REC"))->how_obtained == "recalled");
  CHECK(to_string(find_gpu("h100_sxm5").error()) ==
        "unknown GPU 'h100_sxm5'; did you mean 'h100_sxm5_80'?");
  CHECK(to_string(find_gpu("h100").error()) ==
        "unknown GPU 'h100'; one of h100_pcie_80, h100_sxm5_80, h100_sxm5_96, h100_sxm5_96_500w, "
        "h100_nvl_94");
  CHECK(to_string(find_gpu("quantum").error()) ==
        "unknown GPU 'quantum'; 'rehearse catalog gpus' lists them");
  CHECK(to_string(find_link("ib_ndr_40").error()) ==
        "unknown link 'ib_ndr_40'; did you mean 'ib_ndr_400'?");
  CHECK(to_string(find_instance("p5.48xlrage").error()) ==
        "unknown instance 'p5.48xlrage'; did you mean 'p5.48xlarge'?");
}

// Worked: 989.4 TFLOP/s and 3350 GB/s meet at 295 FLOP per byte.
TEST_CASE("figures have their units") {
  const Gpu& h100 = **find_gpu("h100_sxm5_80");
  CHECK(h100.bf16_tensor->tflop_per_s() == Approx(989.4));
  CHECK(h100.bf16_tensor->si() / h100.memory_rate.si() == Approx(295.3).epsilon(1e-3));
  CHECK(*h100.boost_hz == Approx(1.98e9));
  CHECK(h100.power_limit == Watts::w(700));
  CHECK_FALSE(h100.idle_power);
  REQUIRE(h100.link);
  CHECK(h100.link->count == 18);
  CHECK(h100.link->per_direction == ByteRate::gb_per_s(450));
  CHECK_FALSE((*find_gpu("t4"))->link);
  const Instance& p5 = **find_instance("p5.48xlarge");
  CHECK(p5.network == ByteRate::gbit_per_s(3200));
  CHECK(p5.memory == Bytes::gib(2048));
  CHECK((*find_link("ib_ndr_400"))->nominal == ByteRate::gb_per_s(50));
  CHECK((*find_link("tcp_10g"))->latency->us() == Approx(40));
}

TEST_CASE("known values of a GPU are above zero") {
  for (const Gpu& gpu : gpus()) {
    INFO(gpu.name);
    for (const auto& rate : {gpu.fp64, gpu.fp64_tensor, std::optional(gpu.fp32), gpu.tf32_tensor,
                             gpu.fp16, gpu.fp16_tensor, gpu.bf16_tensor, gpu.fp8_tensor})
      CHECK((!rate || rate->si() > 0));
    CHECK(gpu.memory.si() > 0);
    CHECK(gpu.memory_rate.si() > 0);
    CHECK(gpu.multiprocessors > 0);
    CHECK((!gpu.idle_power || *gpu.idle_power < *gpu.power_limit));
    CHECK(is_date(gpu.release));
    if (gpu.link) CHECK(gpu.link->both_directions == 2 * gpu.link->per_direction);
    if (gpu.link) CHECK(gpu.link->count > 0);
  }
}

TEST_CASE("matrix units are not slower at fewer bits") {
  for (const Gpu& gpu : gpus()) {
    INFO(gpu.name);
    if (gpu.bf16_tensor && gpu.tf32_tensor) CHECK(*gpu.bf16_tensor >= *gpu.tf32_tensor);
    if (gpu.fp8_tensor) CHECK(*gpu.fp8_tensor >= *gpu.bf16_tensor);
    // CDNA 1 multiplies BF16 at half the rate of FP16.
    if (gpu.bf16_tensor && gpu.name != "mi100") CHECK(gpu.bf16_tensor == gpu.fp16_tensor);
  }
}

TEST_CASE("MIG profiles fit into their GPUs") {
  for (const MigProfile& p : mig_profiles()) {
    INFO(p.family << " " << p.name);
    CHECK(p.compute_slices <= p.compute_slices_total);
    CHECK(p.memory_slices <= p.memory_slices_total);
    CHECK(p.placement_size <= p.memory_slices_total);
    for (const std::uint32_t start : p.placement_starts)
      CHECK(start + p.placement_size <= p.memory_slices_total);
    CHECK(p.max_instances > 0);
    CHECK(p.max_instances <= p.placement_starts.size());
    CHECK(p.max_instances * p.compute_slices <= p.compute_slices_total);
    CHECK((!p.usable_memory || *p.usable_memory < 1.08 * p.memory));  // GiB against GB
  }
}

TEST_CASE("every MIG family belongs to a GPU that has its memory and multiprocessors") {
  std::map<std::string, const Gpu*> owners;
  for (const Gpu& gpu : gpus())
    if (!gpu.mig_family.empty()) {
      INFO(gpu.name);
      CHECK(gpu.mig_instances);
      owners[gpu.mig_family] = &gpu;
      const auto profiles = mig_profiles_of(gpu);
      CHECK_FALSE(profiles.empty());
      for (const MigProfile* p : profiles) {
        CHECK(p->memory <= gpu.memory);
        CHECK((!p->multiprocessors || *p->multiprocessors <= gpu.multiprocessors));
        CHECK(p->max_instances <= *gpu.mig_instances);
      }
    }
  for (const MigProfile& profile : mig_profiles()) CHECK(owners.contains(profile.family));
  CHECK(mig_profiles_of(**find_gpu("t4")).empty());
}

TEST_CASE("GPUs with MIG whose profiles are not known") {
  const Names unknown =
      names_where(gpus(), [](const Gpu& g) { return g.mig_instances && g.mig_family.empty(); });
  CHECK(unknown == Names{
                       "h100_pcie_80",  // 114 SMs: the listed profiles of 80 GB are for 132
                       "h100_sxm5_96",  // no listing seen
                       "h100_sxm5_96_500w",
                       "b300",
                       "rtx_pro_6000_server",
                   });
}

TEST_CASE("instances have GPUs of the catalog") {
  for (const Instance& instance : instances()) {
    INFO(instance.name);
    const auto gpu = find_gpu(instance.gpu);
    REQUIRE(gpu);
    CHECK(instance.gpu_count > 0);
    CHECK((!instance.vcpus || *instance.vcpus > 0));
    CHECK((!instance.memory || instance.memory->si() > 0));
    CHECK((!instance.network || instance.network->si() > 0));
    if (instance.gpu_count <= 1) CHECK(instance.gpu_interconnect == "none");
    if (instance.gpu_count > 1) CHECK(instance.gpu_interconnect != "none");
    if (!instance.gpu_link_both_directions) continue;
    REQUIRE((*gpu)->link);
    CHECK(*instance.gpu_link_both_directions == (*gpu)->link->both_directions);
  }
}

TEST_CASE("links do not exceed their nominal rate") {
  const Names faster = names_where(links(), [](const LinkSpec& l) {
    return l.achieved && l.per_direction && *l.achieved > *l.per_direction;
  });
  // The switch adds up what passes: the bus bandwidth of an all-reduce, not a rate of the wire.
  CHECK(faster == Names{"nvlink4_h100_nvls_allreduce"});
}

TEST_CASE("the rate of one direction follows from the nominal rate") {
  const Names odd = names_where(links(), [](const LinkSpec& l) {
    if (!l.nominal) return l.per_direction.has_value();
    const double directions = l.nominal_scope.starts_with("both directions") ? 2 : 1;
    return !l.per_direction || std::abs(*l.nominal / *l.per_direction / directions - 1) > 1e-9;
  });
  CHECK(odd == Names{
                   "ib_fdr_56",                 // 64/66 coding leaves 6.8 of 7 GB/s
                   "qpi_upi_cross_socket_skl",  // NCCL's constant; no nominal rate is published
               });
  const Names no_rate = names_where(links(), [](const LinkSpec& l) { return !l.per_direction; });
  CHECK(no_rate == Names{"ib_switch_hop"});  // a latency alone
}

TEST_CASE("prices belong to instances of the catalog, or to an added GPU") {
  Names unknown, priced;
  for (const InstancePrice& price : instance_prices()) {
    INFO(price.instance);
    CHECK((!price.on_demand || price.on_demand->usd_per_h() > 0));
    CHECK((!price.spot || price.spot->usd_per_h() > 0));
    const auto gpu = price.gpu();
    if (!gpu) unknown.insert(price.instance);
    const auto instance = find_instance(price.instance);
    if (!instance) {
      CHECK(price.instance.starts_with("gpu:"));
      continue;
    }
    CHECK((*instance)->provider == price.provider);
    CHECK(gpu == (*instance)->gpu);
    priced.insert(price.instance);
  }
  CHECK(unknown.empty());
  const Names unpriced =
      names_where(instances(), [&](const Instance& i) { return !priced.contains(i.name); });
  CHECK(unpriced == Names{"trn2.48xlarge",                      // no public on-demand price
                          "a3-ultragpu-8g", "a4-highgpu-8g"});  // reserved only
}

TEST_CASE("spot prices are not above on-demand prices") {
  Names above, equal;
  for (const InstancePrice& price : instance_prices()) {
    if (!price.on_demand || !price.spot) continue;
    if (*price.spot > *price.on_demand) above.insert(price.instance + " " + price.zone);
    if (*price.spot == *price.on_demand) equal.insert(price.instance + " " + price.zone);
  }
  // 27.433 against 27.43298: the spot list rounds.
  CHECK(above == Names{"p4d.24xlarge euc1-az2"});
  CHECK(equal.size() == 7);  // zones without spare capacity
}

// Worked: 55.04 USD/h for 8 GPUs is 6.88 per GPU; a quarter of an hour costs 13.76.
TEST_CASE("prices have their units") {
  for (const InstancePrice& price : instance_prices())
    if (price.instance == "p5.48xlarge" && price.region == "us-east-1" && price.zone.empty()) {
      CHECK(price.on_demand->usd_per_h() / price.gpu_count() == Approx(6.88));
      CHECK((*price.on_demand * Seconds::s(900)).usd() == Approx(13.76));
    }
}

TEST_CASE("grid carbon is not below zero nor above the dirtiest grid") {
  Names zero;
  for (const GridCarbon& grid : grid_carbon()) {
    INFO(grid.provider << " " << grid.region);
    CHECK((!grid.region.empty() || !grid.location.empty()));
    CHECK(grid.intensity.g_per_kwh() < 1310);  // Turkmenistan, 1306 as published: old gas plants
    if (grid.intensity.g_per_kwh() == 0) zero.insert(grid.provider + grid.region);
  }
  CHECK(zero == Names{
                    "CAF",                         // as published: nearly all power from water
                    "gcpnorthamerica-northeast1",  // all of it carbon-free, by the provider's count
                });
}

TEST_CASE("power at full load is above idle power, and PUE above one") {
  for (const PowerCoefficient& p : power_coefficients())
    if (p.min) CHECK(*p.min < p.max);
  for (const Pue& p : pues()) {
    CHECK(p.pue > 1);
    CHECK(p.pue < 2);
  }
}

TEST_CASE("only prices that are free by definition are zero") {
  for (const StoragePrice& p : storage_prices())
    CHECK((p.price == 0) == (p.origin.source == "DEF"));
  for (const FunctionPrice& p : function_prices())
    CHECK((p.value == 0) == (p.origin.source == "DEF"));
}

TEST_CASE("a malformed catalog is refused with line and column") {
  const auto links_of = [](const std::string& row) {
    const auto read = parse_links(
        "link_id,kind,nominal,nominal_unit,nominal_scope,per_direction_gbs,achieved_gbs,latency_us,"
        "latency_kind,source,as_of,confidence,notes,start_up_us,message_cost_us,half_rate_kib,"
        "network\n" +
            row + ",,,,\n",
        "links.csv");
    return read ? "" : to_string(read.error());
  };
  CHECK(links_of("a,inter_node,100,Gbit/s,per port,12.5,12,1,,REC,2024,low,").empty());
  CHECK(links_of("a,internode,100,Gbit/s,per port,12.5,12,1,,REC,2024,low,") ==
        "links.csv:2: kind: unknown value 'internode'; did you mean 'inter_node'?");
  CHECK(links_of("a,inter_node,100,GBit/s,per port,12.5,12,1,,REC,2024,low,")
            .starts_with("links.csv:2: nominal_unit: unknown value 'GBit/s'"));
  CHECK(links_of("a,inter_node,100,,per port,12.5,12,1,,REC,2024,low,") ==
        "links.csv:2: nominal_unit: is empty; GB/s or Gbit/s");
  CHECK(links_of("a,inter_node,,,,12.5,12,1,,RECC+NCCL-TOPO,2024,low,") ==
        "links.csv:2: source: unknown source 'RECC'; an id of sources.csv; did you mean 'REC'?");
  CHECK(links_of("a,inter_node,,,,12.5,12,1,,REC,last year,low,")
            .starts_with("links.csv:2: as_of: 'last year' is not a date"));
  CHECK(links_of("a,inter_node,,,,12.5,12,1,,REC,2024,sure,")
            .starts_with("links.csv:2: confidence: unknown value 'sure'"));
  const auto price = parse_instance_prices(
      "provider,instance_type,region,zone,ondemand_usd_per_h,spot_usd_per_h,source,as_of,"
      "confidence,notes\naws,p5.48xlarge,us-east-1,,,,REC,2024,,\n",
      "prices.csv");
  REQUIRE_FALSE(price);
  CHECK(to_string(price.error()) ==
        "prices.csv:2: ondemand_usd_per_h: no price; an on-demand or a spot price");
}

TEST_CASE("recalled figures are marked") {
  CHECK(Origin{.source = "SKY-AZ+REC", .as_of = "", .confidence = {}, .notes = ""}.recalled());
  CHECK_FALSE(Origin{.source = "RECORD", .as_of = "", .confidence = {}, .notes = ""}.recalled());
}

}  // namespace
}  // namespace rehearse
