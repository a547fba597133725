#include "sim/base/check.h"

namespace rehearse {

void fail_check(const char* file, int line, const char* condition, const std::string& values) {
  throw Fault(fmt::format("{}:{}: broken invariant: {}{}{}", file, line, condition,
                          values.empty() ? "" : ": ", values));
}

}  // namespace rehearse
