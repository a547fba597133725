#include "sim/cluster/origin.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "sim/base/text.h"
#include "sim/cluster/catalog_files.h"

namespace rehearse::cluster {
namespace {

constexpr std::array<std::string_view, 3> kConfidences = {"low", "medium", "high"};
constexpr std::string_view kRecalled = "REC";
constexpr std::string_view kDefinition = "DEF";

bool is_number(std::string_view text, unsigned low, unsigned high) {
  unsigned value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  return low <= value && value <= high;
}

bool is_day(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '-');
  if (parts.size() > 3 || parts[0].size() != 4 || !is_number(parts[0], 1990, 2099)) return false;
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (parts[i].size() != 2 || !is_number(parts[i], 1, i == 1 ? 12 : 31)) return false;
  return true;
}

Source read_source(const CsvRow& row) {
  Source source{.id = row.required("source_id"),
                .where = row.required("where"),
                .what = row.text("what"),
                .as_of = row.text("as_of"),
                .how_obtained = row.required("how_obtained")};
  if (!source.as_of.empty() && !is_date(source.as_of))
    row.report("as_of", fmt::format("'{}' is not a date", source.as_of), "such as 2024-03");
  return source;
}

}  // namespace

std::string_view to_string(Confidence confidence) {
  return kConfidences[static_cast<std::size_t>(confidence)];
}

bool Origin::recalled() const {
  const std::vector<std::string_view> ids = split(source, '+');
  return std::ranges::find(ids, kRecalled) != ids.end();
}

bool is_date(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return is_day(text);
  const std::string_view from = text.substr(0, dots), to = text.substr(dots + 2);
  return is_day(from) && is_day(to) && from < to;
}

const std::vector<Source>& sources() {
  static const std::vector<Source> kSources =
      shipped_rows<Source>(catalog_files::sources_csv, "sources.csv", read_source);
  return kSources;
}

Result<const Source*> find_source(std::string_view id) {
  for (const Source& source : sources())
    if (source.id == id) return &source;
  std::vector<std::string_view> ids;
  ids.reserve(sources().size());
  for (const Source& source : sources()) ids.push_back(source.id);
  return fail(fmt::format("unknown source '{}'", id), {}, suggest_name(id, ids, "sources"));
}

Origin read_origin(const CsvRow& row) {
  Origin origin{
      .source = row.required("source"), .as_of = row.text("as_of"), .notes = row.text("notes")};
  if (!origin.source.empty())
    for (const std::string_view id : split(origin.source, '+'))
      if (const auto source = find_source(id); !source) {
        const Diagnostic& unknown = source.error().diagnostics.front();
        row.report("source", unknown.problem, "an id of sources.csv", unknown.nearest);
      }
  const bool needs_none = origin.as_of.empty() && origin.source == kDefinition;
  if (!needs_none && !is_date(origin.as_of))
    row.report("as_of", fmt::format("'{}' is not a date", origin.as_of),
               "such as 2024, 2024-03, 2024-03-25 or 2022..2024-03");
  if (!row.text("confidence").empty())
    origin.confidence = static_cast<Confidence>(row.choice("confidence", kConfidences));
  return origin;
}

}  // namespace rehearse::cluster
