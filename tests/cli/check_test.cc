// check: verdicts, reports, histories, guards, and what is said of wrong input.
#include <cstdio>
#include <filesystem>
#include <sstream>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/power_recording.h"
#include "tests/support/rehearse.h"
#include "tests/support/step_recording.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using test::Json;
using test::Ran;
using test::recording;

constexpr const char* kBefore = "examples/recordings/gate_before.json";
constexpr const char* kAgain = "examples/recordings/gate_again.json";
constexpr const char* kAfter = "examples/recordings/gate_after.json";

Ran check(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "check");
  return test::rehearse(std::move(arguments));
}

Json verdict_of(std::vector<std::string> arguments, int code) {
  arguments.insert(arguments.begin(), "check");
  return test::checked_json_of(std::move(arguments), code);
}

const Json& op_of(const Json& json, const std::string& name) {
  for (const Json& op : json["ops"])
    if (op["name"] == name) return op;
  FAIL("no op " << name);
  return json;
}

/// Runs a python3 program on a file; false where it fails. Its words are shown.
bool python(const std::string& program, const fs::path& file) {
  const std::string command = fmt::format("python3 -c '{}' '{}' 2>&1", program, file.string());
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string said;
  char block[1024];
  while (const std::size_t n = std::fread(block, 1, sizeof block, pipe)) said.append(block, n);
  const bool ok = ::pclose(pipe) == 0;
  if (!ok) WARN(said);
  return ok;
}

TEST_CASE("check: a slower job fails, the same job passes") {
  const Json slower = verdict_of({"--baseline", kBefore, "--candidate", kAfter}, 1);
  CHECK(slower["verdict"] == "fail");
  const Json& step = slower["step_time"];
  CHECK(step["baseline"]["value"].get<double>() == Approx(9.13e-3).epsilon(0.01));
  CHECK(step["change"].get<double>() == Approx(0.0415).margin(0.003));
  CHECK(step["change_low"] < step["change"]);
  CHECK(step["change"] < step["change_high"]);
  CHECK(step["significant"] == true);
  const Json& gemm = op_of(slower, "gemm_128x128_tn");
  CHECK(gemm["significant"] == true);
  CHECK(gemm["kind"] == "kernel");
  CHECK(gemm["renamed"][0] == "gemm_128x128_v2_tn");
  CHECK(gemm["change"].get<double>() == Approx(0.07).margin(0.02));
  CHECK(op_of(slower, "elementwise_relu")["significant"] == false);
  for (const char* key : {"baseline.steps", "candidate.source", "limits[].name", "limits[].allowed",
                          "findings[].file", "ops[].calls.baseline", "quantities.compute.change",
                          "quantities.launch_gaps.significant"})
    test::check_has(slower, key);

  const Json same = verdict_of({"--baseline", kBefore, "--candidate", kAgain}, 0);
  CHECK(same["verdict"] == "pass");
  for (const Json& op : same["ops"]) CHECK(op["significant"] == false);
}

TEST_CASE("check: the whitespace of a recording is no difference of shapes") {
  std::string spaced = test::text_of(test::source_file(kBefore));
  for (std::size_t at = 0; (at = spaced.find("],[", at)) != std::string::npos; at += 5)
    spaced.replace(at, 3, " ] , [");
  const fs::path file = test::write_scratch("spaced.json", spaced);
  const Ran ran = check({"--baseline", kBefore, "--candidate", file.string()});
  CHECK(ran.code == 0);
  CHECK(ran.errors.find("other input shapes") == std::string::npos);
}

TEST_CASE("check: --max-slowdown is the largest slowdown that passes") {
  CHECK(verdict_of({"--baseline", kBefore, "--candidate", kAfter, "--max-slowdown", "10%"},
                   0)["verdict"] == "pass");
  CHECK(verdict_of({"--baseline", kBefore, "--candidate", kAfter, "--max-slowdown", "4%"},
                   1)["verdict"] == "fail");
  // A change that is shown as the limit is within it, in a table and in JSON alike.
  CHECK(check({"--baseline", kBefore, "--candidate", kAfter}).out.find("+4.15 %") !=
        std::string::npos);
  const Json at =
      verdict_of({"--baseline", kBefore, "--candidate", kAfter, "--max-slowdown", "4.15%"}, 0);
  CHECK(at["verdict"] == "pass");
  CHECK(at["limits"][0]["message"].get<std::string>().find("an increase of +4.15 % is allowed") !=
        std::string::npos);
  CHECK(verdict_of({"--baseline", kBefore, "--candidate", kAfter, "--max-slowdown", "4.13%"},
                   1)["verdict"] == "fail");
  // Faster is no failure.
  CHECK(verdict_of({"--baseline", kAfter, "--candidate", kBefore}, 0)["verdict"] == "pass");
}

TEST_CASE("check: too few steps are inconclusive, and the message gives the number needed") {
  const std::string a = test::write_scratch("a.json", recording({1000, 1080, 1030, 990})).string();
  const std::string b = test::write_scratch("b.json", recording({1010, 1070, 1000, 1040})).string();
  const Json json = verdict_of({"--baseline", a, "--candidate", b}, 0);
  CHECK(json["verdict"] == "inconclusive");
  const int needed = json["limits"][0]["steps_needed"];
  CHECK(needed > 4);
  const Ran text = check({"--baseline", a, "--candidate", b});
  CHECK(text.code == 0);
  const std::string says =
      fmt::format("; 4 steps were compared; a decision needs about {} in each recording", needed);
  CHECK(json["limits"][0]["message"].get<std::string>().ends_with(says));
  // The table wraps lines at spaces.
  std::istringstream words(text.out);
  std::string unwrapped;
  for (std::string word; words >> word;) unwrapped += (unwrapped.empty() ? "" : " ") + word;
  CHECK(unwrapped.find(says) != std::string::npos);
  CHECK(text.errors.find("warning: inconclusive") != std::string::npos);
  CHECK(check({"--baseline", a, "--candidate", b, "--strict"}).code == 1);
}

TEST_CASE("check: a slowdown in each of a few steps is no noise, and all lines agree") {
  const std::string few =
      test::write_scratch("few.json", recording({1000, 1010, 1005, 990, 1000})).string();
  const std::string slow =
      test::write_scratch("slow.json", recording({1450, 1460, 1440, 1455, 1445, 1450})).string();
  const Json json = verdict_of({"--baseline", few, "--candidate", slow}, 1);
  CHECK(json["verdict"] == "fail");
  CHECK(json["step_time"]["significant"] == true);
  CHECK(op_of(json, "gemm")["significant"] == true);
  CHECK(json["limits"][0]["message"].get<std::string>().find(
            "in each step of the candidate by at least +4") != std::string::npos);
  CHECK(json["limits"][0]["message"].get<std::string>().find("; in each step, gemm takes ") !=
        std::string::npos);
  const Ran comment = check({"--baseline", few, "--candidate", slow, "--format", "markdown"});
  CHECK(comment.out.find("adds to the step") != std::string::npos);
  CHECK(comment.out.find("noise") == std::string::npos);
}

TEST_CASE("check: a verdict without enough steps names what grew in each of them") {
  const std::string a = test::write_scratch("a.json", recording({1000, 1030, 980, 1010})).string();
  const std::string b = test::write_scratch("b.json", recording({1060, 1080, 1050, 1100})).string();
  const Json json = verdict_of({"--baseline", a, "--candidate", b}, 0);
  CHECK(json["verdict"] == "inconclusive");
  CHECK(json["limits"][0]["message"].get<std::string>().find("; in each step, gemm takes ") !=
        std::string::npos);
}

TEST_CASE("check: a reason never says that an increase in each step may be none") {
  const std::string a =
      test::write_scratch("a.json", recording({1000, 1030, 970, 1010, 990})).string();
  const std::string b =
      test::write_scratch("b.json", recording({1034, 1060, 1036, 1090, 1034, 1080})).string();
  const Json json = verdict_of({"--baseline", a, "--candidate", b, "--max-slowdown", "6%"}, 0);
  CHECK(json["verdict"] == "inconclusive");
  const std::string reason = json["limits"][0]["message"];
  INFO(reason);
  CHECK(reason.find("in each step of the candidate by at least") != std::string::npos);
  CHECK(reason.find("it has increased, but perhaps by less than +6 %") != std::string::npos);
  CHECK(reason.find("no change") == std::string::npos);
}

TEST_CASE("check: a comment shortens the names of kernels, and keeps them whole in its fold") {
  const std::string name = "void cutlass::Kernel<" + std::string(90, 'x') + ">(Params)";
  const std::string a =
      test::write_scratch("a.json", recording(test::uneven_steps(1000, 0), name)).string();
  const std::string b =
      test::write_scratch("b.json", recording(test::uneven_steps(1100, 1), name)).string();
  const std::string comment =
      check({"--baseline", a, "--candidate", b, "--format", "markdown"}).out;
  const std::size_t fold = comment.find("<details>");
  REQUIRE(fold != std::string::npos);
  CHECK(comment.substr(0, fold).find(std::string(60, 'x')) == std::string::npos);
  CHECK(comment.substr(fold).find(std::string(90, 'x')) != std::string::npos);
}

TEST_CASE("check: the same seed gives the same bytes") {
  const std::vector<std::string> arguments = {"--baseline", kBefore, "--candidate", kAgain,
                                              "--format",   "json",  "--seed",      "7"};
  const Ran one = check(arguments), two = check(arguments);
  CHECK(one.code == 0);
  CHECK(one.out == two.out);
  CHECK(Json::parse(one.out)["seed"] == 7);
}

TEST_CASE("check: Markdown has the verdict, the ops that caused it, cost and energy") {
  const Ran ran = check({"--baseline", kBefore, "--candidate", kAfter, "--instance", "p3.2xlarge",
                         "--count", "2", "--steps-per-epoch", "5000", "--format", "markdown"});
  CHECK(ran.code == 1);
  for (const char* part :
       {"**Rehearse check: fail", "| step_time | 9.13 ms |",
        "cost: 0.0776 USD per epoch, candidate", "p3.2xlarge on demand in us-east-1",
        "1 of 9 ops changed\n", "gemm_128x128_v2_tn"}) {
    INFO(part << "\n" << ran.out);
    CHECK(ran.out.find(part) != std::string::npos);
  }
  const Ran csv = check({"--baseline", kBefore, "--candidate", kAfter, "--format", "csv"});
  CHECK(csv.out.starts_with("kind,name,baseline,candidate,unit,change (%),"));
  CHECK(csv.out.find("kernel,gemm_128x128_tn,") != std::string::npos);
}

TEST_CASE("check: JUnit and SARIF are read by their parsers, hostile names are text") {
  const std::string hostile = R"(<b>&\"]]></failure>::error::x%0A)";
  const std::string a =
      test::write_scratch("a.json", recording(std::vector<int>(12, 1000), hostile)).string();
  const std::string b =
      test::write_scratch("b.json", recording(std::vector<int>(12, 1300), hostile)).string();
  const fs::path folder = test::scratch_folder();
  const fs::path xml = folder / "check.xml", sarif = folder / "check.sarif";
  const Ran ran = check({"--baseline", a, "--candidate", b, "--junit", xml.string(), "--sarif",
                         sarif.string(), "--annotations"});
  CHECK(ran.code == 1);
  CHECK(
      python("import sys,xml.etree.ElementTree as t; r=t.parse(sys.argv[1]).getroot(); "
             "s=r.find(\"testsuite\"); assert r.tag==\"testsuites\" and s.get(\"failures\")==\"1\" "
             "and s.find(\"testcase/failure\").get(\"message\") and \"kernel\" not in "
             "s.find(\"testcase\").get(\"name\")",
             xml));
  CHECK(
      python("import sys,json; j=json.load(open(sys.argv[1])); assert j[\"version\"]==\"2.1.0\"; "
             "r=j[\"runs\"][0]; ids=[x[\"id\"] for x in r[\"tool\"][\"driver\"][\"rules\"]]; "
             "assert r[\"results\"]; "
             "assert all(x[\"ruleId\"] in ids and x[\"message\"][\"text\"] and x[\"level\"] in "
             "(\"error\",\"warning\",\"note\") and x[\"locations\"][0][\"physicalLocation\"]"
             "[\"artifactLocation\"][\"uri\"] for x in r[\"results\"]); "
             "assert [x[\"level\"] for x in r[\"results\"]].count(\"error\")==1",
             sarif));
  CHECK(ran.errors.find("::error title=rehearse%3A step_time::+30") != std::string::npos);
  CHECK(ran.errors.find("\n::error::x") == std::string::npos);
  // A job that passes has a suite without failures.
  CHECK(check({"--baseline", kBefore, "--candidate", kAgain, "--junit", xml.string()}).code == 0);
  CHECK(
      python("import sys,xml.etree.ElementTree as t; "
             "assert t.parse(sys.argv[1]).getroot().get(\"failures\")==\"0\"",
             xml));
}

TEST_CASE("check: annotations come by themselves on GitHub") {
  test::RunningRehearse on({"check", "--baseline", kBefore, "--candidate", kAfter},
                           {{"GITHUB_ACTIONS", "true"}});
  const Ran there = on.wait();
  CHECK(there.code == 1);
  CHECK(there.errors.find("::error title=rehearse%3A step_time::") != std::string::npos);
  CHECK(there.errors.find("::notice title=rehearse%3A kernel gemm_128x128_tn::") !=
        std::string::npos);
  CHECK(there.out.find("::error") == std::string::npos);
}

TEST_CASE("check: a budget limits ops, parts, and cost") {
  const auto with = [](const std::string& budget, int code) {
    return verdict_of({"--baseline", kBefore, "--candidate", kAfter, "--budget",
                       test::write_scratch("budget.yaml", budget).string(), "--instance",
                       "p3.2xlarge", "--steps-per-epoch", "5000"},
                      code);
  };
  CHECK(with("step_time: +10%\n", 0)["limits"].size() == 1);
  CHECK(with("step_time: 9.3 ms\n", 1)["verdict"] == "fail");
  CHECK(with("step_time: 12 ms\n", 0)["verdict"] == "pass");
  CHECK(with("step_time: +10%\nlaunch_gaps: 1 ms\n", 1)["limits"][1]["verdict"] == "fail");
  CHECK(with("step_time: +10%\nops:\n  '*gemm*': +3%\n", 1)["limits"][1]["name"] == "ops: *gemm*");
  CHECK(with("step_time: +10%\nops:\n  '*relu*': +20%\n", 0)["verdict"] == "pass");
  CHECK(with("step_time: +10%\ncost_per_epoch: 3 USD\n", 0)["verdict"] == "pass");
  const Json cost = with("step_time: +10%\ncost_per_epoch: 0.03 USD\n", 1);
  CHECK(cost["limits"][1]["verdict"] == "fail");
  // 9.5 ms of 3.06 USD an hour.
  CHECK(cost["cost"]["candidate_per_step"]["value"].get<double>() ==
        Approx(9.506e-3 * 3.06 / 3600).epsilon(1e-3));
  // Of this one the catalog has no processors: that is a note of energy, not where a price is from.
  const Json rented =
      verdict_of({"--baseline", kBefore, "--candidate", kAgain, "--instance", "gpu_1x_a10"}, 0);
  CHECK(rented["cost"]["price"].get<std::string>().starts_with("price: gpu_1x_a10 on demand in "));
  // Neither has communication: none is not too much.
  for (const char* none : {"3 ms", "+10%"}) {
    const Json kept = with(fmt::format("step_time: +10%\nexposed_communication: {}\n", none), 0);
    CHECK(kept["limits"][1]["verdict"] == "pass");
    CHECK(kept["limits"][1]["message"] == "none in either");
  }
  // The default limit of the step applies if the budget has none.
  CHECK(with("cost_per_epoch: 3 USD\n", 1)["limits"][0]["name"] == "step_time");
}

TEST_CASE("check: a history distinguishes a jump from a drift, and is the candidate's background") {
  const std::vector<std::string> series = {kBefore, kAgain, kBefore, kAgain, kBefore};
  std::vector<std::string> flat = {"--history"};
  flat.insert(flat.end(), series.begin(), series.end());
  const Json calm = verdict_of(flat, 0);
  CHECK(calm["verdict"] == "pass");
  CHECK(calm["history"]["segments"].size() == 1);
  CHECK(calm["history"]["runs"].size() == 5);
  test::check_has(calm, "history.now.length.low");

  std::vector<std::string> jumped = flat;
  jumped.insert(jumped.end(), {kAfter, kAfter});
  const Json jump = verdict_of(jumped, 1);
  CHECK(jump["findings"][0]["name"] == "jump");
  CHECK(jump["findings"][0]["file"] == kAfter);
  CHECK(jump["history"]["segments"][1]["first"] == 5);
  CHECK(jump["history"]["segments"][1]["jump"].get<double>() == Approx(0.042).margin(0.005));
  CHECK(check(jumped).out.find("the step time jumped since") != std::string::npos);

  std::vector<std::string> drifting = {"--history"};
  for (int i = 0; i < 10; ++i) {
    std::vector<int> steps;
    for (int s = 0; s < 12; ++s) steps.push_back(10000 + 120 * i + 20 * ((s * 7 + i) % 5));
    drifting.push_back(
        test::write_scratch(fmt::format("run{}.json", i), recording(steps)).string());
  }
  const Json drift = verdict_of(drifting, 1);
  CHECK(drift["findings"][0]["name"] == "drift");
  CHECK(drift["history"]["segments"][0]["shape"] == "drift");
  CHECK(drift["history"]["now"]["drifts"].get<double>() > 0.9);

  std::vector<std::string> candidate = flat;
  candidate.insert(candidate.end(), {"--candidate", kAfter});
  const Json both = verdict_of(candidate, 1);
  CHECK(both["history"]["runs"].size() == 6);
  CHECK(both["baseline"]["source"] == kBefore);
  CHECK(both["step_time"]["significant"] == true);
}

TEST_CASE("check: --predictions fails if the error of a recording has grown") {
  const Ran first = check({"--predictions", "examples/recordings", "--format", "json"});
  REQUIRE(first.code == 0);
  const Json found = Json::parse(first.out);
  test::check_has(found, "predictions[].step_error");
  CHECK(found["predictions"].size() == 12);
  const std::string kept = test::write_scratch("accuracy.json", first.out).string();
  const Ran same = check({"--predictions", "examples/recordings", "--baseline", kept});
  CHECK(same.code == 0);
  CHECK(same.out.find("(was ") != std::string::npos);

  const fs::path folder = test::scratch_folder() / "stored";
  fs::create_directories(folder);
  const auto put = [&](const std::string& text) {
    std::FILE* file = std::fopen((folder / "a.json").c_str(), "w");
    REQUIRE(file);
    std::fputs(text.c_str(), file);
    std::fclose(file);
  };
  put(recording(std::vector<int>(6, 1000)));
  const Ran good = check({"--predictions", folder.string(), "--format", "json"});
  Json better = Json::parse(good.out);
  CHECK(better["predictions"][0]["name"] == "a.json");
  better["predictions"].push_back({{"name", "gone.json"}, {"step_error", 0}, {"start_error", 0}});
  const std::string baseline = test::write_scratch("b.json", better.dump()).string();
  const Ran gone = check({"--predictions", folder.string(), "--baseline", baseline});
  CHECK(gone.code == 1);
  CHECK(gone.out.find("no longer exists") != std::string::npos);
  // Kernels that start later and later for no reason.
  put(recording({1000, 1000, 1000, 1000, 1000, 1000}, "gemm", "Example GPU", {0, 300, 600}));
  const Ran changed = check({"--predictions", folder.string(), "--baseline",
                             test::write_scratch("c.json", good.out).string()});
  INFO(changed.out);
  CHECK(changed.code == 1);
  CHECK(changed.out.find("fail") != std::string::npos);
  better["predictions"][0]["step_error"] = -1e300;
  const Ran beyond = check({"--predictions", folder.string(), "--baseline",
                            test::write_scratch("d.json", better.dump()).string()});
  CHECK(beyond.code == 1);
  CHECK(beyond.errors.find("a.json has an error of -1e+300") != std::string::npos);
}

TEST_CASE("check: warnings for slow steps outside the level, and for a slower machine") {
  std::vector<int> even(20, 1000), odd(20, 1000);
  for (const std::size_t slow : {3U, 9U, 15U}) odd[slow] = 2000;
  for (std::size_t s = 0; s < 20; s += 2) odd[s] += 3;
  const std::string a = test::write_scratch("a.json", recording(even)).string();
  const std::string b = test::write_scratch("b.json", recording(odd)).string();
  const Ran ran = check({"--baseline", a, "--candidate", b});
  CHECK(ran.code == 0);
  CHECK(ran.errors.find("the candidate has slow steps that the typical step leaves out") !=
        std::string::npos);

  // Six kernels, all of them slower.
  const auto six = [](int length) {
    trace::Trace trace;
    test::RankBuilder rank(trace);
    std::uint32_t id = 0;
    for (int s = 0; s < 12; ++s) {
      const double begin = s * 10.0 * length;
      rank.step(s + 1, begin, 10.0 * length);
      for (int k = 0; k < 6; ++k) {
        rank.call("cudaLaunchKernel", begin + 10 + 8 * k, 5, ++id);
        rank.kernel("kernel " + std::to_string(k), begin + 100 + 1.5 * length * k,
                    1.4 * length + (s + k) % 3, id);
      }
    }
    const fs::path path = test::scratch_folder() / fmt::format("{}.rehearse", length);
    Result<trace::StoreWriter> writer = trace::StoreWriter::create(path);
    REQUIRE(writer);
    trace::RowSink& sink = writer->rows(0);
    for (const trace::HostOp& op : rank.rank().host_ops) sink.add(op);
    for (const trace::GpuOp& op : rank.rank().gpu_ops) sink.add(op);
    REQUIRE(writer->finish(trace));
    return path.string();
  };
  const Ran machine = check({"--baseline", six(1000), "--candidate", six(1100)});
  CHECK(machine.code == 1);
  CHECK(machine.errors.find("check the machine's clocks") != std::string::npos);
}

TEST_CASE("check: wrong usage is exit code 2") {
  struct Case {
    std::vector<std::string> arguments;
    const char* says;
  };
  for (const Case& c : {
           Case{{}, "--candidate"},
           Case{{"--baseline", kBefore}, "--candidate"},
           Case{{"--candidate", kBefore}, "--baseline or --history"},
           Case{{"--baseline", kBefore, "--candidate", kAfter, "--max-slowdown", "3"},
                "'3' has no unit"},
           Case{{"--baseline", kBefore, "--candidate", kAfter, "--max-slowdown=-3%"},
                "'-3%' is out of range"},
           Case{{"--baseline", kBefore, "--candidate", kAfter, "--max-slowdwn", "3%"},
                "did you mean '--max-slowdown'?"},
           Case{{"--predictions", "examples", "--candidate", kAfter},
                "--predictions can be combined only with"},
           Case{{"--predictions", "examples", "--count", "3"},
                "--predictions can be combined only with"},
           Case{{"--predictions", "examples", "--steps-per-epoch", "9"},
                "--predictions can be combined only with"},
           Case{{"--history", kBefore, "--budget", "b.yaml"}, "need --candidate"},
           Case{{"--baseline", kBefore, "--candidate", kAfter, "--count", "2"}, "--instance NAME"},
       }) {
    INFO(c.says);
    test::check_failed(check(c.arguments), 2, c.says);
  }
}

TEST_CASE("check: wrong input is one line and exit code 1") {
  const auto file = [](const char* name, const std::string& text) {
    return test::write_scratch(name, text).string();
  };
  const std::vector<int> steps(12, 1000);
  const std::string good = file("good.json", recording(steps));
  const std::string other_job = file("job.json", recording(steps, "convolution_winograd"));
  const std::string other_gpu = file("gpu.json", recording(steps, "gemm", "Other GPU"));
  const std::string one = file("one.json", recording({1000}));
  const std::string empty = file("empty.json", "{\"traceEvents\": []}");
  const std::string budget = file("b.yaml", "memory: +2%\n");
  const std::string typo = file("c.yaml", "stp_time: +2%\n");
  const std::string twice = file("d.yaml", "step_time: +2%\n");
  const std::string money = file("e.yaml", "cost_per_step: 1 USD\n");
  const std::string energy = file("f.yaml", "energy: +2%\n");
  const std::string ops = file("g.yaml", "ops: {nothing: +2%}\n");
  struct Case {
    std::vector<std::string> arguments;
    const char* says;
  };
  const auto two = [&](const std::string& baseline, const std::string& candidate,
                       std::vector<std::string> more = {}) {
    std::vector<std::string> all = {"--baseline", baseline, "--candidate", candidate};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  for (const Case& c : {
           Case{two("no_such.json", good), "no_such.json: cannot be read: No such file"},
           Case{two(good, other_job), ": only 0 % of the op time has a counterpart"},
           Case{two(good, other_gpu), "gpu.json: ran on Other GPU, "},
           Case{two(good, one), "the variation between steps needs at least two"},
           Case{two(empty, good), "contains no trace events"},
           Case{two(good, good, {"--budget", "no_such.yaml"}), "no_such.yaml: cannot be read"},
           Case{two(good, good, {"--budget", budget}),
                "memory: has a limit, but the recordings do not contain it"},
           Case{two(good, good, {"--budget", energy}), "energy: has a limit"},
           Case{two(good, good, {"--budget", typo}), "did you mean 'step_time'?"},
           Case{two(good, good, {"--budget", twice, "--max-slowdown", "3%"}),
                "is limited both here and by --max-slowdown"},
           Case{two(good, good, {"--budget", money}), "--instance NAME"},
           Case{two(good, good, {"--budget", ops}), "matches no op of the baseline"},
           Case{two(good, good, {"--instance", "p3.2xlrge"}), "did you mean 'p3.2xlarge'?"},
           Case{two(good, good, {"--instance", "p3.2xlarge", "--region", "moon-1"}), "no price"},
           Case{two(good, good, {"--junit", "/no/such/folder/a.xml"}), "/no/such/folder"},
           Case{{"--history", good, good}, "too few to distinguish a change from noise"},
           Case{{"--history", good, good, good, good, other_gpu}, "gpu.json: ran on Other GPU, "},
           Case{{"--history", good, good, good, good, other_job},
                "job.json: is of another job than"},
           Case{{"--history", good, good, good, good, "--candidate", other_job},
                "job.json: is of another job than"},
           Case{{"--predictions", "no_such"}, "no_such: does not exist"},
           Case{{"--predictions", "docs"}, "contains no recording with times"},
           Case{{"--predictions", "examples/recordings", "--baseline", good}, "has no predictions"},
       }) {
    INFO(c.says);
    std::vector<std::string> arguments = c.arguments;
    arguments.push_back("--quiet");
    test::check_failed(check(arguments), 1, c.says);
  }
}

TEST_CASE("check: recorded energy and memory are compared") {
  const auto store = [](const char* name, double watts, const char* memory) {
    trace::Trace trace;
    test::RankBuilder rank(trace);
    trace::Rank& rows = rank.rank();
    rows.info.facts.push_back({"memory.0.peak", memory});
    rows.boards.push_back({.uuid = "GPU-a", .device = 0, .multiprocessors = 100});
    for (int s = 0; s < 12; ++s) {
      rank.step(s + 1, s * 1000.0, 1000);
      rank.call("cudaLaunchKernel", s * 1000.0 + 10, 5, static_cast<std::uint32_t>(s + 1));
      rank.kernel("k", s * 1000.0 + 20, 500 + s % 3, static_cast<std::uint32_t>(s + 1));
    }
    for (int ms = 0; ms <= 12; ++ms)
      rows.power.push_back({.board = 0,
                            .time = test::RankBuilder::ns(ms * 1000.0),
                            .power = Watts::w(watts + ms % 2)});
    const fs::path path = test::scratch_folder() / name;
    Result<trace::StoreWriter> writer = trace::StoreWriter::create(path);
    REQUIRE(writer);
    trace::RowSink& sink = writer->rows(0);
    for (const trace::HostOp& op : rows.host_ops) sink.add(op);
    for (const trace::GpuOp& op : rows.gpu_ops) sink.add(op);
    for (const trace::PowerReading& reading : rows.power) sink.add(reading);
    REQUIRE(writer->finish(trace));
    return path.string();
  };
  const std::string before = store("before.rehearse", 100, "1000000 B");
  const std::string after = store("after.rehearse", 150, "1500000 B");
  const std::string budget = test::write_scratch("b.yaml", "energy: +10%\nmemory: +10%\n").string();
  const Json json = verdict_of({"--baseline", before, "--candidate", after, "--budget", budget}, 1);
  CHECK(json["step_time"]["change"].get<double>() == Approx(0).margin(1e-9));
  CHECK(json["quantities"]["energy"]["change"].get<double>() == Approx(0.5).epsilon(0.01));
  CHECK(json["quantities"]["energy"]["baseline"]["unit"] == "J");
  CHECK(json["quantities"]["memory"]["change"].get<double>() == Approx(0.5));
  REQUIRE(json["limits"].size() == 3);
  CHECK(json["limits"][0]["verdict"] == "pass");
  CHECK(json["limits"][1]["verdict"] == "fail");
  CHECK(json["limits"][2]["verdict"] == "fail");
  const Ran text = check({"--baseline", before, "--candidate", after});
  CHECK(text.out.find("energy: ") != std::string::npos);
  CHECK(text.out.find("memory") != std::string::npos);
  const std::string amount = test::write_scratch("b.yaml", "memory: 1.4 MB\n").string();
  CHECK(verdict_of({"--baseline", before, "--candidate", after, "--budget", amount},
                   1)["limits"][1]["verdict"] == "fail");
}

}  // namespace
}  // namespace rehearse
