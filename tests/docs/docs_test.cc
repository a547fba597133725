// The documentation runs: worked examples give the results they state, commands print what the page
// shows, and links lead somewhere.
//
// In any Markdown file:
//   ```graph … ```  then  ```times … ```   a graph in text form (without its first line) and, per
//                                          line, an op with its start and end: "2: 10 ps – 15 ps";
//                                          on the page of SimGrid it finds the same ends
//   ```console … ```                       "$ command" and the lines it prints, run in the source
//                                          tree; "…" matches anything within a line, and, alone,
//                                          for any lines; $MOCK_GPU is the folder of the mock GPU
//   ```mpirun … ```                        the same, where Open MPI is installed
#include <cstdio>
#include <filesystem>
#include <map>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/engine/engine.h"
#include "sim/engine/simgrid.h"
#include "sim/work/communicator.h"
#include "tests/support/data.h"
#include "tests/support/graph_text.h"
#include "tests/support/pages.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

using test::Block;
using test::blocks_of;
using test::join_lines;
using test::pages;

TEST_CASE("worked examples of graphs give the times on their pages") {
  std::size_t checked = 0;
  for (const fs::path& page : pages()) {
    const std::vector<Block> blocks = blocks_of(page);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b].language != "graph") continue;
      INFO(page.string() << ":" << blocks[b].line);
      REQUIRE(b + 1 < blocks.size());
      REQUIRE(blocks[b + 1].language == "times");
      const Result<graph::Graph> graph =
          graph::parse_graph("rehearse-graph 1\n" + join_lines(blocks[b].lines), "page");
      INFO((graph ? "" : to_string(graph.error())));
      REQUIRE(graph);
      const Result<graph::Timeline> timeline = engine::run(*graph);
      REQUIRE(timeline);
      if (page.filename() == "simgrid.md" && engine::simgrid_available()) {
        const Result<graph::Timeline> theirs = engine::run_on_simgrid(*graph);
        REQUIRE(theirs);
        for (std::size_t i = 0; i < graph->size(); ++i)
          CHECK(theirs->ops[i].end == timeline->ops[i].end);
      }
      for (const std::string& line : blocks[b + 1].lines) {
        std::size_t op = 0;
        long long start = 0, end = 0;
        INFO(line);
        REQUIRE(std::sscanf(line.c_str(), "%zu: %lld ps – %lld ps", &op, &start, &end) == 3);
        REQUIRE(op < graph->size());
        CHECK(timeline->ops[op].start.count() == start);
        CHECK(timeline->ops[op].end.count() == end);
        ++checked;
      }
    }
  }
  CHECK(checked > 0);
}

/// What a command prints, stdout and stderr together, and its exit code on a line of its own where
/// it is not 0.
std::vector<std::string> output_of(const std::string& command) {
  const std::string program = test::program_folder().string();
  const std::string full = fmt::format(
      "cd '{}' && PATH='{}':\"$PATH\" && MOCK_GPU='{}/tests/gpu_mocks/all' && {{ {}; }} 2>&1",
      test::source_file("").string(), program, program, command);
  std::FILE* pipe = ::popen(full.c_str(), "r");
  REQUIRE(pipe);
  std::string text;
  char block[4096];
  while (const std::size_t n = std::fread(block, 1, sizeof block, pipe)) text.append(block, n);
  const int status = ::pclose(pipe);
  if (status != 0) text += fmt::format("[exit code {}]\n", WEXITSTATUS(status));
  if (text.ends_with('\n')) text.pop_back();
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) lines.emplace_back(line);
  return lines;
}

bool line_matches(std::string expected, const std::string& got) {
  // The wildcard of the pattern language is `*`; a page may show stars of its own.
  for (std::size_t at = 0; (at = expected.find('*', at)) != std::string::npos; ++at)
    expected[at] = '\x01';
  std::string plain = got;
  std::replace(plain.begin(), plain.end(), '*', '\x01');
  for (std::size_t at = 0; (at = expected.find("…", at)) != std::string::npos; ++at)
    expected.replace(at, std::string_view("…").size(), 1, '*');
  return matches_wildcard(expected, plain);
}

/// The first expected line that does not match, or nothing.
std::optional<std::string> mismatch(const std::vector<std::string>& expected,
                                    const std::vector<std::string>& got) {
  std::size_t at = 0;
  for (std::size_t e = 0; e < expected.size(); ++e) {
    if (trim(expected[e]) == "…") {
      if (e + 1 == expected.size()) return std::nullopt;
      while (at < got.size() && !line_matches(expected[e + 1], got[at])) ++at;
      continue;
    }
    if (at >= got.size()) return "'" + expected[e] + "' but the output has ended";
    if (!line_matches(expected[e], got[at]))
      return "'" + expected[e] + "' but the program prints '" + got[at] + "'";
    ++at;
  }
  if (at < got.size()) return "the end, but the program prints '" + got[at] + "'";
  return std::nullopt;
}

/// Runs the commands of all blocks of a language; returns how many.
std::size_t check_commands(const std::string& language, const std::string& variables = "") {
  std::size_t checked = 0;
  std::map<std::string, std::vector<std::string>> printed;  // by a command that several pages show
  for (const fs::path& page : pages())
    for (const Block& block : blocks_of(page, language)) {
      std::string command;
      std::vector<std::string> expected;
      const auto check = [&] {
        if (command.empty()) return;
        ++checked;
        while (!expected.empty() && expected.back().empty()) expected.pop_back();
        const auto [ran, first] = printed.try_emplace(command);
        if (first) ran->second = output_of(variables + command);
        std::vector<std::string> got = ran->second;
        while (!got.empty() && got.back().empty()) got.pop_back();
        const auto wrong = mismatch(expected, got);
        INFO(page.string() << ":" << block.line << ": $ " << command);
        INFO("the page expects " << wrong.value_or(""));
        CHECK_FALSE(wrong);
        expected.clear();
      };
      for (const std::string& line : block.lines) {
        if (line.starts_with("$ ")) {
          check();
          command = line.substr(2);
        } else if (line.starts_with("> ") && expected.empty()) {
          command.append(" ").append(line, 2);  // a long command goes on
        } else {
          expected.push_back(line);
        }
      }
      check();
    }
  return checked;
}

TEST_CASE("commands print the output on the pages", "[long]") {
  CHECK(check_commands("console") > 0);
}

TEST_CASE("commands under mpirun print the output on the pages") {
  if (std::system("command -v mpirun >/dev/null 2>&1") != 0 || !work::check_mpi()) {
    WARN("skipped: no mpirun, or built without MPI");
    return;
  }
  CHECK(check_commands("mpirun",
                       "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                       "OMPI_MCA_rmaps_base_oversubscribe=1; ") > 0);
}

TEST_CASE("the page of studies is the output of the command", "[long]") {
  const fs::path page = test::source_file("docs/studies.md");
  const fs::path made = test::scratch_folder() / "studies.md";
  output_of(fmt::format("rehearse study studies --format markdown -o '{}'", made.string()));
  CHECK(read_file(made).value_or(std::string("nothing")) == read_file(page).value());
}

/// Verdicts of a measure of a study, in the order of the page.
std::vector<std::string> verdicts_of(std::string_view study, std::string_view measure) {
  std::vector<std::string> verdicts;
  const std::string text = read_file(test::source_file("docs/studies.md")).value();
  const std::string begin = fmt::format("| [{}](#{}) | {} ", study, study, measure);
  for (std::string_view line : split(text, '\n')) {
    if (line.substr(0, begin.size()) != begin) continue;
    line.remove_suffix(2);  // " |"
    verdicts.emplace_back(line.substr(line.rfind("| ") + 2));
  }
  return verdicts;
}

TEST_CASE("studies are worth what the page says, also where they miss") {
  using Verdicts = std::vector<std::string>;
  const std::string reproduced = "reproduced", inside = "inside the span", missed = "missed";
  CHECK(verdicts_of("envpool-async", "frames") == Verdicts(4, reproduced));
  CHECK(verdicts_of("envpool-sync", "frames") == Verdicts(2, missed));
  // Constants of another workload, and a DGX with as many threads as cores.
  CHECK(verdicts_of("envpool-second", "asynchronous") ==
        Verdicts{reproduced, reproduced, reproduced, missed});
  // A job whose steps on the whole GPU do not show its share of the host.
  CHECK(verdicts_of("mig-sizes", "resnet") == Verdicts(3, missed));
  CHECK(verdicts_of("bagpipe-gain", "gain") == Verdicts{inside});
  CHECK(verdicts_of("ginex", "gain") == Verdicts{inside});
  CHECK(verdicts_of("plumber", "gain") == Verdicts{inside});
  CHECK(verdicts_of("crossover", "speed_up") == Verdicts{inside});
  CHECK(verdicts_of("solar-ablation", "all") == Verdicts{inside});
  CHECK(verdicts_of("stash", "interconnect") == Verdicts{missed});
  CHECK(verdicts_of("stash", "slow_down") == Verdicts{inside});
  CHECK(verdicts_of("stanza", "speed_up") == Verdicts{inside});
  CHECK(verdicts_of("madrona", "gain") == Verdicts{missed});
  // Averages of parameters are started in every mean step, with a part of their bytes.
  CHECK(verdicts_of("persia", "of_asynchronous") == Verdicts{missed});
  CHECK(verdicts_of("carbon", "ratio") == Verdicts{"identity"});
}

TEST_CASE("links between pages lead to files that exist") {
  for (const fs::path& page : pages()) {
    const std::string text = *read_file(page);
    for (std::size_t at = 0; (at = text.find("](", at)) != std::string::npos; ++at) {
      const std::size_t end = text.find(')', at);
      std::string target = text.substr(at + 2, end - at - 2);
      target = target.substr(0, target.find('#'));
      if (target.empty() || target.find("://") != std::string::npos) continue;
      INFO(page.string() << " -> " << target);
      CHECK(fs::exists(page.parent_path() / target));
    }
  }
}

}  // namespace
}  // namespace rehearse
