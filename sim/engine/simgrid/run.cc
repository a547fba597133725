#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/installed.h"
#include "sim/engine/simgrid.h"
#include "sim/engine/simgrid/carrier.h"

namespace rehearse::engine {
namespace {

using namespace simgrid_back_end;
using graph::Graph, graph::OpTimes, graph::Timeline;

constexpr const char* kLibrary = "librehearse_simgrid.so";

Result<std::filesystem::path> find_library() {
#ifdef REHEARSE_SIMGRID
  return installed_library(kLibrary);
#else
  return fail("built without SimGrid", "install libsimgrid-dev and build again");
#endif
}

/// Memory that processes share, initially zero.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes) {
    data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  }
  ~SharedMemory() {
    if (*this) ::munmap(data_, bytes_);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  explicit operator bool() const { return data_ != MAP_FAILED; }
  char* data() const { return static_cast<char*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

/// The result that a process leaves for its parent. The times of the ops follow it.
struct Answer {
  enum State : std::uint32_t { kNone, kTimeline, kError } state;
  int status;  // of the process, if it has left no result
  char error[4096];
};
static_assert(std::is_trivially_copyable_v<OpTimes> && sizeof(Answer) % alignof(OpTimes) == 0);

class Answers {
 public:
  explicit Answers(std::span<const Graph> graphs) : memory_(offset_of(graphs, graphs.size())) {
    for (std::size_t i = 0; i < graphs.size(); ++i) offsets_.push_back(offset_of(graphs, i));
  }
  explicit operator bool() const { return static_cast<bool>(memory_); }
  Answer& operator[](std::size_t i) const {
    return *reinterpret_cast<Answer*>(memory_.data() + offsets_[i]);
  }

  void leave(std::size_t i, const Result<Timeline>& result) const {
    Answer& answer = (*this)[i];
    if (result) {
      std::memcpy(&answer + 1, result->ops.data(), result->ops.size() * sizeof(OpTimes));
      answer.state = Answer::kTimeline;
    } else {
      leave_error(i, i + 1, to_string(result.error()));
    }
  }
  void leave_error(std::size_t first, std::size_t stop, const std::string& text) const {
    for (std::size_t i = first; i < stop; ++i) {
      Answer& answer = (*this)[i];
      std::memcpy(answer.error, text.data(), std::min(text.size(), sizeof answer.error - 1));
      answer.state = Answer::kError;
    }
  }
  /// Records how the process ended that was to run these graphs. The first graph without a result
  /// is the one that failed.
  void leave_status(std::size_t first, std::size_t stop, int status) const {
    for (std::size_t i = first; i < stop; ++i)
      if ((*this)[i].state == Answer::kNone && (*this)[i].status == 0) (*this)[i].status = status;
  }

  Result<Timeline> take(std::size_t i, std::size_t ops, const std::string& last_words) const {
    const Answer& answer = (*this)[i];
    if (answer.state == Answer::kError) return fail(std::string(answer.error));
    if (answer.state == Answer::kNone) {
      std::string problem = "SimGrid ended without a result";
      if (WIFSIGNALED(answer.status))
        problem += fmt::format(" (signal {}, {})", WTERMSIG(answer.status),
                               ::strsignal(WTERMSIG(answer.status)));
      if (!last_words.empty()) problem += fmt::format(", saying '{}'", last_words);
      return fail(problem, "", "use --fidelity message");
    }
    Timeline timeline;
    timeline.ops.assign(ops, {Picoseconds(0), Picoseconds(0), std::nullopt});
    std::memcpy(static_cast<void*>(timeline.ops.data()), &answer + 1, ops * sizeof(OpTimes));
    return timeline;
  }

 private:
  static std::size_t offset_of(std::span<const Graph> graphs, std::size_t i) {
    std::size_t bytes = 0;
    for (const Graph& graph : graphs.first(i))
      bytes += sizeof(Answer) + graph.size() * sizeof(OpTimes);
    return bytes;
  }

  SharedMemory memory_;
  std::vector<std::size_t> offsets_;
};

/// The output of the processes; read only after a failure.
class Noise {
 public:
  Noise() : file_(::memfd_create("simgrid", MFD_CLOEXEC)) {}
  ~Noise() {
    if (file_ >= 0) ::close(file_);
  }
  Noise(const Noise&) = delete;
  Noise& operator=(const Noise&) = delete;

  /// This process prints here from now on.
  void redirect() const {
    ::dup2(file_, STDOUT_FILENO);
    ::dup2(file_, STDERR_FILENO);
  }
  /// The first line about a failure: SimGrid prints stacks after it.
  std::string line() const {
    char text[512];
    const ssize_t read = ::pread(file_, text, sizeof text, 0);
    const std::string_view all(text, read > 0 ? static_cast<std::size_t>(read) : 0);
    return std::string(all.substr(0, all.find('\n')));
  }

 private:
  int file_;
};

/// Waits for one process, or for any with -1. Returns its id and status.
std::pair<pid_t, int> wait_for(pid_t process) {
  int status = 0;
  pid_t ended;
  do ended = ::waitpid(process, &status, 0);
  while (ended < 0 && errno == EINTR);
  return {ended, status};
}

/// Forks a child that leaves neither core nor orphan, and that an interrupt ends. Returns as fork
/// does.
pid_t fork_quietly(const Noise& noise) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_DFL);
  const rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  noise.redirect();
  return 0;
}

Result<Timeline> run_here(const Graph& graph, const Layout& layout, Network& network) {
  try {
    SimGridCarrier carrier(graph, layout, network);
    return run(graph, carrier);
  } catch (const SimGridCarrier::TooMuch& stop) {
    return fail(stop.problem, stop.expected, stop.nearest);
  } catch (const std::exception& e) {  // a Fault of ours as well
    return fail(fmt::format("SimGrid failed: {}", e.what()));
  }
}

/// Runs graphs, in the process that has loaded SimGrid.
class Workers {
 public:
  Workers(unsigned workers, const Answers& answers, const Noise& noise)
      : most_(std::max(1U, workers)), answers_(answers), noise_(noise) {}

  /// Calls `work` in a separate process, for the graphs from `first` to `stop`.
  template <class Work>
  void start(std::size_t first, std::size_t stop, Work work) {
    while (running_.size() >= most_) reap();
    const pid_t child = fork_quietly(noise_);
    if (child == 0) {
      work();
      ::_exit(0);
    }
    if (child > 0)
      running_.push_back({child, first, stop});
    else
      answers_.leave_error(first, stop, "no process can be started");
  }
  void finish() {
    while (!running_.empty()) reap();
  }

 private:
  struct Running {
    pid_t process;
    std::size_t first, stop;
  };
  void reap() {
    const auto [ended, status] = wait_for(-1);
    const auto found = std::ranges::find(running_, ended, &Running::process);
    REHEARSE_CHECK(found != running_.end(), "process {} is not a child of this program", ended);
    answers_.leave_status(found->first, found->stop, status);
    running_.erase(found);
  }

  const std::size_t most_;
  const Answers& answers_;
  const Noise& noise_;
  std::vector<Running> running_;
};

bool equal_platforms(const Graph& a, const Graph& b) {
  const auto equal = [](const graph::Capacity& x, const graph::Capacity& y) {
    return x.rate == y.rate;
  };
  return std::ranges::equal(a.capacities(), b.capacities(), equal) &&
         std::ranges::equal(a.demands(), b.demands());
}

/// Runs in a process that does nothing else. An exception must not return to the program that
/// was forked.
void load_and_run(const std::string& library, std::span<const Graph> graphs, unsigned workers,
                  const Answers& answers, const Noise& noise) noexcept {
  const auto fail_all = [&](const std::string& why) { answers.leave_error(0, graphs.size(), why); };
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return fail_all(fmt::format("SimGrid does not load: {}", ::dlerror()));
  const auto make = reinterpret_cast<MakeNetwork*>(::dlsym(handle, kMakeNetwork));
  if (!make) return fail_all(library + " is another library; run cmake --install again");

  Workers pool(workers, answers, noise);
  for (std::size_t first = 0, stop = 0; first < graphs.size(); first = stop) {
    for (stop = first + 1; stop < graphs.size(); ++stop)
      if (!equal_platforms(graphs[first], graphs[stop])) break;
    const Result<Layout> layout = Layout::of(graphs.subspan(first, stop - first));
    if (!layout) {
      answers.leave_error(first, stop, to_string(layout.error()));
      continue;
    }
    const auto run_one = [&](std::size_t i, Network& network) {
      answers.leave(i, run_here(graphs[i], *layout, network));
    };
    if (stop == first + 1) {
      pool.start(first, stop, [&] { run_one(first, *make(layout->platform())); });
      continue;
    }
    pool.finish();
    pool.start(first, stop, [&] {  // builds the platform; each graph then runs in a copy of it
      Network& network = *make(layout->platform());
      Workers copies(workers, answers, noise);
      for (std::size_t i = first; i < stop; ++i)
        copies.start(i, i + 1, [&] { run_one(i, network); });
      copies.finish();
    });
    pool.finish();
  }
  pool.finish();
}

std::vector<Result<Timeline>> run_all(std::span<const Graph> graphs, unsigned workers) {
  const auto all_fail = [&](const Error& error) {
    return std::vector<Result<Timeline>>(graphs.size(), tl::unexpected(error));
  };
  if (graphs.empty()) return {};
  const auto library = find_library();
  if (!library) return all_fail(library.error());
  const Noise noise;
  const Answers answers(graphs);
  if (!answers) return all_fail(fail("no shared memory for the SimGrid process").value());
  const pid_t child = fork_quietly(noise);
  if (child < 0) return all_fail(fail("the SimGrid process cannot be started").value());
  if (child == 0) {
    load_and_run(library->string(), graphs, workers, answers, noise);
    ::_exit(0);
  }
  answers.leave_status(0, graphs.size(), wait_for(child).second);
  std::vector<Result<Timeline>> results;
  for (std::size_t i = 0; i < graphs.size(); ++i)
    results.push_back(answers.take(i, graphs[i].size(), noise.line()));
  return results;
}

constexpr double kCheckLatency = 5e-6, kCheckRate = 1e9, kCheckSize = 1048576;

/// `messages` messages of 1 MiB on one link, all at once.
Graph messages_on_a_link(std::uint32_t messages) {
  graph::GraphBuilder builder;
  const NameId name = builder.intern("host");
  const CapacityId link = builder.add(graph::Capacity{.name = name, .rate = kCheckRate});
  const graph::FlowRoute route = {builder.add(graph::Demand{.capacities = {link}}),
                                  Picoseconds::from(Seconds::s(kCheckLatency))};
  graph::Transfer transfer{
      .flows = std::make_shared<graph::MessageFlows>(
          2, std::vector<graph::MessageFlow>(messages, graph::MessageFlow{0, 1, 1, 1}),
          std::vector<graph::Wait>{}),
      .routes = std::make_shared<std::vector<graph::FlowRoute>>(messages, route),
      .size = kCheckSize};
  for (int member = 0; member < 2; ++member)
    transfer.members.push_back(builder.add(graph::Op{
        .name = name, .category = graph::Category::kCommunication, .duration = Picoseconds(0)}));
  builder.add(std::move(transfer));
  Result<Graph> graph = std::move(builder).build();
  REHEARSE_CHECK(graph.has_value(), "{}", to_string(graph.error()));
  return std::move(*graph);
}

}  // namespace

bool simgrid_available() { return find_library().has_value(); }

Status check_simgrid() {
  static const Status status = []() -> Status {
    const std::array graphs = {messages_on_a_link(1), messages_on_a_link(2)};
    const std::vector<Result<Timeline>> timelines = run_all(graphs, 1);
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      if (!timelines[i]) return forward(timelines[i]);
      const double messages = static_cast<double>(i + 1);
      const Seconds expected = Seconds::s(kCheckLatency + messages * kCheckSize / kCheckRate);
      const Seconds found = timelines[i]->makespan().seconds();
      if (std::abs(found / expected - 1) > 1e-9)
        return fail(fmt::format("SimGrid takes {1} instead of {2} for {0} x 1 MiB", messages,
                                to_string(found), to_string(expected)),
                    "SimGrid 3.32");
    }
    return {};
  }();
  return status;
}

std::vector<Result<Timeline>> run_on_simgrid(std::span<const Graph> graphs, unsigned workers) {
  if (const Status ok = check_simgrid(); !ok)
    return std::vector<Result<Timeline>>(graphs.size(), tl::unexpected(ok.error()));
  return run_all(graphs, workers);
}

Result<Timeline> run_on_simgrid(const Graph& graph) {
  return std::move(run_on_simgrid({&graph, 1}, 1).front());
}

}  // namespace rehearse::engine
