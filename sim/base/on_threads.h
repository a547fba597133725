// Independent pieces of work on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace rehearse {

/// Calls work(0) to work(count - 1), each once, on at most `threads` threads including this one;
/// returns when all are done. After an exception no further call begins, and the first exception
/// is rethrown here once all threads have ended.
void on_threads(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace rehearse
