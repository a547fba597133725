// When device work takes no time, a step lasts as long as the host's time outside blocking calls:
// the waiting of a call must not come back as work of the host, whether its cause is recorded or not.
#include <cstdlib>
#include <memory>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "profiler/ingest/input.h"
#include "profiler/replay/limits.h"
#include "tests/support/data.h"
#include "tests/support/program.h"
#include "tests/support/replayed.h"

namespace rehearse::replay {
namespace {

using test::Replayed;
/// Every whole step of one rank alone, with device work that takes no time.
void check_steps(const std::string& name, trace::Trace whole) {
  for (std::size_t rank = 0; rank < whole.ranks.size(); ++rank) {
    trace::Trace trace = whole;
    trace.ranks = {whole.ranks[rank]};
    Replayed replayed(std::move(trace));
    const Recording& r = replayed.recordings.front();
    if (r.rank().gpu_ops.empty()) continue;
    replayed.scale("gpu:0");
    const std::vector<StepOps>& steps = replayed.of_rank().steps;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const Step& step = steps[s].step;
      if (step.partial) continue;
      const double period = replayed.comparison.steps[s].period().measured.us();
      const double left = replayed.comparison.steps[s].period().simulated.us();
      const Limits limits = host_alone(r, steps[s]);
      const double most = limits.most.us(), least = limits.least.us();
      INFO(fmt::format(
          "{}, rank {}, {}: {:.0f} us, without device {:.0f} us; {:.0f} to {:.0f} expected", name,
          rank, step.name, period, left, least, most));
      CHECK(left >= 0.95 * least);
      CHECK(left <= 1.05 * most);
    }
  }
}

TEST_CASE("a recorded step whose device work takes no time lasts as long as its host works") {
  const auto folder = test::shared_data("kineto-resnet50-v100");
  SKIP_WITHOUT_DATA(folder);
  const std::filesystem::path data = folder->parent_path();
  for (const char* below :
       {"kineto-resnet50-v100", "triosim-h100", "tracelens-h100-mi300", "param-et-replay-2080ti",
        "param-dlrm-8rank-v100", "hta-kineto", "deepseek-profile-h800", "nsys-exports"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(data / below)) {
      std::filesystem::path file = entry.path();
      if (file.string().ends_with(".sqlite.gz")) {
        const std::filesystem::path unpacked = test::scratch_folder() / file.stem();
        REQUIRE(std::system(fmt::format("gzip -dc '{}' > '{}'", file.string(), unpacked.string())
                                .c_str()) == 0);
        file = unpacked;
      } else if (!entry.is_regular_file() || file.string().find(".json") == std::string::npos) {
        continue;
      }
      const std::vector<std::filesystem::path> files = {file};
      Result<trace::Trace> trace = ingest::read_inputs(files, {});
      if (!trace || trace->ranks.empty() || !trace->ranks.front().info.timed) continue;
      check_steps(file.filename().string(), std::move(*trace));
    }
}

TEST_CASE("waits without a recorded cause vanish with the device in generated programs") {
  for (const bool records_syncs : {true, false}) {
    std::size_t close = 0, all = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      const test::Program program = test::random_program(seed, true);
      const test::Recorded truth =
          test::execute(program, {.device_factor = 0, .records_syncs = records_syncs});
      Replayed replayed(test::execute(program, {.records_syncs = records_syncs}).trace);
      CHECK(replayed.of_rank().unexplained_waits > Nanoseconds(0));
      replayed.scale("gpu:0");
      double simulated = 0, works = 0;
      for (std::size_t s = 0; s < truth.host_steps.size(); ++s) {
        simulated += replayed.host_us(s);
        works += truth.host_steps[s];
      }
      ++all;
      close += std::abs(simulated / works - 1) < 0.05;
    }
    INFO("recorded synchronisations: " << records_syncs);
    // Without records a wait may be laid to work that ended by chance within it.
    CHECK(close >= (records_syncs ? all : all * 95 / 100));
  }
}

}  // namespace
}  // namespace rehearse::replay
