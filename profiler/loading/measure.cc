#include "profiler/loading/measure.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <set>

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/loading/jpeg.h"
#include "sim/base/on_threads.h"
#include "sim/base/statistics.h"
#include "sim/base/text.h"

namespace rehearse::loading {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLargest = std::uintmax_t{1} << 30;
/// The shortest duration of a run whose speed is compared, and the number of runs of each kind.
constexpr Seconds kLeastRun = Seconds::s(0.1);
constexpr int kRuns = 3;
/// How often each file is loaded from memory.
constexpr std::size_t kRounds = 3;

Seconds on_core() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return Seconds::s(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec));
}

Seconds wall() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return Seconds::s(std::chrono::duration<double>(now).count());
}

class Descriptor {
 public:
  explicit Descriptor(const fs::path& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

tl::unexpected<Error> cannot_read(const fs::path& path) {
  return fail_in(path, fmt::format("cannot be read: {}", std::strerror(errno)));
}

Status read_whole(const fs::path& path, std::string& bytes) {
  const Descriptor file(path);
  struct stat about {};
  if (file.get() < 0 || ::fstat(file.get(), &about) != 0) return cannot_read(path);
  bytes.resize(static_cast<std::size_t>(about.st_size));
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t more = ::read(file.get(), bytes.data() + have, bytes.size() - have);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return cannot_read(path);
    if (more == 0) break;  // it became shorter
    have += static_cast<std::size_t>(more);
  }
  bytes.resize(have);
  return {};
}

/// Asks the kernel to forget a file's bytes; whether it did.
bool put_out_of_memory(const fs::path& path) {
  const Descriptor file(path);
  struct stat about {};
  if (file.get() < 0 || ::fstat(file.get(), &about) != 0 || about.st_size == 0) return false;
  ::fdatasync(file.get());  // unwritten pages cannot be evicted
  if (::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED) != 0) return false;
  const auto size = static_cast<std::size_t>(about.st_size);
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return false;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> there((size + page - 1) / page, 1);
  const bool known = ::mincore(mapped, size, there.data()) == 0;
  ::munmap(mapped, size);
  return known && std::ranges::none_of(there, [](unsigned char c) { return c & 1; });
}

struct Folder {
  std::vector<fs::path> files;
  Bytes bytes = Bytes::b(0);
  std::uint64_t left_out = 0;
};

Result<Folder> list_folder(const fs::path& path) {
  std::error_code error;
  Folder folder;
  fs::recursive_directory_iterator at(path, fs::directory_options::skip_permission_denied, error);
  if (error)
    return fail_in(path, fmt::format("cannot be listed: {}", error.message()),
                   "a folder with one file per sample");
  for (; at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code of_entry;
    if (!at->is_regular_file(of_entry) || of_entry) continue;
    const std::uintmax_t size = at->file_size(of_entry);
    if (of_entry) continue;
    if (size > kLargest) {
      ++folder.left_out;
      continue;
    }
    folder.files.push_back(at->path());
    folder.bytes += Bytes::b(static_cast<double>(size));
  }
  if (error)  // half way: the iterator is then at its end
    return fail_in(path, fmt::format("cannot be listed: {}", error.message()));
  if (folder.files.empty())
    return fail_in(path, "contains no files of at most 1 GiB", "one file per sample");
  std::ranges::sort(folder.files);
  return folder;
}

/// Core time per file with this number of concurrent threads, repeated often enough to measure it.
Seconds core_time_of(const std::vector<fs::path>& files, unsigned threads, std::size_t times) {
  const Run run = run_threads(files, threads, times * threads);
  return run.on_cores / run.files;
}

/// The slowdown of concurrent threads. Runs of few and of many alternate, so that other load slows
/// both. Returns nothing if `progress` asks to stop.
std::optional<double> slowdown_of(const std::vector<fs::path>& files, unsigned few, unsigned many,
                                  const Progress& progress) {
  if (many <= few) return 1;
  const Seconds once = core_time_of(files, 1, 1) * static_cast<double>(files.size());
  const auto times = static_cast<std::size_t>(std::clamp(kLeastRun / once, 0.0, 999.0)) + 1;
  std::vector<double> slower;
  for (int i = 0; i < kRuns; ++i) {
    if (progress && !progress(1)) return std::nullopt;
    const Seconds alone = core_time_of(files, few, times);
    slower.push_back(core_time_of(files, many, times) / alone);
  }
  std::ranges::sort(slower);
  return slower[kRuns / 2];
}

Status measure_cores(Measured& measured, const Progress& progress) {
  const Cores here = cores_here();
  measured.cores = here;
  const auto loaded = slowdown_of(measured.sampled, 1, here.cores, progress);
  if (!loaded) return fail("stopped");
  measured.loaded = std::clamp(1 / *loaded, 0.05, 1.0);
  if (here.threads <= here.cores) return {};
  const auto slower = slowdown_of(measured.sampled, here.cores, here.threads, progress);
  if (!slower) return fail("stopped");
  measured.smt = std::clamp(here.threads / (*slower * here.cores), 0.5, 2.0);
  return {};
}

}  // namespace

Result<Loaded> Loader::load(const fs::path& path, bool decode) {
  damaged_ = false;
  Loaded loaded;
  const Seconds opened = wall(), begin = on_core();
  TRY(read_whole(path, bytes_));
  const Seconds read = on_core();
  loaded.wall = wall() - opened;
  loaded.read = read - begin;
  loaded.size = Bytes::b(static_cast<double>(bytes_.size()));
  loaded.jpeg = is_jpeg(bytes_);
  if (!decode || !loaded.jpeg) return loaded;
  if (Status ok = decode_jpeg(bytes_, pixels_); !ok) {
    damaged_ = true;
    return forward(ok);
  }
  loaded.decode = on_core() - read;
  return loaded;
}

Cores cores_here() {
  cpu_set_t set;
  CPU_ZERO(&set);
  Cores here;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return here;
  here.threads = std::max(1, CPU_COUNT(&set));
  std::set<std::pair<int, int>> cores;  // by socket
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    const auto number = [&](const char* what) {
      std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/{}", cpu, what));
      int value = -1;
      return file >> value ? value : -1;
    };
    const int core = number("core_id");
    // If the kernel does not give a core, each processor counts as one.
    cores.emplace(number("physical_package_id"), core < 0 ? -1 - cpu : core);
  }
  here.cores = std::clamp<unsigned>(static_cast<unsigned>(cores.size()), 1, here.threads);
  return here;
}

Result<Measured> measure_folder(const fs::path& path, std::size_t samples,
                                const Progress& progress) {
  Folder folder = TRY(list_folder(path));
  Measured measured{
      .files = folder.files.size(), .bytes = folder.bytes, .left_out = folder.left_out};
  const std::size_t count = std::min(samples, folder.files.size());
  std::vector<fs::path> files;
  for (std::size_t i = 0; i < count; ++i)
    files.push_back(folder.files[i * folder.files.size() / count]);
  const auto goes_on = [&](std::size_t round, std::size_t i) {
    const double done = static_cast<double>(round * count + i);
    return !progress || progress(done / static_cast<double>(count * (1 + kRounds)));
  };
  Loader loader;
  std::vector<std::optional<Seconds>> beyond_memory;  // by the clock
  for (std::size_t i = 0; i < count; ++i) {
    if (!goes_on(0, i)) return fail("stopped");
    const bool evicted = put_out_of_memory(files[i]);
    const Loaded cold = TRY(loader.load(files[i], false));
    if (cold.jpeg && !decodes_jpeg())
      return fail_in(files[i],
                     "is a JPEG image, and this program was built without "
                     "libjpeg",
                     {}, "install libjpeg62-turbo-dev and build it again");
    beyond_memory.push_back(evicted ? std::optional(cold.wall) : std::nullopt);
  }
  // From memory one right after the other, as they are loaded in earnest: the median of a few.
  std::vector<std::vector<Loaded>> warm(count);
  std::vector<bool> damaged(count, false);
  for (std::size_t round = 0; round < kRounds; ++round)
    for (std::size_t i = 0; i < count; ++i) {
      if (damaged[i]) continue;
      if (!goes_on(1 + round, i)) return fail("stopped");
      const Result<Loaded> loaded = loader.load(files[i]);
      if (!loaded && !loader.damaged()) return forward(loaded);
      damaged[i] = !loaded;
      if (loaded)
        warm[i].push_back(*loaded);
      else
        measured.damaged.push_back({files[i].string(), loaded.error().diagnostics.front().problem});
    }
  const auto median_of = [](const std::vector<Loaded>& loads, Seconds Loaded::*what) {
    std::vector<Seconds> times;
    times.reserve(loads.size());
    for (const Loaded& load : loads) times.push_back(load.*what);
    return upper_median(std::move(times));
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (damaged[i]) continue;
    measured.sampled.push_back(files[i]);
    measured.jpegs += warm[i].front().jpeg ? 1 : 0;
    measured.sizes.push_back(warm[i].front().size);
    measured.read.push_back(median_of(warm[i], &Loaded::read));
    measured.decode.push_back(median_of(warm[i], &Loaded::decode));
    if (beyond_memory[i])
      measured.cold.push_back(std::max(*beyond_memory[i] - measured.read.back(), Seconds::s(0)));
  }
  if (measured.sampled.empty())
    return fail_in(measured.damaged.front().path,
                   fmt::format("is damaged, as are all files that were tried, {}: {}",
                               counted(count, "file"), measured.damaged.front().words),
                   "decodable images");
  TRY(measure_cores(measured, progress));
  return measured;
}

Run run_threads(const std::vector<fs::path>& files, unsigned threads, std::size_t times) {
  const std::size_t all = files.size() * times;
  std::atomic<std::size_t> next = 0;
  std::vector<Seconds> busy(threads, Seconds::s(0));
  const Seconds begin = wall();
  on_threads(threads, threads, [&](std::size_t thread) {
    Loader loader;
    const Seconds own = on_core();
    for (std::size_t i = next++; i < all; i = next++)
      static_cast<void>(loader.load(files[i % files.size()]));
    busy[thread] = on_core() - own;
  });
  Run run{.files = static_cast<double>(all), .wall = wall() - begin};
  for (const Seconds b : busy) run.on_cores += b;
  return run;
}

}  // namespace rehearse::loading
