// Work shared by threads and ranks: the same results on any worker, nothing done twice after a
// kill, and what a journal refuses.
#include <csignal>
#include <fstream>
#include <map>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/core.h>
#include <sqlite3.h>
#include <unistd.h>

#include "sim/base/check.h"
#include "sim/base/file.h"
#include "sim/work/bytes.h"
#include "sim/work/fingerprint.h"
#include "sim/work/queue.h"
#include "tests/support/data.h"
#include "tests/support/ranks_run.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;
using test::Ran;

/// Runs work_ranks alone or under mpirun, in a process of its own where it can be killed.
Ran run(int ranks, const std::string& arguments) {
  return test::program_on_ranks(ranks, "tests/work_ranks", arguments);
}

std::string expected(std::size_t items) {
  std::string text;
  for (std::size_t i = 0; i < items; ++i) text += fmt::format("{} squared is {}\n", i, i * i);
  return text;
}

/// How often each item was evaluated.
std::map<std::size_t, int> evaluations(const fs::path& log) {
  std::ifstream file(log);
  std::map<std::size_t, int> counts;
  for (std::size_t item; file >> item;) ++counts[item];
  return counts;
}

std::size_t rows_of(const fs::path& journal) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(journal.c_str(), &db) == SQLITE_OK);
  sqlite3_stmt* query = nullptr;
  sqlite3_prepare_v2(db, "SELECT count(*) FROM result", -1, &query, nullptr);
  REQUIRE(sqlite3_step(query) == SQLITE_ROW);
  const auto rows = static_cast<std::size_t>(sqlite3_column_int64(query, 0));
  sqlite3_finalize(query);
  sqlite3_close(db);
  return rows;
}

work::Work squares(std::size_t items) {
  return {.part = "squares", .items = items, .evaluate = [](std::size_t i) -> Result<std::string> {
            return std::to_string(i * i);
          }};
}

TEST_CASE("work: values come back from bytes to the last bit, and short bytes are noticed") {
  work::Packer packer;
  packer.put(0.1);
  packer.put(std::string("two\0words", 9));
  packer.put(std::uint64_t{7});
  const std::string bytes = packer.take();
  work::Unpacker from(bytes);
  CHECK(from.number() == 0.1);
  CHECK(from.text() == std::string("two\0words", 9));
  CHECK(!from.whole());
  CHECK(from.count() == 7);
  CHECK(from.whole());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    work::Unpacker part(std::string_view(bytes).substr(0, size));
    part.number();
    part.text();
    part.count();
    CHECK(!part.whole());
    CHECK(!part.ok());
  }
}

TEST_CASE("work: a fingerprint changes with any change, and with the borders of texts") {
  const auto of = [](const std::vector<std::string>& texts) {
    work::Fingerprint f;
    for (const std::string& text : texts) f.add(text);
    return f.text();
  };
  std::set<std::string> seen;
  const std::vector<std::vector<std::string>> all = {
      {}, {""}, {"a"}, {"b"}, {"ab"}, {"a", "b"}, {"b", "a"}, {"", "ab"}, {std::string("a\0", 2)}};
  for (const auto& texts : all) seen.insert(of(texts));
  CHECK(seen.size() == all.size());
  CHECK(of({"a", "b"}) == of({"a", "b"}));
  CHECK(of({}).size() == 16);

  const fs::path folder = test::scratch_folder();
  std::ofstream(folder / "one") << "1";
  work::Fingerprint before, after, gone;
  REQUIRE(before.add_file(folder));
  std::ofstream(folder / "one") << "2";
  REQUIRE(after.add_file(folder));
  CHECK(before.text() != after.text());
  CHECK_FALSE(gone.add_file(folder / "two"));
  CHECK(gone.add_program());
}

TEST_CASE("work: the same results at any number of threads") {
  const auto alone = work::run_all(squares(200), {.threads = 1});
  REQUIRE(alone);
  REQUIRE(alone->size() == 200);
  CHECK((*alone)[14] == "196");
  for (const unsigned threads : {0U, 2U, 7U}) {
    const auto many = work::run_all(squares(200), {.threads = threads});
    REQUIRE(many);
    CHECK(*many == *alone);
  }
  const auto none = work::run_all(squares(0), {.threads = 3});
  REQUIRE(none);
  CHECK(none->empty());
}

TEST_CASE("work: the error is that of the lowest failing item, in any order of completion") {
  const work::Work work{
      .part = "items", .items = 100, .evaluate = [](std::size_t i) -> Result<std::string> {
        if (i == 40) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        if (i >= 40) return fail(fmt::format("item {}", i));
        return std::string();
      }};
  for (int round = 0; round < 5; ++round) {
    const auto failed = work::run_all(work, {.threads = 4});
    REQUIRE_FALSE(failed);
    CHECK(to_string(failed.error()) == "item 40");
  }
  const work::Work faulty{
      .part = "items", .items = 3, .evaluate = [](std::size_t) -> Result<std::string> {
        REHEARSE_CHECK(false, "a fault");
        return std::string();
      }};
  CHECK_THROWS_WITH(work::run_all(faulty, {.threads = 2}), Contains("a fault"));
}

TEST_CASE("work: results before a stop are in the journal, and are not computed again") {
  const fs::path path = test::scratch_folder() / "w.journal";
  std::atomic<int> evaluated = 0;
  const work::Work work{
      .part = "squares", .items = 50, .evaluate = [&](std::size_t i) -> Result<std::string> {
        ++evaluated;
        return std::to_string(i * i);
      }};
  {
    Result<work::Journal> journal = work::Journal::open(path, "key", "squares");
    REQUIRE(journal);
    const auto stopped = work::run_all(
        work,
        {.threads = 1, .journal = &*journal, .progress = [](double share) { return share < 0.4; }});
    REQUIRE_FALSE(stopped);
    CHECK_THAT(to_string(stopped.error()),
               Contains("stopped with ") && Contains(" results done") &&
                   Contains(path.string() + "; the same command resumes from there"));
  }
  const int before = evaluated;
  CHECK(before >= 20);
  CHECK(before < 50);
  Result<work::Journal> journal = work::Journal::open(path, "key", "squares");
  REQUIRE(journal);
  CHECK(journal->held("squares").size() == static_cast<std::size_t>(before));
  CHECK(journal->held("cubes").empty());
  std::vector<double> shares;
  const auto done =
      work::run_all(work, {.threads = 3, .journal = &*journal, .progress = [&](double share) {
                             shares.push_back(share);
                             return true;
                           }});
  REQUIRE(done);
  CHECK(*done == *work::run_all(squares(50), {}));
  CHECK(evaluated == 50);
  REQUIRE(!shares.empty());
  CHECK(shares.front() >= 0.4);
  REQUIRE(journal->remove());
  CHECK(fs::is_empty(path.parent_path()));

  const auto lost = work::run_all(work, {.progress = [](double) { return false; }});
  REQUIRE_FALSE(lost);
  CHECK_THAT(to_string(lost.error()), Contains("use --journal FILE to keep results"));
}

/// Why a journal is refused, in one line.
std::string refusal(const fs::path& path, const std::string& key = "key") {
  const Result<work::Journal> journal = work::Journal::open(path, key, "squares");
  REQUIRE_FALSE(journal);
  REQUIRE(journal.error().diagnostics.size() == 1);
  const std::string line = to_string(journal.error());
  CHECK(line.starts_with(path.string() + ": "));
  CHECK(line.find('\n') == std::string::npos);
  return line;
}

/// A journal of a thousand results.
fs::path full_journal() {
  const fs::path path = test::scratch_folder() / "full.journal";
  Result<work::Journal> journal = work::Journal::open(path, "key", "squares of study.yaml");
  REQUIRE(journal);
  REQUIRE(work::run_all(squares(1000), {.journal = &*journal}));
  return path;
}

TEST_CASE("work: a journal of other inputs, another file and one in use are refused and kept") {
  const fs::path path = full_journal();
  const std::string before = read_file(path).value();
  CHECK_THAT(refusal(path, "other"),
             Contains("belongs to other inputs, other options or another build of the program "
                      "(squares of study.yaml)") &&
                 Contains("remove it to start again, or name another file with --journal"));
  CHECK(read_file(path).value() == before);
  std::ofstream(path.string() + ".lock") << "what a killed run left\n";
  {
    const Result<work::Journal> open = work::Journal::open(path, "key", "squares");
    REQUIRE(open);
    CHECK_THAT(refusal(path), Contains(fmt::format("is in use by process {} on ", ::getpid())) &&
                                  Contains(" since 20") &&
                                  Contains(" UTC; one run at a time; wait for it"));
    fs::remove(path.string() + ".lock");
    CHECK_THAT(refusal(path), Contains("is in use by another run; one run at a time"));
  }
  CHECK(fs::exists(path));
  CHECK_FALSE(fs::exists(path.string() + ".lock"));
  const fs::path folder = test::scratch_folder();
  std::ofstream(folder / "notes.txt") << std::string(5000, 'x');
  CHECK_THAT(refusal(folder / "notes.txt"), Contains("is not a journal, or is damaged"));
  CHECK(read_file(folder / "notes.txt").value() == std::string(5000, 'x'));
  CHECK_THAT(refusal(folder), Contains("cannot be opened"));
  CHECK_THAT(refusal(folder / "no" / "such"), Contains("cannot be opened"));

  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open((folder / "other.db").c_str(), &db) == SQLITE_OK);
  sqlite3_exec(db, "CREATE TABLE t (x)", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  const std::string database = read_file(folder / "other.db").value();
  CHECK_THAT(refusal(folder / "other.db"), Contains("is a database, but not a journal"));
  CHECK(read_file(folder / "other.db").value() == database);
}

TEST_CASE("work: a damaged journal is refused") {
  const fs::path path = full_journal();
  const std::string whole = read_file(path).value();
  const auto write = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  };
  write(whole.substr(0, whole.size() / 2));
  CHECK_THAT(refusal(path), Contains("damaged") && Contains("remove it to start again"));
  // A value is a text of digits: another digit makes another value, and no damage to the database.
  std::string changed = whole;
  const std::size_t at = changed.find("998001");
  REQUIRE(at != std::string::npos);
  changed[at] = '8';
  write(changed);
  CHECK_THAT(refusal(path), Contains("result 999 of squares has a wrong checksum"));
  // Whatever byte is another: refused with a line, or it was one that does not count.
  std::size_t refused = 0;
  for (std::size_t byte = 0; byte < whole.size(); byte += 97) {
    changed = whole;
    changed[byte] = static_cast<char>(changed[byte] ^ 0x55);
    write(changed);
    const Result<work::Journal> journal = work::Journal::open(path, "key", "squares");
    if (!journal) {
      ++refused;
      continue;
    }
    const auto& held = journal->held("squares");
    for (const auto& [item, value] : held) CHECK(value == std::to_string(item * item));
  }
  CHECK(refused > whole.size() / 97 / 2);
}

TEST_CASE("work: a killed run resumes, and only items in progress are computed twice") {
  const fs::path folder = test::scratch_folder(), log = folder / "log", journal = folder / "j";
  const std::string arguments =
      fmt::format("60 2 {} {} --threads 3", journal.string(), log.string());
  CHECK(run(0, arguments + " --kill 0 30").code == 128 + SIGKILL);
  const std::size_t kept = rows_of(journal);
  CHECK(kept >= 20);
  CHECK(kept < 60);
  const Ran again = run(0, arguments);
  CHECK(again.code == 0);
  CHECK(again.out == expected(60));
  const auto counts = evaluations(log);
  REQUIRE(counts.size() == 60);
  std::size_t all = 0;
  for (const auto& [item, times] : counts) all += static_cast<std::size_t>(times);
  // 30 were evaluated and 3 more were begun, all that is not in the journal once more.
  CHECK(all <= 33 + 60 - kept);
  CHECK(all - 60 <= 2 * 3);
}

TEST_CASE("work: ranks share a queue, with the result of one process") {
  SKIP_WITHOUT_MPI();
  const fs::path folder = test::scratch_folder();
  for (const int ranks : {1, 2, 4}) {
    const fs::path log = folder / fmt::format("log{}", ranks);
    const Ran ran = run(ranks, fmt::format("80 2 - {}", log.string()));
    INFO(ran.errors);
    CHECK(ran.code == 0);
    CHECK(ran.out == expected(80));
    CHECK(ran.errors.empty());
    const auto counts = evaluations(log);
    CHECK(counts.size() == 80);
    for (const auto& [item, times] : counts) CHECK(times == 1);
  }
}

TEST_CASE("work: an error on one rank is reported once") {
  SKIP_WITHOUT_MPI();
  const fs::path log = test::scratch_folder() / "log";
  const Ran bad = run(3, fmt::format("40 1 - {} --fail 13", log.string()));
  CHECK(bad.code == 1);
  CHECK(bad.out.empty());
  CHECK_THAT(bad.errors, Contains("work_ranks: item 13 is bad\n"));
  CHECK(bad.errors.find("work_ranks: ") == bad.errors.rfind("work_ranks: "));
  const Ran other = run(2, fmt::format("40 1 - {} --key differs", log.string()));
  CHECK(other.code == 1);
  CHECK_THAT(other.errors,
             Contains("has another build of the program or other inputs; the same files and the "
                      "same program on every machine"));
}

TEST_CASE("work: ranks leave even if long unread messages remain") {
  SKIP_WITHOUT_MPI();
  // Three ranks fail at once; the first needs the error of the lowest item alone.
  const fs::path log = test::scratch_folder() / "log";
  for (int round = 0; round < 3; ++round) {
    const Ran bad = run(4, fmt::format("40 1 - {} --fail 3 --words 10000", log.string()));
    CHECK(bad.code == 1);
    CHECK(bad.out.empty());
    CHECK_THAT(bad.errors, Contains("work_ranks: item 3 is bad!!!"));
  }
}

TEST_CASE("work: after a rank is killed, mpirun ends all, and another run resumes") {
  SKIP_WITHOUT_MPI();
  for (const int victim : {0, 1}) {
    const fs::path folder = test::scratch_folder(), log = folder / "log", journal = folder / "j";
    const std::string arguments = fmt::format("80 4 {} {}", journal.string(), log.string());
    const Ran killed = run(3, arguments + fmt::format(" --kill {} 10", victim));
    CHECK(killed.code != 0);
    CHECK(killed.out.empty());
    CHECK_THAT(killed.errors, Contains("signal 9"));
    // mpirun asks the others to stop before it makes them; what they then say may be lost with it.
    if (victim == 1 && killed.errors.find("work_ranks: ") != std::string::npos)
      CHECK_THAT(killed.errors, Contains("work_ranks: stopped with ") &&
                                    Contains("the same command resumes from there"));
    const std::size_t kept = rows_of(journal);
    CHECK(kept > 10);
    CHECK(kept < 80);
    const Ran again = run(2, arguments);
    INFO(again.errors);
    CHECK(again.code == 0);
    CHECK(again.out == expected(80));
    std::size_t all = 0;
    const auto counts = evaluations(log);
    for (const auto& [item, times] : counts) all += static_cast<std::size_t>(times);
    CHECK(counts.size() == 80);
    CHECK(all - 80 <= 3 * 2);
  }
}

}  // namespace
}  // namespace rehearse
