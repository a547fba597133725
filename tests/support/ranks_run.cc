#include "tests/support/ranks_run.h"

#include <cstdlib>

#include <fmt/core.h>
#include <sys/wait.h>

#include "sim/base/file.h"
#include "sim/work/communicator.h"
#include "tests/support/data.h"

namespace rehearse::test {

bool has_mpi() {
  return work::check_mpi() && std::system("command -v mpirun >/dev/null 2>&1") == 0;
}

Ran program_on_ranks(int ranks, const std::string& program, const std::string& arguments) {
  const std::filesystem::path folder = scratch_folder();
  const std::string mpirun = ranks == 0
                                 ? ""
                                 : fmt::format(
                                       "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                                       "mpirun --oversubscribe -n {} ",
                                       ranks);
  const std::string command = fmt::format(
      "cd '{}' && {}'{}' {} > {}/out 2> {}/errors < /dev/null", source_file("").string(), mpirun,
      (program_folder() / program).string(), arguments, folder.string(), folder.string());
  const int status = std::system(command.c_str());
  const auto text = [&](const char* name) {
    return read_file(folder / name).value_or(std::string("unreadable"));
  };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text("out"),
          text("errors")};
}

Ran rehearse_on_ranks(int ranks, const std::string& arguments) {
  return program_on_ranks(ranks, "rehearse", arguments);
}

}  // namespace rehearse::test
