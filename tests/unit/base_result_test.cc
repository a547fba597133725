#include <catch2/catch.hpp>

#include "sim/base/result.h"
#include "sim/base/utf8.h"

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

TEST_CASE("no character of a text acts on a terminal") {
  // An escape sequence, C1 (U+009B), a mark that turns the direction, a byte that is no UTF-8.
  CHECK(printable("a\033[31m\u009Bb\u202Ec\x9B!") == "a [31m b c?!");
  CHECK(printable("µs – 5 °C ▏ 数") == "µs – 5 °C ▏ 数");
}

TEST_CASE("a message shows the beginning of long values, and does not take an apostrophe for one") {
  const std::string name(1 << 20, 'x'), shown = std::string(199, 'x') + "…'";
  CHECK(to_string(Diagnostic{.problem = "unknown name '" + name + "' (the job's)"}) ==
        "unknown name '" + shown + " (the job's)");
  const std::string words(1000, ' ');
  CHECK(to_string(Diagnostic{.problem = "'" + words + "' is no name"}).size() < 230);
  CHECK(to_string(Diagnostic{.key = name, .problem = "unknown key"}).size() < 230);
  CHECK(to_string(Diagnostic{.file = name, .problem = "no such file"}).size() < 4100);
  CHECK(to_string(Diagnostic{.problem = std::string(1 << 20, '\'')}).size() < 5000);
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
