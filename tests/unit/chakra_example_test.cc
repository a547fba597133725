// The example of Chakra traces is what the writer makes of an iteration, and reads back as it.
// REHEARSE_UPDATE_GOLDEN=1 writes it anew.
#include <cstdlib>
#include <fstream>

#include <catch2/catch.hpp>

#include "profiler/ingest/chakra_job.h"
#include "sim/base/file.h"
#include "tests/bench/iteration.h"
#include "tests/support/chakra_writer.h"
#include "tests/support/data.h"

namespace rehearse {
namespace {

TEST_CASE("examples/chakra holds an iteration of four layers on 8 tensor times 4 data ranks") {
  const program::Program job = bench::make_job({.layers = 4, .tensor = 8, .data = 4});
  const std::string file = test::chakra_file(job.programs.front(), job.names, {"tp", "dp"});
  const auto path = test::source_file("examples/chakra/transformer.et");
  if (std::getenv("REHEARSE_UPDATE_GOLDEN")) std::ofstream(path, std::ios::binary) << file;
  const Result<std::string> stored = read_file(path);
  REQUIRE(stored);
  CHECK(*stored == file);

  const auto groups =
      ingest::load_comm_groups(test::source_file("examples/chakra/transformer.groups.json"));
  REQUIRE(groups);
  const auto prefix = test::source_file("examples/chakra/transformer");
  const auto read = ingest::read_chakra_job({.prefix = prefix, .ranks = 32, .groups = *groups});
  INFO((read ? "" : to_string(read.error())));
  REQUIRE(read);
  REQUIRE(read->job.programs.size() == 1);
  const program::RankProgram& program = read->job.programs.front();
  REQUIRE(program.ops.size() == job.programs.front().ops.size());
  CHECK(program.dependencies == job.programs.front().dependencies);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    CHECK(read->job.names[program.ops[i].name] == job.names[job.programs.front().ops[i].name]);
    CHECK(program.ops[i].duration == job.programs.front().ops[i].duration);
    CHECK(program.ops[i].bytes == job.programs.front().ops[i].bytes);
    CHECK(program.ops[i].task == job.programs.front().ops[i].task);
  }
  for (std::uint32_t r = 0; r < 32; ++r)
    for (const std::uint32_t g : {0U, 1U})
      CHECK(read->job.groups[read->job.groups_of[r][g]].members ==
            job.groups[job.groups_of[r][g]].members);
}

}  // namespace
}  // namespace rehearse
