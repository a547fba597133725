// What is derived from the tables of options: completion, help with examples first, manual pages,
// and the terms that `explain` knows.
#include <algorithm>
#include <cstdlib>

#include <catch2/catch.hpp>
#include <fmt/core.h>
#include <sys/resource.h>

#include "sim/base/text.h"
#include "tests/support/data.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Ran;

std::string completed(std::vector<std::string> words, const std::string& shell = "bash") {
  words.insert(words.begin(), {"completion", shell, "--"});
  const Ran ran = test::rehearse(words);
  CHECK(ran.code == 0);
  CHECK(ran.errors.empty());
  return ran.out;
}

/// Processor time of five runs, in microseconds. It hardly depends on what else the machine does.
long processor_time(const std::vector<std::string>& words) {
  const auto used = [] {
    rusage usage = {};
    REQUIRE(::getrusage(RUSAGE_CHILDREN, &usage) == 0);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000 + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec;
  };
  const long before = used();
  for (int i = 0; i < 5; ++i) REQUIRE(test::rehearse(words).code == 0);
  return used() - before;
}

TEST_CASE("a command starts without the names of models, which completion reads") {
  // 3.5 and 11 ms a run.
  CHECK(processor_time({"--version"}) * 3 <
        processor_time({"completion", "bash", "--", "simulate", "--model", ""}) * 2);
}

TEST_CASE("completion offers commands, options, and the values that an option accepts") {
  CHECK(completed({"rep"}) == "replay\n");
  CHECK(completed({"mig", "lay"}) == "layouts\n");
  CHECK(completed({"plan", "--objective", "c"}) == "cost\ncarbon\n");
  CHECK(completed({"plan", "--objective", "=", "c"}) == "cost\ncarbon\n");
  CHECK(completed({"plan", "--objective=c"}) == "--objective=cost\n--objective=carbon\n");
  CHECK(completed({"plan", "--quiet", "--obj"}) == "--objective\n");
  CHECK(completed({"plan", "job.yaml", "--quie"}) == "--quiet\n");  // of all commands
  CHECK(completed({"simulate", "--model", "llama3_70"}) == "llama3_70b\n");
  CHECK(completed({"simulate", "--device", "p5.48"}) == "p5.48xlarge\n");
  CHECK(completed({"catalog", "gp"}) == "gpus\n");
  CHECK(completed({"help", "doc"}) == "doctor\n");
  CHECK(completed({"explain", "mf"}) == "MFU\n");
  CHECK(completed({"mig", "layouts", "--device", "h100_pc"}) == "h100_pcie_80\n");
  CHECK(completed({"compare", "--device", "p5.48"}) == "p5.48xlarge\n");
  CHECK(completed({"mig", "layouts", "--profiles", "7g.40"}) == "7g.40gb\n");
  CHECK(completed({"calibrate", "nccl", "--device", "h100_pc"}) == "h100_pcie_80\n");
  CHECK(completed({"check", "--instance", "p5.48"}) == "p5.48xlarge\n");
  CHECK(completed({"recommend", "--provider", "aws,gc"}) == "aws,gcp\n");
  CHECK(completed({"recommend", "--region", "eu-north"}) == "eu-north-1\n");
  CHECK(completed({"catalog", "prices", "--gpu", "h100_pc"}) == "h100_pcie_80\n");
  CHECK(completed({"simulate", "--division", "co"}) == "coflow\n");
  CHECK(completed({"prove", "layer_rem"}) == "layer_removed\n");
  CHECK(completed({"network", "--op", "all_reduce,all_g"}) == "all_reduce,all_gather\n");
}

TEST_CASE("completion leaves names of files, and other programs, to the shell") {
  CHECK(completed({"replay", ""}).empty());
  CHECK(completed({"plan", "--report", ""}).empty());
  CHECK(completed({"profile", "--", "python3", "--ver"}).empty());
}

TEST_CASE("completion tells zsh and fish what a word means") {
  CHECK(completed({"doct"}, "zsh") == "doctor:Check what this machine can record and run\n");
  CHECK(completed({"doct"}, "fish") == "doctor\tCheck what this machine can record and run\n");
}

TEST_CASE("bash completes with the written script") {
  const Ran script = test::rehearse({"completion", "bash"});
  REQUIRE(script.code == 0);
  const auto file = test::write_scratch(
      "try.bash", script.out +
                      "COMP_WORDS=(rehearse plan --model llama3_70); COMP_CWORD=3\n"
                      "_rehearse \"$1\"\n[ \"${COMPREPLY[*]}\" = llama3_70b ]\n");
  CHECK(std::system(
            fmt::format("bash '{}' '{}/rehearse'", file.string(), test::program_folder().string())
                .c_str()) == 0);
}

TEST_CASE("help shows the examples of a command before its options") {
  const Ran ran = test::rehearse({"help", "plan"});
  REQUIRE(ran.code == 0);
  CHECK(ran.out.find("rehearse plan job.yaml") < ran.out.find("--objective"));
  CHECK(test::rehearse({"help"}).out == test::rehearse({"--help"}).out);
  test::check_failed(test::rehearse({"help", "calibrate", "jobb"}), 1, "did you mean 'job'?");
}

TEST_CASE("there is a manual page per command, with each of its options") {
  const auto folder = test::scratch_folder() / "man";
  REQUIRE(test::rehearse({"help", "--man", folder.string()}).code == 0);
  const std::string program = test::text_of(folder / "rehearse.1");
  for (const std::string& name : test::names_in(folder)) {
    INFO(name);
    std::string tag = name.substr(0, name.size() - 2);
    const std::string command = tag == "rehearse" ? "" : tag.substr(tag.find('-') + 1);
    std::vector<std::string> help = {"--help"};
    if (!command.empty()) help.insert(help.begin(), command);
    const std::string page = test::text_of(folder / name);
    const std::string options = test::rehearse(help).out;
    for (std::string_view line : split(options, '\n')) {
      if (!line.starts_with("  --")) continue;
      std::string option(line.substr(2, line.find(' ', 2) - 2));
      for (std::size_t at = 0; (at = option.find('-', at)) != option.npos; at += 2)
        option.insert(at, "\\");
      INFO(option);
      CHECK(page.find(".B " + option) != std::string::npos);
    }
    std::string entry = ".BR " + tag;
    for (std::size_t at = 0; (at = entry.find('-', at)) != entry.npos; at += 2)
      entry.insert(at, "\\");
    CHECK((command.empty() || program.find(entry) != std::string::npos));
  }
}

TEST_CASE("explain knows the glossary and the keys of plans, in any case") {
  // The first sentence of its bullet says where it is printed.
  CHECK(test::rehearse({"explain", "Bubble"}).out ==
        "bubble: time in which the device idles because another rank works (in `replay`, "
        "`whatif`, `simulate`, `compare`).\n");
  CHECK(test::rehearse({"explain", "exposed", "communication"}).out.starts_with("exposed comm"));
  CHECK(test::rehearse({"explain", "mfu"}).out.find("peak") != std::string::npos);
  CHECK(test::rehearse({"explain", "interleave"}).out.find("key of plan") != std::string::npos);
  CHECK(test::rehearse({"explain"}).out.find("critical path") != std::string::npos);
  test::check_failed(test::rehearse({"explain", "bubbel"}), 1, "did you mean 'bubble'?");
  // A term has its own sentences of a bullet.
  CHECK(test::rehearse({"explain", "node"}).out == "node: a machine, never a vertex.\n");
  CHECK_THAT(test::rehearse({"explain", "--format", "csv"}).out,
             Catch::Matchers::Contains("\nnode,\"a machine, never a vertex.\"\n"));
}

TEST_CASE("explain knows what replay and simulate print") {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"replay", test::kExample},
        {"simulate", test::source_file("examples/jobs/gpt_175b.yaml"), "--fidelity", "closed"}}) {
    const std::string out = test::rehearse(command).out;
    const std::size_t occupancy = out.find("Rank occupancy"), end = out.find("\n\n", occupancy);
    REQUIRE(end != out.npos);
    for (std::string_view line :
         split(std::string_view(out).substr(occupancy, end - occupancy), '\n')) {
      line = trim(line);
      if (line.starts_with("Rank occupancy")) continue;
      const std::string part(line.substr(0, line.find("  ")));
      INFO(part);
      CHECK(test::rehearse({"explain", part}).code == 0);
    }
  }
  for (const char* term : {"median error", "GPU start error", "unexplained", "input stall", "HFU",
                           "peak memory", "matrix products", "TTFT", "TPOT", "in the queue"}) {
    INFO(term);
    CHECK(test::rehearse({"explain", term}).code == 0);
  }
}

TEST_CASE("a missing word is named with its help") {
  test::check_failed(test::rehearse({"init"}), 2, "KIND is required; ");
  test::check_failed(test::rehearse({"init"}), 2, "study");
  test::check_failed(test::rehearse({"mig"}), 2, "mig needs one of ");
}

}  // namespace
}  // namespace rehearse
