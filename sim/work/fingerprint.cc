#include "sim/work/fingerprint.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include <fmt/core.h>

#include "sim/base/checksum.h"
#include "sim/base/file.h"

namespace rehearse::work {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> unreadable(const fs::path& path, std::string_view why) {
  return fail_in(path, fmt::format("cannot be read: {}", why));
}

}  // namespace

void Fingerprint::add(std::string_view bytes) { hash_ = checksum(hash_, bytes); }

Status Fingerprint::add_contents(const fs::path& path) {
  if (const std::string* text = held_file(path)) {
    add(*text);
    return {};
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (!file) return unreadable(path, std::strerror(errno));
  std::vector<char> part(1 << 20);
  while (const std::size_t n = std::fread(part.data(), 1, part.size(), file.get()))
    add({part.data(), n});
  if (std::ferror(file.get())) return unreadable(path, std::strerror(errno));
  return {};
}

Status Fingerprint::add_file(const fs::path& path) {
  add(path.filename().string());
  std::error_code error;
  if (!fs::is_directory(path, error)) return add_contents(path);
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
       it.increment(error))
    if (it->is_regular_file()) files.push_back(it->path());
  if (error) return unreadable(path, error.message());
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    add(file.lexically_relative(path).string());
    TRY(add_contents(file));
  }
  return {};
}

Status Fingerprint::add_program() { return add_contents("/proc/self/exe"); }

std::string Fingerprint::text() const { return fmt::format("{:016x}", hash_); }

}  // namespace rehearse::work
