// JsonStream: reads a JSON document of any size in bounded memory.
//
// Trace files are one object with a few small members and one array of very many small elements.
// The stream hands each member to a JsonHandler, and the array's elements one by one. Parsing is
// simdjson's, over a window of the file; this file hides both the library and the window.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "profiler/ingest/byte_source.h"
#include "profiler/trace/recorder.h"
#include "sim/base/progress.h"
#include "sim/base/result.h"

namespace rehearse::ingest {

/// A JSON value under the cursor. It is read once, front to back; views are valid until the handler
/// returns.
class JsonValue {
 public:
  bool is_object();
  /// The text of a string, unescaped; nothing for any other kind of value.
  std::optional<std::string_view> string();
  /// The raw value of the file: 12.5, true, "quoted", [1, 2].
  std::string_view raw();
  /// The text of a string, or the raw value: for fields that are numbers in some files and
  /// strings in others.
  std::string_view text();

  /// Calls visit(key, JsonValue&) for each field of an object. False if the value is not an object,
  /// or its text is broken or incomplete; the visited fields must then not be used.
  template <class Visit>
  bool fields(Visit&& visit) {
    return visit_fields(&visit, [](void* context, std::string_view key, JsonValue& value) {
      (*static_cast<Visit*>(context))(key, value);
    });
  }
  /// Calls visit(JsonValue&) for each element of an array; false as above.
  template <class Visit>
  bool elements(Visit&& visit) {
    return visit_elements(
        &visit, [](void* context, JsonValue& value) { (*static_cast<Visit*>(context))(value); });
  }

  JsonValue(void* value, bool& broken) : value_(value), broken_(broken) {}

 private:
  bool visit_fields(void* context, void (*visit)(void*, std::string_view, JsonValue&));
  bool visit_elements(void* context, void (*visit)(void*, JsonValue&));

  void* value_;
  bool& broken_;  // set on the first error anywhere in the element in hand
};

class JsonHandler {
 public:
  virtual ~JsonHandler() = default;
  /// Whether the elements of this top-level array are passed one by one to `element`.
  virtual bool streams(std::string_view key) const = 0;
  /// Receives any other top-level member.
  virtual void member(std::string_view key, JsonValue& value) = 0;
  /// Receives one element, to be read with `fields`. Returns false if `fields` did: the element is
  /// incomplete, and comes again when the rest of it has been read; keep nothing of it. An
  /// incomplete element that is not read at all may come twice.
  virtual bool element(JsonValue& value) = 0;
};

/// Unreadable elements that the stream skipped.
struct JsonDamage {
  std::uint64_t malformed = 0;  ///< elements skipped
  std::string first_malformed;  ///< position of the first
  std::uint64_t invalid_text = 0;
  std::string first_invalid_text;
  std::string truncated;  ///< where and why the document ends early; empty if it is complete
};

/// Adds the damage to the problems of a recording.
void report_damage(const JsonDamage& damage, trace::Recorder& recorder);

class JsonStream {
 public:
  /// `file` names the source in messages. REQUIRES: all arguments outlive the stream.
  JsonStream(ByteSource& source, std::string file, JsonHandler& handler);
  ~JsonStream();

  /// Reads to the end. Fails if the text is not JSON, on more than a thousand malformed elements,
  /// and when `progress` asks to stop.
  Result<JsonDamage> read(const Progress& progress);

  /// "file:line" of the current element.
  std::string place() const;

 private:
  class Window;
  std::unique_ptr<Window> window_;
};

/// Reads all into a recorder, whose problems meanwhile have the places of the stream.
Result<JsonDamage> read_stream(ByteSource& source, JsonHandler& handler, trace::Recorder& recorder,
                               const Progress& progress);

}  // namespace rehearse::ingest
