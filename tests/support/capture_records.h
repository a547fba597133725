// Reads the records of a capture folder as they were written, without an importer.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "profiler/capture/blocks.h"

namespace rehearse::test {

/// The contents of one capture file.
class CaptureRecords {
 public:
  explicit CaptureRecords(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    capture::BlockReader reader([&](std::span<char> into) {
      in.read(into.data(), static_cast<std::streamsize>(into.size()));
      return static_cast<std::size_t>(in.gcount());
    });
    reader.begin();
    while (const auto block = reader.next()) {
      if (block->type == capture::BlockType::kTexts) {
        const auto texts = capture::decode_texts(block->payload);
        for (const capture::NumberedText& text : *texts) texts_[text.number] = text.text;
      }
      if (block->type == capture::BlockType::kLoss) lost_ = *capture::decode_loss(block->payload);
      if (block->type != capture::BlockType::kRecords) continue;
      capture::RecordsBlock records;
      if (capture::decode_records(block->payload, records)) blocks_.push_back(std::move(records));
    }
  }

  /// The records of one table, thread by thread.
  template <class Record>
  std::vector<Record> of() const {
    std::vector<Record> found;
    for (const capture::RecordsBlock& block : blocks_)
      for (std::size_t i = 0; block.table == Record::kTable && i < block.count; ++i)
        found.push_back(block.at<Record>(i));
    return found;
  }
  std::string text(std::uint64_t number) const {
    const auto at = texts_.find(number);
    return at == texts_.end() ? "" : at->second;
  }
  /// The values of the facts with this key, concatenated.
  std::string facts(const std::string& key) const {
    std::string all;
    for (const capture::FactRecord& fact : of<capture::FactRecord>())
      if (text(fact.key) == key) all += text(fact.value) + "\n";
    return all;
  }
  std::uint64_t lost() const { return lost_; }

 private:
  std::map<std::uint64_t, std::string> texts_;
  std::vector<capture::RecordsBlock> blocks_;
  std::uint64_t lost_ = 0;
};

/// The files of a capture folder, by name.
inline std::vector<CaptureRecords> records_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == capture::kCaptureSuffix) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<CaptureRecords> records;
  for (const std::filesystem::path& file : files) records.emplace_back(file);
  return records;
}

}  // namespace rehearse::test
