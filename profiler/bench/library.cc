#include "profiler/bench/library.h"

#include <dlfcn.h>
#include <fmt/core.h>

namespace rehearse::bench {

Result<std::string> open_library(std::string_view what, std::initializer_list<const char*> files,
                                 std::span<const Symbol> symbols, std::string_view remedy) {
  void* handle = nullptr;
  std::string found, why;
  for (const char* file : files) {
    handle = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (handle) {
      found = file;
      break;
    }
    // The error of a file that exists but cannot be loaded says more than those of missing files.
    const char* message = ::dlerror();
    if (message && std::string_view(message).find("No such file") == std::string_view::npos)
      why = message;
  }
  if (!handle)
    return fail(fmt::format("no {}: {}", what,
                            why.empty() ? fmt::format("{} is not found", *files.begin()) : why),
                std::string(remedy));
  for (const Symbol& symbol : symbols) {
    *symbol.to = ::dlsym(handle, symbol.name);
    if (!*symbol.to && symbol.older) *symbol.to = ::dlsym(handle, symbol.older);
    if (!*symbol.to && !symbol.optional)
      return fail(fmt::format("{} lacks {}: it is too old, or another library of that name", found,
                              symbol.name),
                  std::string(remedy));
  }
  return found;
}

std::string release(std::size_t number) {
  return fmt::format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
}

std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

}  // namespace rehearse::bench
