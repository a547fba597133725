// Builds capture files block by block, including contents that no real program writes on demand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/capture/blocks.h"
#include "profiler/capture/format.h"

namespace rehearse::test {

/// The start of recordings in tests, ns since 1970.
inline constexpr std::uint64_t kBase = 1700000000000000000;

class CaptureBuilder {
 public:
  CaptureBuilder() {
    capture::FileHeader header{.magic = {}, .version = capture::kFormatVersion, .reserved = 0};
    std::memcpy(header.magic, capture::kMagic, sizeof header.magic);
    bytes_.assign(reinterpret_cast<const char*>(&header), sizeof header);
  }

  CaptureBuilder& process(const capture::ProcessFacts& facts) {
    const auto plus_one = [](const auto& value) { return value ? std::uint64_t{*value} + 1 : 0; };
    return block(capture::BlockType::kProcess, [&](capture::Encoder& out) {
      out.text(facts.host);
      out.varint(facts.process);
      out.varint(facts.parent);
      out.varint(facts.forked_from);
      out.varint(plus_one(facts.rank));
      out.varint(plus_one(facts.world_size));
      out.varint(plus_one(facts.local_rank));
      out.varint(facts.realtime_ns);
      out.varint(facts.monotonic_ns);
      out.varint(facts.command.size());
      for (const std::string& argument : facts.command) out.text(argument);
      if (facts.cpus > 0) out.varint(facts.cpus);
    });
  }
  CaptureBuilder& text(std::uint32_t number, std::string_view content) {
    return block(capture::BlockType::kTexts, [&](capture::Encoder& out) {
      out.varint(number);
      out.text(content);
    });
  }
  CaptureBuilder& clock(std::uint64_t realtime_ns, std::uint64_t monotonic_ns) {
    return numbers(capture::BlockType::kClock, {realtime_ns, monotonic_ns});
  }
  CaptureBuilder& loss(std::uint64_t rows) { return numbers(capture::BlockType::kLoss, {rows}); }
  CaptureBuilder& trailer(std::uint64_t rows, std::uint64_t lost) {
    return numbers(capture::BlockType::kTrailer, {rows, lost, 0, 0});
  }
  CaptureBuilder& numbers(capture::BlockType type, const std::vector<std::uint64_t>& values) {
    return block(type, [&](capture::Encoder& out) {
      for (const std::uint64_t value : values) out.varint(value);
    });
  }
  /// The rows of one thread, with all columns in plain encoding.
  CaptureBuilder& rows(std::uint32_t thread, const std::vector<capture::Row>& rows) {
    using capture::Row;
    return block(capture::BlockType::kRows, [&](capture::Encoder& out) {
      out.varint(thread);
      out.varint(rows.size());
      const auto column = [&](auto value) {
        out.byte(static_cast<unsigned>(capture::Encoding::kPlain));
        for (const Row& row : rows) out.varint(static_cast<std::uint64_t>(value(row)));
      };
      column([](const Row& row) { return row.kind; });
      column([](const Row& row) { return row.time; });
      column([](const Row& row) { return row.span; });
      column([](const Row& row) { return row.text; });
      column([](const Row& row) { return row.domain; });
      column([](const Row& row) { return row.category; });
      column([](const Row& row) { return row.payload_kind; });
      column([](const Row& row) { return row.payload; });
      column([](const Row& row) { return row.group; });
      column([](const Row& row) { return row.peer; });
      column([](const Row& row) { return row.reduction; });
    });
  }
  /// The records of one thread, with all fields in plain encoding.
  template <class Record>
  CaptureBuilder& records(std::uint32_t thread, const std::vector<Record>& records) {
    return block(capture::BlockType::kRecords, [&](capture::Encoder& out) {
      out.varint(static_cast<std::uint64_t>(Record::kTable));
      out.varint(thread);
      out.varint(records.size());
      out.varint(capture::kFieldsOf<Record>);
      for (unsigned field = 0; field < capture::kFieldsOf<Record>; ++field) {
        out.byte(static_cast<unsigned>(capture::Encoding::kPlain));
        for (const Record& record : records)
          out.varint(reinterpret_cast<const std::uint64_t*>(&record)[field]);
      }
    });
  }
  template <class Fill>
  CaptureBuilder& block(capture::BlockType type, Fill fill) {
    std::vector<unsigned char> payload(1 << 16);
    capture::Encoder out(payload.data());
    fill(out);
    const auto n = static_cast<std::uint32_t>(out.size());
    const capture::BlockHeader header{.type = static_cast<std::uint32_t>(type),
                                      .bytes = n,
                                      .crc = capture::block_crc(type, payload.data(), n)};
    bytes_.append(reinterpret_cast<const char*>(&header), sizeof header);
    bytes_.append(reinterpret_cast<const char*>(payload.data()), n);
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace rehearse::test
