#include "sim/work/communicator.h"

#include <cstdlib>

#include <dlfcn.h>
#include <fmt/core.h>

#include "sim/base/installed.h"
#include "sim/base/number.h"

namespace rehearse::work {
namespace {

Result<std::filesystem::path> find_library() {
#ifdef REHEARSE_MPI
  return installed_library("librehearse_mpi.so");
#else
  return fail("built without MPI", "install libopenmpi-dev and build again");
#endif
}

std::optional<int> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (!text) return std::nullopt;
  const std::optional<int> value = parse_number<int>(text);
  return value >= 0 ? value : std::nullopt;
}

}  // namespace

std::optional<Launch> launched() {
  const auto rank = number_in("OMPI_COMM_WORLD_RANK"), size = number_in("OMPI_COMM_WORLD_SIZE");
  if (!rank || !size || *size < 2) return std::nullopt;
  return Launch{*rank, *size, number_in("OMPI_COMM_WORLD_LOCAL_SIZE").value_or(1)};
}

bool leads() {
  const std::optional<Launch> launch = launched();
  return !launch || launch->rank == 0;
}

Status check_mpi() {
  TRY(find_library());
  return {};
}

Result<std::unique_ptr<Communicator>> join_communicator() {
  const std::optional<Launch> launch = launched();
  if (!launch) return nullptr;
  const auto refused = [&](const std::string& why, const std::string& expected) {
    return fail(fmt::format("started as one of {} ranks, but {}", launch->size, why), expected,
                "start it without mpirun");
  };
  const auto library = find_library();
  if (!library) {
    const Diagnostic& d = library.error().diagnostics.front();
    return refused(d.file.empty() ? d.problem : d.file + " " + d.problem, d.expected);
  }
  // Global: the parts of Open MPI that it loads itself look for its symbols.
  void* handle = ::dlopen(library->c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!handle) return refused(fmt::format("MPI does not load: {}", ::dlerror()), "Open MPI");
  const auto make = reinterpret_cast<MakeCommunicator*>(::dlsym(handle, kMakeCommunicator));
  if (!make) return refused(library->string() + " is another library", "cmake --install again");
  return std::unique_ptr<Communicator>(make());
}

}  // namespace rehearse::work
