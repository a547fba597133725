#include "sim/base/watch.h"

#include <utility>

namespace rehearse {
namespace {

thread_local Watch* innermost = nullptr;

}  // namespace

Watch::Watch(Progress progress)
    : progress_(std::move(progress)), outer_(std::exchange(innermost, this)) {}

Watch::~Watch() { innermost = outer_; }

bool report(double share) { return !innermost || innermost->progress_(share); }

}  // namespace rehearse
