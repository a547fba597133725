#include "sim/base/yaml.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <type_traits>

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include "sim/base/file.h"
#include "sim/base/largest.h"
#include "sim/base/plain_number.h"
#include "sim/base/text.h"
#include "sim/base/yaml_documents.h"
#include "sim/base/yaml_schema.h"

namespace rehearse {

struct YamlFile::Document {
  std::string name;
  YAML::Node root;
  std::vector<Diagnostic> diagnostics;
  // Which keys are known may depend on a value that is wrong, so these are errors only without one.
  std::vector<Diagnostic> unknown_keys;
  bool has_wrong_value = false;

  void report(const YAML::Mark& mark, std::string key, std::string problem, std::string expected,
              std::string nearest, bool is_certain = true) {
    Diagnostic d{.file = name,
                 .key = std::move(key),
                 .problem = std::move(problem),
                 .expected = std::move(expected),
                 .nearest = std::move(nearest)};
    if (!mark.is_null()) {
      d.line = static_cast<std::uint32_t>(mark.line + 1);
      d.column = static_cast<std::uint32_t>(mark.column + 1);
    }
    (is_certain ? diagnostics : unknown_keys).push_back(std::move(d));
  }

  void report_value(const YAML::Node& value, std::string key, std::string problem,
                    std::string expected, std::string nearest) {
    has_wrong_value = true;
    report(value.Mark(), std::move(key), std::move(problem), std::move(expected),
           std::move(nearest));
  }

  Status status() const {
    Error error{diagnostics};
    if (!has_wrong_value) std::ranges::copy(unknown_keys, std::back_inserter(error.diagnostics));
    if (error.diagnostics.empty()) return {};
    std::ranges::stable_sort(error.diagnostics, [](const Diagnostic& a, const Diagnostic& b) {
      return std::pair(a.line, a.column) < std::pair(b.line, b.column);
    });
    return tl::unexpected(std::move(error));
  }
};

namespace {
std::string key_of(const YAML::Node& key) { return key.IsScalar() ? key.Scalar() : "?"; }
}  // namespace

struct YamlMap::State {
  /// A mapping as written in the file.
  struct Layer {  // NOLINT(bugprone-exception-escape): assigning a YAML::Node may throw
    YAML::Node node;
    std::string path;  // "" at the root, else "a.b[2]"

    std::string path_of(std::string_view key) const {
      return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
    }
    YAML::Node value(std::string_view key) const {
      for (const auto& entry : node)
        if (entry.first.IsScalar() && entry.first.Scalar() == key) return entry.second;
      return YAML::Node(YAML::NodeType::Undefined);
    }
    /// Whether several keys at the root are all unlike the known ones. Such a file is of another
    /// kind, and may hold secrets: its words are not repeated.
    template <class OtherOf>
    bool foreign(std::span<const std::string_view> known, const OtherOf& other_of) const {
      if (!path.empty() || node.size() < 2) return false;
      return std::all_of(node.begin(), node.end(), [&](const auto& entry) {
        const std::string key = key_of(entry.first);
        return std::ranges::find(known, key) == known.end() && !nearest(key, known) &&
               other_of(key).empty();
      });
    }
  };

  std::shared_ptr<YamlFile::Document> document;
  std::vector<Layer> layers;  // those in front count first; never empty
  YamlFill fill = {};
  std::vector<std::string> asked = {};

  /// The layer that holds the key, else the front one.
  const Layer& layer_of(std::string_view key) const {
    for (const Layer& layer : layers)
      if (layer.value(key).IsDefined()) return layer;
    return layers.front();
  }
  std::string path_of(std::string_view key) const { return layer_of(key).path_of(key); }

  /// Tells a description about a call, for each layer that may hold the key.
  template <class Tell>
  void tell(const Tell& to) const {
    YamlWatched& watched = yaml_watched();
    if (watched.watch == nullptr || watched.file != document->name) return;
    for (const Layer& layer : layers) to(*watched.watch, layer.path);
  }
  void asks(std::string_view key, const YamlForm& form, bool required = false) const {
    tell([&](YamlWatch& watch, const std::string& path) {
      watch.asks(path, key, form, required);
      if (fill) watch.asks(path, key, {}, false);
    });
  }
  void tests(std::string_view key, const char* value) const {
    tell([&](YamlWatch& watch, const std::string& path) { watch.tests(path, key, value); });
  }

  /// The value at `key`, invalid when absent; remembers that the key is known.
  YAML::Node find(std::string_view key) {
    asked.emplace_back(key);
    for (const Layer& layer : layers)
      if (YAML::Node value = layer.value(key); value.IsDefined()) return value;
    return YAML::Node(YAML::NodeType::Undefined);
  }
};

namespace {

tl::unexpected<Error> out_of_range(const std::string& text, std::string range) {
  return fail(fmt::format("'{}' is out of range", text), std::move(range));
}
template <class T>
tl::unexpected<Error> out_of_range(const std::string& text) {
  return out_of_range(text, at_most(largest<T>()));
}

template <class T>
Result<T> convert(const std::string& text) {
  return parse_quantity<T>(text);
}
template <>
Result<std::string> convert(const std::string& text) {
  return text;
}
template <>
Result<bool> convert(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return fail(fmt::format("'{}' is neither true nor false", text));
}
template <class Number>
Result<Number> convert_number(const std::string& text, const char* expected) {
  Number number{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range && rest == text.data() + text.size())
    return out_of_range<Number>(text);
  if (error != std::errc{} || rest != text.data() + text.size()) {
    const std::string meant = plain_number(text);
    return fail(fmt::format("'{}' is not a number", text), meant.empty() ? expected : meant);
  }
  return number;
}
template <>
Result<std::int64_t> convert(const std::string& text) {
  constexpr auto kMost = static_cast<std::int64_t>(largest<std::int64_t>().si);
  if (const auto whole = convert_number<std::int64_t>(text, ""); whole) {
    if (std::abs(*whole) > kMost) return out_of_range<std::int64_t>(text);
    return whole;
  }
  // 300e9 is how people write a large count.
  const double real = TRY(convert_number<double>(text, "a whole number"));
  if (std::abs(real) > largest<std::int64_t>().si) return out_of_range<std::int64_t>(text);
  if (real == std::floor(real)) return static_cast<std::int64_t>(real);
  return fail(fmt::format("'{}' is not a whole number", text));
}
template <>
Result<double> convert(const std::string& text) {
  auto real = convert_number<double>(text, "a number without a unit");
  if (real && !std::isfinite(*real)) return fail(fmt::format("'{}' is not finite", text));
  if (real)
    if (std::string range = range_missed<double>(*real); !range.empty())
      return out_of_range(text, std::move(range));
  return real;
}

template <class T>
YamlForm form_of() {
  if constexpr (std::is_same_v<T, std::string>)
    return {.kind = YamlForm::Kind::kText};
  else if constexpr (std::is_same_v<T, bool>)
    return {.kind = YamlForm::Kind::kFlag};
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return {.kind = YamlForm::Kind::kWhole};
  else if constexpr (std::is_same_v<T, double>)
    return {.kind = YamlForm::Kind::kNumber};
  else
    return {.kind = YamlForm::Kind::kQuantity, .unit = std::string(largest<T>().unit)};
}

template <class T>
std::optional<T> read_scalar(YamlFile::Document& document, const YamlFill& fill,
                             const YAML::Node& value, const std::string& path) {
  if (!value.IsScalar()) {
    document.report_value(value, path, "is not a single value", "one value", "");
    return std::nullopt;
  }
  Result<std::string> text = fill ? fill(value.Scalar()) : value.Scalar();
  Result<T> converted = text ? convert<T>(*text) : forward(text);
  if (converted) return *converted;
  const Diagnostic& d = converted.error().diagnostics.front();
  document.report_value(value, path, d.problem, d.expected, d.nearest);
  return std::nullopt;
}

}  // namespace

template <class T>
std::optional<T> YamlMap::optional(std::string_view key) const {
  state_->asks(key, form_of<T>());
  const YAML::Node value = state_->find(key);
  if (!value.IsDefined()) return std::nullopt;
  return read_scalar<T>(*state_->document, state_->fill, value, state_->path_of(key));
}

template <class T>
std::optional<T> YamlMap::required(std::string_view key) const {
  state_->asks(key, form_of<T>(), true);
  const YAML::Node value = state_->find(key);  // also to know the key when it is misspelt
  if (value.IsDefined())
    return read_scalar<T>(*state_->document, state_->fill, value, state_->path_of(key));
  state_->document->report(state_->layers.front().node.Mark(), state_->path_of(key), "is missing",
                           "", "");
  return std::nullopt;
}

template <class T>
std::optional<T> YamlMap::within(std::string_view key, T least, T most) const {
  YamlForm form = form_of<T>();
  if constexpr (std::is_arithmetic_v<T>) {
    form.least = static_cast<double>(least);
    form.most = static_cast<double>(most);
  }
  state_->asks(key, form);
  const YAML::Node node = state_->find(key);
  const std::optional<T> value =
      node.IsDefined() ? read_scalar<T>(*state_->document, state_->fill, node, state_->path_of(key))
                       : std::nullopt;
  if (!value || (*value >= least && *value <= most)) return value;
  if constexpr (std::is_same_v<T, std::int64_t>)
    report(key, fmt::format("{} is out of range", *value),
           fmt::format("a whole number from {} to {}", least, most));
  else if constexpr (std::is_same_v<T, double>)
    report(key, fmt::format("{:g} is out of range", *value),
           fmt::format("a number from {:g} to {:g}", least, most));
  else
    report(key, fmt::format("{:g} {} is out of range", value->si(), largest<T>().unit),
           fmt::format("{0:g} {2} to {1:g} {2}", least.si(), most.si(), largest<T>().unit));
  return std::nullopt;
}

template <class T>
std::vector<T> YamlMap::list(std::string_view key) const {
  std::vector<T> values;
  YamlForm form = form_of<T>();
  form.item = std::exchange(form.kind, YamlForm::Kind::kList);
  state_->asks(key, form);
  const YAML::Node value = state_->find(key);
  if (!value.IsDefined()) return values;
  if (!value.IsSequence()) {
    report(key, "is not a sequence", "a list such as [a, b]");
    return values;
  }
  for (std::size_t i = 0; i < value.size(); ++i)
    if (auto item = read_scalar<T>(*state_->document, state_->fill, value[i],
                                   fmt::format("{}[{}]", state_->path_of(key), i)))
      values.push_back(std::move(*item));
  return values;
}

#define REHEARSE_INSTANTIATE(T)                                           \
  template std::optional<T> YamlMap::optional<T>(std::string_view) const; \
  template std::optional<T> YamlMap::required<T>(std::string_view) const; \
  template std::vector<T> YamlMap::list<T>(std::string_view) const;
REHEARSE_INSTANTIATE(std::string)
REHEARSE_INSTANTIATE(std::int64_t)
REHEARSE_INSTANTIATE(double)
REHEARSE_INSTANTIATE(bool)
REHEARSE_INSTANTIATE(Seconds)
REHEARSE_INSTANTIATE(Bytes)
REHEARSE_INSTANTIATE(Flops)
REHEARSE_INSTANTIATE(ByteRate)
REHEARSE_INSTANTIATE(FlopRate)
REHEARSE_INSTANTIATE(Watts)
REHEARSE_INSTANTIATE(Joules)
REHEARSE_INSTANTIATE(Usd)
#undef REHEARSE_INSTANTIATE
template std::optional<std::int64_t> YamlMap::within(std::string_view, std::int64_t,
                                                     std::int64_t) const;
template std::optional<double> YamlMap::within(std::string_view, double, double) const;
template std::optional<Seconds> YamlMap::within(std::string_view, Seconds, Seconds) const;
template std::optional<Bytes> YamlMap::within(std::string_view, Bytes, Bytes) const;
template std::optional<ByteRate> YamlMap::within(std::string_view, ByteRate, ByteRate) const;
template std::optional<FlopRate> YamlMap::within(std::string_view, FlopRate, FlopRate) const;
template std::optional<Watts> YamlMap::within(std::string_view, Watts, Watts) const;

std::optional<std::size_t> YamlMap::choice(std::string_view key,
                                           std::span<const std::string_view> names) const {
  state_->asks(key, {.kind = YamlForm::Kind::kChoice, .names = {names.begin(), names.end()}});
  const YAML::Node value = state_->find(key);
  if (!value.IsDefined()) return std::nullopt;
  const std::optional<std::string> word =
      read_scalar<std::string>(*state_->document, state_->fill, value, state_->path_of(key));
  if (!word) return std::nullopt;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == *word) return i;
  report(key, fmt::format("unknown value '{}'", *word), suggest(*word, names));
  return std::nullopt;
}

std::optional<YamlMap> YamlMap::map(std::string_view key) const {
  state_->asks(key, {.kind = YamlForm::Kind::kMap});
  const YAML::Node value = state_->find(key);
  if (!value.IsDefined()) return std::nullopt;
  if (!value.IsMap()) {
    report(key, "is not a mapping", "keys and values");
    return std::nullopt;
  }
  State inner{state_->document, {}, state_->fill};
  for (const State::Layer& layer : state_->layers) {
    const YAML::Node one = layer.value(key);
    if (!one.IsDefined()) continue;
    if (!one.IsMap()) break;  // a value of another form is overridden as a whole
    inner.layers.push_back({one, layer.path_of(key)});
  }
  return YamlMap(std::make_shared<State>(std::move(inner)));
}

std::vector<YamlMap> YamlMap::maps(std::string_view key) const {
  std::vector<YamlMap> found;
  state_->asks(key, {.kind = YamlForm::Kind::kMaps});
  const YAML::Node value = state_->find(key);
  if (!value.IsDefined()) return found;
  if (!value.IsSequence()) {
    report(key, "is not a sequence", "a list of mappings");
    return found;
  }
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string path = fmt::format("{}[{}]", state_->path_of(key), i);
    if (value[i].IsMap())
      found.emplace_back(
          std::make_shared<State>(State{state_->document, {{value[i], path}}, state_->fill}));
    else
      state_->document->report_value(value[i], path, "is not a mapping", "keys and values", "");
  }
  return found;
}

bool YamlMap::has(std::string_view key) const {
  state_->tests(key, "x");
  return state_->layer_of(key).value(key).IsDefined();
}

std::vector<std::string> YamlMap::keys() const {
  std::vector<std::string> keys;
  state_->tell([](YamlWatch& watch, const std::string& path) { watch.lists_keys(path); });
  for (const State::Layer& layer : state_->layers)
    for (const auto& entry : layer.node)
      if (entry.first.IsScalar() && std::ranges::find(keys, entry.first.Scalar()) == keys.end())
        keys.push_back(entry.first.Scalar());
  return keys;
}

YamlMap YamlMap::over(const YamlMap& base) const {
  State both{state_->document, state_->layers, state_->fill};
  both.layers.insert(both.layers.end(), base.state_->layers.begin(), base.state_->layers.end());
  return YamlMap(std::make_shared<State>(std::move(both)));
}

YamlMap YamlMap::filled(YamlFill fill) const {
  return YamlMap(std::make_shared<State>(State{state_->document, state_->layers, std::move(fill)}));
}

Status YamlMap::status() const { return state_->document->status(); }

bool YamlMap::is_map(std::string_view key) const {
  state_->tests(key, "{}");
  const YAML::Node value = state_->find(key);
  return value.IsDefined() && value.IsMap();
}

bool YamlMap::is_null(std::string_view key) const {
  const YAML::Node value = state_->find(key);
  return value.IsDefined() && value.IsNull();
}

bool YamlMap::is_list(std::string_view key) const {
  state_->tests(key, "[x]");
  const YAML::Node value = state_->find(key);
  return value.IsDefined() && value.IsSequence();
}

bool YamlMap::is_list_of_maps(std::string_view key) const {
  state_->tests(key, "[{}]");
  const YAML::Node value = state_->find(key);
  return value.IsDefined() && value.IsSequence() && value.size() > 0 && value[0].IsMap();
}

void YamlMap::no_other_keys(const std::function<std::string(std::string_view)>& elsewhere) const {
  state_->tell([](YamlWatch& watch, const std::string& path) { watch.closes(path); });
  std::vector<std::string_view> known(state_->asked.begin(), state_->asked.end());
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  const auto other_of = [&](const std::string& key) { return elsewhere ? elsewhere(key) : ""; };
  for (const State::Layer& layer : state_->layers) {
    if (layer.foreign(known, other_of)) {
      state_->document->report(layer.node.Mark(), "", "has none of the keys of such a file",
                               suggest("", known), "");
      continue;
    }
    std::vector<std::string> seen;
    for (const auto& entry : layer.node) {
      const std::string key = key_of(entry.first);
      if (std::ranges::find(known, key) == known.end()) {
        const std::string other = other_of(key);
        const bool misspelt = !other.empty() || nearest(key, known);
        state_->document->report(
            entry.first.Mark(), layer.path_of(key), "unknown key",
            other.empty() ? suggest(key, known) : fmt::format("did you mean '{}'?", other), "",
            misspelt);
      } else if (std::ranges::find(seen, key) != seen.end())
        state_->document->report(entry.first.Mark(), layer.path_of(key), "appears twice",
                                 "each key once", "");
      seen.push_back(key);
    }
  }
}

void YamlMap::report(std::string_view key, std::string problem, std::string expected,
                     std::string nearest) const {
  const YAML::Node value = state_->layer_of(key).value(key);
  if (value.IsDefined())
    state_->document->report_value(value, state_->path_of(key), std::move(problem),
                                   std::move(expected), std::move(nearest));
  else
    state_->document->report(state_->layers.front().node.Mark(), state_->path_of(key),
                             std::move(problem), std::move(expected), std::move(nearest));
}

std::string yaml_quoted(std::string_view text) {
  std::string safe = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') safe += '\\';
    safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return safe + "\"";
}

Result<YamlFile> YamlFile::load(const std::filesystem::path& path) {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  const std::string text = TRY(read_file(path, kMost));
  return parse(text, path.string());
}

Result<YamlFile> YamlFile::parse(const std::string& text, std::string name) {
  auto document = std::make_shared<Document>();
  document->name = std::move(name);
  try {
    document->root = YAML::Load(text);
    if (const std::optional<YAML::Mark> rest = second_document(text, document->root)) {
      document->report(*rest, "", "is a second YAML document, or text after the first",
                       "one document in a file", "");
      return tl::unexpected(Error{std::move(document->diagnostics)});
    }
  } catch (const YAML::Exception& e) {
    document->report(e.mark, "", fmt::format("not valid YAML: {}", e.msg), "", "");
    return tl::unexpected(Error{std::move(document->diagnostics)});
  }
  if (!document->root.IsMap()) {
    document->report(document->root.Mark(), "", "is not a mapping", "keys and values", "");
    return tl::unexpected(Error{std::move(document->diagnostics)});
  }
  return YamlFile(std::move(document));
}

YamlMap YamlFile::root() const {
  return YamlMap(
      std::make_shared<YamlMap::State>(YamlMap::State{document_, {{document_->root, ""}}}));
}

Status YamlFile::status() const { return document_->status(); }

}  // namespace rehearse
