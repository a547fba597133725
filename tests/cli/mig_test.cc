// rehearse mig layouts: drawings, documents, and what is refused.
#include <catch2/catch.hpp>

#include "sim/base/csv.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;
using test::Ran;

Ran layouts(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"mig", "layouts"});
  return test::rehearse(arguments);
}

TEST_CASE("mig layouts: the same layouts in each format") {
  const std::vector<std::string> asked = {"--device", "h100_sxm5_80", "--profiles",
                                          "3g.40gb,2g.20gb,1g.10gb"};
  const auto in = [&](const char* format) {
    std::vector<std::string> arguments = asked;
    arguments.insert(arguments.end(), {"--format", format});
    const Ran ran = layouts(arguments);
    INFO(ran.errors);
    REQUIRE(ran.code == 0);
    CHECK(ran.errors.empty());
    return ran.out;
  };
  const Json json = Json::parse(in("json"));
  test::check_values(json);
  CHECK(json["command"] == "mig layouts");
  REQUIRE(json["layouts"].size() == 5);
  const Json& first = json["layouts"][3];
  REQUIRE(first["instances"].size() == 3);
  CHECK(first["instances"][0]["profile"] == "3g.40gb");
  CHECK(first["instances"][0]["start"] == 0);
  CHECK(first["instances"][0]["multiprocessors"] == 60);
  CHECK(first["instances"][0]["shares"]["bandwidth"] == 0.5);
  CHECK(first["wasted"] == Json{{"compute_slices", 1}, {"memory_slices", 1}});
  const auto csv = CsvTable::parse(in("csv"), "stdout");
  REQUIRE(csv);
  CHECK(csv->rows() == 15);
  CHECK(in("table").find("|3g.40gb                                    |2g.20gb              |") !=
        std::string::npos);
}

TEST_CASE("mig layouts: without profiles, every layout to which nothing can be added") {
  const Ran ran = layouts({"--device", "a30", "--format", "json"});
  REQUIRE(ran.code == 0);
  const Json json = Json::parse(ran.out);
  CHECK(json["layouts"].size() == 5);
  for (const Json& layout : json["layouts"]) CHECK(layout["still_fit"].empty());
}

TEST_CASE("mig layouts: what is wrong is one line") {
  test::check_failed(layouts({"--device", "h100_sxm5_80", "--profiles", "3g.40g"}), 1,
                     "did you mean '3g.40gb'?");
  test::check_failed(layouts({"--device", "h100_sxm_80"}), 1, "did you mean 'h100_sxm5_80'?");
  test::check_failed(layouts({"--device", "t4"}), 1, "it has no MIG");
  test::check_failed(layouts({"--device", "b300"}), 1, "profiles are not known");
  test::check_failed(layouts({"--device", "a30", "--profiles", "4g.24gb,1g.6gb"}), 1,
                     "5 compute slices, and the device has 4");
  test::check_failed(layouts({}), 2, "--device");
  test::check_failed(test::rehearse({"mig"}), 2, "");
}

}  // namespace
}  // namespace rehearse
