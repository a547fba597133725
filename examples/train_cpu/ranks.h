// The ranks of a data-parallel run: MPI where the program was built with it, else this process
// alone.
#pragma once

#include <cstddef>
#include <string>

namespace train_cpu {

class Ranks {
 public:
  Ranks(int* argc, char*** argv);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Replaces `values` by their mean over the ranks. Blocks until it is done.
  void mean(float* values, std::size_t count) const;

  /// Times all-reduces of 1 KiB to 8 MiB and writes the latency and rate that make the ring formula
  /// fit them as a link file for `rehearse whatif --network`. REQUIRES: more than one rank.
  bool measure_link(const std::string& file) const;

 private:
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace train_cpu
