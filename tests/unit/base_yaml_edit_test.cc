// Changes of single values in YAML.
#include <catch2/catch.hpp>

#include "sim/base/yaml_edit.h"

namespace rehearse {
namespace {

TEST_CASE("a change replaces, adds or removes one value of a YAML text") {
  const std::string text = "a: {b: 1, c: x}  # gone\nd:\n  e: [1, 2]\n";
  const auto changed = [&](const std::vector<YamlChange>& changes) {
    const Result<std::string> result = with_changes(text, changes);
    REQUIRE(result);
    return *result;
  };
  CHECK(changed({}) == text);
  CHECK(changed({{"a.b", "2"}}) == "a: {b: 2, c: x}\nd:\n  e: [1, 2]\n");
  CHECK(changed({{"a.b", ""}, {"d", ""}}) == "a: {c: x}\n");
  CHECK(changed({{"f.g.h", "25 MiB"}}) ==
        "a: {b: 1, c: x}\nd:\n  e: [1, 2]\nf: {g: {h: 25 MiB}}\n");
  // A mapping instead of a word.
  CHECK(changed({{"a.c", ""}, {"a.c.kind", "x"}}) == "a: {b: 1, c: {kind: x}}\nd:\n  e: [1, 2]\n");
  CHECK(changed({{"a.z.y", ""}}) == "a: {b: 1, c: x}\nd:\n  e: [1, 2]\n");
  // A value that looks like YAML stays a text.
  CHECK(changed({{"a.b", "{x: 1}"}}) == "a: {b: \"{x: 1}\", c: x}\nd:\n  e: [1, 2]\n");
}

TEST_CASE("a path through something that is no mapping is refused, and so is what is not YAML") {
  for (const char* path : {"a.b.c", "d.e.f"}) {
    const Result<std::string> result = with_changes("a: {b: 1}\nd: {e: [1]}\n", {{path, "1"}});
    REQUIRE(!result);
    CHECK(to_string(result.error()).find("not a mapping") != std::string::npos);
  }
  CHECK(!with_changes("a: {", {{"a", "1"}}));
  CHECK(!with_changes("just text", {{"a", "1"}}));
}

}  // namespace
}  // namespace rehearse
