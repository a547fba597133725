#include <algorithm>
#include <span>
#include <utility>

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

/// The text, and then so many NUL bytes, as at the end of a sparse file.
class Sparse final : public ByteSource {
 public:
  Sparse(std::string_view text, std::size_t nul) : text_(text), left_(text.size() + nul) {}
  std::size_t read(std::span<char> into) override {
    const std::size_t n = std::min(into.size(), left_), of_text = std::min(n, text_.size());
    std::ranges::fill(into.first(n), '\0');
    std::ranges::copy(text_.substr(0, of_text), into.begin());
    text_.remove_prefix(of_text);
    left_ -= n;
    return n;
  }
  double share() const override { return 0; }
  std::string damage() const override { return {}; }
  std::size_t left() const { return left_; }

 private:
  std::string_view text_;
  std::size_t left_;
};

TEST_CASE("nothing is read after NUL bytes, or after a value that is too large") {
  constexpr std::size_t kNul = std::size_t{1} << 30;
  const std::pair<std::string_view, std::string> cases[] = {
      {R"({"items": [{"x": 1},)", "sparse.json:1 (NUL bytes)"},
      {R"({"items": [{"x": 1}, {"y": ")", "sparse.json:1 (a value of more than 256 MiB)"}};
  for (const auto& [text, says] : cases) {
    Sparse bytes(text, kNul);
    Counting handler;
    const Result<JsonDamage> damage = JsonStream(bytes, "sparse.json", handler).read({});
    REQUIRE(damage);
    CHECK(handler.elements <= 4);
    CHECK(damage->malformed == 0);
    CHECK(damage->truncated == says);
    CHECK(bytes.left() > kNul / 2);
  }
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
