#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/doctor/checks.h"
#include "cli/doctor/library.h"
#include "profiler/launch/launch.h"
#include "sim/base/installed.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/engine/simgrid.h"
#include "sim/work/communicator.h"

namespace rehearse::cli::doctor {
namespace {

/// The file that a shell would run; empty when there is none.
std::string in_path(std::string_view program) {
  const char* path = std::getenv("PATH");
  for (const std::string_view folder : split(path ? path : "", ':')) {
    const std::string file = fmt::format("{}/{}", folder, program);
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

/// The output of a command without its errors; empty if the command fails.
std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  if (!pipe) return text;
  std::array<char, 256> part;
  while (const std::size_t n = std::fread(part.data(), 1, part.size(), pipe))
    text.append(part.data(), n);
  return ::pclose(pipe) == 0 ? std::string(trim(text)) : "";
}

}  // namespace

Check check_capture() {
  const auto library = installed_library("librehearse_capture.so");
  if (!library) return {"capture", false, to_string(library.error()), "run cmake --install again"};
  const Library loaded({library->c_str()});
  const auto cost = loaded.find<double()>("rehearse_capture_ns_per_range");
  if (!cost)
    return {"capture", false, library->string() + " is another library",
            "run cmake --install again"};
  return {"capture", true,
          fmt::format("records NVTX ranges at {} each", to_string(Seconds::ns(cost()))), ""};
}

Check check_injection() {
  for (const char* variable : capture::kInjections)
    if (const char* other = std::getenv(variable); other && *other)
      return {"other tools", false, fmt::format("{} is '{}'", variable, other),
              fmt::format("unset {}: profile cannot run together with another tool", variable)};
  for (const std::string& warning : capture::launch_warnings())
    return {"other tools", false, warning, "unset it"};
  return {"other tools", true, "none is attached", ""};
}

Check check_python() {
  // Importing torch takes seconds; what is installed says its version at once.
  constexpr const char* kAsk =
      "timeout 10 python3 -c 'import sys, ctypes, importlib.util as u, importlib.metadata as m\n"
      "print(sys.version.split()[0], int(sys.version_info >= (3, 8)))\n"
      "print(m.version(\"torch\") if u.find_spec(\"torch\") else \"\")'";
  if (in_path("python3").empty())
    return {"PyTorch hook", false, "python3 is not in PATH", "needed only for profile --torch-ops"};
  const std::string answer = output_of(kAsk);
  const auto lines = split(answer, '\n');
  const auto words = split(lines.front(), ' ');
  if (words.size() < 2 || words[1] != "1")
    return {"PyTorch hook", false, "python3 is older than 3.8 or lacks ctypes",
            "a full Python, needed only for profile --torch-ops"};
  if (lines.size() < 2 || trim(lines[1]).empty())
    return {"PyTorch hook", false, fmt::format("Python {} has no PyTorch", words[0]),
            "not needed: used only by profile --torch-ops"};
  return {"PyTorch hook", true, fmt::format("Python {}, PyTorch {}", words[0], trim(lines[1])), ""};
}

Check check_disk() {
  constexpr Bytes kEnough = Bytes::gib(1);
  struct statvfs room = {};
  if (::statvfs(".", &room) != 0)
    return {"disk", false, std::strerror(errno), "change to a folder that can be read"};
  const Bytes free =
      Bytes::b(static_cast<double>(room.f_bavail) * static_cast<double>(room.f_frsize));
  std::string detail = fmt::format("{} free in this folder", to_string(free));
  if (::access(".", W_OK) != 0)
    return {"disk", false, "this folder cannot be written", "use another folder with profile -o"};
  if (free < kEnough)
    return {"disk", false, std::move(detail),
            "use a folder with more space with profile -o: a million kernels take about 100 MB"};
  return {"disk", true, std::move(detail), ""};
}

Check check_simgrid() {
  const Status ok = engine::check_simgrid();
  if (ok) return {"SimGrid", true, "transfers a message in the expected time", ""};
  const Diagnostic& why = ok.error().diagnostics.front();
  return {"SimGrid", false, why.file.empty() ? why.problem : why.file + " " + why.problem,
          why.expected.empty() ? "apt install libsimgrid-dev, then build again" : why.expected};
}

Check check_mpi() {
  const std::string file = in_path("mpirun");
  if (file.empty())
    return {"MPI", false, "mpirun is not in PATH",
            "apt install openmpi-bin to share work among machines"};
  const Status built = work::check_mpi();
  if (built) return {"MPI", true, file + "; ranks share the work of a study", ""};
  const Diagnostic& why = built.error().diagnostics.front();
  return {"MPI", false, why.file.empty() ? why.problem : why.file + " " + why.problem,
          why.expected};
}

}  // namespace rehearse::cli::doctor
