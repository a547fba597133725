#include "cli/output/event_writer.h"

#include <fmt/format.h>

#include "cli/output/json.h"

namespace rehearse::cli {
void EventWriter::name(std::string_view what, std::size_t process, std::size_t thread,
                       std::string_view text) {
  add(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                  process, thread, json_quoted(text)));
}

void EventWriter::order(std::size_t process, std::size_t position) {
  add(fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})",
                  process, position));
}

void EventWriter::span(std::string_view name, std::string_view category, std::size_t process,
                       std::size_t thread, Seconds start, Seconds duration) {
  add(fmt::format(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{:.6f},"dur":{:.6f}}})",
                  json_quoted(name), category, process, thread, start.us(), duration.us()));
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
