// Texts: each distinct text once, with a number, for the life of the process and of its forks.
//
// Invariants:
//  1. No lock: a thread that stops at any instruction, or no longer exists after a fork, never
//     blocks another.
//  2. A Text is never moved, changed or freed, so its address serves as an NVTX handle.
//  3. Memory is bounded. Beyond the bound, a new text gets a number but is not kept; the caller has
//     to write it with the row.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "profiler/capture/format.h"
#include "profiler/capture/steps.h"

namespace rehearse::capture {

struct Text {
  std::uint64_t hash;
  std::uint32_t number;
  std::uint32_t bytes;
  std::uint32_t written_in;  ///< the recording whose file has it; only its flusher reads this
  StepText step;

  /// The characters follow the struct.
  std::string_view view() const { return {reinterpret_cast<const char*>(this + 1), bytes}; }
};

/// Returns the text with this content; null if it is new and there is no room left for its kind.
/// `lasting` texts are those that the program registers; a share of the room is reserved for them.
const Text* intern(std::string_view content, bool lasting);

/// A number for a text that is not stored.
std::uint32_t new_text_number();

/// The Text of `handle`, or null: programs may pass anything as a handle.
const Text* as_text(const void* handle);

/// At most kMaxTextBytes of a C string, whole UTF-8 sequences only; empty for null.
std::string_view clip(const char* content);

/// A wide C string as UTF-8, clipped likewise. Invalid characters become U+FFFD.
std::string_view narrow(const wchar_t* content, char (&into)[kMaxTextBytes]);

/// Finds the texts that the file of one recording lacks. Only the flusher uses it.
class UnwrittenTexts {
 public:
  explicit UnwrittenTexts(std::uint32_t recording) : recording_(recording) {}

  /// Starts over. False if there certainly is no such text.
  bool rewind();
  /// The next text with a number of at most `last`; null at the end.
  Text* next(std::uint32_t last);
  void written(Text& text) {
    text.written_in = recording_;
    ++written_;
  }

 private:
  std::uint32_t recording_;
  std::uint32_t written_ = 0;
  std::size_t slot_ = 0;
};

/// Zeroed memory that is never freed, from the same bounded space; null if it is full.
void* lasting_memory(std::size_t bytes);

}  // namespace rehearse::capture
