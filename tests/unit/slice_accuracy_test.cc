// Steps and memory on slices, if the tables are next to the source tree. The limits are the
// goals, or what docs/accuracy.md shows where that is more.
#include "tests/validation/studies/sharing/slice_accuracy.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <catch2/catch.hpp>

#include "tests/support/data.h"

namespace rehearse::cli {
namespace {

TEST_CASE("slices of A100 from the whole GPU, from one more slice, and without measurements") {
  const auto data = test::shared_data("mig-a100");
  SKIP_WITHOUT_DATA(data);
  const auto jobs = read_sliced_jobs(*data);
  INFO((jobs ? "" : to_string(jobs.error())));
  REQUIRE(jobs);
  CHECK(jobs->size() == 20);
  const Result<SliceAccuracy> accuracy = measure_slice_accuracy(*jobs);
  REQUIRE(accuracy);
  const auto check = [&](const std::string& name, std::size_t rows, double most, double covered) {
    INFO(name);
    const auto c = std::find_if(accuracy->cases.begin(), accuracy->cases.end(),
                                [&](const SliceCase& each) { return each.name == name; });
    REQUIRE(c != accuracy->cases.end());
    CHECK(c->rows.size() == rows);
    double sum = 0, inside = 0;
    for (const SliceRow& r : c->rows) {
      CHECK(std::isfinite(r.error));
      sum += std::abs(r.error);
      inside += r.covered;
    }
    CHECK(sum / static_cast<double>(c->rows.size()) < most);
    CHECK(inside / static_cast<double>(c->rows.size()) >= covered);
  };
  check("whole GPU alone", 152, 0.05, 0.85);
  check("whole GPU alone, flagged", 24, 0.14, 0.95);
  check("whole GPU and one slice", 96, 0.04, 0.9);
  check("whole GPU and one slice, another family", 96, 0.1, 0.9);
  check("sequences, whole GPU alone", 51, 0.031, 0.9);
  check("nothing measured", 201, 0.06, 0.85);
  check("memory", 176, 0.01, 0.9);
  check("runs or fails", 191, 0.02, 0);

  // What is shipped is what the tables give.
  const sharing::SliceConstants shipped = sharing::shipped_constants(),
                                fitted = accuracy->constants;
  for (std::size_t k = 0; k < sharing::kWorkKinds; ++k)
    CHECK(shipped.alpha[k] == Approx(fitted.alpha[k]).margin(0.011));
  CHECK(shipped.beta_inference == Approx(fitted.beta_inference).margin(0.011));
  CHECK(shipped.beta_training == Approx(fitted.beta_training).margin(0.011));
  CHECK(shipped.kappa == Approx(fitted.kappa).margin(0.006));
  for (std::size_t r = 0; r < sharing::kRegimes; ++r)
    CHECK(shipped.spread[r] == Approx(fitted.spread[r]).margin(0.006));
  const sharing::UnmeasuredConstants described = sharing::shipped_unmeasured(),
                                     found = accuracy->unmeasured.constants;
  for (std::size_t k = 0; k + 1 < sharing::kWorkKinds; ++k)
    CHECK(described.efficiency[k] == Approx(found.efficiency[k]).margin(0.011));
  CHECK(described.launch.us() == Approx(found.launch.us()).margin(0.1));
  CHECK(described.optimizer_passes == Approx(found.optimizer_passes).margin(0.6));
  CHECK(described.host.us() == Approx(found.host.us()).margin(0.6));
  CHECK(described.host_in_training == Approx(found.host_in_training).margin(0.006));
  CHECK(described.spread == Approx(found.spread).margin(0.006));
}

TEST_CASE("slices: a folder without the tables gives no jobs, a wrong table one line") {
  const std::filesystem::path folder = test::scratch_folder();
  const auto none = read_sliced_jobs(folder);
  REQUIRE(none);
  CHECK(none->empty());
  const auto wrong = [&](const std::string& heading, const std::string& row) {
    std::ofstream(folder / "A100-40g__infer_bsz__x__x_infer_05g_bsz.csv") << heading << "\n" << row;
    const auto jobs = read_sliced_jobs(folder);
    REQUIRE_FALSE(jobs);
    CHECK(jobs.error().diagnostics.size() == 1);
    return to_string(jobs.error());
  };
  CHECK(wrong(",model_name,batch_size,latency", "0,resnet50,1,2").find("fb_used_mean") !=
        std::string::npos);
  const std::string heading = ",model_name,batch_size,latency,fb_used_mean";
  CHECK(wrong(heading, "0,alexnet,1,2,3").find(":2: model_name: is no model that is known") !=
        std::string::npos);
  CHECK(wrong(heading, "0,resnet50,1,,3").find(":2: latency: is empty; a number") !=
        std::string::npos);
  CHECK(wrong(heading, "0,resnet50,one,2,3").find(":2: batch_size") != std::string::npos);
}

}  // namespace
}  // namespace rehearse::cli
