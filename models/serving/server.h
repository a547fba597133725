// Servers: the time of a step outside of the kernels' laws, by framework, version and device
// architecture (servers.yaml). The constants are effective: they were fitted to whole runs, where
// they partly trade off against each other. docs/concepts/serving-price.md has their evidence.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::serving {

enum class Framework : std::uint8_t { kVllm, kSglang, kTrtllm };
inline constexpr std::string_view kFrameworkNames[] = {"vllm", "sglang", "trtllm"};

struct Server {
  std::string name = {};          ///< framework, with the version from which it holds
  double kernels = 1;             ///< time of kernels in a server ÷ by their laws
  Seconds glue = Seconds::s(0);   ///< per layer: norms, rotary, quantisation
  Seconds ready = Seconds::s(0);  ///< per all-reduce: ranks are never in step
  Seconds step = Seconds::s(0);   ///< per step that nothing hides
  Seconds row = Seconds::s(0);    ///< per step and row
  /// Of elementwise kernels over the hidden states of all tokens: per layer, and more per layer of
  /// experts.
  double passes = 0, expert_passes = 0;
  double prompts = 1;  ///< experts with 512 or more prompt tokens ÷ their law; fewer in proportion
  Seconds launch = Seconds::s(0);        ///< least time per layer of a step without CUDA graphs
  double graphs = 512;                   ///< largest step with prompts in CUDA graphs, in tokens
  Seconds request = Seconds::s(0);       ///< of a request outside of steps; requests overlap
  Seconds client = Seconds::s(0);        ///< the front end takes one request after another
  Seconds kilotoken = Seconds::s(0);     ///< the same per 1,000 tokens of its prompt
  double low = 1, high = 1;              ///< 90 % interval of true ÷ predicted step times
  double first_low = 1, first_high = 1;  ///< the same of the time to the first token
};

/// The largest step without prompts in CUDA graphs, in rows.
inline constexpr double kMostGraphRows = 512;

/// Whether a version is not older than another one; the empty version is the newest.
bool has_reached(std::string_view version, std::string_view since);

/// Whether text is numbers with dots, such as "0.11", or empty, the newest version.
bool is_version(std::string_view text);

/// That of the newest entry that is not newer than `version`, of this architecture before others;
/// without a version the newest. REQUIRES: is_version(version).
Server server_for(Framework framework, std::string_view version, std::string_view architecture);

}  // namespace rehearse::serving
