// Announcements: a rank tells the others, on any host that shares the folder, which step it
// keeps. Each is a small file in the folder "triggers" of the recording: "step-1234.trigger", or
// "step-1234-2.trigger" if the step numbers restarted once. Its content (host,
// process and reason) is for people; other ranks use only the name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <limits.h>

namespace rehearse::capture {

class Announcements {
 public:
  /// The announcements of the recording whose file is `capture`.
  explicit Announcements(const char* capture);

  /// Creates the file, unless another rank has created it. Does nothing if the folder cannot be
  /// written.
  void make(std::uint64_t number, std::uint32_t round, std::string_view reason);
  /// Removes an announcement of this process that is no longer needed.
  void remove(std::uint64_t number, std::uint32_t round);

  /// Calls visit(number, round) for each announcement, in one pass over the folder's entries. It
  /// reads at most 256 KiB of them (about 6000).
  template <class Visit>
  void each(Visit visit) {
    const int folder = open_folder();
    if (folder < 0) return;
    alignas(8) char entries[16 * 1024];
    for (int piece = 0; piece < 16; ++piece) {
      const long n = read_entries(folder, entries, sizeof entries);
      if (n <= 0) break;
      for (long at = 0; at < n;) {
        std::uint64_t number = 0;
        std::uint32_t round = 0;
        if (read_entry(entries, at, number, round)) visit(number, round);
      }
    }
    close_folder(folder);
  }

 private:
  bool path_of(std::uint64_t number, std::uint32_t round, char (&path)[PATH_MAX + 1]) const;
  int open_folder() const;
  static long read_entries(int folder, char* into, std::size_t bytes);
  /// Reads the entry at `at` and advances `at` to the next. False if it is not an announcement.
  static bool read_entry(const char* entries, long& at, std::uint64_t& number,
                         std::uint32_t& round);
  static void close_folder(int folder);

  char folder_[PATH_MAX + 1];
  std::string_view name_;  // HOST-PID
};

}  // namespace rehearse::capture
