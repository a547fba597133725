#include "sim/cluster/storage_kinds.h"

#include <fmt/core.h>

#include "sim/base/csv_row.h"
#include "sim/cluster/catalog_files.h"

namespace rehearse::cluster {
namespace {

StorageKind read_kind(const CsvRow& row) {
  const std::optional<double> price = row.number("usd_per_1000_requests");
  return {.name = row.required("storage_id"),
          .kind = row.required("kind"),
          .latency = row.required_quantity<Seconds>("latency_ms", 1e-3),
          .connection = row.quantity<ByteRate>("connection_mb_s", 1e6),
          .total = row.quantity<ByteRate>("total_mb_s", 1e6),
          .requests_per_s = row.number("requests_per_s"),
          .request_price = price ? std::optional(Usd::usd(*price / 1000)) : std::nullopt,
          .origin = read_origin(row)};
}

}  // namespace

const std::vector<StorageKind>& storage_kinds() {
  static const std::vector<StorageKind> rows =
      shipped_rows<StorageKind>(catalog_files::storage_csv, "storage.csv", read_kind);
  return rows;
}

Result<const StorageKind*> find_storage(std::string_view name) {
  std::vector<std::string_view> names;
  for (const StorageKind& kind : storage_kinds()) {
    if (kind.name == name) return &kind;
    names.push_back(kind.name);
  }
  return fail(fmt::format("unknown storage '{}'", name), {}, suggest_name(name, names, "storage"));
}

}  // namespace rehearse::cluster
