#include "tests/validation/studies/throughput/throughput_accuracy.h"

#include <algorithm>

namespace rehearse::cli {

ThroughputCase& ThroughputAccuracy::of(const std::string& suite, const std::string& group) {
  const auto found = std::find_if(cases.begin(), cases.end(), [&](const ThroughputCase& c) {
    return c.suite == suite && c.group == group;
  });
  if (found != cases.end()) return *found;
  cases.push_back({.suite = suite, .group = group});
  return cases.back();
}

Result<ThroughputAccuracy> measure_throughput_accuracy(const std::filesystem::path& data) {
  ThroughputAccuracy accuracy;
  for (const auto& measure : {measure_pollux, measure_gavel, measure_lambda})
    TRY(measure(data, accuracy));
  return accuracy;
}

}  // namespace rehearse::cli
