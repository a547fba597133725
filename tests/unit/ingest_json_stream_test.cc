#include <catch2/catch.hpp>

#include "profiler/ingest/json_stream.h"

namespace rehearse::ingest {
namespace {

/// Counts elements and looks at none.
class Counting final : public JsonHandler {
 public:
  bool streams(std::string_view key) const override { return key == "items"; }
  void member(std::string_view, JsonValue&) override { ++members; }
  bool element(JsonValue&) override {
    ++elements;
    return true;
  }

  int members = 0;
  int elements = 0;
};

TEST_CASE("a document truncated at any byte keeps the window, even if elements are not read") {
  const std::string json =
      R"({"a": [1, {"b": 2}], "items": [{"x": [1, {"y": "z]}"}]}, {"x": {"y": []}}, {}], "c": "d"})";
  for (std::size_t size = 0; size <= json.size(); ++size) {
    INFO(json.substr(0, size));
    const auto bytes = bytes_in_memory(std::string_view(json).substr(0, size));
    Counting handler;
    const Result<JsonDamage> damage = JsonStream(*bytes, "cut.json", handler).read({});
    REQUIRE(damage.has_value() == (size > 0));
    if (!damage) continue;
    CHECK(damage->truncated.empty() == (size == json.size()));
    CHECK(handler.elements <= 3 + (damage->truncated.empty() ? 0 : 1));
  }
  Counting whole;
  REQUIRE(JsonStream(*bytes_in_memory(json), "whole.json", whole).read({}));
  CHECK(whole.elements == 3);
  CHECK(whole.members == 2);
}

TEST_CASE("a file that is read as a whole has a largest size") {
  const std::string bytes(5000, 'x');
  CHECK(read_all(*bytes_in_memory(bytes), "table.csv", 5000) == bytes);
  const Result<std::string> more = read_all(*bytes_in_memory(bytes), "table.csv", 4999);
  REQUIRE_FALSE(more);
  CHECK(to_string(more.error()).find("table.csv: is too large; at most ") != std::string::npos);
}

}  // namespace
}  // namespace rehearse::ingest
