#include "profiler/ingest/json_stream.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/core.h>
#include <simdjson.h>

#include "sim/base/utf8.h"

namespace rehearse::ingest {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::size_t kBatch = std::size_t{1} << 18;  // parsed at once: fits the L2 cache
constexpr std::size_t kSmall = std::size_t{1} << 13;  // room for most values, and for small files
constexpr std::size_t kMaxElement = std::size_t{1} << 28;  // a larger single value is damage
constexpr std::uint64_t kMaxMalformed = 1000;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

}  // namespace

bool JsonValue::is_object() {
  ondemand::json_type type;
  return !static_cast<ondemand::value*>(value_)->type().get(type) &&
         type == ondemand::json_type::object;
}

std::optional<std::string_view> JsonValue::string() {
  std::string_view text;
  if (static_cast<ondemand::value*>(value_)->get_string().get(text)) return std::nullopt;
  return text;
}

std::string_view JsonValue::raw() {
  auto& value = *static_cast<ondemand::value*>(value_);
  std::string_view text;
  ondemand::json_type type;
  if (value.type().get(type)) return {};
  if (type == ondemand::json_type::array) {
    ondemand::array array;
    if (value.get_array().get(array) || array.raw_json().get(text)) broken_ = true;
  } else if (type == ondemand::json_type::object) {
    ondemand::object object;
    if (value.get_object().get(object) || object.raw_json().get(text)) broken_ = true;
  } else {
    text = value.raw_json_token();
  }
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view JsonValue::text() {
  ondemand::json_type type;
  if (static_cast<ondemand::value*>(value_)->type().get(type)) return {};
  if (type == ondemand::json_type::string) return string().value_or("");
  return raw();
}

// After an error simdjson's loops over what surrounds it end as if nothing were wrong; hence the
// flag, which stays set until the next element.

bool JsonValue::visit_fields(void* context, void (*visit)(void*, std::string_view, JsonValue&)) {
  ondemand::object object;
  if (static_cast<ondemand::value*>(value_)->get_object().get(object)) return false;
  for (auto field : object) {
    std::string_view key;
    ondemand::value value;
    if (field.unescaped_key().get(key) || field.value().get(value)) broken_ = true;
    if (broken_) return false;
    JsonValue wrapped(&value, broken_);
    visit(context, key, wrapped);
  }
  return !broken_;
}

bool JsonValue::visit_elements(void* context, void (*visit)(void*, JsonValue&)) {
  ondemand::array array;
  if (static_cast<ondemand::value*>(value_)->get_array().get(array)) return false;
  for (auto element : array) {
    ondemand::value value;
    if (element.get(value)) broken_ = true;
    if (broken_) return false;
    JsonValue wrapped(&value, broken_);
    visit(context, wrapped);
  }
  return !broken_;
}

/// The part of the file in memory, [at_, end_) of buffer_, and its operations.
class JsonStream::Window {
 public:
  Window(ByteSource& source, std::string file, JsonHandler& handler)
      : source_(source), file_(std::move(file)), handler_(handler), buffer_(kSmall) {}

  Result<JsonDamage> read(const Progress& progress) {
    progress_ = &progress;
    const std::optional<char> first = next_token();
    if (!first) {
      if (stopped_) return fail_in(file_, "stopped");
      const std::string damage = source_.damage();
      return fail_in(file_, damage.empty() ? "is empty" : damage);
    }
    if (*first == '[') {
      ++at_;
      array();
    } else if (*first == '{') {
      ++at_;
      members();
    } else {
      return fail_in(file_, "is not JSON", "an object or an array");
    }
    if (stopped_) return fail_in(file_, "stopped");
    if (damage_.malformed > kMaxMalformed)
      return fail_in(file_, fmt::format("more than {} malformed records, the first at {}",
                                        kMaxMalformed, damage_.first_malformed));
    return damage_;
  }

  std::string place() const {
    const auto lines = std::count(buffer_.begin(), buffer_.begin() + element_, '\n');
    return fmt::format("{}:{}", file_, lines_before_ + static_cast<std::uint64_t>(lines) + 1);
  }

 private:
  std::string_view rest() const { return {buffer_.data() + at_, end_ - at_}; }

  /// Reads on, keeping [at_, end_). False at the end of the input, or when the value in hand is
  /// larger than any sound one.
  bool more() {
    constexpr std::size_t kFront = 1;  // room for a bracket before the first element
    if (at_ > kFront) {
      lines_before_ += static_cast<std::uint64_t>(
          std::count(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(at_), '\n'));
      std::memmove(buffer_.data() + kFront, buffer_.data() + at_, end_ - at_);
      buffer_[0] = ' ';
      end_ -= at_ - kFront;
      at_ = kFront;
      element_ = kFront;
    }
    if (end_ + kTail + kBatch > buffer_.size()) {
      too_large_ = buffer_.size() >= kMaxElement;
      if (too_large_) return false;
      buffer_.resize(buffer_.size() * 2);
    }
    const std::size_t n = source_.read({buffer_.data() + end_, buffer_.size() - kTail - end_});
    end_ += n;
    if (n > 0 && *progress_ && !(*progress_)(source_.share())) stopped_ = true;
    return n > 0 && !stopped_;
  }

  /// The next character that is no white space, not taken.
  std::optional<char> next_token() {
    while (true) {
      while (at_ < end_ && is_space(buffer_[at_])) ++at_;
      if (at_ < end_) return buffer_[at_];
      if (!more()) return std::nullopt;
    }
  }

  bool take(char expected) {
    if (next_token() != expected) return false;
    ++at_;
    return true;
  }

  /// The length of the value at at_, reading on as needed; nothing when the input ends within it.
  /// Looks only at strings and brackets, so that it gets over values that are wrong inside.
  std::optional<std::size_t> value_length() {
    std::size_t depth = 0;
    bool in_string = false;
    for (std::size_t i = 0;; ++i) {
      if (at_ + i == end_ && !more()) {
        if (depth == 0 && !in_string && i > 0 && !too_large_) return i;  // a bare number at the end
        return std::nullopt;
      }
      const char c = buffer_[at_ + i];
      if (in_string) {
        if (c == '\\') {
          ++i;
          if (at_ + i == end_ && !more()) return std::nullopt;
        } else if (c == '"') {
          in_string = false;
          if (depth == 0) return i + 1;
        }
      } else if (c == '"') {
        in_string = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (depth == 0) return i;  // the bracket that closes the container
        if (--depth == 0) return i + 1;
      } else if (depth == 0 && (c == ',' || is_space(c))) {
        return i;
      }
    }
  }

  void truncated(std::string_view why = {}) {
    if (!damage_.truncated.empty() || stopped_) return;
    element_ = static_cast<std::ptrdiff_t>(end_);
    damage_.truncated = place();
    const std::string damage = source_.damage(),
                      large = fmt::format("a value of more than {} MiB", kMaxElement >> 20);
    if (why.empty()) why = too_large_ ? large : damage;
    if (!why.empty()) damage_.truncated += fmt::format(" ({})", why);
  }

  void malformed() {
    element_ = static_cast<std::ptrdiff_t>(at_);
    if (damage_.malformed++ == 0) damage_.first_malformed = place();
  }

  /// Parses the `size` bytes at at_ and the closing characters `tail` as the elements of an array.
  /// The text must be put right again with `restore` when it has been used.
  simdjson::error_code parse(std::size_t size, std::string_view tail,
                             ondemand::document& document) {
    char* const rest = buffer_.data() + at_ + size;
    std::memcpy(kept_, rest, tail.size() + 1);
    std::memcpy(rest, tail.data(), tail.size());
    // In a truncated document, simdjson may read the character after its end. That character must
    // not be able to continue an object.
    rest[tail.size()] = '\0';
    bracketed_ = buffer_[at_ - 1];
    buffer_[at_ - 1] = '[';
    return parser_
        .iterate(buffer_.data() + at_ - 1, size + 1 + tail.size(), buffer_.size() - at_ + 1)
        .get(document);
  }
  void restore(std::size_t size, std::string_view tail) {
    std::memcpy(buffer_.data() + at_ + size, kept_, tail.size() + 1);
    buffer_[at_ - 1] = bracketed_;
  }

  /// How many of the first `limit` bytes at at_ end neither within an escape nor within a
  /// character.
  std::size_t whole_characters(std::size_t limit) const {
    std::size_t size = limit;
    for (std::size_t back = 1; back <= 3 && back <= size; ++back) {
      const auto c = static_cast<unsigned char>(buffer_[at_ + size - back]);
      if (c < 0x80) break;
      if (c >= 0xC0) {
        if (utf8_at({buffer_.data() + at_ + size - back, back}).cut) size -= back;
        break;
      }
    }
    while (size > 0 && buffer_[at_ + size - 1] == '\\') --size;
    return size;
  }

  /// Replaces what simdjson rejects: bytes that are no UTF-8, and bare control characters in
  /// strings.
  void clean(std::size_t size) {
    bool in_string = false;
    for (std::size_t i = at_; i < at_ + size;) {
      const char c = buffer_[i];
      const bool control = in_string && static_cast<unsigned char>(c) < 0x20;
      const Utf8 character = utf8_at({buffer_.data() + i, at_ + size - i});
      if (control || character.length == 0) {
        element_ = static_cast<std::ptrdiff_t>(i);
        if (damage_.invalid_text++ == 0) damage_.first_invalid_text = place();
        buffer_[i++] = control ? ' ' : '?';
        continue;
      }
      if (in_string && c == '\\') {
        i += 2;
        continue;
      }
      if (c == '"') in_string = !in_string;
      i += character.length;
    }
  }

  enum class Batch { kGoesOn, kArrayEnds, kNothing };

  /// Parses up to `limit` bytes at at_, hands out the whole elements among them, and moves at_ past
  /// the last. Returns `kNothing` if there was none.
  Batch batch(std::size_t limit) {
    const std::size_t size = whole_characters(limit);
    if (size == 0) return Batch::kNothing;
    ondemand::document document;
    std::string_view tail = "]";
    simdjson::error_code code = parse(size, tail, document);
    for (int attempt = 0; code && attempt < 3; ++attempt) {
      restore(size, tail);
      if (code == simdjson::UNCLOSED_STRING) {
        tail = "\"]";
      } else if (code == simdjson::UTF8_ERROR || code == simdjson::UNESCAPED_CHARS) {
        clean(size);
      } else {
        return Batch::kNothing;
      }
      code = parse(size, tail, document);
    }
    if (code) {
      restore(size, tail);
      return Batch::kNothing;
    }

    const char* const begin = buffer_.data() + at_;
    const char* good = begin;  // everything before it has been handed out
    bool complete = true;
    ondemand::array array;
    if (document.get_array().get(array)) {
      restore(size, tail);
      return Batch::kNothing;
    }
    for (auto item : array) {
      const char* here = nullptr;
      // An element that the handler did not read may have swallowed the closing characters.
      if (document.current_location().get(here) || here > begin + size) {
        complete = false;
        break;
      }
      good = here;
      element_ = here - buffer_.data();
      ondemand::value value;
      if (item.get(value)) {
        complete = false;
        break;
      }
      bool broken = false;
      JsonValue wrapped(&value, broken);
      if (!handler_.element(wrapped) || broken) {
        complete = false;
        break;
      }
    }
    const char* after = nullptr;
    const bool own_bracket = document.current_location().get(after) != simdjson::SUCCESS;
    if (!own_bracket && after > begin + size) complete = false;
    restore(size, tail);
    const std::size_t handed_out = static_cast<std::size_t>(good - begin);
    if (!complete) {
      at_ += handed_out;
      return handed_out > 0 ? Batch::kGoesOn : Batch::kNothing;
    }
    if (own_bracket) {  // every element was whole, and the array goes on after the batch
      at_ += size;
      return Batch::kGoesOn;
    }
    // `after` is the token after the array's bracket.
    at_ += static_cast<std::size_t>(after - begin);
    while (buffer_[at_ - 1] != ']') --at_;
    return Batch::kArrayEnds;
  }

  /// The elements of an array whose bracket has been taken.
  void array() {
    std::size_t limit = kBatch;
    while (true) {
      const std::optional<char> next = next_token();
      if (!next) return truncated();
      if (*next == '\0') return truncated("NUL bytes");  // the end of a sparse file
      if (*next == ',') {
        ++at_;
        continue;
      }
      if (*next == ']') {
        ++at_;
        return;
      }
      if (end_ - at_ < kBatch / 2) more();
      if (stopped_) return;
      switch (batch(std::min(limit, end_ - at_))) {
        case Batch::kArrayEnds: return;
        case Batch::kGoesOn: limit = kBatch; break;
        case Batch::kNothing: {
          // The element at hand is larger than the batch, or broken, or cut off.
          const std::optional<std::size_t> length = value_length();
          if (!length) return truncated();
          if (*length > limit) {
            limit = std::max(limit * 2, *length + 1);
            break;
          }
          malformed();
          if (damage_.malformed > kMaxMalformed) return;
          at_ += std::max<std::size_t>(*length, 1);
          limit = kBatch;
        }
      }
    }
  }

  void members() {
    while (true) {
      std::optional<char> next = next_token();
      if (next == ',') {
        ++at_;
        next = next_token();
      }
      if (next == '}') return;
      const std::optional<std::size_t> key_length = next == '"' ? value_length() : std::nullopt;
      if (!key_length) return truncated();
      const std::string key(rest().substr(1, *key_length - 2));
      at_ += *key_length;
      if (!take(':') || !next_token()) return truncated();
      if (*next_token() == '[' && handler_.streams(key)) {
        ++at_;
        array();
        if (!damage_.truncated.empty() || stopped_ || damage_.malformed > kMaxMalformed) return;
        continue;
      }
      const std::optional<std::size_t> length = value_length();
      if (!length || *length == 0) return truncated();
      member(key, *length);
      at_ += *length;
    }
  }

  void member(std::string_view key, std::size_t size) {
    element_ = static_cast<std::ptrdiff_t>(at_);
    ondemand::document document;
    simdjson::error_code code = parse(size, "]", document);
    if (code == simdjson::UTF8_ERROR || code == simdjson::UNESCAPED_CHARS) {
      restore(size, "]");
      clean(size);
      code = parse(size, "]", document);
    }
    ondemand::array array;
    bool broken = false;
    if (!code) code = document.get_array().get(array);
    if (!code)
      for (auto item : array) {
        ondemand::value value;
        if ((code = item.get(value))) break;
        JsonValue wrapped(&value, broken);
        handler_.member(key, wrapped);
      }
    restore(size, "]");
    if (code || broken) malformed();
  }

  static constexpr std::size_t kTail = simdjson::SIMDJSON_PADDING + 8;

  ByteSource& source_;
  std::string file_;
  JsonHandler& handler_;
  const Progress* progress_ = nullptr;
  std::vector<char> buffer_;
  std::size_t at_ = 1;
  std::size_t end_ = 1;
  std::ptrdiff_t element_ = 1;  // start of the element in hand
  std::uint64_t lines_before_ = 0;
  bool stopped_ = false;
  bool too_large_ = false;  // the value in hand, after which nothing is read
  JsonDamage damage_;
  ondemand::parser parser_;
  char kept_[3] = {};
  char bracketed_ = ' ';
};

void report_damage(const JsonDamage& damage, trace::Recorder& recorder) {
  using enum trace::ProblemKind;
  recorder.problem(kMalformed, damage.first_malformed, damage.malformed);
  recorder.problem(kInvalidText, damage.first_invalid_text, damage.invalid_text);
  if (!damage.truncated.empty()) recorder.problem(kTruncated, damage.truncated, 1);
}

JsonStream::JsonStream(ByteSource& source, std::string file, JsonHandler& handler)
    : window_(std::make_unique<Window>(source, std::move(file), handler)) {}
JsonStream::~JsonStream() = default;

Result<JsonDamage> JsonStream::read(const Progress& progress) { return window_->read(progress); }
std::string JsonStream::place() const { return window_->place(); }

Result<JsonDamage> read_stream(ByteSource& source, JsonHandler& handler, trace::Recorder& recorder,
                               const Progress& progress) {
  const std::string file = recorder.info().source;
  JsonStream stream(source, file, handler);
  recorder.set_place([&stream] { return stream.place(); });
  Result<JsonDamage> damage = stream.read(progress);
  recorder.set_place([file] { return file; });
  return damage;
}

}  // namespace rehearse::ingest
