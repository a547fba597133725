// Named ranges and marks for whatever profiler is attached, without NVIDIA's headers.
//
//   nvtx::Range step("step");                     // open until the end of the scope
//   nvtx::Range reduce("all_reduce", gradient_bytes);
//   nvtx::mark("checkpoint", step_number);
//
// This is the program's side of the NVTX version 3 interface: the first call loads the library that
// NVTX_INJECTION64_PATH names and hands it a table of function pointers to fill. Without that
// variable, or where the library does not want to record, a call costs a comparison. All functions
// may be called from any thread. The texts are used during the call only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <dlfcn.h>

namespace nvtx {
namespace detail {

struct Attributes {
  std::uint16_t version = 3;
  std::uint16_t size = 48;
  std::uint32_t category = 0;
  std::int32_t color_type = 0;
  std::uint32_t color = 0;
  std::int32_t payload_type = 0;  // 1: an unsigned 64-bit number
  std::int32_t reserved = 0;
  std::uint64_t payload = 0;
  std::int32_t message_type = 1;  // a char string
  const char* message;
};
static_assert(sizeof(Attributes) == 48 && offsetof(Attributes, message) == 40);

using Function = void (*)();

/// The functions that a profiler sets: module 1 of the interface, and module 5 for domains. A slot
/// has the number that the interface gives it; 0 has none.
struct Tables {
  static constexpr unsigned kSlots = 16;
  Function core[kSlots] = {};
  Function domain[kSlots] = {};
  Function* core_places[kSlots] = {};
  Function* domain_places[kSlots] = {};
  void* library = nullptr;
};
inline constinit Tables tables;

inline int module_table(std::int32_t module, Function*** places, unsigned* slots) {
  if (module != 1 && module != 5) return 0;
  if (places) *places = module == 1 ? tables.core_places : tables.domain_places;
  if (slots) *slots = Tables::kSlots;
  return 1;
}

inline const void* export_table(std::uint32_t which) {
  struct Callbacks {
    std::size_t size;
    int (*module_table)(std::int32_t, Function***, unsigned*);
  };
  static constexpr Callbacks kCallbacks = {sizeof(Callbacks), module_table};
  return which == 1 ? &kCallbacks : nullptr;
}

inline bool attach() {
  for (unsigned i = 1; i < Tables::kSlots; ++i) {
    tables.core_places[i] = &tables.core[i];
    tables.domain_places[i] = &tables.domain[i];
  }
  const char* path = std::getenv("NVTX_INJECTION64_PATH");
  if (!path || !(tables.library = ::dlopen(path, RTLD_LAZY))) return false;
  using Initialize = int (*)(const void* (*)(std::uint32_t));
  const auto initialize =
      reinterpret_cast<Initialize>(::dlsym(tables.library, "InitializeInjectionNvtx2"));
  return initialize && initialize(export_table) != 0;
}

inline bool attached() {
  static const bool attached = attach();
  return attached;
}

/// The profiler's function for a slot of module 1; null when none is attached.
template <class Signature>
Signature core(unsigned slot) {
  return attached() ? reinterpret_cast<Signature>(tables.core[slot]) : nullptr;
}

inline constexpr unsigned kMarkEx = 1;
inline constexpr unsigned kRangePushEx = 8;
inline constexpr unsigned kRangePop = 11;

inline void emit(unsigned slot, const Attributes& event) {
  if (const auto call = core<void (*)(const Attributes*)>(slot)) call(&event);
}

}  // namespace detail

inline void mark(const char* name) { detail::emit(detail::kMarkEx, {.message = name}); }
inline void mark(const char* name, std::uint64_t payload) {
  detail::emit(detail::kMarkEx, {.payload_type = 1, .payload = payload, .message = name});
}

/// Open from its construction to its destruction. REQUIRES: both on one thread; ranges of a thread
/// close in the reverse order of their opening.
class Range {
 public:
  explicit Range(const char* name) { detail::emit(detail::kRangePushEx, {.message = name}); }
  Range(const char* name, std::uint64_t payload) {
    detail::emit(detail::kRangePushEx, {.payload_type = 1, .payload = payload, .message = name});
  }
  ~Range() {
    if (const auto pop = detail::core<int (*)()>(detail::kRangePop)) pop();
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

}  // namespace nvtx
