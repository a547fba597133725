// The contents of capture files, table by table, as the library wrote them and before any importer.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "profiler/capture/blocks.h"

namespace rehearse::test {

/// One capture file.
struct CapturedTables {
  capture::ProcessFacts process;
  std::map<std::uint64_t, std::string> texts;
  std::vector<capture::RecordsBlock> blocks;
  std::vector<capture::Row> rows;
  std::uint64_t lost = 0;
  bool ended = false;
  std::uint64_t damaged = 0;

  template <class Record>
  std::vector<Record> all() const {
    std::vector<Record> records;
    for (const capture::RecordsBlock& block : blocks)
      for (std::size_t i = 0; block.table == Record::kTable && i < block.count; ++i)
        records.push_back(block.at<Record>(i));
    return records;
  }
  /// The text; "?" if the file lacks it, which must not happen.
  std::string text(std::uint64_t number) const {
    const auto at = texts.find(number);
    return number == 0 ? "" : at == texts.end() ? "?" : at->second;
  }
  /// The value of a fact; if there are several, all of them concatenated.
  std::string fact(const std::string& key) const;
};

/// The files of a folder, by name.
std::vector<CapturedTables> captured_tables(const std::filesystem::path& folder);

}  // namespace rehearse::test
