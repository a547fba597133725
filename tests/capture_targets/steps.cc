// A program of steps: STYLE FIRST COUNT RANGES MICROSECONDS SLOW_MICROSECONDS [SLOW ...]
// Each step holds so many ranges and takes so long; those named SLOW take longer. STYLE says how
// steps are marked, or, as "END:STYLE", how the program ends.
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <signal.h>
#include <stdlib.h>
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

void sleep_us(long us) {
  const timespec time = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&time, nullptr);
}

struct Steps {
  std::string_view style;
  long first, count, ranges, us, slow_us;
  std::vector<long> slow;

  template <class Inside>
  void mark(long number, Inside inside) const {
    const std::string name = "step " + std::to_string(number);
    if (style == "payload") {
      nvtxEventAttributes_t attributes = event("step");
      attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
      attributes.payload.ullValue = static_cast<unsigned long long>(number);
      nvtxRangePushEx(&attributes);
      inside();
      nvtxRangePop();
    } else if (style == "domain") {
      static const nvtxDomainHandle_t domain = nvtxDomainCreateA("rehearse.step");
      const std::string other = "batch " + std::to_string(number);
      const nvtxEventAttributes_t attributes = event(other.c_str());
      nvtxDomainRangePushEx(domain, &attributes);
      inside();
      nvtxDomainRangePop(domain);
    } else if (style == "started") {
      const nvtxRangeId_t id = nvtxRangeStartA(name.c_str());
      inside();
      std::thread([id] { nvtxRangeEnd(id); }).join();
    } else {
      if (style == "nested") nvtxRangePushA(name.c_str());
      if (style != "none") nvtxRangePushA(style == "counted" ? "train_step" : name.c_str());
      inside();
      if (style != "none") nvtxRangePop();
      if (style == "nested") nvtxRangePop();
    }
  }

  void run() const {
    for (long number = first; number < first + count; ++number) {
      mark(number, [&] {
        const std::string inside = "inside " + std::to_string(number);
        for (long i = 0; i < ranges; ++i) {
          nvtxRangePushA(inside.c_str());
          nvtxRangePop();
        }
        bool is_slow = false;
        for (const long one : slow) is_slow = is_slow || one == number;
        sleep_us(is_slow ? slow_us : us);
      });
      nvtxRangePushA("between");
      nvtxRangePop();
    }
  }
};

}  // namespace

int main(int count, char** arguments) {
  if (count < 7) return 91;
  std::string_view style = arguments[1], end;
  if (const std::size_t colon = style.find(':'); colon != std::string_view::npos) {
    end = style.substr(0, colon);
    style.remove_prefix(colon + 1);
  }
  Steps steps{style,
              atol(arguments[2]),
              atol(arguments[3]),
              atol(arguments[4]),
              atol(arguments[5]),
              atol(arguments[6]),
              {}};
  for (int i = 7; i < count; ++i) steps.slow.push_back(atol(arguments[i]));
  nvtxRangePushA("whole run");
  steps.run();
  if (end == "fork") {
    nvtxRangePushA("step 999");  // open while it forks
    const pid_t child = fork();
    if (child == 0) {
      steps.run();
      exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    nvtxRangePop();
    return WEXITSTATUS(status);
  }
  if (end == "kill") raise(SIGKILL);
  if (end == "term") raise(SIGTERM);
  if (end == "twice") steps.run();
  if (end == "inside") nvtxRangePushA("step 1000"), exit(0);
  nvtxRangePop();
}
