#include "profiler/capture/cupti_library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

namespace rehearse::capture {
namespace {

// The libraries of CUDA 13, 12 and 11; CUDA 11 had a version of its own for each release.
constexpr const char* kFiles[] = {"libcupti.so.13",   "libcupti.so.12",   "libcupti.so.11.8",
                                  "libcupti.so.11.7", "libcupti.so.11.6", "libcupti.so.11.5",
                                  "libcupti.so.11.4", "libcupti.so.11.3", "libcupti.so.11.2",
                                  "libcupti.so.11.1", "libcupti.so.11.0", "libcupti.so"};
// From the folder of the CUDA run-time library: a toolkit, a Python package of CUDA 12, of a
// toolkit with CUPTI apart.
constexpr const char* kRuntimeSiblings[] = {"", "../../cuda_cupti/lib/", "../extras/CUPTI/lib64/"};
constexpr const char* kInToolkit[] = {"lib64/", "lib/", "extras/CUPTI/lib64/"};

void* open_at(const char* folder, const char* below, char (&path)[PATH_MAX]) {
  for (const char* file : kFiles) {
    const int n = ::snprintf(path, sizeof path, "%s/%s%s", folder, below, file);
    if (n >= static_cast<int>(sizeof path)) continue;
    if (void* handle = ::dlopen(path, RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  return nullptr;
}

/// The folder of the CUDA run-time library that the process has loaded; empty if there is none.
struct RuntimeFolder {
  char path[PATH_MAX] = "";

  RuntimeFolder() { ::dl_iterate_phdr(look, this); }

  static int look(dl_phdr_info* loaded, std::size_t, void* self) {
    const char* slash = loaded->dlpi_name ? ::strrchr(loaded->dlpi_name, '/') : nullptr;
    if (!slash || ::strncmp(slash + 1, "libcudart.so", 12) != 0) return 0;
    const auto n = static_cast<std::size_t>(slash - loaded->dlpi_name);
    char(&into)[PATH_MAX] = static_cast<RuntimeFolder*>(self)->path;
    if (n >= sizeof into) return 0;
    std::memcpy(into, loaded->dlpi_name, n);
    into[n] = '\0';
    return 1;
  }
};

void* find(char (&path)[PATH_MAX]) {
  if (const char* named = ::getenv(kCuptiVariable); named && *named) {
    ::snprintf(path, sizeof path, "%s", named);
    return ::dlopen(named, RTLD_NOW | RTLD_LOCAL);
  }
  for (const char* file : kFiles)
    if (void* handle = ::dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) {
      ::snprintf(path, sizeof path, "%s", file);
      return handle;
    }
  if (const RuntimeFolder runtime; runtime.path[0] != '\0')
    for (const char* below : kRuntimeSiblings)
      if (void* handle = open_at(runtime.path, below, path)) return handle;
  for (const char* root : {static_cast<const char*>(::getenv("CUDA_HOME")),
                           static_cast<const char*>(::getenv("CUDA_PATH")), "/usr/local/cuda"}) {
    if (!root || !*root) continue;
    for (const char* below : kInToolkit)
      if (void* handle = open_at(root, below, path)) return handle;
  }
  for (const char* file : kFiles)
    if (void* handle = ::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
      ::snprintf(path, sizeof path, "%s", file);
      return handle;
    }
  return nullptr;
}

/// Sets a pointer to a function of the library. False if the library lacks it.
template <class Function>
bool bind(void* handle, const char* symbol, Function*& into) {
  into = reinterpret_cast<Function*>(::dlsym(handle, symbol));
  return into != nullptr;
}

}  // namespace

bool load_cupti(CuptiLibrary& into) {
  void* handle = find(into.path);
  if (!handle) return false;
  // The path that it was loaded from, if the linker knows it.
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name)
    ::snprintf(into.path, sizeof into.path, "%s", map->l_name);
  bind(handle, "cuptiSubscribe_v2", into.subscribe_v2);
  bind(handle, "cuptiSetThreadIdType", into.set_thread_id_type);
  bind(handle, "cuptiActivityEnableDriverApi", into.enable_driver_api);
  bind(handle, "cuptiActivityEnableRuntimeApi", into.enable_runtime_api);
  bind(handle, "cuptiActivityEnableAllSyncRecords", into.enable_all_sync_records);
  return bind(handle, "cuptiGetVersion", into.get_version) &&
         bind(handle, "cuptiSubscribe", into.subscribe) &&
         bind(handle, "cuptiEnableCallback", into.enable_callback) &&
         bind(handle, "cuptiGetCallbackName", into.callback_name) &&
         bind(handle, "cuptiActivitySetAttribute", into.set_attribute) &&
         bind(handle, "cuptiActivityRegisterCallbacks", into.register_callbacks) &&
         bind(handle, "cuptiActivityEnable", into.enable) &&
         bind(handle, "cuptiActivityDisable", into.disable) &&
         bind(handle, "cuptiActivityFlushAll", into.flush_all) &&
         bind(handle, "cuptiActivityGetNextRecord", into.next_record) &&
         bind(handle, "cuptiActivityGetNumDroppedRecords", into.dropped) &&
         into.get_version(&into.version) == cupti::kSuccess;
}

unsigned toolkit_version(std::uint32_t cupti_version) {
  // From 13 on, one by one; with CUDA 13 the number began to say it.
  constexpr std::uint32_t kFirst = 13;
  constexpr unsigned kOf[] = {11000, 11010, 11020, 11050, 11060, 11080, 12000, 12020,
                              12030, 12040, 12050, 12060, 12060, 12080, 12090, 12090};
  if (cupti_version >= cupti::kVersion13_0)
    return cupti_version / 10000 * 1000 + cupti_version / 100 % 100 * 10;
  if (cupti_version < kFirst || cupti_version - kFirst >= sizeof kOf / sizeof *kOf) return 0;
  return kOf[cupti_version - kFirst];
}

int driver_version() {
  void* handle = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  int (*get)(int*) = nullptr;
  int version = 0;
  if (handle && bind(handle, "cuDriverGetVersion", get) && get(&version) == 0) return version;
  return 0;
}

}  // namespace rehearse::capture
