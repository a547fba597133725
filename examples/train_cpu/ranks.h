// The ranks of a run: MPI where the program was built with it, else this process alone.
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

  /// Replaces `values` by their sum over the ranks. Blocks until it is done.
  void sum(float* values, std::size_t count) const;
  /// Begins to send; the values must stay until the end of `sent`, which waits for all.
  void send(const float* values, std::size_t count, int to);
  void sent();
  void receive(float* values, std::size_t count, int from) const;

  /// The median time of a sum, in microseconds.
  double measure_sum(std::size_t count) const;
  /// Times all-reduces of 1 KiB to 8 MiB and writes the latency and rate that make the ring formula
  /// fit them as a link file for `rehearse whatif --network`. REQUIRES: more than one rank.
  bool measure_link(const std::string& file) const;

 private:
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace train_cpu
