// The cost of loading the files of a folder on this machine: reading each, and decoding JPEG
// images. docs/concepts/input.md describes the method.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/progress.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::loading {

/// One file, loaded.
struct Loaded {
  Bytes size = Bytes::b(0);
  bool jpeg = false;
  Seconds read = Seconds::s(0);    ///< core time
  Seconds decode = Seconds::s(0);  ///< core time
  Seconds wall = Seconds::s(0);    ///< from opening the file to its last byte
};

/// Loads files one after another into the same memory. Use one per thread.
class Loader {
 public:
  /// Fails if a file cannot be read. Fails on a damaged image with the decoder's message, and sets
  /// `damaged`.
  Result<Loaded> load(const std::filesystem::path& path, bool decode = true);
  bool damaged() const { return damaged_; }

 private:
  std::string bytes_;
  std::vector<unsigned char> pixels_;
  bool damaged_ = false;
};

struct Damaged {
  std::string path;
  std::string words;  ///< message of the decoder
};

/// The cores that this process may use, and their hardware threads.
struct Cores {
  unsigned cores = 1;
  unsigned threads = 1;
};
Cores cores_here();

struct Measured {
  std::uint64_t files = 0;  ///< regular files, in the folder and below
  Bytes bytes = Bytes::b(0);
  std::uint64_t left_out = 0;                       ///< files of more than 1 GiB, not used as items
  std::vector<std::filesystem::path> sampled = {};  ///< those that were loaded
  std::vector<Damaged> damaged = {};
  std::uint64_t jpegs = 0;  ///< of the sampled ones
  /// One entry per sampled file, in the same order in all lists.
  std::vector<Bytes> sizes = {};
  std::vector<Seconds> read = {};  ///< core time, from memory
  std::vector<Seconds> decode = {};
  /// Additional time of reads that memory does not serve. Only files that the kernel evicted from
  /// its page cache on request have one: fewer, or none.
  std::vector<Seconds> cold = {};
  Cores cores = {};
  double loaded = 1;  ///< speed of a core while all are busy, relative to one alone
  double smt = 1;     ///< speed with all hardware threads, relative to one thread per core
};

/// Samples `samples` files, spread evenly over the folder in order of their names. Fails if the
/// folder has none, and on images if the program was built without libjpeg.
Result<Measured> measure_folder(const std::filesystem::path& folder, std::size_t samples,
                                const Progress& progress = {});

/// One run of threads that load files from a shared list, repeated a number of times.
struct Run {
  double files = 0;
  Seconds wall = Seconds::s(0);
  Seconds on_cores = Seconds::s(0);  ///< core time of all threads

  double per_s() const { return files / wall.s(); }
  /// The rate if nothing else ran on the cores.
  double per_s_undisturbed(unsigned threads) const { return files * threads / on_cores.s(); }
};
/// REQUIRES: all files can be loaded.
Run run_threads(const std::vector<std::filesystem::path>& files, unsigned threads,
                std::size_t times);

}  // namespace rehearse::loading
