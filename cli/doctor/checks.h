// The checks of `rehearse doctor`, layer by layer: each reports what it found and a remedy if
// something is missing.
#pragma once

#include <string>
#include <vector>

namespace rehearse::cli::doctor {

struct Check {
  std::string name;
  bool ok;
  std::string detail;
  std::string remedy;  ///< empty if nothing is needed
};

/// The driver, by the status that CUDA returns when it is initialized.
Check check_driver();
/// NVML, the devices it sees, and whether they are partitioned: three checks of one library.
std::vector<Check> check_devices();
/// CUPTI, searched for where the capture library would find it. Call it after check_driver.
Check check_cupti();
Check check_nccl();
/// Permissions for recording: none are needed.
Check check_permissions();

/// The capture library.
Check check_capture();
/// Whether another tool is injected into programs that are started from this environment.
Check check_injection();
/// Python and PyTorch, for profile --torch-ops.
Check check_python();
/// Free space for a recording in the current folder.
Check check_disk();
Check check_simgrid();
Check check_mpi();

}  // namespace rehearse::cli::doctor
