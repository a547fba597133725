// A shared library that doctor loads to check it.
#pragma once

#include <initializer_list>
#include <string>

#include <dlfcn.h>
#include <fmt/core.h>

namespace rehearse::cli::doctor {

/// The first of these libraries that loads. Most exist only on machines with a GPU. None supports
/// unloading, so it stays loaded until the process ends.
class Library {
 public:
  explicit Library(std::initializer_list<const char*> names) {
    for (const char* name : names)
      if ((handle_ = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL))) {
        name_ = name;
        return;
      }
  }
  explicit operator bool() const { return handle_ != nullptr; }
  const char* name() const { return name_; }
  template <class Function>
  Function* find(const char* symbol) const {
    return handle_ ? reinterpret_cast<Function*>(::dlsym(handle_, symbol)) : nullptr;
  }

 private:
  void* handle_ = nullptr;
  const char* name_ = "";
};

/// "12.4" from 12040, the form in which NVIDIA's libraries encode versions.
inline std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

// The functions that the checks call have had these types since the first versions of their
// libraries.
inline constexpr int kSuccess = 0;

}  // namespace rehearse::cli::doctor
