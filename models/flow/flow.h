// Flow: steps that an automation service runs one after another. An action is asked for its status,
// may fail, is tried again, and may be followed by one of several steps.
// docs/concepts/flow.md has the laws.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/yaml.h"

namespace rehearse::flow {

/// A series of waits in seconds: `first`, each next one `factor` times as long, at most `most`.
struct Waits {
  double first;
  double factor = 1;
  double most = std::numeric_limits<double>::infinity();
};

enum class TimeLaw : std::uint8_t {
  kConstant,
  kExponential,
  kUniform,  ///< from 0 to twice the mean
};
inline constexpr std::string_view kTimeLawNames[] = {"constant", "exponential", "uniform"};

struct Branch {
  std::size_t to;  ///< index of a step; the number of steps: the end
  double share;    ///< probability
};

struct FlowStep {
  double time = 0;  ///< mean seconds of a try
  TimeLaw law = TimeLaw::kConstant;
  std::optional<Waits> poll = {};  ///< waits between requests for the status; none: it is pushed
  double fails = 0;                ///< probability of a try
  std::uint32_t retries = 0;
  std::optional<Waits> back_off = {};         ///< waits before tries after the first
  std::optional<double> limit = {};           ///< seconds of all tries; then the step fails
  std::vector<Branch> then = {};              ///< after success; the shares sum to 1
  std::optional<std::size_t> otherwise = {};  ///< after failure; none: the flow fails
};

struct Flow {
  std::vector<FlowStep> steps = {};
  double transition = 0;             ///< seconds before each step
  std::optional<double> limit = {};  ///< seconds; then the flow fails
  std::uint32_t runs = 1000;
  std::uint64_t seed = 1;
};

struct Outcome {
  double makespan = 0;                 ///< mean seconds until a run ends, in success or failure
  double standard_error = 0;           ///< of this mean
  double completed = 0;                ///< share of the runs that end in success
  double tries = 0;                    ///< mean number of tries of a run
  std::vector<double> makespans = {};  ///< seconds of each run
};

/// When a request for the status first sees what ended `time` seconds after the start of a try.
double seen_at(const Waits& poll, double time);

/// Random runs. Fails if one does not end within 100,000 tries, or all within 10^8, with one line.
Result<Outcome> run(const Flow& flow);

/// Mistakes are recorded in the map's file; the result is then meaningless.
Flow read_flow(const YamlMap& map);

}  // namespace rehearse::flow
