// Lists rows of a catalog: the columns of each kind of row, filters, and the result in every
// format.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/output/document.h"
#include "sim/base/result.h"

namespace rehearse::cli {

/// What the text of a cell means, and how it is shown. An empty cell is an unknown value.
struct Form {
  enum class Content { kText, kTexts, kCounts, kYesNo, kNumber, kQuantity };
  Content content = Content::kText;
  std::string_view unit = {};  ///< of the numbers of tables; may be empty
  /// Of a quantity: the unit of JSON, or the column that holds it.
  std::string_view si = {};
  double shown_as = 1;  ///< the magnitude of the unit of tables
};

/// A column of a table of the catalog.
struct CatalogColumn {
  std::string_view from;   ///< its name in the file
  std::string_view key;    ///< in JSON
  std::string_view label;  ///< in tables
  Form form = {};
  Look look = {};  ///< kInTables: only in CSV and Markdown
};

/// A row as its file has it: texts by column.
using Cells = std::map<std::string, std::string, std::less<>>;

/// Patterns in which * matches any text; an empty pattern matches everything.
struct Filters {
  std::string name;
  std::string provider;
  std::string gpu;
  std::string region;
};

/// One table of the catalog.
struct Kind {
  std::string_view name;
  std::string_view what;
  std::vector<CatalogColumn> columns;  ///< in the order of JSON
  std::vector<Cells> (*rows)();
  /// Filters, and the keys of the columns that they look at, where the two differ.
  std::vector<std::pair<std::string_view, std::string_view>> filtered = {};

  /// The column that a filter such as "--gpu" looks at, or null if the kind has none.
  const CatalogColumn* filter(std::string_view option) const;
};

/// All tables, in the order of the help text.
std::vector<Kind> catalog_kinds();

/// The rows of a kind that pass the filters; filters that the kind does not have are ignored. Fails
/// if a filter matches no row.
Result<Document> list_kind(const Kind& kind, const Filters& filters);

}  // namespace rehearse::cli
