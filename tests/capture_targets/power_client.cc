// Has the boards' power read while it sleeps. The first argument says how it ends, the second for
// how many milliseconds it lives.
#include <string_view>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profiler/capture/nvml.h"

namespace {

void sleep_ms(long ms) {
  const timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, nullptr);
}

}  // namespace

int main(int, char** arguments) {
  using namespace rehearse::capture;
  const std::string_view how = arguments[1];
  const long ms = atol(arguments[2]);
  start_power();
  start_power();
  if (how == "fork") {
    sleep_ms(ms / 2);
    const pid_t child = fork();
    if (child == 0) {
      start_power();
      sleep_ms(ms);
      stop_power();
      exit(0);  // with the handlers
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status;
  }
  sleep_ms(ms);
  if (how == "stop") {
    stop_power();
    stop_power();
    sleep_ms(ms);
  }
  if (how == "_exit") _exit(7);
  return 7;
}
