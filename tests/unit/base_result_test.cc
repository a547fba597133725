#include <catch2/catch.hpp>

#include "sim/base/result.h"

namespace rehearse {
namespace {

TEST_CASE("a diagnostic is one line of its parts") {
  CHECK(to_string(Diagnostic{.file = "job.yaml",
                             .line = 3,
                             .column = 7,
                             .key = "plan.data",
                             .problem = "'x' is not a number",
                             .expected = "a whole number",
                             .nearest = "did you mean '8'?"}) ==
        "job.yaml:3:7: plan.data: 'x' is not a number; a whole number; did you mean '8'?");
  CHECK(to_string(Diagnostic{.problem = "stopped"}) == "stopped");
  // A column without a line would be no place.
  CHECK(to_string(Diagnostic{.file = "a", .column = 7, .problem = "is empty"}) == "a: is empty");
}

TEST_CASE("text of the input does not break the line of a message") {
  CHECK(to_string(Diagnostic{.problem = "unknown key 'a\nb\tc\x7F'", .expected = "\r\n"}) ==
        "unknown key 'a b c '; \x20\x20");
}

TEST_CASE("an error is a line per diagnostic, in their order") {
  Error error;
  error.diagnostics.push_back({.problem = "first"});
  error.diagnostics.push_back({.problem = "second"});
  CHECK(to_string(error) == "first\nsecond");
}

TEST_CASE("a forwarded error is the error") {
  const Result<int> number = fail("no number", "a number");
  const Status status = forward(number);
  REQUIRE_FALSE(status);
  CHECK(to_string(status.error()) == "no number; a number");
}

}  // namespace
}  // namespace rehearse
