// A job file of gpt2_medium on one node, and commands on it.
#pragma once

#include <string>
#include <vector>

#include <fmt/core.h>

#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse::one_node {

using test::Json, test::Ran, test::value;

inline constexpr char kOneNode[] = R"(cluster:
  device: a100_sxm4_80
  devices_per_node: 8
  intra_node: nvswitch
)";

/// With every `from` as `to`.
inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// gpt2_medium on eight A100s.
inline std::string job(const std::string& training = "", const std::string& plan = "data: 8",
                       const std::string& workload = "model: gpt2_medium") {
  return fmt::format(
      "workload: {{{}}}\ntraining: {{global_batch: 64, microbatch: 2{}}}\nplan: {{{}}}\n{}",
      workload, training, plan, kOneNode);
}

inline std::string job_file(const std::string& text) {
  return test::write_scratch("job.yaml", text).string();
}

inline Ran simulate(const std::string& text, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"simulate", job_file(text)});
  return test::rehearse(more);
}

inline Json step_json(const std::string& text, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--format", "json"});
  return test::document(simulate(text, more));
}

inline void refused(const std::string& text, const std::string& line) {
  const Ran ran = simulate(text);
  test::check_failed(ran, 1, line);
}

}  // namespace rehearse::one_node
