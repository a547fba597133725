// Wrong usage: exit code 2 and one line that says what would be right.
#include <catch2/catch.hpp>

#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::kExample;
using test::Ran;

struct Case {
  std::vector<std::string> arguments;
  const char* says;
};

TEST_CASE("wrong usage is one line and exit code 2") {
  for (const Case& c : {
           Case{{}, "a command is needed"},
           Case{{"replya", kExample}, "unknown command 'replya'; did you mean 'replay'?"},
           Case{{"replay", "--residualz", kExample}, "did you mean '--residuals'?"},
           Case{{"inspect", "--topp", "3", kExample}, "did you mean '--top'?"},
           Case{{"replay", "--formatt", "json", kExample}, "did you mean '--format'?"},
           Case{{"whatif", kExample, "--scael", "gpu:2"}, "unexpected '--scael'; did you mean"},
           Case{{"plan", "--foo"}, "unexpected '--foo'; did you mean '--format'?"},
           Case{{"calibrate", "job", "--measurd", "1 s"}, "did you mean '--measured'?"},
           Case{{"plan", "--xyzzy"}, "rehearse plan --help lists what it takes"},
           Case{{"import", kExample, "--outputs", "a"}, "did you mean '--output'?"},
           Case{{"replay", "--format", "yaml", kExample}, "--format"},
           Case{{"replay", "--threads", "0", kExample}, "--threads"},
           Case{{"simulate", "--gpus", "8k"}, "--gpus: '8k' is not a number; 8000 or 8192"},
           Case{{"plan", "--sequence", "8,192"}, "'8,192' is not a number; 8192"},
           Case{{"recommend", "--batch", "1.5Mi"}, "'1.5Mi' is not a number; 1572864"},
           Case{{"recommend", "--batch", "4M"}, "'4M' is not a number; 4000000 or 4194304"},
           Case{{"simulate", "--gpus", "1e30k"}, "'1e30k' is not a number"},
           Case{{"replay", "--seed", "many", kExample}, "--seed"},
           Case{{"inspect", "--top", "many", kExample}, "--top"},
           Case{{"replay", "--ranks", "first", kExample}, "--ranks"},
           Case{{"replay"}, "INPUT"},
           Case{{"import", kExample}, "-o STORE"},
           Case{{"whatif", kExample}, "an edit is missing"},
           Case{{"whatif", kExample, "--scale", "kernel=gemm*"}, "has no FACTOR"},
           Case{{"whatif", kExample, "--scale", "kernl:2"}, "did you mean 'kernel'?"},
           Case{{"whatif", kExample, "--scale", "gpu:-1"}, "'-1' is not a factor"},
           Case{{"whatif", kExample, "--insert", "kernel:50"}, "'50' has no unit"},
           Case{{"whatif", kExample, "--input-pipeline", "worker=2"}, "did you mean 'workers'?"},
           Case{{"validate"}, "FILE"},
       }) {
    const Ran ran = test::rehearse(c.arguments);
    INFO(c.says);
    test::check_failed(ran, 2, c.says);
  }
}

TEST_CASE("help and version are results") {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"}, {"--version"}, {"replay", "--help"}}) {
    const Ran ran = test::rehearse(arguments);
    CHECK(ran.code == 0);
    CHECK(ran.errors.empty());
    CHECK(ran.out.find("ehearse") != std::string::npos);
  }
}

TEST_CASE("options of all commands may come before or after the command") {
  const Ran after = test::rehearse({"inspect", kExample, "--format", "csv"});
  const Ran before = test::rehearse({"--format", "csv", "inspect", kExample});
  CHECK(after.code == 0);
  CHECK(after.out == before.out);
}

TEST_CASE("edits and ranks may precede the recording, and edits may be repeated") {
  const Ran after = test::rehearse({"whatif", kExample, "--scale", "gpu:2", "--scale", "host:2",
                                    "--ranks", "0", "--format", "csv"});
  const Ran before = test::rehearse({"whatif", "--scale", "gpu:2", "--scale", "host:2", "--ranks",
                                     "0", kExample, "--format", "csv"});
  CHECK(after.code == 0);
  CHECK(before.errors.empty());
  CHECK(after.out == before.out);
}

TEST_CASE("inspect: --workload is valid with recordings, not with options that list ops") {
  test::check_failed(
      test::rehearse({"inspect", "--workload", "--cluster", "examples/clusters/torus.yaml"}), 2,
      "--top, --ranks and --workload need a recording; they do not apply to --cluster");
  test::check_failed(test::rehearse({"inspect", kExample, "--workload", "--top", "3"}), 2,
                     "--top cannot be combined with --workload");
}

}  // namespace
}  // namespace rehearse
