// A program that uses NVTX in one of many ways, by the name in its first argument. The tests run it
// under the capture library and know what each way has to leave.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/capture_targets/nvtx_calls.h"

namespace {

int threads(long n, long each) {
  std::vector<std::thread> all;
  std::atomic<bool> go{false};
  for (long t = 0; t < n; ++t)
    all.emplace_back([&, t] {
      const std::string name = "thread " + std::to_string(t);
      while (!go) std::this_thread::yield();
      for (long i = 0; i < each; ++i) {
        nvtxRangePushA(name.c_str());
        nvtxRangePushA("inside");
        nvtxRangePop();
        nvtxRangePop();
      }
    });
  go = true;
  for (std::thread& thread : all) thread.join();
  return 0;
}

/// More threads than ever live at once; each leaves a range open.
int short_threads(long n) {
  for (long i = 0; i < n; ++i)
    std::thread([] { ranges(1, "short"), nvtxRangePushA("left"); }).join();
  return 0;
}

/// Threads that nobody waits for: all have recorded, and end while the process does.
int ending_threads(long n) {
  static std::atomic<long> recorded{0};
  for (long i = 0; i < n; ++i)
    std::thread([n] {
      ranges(1, "short");
      for (++recorded; recorded < n;) std::this_thread::yield();
    }).detach();
  while (recorded < n) std::this_thread::yield();
  return 0;
}

/// A child that ends as `how` says, and the parent's own ranges around it.
int fork_child(std::string_view how) {
  ranges(10, "parent");
  nvtxRangePushA("around the fork");
  const pid_t child = fork();
  if (child == 0) {
    if (how == "silent") _exit(0);
    ranges(20, "child");
    nvtxRangePop();  // of the parent's range
    if (how == "exit") exit(0);
    if (how == "exec") execl("/proc/self/exe", "target", "ranges", "30", nullptr);
    sleep_ms(700);
    ranges(5, "child");
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  nvtxRangePop();
  ranges(10, "parent");
  return WEXITSTATUS(status);
}

/// Fork from a process that records on other threads without pause, many times over.
int fork_storm(long n) {
  // What this program itself sets up on first use must not be half done when it forks.
  ranges(1, "before the storm");
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int t = 0; t < 3; ++t)
    busy.emplace_back([&stop, t] {
      for (long i = 0; !stop; ++i) ranges(1, ("name " + std::to_string(t * i % 5000)).c_str());
    });
  for (long i = 0; i < n; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      ranges(50, "stormed");
      exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    expect(status == 0, "a child that ends well");
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
  return 0;
}

/// Ranges that have time to be written, some that may not have, and an end.
int end_by(std::string_view how) {
  ranges(1000, "early");
  sleep_ms(300);
  ranges(1000, "late");
  if (how == "_exit") _exit(3);
  if (how == "term") raise(SIGTERM);
  if (how == "abort") abort();
  if (how == "kill") raise(SIGKILL);
  if (how == "segv") raise(SIGSEGV);
  return 1;
}

/// One after the other, children that record.
int processes(long n) {
  for (long i = 0; i < n; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      ranges(10, "child");
      exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    expect(status == 0, "a child that ends well");
  }
  printf("%ld ended\n", n);
  return 7;
}

/// Removes the folder of its recording between ranges.
int remove_folder() {
  ranges(1000);
  sleep_ms(200);
  std::filesystem::remove_all(getenv("REMOVED_FOLDER"));
  ranges(1000);
  sleep_ms(200);
  puts("removed");
  return 7;
}

/// A range each millisecond for `ms`, then SIGKILL. `path` gets what outlives it: the worst delay of
/// a thread that sleeps, wakes and writes as the recorder does, over its last eight turns and the one
/// that it has not finished, and the end of each range, ns.
int killed_after(long ms, const char* path) {
  const auto now = [] {
    timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return static_cast<std::int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
  };
  const int file = open(path, O_RDWR | O_CREAT, 0666);
  const int written = open((std::string(path) + ".written").c_str(), O_WRONLY | O_CREAT, 0666);
  const std::size_t bytes = 8 * (static_cast<std::size_t>(ms) + 1);
  expect(written >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0, "two files");
  auto* kept =
      static_cast<std::int64_t*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  expect(kept != MAP_FAILED, "a mapping");
  std::atomic<std::int64_t> due = now() + 40000000, worst = 0;
  std::thread([&now, &due, &worst, written] {
    std::int64_t late[8] = {};
    const char block[4096] = {};
    for (std::size_t i = 0;; ++i) {
      sleep_ms(40);
      expect(write(written, block, sizeof block) == sizeof block, "a written block");
      late[i % 8] = now() - due;
      worst = *std::max_element(late, late + 8);
      due = now() + 40000000;
    }
  }).detach();
  for (long i = 1; i <= ms; ++i) {
    ranges(1);
    kept[i] = now();
    sleep_ms(1);
  }
  kept[0] = std::max<std::int64_t>(worst, now() - due);
  return raise(SIGKILL);
}

int exit_inside() {
  nvtxRangePushA("never closed");
  nvtxRangePushA("nor this");
  ranges(3);
  exit(5);
}

/// A program may close what it did not open, and what it opens then is its own.
int close_descriptors(const char* path) {
  ranges(100);
  for (int descriptor = 3; descriptor < 100; ++descriptor) close(descriptor);
  const int own = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  for (int copy = 0; copy < 20; ++copy) expect(dup(own) >= 0, "a descriptor");
  expect(write(own, "mine\n", 5) == 5, "to write");
  for (int i = 0; i < 4; ++i) {
    ranges(10000);
    sleep_ms(200);
  }
  return 0;
}

/// All descriptors that the limit allows are in use from the first flush on.
int no_descriptors() {
  ranges(100);
  const rlimit none = {.rlim_cur = 3, .rlim_max = 3};
  expect(setrlimit(RLIMIT_NOFILE, &none) == 0, "a limit");
  for (int i = 0; i < 3; ++i) {
    sleep_ms(200);
    ranges(100);
  }
  return 0;
}

/// Every name new, more of them than are kept.
int many_texts(long n) {
  for (long i = 0; i < n; ++i) ranges(1, ("op " + std::to_string(i)).c_str());
  return 0;
}

/// The same in steps.
int many_steps(long n, long names) {
  for (long step = 0; step < n; ++step) {
    nvtxRangePushA(("step " + std::to_string(step)).c_str());
    for (long i = 0; i < names; ++i) ranges(1, ("op " + std::to_string(step * names + i)).c_str());
    nvtxRangePop();
  }
  return 0;
}

int deep(long n) {
  for (long i = 0; i < n; ++i) nvtxRangePushA("deep");
  for (long i = 0; i < n; ++i) nvtxRangePop();
  ranges(1, "after");
  return 0;
}

std::atomic<long> handled{0};

/// A handler that records, between any two instructions of a thread that does.
int in_handler() {
  nvtxMarkA("attached");  // not from the handler: NVTX itself cannot begin twice on one thread
  struct sigaction action = {};
  action.sa_handler = [](int) {
    nvtxMarkA("in handler");
    ++handled;
  };
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &often, nullptr);
  long n = 0;
  for (; handled < 500; ++n) ranges(1);
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  printf("%ld %ld\n", n, handled.load());
  return 0;
}

int limited(unsigned long bytes) {
  const rlimit limit = {bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
  for (int i = 0; i < 6; ++i) {
    many_texts(2000);
    sleep_ms(100);
  }
  return 0;
}

int errno_kept() {
  ranges(1);
  std::thread([] {
    errno = 123;
    ranges(100000);
    expect(errno == 123, "errno as it was");
  }).join();
  return 0;
}

/// Nanoseconds of this thread's time per range, without those in which others had the processor.
double cost(long n) {
  timespec begin, end;
  ranges(1000);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  ranges(n);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return (static_cast<double>(end.tv_sec - begin.tv_sec) * 1e9 +
          static_cast<double>(end.tv_nsec - begin.tv_nsec)) /
         static_cast<double>(n);
}

/// Before main and after it.
struct Lasting {
  Lasting() {
    if (getenv("TARGET_STATIC")) ranges(2, "before main");
  }
  ~Lasting() {
    if (getenv("TARGET_STATIC")) ranges(3, "after main");
  }
} lasting;

}  // namespace

int main(int count, char** arguments) {
  const auto argument = [&](int i) { return count > i ? arguments[i] : "0"; };
  const std::string_view what = argument(1);
  const long n = atol(argument(2));
  if (what == "ranges") return ranges(n), 0;
  if (what == "basics") return basics();
  if (what == "payloads") return payloads();
  if (what == "domains") return domains();
  if (what == "communication") return communication();
  if (what == "threads") return threads(n, atol(argument(3)));
  if (what == "short_threads") return short_threads(n);
  if (what == "ending_threads") return ending_threads(n);
  if (what == "fork") return fork_child(argument(2));
  if (what == "fork_storm") return fork_storm(n);
  if (what == "end_by") return end_by(argument(2));
  if (what == "processes") return processes(n);
  if (what == "remove_folder") return remove_folder();
  if (what == "killed_after") return killed_after(n, argument(3));
  if (what == "exit_inside") return exit_inside();
  if (what == "close_descriptors") return close_descriptors(argument(2));
  if (what == "no_descriptors") return no_descriptors();
  if (what == "many_texts") return many_texts(n);
  if (what == "many_steps") return many_steps(n, atol(argument(3)));
  if (what == "deep") return deep(n);
  if (what == "in_handler") return in_handler();
  if (what == "limited") return limited(static_cast<unsigned long>(n));
  if (what == "errno_kept") return errno_kept();
  if (what == "exit_code") return static_cast<int>(n);
  if (what == "sleep") return ranges(1, "before sleep"), sleep_ms(n), 0;
  if (what == "cost") return printf("%.1f\n", cost(n)), 0;
  if (what == "exec") return execv(arguments[2], arguments + 2), 99;
  return 91;
}
