#include "profiler/capture/process.h"

#include <algorithm>
#include <string_view>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/capture/format.h"
#include "profiler/capture/system.h"

namespace rehearse::capture {
namespace {

constexpr std::size_t kMaxCommand = 4096;

/// The variables in which launchers pass a process its place in the job. The first existing pair
/// counts: a
/// process that torchrun starts inside a SLURM step has both.
struct Place {
  const char* rank;
  const char* ranks;
  const char* local_rank;
};
constexpr Place kPlaces[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
};

/// The number that a variable holds plus one; 0 when it holds none.
std::uint64_t number_plus_one(const char* variable) {
  const char* text = ::getenv(variable);
  if (!text || *text < '0' || *text > '9') return 0;
  char* end = nullptr;
  const unsigned long value = ::strtoul(text, &end, 10);
  return *end == '\0' && value < UINT32_MAX ? value + 1 : 0;
}

/// The arguments of this process, each with a zero byte at its end.
std::size_t read_command(char (&into)[kMaxCommand]) {
  const int file = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t n = ::read(file, into, sizeof into);
  ::close(file);
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

/// Calls visit(argument) for each; the last may be cut. (string_view::substr needs the C++ run
/// time.)
template <class Visit>
void each_argument(std::string_view command, Visit visit) {
  while (!command.empty()) {
    const std::size_t bytes = std::min(command.find('\0'), command.size());
    visit(std::string_view(command.data(), bytes));
    command.remove_prefix(std::min(bytes + 1, command.size()));
  }
}

std::size_t encode_process(unsigned char* payload, std::string_view host, std::string_view command,
                           pid_t forked_from) {
  Encoder out(payload);
  out.text(host);
  out.varint(static_cast<std::uint64_t>(::getpid()));
  out.varint(static_cast<std::uint64_t>(::getppid()));
  out.varint(static_cast<std::uint64_t>(forked_from));
  std::uint64_t place[3] = {};
  for (const Place& known : kPlaces) {
    place[0] = number_plus_one(known.rank);
    if (place[0] == 0) continue;
    place[1] = number_plus_one(known.ranks);
    place[2] = number_plus_one(known.local_rank);
    break;
  }
  for (const std::uint64_t number : place) out.varint(number);
  out.varint(clock_ns(CLOCK_REALTIME));
  out.varint(clock_ns(CLOCK_MONOTONIC_RAW));
  std::uint64_t arguments = 0;
  each_argument(command, [&](std::string_view) { ++arguments; });
  out.varint(arguments);
  each_argument(command, [&](std::string_view argument) { out.text(argument); });
  cpu_set_t cpus;
  out.varint(::sched_getaffinity(0, sizeof cpus, &cpus) == 0
                 ? static_cast<std::uint64_t>(CPU_COUNT(&cpus))
                 : 0);
  return out.size();
}

bool write_all(int file, const void* bytes, std::size_t n) {
  const auto* at = static_cast<const char*>(bytes);
  while (n > 0) {
    const ssize_t wrote = ::write(file, at, n);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    at += wrote;
    n -= static_cast<std::size_t>(wrote);
  }
  return true;
}

/// A file that holds these bytes. False with EEXIST when there is one of that name.
bool create_file(const char* path, const void* bytes, std::size_t n) {
  const int file = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return false;
  const bool written = write_all(file, bytes, n);
  const int error = errno;
  ::close(file);
  errno = error;
  return written;
}

}  // namespace

bool create_files(const char* folder, pid_t forked_from, char (&path)[PATH_MAX + 1],
                  std::uint64_t& bytes) {
  char host[65] = "unknown";
  ::gethostname(host, sizeof host - 1);
  for (char* c = host; *c; ++c)
    if (*c == '/') *c = '_';
  char command[kMaxCommand];
  const std::size_t command_bytes = read_command(command);

  // For people: the arguments, with spaces between.
  char hello[kMaxCommand + 1];
  std::size_t hello_bytes = 0;
  each_argument({command, command_bytes}, [&](std::string_view argument) {
    if (hello_bytes > 0) hello[hello_bytes++] = ' ';
    std::memcpy(hello + hello_bytes, argument.data(), argument.size());
    hello_bytes += argument.size();
  });
  hello[hello_bytes++] = '\n';

  const auto name = [&](int attempt, const char* suffix) {
    char again[16] = "";
    if (attempt > 1) ::snprintf(again, sizeof again, "-%d", attempt);
    const int n =
        ::snprintf(path, sizeof path, "%s/%s-%d%s%s", folder, host, ::getpid(), again, suffix);
    if (n >= PATH_MAX) errno = ENAMETOOLONG;
    return n < PATH_MAX;
  };
  int attempt = 1;
  for (;; ++attempt) {
    if (!name(attempt, kHelloSuffix)) return false;
    if (create_file(path, hello, hello_bytes)) break;
    if (errno != EEXIST) return false;
  }

  unsigned char file[sizeof(FileHeader) + sizeof(BlockHeader) + kMaxCommand * 2 + 256];
  FileHeader header = {.magic = {}, .version = kFormatVersion, .reserved = 0};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  std::memcpy(file, &header, sizeof header);
  unsigned char* payload = file + sizeof header + sizeof(BlockHeader);
  const auto payload_bytes = static_cast<std::uint32_t>(
      encode_process(payload, host, {command, command_bytes}, forked_from));
  const BlockHeader block = {.type = static_cast<std::uint32_t>(BlockType::kProcess),
                             .bytes = payload_bytes,
                             .crc = block_crc(BlockType::kProcess, payload, payload_bytes)};
  std::memcpy(file + sizeof header, &block, sizeof block);
  bytes = sizeof header + sizeof block + payload_bytes;
  return name(attempt, kCaptureSuffix) && create_file(path, file, bytes);
}

}  // namespace rehearse::capture
