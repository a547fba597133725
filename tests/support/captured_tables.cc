#include "tests/support/captured_tables.h"

#include <algorithm>
#include <fstream>

namespace rehearse::test {
namespace {

namespace fs = std::filesystem;
using capture::BlockType;

CapturedTables read_tables(const fs::path& path) {
  CapturedTables tables;
  std::ifstream file(path, std::ios::binary);
  capture::BlockReader reader([&](std::span<char> into) {
    file.read(into.data(), static_cast<std::streamsize>(into.size()));
    return static_cast<std::size_t>(file.gcount());
  });
  if (reader.begin() != capture::BlockReader::Begin::kCapture) return tables;
  while (const auto block = reader.next()) {
    if (block->type == BlockType::kProcess)
      tables.process = capture::decode_process(block->payload).value();
    if (block->type == BlockType::kTexts) {
      const std::vector<capture::NumberedText> texts =
          capture::decode_texts(block->payload).value();
      for (const capture::NumberedText& text : texts) tables.texts[text.number] = text.text;
    }
    if (block->type == BlockType::kLoss) tables.lost = capture::decode_loss(block->payload).value();
    if (block->type == BlockType::kTrailer) {
      tables.lost = capture::decode_trailer(block->payload).value().lost;
      tables.ended = true;
    }
    if (capture::RowsBlock rows;
        block->type == BlockType::kRows && capture::decode_rows(block->payload, rows))
      tables.rows.insert(tables.rows.end(), rows.rows.begin(), rows.rows.end());
    if (capture::RecordsBlock records;
        block->type == BlockType::kRecords && capture::decode_records(block->payload, records))
      tables.blocks.push_back(std::move(records));
  }
  tables.damaged = reader.damaged();
  return tables;
}

}  // namespace

std::string CapturedTables::fact(const std::string& key) const {
  std::string values;
  for (const auto& fact : all<capture::FactRecord>())
    if (text(fact.key) == key) values += text(fact.value);
  return values;
}

std::vector<CapturedTables> captured_tables(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == capture::kCaptureSuffix) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<CapturedTables> all;
  for (const fs::path& file : files) all.push_back(read_tables(file));
  return all;
}

}  // namespace rehearse::test
