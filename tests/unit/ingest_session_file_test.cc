// The content of session.yaml in a capture folder.
#include <fstream>

#include <catch2/catch.hpp>

#include "profiler/ingest/session_file.h"
#include "tests/support/data.h"

namespace rehearse::ingest {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

std::filesystem::path folder_with(const std::string& session) {
  const std::filesystem::path folder = test::scratch_folder();
  std::ofstream(folder / "session.yaml") << session;
  return folder;
}

TEST_CASE("the launcher's measurements become facts") {
  const auto facts =
      session_facts(folder_with("command: [\"a\"]\nwall: 1.5 s\nmeasured_step: 81.2 ms\noverhead:\n"
                                "  ns_per_range: 66.3\n  ns_per_call: 900\n  run_share: 0.1\n"
                                "  step_share: 0.021\n"));
  REQUIRE(facts);
  CHECK(*facts == Facts{{"overhead.ns_per_range", "66.3"},
                        {"overhead.ns_per_call", "900"},
                        {"overhead.step_share", "0.021"},
                        {"measured_step", "0.0812"}});
}

TEST_CASE("an absent value is not a fact") {
  CHECK(session_facts(test::scratch_folder())->empty());
  CHECK(session_facts(folder_with("exit_code: 0\n"))->empty());
  CHECK(*session_facts(folder_with("overhead: {ns_per_range: 50}\n")) ==
        Facts{{"overhead.ns_per_range", "50"}});
}

TEST_CASE("wrong values are an error with their place") {
  const auto word = session_facts(folder_with("overhead: {ns_per_range: many}\n"));
  REQUIRE_FALSE(word);
  CHECK(to_string(word.error()).find("session.yaml:1:") != std::string::npos);
  CHECK(to_string(word.error()).find("overhead.ns_per_range") != std::string::npos);
  const auto unit = session_facts(folder_with("measured_step: 12\n"));
  REQUIRE_FALSE(unit);
  CHECK(to_string(unit.error()).find("measured_step") != std::string::npos);
  CHECK_FALSE(session_facts(folder_with("overhead: [1\n")));
}

}  // namespace
}  // namespace rehearse::ingest
