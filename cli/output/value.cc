#include "cli/output/value.h"

#include "sim/base/check.h"

namespace rehearse::cli {

Value::Value() : content_(nullptr) {}
Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;

Value::Value(std::nullptr_t) : content_(nullptr) {}
Value::Value(std::nullopt_t) : content_(Absent{}) {}
Value::Value(double value) : content_(value) {}
Value::Value(const char* text) : content_(std::string(text)) {}
Value::Value(std::string_view text) : content_(std::string(text)) {}
Value::Value(std::string text) : content_(std::move(text)) {}

Value::Value(std::initializer_list<Entry> fields) : content_(Object()) {
  for (const Entry& field : fields)
    if (!std::holds_alternative<Absent>(field.value.content_))
      std::get<Object>(content_).push_back(field);
}

Value Value::of(Content content) {
  Value value;
  value.content_ = std::move(content);
  return value;
}
Value Value::of_bool(bool value) { return of(value); }
Value Value::of_integer(std::int64_t value) { return of(value); }
Value Value::of_natural(std::uint64_t value) { return of(value); }
Value Value::of_quantity(Quantity value) { return of(std::move(value)); }

Value Value::array() { return of(Array()); }
Value Value::array(Array list) { return of(std::move(list)); }
Value Value::object() { return of(Object()); }

Value& Value::operator[](std::string_view key) {
  if (std::holds_alternative<std::nullptr_t>(content_)) content_ = Object();
  auto* object = std::get_if<Object>(&content_);
  REHEARSE_CHECK(object != nullptr);
  for (Entry& field : *object)
    if (field.key == key) return field.value;
  return object->emplace_back(key, Value()).value;
}

Value& Value::show(std::string_view key, std::string_view label, Value value, Scale scale,
                   Look look) {
  if (std::holds_alternative<std::nullptr_t>(content_)) content_ = Object();
  if (std::holds_alternative<Absent>(value.content_)) return *this;
  auto* object = std::get_if<Object>(&content_);
  REHEARSE_CHECK(object != nullptr);
  Entry shown(key, label, std::move(value), scale, look);
  for (Entry& field : *object)
    if (!key.empty() && field.key == key) {
      field = std::move(shown);
      return *this;
    }
  object->push_back(std::move(shown));
  return *this;
}

void Value::add(const Value& others) {
  for (const Entry& field : others.fields())
    show(field.key, field.label, field.value, field.scale, field.look);
}

void Value::push_back(Value value) {
  if (std::holds_alternative<std::nullptr_t>(content_)) content_ = Array();
  auto* array = std::get_if<Array>(&content_);
  REHEARSE_CHECK(array != nullptr);
  array->push_back(std::move(value));
}

const Value::Object& Value::fields() const {
  static const Object kNone;
  const auto* object = std::get_if<Object>(&content_);
  return object ? *object : kNone;
}

Value& Value::list_at(std::size_t index) { return std::get<Array>(content_)[index]; }

const Value::Array& Value::list() const {
  static const Array kNone;
  const auto* array = std::get_if<Array>(&content_);
  return array ? *array : kNone;
}

}  // namespace rehearse::cli
