// Measures of controllers in studies (docs/formats/study.md, section "controllers").
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/study/expectation.h"
#include "models/control/controller.h"
#include "sim/base/yaml.h"

namespace rehearse::cli {

/// The parameters of a point, and the value of an expression over the parts of its study when some
/// of them are replaced or added.
struct PointValues {
  const Setting& parameters;
  std::function<Result<double>(const std::string& expression, const Setting& replaced)> at;
};

struct ControllerRun {
  control::Controller controller;
  std::string price = "1";                ///< an expression
  std::vector<std::string> choices = {};  ///< as written
  /// Parameters of the point that a choice and a level replace; empty: none, so that the price is an
  /// expression of `choice` and `level` alone.
  std::string knob = {}, follows = {};
  std::vector<Setting> states = {};  ///< what each state replaces
};

/// Mistakes are recorded in the map's file; the result is then meaningless.
ControllerRun read_controller(const YamlMap& map, const Setting& parameters);

/// Fails with one line, also if the price is no expression of what it may depend on.
Result<control::Outcome> run_controller(const ControllerRun& run, const PointValues& point);

}  // namespace rehearse::cli
