// The commit of a repository, from its files.
#include "cli/commands/source_commit.h"

#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "tests/support/data.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;

void put(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text << "\n";
}

TEST_CASE("the commit is that of the branch, packed or not, of a work tree, or detached") {
  const std::string one(40, 'a'), two(40, 'b'), three(40, 'c');
  const fs::path top = test::scratch_folder() / "commits", git = top / "source/.git";
  const fs::path inside = top / "source/a/b";
  fs::create_directories(inside);
  CHECK(source_commit(inside).empty());
  put(git / "HEAD", "ref: refs/heads/main");
  CHECK(source_commit(inside).empty());  // before the first commit
  put(git / "packed-refs", "# packed\n" + one + " refs/heads/main\n" + two + " refs/heads/other");
  CHECK(source_commit(inside) == one);
  put(git / "refs/heads/main", three);
  CHECK(source_commit(inside) == three);
  put(git / "HEAD", two);
  CHECK(source_commit(inside) == two);
  put(git / "HEAD", "../../no commit");
  CHECK(source_commit(inside).empty());

  const fs::path tree = top / "tree";
  put(tree / ".git", "gitdir: " + (git / "worktrees/tree").string());
  put(git / "worktrees/tree/HEAD", "ref: refs/heads/other");
  put(git / "worktrees/tree/commondir", "../..");
  CHECK(source_commit(tree) == two);
}

}  // namespace
}  // namespace rehearse::cli
