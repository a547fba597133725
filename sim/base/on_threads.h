// Independent pieces of work on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace rehearse {

/// Calls work(0) to work(count - 1), each once, on at most so many threads, this one among them;
/// returns when all are done. Where one throws, no other begins, and the first that was thrown is
/// thrown here once all threads have ended: a fault in a thread is told as one in this thread is.
void on_threads(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace rehearse
