// Events of a Chrome trace, written one by one: a timeline may be larger than one would hold as a
// document.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/file.h"
#include "sim/base/units.h"

namespace rehearse::cli {

class EventWriter {
 public:
  /// REQUIRES: `file` outlives this object.
  explicit EventWriter(PendingFile& file) : file_(file) { out_ = "{\"traceEvents\":[\n"; }

  /// `what` is "process_name" or "thread_name".
  void name(std::string_view what, std::size_t process, std::size_t thread, std::string_view text);
  void order(std::size_t process, std::size_t position);
  void span(std::string_view name, std::string_view category, std::size_t process,
            std::size_t thread, Seconds start, Seconds duration);

  /// Ends the document and puts the file in its place.
  Status finish();

 private:
  void add(std::string_view event);
  void flush();

  PendingFile& file_;
  std::string out_;
  bool first_ = true;
  Status status_;
};

}  // namespace rehearse::cli
