// A setting of an inference server as a launch script, with the server's own flags. Keys are from the
// public documentation of vLLM 0.19, SGLang 0.5 and TensorRT-LLM 1.2.
#pragma once

#include <string>
#include <vector>

#include "cli/config/serve_file.h"
#include "sim/base/result.h"

namespace rehearse::cli {

struct ServerLaunch {
  std::string text;
  std::vector<std::string> notes;  ///< settings that must be made elsewhere
};

/// `headline`: one line for the reader of the script. Fails with one line if the server has no flag for
/// the plan.
Result<ServerLaunch> emit_server(const ServeFile& job, const std::string& headline);

}  // namespace rehearse::cli
