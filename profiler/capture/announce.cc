#include "profiler/capture/announce.h"

#include <cstring>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rehearse::capture {
namespace {

constexpr std::string_view kFolder = "/triggers";
constexpr std::string_view kBegin = "step-";
constexpr std::string_view kEnd = ".trigger";

/// A directory entry as the system call returns it (getdents64(2)).
struct Entry {
  std::uint64_t inode;
  std::int64_t next;
  unsigned short bytes;
  unsigned char type;
  char name[1];
};

/// Removes the digits at the beginning of the text, at most 18, and returns their number.
bool take_number(std::string_view& text, std::uint64_t& into) {
  std::size_t n = 0;
  std::uint64_t value = 0;
  for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; ++n) {
    value = value * 10 + static_cast<std::uint64_t>(text.front() - '0');
    text.remove_prefix(1);
  }
  into = value;
  return n > 0 && n <= 18;
}

}  // namespace

Announcements::Announcements(const char* capture) {
  const char* slash = ::strrchr(capture, '/');
  const std::size_t n = slash ? static_cast<std::size_t>(slash - capture) : 0;
  name_ = slash ? std::string_view(slash + 1) : std::string_view(capture);
  if (const std::size_t dot = name_.rfind('.'); dot < name_.size())
    name_.remove_suffix(name_.size() - dot);
  if (n + kFolder.size() >= sizeof folder_) {
    folder_[0] = '\0';
    return;
  }
  std::memcpy(folder_, capture, n);
  std::memcpy(folder_ + n, kFolder.data(), kFolder.size());
  folder_[n + kFolder.size()] = '\0';
}

bool Announcements::path_of(std::uint64_t number, std::uint32_t round,
                            char (&path)[PATH_MAX + 1]) const {
  char again[16] = "";
  if (round > 0) ::snprintf(again, sizeof again, "-%u", round + 1);
  return ::snprintf(path, sizeof path, "%s/step-%llu%s.trigger", folder_,
                    static_cast<unsigned long long>(number), again) < PATH_MAX;
}

void Announcements::make(std::uint64_t number, std::uint32_t round, std::string_view reason) {
  char path[PATH_MAX + 1];
  if (folder_[0] == '\0' || !path_of(number, round, path)) return;
  ::mkdir(folder_, 0777);  // another rank may have made it
  const int file = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return;
  char text[512];
  const int n = ::snprintf(text, sizeof text, "%.*s: %.*s\n", static_cast<int>(name_.size()),
                           name_.data(), static_cast<int>(reason.size()), reason.data());
  const auto bytes = static_cast<std::size_t>(n) < sizeof text ? static_cast<std::size_t>(n) : 0;
  [[maybe_unused]] const ssize_t ignored = ::write(file, text, bytes);
  ::close(file);
}

void Announcements::remove(std::uint64_t number, std::uint32_t round) {
  char path[PATH_MAX + 1];
  if (folder_[0] != '\0' && path_of(number, round, path)) ::unlink(path);
}

int Announcements::open_folder() const {
  if (folder_[0] == '\0') return -1;
  return ::open(folder_, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

long Announcements::read_entries(int folder, char* into, std::size_t bytes) {
  return ::syscall(SYS_getdents64, folder, into, bytes);
}

bool Announcements::read_entry(const char* entries, long& at, std::uint64_t& number,
                               std::uint32_t& round) {
  const auto* entry = reinterpret_cast<const Entry*>(entries + at);
  at += entry->bytes;
  std::string_view name = entry->name;
  if (!name.starts_with(kBegin)) return false;
  name.remove_prefix(kBegin.size());
  if (!take_number(name, number)) return false;
  std::uint64_t again = 1;
  if (name.starts_with('-')) {
    name.remove_prefix(1);
    if (!take_number(name, again) || again == 0 || again > UINT32_MAX) return false;
  }
  round = static_cast<std::uint32_t>(again - 1);
  return name == kEnd;
}

void Announcements::close_folder(int folder) { ::close(folder); }

}  // namespace rehearse::capture
