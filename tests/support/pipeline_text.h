// Input pipelines from text, as tests write them.
#pragma once

#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include "models/input/read_pipeline.h"
#include "models/input/simulate.h"
#include "sim/base/random.h"

namespace rehearse::test {

inline Result<input::Pipeline> parsed(const std::string& text) {
  const YamlFile file = TRY(YamlFile::parse(text, "p.yaml"));
  const YamlMap root = file.root();
  input::Pipeline pipeline = input::read_pipeline(root, "/");
  root.no_other_keys();
  TRY(file.status());
  return pipeline;
}

inline input::Pipeline pipeline_of(const std::string& text) {
  Result<input::Pipeline> pipeline = parsed(text);
  INFO((pipeline ? "" : to_string(pipeline.error())));
  REQUIRE(pipeline);
  return std::move(*pipeline);
}

inline input::Flow flow_of(const std::string& text) {
  const Result<input::Flow> flow = input::simulate(pipeline_of(text));
  INFO((flow ? "" : to_string(flow.error())));
  REQUIRE(flow);
  return *flow;
}

inline double rate_of(const std::string& text) { return flow_of(text).units_per_s.value; }

/// Uniform between the two.
inline double between(Random& random, double low, double high) {
  return low + (high - low) * random.uniform();
}

}  // namespace rehearse::test
