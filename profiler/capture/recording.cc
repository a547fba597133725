#include "profiler/capture/recording.h"

#include <algorithm>
#include <new>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

#include "profiler/capture/flusher.h"
#include "profiler/capture/options.h"
#include "profiler/capture/process.h"
#include "profiler/capture/step_keeper.h"
#include "profiler/capture/texts.h"

namespace rehearse::capture {

std::atomic<bool> accepting{true};
constinit thread_local ThreadState* this_thread_state = nullptr;

namespace {

// The time for which the end of the process waits for the flusher, in case a file system hangs.
constexpr std::uint64_t kPatience = 5000000000;

enum class Phase : std::uint32_t { kIdle, kStarting, kLive, kOff };

std::atomic<Phase> phase{Phase::kIdle};
std::atomic<Recording*> current{nullptr};
std::uint32_t recordings = 0;
pid_t forked_from = 0;
pthread_key_t thread_end;
// A signal handler that records while its own thread starts the recording would wait for itself.
constinit thread_local bool starting = false;

/// Keeps a write beyond a file-size limit from killing the process: the signal is taken back.
class SizeSignalBlocked {
 public:
  SizeSignalBlocked() {
    ::sigemptyset(&size_);
    ::sigaddset(&size_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &size_, &before_);
  }
  ~SizeSignalBlocked() {
    const timespec now = {};
    if (!::sigismember(&before_, SIGXFSZ)) ::sigtimedwait(&size_, nullptr, &now);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t size_;
  sigset_t before_;
};

/// Restores errno, which programs read after calls that happen to record.
class KeepErrno {
 public:
  ~KeepErrno() { errno = error_; }

 private:
  int error_ = errno;
};

/// Adds ranges that will not be closed any more.
void append_open(ThreadState& state) {
  const std::uint32_t depth = state.depth.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < depth; ++i) {
    if (state.open[i].step) abandon_step();
    state.open[i].kind = RowKind::kOpen;
    append(state, state.open[i]);
  }
  state.depth.store(0, std::memory_order_relaxed);
}

void end_thread(void* argument) {
  auto& state = *static_cast<ThreadState*>(argument);
  Recording& recording = *current.load(std::memory_order_acquire);
  if (accepting.load(std::memory_order_relaxed)) append_open(state);
  this_thread_state = nullptr;
  recording.leaving.fetch_add(1, std::memory_order_relaxed);  // seen by who sees no chunk
  if (Chunk* chunk = state.chunk.exchange(nullptr, std::memory_order_acq_rel))
    recording.queue.push(*chunk);
  recording.leaving.fetch_sub(1, std::memory_order_release);
  state.in_use.store(false, std::memory_order_release);
  recording.idle_states.fetch_add(1, std::memory_order_release);
}

/// Runs in the child of a fork: forgets the parent's recording. The first record starts a new one.
void after_fork() {
  if (this_thread_state) {
    this_thread_state = nullptr;
    ::pthread_setspecific(thread_end, nullptr);
  }
  if (phase.load(std::memory_order_relaxed) == Phase::kOff) return;
  if (const Recording* parent = current.load(std::memory_order_relaxed))
    forked_from = parent->owner;
  phase.store(Phase::kIdle, std::memory_order_relaxed);
}

bool say_failure(std::string_view what, std::string_view path) {
  say({what, " '", path, "': ", ::strerror(errno), "; this process is not recorded"});
  return false;
}

bool open_ring(Recording& recording) {
  void* memory = reserve_memory(sizeof(StepKeeper));
  if (!memory) return false;
  recording.keeper = new (memory) StepKeeper;
  Trigger trigger;  // none: only what other ranks announce is kept
  parse_trigger(options().trigger, trigger);
  return recording.keeper->open(trigger, options().ring);
}

/// Warns that without a step mark a recording of chosen steps is empty.
void say_if_no_step(const Recording& recording) {
  if ((!recording.keeper && !has_window()) || steps_ended() > 0 || recording.forked) return;
  char pid[16];
  ::snprintf(pid, sizeof pid, "%d", recording.owner);
  say({"process ", pid, " marked no step, so nothing was recorded; a step is a range ",
       "named like 'step 7'"});
}

/// Whether the program brought its own C library, and loaded ours next to it: the second one cannot
/// start threads. Such a program names no interpreter.
bool is_static_program() {
  const auto* header = reinterpret_cast<const ElfW(Phdr)*>(::getauxval(AT_PHDR));
  const unsigned long headers = header ? ::getauxval(AT_PHNUM) : 0;
  return std::none_of(header, header + headers,
                      [](const ElfW(Phdr) & one) { return one.p_type == PT_INTERP; });
}

bool start() {
  if (is_static_program()) {
    say({"a statically linked program cannot be recorded"});
    return false;
  }
  const char* named = ::getenv(kFolderVariable);
  if (!named || !*named) {
    say({kFolderVariable, " is not a folder; this process is not recorded"});
    return false;
  }
  char folder[PATH_MAX];
  if (!::realpath(named, folder)) return say_failure("cannot use", named);

  // Releases the memory of the parent's recording, which is of no use here.
  if (Recording* parent = current.load(std::memory_order_relaxed)) {
    parent->pool.close();
    if (parent->keeper) parent->keeper->close();
  }

  void* memory = reserve_memory(sizeof(Recording) + kFlusherBuffer);
  if (!memory) return say_failure("no memory to record to", folder);
  auto& recording = *new (memory) Recording;
  recording.buffer = static_cast<unsigned char*>(memory) + sizeof(Recording);
  recording.number = ++recordings;
  start_steps(options());
  recording.owner = ::getpid();
  recording.forked = forked_from != 0;
  if (!recording.pool.open(kPoolChunks)) return say_failure("no memory to record to", folder);

  if (options().ring > 0 && !open_ring(recording))
    return say_failure("no memory for the ring of", folder);

  const SizeSignalBlocked blocked;
  if (!create_files(folder, forked_from, recording.path, recording.offset))
    return say_failure("cannot write to", folder);
  static bool hooked = false;  // a forked child inherits both
  if (!hooked && (::pthread_key_create(&thread_end, end_thread) != 0 ||
                  ::pthread_atfork(nullptr, nullptr, after_fork) != 0))
    return say_failure("no thread key to record to", folder);
  hooked = true;
  current.store(&recording, std::memory_order_release);
  if (!start_thread(run_flusher, &recording)) return say_failure("no thread to write to", folder);
  return true;
}

/// Runs at the end of the process, after the exit handlers of the program.
[[gnu::destructor]] void finish() {
  Recording* recording = current.load(std::memory_order_acquire);
  if (phase.load(std::memory_order_acquire) != Phase::kLive || recording->owner != ::getpid())
    return;
  accepting.store(false, std::memory_order_seq_cst);
  recording->closing.store(1, std::memory_order_seq_cst);
  recording->flusher_sleeps.store(0, std::memory_order_seq_cst);
  futex_wake(recording->flusher_sleeps);
  const std::uint64_t begin = clock_ns(CLOCK_MONOTONIC);
  while (recording->closed.load(std::memory_order_acquire) == 0) {
    const std::uint64_t waited = clock_ns(CLOCK_MONOTONIC) - begin;
    if (waited >= kPatience) return;
    futex_wait(recording->closed, 0, kPatience - waited);
  }
  say_if_no_step(*recording);
}

ThreadState* idle_state(Recording& recording) {
  if (recording.idle_states.load(std::memory_order_acquire) == 0) return nullptr;
  for (ThreadState* state = recording.states.load(std::memory_order_acquire); state;
       state = state->next)
    if (!state->in_use.load(std::memory_order_relaxed) &&
        !state->in_use.exchange(true, std::memory_order_acq_rel)) {
      recording.idle_states.fetch_sub(1, std::memory_order_relaxed);
      return state;
    }
  return nullptr;
}

ThreadState* new_state(Recording& recording) {
  auto* state = static_cast<ThreadState*>(reserve_memory(sizeof(ThreadState)));
  if (!state) return nullptr;
  state->in_use.store(true, std::memory_order_relaxed);
  state->next = recording.states.load(std::memory_order_relaxed);
  while (!recording.states.compare_exchange_weak(state->next, state, std::memory_order_acq_rel)) {
  }
  return state;
}

}  // namespace

bool ChunkPool::open(std::uint32_t chunks) {
  chunks_ = static_cast<Chunk*>(reserve_memory(std::size_t{chunks} * sizeof(Chunk)));
  capacity_ = chunks_ ? chunks : 0;
  return chunks_ != nullptr;
}

void ChunkPool::close() {
  if (chunks_) ::munmap(chunks_, std::size_t{capacity_} * sizeof(Chunk));
  chunks_ = nullptr;
  capacity_ = 0;
}

bool attach() {
  const KeepErrno keep;
  for (;;) {
    Phase seen = phase.load(std::memory_order_acquire);
    if (seen == Phase::kLive) return true;
    if (seen == Phase::kOff || starting) return false;
    if (seen == Phase::kStarting) {
      ::sched_yield();
      continue;
    }
    if (!phase.compare_exchange_strong(seen, Phase::kStarting, std::memory_order_acq_rel)) continue;
    starting = true;
    const bool live = start();
    starting = false;
    phase.store(live ? Phase::kLive : Phase::kOff, std::memory_order_release);
    return live;
  }
}

bool start_thread(void* (*run)(void*), void* argument) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = ::pthread_create(&thread, nullptr, run, argument);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error == 0) ::pthread_detach(thread);
  errno = error;
  return error == 0;
}

void leave_recording() {
  ThreadState* state = this_thread_state;
  if (!state) return;
  ::pthread_setspecific(thread_end, nullptr);
  end_thread(state);
}

void count_lost(std::uint64_t rows) {
  if (Recording* recording = current.load(std::memory_order_acquire))
    recording->lost.fetch_add(rows, std::memory_order_relaxed);
}

ThreadState* register_thread() {
  const KeepErrno keep;
  if (!attach()) return nullptr;
  Recording& recording = *current.load(std::memory_order_acquire);
  ThreadState* state = idle_state(recording);
  if (!state) state = new_state(recording);
  if (!state) {
    recording.lost.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  state->thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  state->overflow = 0;
  ::pthread_setspecific(thread_end, state);
  this_thread_state = state;
  char name[16] = {};
  ::prctl(PR_GET_NAME, name);
  const std::uint32_t text = text_number(*state, clip(name));
  append(*state, {.span = state->thread, .text = text}, SlotKind::kThreadName);
  return state;
}

Chunk* next_chunk(ThreadState& state) {
  Recording& recording = *current.load(std::memory_order_relaxed);
  if (Chunk* full = state.chunk.load(std::memory_order_relaxed)) {
    state.chunk.store(nullptr, std::memory_order_relaxed);
    if (recording.queue.push(*full) >= kWakeAtChunks &&
        recording.flusher_sleeps.load(std::memory_order_relaxed) != 0 &&
        recording.flusher_sleeps.exchange(0, std::memory_order_acq_rel) != 0)
      futex_wake(recording.flusher_sleeps);
  }
  Chunk* chunk = recording.pool.take();
  if (!chunk) return nullptr;
  chunk->used.store(0, std::memory_order_relaxed);
  chunk->encoded = 0;
  chunk->sequence = state.sequence++;
  chunk->thread = state.thread;
  chunk->state = &state;
  state.chunk.store(chunk, std::memory_order_release);
  return chunk;
}

std::uint32_t text_number(ThreadState& state, std::string_view content) {
  if (content.empty()) return 0;
  if (const Text* text = intern(content, false)) {
    state.step = text->step;
    return text->number;
  }
  state.step = StepText::of(content);
  const Slot head = {.row = {.span = content.size()}, .kind = SlotKind::kText};
  const std::uint32_t following = following_slots(head);
  Slot* slot = room(state, 1 + following);
  if (!slot) return kLostText;
  *slot = head;
  slot->row.text = new_text_number();
  std::memcpy(static_cast<void*>(slot + 1), content.data(), content.size());
  publish(state, 1 + following);
  return slot->row.text;
}

}  // namespace rehearse::capture
