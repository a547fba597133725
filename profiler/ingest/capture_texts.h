// Data shared by the blocks of a capture: texts, threads, clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "profiler/capture/blocks.h"
#include "profiler/ingest/capture_clock.h"
#include "profiler/trace/recorder.h"

namespace rehearse::ingest {

/// A text of the file as names of the trace. The attributes of a PyTorch range are separated, so
/// that an operator has one name for all its calls.
struct CaptureText {
  NameId name;
  bool is_operator = false;
  std::optional<std::uint32_t> sequence = {};
  std::optional<std::uint32_t> op_id = {};
  std::optional<trace::InputsId> inputs = {};
};

class CaptureTexts {
 public:
  explicit CaptureTexts(trace::Recorder& recorder) : recorder_(recorder) {}

  void add(const capture::NumberedText& text);
  void add(const capture::ThreadName& name) {
    thread_names_.insert_or_assign(name.thread, name.text);
  }
  void set_process(std::string label) { process_ = std::move(label); }

  /// Null if its block was lost. Valid until the next text is added.
  const CaptureText* find(std::uint64_t number) const;
  std::optional<NameId> name(std::uint64_t number) const;

  /// Threads are identified by number; a name that was known at the first row is for people.
  trace::ThreadId thread(std::uint32_t number);

  /// Text with invalid UTF-8 replaced and counted.
  std::string sound(std::string_view text);

 private:
  trace::Recorder& recorder_;
  std::string process_ = "?";
  std::unordered_map<std::uint32_t, CaptureText> texts_;
  std::unordered_map<std::uint32_t, std::uint32_t> thread_names_;
  std::unordered_map<std::uint32_t, trace::ThreadId> threads_;
  std::optional<trace::ThreadId> last_thread_;
  std::uint32_t last_number_ = 0;
};

}  // namespace rehearse::ingest
