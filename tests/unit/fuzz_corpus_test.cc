#include <filesystem>
#include <set>

#include <catch2/catch.hpp>

#include "sim/base/file.h"
#include "tests/fuzz/readers.h"
#include "tests/support/data.h"

namespace rehearse::fuzz {
namespace {

TEST_CASE("the readers survive every fuzzer input, including those that broke them") {
  std::set<std::filesystem::path> folders;
  for (const Target& target : targets()) {
    const auto folder = test::source_file("tests/fuzz/corpus") / target.name;
    folders.insert(folder);
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      INFO(entry.path().string());
      const Result<std::string> bytes = read_file(entry.path());
      REQUIRE(bytes);
      CHECK_NOTHROW(target.run(*bytes));
      ++files;
    }
    INFO(folder.string());
    CHECK(files > 0);
  }
  for (const auto& entry :
       std::filesystem::directory_iterator(test::source_file("tests/fuzz/corpus")))
    CHECK(folders.contains(entry.path()));
}

}  // namespace
}  // namespace rehearse::fuzz
