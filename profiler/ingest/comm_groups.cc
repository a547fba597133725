#include "profiler/ingest/comm_groups.h"

#include <set>

#include <fmt/core.h>
#include <simdjson.h>

#include "sim/base/file.h"
#include "sim/base/utf8.h"

namespace rehearse::ingest {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view kExpected = "lists of ranks, such as {\"tp\": [[0, 1], [2, 3]]}";

}  // namespace

Result<CommGroups> parse_comm_groups(std::string_view text, const std::string& name) {
  const auto wrong = [&](std::string key, std::string problem) {
    return fail(Diagnostic{.file = name,
                           .key = std::move(key),
                           .problem = std::move(problem),
                           .expected = std::string(kExpected)});
  };
  dom::parser parser;
  dom::element document;
  const simdjson::padded_string padded(text);
  if (const auto error = parser.parse(padded).get(document))
    return wrong("", fmt::format("is not valid JSON ({})", simdjson::error_message(error)));
  dom::object object;
  if (document.get_object().get(object)) return wrong("", "is not a JSON object");
  CommGroups groups;
  for (const auto [raw_key, value] : object) {
    std::uint64_t replaced = 0;
    const std::string key = sound_text(raw_key, replaced);
    dom::array array;
    if (value.get_array().get(array) || array.size() == 0)
      return wrong(key, "is not a list of ranks");
    std::vector<dom::array> lists;
    for (const dom::element element : array) {
      dom::array list;
      if (!element.get_array().get(list)) lists.push_back(list);
    }
    if (lists.empty())
      lists.push_back(array);
    else if (lists.size() != array.size())
      return wrong(key, "mixes ranks and lists of ranks");
    std::set<std::uint32_t> seen;
    std::vector<std::vector<std::uint32_t>>& sets = groups[key];
    if (!sets.empty()) return wrong(key, "appears twice");
    for (const dom::array& list : lists) {
      std::vector<std::uint32_t>& members = sets.emplace_back();
      for (const dom::element element : list) {
        std::uint64_t rank = 0;
        constexpr std::uint64_t kMaxRank = 1U << 24;
        if (element.get_uint64().get(rank) || rank > kMaxRank)
          return wrong(key, "contains something that is not a rank");
        if (!seen.insert(static_cast<std::uint32_t>(rank)).second)
          return wrong(key, fmt::format("names rank {} twice", rank));
        members.push_back(static_cast<std::uint32_t>(rank));
      }
      if (members.empty()) return wrong(key, "contains an empty group");
    }
  }
  return groups;
}

Result<CommGroups> load_comm_groups(const std::filesystem::path& path) {
  const std::string text = TRY(read_file(path));
  return parse_comm_groups(text, path.string());
}

}  // namespace rehearse::ingest
