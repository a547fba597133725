// Flags of inference servers: the setting that each name means, and the defaults of each server.
#pragma once

#include "models/serving/server.h"
#include "sim/base/yaml.h"
#include "sim/cluster/catalog.h"
#include "sim/serving/rules.h"

namespace rehearse::cli {

struct ServerSettings {
  serving::Rules rules;
  double memory = 0.9;
  std::optional<double> graphs = {};  ///< as Deployment::graphs
};

/// What a server does without flags on this device. Sources: documentation and sources of vLLM
/// 0.19, SGLang 0.5 and TensorRT-LLM 1.2; the number of rows of vLLM is recalled.
ServerSettings usual_settings(serving::Framework framework, std::string_view version,
                              const cluster::Gpu& gpu);

/// Sets what the mapping names, by common names or those of the server. A flag of another server is
/// an error that names the one to use.
void read_server_flags(const YamlMap& flags, serving::Framework framework,
                       ServerSettings& settings);

}  // namespace rehearse::cli
