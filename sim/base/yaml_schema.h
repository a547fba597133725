// The keys of a YAML file, found from the calls by which a reader reads it: the reader is run on small
// files, and each file has one more of the values that an earlier run asked for.
//
//   const YamlKeys keys = describe_reader([](const auto& path) { (void)load_study(path); }, {text});
#pragma once

#include <compare>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rehearse {

/// A form that the value of a key may have.
struct YamlForm {
  enum class Kind { kText, kWhole, kNumber, kFlag, kQuantity, kChoice, kMap, kMaps, kList };
  Kind kind = Kind::kText;
  Kind item = Kind::kText;  ///< of a list
  std::string unit = {};    ///< of a quantity
  std::vector<std::string> names = {};
  std::optional<double> least = {}, most = {};

  bool operator==(const YamlForm&) const = default;
};

struct YamlKey {
  std::string name;
  std::vector<YamlForm> forms = {};
  bool required = false;  ///< in every file that was tried
};

struct YamlMapping {
  std::vector<YamlKey> keys = {};
  bool closed = false;          ///< another key is an error
  std::vector<YamlForm> other;  ///< forms of keys that the file names
};

/// By path: "" at the root, "jobs[].plan"; "any" is a key that the file names.
using YamlKeys = std::map<std::string, YamlMapping, std::less<>>;

/// Runs the reader until no run asks for anything new. `seeds` are valid files to begin with.
/// REQUIRES: no other thread reads files.
YamlKeys describe_reader(const std::function<void(const std::filesystem::path&)>& read,
                         const std::vector<std::string>& seeds = {});

/// What yaml.cc tells while a description is made.
class YamlWatch {
 public:
  virtual ~YamlWatch() = default;
  virtual void asks(const std::string& path, std::string_view key, YamlForm form,
                    bool required) = 0;
  /// The reader behaves differently if the value has this text.
  virtual void tests(const std::string& path, std::string_view key, const char* value) = 0;
  virtual void closes(const std::string& path) = 0;
  virtual void lists_keys(const std::string& path) = 0;
};

/// Set on the thread that describes, for the file of this name; null otherwise.
struct YamlWatched {
  YamlWatch* watch = nullptr;
  std::string file;
};
YamlWatched& yaml_watched();

}  // namespace rehearse
