#include <catch2/catch.hpp>

#include "sim/base/csv_row.h"
#include "sim/base/units.h"

namespace rehearse {
namespace {

struct Link {
  std::string name;
  std::size_t kind;
  std::optional<ByteRate> rate;
  std::uint32_t lanes;
};

constexpr std::string_view kKinds[] = {"ring", "tree"};

Result<std::vector<Link>> read(std::string_view text) {
  return read_rows<Link>(text, "a.csv", [](const CsvRow& row) {
    return Link{.name = row.required("name"),
                .kind = row.choice("kind", kKinds),
                .rate = row.quantity<ByteRate>("rate_gbs", 1e9),
                .lanes = row.required_count("lanes")};
  });
}

std::string error_of_row(std::string_view text) {
  const auto rows = read(text);
  REQUIRE_FALSE(rows);
  return to_string(rows.error());
}

TEST_CASE("rows become structs, in the units of the reader") {
  const auto rows = read("name,kind,rate_gbs,lanes\na,tree,2.5,16\nb,ring,,8\n");
  REQUIRE(rows);
  REQUIRE(rows->size() == 2);
  CHECK(rows->at(0).name == "a");
  CHECK(rows->at(0).kind == 1);
  CHECK(rows->at(0).rate == ByteRate::gb_per_s(2.5));
  CHECK(rows->at(0).lanes == 16);
  CHECK_FALSE(rows->at(1).rate);
}

TEST_CASE("all errors of a table are reported at once") {
  CHECK(error_of_row("name,kind,rate_gbs,lanes\n,treee,fast,1.5\nb,,-1,\n") ==
        "a.csv:2: name: is empty; a value\n"
        "a.csv:2: kind: unknown value 'treee'; did you mean 'tree'?\n"
        "a.csv:2: rate_gbs: 'fast' is not a number; a finite decimal number, such as 12.5\n"
        "a.csv:2: lanes: 1.5 is not a count; a whole number, 0 or more\n"
        "a.csv:3: kind: unknown value ''; one of ring, tree\n"
        "a.csv:3: rate_gbs: -1 is below zero; a number, 0 or more\n"
        "a.csv:3: lanes: is empty; a value");
}

TEST_CASE("numbers have the ranges that they have in YAML") {
  CHECK(error_of_row("name,kind,rate_gbs,lanes\na,ring,1e10,1\nb,ring,1e31,8e15\nc,ring,1e400,1\n") ==
        "a.csv:2: rate_gbs: 1e10 is out of range; at most 1e+18 B/s\n"
        "a.csv:3: rate_gbs: '1e31' is out of range; at most 1e+30\n"
        "a.csv:3: lanes: 8000000000000000 is not a count; a whole number, 0 or more\n"
        "a.csv:4: rate_gbs: '1e400' is out of range; at most 1e+30");
}

TEST_CASE("a column that is not there is reported once") {
  CHECK(error_of_row("nam,kind,rate_gbs,lanes\na,ring,1,1\nb,ring,1,1\n") ==
        "a.csv:1: name: no such column; did you mean 'nam'?");
}

TEST_CASE("a malformed table has the error of its text") {
  CHECK(error_of_row("name,kind\na\n") == "a.csv:2: 1 cell; 2 cells, as in the header line");
}

TEST_CASE("a malformed shipped table is a fault") {
  CHECK_THROWS_AS(shipped_rows<int>("a\n\"", "a.csv", [](const CsvRow&) { return 1; }), Fault);
}

}  // namespace
}  // namespace rehearse
