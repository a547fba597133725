// Value: the result of a command as a tree of fields. A field has a key for programs, a label for
// people, or both; it contains a text, a number, a quantity, a list, or further fields. A list of
// fields is a table. document.h renders a tree in every format.
//
//   Value point = {{"op", "op", "all_reduce"},               // in JSON and in tables
//                  {"time", "time", price.time, in::kUs},    // a column "time (us)"
//                  {"covered", true}};                       // in JSON alone
//   point.show("", "note", text);                            // for people alone
//
// Fields are in the order in which they were first set.
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

#include "cli/output/quantity.h"

namespace rehearse::cli {

struct Entry;

/// How a field is shown to people.
struct Look {
  enum class Kind : std::uint8_t {
    kPlain,
    kBars,    ///< times that add up to a whole: each bar begins at the end of the one before
    kTable,   ///< a column or a list that only CSV and Markdown have
    kScreen,  ///< a column that only the screen has
    kProse,   ///< a column of sentences, which may take several lines
    kPage,    ///< a column or list that only the page has, instead of a column of the same label
    kAxis,    ///< such a column, against which the page draws the quantities of its table
    kSpan     ///< one of the two columns between which the page draws a bar
  };
  Kind kind = Kind::kPlain;
  std::size_t rows = 60;  ///< of a list: the most that a screen shows
};
inline constexpr Look kBars{Look::Kind::kBars}, kInTables{Look::Kind::kTable},
    kOnScreen{Look::Kind::kScreen}, kProse{Look::Kind::kProse}, kOnPage{Look::Kind::kPage},
    kAxis{Look::Kind::kAxis}, kSpan{Look::Kind::kSpan};
constexpr Look first(std::size_t rows) { return {Look::Kind::kPlain, rows}; }

class Value {
 public:
  struct Absent {};
  using Array = std::vector<Value>;
  using Object = std::vector<Entry>;
  using Content = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double,
                               std::string, Quantity, Array, Object, Absent>;

  // The bodies are in value.cc: content can be destroyed only where Entry is complete, and
  // otherwise every source of the program would compile them again.
  Value();
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();
  Value(std::nullptr_t);
  /// An absent value: a field that is set to it is left out.
  Value(std::nullopt_t);
  template <std::same_as<bool> T>
  Value(T value) : Value(of_bool(value)) {}
  template <std::signed_integral T>
  Value(T value) : Value(of_integer(value)) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Value(T value) : Value(of_natural(value)) {}
  Value(double value);
  Value(const char* text);
  Value(std::string_view text);
  Value(std::string text);
  template <class T>
  requires(!std::is_arithmetic_v<T> && std::convertible_to<T, Quantity>) Value(const T& quantity)
      : Value(of_quantity(quantity)) {}
  /// The value, or null if there is none.
  template <class T>
  Value(const std::optional<T>& value) : Value(value ? Value(*value) : Value()) {}
  template <class T>
  Value(const std::vector<T>& list) : Value(array(Array(list.begin(), list.end()))) {}
  template <class T, std::size_t N>
  Value(const std::array<T, N>& list) : Value(array(Array(list.begin(), list.end()))) {}
  Value(std::initializer_list<Entry> fields);

  static Value array();
  static Value array(Array list);
  static Value object();

  /// The value at a key, null if it was not set. REQUIRES: null or fields; null becomes fields.
  Value& operator[](std::string_view key);
  /// Adds a field, or replaces the field with this key.
  Value& show(std::string_view key, std::string_view label, Value value, Scale scale = {},
              Look look = {});
  /// Adds all fields of `others`.
  void add(const Value& others);
  /// REQUIRES: null or a list; null becomes one.
  void push_back(Value value);

  const Content& content() const { return content_; }
  /// The fields; none if the value is of another kind.
  const Object& fields() const;
  const Array& list() const;
  /// REQUIRES: a list with more than `index` values.
  Value& list_at(std::size_t index);

 private:
  static Value of(Content content);
  static Value of_bool(bool value);
  static Value of_integer(std::int64_t value);
  static Value of_natural(std::uint64_t value);
  static Value of_quantity(Quantity value);

  Content content_;
};

struct Entry {
  std::string key;    ///< in JSON; empty: for people alone
  std::string label;  ///< for people; empty: for programs alone
  Value value;
  Scale scale = {};  ///< in tables
  Look look = {};

  Entry(std::string_view for_programs, Value content)
      : key(for_programs), value(std::move(content)) {}
  Entry(std::string_view for_programs, std::string_view for_people, Value content, Scale in = {},
        Look seen = {})
      : key(for_programs), label(for_people), value(std::move(content)), scale(in), look(seen) {}
};

/// A field that is left out if it has no value.
template <class T>
Value maybe(const std::optional<T>& value) {
  return value ? Value(*value) : Value(std::nullopt);
}
/// A field that is left out if the text is empty.
inline Value maybe(std::string_view text) {
  return text.empty() ? Value(std::nullopt) : Value(text);
}

/// A value as programs read it.
using Json = Value;

}  // namespace rehearse::cli
