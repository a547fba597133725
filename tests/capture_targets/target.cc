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

#include "tests/capture_targets/nvtx_api.h"

namespace {

nvtxEventAttributes_t event(const char* name) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  return attributes;
}

void sleep_ms(long ms) {
  const timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, nullptr);
}

void ranges(long n, const char* name = "range") {
  for (long i = 0; i < n; ++i) {
    nvtxRangePushA(name);
    nvtxRangePop();
  }
}

void expect(bool what, const char* text) {
  if (what) return;
  fprintf(stderr, "target: expected %s\n", text);
  exit(90);
}

/// One thread, every way to name, nest and mark. Levels are those of the interface.
int basics() {
  nvtxNameOsThreadA(static_cast<std::uint32_t>(syscall(SYS_gettid)), "the main one");
  expect(nvtxRangePushA("outer") == 0, "level 0");
  expect(nvtxRangePushW(L"w\u00efde \u20ac \U0001F600") == 1, "level 1");
  nvtxMarkA("mark a");
  nvtxMarkW(L"mark w");
  expect(nvtxRangePop() == 1, "level 1 back");

  nvtxEventAttributes_t inner = event("inner");
  inner.category = 7;
  inner.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  inner.payload.ullValue = UINT64_MAX;
  nvtxRangePushEx(&inner);
  expect(nvtxRangePop() == 1, "level 1 again");
  expect(nvtxRangePop() == 0, "level 0 back");
  expect(nvtxRangePop() < 0, "an error for a stray pop");

  nvtxNameCategoryA(7, "seven");
  nvtxRangePushA(nullptr);
  nvtxRangePop();
  nvtxRangePushEx(nullptr);
  nvtxRangePop();
  nvtxMarkEx(nullptr);

  nvtxEventAttributes_t invalid = event("bad \xff\xfe bytes");
  nvtxMarkEx(&invalid);
  const std::string longest(5000, 'x');
  nvtxMarkA(longest.c_str());
  return 0;
}

int payloads() {
  nvtxEventAttributes_t attributes = event("u64");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = 1234567890123456789;
  nvtxMarkEx(&attributes);
  attributes = event("i64");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  attributes.payload.llValue = 42;
  nvtxMarkEx(&attributes);
  attributes = event("negative i64");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  attributes.payload.llValue = -1;
  nvtxMarkEx(&attributes);
  attributes = event("double");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  attributes.payload.dValue = 65536;
  nvtxMarkEx(&attributes);
  attributes = event("fraction");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  attributes.payload.dValue = 0.5;
  nvtxMarkEx(&attributes);
  attributes = event("u32");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
  attributes.payload.ullValue = UINT64_MAX;  // the upper half is not part of it
  attributes.payload.uiValue = 4000000000;
  nvtxMarkEx(&attributes);
  attributes = event("i32");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  attributes.payload.iValue = 7;
  nvtxMarkEx(&attributes);
  attributes = event("negative i32");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  attributes.payload.iValue = -7;
  nvtxMarkEx(&attributes);
  attributes = event("float");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
  attributes.payload.fValue = 3;
  nvtxMarkEx(&attributes);
  attributes = event("none");
  attributes.payload.ullValue = 99;
  nvtxMarkEx(&attributes);
  return 0;
}

/// Domains have stacks of their own on each thread; registered strings; ranges across threads.
int domains() {
  const nvtxDomainHandle_t a = nvtxDomainCreateA("domain a");
  const nvtxDomainHandle_t b = nvtxDomainCreateW(L"domain b");
  const nvtxStringHandle_t text = nvtxDomainRegisterStringA(a, "registered");
  const nvtxStringHandle_t wide = nvtxDomainRegisterStringW(b, L"registered w\u00efde");
  nvtxDomainNameCategoryA(a, 3, "three of a");

  nvtxEventAttributes_t in_a = event("");
  in_a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  in_a.message.registered = text;
  nvtxEventAttributes_t in_b = event("");
  in_b.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  in_b.message.registered = wide;

  expect(nvtxDomainRangePushEx(a, &in_a) == 0, "level 0 in a");
  expect(nvtxDomainRangePushEx(b, &in_b) == 0, "level 0 in b");
  expect(nvtxRangePushA("default domain") == 0, "level 0 in the default domain");
  expect(nvtxDomainRangePop(a) == 0, "the range of a");  // out of the order of the pushes
  expect(nvtxDomainRangePop(b) == 0, "the range of b");
  expect(nvtxRangePop() == 0, "the range of the default domain");
  nvtxDomainMarkEx(b, &in_b);

  nvtxEventAttributes_t bogus = event("");
  bogus.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  bogus.message.registered = reinterpret_cast<nvtxStringHandle_t>(&bogus);
  nvtxDomainMarkEx(reinterpret_cast<nvtxDomainHandle_t>(&bogus), &bogus);

  const nvtxRangeId_t plain = nvtxRangeStartA("started here");
  nvtxEventAttributes_t started = event("started in a");
  const nvtxRangeId_t in_domain = nvtxDomainRangeStartEx(a, &started);
  nvtxRangeStartA("never ended");
  std::thread([&] {
    nvtxDomainRangeEnd(a, in_domain);
    nvtxRangeEnd(plain);
    nvtxRangeEnd(12345);
  }).join();
  nvtxDomainDestroy(b);
  return 0;
}

/// What NCCL does, with a schema that is registered and one that is not.
int communication() {
  const nvtxDomainHandle_t nccl = nvtxDomainCreateA("NCCL");
  struct Init {
    std::uint64_t group;
    int ranks;
    int rank;
    int device;
  };
  static const nvtxPayloadSchemaEntry_t init_entries[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", nullptr, 0, 0, nullptr, nullptr},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "No. of ranks", nullptr, 0, 8, nullptr, nullptr},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "Rank", nullptr, 0, 0, nullptr, nullptr},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "CUDA device", nullptr, 0, 0, nullptr, nullptr},
  };
  nvtxPayloadSchemaAttr_t schema = {};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = init_entries;
  schema.numEntries = 4;
  schema.schemaId = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 0;
  expect(nvtxPayloadSchemaRegister(nccl, &schema) == schema.schemaId, "the program's schema id");

  nvtxEventAttributes_t init = event("ncclCommInitRank");
  nvtxDomainRangePushEx(nccl, &init);
  const Init made = {0xABCDEF0123456789, 8, 3, 0};
  const nvtxPayloadData_t init_data = {schema.schemaId, sizeof made, &made};
  expect(nvtxRangePopPayload(nccl, &init_data, 1) == 0, "the level of the range");

  struct Call {
    std::uint64_t group;
    std::uint64_t bytes;
    int operand;
  };
  const auto call = [&](const char* name, std::uint64_t id, const Call& what, std::size_t size) {
    const nvtxPayloadData_t data = {NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + id, size, &what};
    nvtxEventAttributes_t attributes = event(name);
    attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    attributes.reserved0 = 1;
    attributes.payload.ullValue = reinterpret_cast<std::uintptr_t>(&data);
    nvtxDomainRangePushEx(nccl, &attributes);
    nvtxDomainRangePop(nccl);
  };
  // Known layouts of schemas that nobody registered.
  call("ncclAllReduce", 5, {made.group, 4096, 0}, sizeof(Call));
  call("ncclReduceScatter", 7, {made.group, 512, 0}, sizeof(Call));
  call("ncclAllGather", 4, {made.group, 1024, 0}, 16);
  call("ncclSend", 9, {made.group, 77, 2}, sizeof(Call));
  call("ncclRecv", 10, {made.group, 78, 2}, sizeof(Call));
  call("ncclAllReduce", 5, {0x1111, 100, 0}, sizeof(Call));  // a communicator never seen
  call("ncclAllReduce", 5, {made.group, 4096, 0}, 16);       // an older release: bytes come first
  call("ncclBroadcast", 99, {made.group, 4096, 0}, sizeof(Call));  // a call of the future

  // A schema without offsets and id, whose payload names the event.
  const nvtxDomainHandle_t own = nvtxDomainCreateA("own");
  struct Named {
    const char* message;
    int rank;
  };
  static const nvtxPayloadSchemaEntry_t named_entries[] = {
      {NVTX_PAYLOAD_ENTRY_FLAG_POINTER | NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE,
       NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "message", nullptr, 0, 0, nullptr, nullptr},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "Peer rank", nullptr, 0, 0, nullptr, nullptr},
  };
  nvtxPayloadSchemaAttr_t named_schema = {};
  named_schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                           NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                           NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
  named_schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  named_schema.entries = named_entries;
  named_schema.numEntries = 2;
  const std::uint64_t id = nvtxPayloadSchemaRegister(own, &named_schema);
  expect(id >= std::uint64_t{1} << 32, "an id of the tool");
  const Named named = {"named by its payload", 4};
  const nvtxPayloadData_t data = {id, sizeof named, &named};
  nvtxRangePushPayload(own, &data, 1);
  nvtxRangePopPayload(own, nullptr, 0);
  return 0;
}

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

/// A range each millisecond for `ms`, then SIGKILL. `path` gets what outlives it: the worst delay
/// of a thread that sleeps and wakes as the recorder's does, over its last eight sleeps, and the end
/// of each range, ns.
int killed_after(long ms, const char* path) {
  const auto now = [] {
    timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return static_cast<std::int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
  };
  const int file = open(path, O_RDWR | O_CREAT, 0666);
  const std::size_t bytes = 8 * (static_cast<std::size_t>(ms) + 1);
  expect(ftruncate(file, static_cast<off_t>(bytes)) == 0, "a file");
  auto* kept =
      static_cast<std::int64_t*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  expect(kept != MAP_FAILED, "a mapping");
  std::thread([&now, kept] {
    std::int64_t late[8] = {};
    for (std::size_t i = 0;; ++i) {
      const std::int64_t due = now() + 40000000;
      sleep_ms(40);
      late[i % 8] = now() - due;
      kept[0] = *std::max_element(late, late + 8);
    }
  }).detach();
  for (long i = 1; i <= ms; ++i) {
    ranges(1);
    kept[i] = now();
    sleep_ms(1);
  }
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
