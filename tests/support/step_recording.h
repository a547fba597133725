// Kineto recordings of marked steps with given lengths, to test comparisons.
#pragma once

#include <string>
#include <vector>

#include <fmt/core.h>

namespace rehearse::test {

/// A job of one kernel with steps of these lengths in microseconds. Kernels start late by the
/// values of `late` in turn.
inline std::string recording(const std::vector<int>& steps, const std::string& kernel = "gemm",
                             const std::string& gpu = "Example GPU",
                             const std::vector<int>& late = {0}) {
  std::string events;
  long at = 1000000;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const auto add = [&](const char* category, const std::string& name, long start, long length,
                         int thread, const std::string& args) {
      events += fmt::format(
          R"({}{{"ph":"X","cat":"{}","name":"{}","pid":1,"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
          events.empty() ? "" : ",\n", category, name, thread, start, length, args);
    };
    const std::string id = fmt::format(R"("correlation":{})", k + 1);
    add("user_annotation", fmt::format("ProfilerStep#{}", k), at, steps[k], 1, "");
    add("cuda_runtime", "cudaLaunchKernel", at + 10, 10, 1, id);
    const int late_by = late[k % late.size()];
    add("kernel", kernel, at + 30 + late_by, steps[k] - 100 - late_by, 7,
        R"("device":0,"stream":7,)" + id);
    add("cuda_runtime", "cudaDeviceSynchronize", at + 25, steps[k] - 80, 1, "");
    at += steps[k];
  }
  return fmt::format(R"({{"deviceProperties":[{{"id":0,"name":"{}"}}],"traceEvents":[{}]}})", gpu,
                     events);
}

/// Steps of about `length` microseconds that vary by half a percent, differently for each `which`.
inline std::vector<int> uneven_steps(int length, int which, int count = 20) {
  std::vector<int> steps;
  for (int s = 0; s < count; ++s)
    steps.push_back(length + length * ((s * 7 + which * 5 + s * s * (which + 1)) % 11 - 5) / 1000);
  return steps;
}

}  // namespace rehearse::test
