// Warning: a limit of an answer, and its remedy: data to record or a setting to change.
#pragma once

#include <string>

namespace rehearse {

struct Warning {
  std::string what;    ///< one line, without a full stop
  std::string remedy;  ///< likewise, as an order: "record a run with …"
};

/// "problem; remedy": a line on a terminal.
inline std::string to_string(const Warning& warning) {
  return warning.remedy.empty() ? warning.what : warning.what + "; " + warning.remedy;
}

}  // namespace rehearse
