#include "sim/base/yaml_schema.h"

#include <algorithm>
#include <deque>
#include <set>

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse {

YamlWatched& yaml_watched() {
  thread_local YamlWatched watched;
  return watched;
}

namespace {

using FormKind = YamlForm::Kind;

constexpr const char* kAnyKey = "any";
constexpr const char* kFile = "described.yaml";

/// "jobs[3].plan" -> "jobs[].plan".
std::string general(std::string_view path) {
  std::string text;
  bool inside = false;
  for (const char c : path) {
    if (c == ']') inside = false;
    if (!inside) text += c;
    if (c == '[') inside = true;
  }
  return text;
}

std::string number_text(double value) { return fmt::format("{:.17g}", value); }

std::string sample_of(const YamlForm& form, FormKind kind) {
  switch (kind) {
    case FormKind::kText: return "x";
    case FormKind::kWhole:
    case FormKind::kNumber:
      return number_text(std::min(form.most.value_or(1), std::max(form.least.value_or(1), 1.0)));
    case FormKind::kFlag: return "true";
    case FormKind::kQuantity: return "1 " + form.unit;
    case FormKind::kChoice: return form.names.front();
    case FormKind::kMap: return "{}";
    case FormKind::kMaps: return "[{}]";
    case FormKind::kList: return "[" + sample_of(form, form.item) + "]";
  }
  return "";
}

/// The texts worth trying for a value of this form.
std::vector<std::string> samples_of(const YamlForm& form) {
  if (form.kind == FormKind::kChoice) return form.names;
  if (form.kind == FormKind::kFlag) return {"true", "false"};
  return {sample_of(form, form.kind)};
}

/// The mapping at a path; none if the path leads elsewhere.
std::optional<YAML::Node> mapping_at(const YAML::Node& root, std::string_view path) {
  YAML::Node at = root;
  for (const std::string_view word :
       path.empty() ? std::vector<std::string_view>() : split(path, '.')) {
    const std::size_t bracket = word.find('[');
    if (!at.IsMap() && !at.IsNull()) return std::nullopt;
    YAML::Node next = at[std::string(word.substr(0, bracket))];
    if (bracket != std::string_view::npos) {
      const std::size_t index = std::stoul(std::string(word.substr(bracket + 1)));
      if (!next.IsSequence() || next.size() <= index) return std::nullopt;
      next.reset(next[index]);
    }
    at.reset(next);
  }
  if (at.IsDefined() && !at.IsMap() && !at.IsNull()) return std::nullopt;
  return at;
}

/// The file with a value of a key of a mapping, in place of what is there; empty if the path leads
/// elsewhere.
std::string with_value(const std::string& text, std::string_view path, std::string_view key,
                       const std::string& value) {
  const YAML::Node root = YAML::Load(text);
  std::optional<YAML::Node> mapping = mapping_at(root, path);
  if (!mapping) return "";
  (*mapping)[std::string(key)] = YAML::Load(value);
  YAML::Emitter out;
  out << YAML::Flow << root;
  return out.c_str();
}

class Explorer : public YamlWatch {
 public:
  explicit Explorer(const std::vector<std::string>& seeds) : waiting_(seeds.begin(), seeds.end()) {
    waiting_.push_back("{}");  // last: a value is tried in the first file that asks for it
  }

  YamlKeys explore(const std::function<void(const std::filesystem::path&)>& read) {
    constexpr std::size_t kMostRuns = 20'000;
    yaml_watched() = {this, kFile};
    for (std::size_t runs = 0; !waiting_.empty() && runs < kMostRuns; ++runs) {
      text_ = std::move(waiting_.front());
      waiting_.pop_front();
      visited_.clear();
      demanded_.clear();
      hold_file(kFile, text_);
      read(kFile);
      for (const std::string& path : visited_) ++visits_[path];
      for (const std::string& path : demanded_) ++demands_[path];
    }
    yaml_watched() = {};
    for (auto& [path, mapping] : keys_)
      for (YamlKey& key : mapping.keys)
        key.required = demands_[joined(path, key.name)] == visits_[path];
    return without_own_names();
  }

  void asks(const std::string& path, std::string_view key, YamlForm form, bool required) override {
    YamlMapping& mapping = visit(path);
    std::vector<YamlForm>& forms = forms_of(mapping, key);
    note_absent(path, key);
    if (required) demanded_.insert(joined(general(path), key));
    for (const std::string& sample : samples_of(form)) try_value(path, key, sample);
    add(std::move(form), forms);
  }
  void tests(const std::string& path, std::string_view key, const char* value) override {
    visit(path);
    note_absent(path, key);
    try_value(path, key, value);
  }
  void closes(const std::string& path) override { visit(path).closed = true; }
  void lists_keys(const std::string& path) override {
    visit(path);
    lists_.insert(general(path));
    for (const char* value : {"1", "x", "1 s", "true", "{}", "[1]", "[x]", "[{}]"})
      try_value(path, kAnyKey, value);
  }

 private:
  static std::string joined(std::string_view path, std::string_view key) {
    return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
  }

  /// Names that differ from file to file are the file's own: any text may be one.
  static void add(YamlForm form, std::vector<YamlForm>& forms) {
    const auto other_names = [&](const YamlForm& known) {
      return known.kind == FormKind::kChoice && known.names != form.names;
    };
    if (form.kind == FormKind::kChoice &&
        (form.names.empty() || std::any_of(forms.begin(), forms.end(), other_names))) {
      std::erase_if(forms, other_names);
      form = {};
    }
    // So are bounds that differ.
    for (YamlForm& known : forms) {
      if (known.kind != form.kind) continue;
      if (known.least != form.least) known.least = form.least = {};
      if (known.most != form.most) known.most = form.most = {};
    }
    if (std::find(forms.begin(), forms.end(), form) == forms.end())
      forms.push_back(std::move(form));
  }

  YamlMapping& visit(const std::string& path) {
    const std::string name = general(path);
    visited_.insert(name);
    return keys_[name];
  }

  static std::vector<YamlForm>& forms_of(YamlMapping& mapping, std::string_view key) {
    if (key == kAnyKey) return mapping.other;
    const auto known = std::find_if(mapping.keys.begin(), mapping.keys.end(),
                                    [&](const YamlKey& one) { return one.name == key; });
    return (known == mapping.keys.end() ? mapping.keys.emplace_back(YamlKey{std::string(key)})
                                        : *known)
        .forms;
  }

  /// The reader asks for the key, which the file that is read now may lack.
  void note_absent(const std::string& path, std::string_view key) {
    if (!lists_.contains(general(path))) return;
    const std::optional<YAML::Node> mapping = mapping_at(YAML::Load(text_), path);
    if (!mapping || !mapping->IsMap() || !(*mapping)[std::string(key)].IsDefined())
      asked_for_.insert(joined(general(path), key));
  }

  /// The names that a file gives in a mapping whose keys the reader lists are those that it asks for
  /// only where they are. They become "any", with all that is below them.
  YamlKeys without_own_names() const {
    std::vector<std::string> own;
    for (const auto& [path, mapping] : keys_)
      if (lists_.contains(path))
        for (const YamlKey& key : mapping.keys)
          if (const std::string name = joined(path, key.name); !asked_for_.contains(name))
            own.push_back(name);
    std::ranges::reverse(own);  // the inner ones first
    const auto as_any = [&](std::string path) {
      for (const std::string& name : own)
        if (path.starts_with(name) &&
            (path.size() == name.size() || path[name.size()] == '.' || path[name.size()] == '['))
          path.replace(name.rfind('.') + 1, name.size() - name.rfind('.') - 1, kAnyKey);
      return path;
    };
    YamlKeys joint;
    for (const auto& [path, mapping] : keys_) {
      YamlMapping& to = joint[as_any(path)];
      to.closed = to.closed || mapping.closed;
      for (const YamlForm& form : mapping.other) add(form, to.other);
      for (const YamlKey& key : mapping.keys) {
        const bool names = std::ranges::find(own, joined(path, key.name)) != own.end();
        for (const YamlForm& form : key.forms) add(form, forms_of(to, names ? kAnyKey : key.name));
        if (!names)
          for (YamlKey& known : to.keys)
            if (known.name == key.name) known.required = key.required;
      }
    }
    return joint;
  }

  /// A later run has this value, in the file of the run that asked for it.
  void try_value(const std::string& path, std::string_view key, const std::string& value) {
    // A mapping that holds mappings of its own form is described once within itself.
    const std::string where = "." + general(path) + ".", again = fmt::format(".{}[].", key);
    const std::size_t first = where.find(again);
    if (first != std::string::npos && where.find(again, first + 1) != std::string::npos) return;
    if (!tried_.insert(joined(general(path), key) + "\n" + value).second) return;
    if (std::string next = with_value(text_, path, key, value); !next.empty())
      waiting_.push_back(std::move(next));
  }

  std::deque<std::string> waiting_;
  std::string text_;  // of the file that is read now
  YamlKeys keys_;
  std::set<std::string> tried_, visited_, demanded_;
  /// Mappings whose keys are listed; keys of these that were asked for where they were absent.
  std::set<std::string> lists_, asked_for_;
  std::map<std::string, std::size_t> visits_, demands_;
};

}  // namespace

YamlKeys describe_reader(const std::function<void(const std::filesystem::path&)>& read,
                         const std::vector<std::string>& seeds) {
  return Explorer(seeds).explore(read);
}

}  // namespace rehearse
