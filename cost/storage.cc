#include "cost/storage.h"

#include <fmt/core.h>

namespace rehearse::cost {
namespace {

constexpr double kMonth = 730 * 3600.0;

/// The bytes of a unit such as "USD/GB-month"; nothing if it is not a price of bytes.
std::optional<double> bytes_in(std::string_view unit) {
  if (unit.starts_with("USD/GiB")) return 1073741824.0;
  if (unit == "USD/GB" || unit == "USD/GB-month") return 1e9;
  return std::nullopt;
}

template <class Meant>
std::optional<UnitPrice> find_price(std::string_view provider, std::string_view region,
                                    const Meant& meant) {
  const StoragePrice* best = nullptr;
  for (const StoragePrice& price : storage_prices()) {
    if (price.provider != provider || !meant(price) || !bytes_in(price.unit)) continue;
    if (best == nullptr || (price.region == region && best->region != region)) best = &price;
  }
  if (best == nullptr) return std::nullopt;
  return UnitPrice{best->price / *bytes_in(best->unit),
                   fmt::format("{} in {}, {:g} {}, of {}", best->item, best->region, best->price,
                               best->unit, best->origin.as_of)};
}

/// The plain tier of each provider's object store; for providers without one, whatever they have.
bool is_plain_store(const StoragePrice& price) {
  if (price.kind != "storage") return false;
  const std::string_view item = price.item;
  if (price.provider == "aws") return item == "s3_standard";
  if (price.provider == "gcp") return item == "gcs_standard_regional";
  if (price.provider == "azure") return item == "blob_hot_lrs";
  return true;
}

}  // namespace

std::optional<UnitPrice> storage_price(std::string_view provider, std::string_view region) {
  return find_price(provider, region, is_plain_store);
}

std::optional<UnitPrice> egress_price(std::string_view provider, std::string_view region) {
  return find_price(provider, region, [](const StoragePrice& price) {
    return price.kind == "egress" && std::string_view(price.item).starts_with("egress_internet");
  });
}

Usd cost_of_keeping(const UnitPrice& price, Bytes bytes, Seconds lasts) {
  return Usd::usd(price.usd_per_byte * bytes.b() * (lasts.s() / kMonth));
}

Usd cost_of_fetching(const UnitPrice& price, Bytes bytes) {
  return Usd::usd(price.usd_per_byte * bytes.b());
}

}  // namespace rehearse::cost
