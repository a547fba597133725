#include "sim/base/file.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/pending_files.h"

namespace rehearse {
namespace {

tl::unexpected<Error> fail_file(const std::filesystem::path& path, std::string problem,
                                std::string expected = {}) {
  return fail_in(path, std::move(problem), std::move(expected));
}

/// The names of temporary files, where a signal handler can read them. There are never more open
/// files than this; an additional one would not be removed after a signal.
struct Temporary {
  std::atomic<int> state{0};  // 0 free, 1 being written, 2 the name of a file
  std::array<char, 4096> name{};
};
std::array<Temporary, 16> temporaries;

void remember(const std::filesystem::path& path) {
  const std::string& name = path.native();
  for (Temporary& slot : temporaries) {
    int free = 0;
    if (name.size() >= slot.name.size() || !slot.state.compare_exchange_strong(free, 1)) continue;
    std::memcpy(slot.name.data(), name.c_str(), name.size() + 1);
    slot.state = 2;
    return;
  }
}

void forget(const std::filesystem::path& path) {
  for (Temporary& slot : temporaries)
    if (slot.state == 2 && path.native() == slot.name.data()) {
      slot.state = 0;
      return;
    }
}

std::map<std::filesystem::path, std::string>& held_files() {
  static std::map<std::filesystem::path, std::string> files;
  return files;
}

/// A file by what its names have in common.
struct FileId {
  dev_t device;
  ino_t number;
  auto operator<=>(const FileId&) const = default;
};

std::optional<FileId> id_of(const std::filesystem::path& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return FileId{info.st_dev, info.st_ino};
}

/// The files that were read, by any thread.
struct Inputs {
  std::mutex mutex;
  std::set<FileId> ids;
};

Inputs& inputs() {
  static Inputs all;
  return all;
}

Status check_no_input(const std::filesystem::path& path) {
  const std::optional<FileId> id = id_of(path);
  Inputs& all = inputs();
  const std::lock_guard lock(all.mutex);
  if (!id || !all.ids.contains(*id)) return {};
  return fail_file(path, "is an input of this run", "another file for the output");
}

/// Removes what killed runs have left of the same file: they hold no lock, and no longer exist here.
void remove_leftovers(const std::filesystem::path& path) {
  std::error_code failed;
  const std::string begin = path.filename().string() + ".", end = ".part";
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  for (std::filesystem::directory_iterator at(folder, failed), none; !failed && at != none;
       at.increment(failed)) {
    const std::string name = at->path().filename();
    if (!name.starts_with(begin) || !name.ends_with(end)) continue;
    pid_t writer = 0;
    const char* const digits_end = name.data() + name.size() - end.size();
    if (const auto [rest, error] = std::from_chars(name.data() + begin.size(), digits_end, writer);
        error != std::errc{} || rest != digits_end || writer <= 0 || ::kill(writer, 0) == 0 ||
        errno != ESRCH)
      continue;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
        std::fopen(at->path().c_str(), "r+be"), &std::fclose);
    if (file && ::flock(::fileno(file.get()), LOCK_EX | LOCK_NB) == 0) ::unlink(at->path().c_str());
  }
}

}  // namespace

void note_input(const std::filesystem::path& path) {
  const std::optional<FileId> id = id_of(path);
  Inputs& all = inputs();
  const std::lock_guard lock(all.mutex);
  if (id) all.ids.insert(*id);
}

void hold_file(const std::filesystem::path& name, std::string text) {
  held_files()[name] = std::move(text);
}

const std::string* held_file(const std::filesystem::path& name) {
  const auto file = held_files().find(name);
  return file == held_files().end() ? nullptr : &file->second;
}

void remove_pending_files() {
  for (Temporary& slot : temporaries)
    if (slot.state == 2) ::unlink(slot.name.data());
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t most) {
  if (const std::string* text = held_file(path)) return *text;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return fail_file(path, "is a folder", "a file");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file) return fail_file(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  const auto too_large = [&] {
    return fail_file(path, "is too large", fmt::format("at most {} MiB", most >> 20));
  };
  std::string text;
  char block[1 << 16];
  note_input(path);
  if (struct stat info = {}; ::fstat(::fileno(file.get()), &info) == 0 && S_ISREG(info.st_mode)) {
    if (static_cast<std::uintmax_t>(info.st_size) > most) return too_large();
    text.reserve(static_cast<std::size_t>(info.st_size));
  }
  while (const std::size_t n = std::fread(block, 1, sizeof block, file.get())) {
    text.append(block, n);
    if (text.size() > most) return too_large();
  }
  if (std::ferror(file.get()))
    return fail_file(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  return text;
}

PendingFile::PendingFile(std::filesystem::path path, std::filesystem::path temporary,
                         std::FILE* file)
    : path_(std::move(path)), temporary_(std::move(temporary)), file_(file) {}

PendingFile::PendingFile(PendingFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      file_(std::exchange(other.file_, nullptr)) {}

PendingFile::~PendingFile() {
  if (!file_) return;
  std::fclose(file_);
  if (temporary_ == path_) return;
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
  forget(temporary_);
}

Result<PendingFile> PendingFile::create(std::filesystem::path path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return fail_file(path, "is a folder", "the name of a file to write");
  TRY(check_no_input(path));
  std::filesystem::path temporary = path;
  const auto kind = std::filesystem::status(path, ignored).type();
  if (kind == std::filesystem::file_type::not_found || kind == std::filesystem::file_type::regular)
    temporary += fmt::format(".{}.part", ::getpid());
  if (temporary != path) remove_leftovers(path);
  std::FILE* file = std::fopen(temporary.c_str(), "wbe");
  if (!file)
    return fail_file(path, fmt::format("cannot be written: {}", std::strerror(errno)),
                     "an existing, writable folder");
  if (temporary != path) {
    remember(temporary);
    ::flock(::fileno(file), LOCK_EX | LOCK_NB);
    struct stat before = {};
    if (::stat(path.c_str(), &before) == 0) ::fchmod(::fileno(file), before.st_mode & 07777);
  }
  return PendingFile(std::move(path), std::move(temporary), file);
}

Status PendingFile::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) == text.size()) return {};
  return fail_file(path_, fmt::format("cannot be written: {}", std::strerror(errno)));
}

Status PendingFile::commit() {
  TRY(check_no_input(path_));
  const bool in_place = temporary_ == path_;
  const bool flushed = std::fflush(file_) == 0 && (in_place || ::fsync(::fileno(file_)) == 0);
  const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  const bool placed =
      flushed && closed && (in_place || std::rename(temporary_.c_str(), path_.c_str()) == 0);
  const int error = errno;
  if (!in_place) forget(temporary_);
  if (placed) return {};
  if (in_place) return fail_file(path_, fmt::format("cannot be written: {}", std::strerror(error)));
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
  return fail_file(path_, fmt::format("cannot be written: {}", std::strerror(error)));
}

Status write_file(const std::filesystem::path& path, std::string_view text) {
  PendingFile file = TRY(PendingFile::create(path));
  TRY(file.write(text));
  return file.commit();
}

Status check_writable(std::initializer_list<std::filesystem::path> paths) {
  for (const std::filesystem::path& path : paths)
    if (!path.empty()) TRY(PendingFile::create(path));
  return {};
}

}  // namespace rehearse
