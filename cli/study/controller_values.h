// Measures of controllers in studies (docs/formats/study.md, section "controllers").
#pragma once

#include <string>

#include "models/control/controller.h"
#include "sim/base/yaml.h"

namespace rehearse::cli {

struct ControllerRun {
  control::Controller controller;
  std::string price = "1";  ///< an expression of `choice` and `level`
};

/// Mistakes are recorded in the map's file; the result is then meaningless.
ControllerRun read_controller(const YamlMap& map);

/// Fails with one line, also if the price is no expression of these two.
Result<control::Outcome> run_controller(const ControllerRun& run);

}  // namespace rehearse::cli
