// Runs of the parts of studies, which several points share.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/yaml.h"

namespace rehearse::cli {

/// The runs that were used last. A run follows from the texts that its part reads, one after the
/// other. So it serves every point at which each of these texts is filled in alike. Threads may
/// share one object.
template <class Run>
class KnownRuns {
 public:
  using Shared = std::shared_ptr<Run>;

  /// The run of a part with this name, which no other part of any study has. If none is known,
  /// `make` makes it, and reads the part through the YamlFill that it is given. Fails as `make` does.
  template <class Make>
  Result<Shared> of(const std::string& part, const YamlFill& fill, const Make& make) {
    std::unique_lock lock(mutex_);
    std::optional<Key> expected;
    for (;;) {
      if (Shared known = find(part, fill)) return known;
      if (!expected) expected = expected_at(part, fill);
      if (!expected || !making_.contains(*expected)) break;
      made_.wait(lock);  // another thread makes it
    }
    if (expected) making_.insert(*expected);
    lock.unlock();
    Texts texts;
    Result<Shared> run = make(YamlFill([&](const std::string& text) {
      Result<std::string> filled = fill(text);
      if (filled) texts.emplace_back(text, *filled);
      return filled;
    }));
    lock.lock();
    if (expected) making_.erase(*expected);
    made_.notify_all();
    if (!run) return run;
    entries_.push_front({part, std::move(texts), *run});
    if (entries_.size() > kMost) entries_.pop_back();
    return run;
  }

 private:
  using Texts = std::vector<std::pair<std::string, std::string>>;  ///< in the file, and filled in
  using Key = std::pair<std::string, Texts>;                       ///< with the part
  struct Entry {
    std::string part;
    Texts texts;
    Shared run;
  };

  Shared find(const std::string& part, const YamlFill& fill) {
    const auto is_alike = [&](const Texts::value_type& text) {
      const Result<std::string> filled = fill(text.first);
      return filled && *filled == text.second;
    };
    const auto known = std::ranges::find_if(entries_, [&](const Entry& entry) {
      return entry.part == part && std::ranges::all_of(entry.texts, is_alike);
    });
    if (known == entries_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, known);
    return known->run;
  }

  /// What a run will read if it reads the same texts as the last one of its part.
  std::optional<Key> expected_at(const std::string& part, const YamlFill& fill) const {
    const auto last = std::ranges::find(entries_, part, &Entry::part);
    if (last == entries_.end()) return std::nullopt;
    Key key(part, last->texts);
    for (auto& [text, filled] : key.second) {
      Result<std::string> here = fill(text);
      if (!here) return std::nullopt;
      filled = std::move(*here);
    }
    return key;
  }

  static constexpr std::size_t kMost = 32;
  std::mutex mutex_;
  std::condition_variable made_;
  std::set<Key> making_;
  std::list<Entry> entries_;  ///< the last used first
};

}  // namespace rehearse::cli
