// Runs the program under mpirun on this machine.
#pragma once

#include <string>

#include "tests/support/rehearse.h"

namespace rehearse::test {

/// Whether mpirun exists and the program was built with MPI.
bool has_mpi();

/// Runs a program of the build folder with this many ranks, or without mpirun if 0, in the source
/// tree.
Ran program_on_ranks(int ranks, const std::string& program, const std::string& arguments);

/// Runs `rehearse ARGUMENTS` with this many ranks, in the source tree. If mpirun itself reports the
/// end of a rank, its lines are among the errors.
Ran rehearse_on_ranks(int ranks, const std::string& arguments);

}  // namespace rehearse::test

#define SKIP_WITHOUT_MPI()                            \
  if (!test::has_mpi()) {                             \
    WARN("skipped: no mpirun, or built without MPI"); \
    return;                                           \
  }
