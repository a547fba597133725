// Plays NCCL towards a profiler plugin: loads the library and calls it as NCCL of each version
// does. Its declarations are its own, so that an error in ours shows. Arguments: the library, the
// way, the version.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

enum : std::uint64_t {
  GROUP = 1,
  COLL = 2,
  P2P = 4,
  PROXY_OP = 8,
  KERNEL_CH = 64,
  GROUP_API = 256,
  COLL_API = 512,
  P2P_API = 1024,
  KERNEL_LAUNCH = 2048,
  CE_COLL = 4096,
  UNKNOWN = std::uint64_t{1} << 40,
};

/// An event as bytes: fields are where the ABI of the machine puts them, one after another.
class Event {
 public:
  Event(int version, std::uint64_t type, void* parent, int rank) {
    if (version < 5) {
      field(static_cast<std::uint8_t>(type));
    } else {
      field(type);
    }
    field(parent);
    field(rank);
    at_ = 24;
  }
  template <class Type>
  Event& field(Type value) {
    at_ = (at_ + alignof(Type) - 1) / alignof(Type) * alignof(Type);
    memcpy(bytes_ + at_, &value, sizeof value);
    at_ += sizeof value;
    return *this;
  }
  void* get() { return bytes_; }

 private:
  alignas(8) unsigned char bytes_[256] = {};
  std::size_t at_ = 0;
};

struct Plugin {
  const char* name;
  void* init;
  int (*start)(void*, void**, void*);
  int (*stop)(void*);
  int (*record)(void*, int, void*);
  int (*finalize)(void*);
};

int version = 5;
const Plugin* plugin = nullptr;
constexpr std::uint64_t kCommunicator = 0xfeedfacecafe0001;

void check(bool what, const char* text) {
  if (what) return;
  fprintf(stderr, "nccl client: expected %s\n", text);
  exit(90);
}

void logger(int, unsigned long, const char*, int, const char*, ...) {}

void* make_communicator(std::uint64_t hash, int ranks, int rank, int* mask) {
  void* context = nullptr;
  int result = -1;
  using Log = void (*)(int, unsigned long, const char*, int, const char*, ...);
  if (version == 3)
    result = reinterpret_cast<int (*)(void**, int*)>(plugin->init)(&context, mask);
  else if (version == 4)
    result =
        reinterpret_cast<int (*)(void**, int*, const char*, std::uint64_t, int, int, int, Log)>(
            plugin->init)(&context, mask, "world", hash, 2, ranks, rank, logger);
  else
    result =
        reinterpret_cast<int (*)(void**, std::uint64_t, int*, const char*, int, int, int, Log)>(
            plugin->init)(&context, hash, mask, "world", 2, ranks, rank, logger);
  check(result == 0, "init to succeed");
  check(context != nullptr, "a context");
  return context;
}

void* start(void* context, Event event) {
  void* handle = nullptr;
  check(plugin->start(context, &handle, event.get()) == 0, "an event to start");
  check(handle != nullptr, "a handle");
  return handle;
}
void stop(void* handle) { check(plugin->stop(handle) == 0, "an event to stop"); }

Event collective(void* parent, const char* function, std::size_t count, const char* datatype,
                 std::uint64_t sequence, const char* algorithm, const char* protocol,
                 std::uint64_t hash = kCommunicator) {
  Event event(version, COLL, parent, 3);
  if (version == 3) event.field("world").field(hash);
  event.field(sequence).field(function).field<void*>(nullptr).field<void*>(nullptr);
  event.field(count).field(0).field(datatype).field<std::uint8_t>(24).field<std::uint8_t>(16);
  event.field(algorithm).field(protocol).field<void*>(nullptr);
  return event;
}
Event send_receive(void* parent, const char* function, std::size_t count, int peer) {
  Event event(version, P2P, parent, 3);
  if (version == 3) event.field("world").field(kCommunicator);
  event.field(function).field<void*>(nullptr).field("ncclFloat32").field(count).field(peer);
  if (version > 3) event.field<std::uint8_t>(2);
  return event;
}

void* const kStream = reinterpret_cast<void*>(0x5000);

void* call(void* context, const char* function, std::size_t count, const char* datatype) {
  if (version < 5) return nullptr;
  Event event(version, COLL_API, nullptr, 3);
  event.field(function).field(count).field(datatype).field(0).field(kStream).field(true);
  void* handle = start(context, event);
  stop(handle);  // as in a group: the call returns before the group ends
  return handle;
}

void launch(void* context) {
  if (version < 5) return;
  void* handle = start(context, Event(version, KERNEL_LAUNCH, nullptr, 3).field(kStream));
  usleep(1000);
  stop(handle);
}

/// A group of two collectives in one kernel, a send and a receive, channels, and what nobody knows.
int basics() {
  int mask = 0;
  void* const context = make_communicator(kCommunicator, 8, 3, &mask);
  printf("mask %d\n", mask);
  void* group = nullptr;
  if (version >= 5) group = start(context, Event(version, GROUP_API, nullptr, 3).field(false));
  void* const reduce_call = call(context, "AllReduce", 1000, "ncclBfloat16");
  void* const gather_call = call(context, "AllGather", 500, "ncclFloat32");
  launch(context);
  void* const reduce = start(
      context, collective(reduce_call, "AllReduce", 1000, "ncclBfloat16", 41, "RING", "SIMPLE"));
  // NCCL counts the bytes of a gather.
  void* const gather =
      start(context, collective(gather_call, "AllGather", 2000, "ncclInt8", 7, "NVLS", "LL128"));
  stop(reduce);
  stop(gather);
  void* const send = start(context, send_receive(nullptr, "Send", 300, 5));
  stop(send);
  if (group) stop(group);
  if (version > 3) {
    // The proxy thread, after the collective was stopped.
    std::thread([&] {
      for (std::uint8_t channel = 0; channel < 2; ++channel) {
        void* const kernel = start(context, Event(version, KERNEL_CH, reduce, 3)
                                                .field(channel)
                                                .field(std::uint64_t{1000} + channel));
        std::uint64_t end = 5000u + channel;
        check(plugin->record(kernel, 22, &end) == 0, "a state to be recorded");
        check(plugin->record(kernel, 12, &end) == 0, "another state to be recorded");
        check(plugin->record(kernel, 22, nullptr) == 0, "a state without arguments");
        stop(kernel);
      }
    }).join();
  }
  void* const unknown =
      start(context, Event(version, version < 5 ? std::uint64_t{128} : UNKNOWN, reduce, 3));
  check(plugin->record(unknown, 22, &mask) == 0, "a state of the unknown");
  stop(unknown);
  if (version == 6) stop(start(context, Event(version, CE_COLL, nullptr, 3).field(kStream)));
  // What no NCCL should do.
  stop(reduce);
  stop(nullptr);
  stop(reinterpret_cast<void*>(0x123456789));
  check(plugin->start(context, nullptr, nullptr) == 0, "no handle to be survived");
  check(plugin->finalize(reinterpret_cast<void*>(0x9999)) == 0, "no context to be survived");
  check(plugin->finalize(nullptr) == 0, "null to be survived");
  start(context, collective(nullptr, "Reduce", 10, "ncclFloat16", 1, "TREE", "LL"));  // open
  check(plugin->finalize(context) == 0, "the end");
  return 0;
}

/// Each thread has a communicator after the other, which ends while other threads begin events.
int threads(int n, int communicators, int rounds) {
  std::vector<std::thread> all;
  for (int t = 0; t < n; ++t)
    all.emplace_back([=] {
      int mask = 0;
      for (int c = 0; c < communicators; ++c) {
        const auto hash = static_cast<std::uint64_t>(t * communicators + c) + 1;
        void* const context = make_communicator(hash, 2, 0, &mask);
        for (int i = 0; i < rounds; ++i)
          stop(start(context,
                     collective(call(context, "AllReduce", 64, "ncclFloat32"), "AllReduce", 64,
                                "ncclFloat32", static_cast<std::uint64_t>(i), "RING", "LL", hash)));
        plugin->finalize(context);
      }
    });
  for (std::thread& thread : all) thread.join();
  return 0;
}

/// More open events than there is room for: none is refused.
int exhaust(int n) {
  int mask = 0;
  void* const context = make_communicator(kCommunicator, 2, 0, &mask);
  for (int i = 0; i < n; ++i)
    start(context, collective(nullptr, "AllReduce", 1, "ncclFloat32", static_cast<std::uint64_t>(i),
                              "RING", "LL"));
  for (int i = 0; i < 3000; ++i) make_communicator(7, 2, 0, &mask);
  plugin->finalize(context);
  stop(start(context, collective(nullptr, "AllReduce", 1, "ncclFloat32", 1, "RING", "LL")));
  return 0;
}

int fork_open() {
  int mask = 0;
  void* const context = make_communicator(kCommunicator, 2, 0, &mask);
  void* const open =
      start(context, collective(nullptr, "AllReduce", 1, "ncclFloat32", 1, "RING", "LL"));
  const pid_t child = fork();
  if (child == 0) {
    stop(open);
    stop(start(context, collective(nullptr, "AllGather", 2, "ncclFloat32", 2, "RING", "LL")));
    plugin->finalize(context);
    exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  stop(open);
  plugin->finalize(context);
  return status;
}

}  // namespace

int main(int count, char** arguments) {
  void* const library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  const std::string_view way = arguments[2];
  version = atoi(arguments[3]);
  const int n = count > 4 ? atoi(arguments[4]) : 0;
  plugin = static_cast<const Plugin*>(
      dlsym(library, ("ncclProfiler_v" + std::to_string(version)).c_str()));
  check(plugin && plugin->name && *plugin->name, "the plugin's table");
  if (way == "basics") return basics();
  if (way == "threads") return threads(n, 100, 20);
  if (way == "exhaust") return exhaust(n);
  if (way == "fork") return fork_open();
  if (way == "refused") {
    void* context = nullptr;
    int mask = 0;
    return reinterpret_cast<int (*)(void**, int*)>(plugin->init)(&context, &mask) == 0 ? 1 : 0;
  }
  return 91;
}
