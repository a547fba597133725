// Includes point down, and a TRY comes first: the tree passes the checks, and they find what is planted.
#include <cstdio>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/data.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code;
  std::string text;
};

Outcome check(const fs::path& root,
              const fs::path& script = test::source_file("tests/layering/check_layers.sh"),
              const char* language = "sh") {
  const std::string command =
      fmt::format("{} '{}' '{}' 2>&1", language, script.string(), root.string());
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string text;
  char block[4096];
  while (const std::size_t n = std::fread(block, 1, sizeof block, pipe)) text.append(block, n);
  return {::pclose(pipe), text};
}

/// A tree of one file.
fs::path planted(const fs::path& file, const std::string& line) {
  const fs::path root = test::scratch_folder();
  fs::create_directories((root / file).parent_path());
  std::ofstream(root / file) << line << "\n";
  return root;
}

TEST_CASE("every include points down") {
  const Outcome outcome = check(test::source_file(""));
  INFO(outcome.text);
  CHECK(outcome.code == 0);
}

TEST_CASE("a forbidden include is found") {
  struct Case {
    const char* file;
    const char* line;
    const char* message;
  };
  for (const Case& c :
       {Case{"sim/base/x.h", "#include \"sim/graph/graph.h\"",
             "sim/base may not include sim/graph"},
        Case{"strategies/x.cc", "#include \"sim/engine/engine.h\"",
             "strategies may not include sim/engine"},
        Case{"sim/engine/x.cc", "  #  include \"cli/globals.h\"", "sim/engine may not include cli"},
        Case{"sim/work/x.cc", "#include \"profiler/trace/trace.h\"",
             "sim/work may not include profiler/trace"},
        Case{"models/memory/x.h", "#include \"strategies/plan.h\"",
             "models/memory may not include strategies"},
        Case{"sim/graph/x.cc", "#include <yaml-cpp/yaml.h>",
             "sim/graph may not include yaml-cpp/yaml.h"},
        Case{"profiler/ingest/x.h", "#include <simdjson.h>", "a header may not include simdjson.h"},
        Case{"models/other/x.cc", "int x;", "belongs to no module"}}) {
    INFO(c.file << ": " << c.line);
    const Outcome outcome = check(planted(c.file, c.line));
    CHECK(outcome.code != 0);
    CHECK(outcome.text.find(std::string(c.file) + ":1: " + c.message) != std::string::npos);
  }
}

TEST_CASE("a table that lets a folder include one above it is refused") {
  std::ifstream file(test::source_file("tests/layering/check_layers.sh"));
  std::string script{std::istreambuf_iterator<char>(file), {}};
  const std::string row = "may[\"sim/work\"] = \"";
  const std::size_t at = script.find(row);
  REQUIRE(at != std::string::npos);
  script.insert(at + row.size(), "models/job ");
  const fs::path changed = test::scratch_folder() / "check_layers.sh";
  std::ofstream(changed) << script;
  const Outcome outcome = check(planted("sim/base/x.h", "int x;"), changed);
  CHECK(outcome.code != 0);
  CHECK(outcome.text.find("the table lets sim/work include models/job") != std::string::npos);
}

TEST_CASE("an allowed include passes") {
  CHECK(check(planted("sim/graph/x.cc", "#include \"sim/base/units.h\"")).code == 0);
  CHECK(check(planted("cli/commands/x.cc", "#include <CLI/CLI.hpp>")).code == 0);
  CHECK(check(planted("cli/output/x.h", "#include <nlohmann/json_fwd.hpp>")).code == 0);
}

Outcome check_tries(const fs::path& root) {
  return check(root, test::source_file("tests/layering/check_try.py"), "python3 -B");
}

TEST_CASE("no TRY comes after other arguments") {
  const Outcome outcome = check_tries(test::source_file(""));
  INFO(outcome.text);
  CHECK(outcome.code == 0);
}

TEST_CASE("a TRY after other arguments is found") {
  for (const char* line : {"f(a, TRY(b()));", "Pair p{a, TRY(b())};", "return {a, g(TRY(b()))};",
                           "f(\")\", TRY(b()));", "f(a, [] { return 1; }, TRY(b()));",
                           "f(a, [&] { g(c, TRY(b())); });", "f(TRY(a()), TRY(b()));"}) {
    INFO(line);
    const Outcome outcome = check_tries(planted("cli/x.cc", line));
    CHECK(outcome.code != 0);
    CHECK(outcome.text.find("cli/x.cc:1: a TRY after other arguments") != std::string::npos);
  }
  for (const char* line :
       {"f(TRY(b()), a);", "const int a = TRY(b(c, d)), e = TRY(g());",
        "f(a, [&] { return TRY(b()); });", "// f(a, TRY(b()))", "f(a, c); g(TRY(b()));"}) {
    INFO(line);
    CHECK(check_tries(planted("cli/x.cc", line)).code == 0);
  }
}

}  // namespace
}  // namespace rehearse
