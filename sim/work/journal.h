// Results that outlive the program that found them: a SQLite file that a killed run goes on from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "sim/base/result.h"

namespace rehearse::work {

/// One item of a work, and what came out.
struct Finished {
  std::size_t item;
  Result<std::string> result;
};

class Journal {
 public:
  /// Opens a journal, or begins one where there is no file. `key` stands for all that results
  /// depend on, and `about` says it for people. Fails on a file that is no journal, is damaged,
  /// belongs to another key, is open in another process, or cannot be written; it is then left as
  /// it was.
  static Result<Journal> open(const std::filesystem::path& path, const std::string& key,
                              const std::string& about);
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) = delete;
  ~Journal();

  const std::filesystem::path& path() const { return path_; }
  /// What it held of a part when it was opened, by item.
  const std::map<std::size_t, std::string>& held(const std::string& part) const;
  /// How many results it holds by now, of all parts.
  std::size_t size() const;
  /// Adds results; errors are not kept. They outlive the process from here on, though not a machine
  /// that loses its power just then: then the last of them are missing, and nothing is damaged.
  Status keep(const std::string& part, std::span<const Finished> finished);
  /// Closes and removes it: what it was for is done.
  Status remove();

 private:
  struct State;
  Journal(std::filesystem::path path, std::unique_ptr<State> state);
  std::filesystem::path path_;
  std::unique_ptr<State> state_;
};

}  // namespace rehearse::work
