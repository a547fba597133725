// Wrong input: exit code 1 and one line that names the file and what is wrong with it.
#include <filesystem>

#include <catch2/catch.hpp>
#include <zlib.h>

#include "tests/support/data.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using test::kExample;
using test::Ran;

/// Every command that takes recordings, reading this one.
std::vector<std::vector<std::string>> readers_of(const fs::path& input) {
  const std::string path = input.string();
  return {{"import", path, "-o", (test::scratch_folder() / "a.rehearse").string()},
          {"inspect", path},
          {"replay", path},
          {"whatif", path, "--scale", "gpu:2"}};
}

void check_refused(const fs::path& input, const std::string& says) {
  for (const std::vector<std::string>& arguments : readers_of(input)) {
    INFO(arguments.front());
    test::check_failed(test::rehearse(arguments), 1, input.string() + ": " + says);
  }
}

std::string zipped(const std::string& text) {
  std::string packed(compressBound(text.size()) + 64, '\0');
  z_stream stream = {};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

TEST_CASE("a missing file is named") {
  check_refused("no_such_file.json", "cannot be read: No such file or directory");
}

TEST_CASE("an empty file is named") {
  check_refused(test::write_scratch("empty.json", ""), "is empty");
}

TEST_CASE("a text file is no recording") {
  check_refused(test::write_scratch("notes.txt", "Dear diary,\ntoday nothing was recorded.\n"),
                "is not a readable recording");
}

TEST_CASE("a file of the other kind is called by its kind, with the commands that read it") {
  const std::string job = test::source_file("examples/jobs/gpt_175b.yaml");
  test::check_failed(test::rehearse({"replay", job}), 1,
                     "is a job file, not a recording; rehearse simulate and plan");
  for (const char* command : {"simulate", "plan"})
    test::check_failed(test::rehearse({command, test::kExample}), 1,
                       "is a recording, not a job file; rehearse replay and whatif");
}

TEST_CASE("JSON of another kind is no recording") {
  check_refused(test::write_scratch("package.json", R"({"name": "x", "version": 3})"), "is JSON");
}

TEST_CASE("a folder without recordings is named") {
  const fs::path other = test::write_scratch("notes.txt", "nothing").parent_path();
  check_refused(other, "is a folder without a recording");
  check_refused(test::scratch_folder(), "is a folder without a recording");
}

TEST_CASE("a gzip file without contents is refused") {
  const std::string packed = zipped(test::text_of(test::source_file(kExample)));
  check_refused(test::write_scratch("cut.json.gz", packed.substr(0, 12)),
                "the gzip data are truncated");
}

TEST_CASE("the part of a truncated gzip file before its end is used") {
  const std::string packed = zipped(test::text_of(test::source_file(kExample)));
  const fs::path path =
      test::write_scratch("cut.json.gz", packed.substr(0, packed.size() * 9 / 10));
  const Ran ran = test::rehearse({"inspect", path.string()});
  CHECK(ran.code == 0);
  CHECK(ran.errors.find("warning: truncated (1 times; first at " + path.string()) == 0);
  test::check_failed(test::rehearse({"inspect", path.string(), "--strict"}), 1, "truncated");
}

TEST_CASE("a store of another version and a damaged one are refused") {
  const fs::path store = test::scratch_folder() / "a.rehearse";
  REQUIRE(test::rehearse({"import", kExample, "-o", store.string()}).code == 0);
  std::string bytes = test::text_of(store);
  std::string newer = bytes;
  newer[63] = 4;  // the user version of an SQLite file, bytes 60 to 63
  check_refused(test::write_scratch("newer.rehearse", newer), "is a trace store of version 4");
  check_refused(test::write_scratch("cut.rehearse", bytes.substr(0, bytes.size() / 2)), "");
}

TEST_CASE("a rank that is not recorded is named, with those that are") {
  test::check_failed(test::rehearse({"replay", kExample, "--ranks", "3"}), 1,
                     "the recording has no rank 3; one of 0");
}

TEST_CASE("a rank requested twice is replayed once") {
  const Ran twice = test::rehearse({"replay", kExample, "--ranks", "0,0", "--format", "csv"});
  CHECK(twice.code == 0);
  CHECK(twice.out == test::rehearse({"replay", kExample, "--format", "csv"}).out);
}

TEST_CASE("two recordings of one rank are an error of the input") {
  const std::string text =
      R"({"distributedInfo": {"rank": 1, "world_size": 2}, "traceEvents": [{"ph": "X", )"
      R"("cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]})";
  const fs::path one = test::write_scratch("one.json", text);
  const fs::path two = test::write_scratch("two.json", text);
  test::check_failed(test::rehearse({"replay", one.string(), two.string()}), 1, "is of rank 1");
}

TEST_CASE("an edit without a match lists the names that exist") {
  test::check_failed(test::rehearse({"whatif", kExample, "--remove", "kernel=rela"}), 1,
                     "did you mean 'relu'?");
}

TEST_CASE("validate needs measurements") {
  test::check_failed(test::rehearse({"validate", "no_such_folder"}), 1,
                     "no_such_folder: cannot be read");
  const std::string empty = test::scratch_folder().string();
  test::check_failed(test::rehearse({"validate", empty}), 1, empty + ": holds no measurements");
}

TEST_CASE("several wrong inputs are all reported") {
  const Ran ran = test::rehearse({"inspect", "no_such_a.json", kExample, "no_such_b.json"});
  CHECK(ran.code == 1);
  CHECK(ran.errors ==
        "rehearse: no_such_a.json: cannot be read: No such file or directory\n"
        "rehearse: no_such_b.json: cannot be read: No such file or directory\n");
}

}  // namespace
}  // namespace rehearse
