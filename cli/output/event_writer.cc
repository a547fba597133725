#include "cli/output/event_writer.h"

#include <fmt/format.h>

#include "cli/output/json.h"

namespace rehearse::cli {
namespace {

std::string name_event(std::string_view what, std::size_t process, std::size_t thread,
                       std::string_view text) {
  return fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                     process, thread, json_quoted(text));
}

}  // namespace

void EventWriter::process(std::size_t process, std::string_view name) {
  add(name_event("process_name", process, 0, name));
  add(fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})",
                  process, process));
}

void EventWriter::thread(std::size_t process, std::size_t thread, std::string_view name) {
  add(name_event("thread_name", process, thread, name));
}

void EventWriter::span(const TimelineSpan& s) {
  add(fmt::format(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{:.6f},"dur":{:.6f}}})",
                  json_quoted(s.name), to_string(s.category), s.process, s.thread, s.start.us(),
                  s.duration.us()));
}

Status EventWriter::finish() {
  out_ += "\n]}\n";
  flush();
  if (!status_) return status_;
  return file_.commit();
}

void EventWriter::add(std::string_view event) {
  if (!first_) out_ += ",\n";
  first_ = false;
  out_ += event;
  if (out_.size() > (1U << 20)) flush();
}

void EventWriter::flush() {
  if (status_) status_ = file_.write(out_);
  out_.clear();
}

}  // namespace rehearse::cli
