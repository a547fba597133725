// Rows of a catalog for people and programs: which fields a kind of row has, which rows a user's
// filters leave, and the result in every format.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/output/json.h"
#include "cli/output/table.h"
#include "cost/rates.h"
#include "sim/base/units.h"
#include "sim/cluster/origin.h"

namespace rehearse::cli {

/// A cell. Numbers with a unit are in that unit, which JSON shows; `shown_as` is the magnitude of
/// the unit in the heading, which tables and CSV use. Nothing is what is not known.
struct Value {
  using Content = std::variant<std::monostate, std::string, bool, double, std::vector<std::string>,
                               std::vector<std::uint32_t>>;
  Content content = {};
  std::string_view unit = {};
  double shown_as = 1;
};

/// Empty texts are nothing.
Value text(std::string_view content);
Value texts(std::vector<std::string> content);
Value counts(std::vector<std::uint32_t> content);
Value yes_no(bool content);
Value number(std::optional<double> content);
Value quantity(std::optional<double> content, std::string_view unit, double shown_as);

inline Value quantity(std::optional<Bytes> q, double shown_as) {
  return quantity(q ? std::optional(q->b()) : std::nullopt, "B", shown_as);
}
inline Value quantity(std::optional<ByteRate> q, double shown_as) {
  return quantity(q ? std::optional(q->bytes_per_s()) : std::nullopt, "B/s", shown_as);
}
inline Value quantity(std::optional<FlopRate> q, double shown_as) {
  return quantity(q ? std::optional(q->flop_per_s()) : std::nullopt, "FLOP/s", shown_as);
}
inline Value quantity(std::optional<Watts> q) {
  return quantity(q ? std::optional(q->w()) : std::nullopt, "W", 1);
}
inline Value quantity(std::optional<Seconds> q, double shown_as) {
  return quantity(q ? std::optional(q->s()) : std::nullopt, "s", shown_as);
}
inline Value quantity(std::optional<cost::UsdRate> q) {
  return quantity(q ? std::optional(q->usd_per_h()) : std::nullopt, "USD/h", 1);
}
inline Value quantity(cost::CarbonIntensity q) { return quantity(q.g_per_kwh(), "gCO2e/kWh", 1); }

struct Field {
  std::string_view key;       ///< in JSON
  std::string_view heading;   ///< in CSV and Markdown, with its unit
  std::string_view in_table;  ///< heading at a terminal; empty: not shown there
  Align align = Align::kRight;
};

/// Patterns in which * is any text; empty: all.
struct Filters {
  std::string name;
  std::string provider;
  std::string gpu;
  std::string region;
};

struct Listing {
  std::string_view kind;
  std::vector<Field> fields;
  std::vector<std::vector<Value>> rows;
  bool recalled = false;  ///< some of its rows are
};

std::string listing_text(const Listing&);
Table listing_table(const Listing&);
Json listing_json(const Listing&);

/// One of the tables of the catalog.
struct Kind {
  std::string_view name;
  std::string_view what;
  /// Fails on a filter that the kind does not have, and on one that no row matches.
  std::function<Result<Listing>(const Filters&)> list;
};

std::vector<Kind> cluster_kinds();
std::vector<Kind> cost_kinds();

// --- for those two

/// The values of every row that a filter looks at; a row may have several, or none.
using RowKeys = std::vector<std::vector<std::string>>;

struct FilterKeys {
  std::string_view option;  ///< "--name"
  const std::string& pattern;
  std::optional<RowKeys> keys;  ///< absent: the kind has no such filter
};

/// Which rows all filters leave.
Result<std::vector<bool>> kept_rows(std::string_view kind, std::size_t rows,
                                    const std::vector<FilterKeys>& filters);

template <class T>
struct FieldOf {
  Field field;
  std::function<Value(const T&)> value;
};

/// What the filters look at; those that are absent do not apply.
template <class T>
struct KeysOf {
  using Keys = std::function<std::vector<std::string>(const T&)>;
  Keys name;
  Keys provider = {};
  Keys gpu = {};
  Keys region = {};
};

/// The fields on where a row comes from, behind its own.
template <class T>
std::vector<FieldOf<T>> with_origin(std::vector<FieldOf<T>> fields) {
  using cluster::Origin;
  const auto add = [&](Field field, Value (*value)(const Origin&)) {
    fields.push_back({field, [value](const T& row) { return value(row.origin); }});
  };
  add({"source", "source", "source", Align::kLeft}, [](const Origin& o) { return text(o.source); });
  add({"as_of", "as of", "as of", Align::kLeft}, [](const Origin& o) { return text(o.as_of); });
  add({"recalled", "recalled", "", Align::kLeft},
      [](const Origin& o) { return yes_no(o.recalled()); });
  add({"confidence", "confidence", "", Align::kLeft},
      [](const Origin& o) { return text(o.confidence ? cluster::to_string(*o.confidence) : ""); });
  add({"notes", "notes", "", Align::kLeft}, [](const Origin& o) { return text(o.notes); });
  return fields;
}

template <class T>
Kind make_kind(std::string_view name, std::string_view what, const std::vector<T>& (*rows)(),
               std::vector<FieldOf<T>> fields, KeysOf<T> keys) {
  const auto list = [=](const Filters& filters) -> Result<Listing> {
    const auto keys_of = [&](const typename KeysOf<T>::Keys& key) -> std::optional<RowKeys> {
      if (!key) return std::nullopt;
      RowKeys all;
      for (const T& row : rows()) all.push_back(key(row));
      return all;
    };
    const auto kept = kept_rows(name, rows().size(),
                                {{"--name", filters.name, keys_of(keys.name)},
                                 {"--provider", filters.provider, keys_of(keys.provider)},
                                 {"--gpu", filters.gpu, keys_of(keys.gpu)},
                                 {"--region", filters.region, keys_of(keys.region)}});
    if (!kept) return forward(kept);
    Listing listing{.kind = name, .fields = {}, .rows = {}};
    for (const FieldOf<T>& field : fields) listing.fields.push_back(field.field);
    for (std::size_t i = 0; i < kept->size(); ++i) {
      if (!(*kept)[i]) continue;
      const T& row = rows()[i];
      std::vector<Value>& values = listing.rows.emplace_back();
      for (const FieldOf<T>& field : fields) values.push_back(field.value(row));
      if constexpr (requires { row.origin; }) listing.recalled |= row.origin.recalled();
    }
    return listing;
  };
  return {name, what, list};
}

}  // namespace rehearse::cli
