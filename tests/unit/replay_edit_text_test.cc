// How edits are written; what they do is in replay_test.cc.
#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "profiler/replay/edit.h"
#include "profiler/replay/overlap.h"

namespace rehearse::replay {
namespace {

template <class T>
std::string error_of(const Result<T>& result) {
  return result ? "no error" : to_string(result.error());
}

TEST_CASE("a selector is a target, with a pattern if the target has names") {
  const Result<Selector> all = parse_selector("gpu");
  REQUIRE(all);
  CHECK(all->target == Selector::Target::kGpu);
  CHECK(all->pattern.empty());
  const Result<Selector> some = parse_selector("host=enumerate(DataLoader)*a=b");
  REQUIRE(some);
  CHECK(some->target == Selector::Target::kHost);
  CHECK(some->pattern == "enumerate(DataLoader)*a=b");  // up to the first equals sign
  CHECK(some->text == "host=enumerate(DataLoader)*a=b");

  CHECK(error_of(parse_selector("kernels")) == "unknown target 'kernels'; did you mean 'kernel'?");
  CHECK(error_of(parse_selector("everything")) ==
        "unknown target 'everything'; one of gpu, kernel, copy, collective, host, range, "
        "launch, profiler");
  CHECK(error_of(parse_selector("kernel=")) ==
        "'kernel=' has an empty pattern; TARGET or TARGET=PATTERN");
  CHECK(error_of(parse_selector("launch=gemm")) ==
        "'launch' takes no pattern; kernel=PATTERN or host=PATTERN");
}

TEST_CASE("a factor follows the last colon") {
  const Result<Scale> scale = parse_scale("kernel=void at::native::f<float>*:0.5");
  REQUIRE(scale);
  CHECK(scale->what.pattern == "void at::native::f<float>*");
  CHECK(scale->factor == 0.5);
  CHECK(parse_scale("gpu:0")->factor == 0);
  CHECK(parse_scale("gpu: 1e6 ")->factor == 1e6);
  CHECK(error_of(parse_scale("gpu")) ==
        "'gpu' has no FACTOR; TARGET:FACTOR or TARGET=PATTERN:FACTOR");
  for (const char* wrong : {"-1", "nan", "inf", "1e7", "1e-320", "2x", ""})
    CHECK(error_of(parse_scale(fmt::format("gpu:{}", wrong))) ==
          fmt::format("'{}' is not a factor; a number from 0 to 1e6, such as 0.5", wrong));
}

TEST_CASE("an inserted duration has a unit and at most a day") {
  const Result<Timed> insert = parse_timed("copy:50 us");
  REQUIRE(insert);
  CHECK(insert->what.target == Selector::Target::kCopy);
  CHECK(insert->time.us() == Approx(50));
  CHECK(error_of(parse_timed("copy:50")) ==
        "'50' has no unit; one of ps, ns, us, ms, s, min, h, d");
  CHECK(error_of(parse_timed("copy:-1 us")) == "'-1 us' is not a valid duration; 0 s to 1 d");
  CHECK(error_of(parse_timed("copy:25 h")) == "'25 h' is not a valid duration; 0 s to 1 d");
}

TEST_CASE("names may hold the colons that separate the parts of an edit") {
  const Result<MaybeTimed> plain = parse_maybe_timed("range=aten::gelu");
  REQUIRE(plain);
  CHECK(plain->what.pattern == "aten::gelu");
  CHECK_FALSE(plain->time);
  CHECK(parse_maybe_timed("range=aten::gelu:12us")->time->us() == Approx(12));
  CHECK(error_of(parse_maybe_timed("kernel:12")) ==
        "'12' has no unit; one of ps, ns, us, ms, s, min, h, d");
  const Result<OwnStream> moved = parse_own_stream("kernel=a::b:range=Optimizer::step");
  REQUIRE(moved);
  CHECK(moved->what.pattern == "a::b");
  CHECK(moved->needed_by->pattern == "Optimizer::step");
  CHECK_FALSE(parse_own_stream("kernel=a::b")->needed_by);
  CHECK(error_of(parse_selector("range")) ==
        "'range' needs a pattern; range=PATTERN, such as 'range=*layers.3*'");
}

TEST_CASE("a straggler is a rank with a factor, or none") {
  CHECK(parse_straggler("3:1.5")->factor == 1.5);
  CHECK_FALSE(parse_straggler("3:none")->factor);
  CHECK(error_of(parse_straggler("rank 3")) ==
        "'rank 3' is not RANK:FACTOR; such as 3:1.5, or 3:none");
  CHECK(error_of(parse_straggler("3:fast")) ==
        "'fast' is not a factor; a number from 0 to 1e6, such as 0.5");
}

TEST_CASE("an input pipeline has workers, each two batches ahead by default") {
  const Result<InputPipeline> pipeline = parse_input_pipeline("workers=4");
  REQUIRE(pipeline);
  CHECK(pipeline->workers == 4);
  CHECK(pipeline->prefetch == 2);
  CHECK(parse_input_pipeline(" prefetch = 8 , workers = 1 ")->prefetch == 8);
  CHECK(error_of(parse_input_pipeline("prefetch=8")) == "workers is missing; workers=N");
  CHECK(error_of(parse_input_pipeline("worker=8")) ==
        "unknown key 'worker'; did you mean 'workers'?");
  CHECK(error_of(parse_input_pipeline("workers=0")) == "'0' is not a number of workers; 1 to 4096");
  CHECK(error_of(parse_input_pipeline("workers=4,workers=5")) ==
        "'workers' appears twice; workers=N[,prefetch=N][,load=PATTERN][,cpus=N][,receive=TIME]");
  CHECK(error_of(parse_input_pipeline("workers=1,receive=-1 us")) ==
        "'-1 us' is not a valid duration; 0 s to 1 d");
  CHECK(error_of(parse_input_pipeline("workers=4097")) ==
        "'4097' is not a number of workers; 1 to 4096");
}

}  // namespace
}  // namespace rehearse::replay
