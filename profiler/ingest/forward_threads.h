// Links backward operators to the threads of their forward operators, for recordings in which they
// share only a sequence number.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "profiler/trace/recorder.h"
#include "sim/base/paged_map.h"

namespace rehearse::ingest {

/// Takes operators with a sequence number and passes them on. It passes forward operators on at
/// once (with forward thread 0, as other recorders write it), and backward ones once every forward
/// operator that ran before them must have been read. A backward operator gets the thread of the
/// latest forward one with its number that began before it. If there is none, its number means
/// nothing and is removed.
class ForwardThreads {
 public:
  explicit ForwardThreads(trace::Recorder& recorder) : recorder_(recorder) {}

  /// `thread` is the system's number of the thread that it ran on.
  void add(trace::HostOp op, std::uint32_t thread);
  /// Call it when all threads have been written out once more since the last call.
  void turn();
  void finish();

 private:
  struct Forward {
    Nanoseconds start{0};
    std::uint32_t thread = 0;  ///< 0: none
  };
  void settle(std::vector<trace::HostOp>& ops);

  trace::Recorder& recorder_;
  /// By number. Nested operators share it and count as one. Other threads, and threads that restart
  /// their numbers, are rare.
  PagedMap<Forward> first_;
  std::unordered_map<std::uint32_t, std::vector<Forward>> others_;
  std::vector<trace::HostOp> young_, old_;  ///< backward ones of the last two turns
};

}  // namespace rehearse::ingest
