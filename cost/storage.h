// Stored and downloaded data: checkpoints and data sets in a cloud's object store, and
// transfer out of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cost/catalog.h"

namespace rehearse::cost {

/// A catalog price with a label.
struct UnitPrice {
  double usd_per_byte;  ///< for storage: per month of 730 h
  std::string text;     ///< "s3_standard in us-east-1, 0.023 USD/GB-month, of 2023..2025"
};

/// The price of the provider's standard object store in the region, else of any region in the
/// catalog.
std::optional<UnitPrice> storage_price(std::string_view provider, std::string_view region);
/// The price of transfer to the internet at the first tier; larger volumes cost less.
std::optional<UnitPrice> egress_price(std::string_view provider, std::string_view region);

Usd cost_of_keeping(const UnitPrice& price, Bytes bytes, Seconds lasts);
Usd cost_of_fetching(const UnitPrice& price, Bytes bytes);

}  // namespace rehearse::cost
