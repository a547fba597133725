// The capture file, as the flusher writes it.
#pragma once

#include <cstdint>

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rehearse::capture {

class CaptureFile {
 public:
  /// `offset` counts the bytes that are completely written; append advances it, and opens the file.
  CaptureFile(const char* path, std::uint64_t& offset) : path_(path), offset_(offset) {}
  ~CaptureFile() { close(); }
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  /// Appends `n` bytes or nothing, and leaves at least kReserve bytes of space.
  bool append(const void* bytes, std::size_t n) { return reserve(n) && write(bytes, n); }
  /// The same, using the reserved space.
  bool append_last(const void* bytes, std::size_t n) { return open() && write(bytes, n); }
  /// Releases the reserved space.
  void trim() {
    if (file_ >= 0 && ::ftruncate(file_, static_cast<off_t>(offset_)) != 0) errno = 0;
  }
  bool open() {
    if (file_ < 0) file_ = ::open(path_, O_WRONLY | O_CLOEXEC);
    return file_ >= 0;
  }
  void close() {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }

 private:
  // Size of the last blocks, kept free after the rows so that a full disk cannot prevent them.
  static constexpr std::size_t kReserve = 256;

  bool reserve(std::size_t n) {
    if (!open()) return false;
    const std::uint64_t end = offset_ + n + kReserve;
    rlimit limit;
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < end) return false;
    if (::fallocate(file_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_),
                    static_cast<off_t>(n + kReserve)) == 0)
      return true;
    return errno != ENOSPC && errno != EDQUOT && errno != EFBIG;  // other errors: it cannot reserve
  }

  bool write(const void* bytes, std::size_t n) {
    const auto* from = static_cast<const char*>(bytes);
    for (std::size_t done = 0; done < n;) {
      const ssize_t wrote =
          ::pwrite(file_, from + done, n - done, static_cast<off_t>(offset_ + done));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) {
        trim();
        return false;
      }
      done += static_cast<std::size_t>(wrote);
    }
    offset_ += n;
    return true;
  }

  const char* path_;
  std::uint64_t& offset_;
  int file_ = -1;
};

}  // namespace rehearse::capture
