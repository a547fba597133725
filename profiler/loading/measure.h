// Cost of loading the files of a folder on this machine: reading each, and decoding
// JPEG images. docs/concepts/input.md describes the method.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
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
  Seconds read = Seconds::s(0);    ///< on a core
  Seconds decode = Seconds::s(0);  ///< on a core
  Seconds wall = Seconds::s(0);    ///< from opening the file to its last byte
};

/// Loads files one after another, into the same memory: one for each thread.
class Loader {
 public:
  /// Fails on a file that cannot be read; of a damaged image with the words of the decoder, and
  /// `damaged` set.
  Result<Loaded> load(const std::filesystem::path& path, bool decode = true);
  bool damaged() const { return damaged_; }

 private:
  std::string bytes_;
  std::vector<unsigned char> pixels_;
  bool damaged_ = false;
};

struct Damaged {
  std::string path;
  std::string words;  ///< of the decoder
};

/// Cores that this process may use, and threads that they run.
struct Cores {
  unsigned cores = 1;
  unsigned threads = 1;
};
Cores cores_here();

struct Measured {
  std::uint64_t files = 0;  ///< ordinary ones, in the folder and below
  Bytes bytes = Bytes::b(0);
  std::uint64_t left_out = 0;                       ///< files of more than 1 GiB: no items
  std::vector<std::filesystem::path> sampled = {};  ///< those that were loaded
  std::vector<Damaged> damaged = {};
  std::uint64_t jpegs = 0;  ///< of the sampled ones
  /// One entry per sampled file, in the same order in all lists.
  std::vector<Bytes> sizes = {};
  std::vector<Seconds> read = {};  ///< on a core, from memory
  std::vector<Seconds> decode = {};
  /// How much longer a read takes that memory does not serve; of the files that the kernel put out
  /// of its memory when asked: fewer, or none.
  std::vector<Seconds> cold = {};
  Cores cores = {};
  double loaded = 1;  ///< speed of a core while all are busy, over that of one alone
  double smt = 1;     ///< of all threads, over that of one for each core
};

/// Spreads `samples` files evenly over the folder's, in order of their names. Fails on a folder
/// without any, and on images where the program was built without libjpeg.
Result<Measured> measure_folder(const std::filesystem::path& folder, std::size_t samples,
                                const Progress& progress = {});

/// The files loaded by threads that share the list, repeated a number of times.
struct Run {
  double files = 0;
  Seconds wall = Seconds::s(0);
  Seconds on_cores = Seconds::s(0);  ///< of all threads

  double per_s() const { return files / wall.s(); }
  /// As though nothing else ran on the cores that it had.
  double per_s_undisturbed(unsigned threads) const { return files * threads / on_cores.s(); }
};
/// REQUIRES: files that can be loaded.
Run run_threads(const std::vector<std::filesystem::path>& files, unsigned threads,
                std::size_t times);

}  // namespace rehearse::loading
