// A program that trains on the mock GPU in one of many ways, by the words in its arguments. The
// tests run it under the capture library and know what each way has to leave.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/capture_targets/mock_gpu.h"
#include "tests/capture_targets/nvtx_api.h"

namespace {

constexpr unsigned kGrid[3] = {64, 2, 1};
constexpr unsigned kBlock[3] = {256, 1, 1};
constexpr const char* kGemm = "_Z4gemmPfS_S_i";  // gemm(float*, float*, float*, int)

/// One step: forward and backward on stream 7, gradients on stream 9, the loss back to the host.
void step(int number) {
  char name[32];
  snprintf(name, sizeof name, "step %d", number);
  nvtxRangePushA(name);
  nvtxRangePushA("forward");
  mock_copy(1, 4096, 3000, 7, 0);
  mock_launch(kGemm, kGrid, kBlock, 20000, 7);
  mock_launch("relu_kernel", kGrid, kBlock, 5000, 7);
  nvtxRangePop();
  nvtxRangePushA("backward");
  mock_launch(kGemm, kGrid, kBlock, 40000, 7);
  mock_event_record(1, 7);
  mock_stream_wait(9, 1);
  mock_launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", kGrid, kBlock, 15000, 9);
  mock_query();
  nvtxRangePop();
  nvtxRangePushA("optimizer");
  mock_set(1024, 2000, 7);
  mock_driver_launch("triton_adam", 8000, 7);
  mock_copy(2, 4, 1000, 7, 1);
  mock_stream_synchronize(7);
  mock_device_synchronize();
  nvtxRangePop();
  nvtxRangePop();
}

void train(int steps) {
  for (int i = 0; i < steps; ++i) step(i);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto number = [&] { return ++i < words.size() ? atoi(words[i].c_str()) : 0; };
    if (word == "init") {
      if (const int code = cuInit(0)) fprintf(stderr, "gpu_target: cuInit gives %d\n", code);
    } else if (word == "steps") {
      train(number());
    } else if (word == "launches") {
      for (int left = number(); left > 0; --left) mock_launch("tiny", kGrid, kBlock, 100, 7);
    } else if (word == "graph") {
      for (int left = number(); left > 0; --left) mock_graph_launch(5, 10, 1000, 7);
      mock_device_synchronize();
    } else if (word == "peer") {
      mock_peer_copy(0, 1, 65536, 7000, 11);
    } else if (word == "memory") {
      mock_allocate(0x7000, 1 << 20);
      mock_free(0x7000, 1 << 20);
    } else if (word == "threads") {
      std::vector<std::thread> threads;
      for (int n = number(); n > 0; --n) threads.emplace_back([] { train(5); });
      for (std::thread& thread : threads) thread.join();
    } else if (word == "fork") {
      const pid_t child = fork();
      if (child == 0) {
        nvtxRangePushA("in the child");
        nvtxRangePop();
        exit(7);  // runs the handlers that the parent registered
      }
      int status = 0;
      waitpid(child, &status, 0);
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) return 91;
    } else if (word == "reset") {
      mock_device_reset();
    } else if (word == "sleep") {
      usleep(static_cast<useconds_t>(number()) * 1000);
    } else if (word == "end_by") {
      const std::string way = ++i < words.size() ? words[i] : "";
      if (way == "_exit") _exit(5);
      if (way == "abort") abort();
      if (way == "term") kill(getpid(), SIGTERM);
      if (way == "kill") kill(getpid(), SIGKILL);
      pause();
    } else if (word == "exit_code") {
      return number();
    } else {
      fprintf(stderr, "gpu_target: '%s' is no way to train\n", word.c_str());
      return 92;
    }
  }
  return 0;
}
