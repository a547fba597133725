// An import that is killed or interrupted leaves the store that was there.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/support/data.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using test::Ran;
using test::RunningRehearse;

/// An import of 60 MB over an older store, stopped while it writes its temporary file.
struct Stopped {
  fs::path input;
  fs::path store;
  std::string before;
  Ran ran;
};

Stopped import_stopped_by(int signal, std::uintmax_t after_bytes) {
  Stopped s;
  s.input = test::write_scratch("large.json", test::kineto_recording(200'000));
  s.store = test::scratch_folder() / "job.rehearse";
  REQUIRE(test::rehearse({"import", test::kExample, "-o", s.store.string()}).code == 0);
  s.before = test::text_of(s.store);
  RunningRehearse importing({"import", s.input.string(), "-o", s.store.string()});
  const auto writes = [&] {
    for (const auto& entry : fs::directory_iterator(s.store.parent_path())) {
      std::error_code gone;
      const std::uintmax_t bytes = fs::file_size(entry.path(), gone);
      if (entry.path().extension() == ".part" && !gone && bytes >= after_bytes) return true;
    }
    return false;
  };
  while (!importing.ended() && !writes()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  importing.signal(signal);
  s.ran = importing.wait();
  return s;
}

TEST_CASE("a killed import keeps the old store") {
  const Stopped s = import_stopped_by(SIGKILL, 1 << 20);
  CHECK(s.ran.code == 128 + SIGKILL);
  CHECK(test::text_of(s.store) == s.before);
  CHECK(test::rehearse({"replay", s.store.string()}).code == 0);
}

TEST_CASE("an interrupted import reports it, keeps the old store, and leaves no other file") {
  for (const auto& [signal, after_bytes] : {std::pair(SIGINT, 1), std::pair(SIGTERM, 1 << 20)}) {
    const Stopped s = import_stopped_by(signal, static_cast<std::uintmax_t>(after_bytes));
    test::check_failed(s.ran, 1, s.input.string() + ": stopped");
    CHECK(test::text_of(s.store) == s.before);
    CHECK(test::names_in(s.store.parent_path()) == std::vector<std::string>{"job.rehearse"});
  }
}

}  // namespace
}  // namespace rehearse
