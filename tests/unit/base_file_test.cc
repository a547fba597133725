#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/file.h"
#include "tests/support/data.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST_CASE("a pending file takes its place when it is committed, not before") {
  const fs::path path = test::scratch_folder() / "result";
  std::ofstream(path) << "old";
  {
    Result<PendingFile> file = PendingFile::create(path);
    REQUIRE(file);
    REQUIRE(file->write("new "));
    REQUIRE(file->write(std::string("text\0end", 8)));
    CHECK(fs::file_size(path) == 3);
    REQUIRE(file->commit());
  }
  CHECK(read_file(path) == std::string("new text\0end", 12));
  CHECK(entries(path.parent_path()) == 1);
}

TEST_CASE("a pending file that is never committed leaves nothing") {
  const fs::path path = test::scratch_folder() / "result";
  {
    Result<PendingFile> file = PendingFile::create(path);
    REQUIRE(file);
    const PendingFile moved = std::move(*file);
    CHECK(fs::exists(moved.temporary()));
    CHECK(moved.temporary().parent_path() == path.parent_path());
  }
  CHECK(entries(path.parent_path()) == 0);
}

TEST_CASE("a file that is not regular is written in place") {
  Result<PendingFile> file = PendingFile::create("/dev/null");
  REQUIRE(file);
  CHECK(file->temporary() == "/dev/null");
  CHECK(file->write("gone"));
  CHECK(file->commit());
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("a replaced file hands down its permissions") {
  const fs::path path = test::write_scratch("result", "old");
  const fs::perms mode = fs::perms::owner_all | fs::perms::others_read;
  fs::permissions(path, mode);
  REQUIRE(write_file(path, "new"));
  CHECK(fs::status(path).permissions() == mode);
}

TEST_CASE("an input is not replaced, whatever name leads to it and whenever it was read") {
  const fs::path path = test::write_scratch("input", "old"), link = path.string() + ".link";
  fs::create_symlink(path, link);
  Result<PendingFile> early = PendingFile::create(link);
  REQUIRE(early);
  REQUIRE(read_file(path) == "old");
  const std::string says = ": is an input of this run; another file for the output";
  CHECK(to_string(early->commit().error()) == link.string() + says);
  CHECK(to_string(write_file(link, "new").error()) == link.string() + says);
  CHECK(read_file(path) == "old");
}

TEST_CASE("the next run removes what a killed one has left, and nothing else") {
  const fs::path path = test::write_scratch("result", "old");
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  REQUIRE(::waitpid(ended, nullptr, 0) == ended);
  const auto part = [&](const std::string& middle) {
    std::ofstream(path.string() + middle + ".part") << "half";
  };
  part(fmt::format(".{}", ended));
  part(fmt::format(".{}", ::getppid()));  // is running
  part(".mine");
  REQUIRE(write_file(path, "new"));
  CHECK(test::names_in(path.parent_path()) ==
        std::vector<std::string>{"result", fmt::format("result.{}.part", ::getppid()),
                                 "result.mine.part"});
}

TEST_CASE("a file without an end is refused at its limit") {
  CHECK(to_string(read_file("/dev/zero", std::size_t{3} << 20).error()) ==
        "/dev/zero: is too large; at most 3 MiB");
}

TEST_CASE("a file that says its size is refused before it is read") {
  const fs::path sparse = test::write_scratch("sparse.csv", "a,b\n");
  fs::resize_file(sparse, std::uintmax_t{100} << 30);
  rusage before = {}, after = {};
  ::getrusage(RUSAGE_SELF, &before);
  CHECK(to_string(read_file(sparse).error()) ==
        sparse.string() + ": is too large; at most 1024 MiB");
  ::getrusage(RUSAGE_SELF, &after);
  CHECK(after.ru_minflt - before.ru_minflt < 1000);  // pages of 4 KiB; the limit has 262,144
}

TEST_CASE("files that cannot be read or written say why") {
  const fs::path folder = test::scratch_folder();
  CHECK(to_string(read_file(folder).error()) == folder.string() + ": is a folder; a file");
  CHECK(to_string(read_file(folder / "no").error()) ==
        (folder / "no").string() + ": cannot be read: No such file or directory");
  CHECK(to_string(PendingFile::create(folder).error()) ==
        folder.string() + ": is a folder; the name of a file to write");
  CHECK(to_string(PendingFile::create(folder / "no" / "file").error()) ==
        (folder / "no" / "file").string() +
            ": cannot be written: No such file or directory; an existing, writable folder");
  Result<PendingFile> full = PendingFile::create("/dev/full");
  REQUIRE(full);
  CHECK(full->write("x"));  // into the buffer
  CHECK(to_string(full->commit().error()) ==
        "/dev/full: cannot be written: No space left on device");
}

}  // namespace
}  // namespace rehearse
