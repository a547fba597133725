// NVIDIA's libraries, which only exist on machines with a GPU: opened if they are found, never
// linked. Each binding declares its own functions; tests/abi compares them with
// NVIDIA's headers if those are installed.
#pragma once

#include <initializer_list>
#include <span>
#include <string>

#include "sim/base/result.h"

namespace rehearse::bench {

/// A function of a library, and the pointer that receives its address.
struct Symbol {
  const char* name;
  void** to;
  const char* older = nullptr;  ///< its name in older versions, of the same type
  bool optional = false;        ///< left null if the library lacks it
};

/// A row of a binding's list of functions: as a member that points to it, and as the symbol that
/// fills this member of the object `library`.
#define REHEARSE_POINTER(name, result, parameters) result(*name) parameters = nullptr;
#define REHEARSE_SYMBOL(name, result, parameters) {#name, reinterpret_cast<void**>(&library.name)},

/// Opens the first of `files` that is found and fills in the symbols; the library stays loaded
/// until the process ends. Returns the name under which it was found. Fails, with one line, if no
/// file is found, none can be loaded, or a symbol is missing (the library is of another version).
Result<std::string> open_library(std::string_view what, std::initializer_list<const char*> files,
                                 std::span<const Symbol> symbols, std::string_view remedy);

/// "13.0.2" from 130002.
std::string release(std::size_t number);

/// "12.4" from 12040.
std::string cuda_version(int number);

}  // namespace rehearse::bench
