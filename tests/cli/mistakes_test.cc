// The same mistake ends every command in the same way, and never with the words of a library.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <catch2/catch.hpp>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/support/capture_builder.h"
#include "tests/support/data.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using test::kExample;
using test::Ran;
using Words = std::vector<std::string>;

/// Every command that reads a file, reading this one in the place where it reads it.
std::vector<Words> readers_of(const std::string& file) {
  return {{"import", file, "-o", (test::scratch_folder() / "a.rehearse").string()},
          {"inspect", file},
          {"inspect", "--cluster", file},
          {"replay", file},
          {"whatif", file, "--scale", "gpu:2"},
          {"whatif", kExample, "--network", file},
          {"whatif", kExample, "--share-with", file},
          {"whatif", kExample, "--input-pipeline", file},
          {"simulate", file},
          {"plan", file},
          {"recommend", file},
          {"network", "--cluster", file},
          {"fleet", file, "--nodes", "1"},
          {"pack", file},
          {"check", "--baseline", file, "--candidate", kExample},
          {"check", "--baseline", kExample, "--candidate", kExample, "--budget", file},
          {"check", "--predictions", file},
          {"input", file},
          {"study", file},
          {"validate", file},
          {"bench-gpu", "--shapes", file}};
}

TEST_CASE("a wrong file ends every command with exit code 1 and a line that names it") {
  const fs::path folder = test::scratch_folder() / "folder";
  fs::create_directories(folder);
  for (const std::string& file : {std::string("no_such.file"), folder.string(),
                                  test::write_scratch("empty.yaml", "").string(),
                                  test::write_scratch("notes.yaml", "Dear diary\n").string()})
    for (const Words& words : readers_of(file)) {
      const Ran ran = test::rehearse(words);
      INFO(fmt::format("{} {}: {}", words.front(), file, ran.errors));
      CHECK(ran.code == 1);
      CHECK(ran.errors.find(file) != std::string::npos);
    }
}

const Words kCommands = {"profile",   "import",    "inspect",   "replay",  "whatif",
                         "simulate",  "plan",      "recommend", "network", "fleet",
                         "pack",      "check",     "input",     "study",   "validate",
                         "bench-gpu", "calibrate", "catalog",   "mig",     "doctor"};

TEST_CASE("an unreadable command line ends every command with exit code 2") {
  struct Mistake {
    Words words;
    const char* says;
  };
  for (const std::string& command : kCommands)
    for (const Mistake& mistake :
         {Mistake{{"--nosuchoption"}, "unexpected '--nosuchoption'"},
          Mistake{{"--format", "yaml"}, "--format: unknown format 'yaml'; one of table, json"},
          Mistake{{"--report", ""},
                  "--report: an empty value; a variable of the shell may not be set"},
          Mistake{{"--seed", "1.5"}, "--seed: '1.5' is not a number"},
          Mistake{{"--threads", "0"}, "--threads: Value 0 not in range 1 to 1024"}}) {
      Words words = {command};
      words.insert(words.end(), mistake.words.begin(), mistake.words.end());
      INFO(command);
      test::check_failed(test::rehearse(words), 2, mistake.says);
    }
}

TEST_CASE("values of options that cannot be read are wrong usage in every command") {
  const std::string job = "examples/jobs/mpt_7b_rent.yaml";
  for (const Words& words :
       {Words{"recommend", job, "--target", "30"},
        {"recommend", job, "--budget", "30 EUR"},
        {"recommend", job, "--deadline", "30 dayz"},
        {"recommend", job, "--max-carbon", "30"},
        {"plan", job, "--within", "memory=5"},
        {"plan", job, "--within", "speed=5 s"},
        {"network", "--device", "h100_sxm5_80", "--sizes", "1 furlong"},
        {"whatif", kExample, "--insert", "kernel:5"},
        {"check", "--baseline", kExample, "--candidate", kExample, "--max-slowdown", "3"}}) {
    INFO(fmt::format("{} {}", words[0], words.back()));
    CHECK(test::rehearse(words).code == 2);
  }
}

TEST_CASE("a number with a letter or commas, in a job file, is told as it must be written") {
  const std::string rest =
      "training: {global_batch: 8, microbatch: 1}\n"
      "cluster: {device: h100_sxm5_80, devices_per_node: 1, nodes: 1}\n";
  for (const auto& [given, meant] :
       {std::pair{"8k", "8000 or 8192"}, {"'8,192'", "8192"}, {"8Ki", "8192"}}) {
    const std::string job =
        fmt::format("workload: {{model: gpt2_small, sequence: {}}}\n{}", given, rest);
    test::check_failed(test::rehearse({"simulate", test::write_scratch("job.yaml", job).string()}),
                       1, fmt::format("is not a number; {}", meant));
  }
}

TEST_CASE("suggestions never lead to another quantity or another device") {
  const auto errors = [](const Words& words) { return test::rehearse(words).errors; };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const std::string rate = errors(
      {"network", "--device", "h100_sxm5_80", "--network", "infiniband,rate=100Gb/s,latency=5us"});
  CHECK(has(rate,
            "unknown unit 'Gb/s' for a transfer rate; for bits write '100 Gbit/s', which is "
            "12.5 GB/s"));
  CHECK_FALSE(has(rate, "did you mean"));
  for (const Words& words :
       {Words{"network", "--device", "a100"},
        {"fleet", "examples/fleets/four_jobs.csv", "--nodes", "1", "--device", "a100"},
        {"mig", "layouts", "--device", "a100"}}) {
    const std::string device = errors(words);
    CHECK(has(device, "a100_sxm4_80"));
    CHECK_FALSE(has(device, "did you mean 'a10'"));
  }
}

TEST_CASE("numbers out of range are refused at their place, at once") {
  const auto job = [](const std::string& batch) {
    return test::write_scratch("job.yaml",
                               "workload: {model: gpt2}\ntraining: {global_batch: " + batch +
                                   "}\ncluster: {device: h100_sxm5_80, nodes: 1}\n")
        .string();
  };
  for (const char* batch : {"8e15", "80000000000000000", "12345678901234567890123"}) {
    INFO(batch);
    test::check_failed(test::rehearse({"simulate", job(batch)}), 1, "job.yaml:2:26: training.");
  }
  const std::string slow = test::write_scratch("slow.yaml",
                                               "cluster: {device: h100_sxm5_80, nodes: 2, "
                                               "inter_node: {link: {rate: 1e300 GB/s, latency: "
                                               "5 us}}}\n")
                               .string();
  const Ran ran = test::rehearse({"inspect", "--cluster", slow});
  CHECK(ran.code == 1);
  CHECK(ran.errors.find("slow.yaml:1:") != std::string::npos);

  // A link that no run could wait for, and a time that no clock could hold.
  const std::string link =
      test::write_scratch("link.yaml",
                          "workload: {model: gpt2}\ntraining: {global_batch: 16}\n"
                          "cluster: {device: h100_sxm5_80, nodes: 2, inter_node: "
                          "{rate: 1 B/s, latency: 5 us}}\n")
          .string();
  test::check_failed(test::rehearse({"simulate", link}), 1, "link.yaml:3:");
  const std::string think =
      test::write_scratch("think.yaml",
                          "serve: {model: llama3_8b, framework: vllm, load: {closed: 1, input: 9, "
                          "output: 9, requests: 5, think: 1e9 s}}\n"
                          "cluster: {device: h100_sxm5_80, devices_per_node: 1, nodes: 1}\n")
          .string();
  test::check_failed(test::rehearse({"simulate", think}), 1, "serve.load.think: is out of range");
}

TEST_CASE("a wrong version of a server is named with its place") {
  const std::string job =
      test::write_scratch("version.yaml",
                          "serve:\n  model: llama3_8b\n  version: latest\n"
                          "  load: {closed: 1, input: 9, output: 9, requests: 5}\n"
                          "cluster: {device: h100_sxm5_80, devices_per_node: 1, nodes: 1}\n")
          .string();
  test::check_failed(test::rehearse({"simulate", job}), 1,
                     "version.yaml:3:12: serve.version: 'latest' is no version; numbers with dots");
}

TEST_CASE("sizes whose product no run could last for are refused") {
  // Each size is within its range. 10^5 layers of 12 x (10^5)^2 parameters perform 6 x 1.2e16 x 8e5
  // FLOP per step: three years at 600 TFLOP/s. One of 10^8 x 10^8 takes centuries by itself.
  for (const char* sizes :
       {"layers: 100000, hidden: 100000, heads: 1, sequence: 100000}\ntraining: {global_batch: 8",
        "layers: 1, hidden: 100000000, heads: 1, sequence: 1000000}\ntraining: {global_batch: "
        "65536, microbatch: 65536"})
    for (const char* fidelity : {"closed", "message"}) {
      const std::string job =
          test::write_scratch("job.yaml",
                              fmt::format("workload: {{model: gpt2, {}}}\ncluster: {{device: "
                                          "h100_sxm5_80, devices_per_node: 1, nodes: 1}}\n",
                                          sizes))
              .string();
      test::check_failed(test::rehearse({"simulate", job, "--fidelity", fidelity}), 1,
                         "a step would last");
    }
  test::check_failed(test::rehearse({"recommend", "--model", "llama3_8b", "--batch", "256",
                                     "--target", "1e-320 tokens"}),
                     2, "'1e-320 tokens' is out of range; 0, or at least 1e-30");
}

TEST_CASE("standard input without an end is refused") {
  const std::string errors = (test::scratch_folder() / "errors").string();
  const int status = std::system(fmt::format("ulimit -f 2048; yes | '{}' replay - 2> '{}'",
                                             (test::program_folder() / "rehearse").string(), errors)
                                     .c_str());
  CHECK(WEXITSTATUS(status) == 2);
  CHECK(test::text_of(errors) ==
        "rehearse: INPUT: standard input is too large; at most 1.00 MiB\n");
}

TEST_CASE("a second YAML document is refused") {
  const std::string two =
      test::write_scratch("two.yaml", "cluster: {device: t4, nodes: 1}\n---\ncluster: {}\n")
          .string();
  test::check_failed(test::rehearse({"inspect", "--cluster", two}), 1, "is a second YAML document");
}

TEST_CASE("of many errors the first are printed, with the number of the others") {
  std::string text = "cluster: {device: t4, nodes: 1}\n";
  for (int k = 0; k < 1000; ++k) text += fmt::format("key{}: 1\n", k);
  const Ran ran =
      test::rehearse({"inspect", "--cluster", test::write_scratch("many.yaml", text).string()});
  CHECK(ran.code == 1);
  CHECK(std::count(ran.errors.begin(), ran.errors.end(), '\n') == 21);
  CHECK(ran.errors.find("rehearse: and 980 errors more") != std::string::npos);
}

TEST_CASE("a signal ends work that does not ask for it within a second") {
  // All ranks of a large job message by message: seconds of one piece of work.
  for (const int signal : {SIGINT, SIGTERM}) {
    test::RunningRehearse running(
        {"simulate", "examples/jobs/gpt_175b.yaml", "--unfold", "--fidelity", "message"});
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (running.ended()) WARN("the work was done before the signal");
    const auto begin = std::chrono::steady_clock::now();
    running.signal(signal);
    const Ran ran = running.wait();
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1500));
    CHECK((ran.code == 0 || ran.code == 1));
  }
}

TEST_CASE("a signal ends a command that waits for a pipe, and a pipe is no recording") {
  const std::string pipe = (test::scratch_folder() / "pipe").string();
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const int signal : {SIGINT, SIGTERM})
    for (const Words& words : {Words{"simulate", pipe}, {"fleet", pipe, "--nodes", "1"}}) {
      test::RunningRehearse running(words);
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      CHECK_FALSE(running.ended());
      const auto begin = std::chrono::steady_clock::now();
      running.signal(signal);
      CHECK(running.wait().code == 1);
      CHECK(std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1500));
    }
  test::check_failed(test::rehearse({"replay", pipe}), 1, "is a pipe or a device");
  test::check_failed(test::rehearse({"simulate", "/dev/zero"}), 1, "is too large; at most 64 MiB");
  // A file of the kernel, which has no size: some of them have no end.
  test::check_failed(test::rehearse({"replay", "/proc/self/status"}), 1, "is empty");
}

TEST_CASE("a command ends with the reader of its output") {
  const auto begin = std::chrono::steady_clock::now();
  // The rehearsal alone takes many seconds.
  const int status = std::system(
      fmt::format("cd '{}' && '{}' simulate examples/jobs/gpt_175b.yaml --unfold --fidelity "
                  "message 2> /dev/null | true",
                  test::source_file("").string(), (test::program_folder() / "rehearse").string())
          .c_str());
  CHECK(status == 0);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(2500));
}

/// The exit code of a line of the shell, in the source tree, in which $R is the program.
int shell(const std::string& line) {
  const int status =
      std::system(fmt::format("cd '{}' && R='{}' && {}", test::source_file("").string(),
                              (test::program_folder() / "rehearse").string(), line)
                      .c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("messages that cannot be written end no command, and reach no other file") {
  CHECK(shell("\"$R\" no-such-command 2> /dev/full") == 2);
  CHECK(shell("\"$R\" replay no-such-file 2> /dev/full") == 1);
  const std::string store = (test::scratch_folder() / "a.rehearse").string();
  // Without a stream of its own, the store would be the third file that it opens.
  CHECK(shell(fmt::format("\"$R\" import {} -o '{}' --progress > /dev/null <&- 2>&-", kExample,
                          store)) == 0);
  CHECK(test::rehearse({"inspect", store}).code == 0);
  CHECK(shell("\"$R\" catalog gpus >&- 2>&-") == 1);
  CHECK(shell("\"$R\" --help > /dev/full 2>&1") == 1);
}

TEST_CASE("a command that runs out of memory says so") {
  const fs::path errors = test::scratch_folder() / "e";
  CHECK(shell(fmt::format(
            "ulimit -v 150000 && \"$R\" simulate --model gpt3_175b --gpus 16384 --device "
            "a100_sxm4_80 --plan tp8,pp16 --batch 16384 --threads 1 2> '{}'",
            errors.string())) == 1);
  CHECK(test::text_of(errors) == "rehearse: not enough memory; a smaller input, or more memory\n");
}

TEST_CASE("a file beyond the limit of the shell is an error, and leaves nothing") {
  const fs::path folder = test::scratch_folder() / "limited", errors = test::scratch_folder() / "e";
  fs::create_directories(folder);
  CHECK(shell(fmt::format("ulimit -f 4 && \"$R\" import {} -o '{}/a.rehearse' 2> '{}'", kExample,
                          folder.string(), errors.string())) == 1);
  CHECK(test::text_of(errors).starts_with("rehearse: " + folder.string()));
  CHECK(test::names_in(folder).empty());
}

TEST_CASE("an output that is an input is refused, and the input stays") {
  const std::string text = test::text_of(test::source_file(kExample));
  const std::string file = test::write_scratch("a.json", text).string();
  for (const Words& words : {Words{"import", file, "-o", file},
                             {"replay", file, "-o", file},
                             {"replay", file, "--perfetto", file}}) {
    test::check_failed(test::rehearse(words), 1, file + ": is an input of this run");
    CHECK(test::text_of(file) == text);
  }
}

TEST_CASE("a process that recorded nothing leaves the others readable") {
  const fs::path folder = test::scratch_folder() / "capture";
  fs::create_directories(folder);
  fs::copy_file(test::source_file("traces/train-cpu-epyc/train_cpu.cap"), folder / "a-1.cap");
  capture::ProcessFacts facts{};
  facts.host = "a";
  facts.process = 2;
  facts.realtime_ns = test::kBase;
  const std::string silent = test::CaptureBuilder().process(facts).bytes();
  test::write_file(folder / "a-2.cap", silent);
  const Ran ran = test::rehearse({"replay", folder.string(), "--format", "csv"});
  INFO(ran.errors);
  CHECK(ran.code == 0);
  CHECK(ran.errors.find("contains no records, left out") != std::string::npos);
}

TEST_CASE("recordings without a common collective give a warning that they are averaged") {
  const Ran ran = test::rehearse({"replay", kExample, "examples/recordings/two_linears.json"});
  CHECK(ran.code == 0);
  CHECK(ran.errors.find("warning: no collective of one rank matches one of another") !=
        std::string::npos);
}

TEST_CASE("a file names files below its own folder or the current one alone, unless allowed") {
  namespace fs = std::filesystem;
  const fs::path top = test::scratch_folder();
  fs::create_directories(top / "jobs");
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(top / name) << text;
  };
  write("pipeline.yaml", "stages: [{name: get, workers: 4, time: 1 ms}]\n");
  fs::create_symlink("../pipeline.yaml", top / "jobs/link.yaml");
  fs::copy_file(top / "pipeline.yaml", top / "jobs/own.yaml");
  const auto status_of = [&](const std::string& named, bool allowed) {
    write("jobs/job.yaml",
          "workload: {model: resnet50}\ntraining: {global_batch: 64}\n"
          "cluster: {device: a100_sxm4_40, devices_per_node: 1, nodes: 1}\n"
          "input: " +
              named + "\n");
    std::vector<std::string> words = {"simulate", (top / "jobs/job.yaml").string(), "--fidelity",
                                      "closed"};
    if (allowed) words.push_back("--allow-outside");
    const test::Ran run = test::RunningRehearse(words).wait();
    if (run.code == 1)
      CHECK(run.errors.find("is outside the folder of the file") != std::string::npos);
    return run.code;
  };
  CHECK(status_of("own.yaml", false) == 0);
  CHECK(status_of("../jobs/own.yaml", false) == 0);
  for (const char* outside : {"../pipeline.yaml", "link.yaml"}) {
    INFO(outside);
    CHECK(status_of(outside, false) == 1);
    CHECK(status_of(outside, true) == 0);
  }
  CHECK(status_of((top / "pipeline.yaml").string(), false) == 1);
  // The tests run in the folder of the sources.
  CHECK(status_of(test::source_file("examples/pipelines/two_workers.yaml").string(), false) == 0);
}

TEST_CASE("a key in the wrong one of two sections is told where it belongs") {
  const auto refused = [](const std::string& plan, const std::string& line) {
    const std::string job =
        test::write_scratch("wrong_section.yaml", "workload: {model: gpt2_small}\n" + plan)
            .string();
    const Ran ran = test::rehearse({"simulate", job});
    CHECK(ran.code == 1);
    INFO(ran.errors);
    CHECK(ran.errors.find(line) != std::string::npos);
  };
  refused("training: {global_batch: 8}\nplan: {recompute: full}\n",
          ":3:8: plan.recompute: unknown key; did you mean 'training.recompute'?");
  refused("training: {global_batch: 8, tensor: 2}\n",
          ":2:29: training.tensor: unknown key; did you mean 'plan.tensor'?");
}

TEST_CASE("the name that is suggested for an unknown model has its number") {
  const Ran ran = test::rehearse({"simulate", "--model", "llama3_405b", "--gpus", "8", "--device",
                                  "h100_sxm5_80", "--batch", "8", "--sequence", "4096"});
  CHECK(ran.code != 0);
  CHECK(ran.errors.find("unknown model 'llama3_405b'; did you mean 'llama3.1_405b'?") !=
        std::string::npos);
}

}  // namespace
}  // namespace rehearse
