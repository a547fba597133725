// A library for LD_PRELOAD: the process kills itself instead of its n-th write to a file whose
// path has the given part, as KILL_AT and KILL_IN say.
#include <atomic>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <unistd.h>

namespace {

bool is_watched(int file) {
  const char* part = std::getenv("KILL_IN");
  char link[64], path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (part == nullptr || size <= 0) return false;
  path[size] = '\0';
  return std::strstr(path, part) != nullptr;
}

void count(int file) {
  static std::atomic<int> writes = 0;
  const char* at = std::getenv("KILL_AT");
  if (at != nullptr && is_watched(file) && ++writes == std::atoi(at)) raise(SIGKILL);
}

template <class F>
F* real(F*, const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, size_t size) {
  static auto* const next = real(&write, "write");
  count(file);
  return next(file, bytes, size);
}

ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) {
  static auto* const next = real(&pwrite, "pwrite");
  count(file);
  return next(file, bytes, size, offset);
}

ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t offset) {
  static auto* const next = real(&pwrite64, "pwrite64");
  count(file);
  return next(file, bytes, size, offset);
}
}
