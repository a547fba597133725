// Results that outlive the program: a SQLite file from which a killed run resumes.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "sim/base/result.h"

namespace rehearse::work {

/// One item of a work, with its result.
struct Finished {
  std::size_t item;
  Result<std::string> result;
};

/// `held`, `size` and `keep` may be called by several threads at once.
class Journal {
 public:
  /// Opens a journal, or creates one if there is no file. `key` identifies everything that results
  /// depend on, and `about` describes it for people. Fails on a file that is not a journal, is
  /// damaged, belongs to another key, is open in another process, or cannot be written; the file is
  /// then unchanged.
  static Result<Journal> open(const std::filesystem::path& path, const std::string& key,
                              const std::string& about);
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) = delete;
  ~Journal();

  const std::filesystem::path& path() const { return path_; }
  /// The results of a part at the time of opening, by item.
  const std::map<std::size_t, std::string>& held(const std::string& part) const;
  /// The number of results that it holds by now, over all parts.
  std::size_t size() const;
  /// Adds results; errors are not kept. From here on the results outlive the process. If the
  /// machine loses power just then, the last of them may be missing, but nothing is damaged.
  Status keep(const std::string& part, std::span<const Finished> finished);
  /// Closes and removes it, after its purpose is fulfilled.
  Status remove();

 private:
  struct State;
  Journal(std::filesystem::path path, std::unique_ptr<State> state);
  std::filesystem::path path_;
  std::unique_ptr<State> state_;
};

}  // namespace rehearse::work
