#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "cli/doctor/checks.h"
#include "cli/doctor/library.h"
#include "profiler/capture/cupti_library.h"
#include "sim/base/file.h"

namespace rehearse::cli::doctor {
namespace {

constexpr const char* kInstallDriver = "install the driver of your NVIDIA GPU";

/// An error of cuInit, by its number in the documentation of the driver's interface (CUresult).
struct DriverError {
  int code;
  const char* says;
  const char* remedy;
};
constexpr DriverError kDriverErrors[] = {
    {2, "out of memory", "free memory of the host or the GPU"},
    {3, "the driver is shutting down", "try again"},
    {34, "this libcuda.so.1 is the toolkit's stub, not a driver",
     "remove the toolkit's folder of stubs from LD_LIBRARY_PATH"},
    {35, "the driver is older than this program needs", "update the driver"},
    {46, "the GPU is busy or in exclusive use", "end the process that nvidia-smi shows on it"},
    {100, "no device", ""},
    {101, "a device that does not exist was requested",
     "set CUDA_VISIBLE_DEVICES to an existing device"},
    {304, "a call of the operating system failed", "run nvidia-smi for the cause"},
    {802, "the system is not ready: the fabric manager has not started",
     "start nvidia-fabricmanager"},
    {803, "libcuda.so.1 and the kernel module are of different versions",
     "reboot after a driver update, or remove the directory of another libcuda.so.1 from "
     "LD_LIBRARY_PATH"},
    {804, "the compatibility libraries do not support this GPU",
     "remove the compat folder from LD_LIBRARY_PATH"},
    {999, "an unknown error", ""},
};

/// Where the kernel module shows itself; a container may hide it.
bool has_device_node() { return std::filesystem::exists("/dev/nvidiactl"); }

std::string no_device_remedy() {
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"))
    return fmt::format("CUDA_VISIBLE_DEVICES is '{}': unset it, or name an existing GPU", visible);
  if (!has_device_node())
    return "there is no /dev/nvidiactl: load the kernel module, or start the container with the "
           "GPU (docker run --gpus all)";
  return "run nvidia-smi for the cause";
}

}  // namespace

Check check_driver() {
  const Library cuda({"libcuda.so.1"});
  const auto init = cuda.find<int(unsigned)>("cuInit");
  const auto version = cuda.find<int(int*)>("cuDriverGetVersion");
  if (!cuda) return {"driver", false, "libcuda.so.1 is missing", kInstallDriver};
  if (!init || !version)
    return {"driver", false, "libcuda.so.1 is another library", kInstallDriver};
  int number = 0;
  if (version(&number) != kSuccess || number == 0)
    return {"driver", false, "libcuda.so.1 exists, but no driver responds",
            "load the kernel module: run nvidia-smi for the cause"};
  const int code = init(0);
  if (code == kSuccess)
    return {"driver", true, fmt::format("supports CUDA {}", cuda_version(number)), ""};
  const auto* known = std::ranges::find(kDriverErrors, code, &DriverError::code);
  const bool is_known = known != std::end(kDriverErrors);
  return {"driver", false,
          fmt::format("CUDA {} does not start: {} (error {})", cuda_version(number),
                      is_known ? known->says : "no reason given", code),
          is_known && *known->remedy ? known->remedy : no_device_remedy()};
}

std::vector<Check> check_devices() {
  const Library nvml({"libnvidia-ml.so.1"});
  const auto init = nvml.find<int()>("nvmlInit_v2");
  const auto shutdown = nvml.find<int()>("nvmlShutdown");
  const auto count = nvml.find<int(unsigned*)>("nvmlDeviceGetCount_v2");
  const auto at = nvml.find<int(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2");
  const auto name = nvml.find<int(void*, char*, unsigned)>("nvmlDeviceGetName");
  const auto mig = nvml.find<int(void*, unsigned*, unsigned*)>("nvmlDeviceGetMigMode");
  std::vector<Check> checks;
  unsigned devices = 0;
  if (!init || !shutdown || !count || !at || !name) {
    checks.push_back({"NVML", false, "libnvidia-ml.so.1 is missing",
                      "it comes with the driver; without it power is not recorded"});
  } else if (const int code = init(); code != kSuccess) {
    checks.push_back({"NVML", false, fmt::format("does not start (error {})", code),
                      "run nvidia-smi for the cause; without it power is not recorded"});
  } else {
    checks.push_back({"NVML", true, "answers", ""});
    count(&devices);
  }
  std::string names, partitioned;
  for (unsigned i = 0; i < devices; ++i) {
    void* device = nullptr;
    char text[128] = "";
    if (at(i, &device) != kSuccess || name(device, text, sizeof text) != kSuccess) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", text);
    unsigned current = 0, pending = 0;
    if (mig && mig(device, &current, &pending) == kSuccess)
      partitioned +=
          fmt::format("{}{}: {}{}", partitioned.empty() ? "" : ", ", i, current ? "on" : "off",
                      current != pending ? ", changes at the next reset" : "");
  }
  if (checks.back().ok) shutdown();
  if (devices == 0) {
    // A container may have the driver's library without NVML.
    const Library cuda({"libcuda.so.1"});
    const auto cuda_count = cuda.find<int(int*)>("cuDeviceGetCount");
    int visible = 0;
    if (cuda_count && cuda_count(&visible) == kSuccess && visible > 0)
      names = fmt::format("{} that CUDA sees", visible);
  }
  if (names.empty())
    checks.push_back({"devices", false, "no NVIDIA GPU",
                      "not needed: recordings of other machines can be replayed anywhere"});
  else
    checks.push_back({"devices", true, names, ""});
  if (partitioned.empty())
    checks.push_back({"MIG", false, "no GPU that can be partitioned", ""});
  else
    checks.push_back({"MIG", true, partitioned, ""});
  return checks;
}

Check check_cupti() {
  const char* named = std::getenv(capture::kCuptiVariable);
  capture::CuptiLibrary cupti = {};
  if (!capture::load_cupti(cupti))
    return {"CUPTI", false,
            named && *named ? fmt::format("{} names {}, which does not load or lacks functions",
                                          capture::kCuptiVariable, named)
                            : std::string("libcupti.so is missing"),
            fmt::format("install the CUDA toolkit, or name the libcupti of your framework in {}",
                        capture::kCuptiVariable)};
  const auto toolkit = static_cast<int>(capture::toolkit_version(cupti.version));
  const int driver = capture::driver_version();
  const std::string detail =
      fmt::format("{}, {}", cupti.path,
                  toolkit ? "of CUDA " + cuda_version(toolkit)
                          : fmt::format("of an unknown CUDA (version {})", cupti.version));
  if (driver != 0 && toolkit / 10 > driver / 10)
    return {
        "CUPTI", false,
        fmt::format("{}, newer than the driver (CUDA {})", detail, cuda_version(driver)),
        fmt::format("update the driver, or name an older libcupti in {}", capture::kCuptiVariable)};
  return {"CUPTI", true, detail, ""};
}

Check check_nccl() {
  const Library nccl({"libnccl.so.2"});
  const auto version = nccl.find<int(int*)>("ncclGetVersion");
  int number = 0;
  if (!version || version(&number) != kSuccess)
    return {"NCCL", false, "libnccl.so.2 is missing",
            "not needed: frameworks bring their own NCCL, whose collectives are recorded"};
  // 2.8.4 is 2804; since 2.9, 20904.
  const bool old = number < 10000;
  const int major = number / (old ? 1000 : 10000), minor = number / 100 % (old ? 10 : 100);
  const int interface = major > 2 || minor >= 29 ? 6 : minor >= 26 ? minor - 23 : 0;
  const std::string name = fmt::format("{}.{}.{}", major, minor, number % 100);
  if (interface == 0)
    return {
        "NCCL", true,
        fmt::format("{}: records collectives by their NVTX ranges, without algorithm and channels",
                    name),
        "NCCL 2.26 or newer records more"};
  return {"NCCL", true,
          fmt::format("{}: records collectives by version {} of its profiler interface", name,
                      interface),
          ""};
}

Check check_permissions() {
  const std::string parameters = read_file("/proc/driver/nvidia/params").value_or("");
  const bool counters_closed = parameters.find("RmProfilingAdminOnly: 1") != std::string::npos;
  return {"permissions", true,
          counters_closed ? "GPU counters are restricted to administrators (RmProfilingAdminOnly); "
                            "they are not needed"
                          : "recording needs no additional privileges",
          ""};
}

}  // namespace rehearse::cli::doctor
