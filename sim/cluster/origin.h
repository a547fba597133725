// The origin of a catalog value: the sources of its row, their date, and their reliability.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/csv_row.h"
#include "sim/base/result.h"

namespace rehearse::cluster {

struct Source {
  std::string id;            ///< as rows name it, such as "KARP-AWS"
  std::string where;         ///< a repository with its commit, a document, a page
  std::string what;          ///< which part of it
  std::string as_of;         ///< as Origin::as_of
  std::string how_obtained;  ///< "fetched", "looked up", "recalled", …
};

enum class Confidence { kLow, kMedium, kHigh };
std::string_view to_string(Confidence);

struct Origin {
  std::string source;  ///< ids of sources, joined by '+'
  /// "2024", "2024-03", "2024-03-25", or a range "2022..2026-08-03"; empty for facts that hold by
  /// definition.
  std::string as_of;
  std::optional<Confidence> confidence = {};  ///< absent: that of the source
  std::string notes = {};

  /// Whether some of it was recalled and not read again when the row was written. Such a value is a
  /// default to override.
  bool recalled() const;
};

/// sources.csv, in its order. The parsed table is kept for the life of the program.
const std::vector<Source>& sources();
/// Fails with the nearest id.
Result<const Source*> find_source(std::string_view id);

/// Reads the columns source, as_of, confidence and notes of a row. Records unknown sources and
/// invalid dates.
Origin read_origin(const CsvRow& row);

/// "2024", "2024-03", "2024-03-25", or two of them with ".." between, the earlier first.
bool is_date(std::string_view text);

}  // namespace rehearse::cluster
