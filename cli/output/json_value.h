// Json: a JSON document as it is put together for output. Objects keep the order in which keys were
// first set.
//
//   Json json = {{"name", "all_reduce"}, {"ranks", 8}};
//   json["points"].push_back({{"bytes", 1024}, {"seconds", 2e-6}});
//
// A list in braces is an object where each of its elements is a pair that begins with a text, else
// an array. Writing is in json.cc alone, so that what makes documents compiles without the library
// that writes them.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rehearse::cli {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;
  using Value = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string,
                             Array, Object>;

  Json() : value_(nullptr) {}
  Json(std::nullptr_t) : value_(nullptr) {}
  template <std::same_as<bool> T>
  Json(T value) : value_(value) {}
  template <std::signed_integral T>
  Json(T value) : value_(std::int64_t{value}) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Json(T value) : value_(std::uint64_t{value}) {}
  Json(double value) : value_(value) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string_view text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}
  template <class T>
  Json(const std::optional<T>& value) : Json(value ? Json(*value) : Json()) {}
  template <class T>
  Json(const std::vector<T>& list) : value_(Array(list.begin(), list.end())) {}
  template <class T, std::size_t N>
  Json(const std::array<T, N>& list) : value_(Array(list.begin(), list.end())) {}
  Json(std::initializer_list<Json> list);

  static Json array() { return of(Array()); }
  static Json object() { return of(Object()); }

  /// The value at a key, null where it was not set. REQUIRES: null or an object; null becomes one.
  Json& operator[](std::string_view key);
  /// REQUIRES: null or an array; null becomes one.
  void push_back(Json value);

  const Value& value() const { return value_; }

 private:
  static Json of(Value value) {
    Json json;
    json.value_ = std::move(value);
    return json;
  }

  Value value_;
};

}  // namespace rehearse::cli
