// Lists rows of a catalog: the fields of each kind of row, filters, and the result in every format.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/output/document.h"
#include "cost/rates.h"
#include "sim/base/units.h"
#include "sim/cluster/origin.h"

namespace rehearse::cli {

/// A cell, and the magnitude in which tables show it. An unknown value is nothing.
struct Cell {
  Value value = std::nullopt;
  double shown_as = 1;
};

/// An empty text makes an empty cell.
Cell text(std::string_view content);
Cell texts(std::vector<std::string> content);
Cell counts(std::vector<std::uint32_t> content);
Cell yes_no(bool content);
Cell number(std::optional<double> content);
Cell quantity(std::optional<double> content, std::string_view unit, double shown_as);

inline Cell quantity(std::optional<Bytes> q, double shown_as) {
  return quantity(q ? std::optional(q->b()) : std::nullopt, "B", shown_as);
}
inline Cell quantity(std::optional<ByteRate> q, double shown_as) {
  return quantity(q ? std::optional(q->bytes_per_s()) : std::nullopt, "B/s", shown_as);
}
inline Cell quantity(std::optional<FlopRate> q, double shown_as) {
  return quantity(q ? std::optional(q->flop_per_s()) : std::nullopt, "FLOP/s", shown_as);
}
inline Cell quantity(std::optional<Watts> q) {
  return quantity(q ? std::optional(q->w()) : std::nullopt, "W", 1);
}
inline Cell quantity(std::optional<Seconds> q, double shown_as) {
  return quantity(q ? std::optional(q->s()) : std::nullopt, "s", shown_as);
}
inline Cell quantity(std::optional<cost::UsdRate> q) {
  return quantity(q ? std::optional(q->usd_per_h()) : std::nullopt, "USD/h", 1);
}
inline Cell quantity(cost::CarbonIntensity q) { return quantity(q.g_per_kwh(), "gCO2e/kWh", 1); }

struct CellField {
  std::string_view key;    ///< in JSON
  std::string_view label;  ///< in tables
  std::string_view unit;   ///< of the numbers of tables; may be empty
  bool on_screen;          ///< else only in CSV and Markdown
};

/// Patterns in which * matches any text; an empty pattern matches everything.
struct Filters {
  std::string name;
  std::string provider;
  std::string gpu;
  std::string region;
};

struct Listing {
  std::string_view kind;
  std::vector<CellField> fields = {};  ///< in the order of JSON
  Value rows = Value::array();
  bool recalled = false;  ///< some rows are recalled from memory
};

Document listing_document(const Listing&);

/// One table of the catalog.
struct Kind {
  std::string_view name;
  std::string_view what;
  std::vector<std::string_view> filters;  ///< options that apply to it: "--gpu"
  /// Ignores filters that the kind does not have. Fails if a filter matches no row.
  std::function<Result<Listing>(const Filters&)> list;
};

std::vector<Kind> cluster_kinds();
std::vector<Kind> cost_kinds();
Kind model_kind();

// --- for those two

/// For every row, the values that a filter looks at; a row may have several, or none.
using RowKeys = std::vector<std::vector<std::string>>;

struct FilterKeys {
  std::string_view option;  ///< "--name"
  const std::string& pattern;
  RowKeys keys;
};

/// Returns for each row whether it passes all filters.
Result<std::vector<bool>> kept_rows(std::string_view kind, std::size_t rows,
                                    const std::vector<FilterKeys>& filters);

/// Adds the cell as a field of its row, if it is known.
void add_cell(const CellField& field, Cell cell, Value& row);

template <class T>
struct CellOf {
  CellField field;
  std::function<Cell(const T&)> value;
};

/// The columns that filters look at; absent filters do not apply.
template <class T>
struct KeysOf {
  using Keys = std::function<std::vector<std::string>(const T&)>;
  Keys name = {};
  Keys provider = {};
  Keys gpu = {};
  Keys region = {};
};

/// An option, its pattern, and the values that it is matched with.
template <class T>
struct Filter {
  std::string_view option;
  std::string Filters::*pattern;
  typename KeysOf<T>::Keys KeysOf<T>::*key;
};
template <class T>
inline constexpr Filter<T> kFilters[] = {{"--name", &Filters::name, &KeysOf<T>::name},
                                         {"--provider", &Filters::provider, &KeysOf<T>::provider},
                                         {"--gpu", &Filters::gpu, &KeysOf<T>::gpu},
                                         {"--region", &Filters::region, &KeysOf<T>::region}};

/// The fields that say where a row comes from; they follow its own fields.
template <class T>
std::vector<CellOf<T>> with_origin(std::vector<CellOf<T>> fields) {
  using cluster::Origin;
  const auto add = [&](CellField field, Cell (*value)(const Origin&)) {
    fields.push_back({field, [value](const T& row) { return value(row.origin); }});
  };
  add({"source", "source", "", true}, [](const Origin& o) { return text(o.source); });
  add({"as_of", "as of", "", true}, [](const Origin& o) { return text(o.as_of); });
  add({"recalled", "recalled", "", false}, [](const Origin& o) { return yes_no(o.recalled()); });
  add({"confidence", "confidence", "", false},
      [](const Origin& o) { return text(o.confidence ? cluster::to_string(*o.confidence) : ""); });
  add({"notes", "notes", "", false}, [](const Origin& o) { return text(o.notes); });
  return fields;
}

template <class T>
Kind make_kind(std::string_view name, std::string_view what, const std::vector<T>& (*rows)(),
               std::vector<CellOf<T>> fields, KeysOf<T> keys) {
  const auto list = [=](const Filters& filters) -> Result<Listing> {
    std::vector<FilterKeys> given;
    for (const auto& [option, pattern, key] : kFilters<T>) {
      if (!(keys.*key) || (filters.*pattern).empty()) continue;
      given.push_back({option, filters.*pattern, {}});
      for (const T& row : rows()) given.back().keys.push_back((keys.*key)(row));
    }
    const auto kept = TRY(kept_rows(name, rows().size(), given));
    Listing listing{.kind = name};
    for (const CellOf<T>& field : fields) listing.fields.push_back(field.field);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (!kept[i]) continue;
      const T& row = rows()[i];
      Value cells = Value::object();
      for (const CellOf<T>& field : fields) add_cell(field.field, field.value(row), cells);
      listing.rows.push_back(std::move(cells));
      if constexpr (requires { row.origin; }) listing.recalled |= row.origin.recalled();
    }
    return listing;
  };
  std::vector<std::string_view> options;
  for (const auto& filter : kFilters<T>)
    if (keys.*filter.key) options.push_back(filter.option);
  return {name, what, std::move(options), list};
}

}  // namespace rehearse::cli
