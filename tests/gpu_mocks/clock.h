// What the mock libraries share: the clock of the mock device, in the mock driver.
#pragma once

extern "C" {
/// One launch of so long, with noise, on the current device.
void mock_cuda_run(double seconds);
/// Whether L2 holds what the operations before left: nothing flushed it since.
int mock_cuda_held();
/// The whole number in a variable of the environment; `otherwise` where it is not set.
long mock_number(const char* variable, long otherwise);
}
