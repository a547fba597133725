// The edges between basic blocks that inputs of a fuzzer reach, for coverage.py.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse::fuzz {

/// What libFuzzer sees of the program's counters: the blocks of them that an input has reached. A reader
/// reaches one in a hundred, and libFuzzer reads and clears all that it sees for each input, which took
/// longer than most readers.
class SeenBlocks {
 public:
  /// Call it after each input. It looks for new blocks after each of the first inputs, which are those of
  /// the corpus, and now and then later.
  void after_input();

 private:
  void show_reached();

  std::uint64_t inputs_ = 0;
  std::vector<bool> seen_;
};

/// The edges that any input reached.
class Covered {
 public:
  /// `file` is where they are written at the end; without one, nothing is noted.
  explicit Covered(const char* file);
  Covered(const Covered&) = delete;
  Covered& operator=(const Covered&) = delete;
  /// Writes for each edge its address in the program, and 2^63 more if it was reached: 64 bits each.
  ~Covered();

  /// Call it after each input: libFuzzer clears the counters before the next.
  void note();

 private:
  const char* file_;
  std::vector<std::uint8_t> reached_;
};

}  // namespace rehearse::fuzz
