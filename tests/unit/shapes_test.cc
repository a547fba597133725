#include "profiler/trace/shapes.h"

#include <catch2/catch.hpp>

namespace rehearse::trace {
namespace {

TEST_CASE("shapes with any whitespace have one spacing") {
  for (const char* text : {"[[32, 3], []]", "[[32,3],[]]", " [ [32 ,3] ,\n[ ] ] "})
    CHECK(evenly_spaced(text) == "[[32, 3], []]");
  CHECK(evenly_spaced("1 2") == "1 2");  // not 12
  CHECK(evenly_spaced("[[3, 23]]") != evenly_spaced("[[32, 3]]"));
  CHECK(evenly_spaced("").empty());
}

}  // namespace
}  // namespace rehearse::trace
