// Reading YAML input files: every error of a file is reported at once, each with its line, the path
// of its key, the expected value and the nearest valid name. Unknown keys are errors.
//
//   const YamlFile file = TRY(YamlFile::load(path));
//   const YamlMap map = file.root();
//   const std::optional<ByteRate> rate = map.required<ByteRate>("rate");
//   map.no_other_keys();
//   TRY(file.status());
//   use(*rate);  // safe: a missing required key makes status() fail
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace rehearse {

/// The text that replaces a scalar, given its text in the file.
using YamlFill = std::function<Result<std::string>(const std::string& text)>;

/// One mapping of a YAML file. Copies are cheap and share the file's list of errors.
/// Each reader returns nothing when the key is absent or its value is wrong; the latter is
/// recorded.
class YamlMap {
 public:
  struct State;

  /// `T` is std::string, std::int64_t, double (a plain number), bool, or a quantity of units.h.
  template <class T>
  std::optional<T> optional(std::string_view key) const;
  /// As `optional`, and an absent key is recorded as an error.
  template <class T>
  std::optional<T> required(std::string_view key) const;
  /// As `optional`, and a value outside of `least` to `most` is recorded as an error.
  template <class T>
  std::optional<T> within(std::string_view key, T least, T most) const;

  /// The index of the value among `names`.
  std::optional<std::size_t> choice(std::string_view key,
                                    std::span<const std::string_view> names) const;
  /// Sets `to` if the key is present; `names` are in the order of the enumerators.
  template <class E>
  void choose(std::string_view key, std::span<const std::string_view> names, E& to) const {
    if (const std::optional<std::size_t> i = choice(key, names)) to = static_cast<E>(*i);
  }
  std::optional<YamlMap> map(std::string_view key) const;
  /// The mappings of a sequence; empty when the key is absent.
  std::vector<YamlMap> maps(std::string_view key) const;
  /// The values of a sequence of `T`; empty when the key is absent.
  template <class T>
  std::vector<T> list(std::string_view key) const;

  /// All keys, in the order of the file.
  std::vector<std::string> keys() const;

  /// The keys of this mapping, completed by those of `base`, recursively for mappings in
  /// both. Errors are reported at their own place. REQUIRES: both are of the same file.
  YamlMap over(const YamlMap& base) const;
  /// The same mapping, with each scalar, including inner ones, read through `fill`. If `fill`
  /// fails, its first diagnostic is recorded.
  YamlMap filled(YamlFill fill) const;

  bool has(std::string_view key) const;
  /// Whether the key has a mapping: for values that may be a word or a mapping.
  bool is_map(std::string_view key) const;
  /// Whether the key has a sequence: for values that may be one or several.
  bool is_list(std::string_view key) const;
  /// Whether the key has a sequence that begins with a mapping.
  bool is_list_of_maps(std::string_view key) const;
  /// Whether the key exists without a value, or with JSON's null.
  bool is_null(std::string_view key) const;

  /// Records every key that none of the calls above asked for. In a file with a wrong value, on
  /// which the known keys may depend, only the misspelt ones are errors. `elsewhere`: the path of a
  /// key that belongs to another mapping, or nothing.
  void no_other_keys(const std::function<std::string(std::string_view)>& elsewhere = nullptr) const;

  /// Records a problem with the value at `key` that only the caller can see.
  void report(std::string_view key, std::string problem, std::string expected = {},
              std::string nearest = {}) const;

  /// The status of the whole file, as `YamlFile::status`.
  Status status() const;

  explicit YamlMap(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

/// The text as a value in double quotes, in one line.
std::string yaml_quoted(std::string_view text);

class YamlFile {
 public:
  struct Document;

  /// Fails when the file cannot be read, is not YAML, or is not a mapping.
  static Result<YamlFile> load(const std::filesystem::path& path);
  /// The same for text in memory; `name` is the file name in messages.
  static Result<YamlFile> parse(const std::string& text, std::string name);

  YamlMap root() const;
  /// Success if nothing was recorded, else all recorded errors in order of line.
  Status status() const;

 private:
  explicit YamlFile(std::shared_ptr<Document> document) : document_(std::move(document)) {}
  std::shared_ptr<Document> document_;
};

}  // namespace rehearse
