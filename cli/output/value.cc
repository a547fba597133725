#include "cli/output/value.h"

#include "sim/base/check.h"

namespace rehearse::cli {

Value::Value(std::initializer_list<Entry> fields) : content_(Object()) {
  for (const Entry& field : fields)
    if (!std::holds_alternative<Absent>(field.value.content_))
      std::get<Object>(content_).push_back(field);
}

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

const Value::Array& Value::list() const {
  static const Array kNone;
  const auto* array = std::get_if<Array>(&content_);
  return array ? *array : kNone;
}

}  // namespace rehearse::cli
