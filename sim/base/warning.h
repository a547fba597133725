// Warning: what limits an answer, and what to record or to change to mend it.
#pragma once

#include <string>

namespace rehearse {

struct Warning {
  std::string what;    ///< one line, without a full stop
  std::string remedy;  ///< likewise, as an order: "record a run with …"
};

/// "what; remedy": a line on a terminal.
inline std::string to_string(const Warning& warning) {
  return warning.remedy.empty() ? warning.what : warning.what + "; " + warning.remedy;
}

}  // namespace rehearse
