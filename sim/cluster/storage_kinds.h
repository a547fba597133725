// Kinds of storage that a job may read its samples from, as `rehearse catalog storage` lists them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/cluster/origin.h"

namespace rehearse::cluster {

/// An absent value is unknown, or no limit.
struct StorageKind {
  std::string name;
  std::string kind;                         ///< "object", "block", "disk", "file_system"
  Seconds latency;                          ///< from a small read to its first byte
  std::optional<ByteRate> connection = {};  ///< rate of one request
  std::optional<ByteRate> total = {};       ///< total rate of concurrent reads
  std::optional<double> requests_per_s = {};
  std::optional<Usd> request_price = {};
  Origin origin;
};

/// storage.csv, in its order. The parsed table is kept for the life of the program.
const std::vector<StorageKind>& storage_kinds();
/// Fails with the nearest name.
Result<const StorageKind*> find_storage(std::string_view name);

}  // namespace rehearse::cluster
