// One line of the text form of a graph.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "sim/base/result.h"
#include "sim/base/time.h"

namespace rehearse::graph {

/// Reads one line, word by word.
class LineReader {
 public:
  LineReader(std::string_view line, std::uint32_t number, std::string_view file)
      : line_(line), number_(number), file_(file) {}

  bool at_end() {
    while (at_ < line_.size() && line_[at_] == ' ') ++at_;
    return at_ == line_.size();
  }

  std::string_view word() {
    at_end();
    word_at_ = at_;
    while (at_ < line_.size() && line_[at_] != ' ') ++at_;
    return line_.substr(word_at_, at_ - word_at_);
  }

  Result<std::string> quoted_name() {
    at_end();
    word_at_ = at_;
    if (at_ == line_.size() || line_[at_] != '"') return error("a name is due", "\"name\"");
    std::string name;
    for (++at_; at_ < line_.size(); ++at_) {
      const char c = line_[at_];
      if (c == '"') {
        ++at_;
        return name;
      }
      if (c == '\\' && at_ + 1 < line_.size()) {
        ++at_;
        name += line_[at_] == 'n' ? '\n' : line_[at_];
      } else {
        name += c;
      }
    }
    return error("the name has no closing quote");
  }

  template <class Number>
  Result<Number> number(std::string_view what, std::string_view unit = "") {
    std::string_view text = word();
    if (!text.ends_with(unit)) return error(fmt::format("{} must end in '{}'", what, unit));
    text.remove_suffix(unit.size());
    Number value{};
    const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || rest != text.data() + text.size())
      return error(fmt::format("'{}' is not a number", text), std::string(what));
    return value;
  }

  template <class AnyId>
  Result<AnyId> id(std::string_view what) {
    return number<std::uint32_t>(what).map([](std::uint32_t index) { return AnyId(index); });
  }

  Result<Picoseconds> time(std::string_view what) {
    return number<std::int64_t>(what, "ps").map([](std::int64_t ps) { return Picoseconds(ps); });
  }

  /// An error at the last word read.
  tl::unexpected<Error> error(std::string problem, std::string expected = {}) const {
    return fail(Diagnostic{.file = std::string(file_),
                           .line = number_,
                           .column = static_cast<std::uint32_t>(word_at_ + 1),
                           .problem = std::move(problem),
                           .expected = std::move(expected)});
  }

 private:
  std::string_view line_;
  std::size_t at_ = 0;
  std::size_t word_at_ = 0;
  std::uint32_t number_;
  std::string_view file_;
};

/// Tables are written in order of id, so a line's id must be the next one of its table.
inline Status expect_id(LineReader& line, std::size_t next) {
  const std::uint32_t id = TRY(line.number<std::uint32_t>("an id"));
  if (id != next)
    return line.error(fmt::format("id {} is out of order", id), fmt::format("id {}", next));
  return {};
}

}  // namespace rehearse::graph
