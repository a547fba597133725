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
  std::string remedy;  ///< empty where nothing needs doing
};

/// The driver, by what CUDA says when it starts.
Check check_driver();
/// NVML, the devices it sees, and whether they are partitioned: three checks of one library.
std::vector<Check> check_devices();
/// CUPTI, found where the capture library would find it. Behind check_driver.
Check check_cupti();
Check check_nccl();
/// Rights that recording would need: none.
Check check_permissions();

/// The capture library.
Check check_capture();
/// Whether another tool is attached to what is started from here.
Check check_injection();
/// Python and PyTorch, for profile --torch-ops.
Check check_python();
/// Room for a recording in the current folder.
Check check_disk();
Check check_simgrid();
Check check_mpi();

}  // namespace rehearse::cli::doctor
