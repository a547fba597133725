// Flags of inference servers: the setting that each name means, and the defaults of each server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/serving/server.h"
#include "sim/base/yaml.h"
#include "sim/cluster/catalog.h"
#include "sim/serving/rules.h"

namespace rehearse::cli {

struct ServerSettings {
  serving::Rules rules;
  double memory = 0.9;
  std::optional<double> graphs = {};  ///< as Deployment::graphs
  /// The flags that a job gives, by their common names, or their own where a server alone has them.
  std::vector<std::string_view> given = {};
};

/// What a server does without flags on this device. Sources: documentation and sources of vLLM
/// 0.19, SGLang 0.5 and TensorRT-LLM 1.2; the number of rows of vLLM is recalled.
ServerSettings usual_settings(serving::Framework framework, std::string_view version,
                              const cluster::Gpu& gpu);

/// Sets what the mapping names, by common names or those of the server. A flag of another server is
/// an error that names the one to use.
void read_server_flags(const YamlMap& flags, serving::Framework framework,
                       ServerSettings& settings);

/// A flag under the name of its server, with its value as text.
struct ServerFlag {
  std::string_view name;
  std::string value;
};
/// The tokens and rows of a step, and what differs from the usual settings. A job with these flags has
/// these settings.
std::vector<ServerFlag> flags_of(serving::Framework framework, const ServerSettings& usual,
                                 const ServerSettings& settings);

/// What a replica's load allows: larger limits of a step change nothing.
struct LargestStep {
  std::int64_t rows, tokens;
};
/// The rules that a search tries: powers of two of the tokens and rows of a step, and each choice of
/// how steps are formed that the server has. Flags that the job gives are kept.
std::vector<serving::Rules> rules_to_try(serving::Framework framework,
                                         const ServerSettings& settings,
                                         const LargestStep& largest);

}  // namespace rehearse::cli
