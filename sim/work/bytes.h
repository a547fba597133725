// Values as bytes, for results that are stored or sent: they are read back exactly,
// to the last bit, by the same program on a machine of the same kind.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace rehearse::work {

class Packer {
 public:
  void put(std::uint64_t value) { append(&value, sizeof value); }
  void put(double value) { put(std::bit_cast<std::uint64_t>(value)); }
  void put(std::string_view text) {
    put(std::uint64_t{text.size()});
    append(text.data(), text.size());
  }
  std::string take() { return std::move(bytes_); }

 private:
  void append(const void* from, std::size_t size) {
    bytes_.append(static_cast<const char*>(from), size);
  }
  std::string bytes_;
};

/// Reads in the order of writing; a missing value is 0 or empty, and invalidates the whole.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t count() {
    std::uint64_t value = 0;
    const std::string_view bytes = next(sizeof value);
    if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  double number() { return std::bit_cast<double>(count()); }
  std::string text() { return std::string(next(count())); }

  bool ended() const { return rest_.empty(); }
  /// Whether everything was there, and nothing is left.
  bool whole() const { return !short_ && rest_.empty(); }
  bool ok() const { return !short_; }

 private:
  std::string_view next(std::uint64_t size) {
    if (size > rest_.size()) {
      short_ = true;
      rest_ = {};
      return {};
    }
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }
  std::string_view rest_;
  bool short_ = false;
};

}  // namespace rehearse::work
