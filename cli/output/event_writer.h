// EventWriter: writes events of a Chrome trace one by one, because a timeline may not fit in memory
// as a document.
#pragma once

#include <string>
#include <string_view>

#include "cli/output/timeline_sink.h"
#include "sim/base/file.h"

namespace rehearse::cli {

class EventWriter : public TimelineSink {
 public:
  /// REQUIRES: `file` outlives this object.
  explicit EventWriter(PendingFile& file) : file_(file) { out_ = "{\"traceEvents\":[\n"; }

  void process(std::size_t process, std::string_view name) override;
  void thread(std::size_t process, std::size_t thread, std::string_view name) override;
  void span(const TimelineSpan& span) override;

  /// Ends the document and moves the file to its final path.
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
