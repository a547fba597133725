// Stored and downloaded data: checkpoints and data sets in a cloud's object store, and
// transfer out of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost/catalog.h"

namespace rehearse::cost {

/// A catalog price with a label.
struct UnitPrice {
  double usd_per_byte;  ///< for storage: per month of 730 h
  std::string text;     ///< "s3_standard in us-east-1, 0.023 USD/GB-month, of 2023..2025"
};

/// Of the provider's plain object store; in the region, else as the catalog has it anywhere.
std::optional<UnitPrice> storage_price(std::string_view provider, std::string_view region);
/// Of transfer to the internet, at the first tier: more costs less.
std::optional<UnitPrice> egress_price(std::string_view provider, std::string_view region);

Usd cost_of_keeping(const UnitPrice& price, Bytes bytes, Seconds lasts);
Usd cost_of_fetching(const UnitPrice& price, Bytes bytes);

}  // namespace rehearse::cost
