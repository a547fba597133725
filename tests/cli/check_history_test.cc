// check with a store of accepted runs: what a candidate is held against, and what is kept when.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/data.h"
#include "tests/support/database.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"
#include "tests/support/step_recording.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using test::Json;
using test::Ran;
using test::recording;
using test::uneven_steps;

/// A store in a folder of its own, and recordings to give to it.
class Job {
  fs::path folder_ = test::scratch_folder();

 public:
  const std::string store = (folder_ / "perf.history").string();

  std::string record(int length, int which, int steps = 20) {
    const fs::path path = folder_ / fmt::format("{}_{}_{}.json", length, which, steps);
    test::write_file(path, recording(uneven_steps(length, which, steps)));
    return path.string();
  }
  Ran check(const std::string& candidate, std::vector<std::string> more = {}) {
    std::vector<std::string> all = {"check", "--history", store, "--candidate", candidate};
    all.insert(all.end(), more.begin(), more.end());
    return test::rehearse(std::move(all));
  }
  Ran accept(const std::string& candidate, const std::string& name,
             std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--accept", "--name", name});
    return check(candidate, std::move(more));
  }
  Json json(const std::string& candidate, int code, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--format", "json"});
    Json json = test::document(check(candidate, std::move(more)), code);
    test::check_values(json);
    return json;
  }
  /// So many runs of steps of ten milliseconds.
  void fill(int runs) {
    for (int k = 0; k < runs; ++k) {
      const Ran ran = accept(record(10000 + 10 * (k % 3), k), fmt::format("c{}", k));
      INFO(ran.out << ran.errors);
      REQUIRE(ran.code == 0);
      REQUIRE(ran.out.find("\naccepted\n") != std::string::npos);
    }
  }
};

TEST_CASE("check: the first run creates a store, and later runs are compared with its level") {
  Job job;
  const Ran first = job.accept(job.record(10000, 0), "c0");
  CHECK(first.code == 0);
  CHECK(first.errors.find("identical step times") == std::string::npos);
  CHECK(first.out.find(
            "0 accepted runs: the candidate is its first run, compared with itself\naccepted\n") !=
        std::string::npos);
  // The same run again: the store has no other.
  const Ran twice = job.accept(job.record(10000, 0), "c0 again");
  CHECK(twice.code == 0);
  CHECK(twice.out.find(
            "0 accepted runs, excluding the candidate, which is one of them: compared with itself\n"
            "not accepted: the same run was accepted before\n") != std::string::npos);
  // Too short for a history: the newest run alone.
  const Json second = job.json(job.record(10020, 1), 0);
  CHECK(second["store"]["runs"] == 1);
  CHECK(second["store"]["pooled"] == 1);
  CHECK_FALSE(second["store"].contains("accepted"));
  CHECK_FALSE(second.contains("history"));
  CHECK(second["baseline"]["source"] == job.store);

  for (int k = 1; k < 7; ++k)
    REQUIRE(job.accept(job.record(10000 + 10 * (k % 3), k), fmt::format("c{}", k)).code == 0);
  const Json later = job.json(job.record(10010, 9), 0);
  CHECK(later["verdict"] == "pass");
  CHECK(later["store"]["runs"] == 7);
  CHECK(later["store"]["pooled"] == 7);
  CHECK(later["baseline"]["steps"] == 140);
  CHECK(later["history"]["runs"].size() == 8);
  CHECK(later["history"]["runs"][3]["source"] == "c3");
  CHECK(later["history"]["runs"][3].contains("date"));
  CHECK(later["history"]["segments"].size() == 1);

  const Ran slower = job.accept(job.record(10500, 3), "slow");
  CHECK(slower.code == 1);
  CHECK(slower.out.find("not accepted: the verdict is fail") != std::string::npos);
  CHECK(job.json(job.record(10010, 9), 0)["store"]["runs"] == 7);

  // The very run again, as a job that is run twice has it: neither twice in, nor its own baseline.
  const Ran again = job.accept(job.record(10000, 6), "again");
  CHECK(again.code == 0);
  CHECK(again.out.find("not accepted: the same run was accepted before") != std::string::npos);
  CHECK(again.out.find("6 accepted runs") != std::string::npos);
}

TEST_CASE("check: an accepted slowdown becomes the new level, and is no longer reported") {
  Job job;
  job.fill(7);
  CHECK(job.check(job.record(10500, 3)).code == 1);
  const Ran accepted = job.accept(job.record(10500, 3), "on purpose", {"--max-slowdown", "10%"});
  INFO(accepted.out);
  CHECK(accepted.code == 0);
  CHECK(accepted.out.find("\naccepted\n") != std::string::npos);
  for (int k = 0; k < 2; ++k)
    REQUIRE(job.accept(job.record(10500, 5 + k), fmt::format("d{}", k)).code == 0);
  const Json level = job.json(job.record(10510, 8), 0);
  CHECK(level["verdict"] == "pass");
  CHECK(level["store"]["pooled"] == 3);
  REQUIRE(level["history"]["segments"].size() == 2);
  CHECK(level["history"]["segments"][1]["first"] == 7);
  CHECK(level["history"]["segments"][1]["jump"].get<double>() == Approx(0.05).margin(0.005));
  CHECK(level["findings"][1]["name"] == "jump");
  CHECK(level["findings"][1]["message"].get<std::string>().find(
            "an increase of 10 % was accepted") != std::string::npos);
  CHECK(level["findings"][1]["file"] == job.store);
  const Json worse = job.json(job.record(11000, 9), 1);
  CHECK(worse["step_time"]["change"].get<double>() == Approx(0.0476).margin(0.004));
}

TEST_CASE("check: the store finds a drift whose runs all passed") {
  Job job;
  bool found = false;
  for (int k = 0; k < 14 && !found; ++k) {
    const Ran ran = job.accept(job.record(10000 + 70 * k, k), fmt::format("c{}", k));
    found = ran.code == 1;
    if (!found) continue;
    INFO(ran.out);
    CHECK(ran.out.find("\nfail ") != std::string::npos);
    CHECK(ran.out.find(" drift ") != std::string::npos);
    CHECK(ran.out.find("\npass ") != std::string::npos);
    CHECK(k > 4);
  }
  CHECK(found);
}

TEST_CASE("check: runs accepted at the same time are all kept") {
  Job job;
  job.fill(1);
  std::vector<std::unique_ptr<test::RunningRehearse>> running;
  for (int k = 1; k <= 4; ++k)
    running.push_back(std::make_unique<test::RunningRehearse>(std::vector<std::string>{
        "check", "--history", job.store, "--candidate", job.record(10000, k), "--accept", "--name",
        fmt::format("p{}", k)}));
  for (const auto& one : running) {
    const Ran ran = one->wait();
    INFO(ran.errors);
    CHECK(ran.code == 0);
  }
  CHECK(job.json(job.record(10000, 9), 0)["store"]["runs"] == 5);

  // All of them may begin it.
  Job fresh;
  std::vector<std::string> recordings;
  for (int k = 1; k <= 3; ++k) recordings.push_back(fresh.record(10000, k));
  running.clear();
  for (const std::string& path : recordings)
    running.push_back(std::make_unique<test::RunningRehearse>(std::vector<std::string>{
        "check", "--history", fresh.store, "--candidate", path, "--accept"}));
  for (const auto& one : running) CHECK(one->wait().code == 0);
  CHECK(fresh.json(fresh.record(10000, 9), 0)["store"]["runs"] == 3);
}

TEST_CASE(
    "check: a run that is killed while it accepts leaves the store of before, or the new one") {
  Job job;
  job.fill(2);
  std::size_t runs = 2, killed = 0;
  // Ever earlier after one that came too late, ever later after one that was hit.
  double wait_ms = 12;
  for (int k = 2; k < 14; ++k) {
    test::RunningRehearse running({"check", "--history", job.store, "--candidate",
                                   job.record(10000, k), "--accept", "--name", "killed"});
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(wait_ms));
    running.signal(SIGKILL);
    const bool hit = running.wait().code == 128 + SIGKILL;
    killed += hit;
    wait_ms *= hit ? 1.4 : 0.5;
    const Json after = job.json(job.record(10001, 4), 0);
    const auto now = after["store"]["runs"].get<std::size_t>();
    CHECK(now >= runs);
    CHECK(now <= runs + 1);
    runs = now;
  }
  CHECK(killed > 0);

  // In the very middle: rows are in the file, the transaction has no end.
  const fs::path writer = test::write_scratch(
      "writer.py",
      "import os, signal, sqlite3, sys\n"
      "db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
      "db.execute('PRAGMA cache_size = 1')\n"
      "db.execute('BEGIN IMMEDIATE')\n"
      "db.execute(\"DELETE FROM op\")\n"
      "db.execute('UPDATE run SET level_s = level_s * 3')\n"
      "for k in range(400):\n"
      "  db.execute(\"INSERT INTO op VALUES (9, ?, 'set', ?, '', '', '', '', 0, 0, 0, x'00')\",\n"
      "             (k, 'x' * 4000))\n"
      "os.kill(os.getpid(), signal.SIGKILL)\n");
  const auto size = fs::file_size(job.store);
  CHECK(std::system(
            fmt::format("python3 '{}' '{}' 2>/dev/null", writer.string(), job.store).c_str()) != 0);
  CHECK(fs::exists(job.store + "-journal"));
  CHECK(fs::file_size(job.store) > size);
  const Json whole = job.json(job.record(10001, 4), 0);
  CHECK(whole["store"]["runs"] == runs);
  CHECK(whole["verdict"] == "pass");
  CHECK(fs::file_size(job.store) == size);

  // Killed while it made the store: what is there is no store yet, and becomes one.
  Job fresh;
  const fs::path beginner =
      test::write_scratch("beginner.py",
                          "import os, signal, sqlite3, sys\n"
                          "db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
                          "db.execute('PRAGMA cache_size = 1')\n"
                          "db.execute('BEGIN IMMEDIATE')\n"
                          "db.execute('CREATE TABLE op (a, b)')\n"
                          "for k in range(400):\n"
                          "  db.execute('INSERT INTO op VALUES (?, ?)', (k, 'x' * 4000))\n"
                          "os.kill(os.getpid(), signal.SIGKILL)\n");
  CHECK(std::system(
            fmt::format("python3 '{}' '{}' 2>/dev/null", beginner.string(), fresh.store).c_str()) !=
        0);
  CHECK(fs::file_size(fresh.store) > 0);
  CHECK(fresh.accept(fresh.record(10000, 1), "c0").out.find("\naccepted\n") != std::string::npos);
}

TEST_CASE("check: two typical steps are drawn side by side") {
  const fs::path path = test::scratch_folder() / "steps.json";
  const Ran ran =
      test::rehearse({"check", "--baseline", "examples/recordings/gate_before.json", "--candidate",
                      "examples/recordings/gate_after.json", "--perfetto", path.string()});
  CHECK(ran.code == 1);
  const Json drawn = Json::parse(test::text_of(path));
  std::vector<std::string> processes;
  std::map<int, double> length;
  std::map<int, std::size_t> kernels;
  for (const Json& event : drawn["traceEvents"]) {
    const int process = event["pid"];
    if (event["name"] == "process_name") processes.push_back(event["args"]["name"]);
    if (event["ph"] != "X") continue;
    CHECK(event["ts"].get<double>() >= 0);
    if (event["name"].get<std::string>().starts_with("ProfilerStep#")) {
      CHECK(event["ts"] == 0);
      length[process] = event["dur"];
    }
    kernels[process] += event["cat"] == "compute";
  }
  REQUIRE(processes.size() == 2);
  CHECK(processes[0].starts_with("baseline: rank 0, step "));
  CHECK(processes[1].starts_with("candidate: rank 0, step "));
  CHECK(length.at(1) == Approx(9127).epsilon(0.005));
  CHECK(length.at(2) == Approx(9506).epsilon(0.005));
  CHECK(kernels.at(1) == 3);
  CHECK(kernels.at(2) == 3);
}

TEST_CASE("check: a truncated recording is judged by its whole steps, or not at all") {
  const fs::path folder = test::scratch_folder();
  const auto put = [&](const char* name, const std::string& text) {
    test::write_file(folder / name, text);
    return (folder / name).string();
  };
  const std::string text = recording(uneven_steps(10000, 1, 30));
  const std::string whole = put("whole.json", text);
  // Its records are in order of time: the steps before the cut are whole.
  const std::string cut = put("cut.json", text.substr(0, text.size() * 7 / 10));
  const Ran judged =
      test::rehearse({"check", "--baseline", whole, "--candidate", cut, "--format", "json"});
  CHECK(judged.code == 0);
  const Json json = Json::parse(judged.out);
  CHECK(json["verdict"] == "pass");
  CHECK(json["candidate"]["steps"].get<int>() >= 18);
  CHECK(json["candidate"]["steps"].get<int>() <= 20);
  CHECK(judged.errors.find("cut.json lacks records: only the ") != std::string::npos);
  const std::string store = (folder / "perf.history").string();
  REQUIRE(test::rehearse({"check", "--history", store, "--candidate", whole, "--accept"}).code ==
          0);
  CHECK(test::rehearse({"check", "--history", store, "--candidate", cut, "--accept"})
            .out.find("not accepted: it lacks records") != std::string::npos);

  // A second stream whose records are at the end, after the cut: no step has them any more, and
  // each seems to do less.
  const auto two_streams = [&](bool is_cut) {
    std::string events = text.substr(0, text.size() - 2);  // without "]}"
    if (!is_cut)
      for (int k = 0; k < 30; ++k)
        events += fmt::format(
            ",\n"
            R"({{"ph":"X","cat":"kernel","name":"other","pid":0,"tid":9,"ts":{},"dur":4000,)"
            R"("args":{{"device":0,"stream":9}}}})",
            1000000 + 10000 * k + 100);
    return events + (is_cut ? ",\n{\"ph\":\"X\",\"cat\":\"ker" : "]}");
  };
  const std::string both = put("both.json", two_streams(false));
  const std::string lost = put("lost.json", two_streams(true));
  const Json unsure = test::json_of({"check", "--baseline", both, "--candidate", lost});
  CHECK(unsure["verdict"] == "inconclusive");
  CHECK(unsure["limits"][0]["message"].get<std::string>().find(
            "lost.json lacks records, and 1 op are less frequent") != std::string::npos);
  CHECK_FALSE(unsure["limits"][0].contains("steps_needed"));

  const std::string nothing = put("nothing.json", text.substr(0, text.size() / 15));
  test::check_failed(
      test::rehearse({"check", "--baseline", whole, "--candidate", nothing, "--quiet"}), 1,
      "nothing.json: lacks records, and fewer than two of its ");
}

TEST_CASE("check: wrong use of a store is one line") {
  Job job;
  const std::string good = job.record(10000, 0);
  struct Case {
    std::vector<std::string> arguments;
    int code;
    const char* says;
  };
  const std::string no_store = test::write_scratch("a.history", "{\"a\": 1}").string();
  const fs::path other = test::scratch_folder() / "other.history";
  test::Database(other).run("CREATE TABLE a (b)");
  job.fill(2);
  const std::string newer = (test::scratch_folder() / "newer.history").string();
  fs::copy_file(job.store, newer);
  test::Database(newer).run("PRAGMA user_version = 3");
  const std::string changed = (test::scratch_folder() / "changed.history").string();
  fs::copy_file(job.store, changed);
  // Of version 1: without a digest.
  test::Database(changed).run(
      "PRAGMA user_version = 1; UPDATE step SET step_time_s = step_time_s * 1.5 WHERE run = 2");
  const std::string empty = (test::scratch_folder() / "empty.history").string();
  fs::copy_file(job.store, empty);
  test::Database(empty).run("PRAGMA user_version = 1; DELETE FROM step; UPDATE op SET times = x''");
  const std::string level = (test::scratch_folder() / "level.history").string();
  fs::copy_file(job.store, level);
  test::Database(level).run(
      "PRAGMA user_version = 1; UPDATE run SET level_s = 'fast' WHERE id = 1");
  const std::string allowed = (test::scratch_folder() / "allowed.history").string();
  fs::copy_file(job.store, allowed);
  test::Database(allowed).run("UPDATE run SET allowed = allowed * 2 WHERE id = 1");
  const std::string torn = (test::scratch_folder() / "torn.history").string();
  fs::copy_file(job.store, torn);
  fs::resize_file(torn, 5000);
  const std::string zeros = (test::scratch_folder() / "zeros.history").string();
  fs::copy_file(job.store, zeros);
  {
    std::fstream file(zeros, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file << std::string(8192, '\0');
  }
  const auto with = [&](const std::string& store, std::vector<std::string> more = {}) {
    std::vector<std::string> all = {"check", "--history", store, "--candidate", good, "--quiet"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  for (const Case& c : {
           Case{with("no_such.history"), 1, "no_such.history: does not exist"},
           Case{with("/no/such/folder/a.history", {"--accept"}), 1, "/no/such/folder"},
           Case{with(no_store, {"--accept"}), 1, "a.history: is not a history"},
           Case{with(other.string(), {"--accept"}), 1, "other.history: is not a history"},
           Case{with(newer), 1, "newer.history: is a history of version 3; version 2"},
           Case{with(newer, {"--accept"}), 1, "is a history of version 3; version 2"},
           Case{with(changed), 1, "the data of run 'c1' are damaged"},
           Case{with(empty), 1, "the data of run 'c0' are damaged"},
           Case{with(level), 1, "the data of run 'c0' are damaged"},
           Case{with(allowed), 1, "is a damaged history: its checksum is wrong"},
           Case{with(torn), 1, "torn.history: "},
           Case{with(zeros), 1, "zeros.history: "},
           Case{{"check", "--history", job.store}, 1, "too few to distinguish a change from noise"},
           Case{{"check", "--history", job.store, "--accept"}, 2, "--accept needs --history"},
           Case{{"check", "--history", good, good, "--candidate", good, "--accept"},
                2,
                "--accept needs --history"},
           Case{{"check", "--baseline", good, "--candidate", good, "--accept"},
                2,
                "--accept needs --history"},
           Case{with(job.store, {"--name", "x"}), 2, "--name needs --accept"},
           Case{with(job.store, {"--perfetto", "x.json"}), 2, "--perfetto needs --baseline"},
       }) {
    INFO(c.says);
    test::check_failed(test::rehearse(c.arguments), c.code, c.says);
  }
  CHECK_FALSE(fs::exists("no_such.history"));
}

TEST_CASE("check: foreign names are plain text in every report") {
  const std::string hostile =
      "<img src=x>\\u001b[31m @all ![a](http://b) `c` \\u0001\\uffff|d*e*</details>";
  const fs::path folder = test::scratch_folder() / "a <b>&\"'\n## @x";
  fs::create_directories(folder);
  const auto put = [&](const char* name, int length) {
    test::write_file(folder / name, recording(uneven_steps(length, 1), hostile));
    return (folder / name).string();
  };
  const std::string a = put("a.json", 10000), b = put("b\xff.json", 13000);
  const fs::path budget = test::write_scratch("b.yaml", "ops:\n  '*img*': +2%\n");
  const fs::path xml = test::scratch_folder() / "c.xml", sarif = test::scratch_folder() / "c.sarif";
  const Ran ran = test::rehearse({"check", "--baseline", a, "--candidate", b, "--budget",
                                  budget.string(), "--junit", xml.string(), "--sarif",
                                  sarif.string(), "--annotations", "--format", "markdown"});
  CHECK(ran.code == 1);
  for (const char* markup : {"<img", "\x1b", "@all", "![a]", "http://", "\n## ", "\n::error::"}) {
    INFO(markup);
    CHECK(ran.out.find(markup) == std::string::npos);
  }
  CHECK(ran.out.find("&lt;img src=x&gt;") != std::string::npos);
  CHECK(ran.errors.find('\x1b') == std::string::npos);
  const auto python = [](const std::string& program, const fs::path& file) {
    const fs::path script = test::write_scratch("check.py", program);
    return std::system(fmt::format("python3 '{}' '{}'", script.string(), file.string()).c_str()) ==
           0;
  };
  CHECK(
      python("import sys, xml.etree.ElementTree as t\n"
             "r = t.parse(sys.argv[1]).getroot()\n"
             "assert r.get('failures') == '2', r.attrib\n",
             xml));
  // What SARIF 2.1.0 requires: OASIS, sections 3.13, 3.14, 3.18, 3.19, 3.27, 3.11, 3.4.
  CHECK(
      python("import json, sys, urllib.parse\n"
             "j = json.load(open(sys.argv[1]))\n"
             "assert j['version'] == '2.1.0' and j['$schema'].startswith('https://')\n"
             "assert isinstance(j['runs'], list) and len(j['runs']) == 1\n"
             "driver = j['runs'][0]['tool']['driver']\n"
             "assert driver['name']\n"
             "ids = [r['id'] for r in driver['rules']]\n"
             "assert len(set(ids)) == len(ids)\n"
             "results = j['runs'][0]['results']\n"
             "assert len(results) >= 2\n"
             "for r in results:\n"
             "  assert r['ruleId'] in ids and r['level'] in ('error', 'warning', 'note')\n"
             "  assert r['message']['text'] and '\\x1b' not in r['message']['text']\n"
             "  where = r['locations'][0]['physicalLocation']\n"
             "  uri = where['artifactLocation']['uri']\n"
             "  assert uri.isascii() and not set(uri) & set(' <>\"\\n'), uri\n"
             "  urllib.parse.urlparse(uri)\n"
             "  assert where['region']['startLine'] >= 1\n",
             sarif));
}

}  // namespace
}  // namespace rehearse
