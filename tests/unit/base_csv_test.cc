#include <catch2/catch.hpp>

#include "sim/base/csv.h"
#include "tests/support/data.h"

namespace rehearse {
namespace {

CsvTable table_of(std::string_view text) {
  Result<CsvTable> table = CsvTable::parse(text, "a.csv");
  INFO((table ? "" : to_string(table.error())));
  REQUIRE(table);
  return std::move(*table);
}

std::string error_of_table(std::string_view text) {
  const Result<CsvTable> table = CsvTable::parse(text, "a.csv");
  REQUIRE_FALSE(table);
  return to_string(table.error());
}

std::optional<double> number_of(const CsvTable& table, std::size_t row, std::string_view column) {
  const Result<std::optional<double>> number = table.number(row, column);
  REQUIRE(number);
  return *number;
}

TEST_CASE("cells are found by row and column") {
  const CsvTable table = table_of("name,rate\na,1\nb,2.5\n");
  CHECK(table.columns() == std::vector<std::string>{"name", "rate"});
  REQUIRE(table.rows() == 2);
  CHECK(table.cell(0, "name") == "a");
  CHECK(table.cell(1, "name") == "b");
  CHECK(number_of(table, 1, "rate") == 2.5);
  CHECK(table.line(0) == 2);
  CHECK(table.has("rate"));
  CHECK_FALSE(table.has("Rate"));
}

TEST_CASE("a quoted cell holds commas, line breaks and doubled quotes") {
  const CsvTable table = table_of("a,b\n\"x, y\",\"\"\n\"two\r\nlines\",\"say \"\"no\"\"\"\nz,1\n");
  REQUIRE(table.rows() == 3);
  CHECK(table.cell(0, "a") == "x, y");
  CHECK(table.cell(0, "b").empty());
  CHECK(table.cell(1, "a") == "two\r\nlines");
  CHECK(table.cell(1, "b") == "say \"no\"");
  CHECK(table.line(1) == 3);
  CHECK(table.line(2) == 5);  // the row before takes two lines
}

TEST_CASE("line ends, byte order marks, empty lines and an unended last line make no difference") {
  const std::string_view texts[] = {"a,b\n1,2\n3,4\n", "a,b\r\n1,2\r\n3,4\r\n",
                                    "\xEF\xBB\xBF"
                                    "a,b\n1,2\n3,4",
                                    "\n\na,b\n\n1,2\r\n\r\n3,4\n\n"};
  for (const std::string_view text : texts) {
    INFO(text);
    const CsvTable table = table_of(text);
    REQUIRE(table.rows() == 2);
    CHECK(table.cell(0, "b") == "2");
    CHECK(table.cell(1, "b") == "4");
  }
}

TEST_CASE("an empty cell is nothing, not zero") {
  const CsvTable table = table_of("a,b,c\n,0,\n");
  REQUIRE(table.rows() == 1);
  CHECK_FALSE(number_of(table, 0, "a"));
  CHECK(number_of(table, 0, "b") == 0.0);
  CHECK(table.cell(0, "c").empty());
}

TEST_CASE("a table may have no rows") { CHECK(table_of("a,b\n").rows() == 0); }

TEST_CASE("tables stay whole when they are moved") {
  CsvTable table = table_of("a\nx\n");
  const CsvTable moved = std::move(table);
  CHECK(moved.cell(0, "a") == "x");
}

TEST_CASE("malformed tables are refused with file and line") {
  CHECK(error_of_table("") == "a.csv: is empty; a header line with the column names");
  CHECK(error_of_table("\n\n") == "a.csv: is empty; a header line with the column names");
  CHECK(error_of_table("a,b\n1,2\n3\n") == "a.csv:3: 1 cell; 2 cells, as in the header line");
  CHECK(error_of_table("a,b\n1,2,\n") == "a.csv:2: 3 cells; 2 cells, as in the header line");
  CHECK(error_of_table("a,,c\n") == "a.csv:1: column 2 has no name; a name for every column");
  CHECK(error_of_table("a,b,a\n") == "a.csv:1: two columns are called 'a'; unique column names");
  CHECK(error_of_table("a\n1\n\"open\nand on\n") ==
        "a.csv:3: an unterminated quoted cell; a closing quote");
  CHECK(error_of_table("a\n\"\n") == "a.csv:2: an unterminated quoted cell; a closing quote");
  CHECK(error_of_table("a\n\"x\"y\n") ==
        "a.csv:2: text after a quoted cell; a comma or the end of the line");
  CHECK(error_of_table("a\nx\"y\n") ==
        "a.csv:2: a quote inside a cell; a quoted cell with this quote doubled");
  CHECK(error_of_table("a,b\r1,2\r") ==
        "a.csv:1: a carriage return inside a cell; lines that end with LF or CRLF");
}

TEST_CASE("a cell that is not a number is refused with its column") {
  for (const char* wrong :
       {"fast", "1x", "1 ", " 1", "1,5", "nan", "inf", "-inf", "0x10", "1.2.3", "--1"}) {
    INFO(wrong);
    const CsvTable table = table_of("name,rate (GB/s)\na,\"" + std::string(wrong) + "\"\n");
    const auto number = table.number(0, "rate (GB/s)");
    REQUIRE_FALSE(number);
    CHECK(to_string(number.error()) == "a.csv:2: rate (GB/s): '" + std::string(wrong) +
                                           "' is not a number; a finite decimal number, such as "
                                           "12.5");
  }
  const CsvTable table = table_of("a,b,c\n-1.5e-3,007,.5\n");
  CHECK(number_of(table, 0, "a") == -1.5e-3);
  CHECK(number_of(table, 0, "b") == 7.0);
  CHECK(number_of(table, 0, "c") == 0.5);
}

TEST_CASE("missing columns are named together, with the existing ones") {
  const CsvTable table = table_of("size_bytes,time_us\n");
  CHECK(table.require({"time_us", "size_bytes"}));
  const Status status = table.require({"size_byte", "algorithm", "time_us"});
  REQUIRE_FALSE(status);
  CHECK(to_string(status.error()) ==
        "a.csv:1: size_byte: no such column; did you mean 'size_bytes'?\n"
        "a.csv:1: algorithm: no such column; one of size_bytes, time_us");
}

TEST_CASE("a problem found by the caller has the place of its cell") {
  const CsvTable table = table_of("kind\nring\n");
  CHECK(to_string(table.problem(0, "kind", "unknown kind 'ring'", "", "one of tree")) ==
        "a.csv:2: kind: unknown kind 'ring'; one of tree");
}

TEST_CASE("a file that cannot be read is named") {
  const auto path = test::scratch_folder() / "missing.csv";
  const Result<CsvTable> table = CsvTable::load(path);
  REQUIRE_FALSE(table);
  CHECK(to_string(table.error()).starts_with(path.string() + ": cannot be read"));
}

}  // namespace
}  // namespace rehearse
