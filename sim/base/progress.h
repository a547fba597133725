// Progress of long work. Libraries report it; only the command line displays it.
#pragma once

#include <functional>

namespace rehearse {

/// Called now and then with the share done, from 0 to 1. Returning false asks the work to stop.
using Progress = std::function<bool(double share)>;

}  // namespace rehearse
