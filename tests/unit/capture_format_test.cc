#include <limits>

#include <catch2/catch.hpp>

#include "profiler/capture/blocks.h"
#include "profiler/capture/format.h"
#include "tests/support/capture_builder.h"

namespace rehearse::capture {
namespace {

using test::CaptureBuilder;

BlockReader reader_of(std::string_view bytes) {
  return BlockReader([left = bytes](std::span<char> into) mutable {
    const std::size_t n = std::min(into.size(), left.size());
    left.copy(into.data(), n);
    left.remove_prefix(n);
    return n;
  });
}

TEST_CASE("the checksum is CRC-32C") {
  // The check value of the CRC catalogues, and RFC 3720 B.4: 32 zero bytes, 32 bytes of ones.
  CHECK(crc32c(0, "123456789", 9) == 0xE3069283);
  CHECK(crc32c(0, std::string(32, '\0').data(), 32) == 0x8A9136AA);
  CHECK(crc32c(0, std::string(32, '\xff').data(), 32) == 0x62A8AB43);
  CHECK(crc32c(crc32c(0, "1234", 4), "56789", 5) == 0xE3069283);
}

TEST_CASE("numbers come back as they were written") {
  const std::uint64_t edges[] = {0,     1,   127,        128,        16383,
                                 16384, 300, 1ull << 62, 1ull << 63, UINT64_MAX};
  unsigned char memory[kMaxVarint];
  for (const std::uint64_t value : edges) {
    Encoder out(memory);
    out.varint(value);
    CHECK(out.size() == varint_bytes(value));
    Decoder in({memory, out.size()});
    CHECK(in.varint() == value);
    CHECK(in.done());
    for (std::size_t cut = 0; cut < out.size(); ++cut) {
      Decoder part({memory, cut});
      CHECK(part.varint() == 0);
      CHECK_FALSE(part.ok());
    }
  }
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1}, INT64_MIN, INT64_MAX})
    CHECK(unzigzag(zigzag(value)) == value);
  CHECK(zigzag(-1) == 1);
  CHECK(zigzag(1) == 2);
}

TEST_CASE("no varint is longer than 64 bits") {
  const unsigned char eleven[] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01};
  const unsigned char too_large[] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02};
  for (const std::span<const unsigned char> bytes :
       {std::span<const unsigned char>(eleven), std::span<const unsigned char>(too_large)}) {
    Decoder in(bytes);
    in.varint();
    CHECK_FALSE(in.ok());
  }
}

TEST_CASE("rows come back as they were written, in every encoding") {
  std::vector<Row> rows;
  for (std::uint32_t i = 0; i < 100; ++i)
    rows.push_back({.time = 1700000000000000000u + i * 1000u,
                    .span = i % 7,
                    .payload = UINT64_MAX - i,
                    .group = 5,
                    .text = i % 3,
                    .domain = UINT32_MAX,
                    .category = i,
                    .peer = 1,
                    .reduction = 2,
                    .kind = i % 2 ? RowKind::kMark : RowKind::kRange,
                    .payload_kind = PayloadKind::kDouble});
  CaptureBuilder builder;
  builder.rows(77, rows);
  BlockReader blocks = reader_of(builder.bytes());
  REQUIRE(blocks.begin() == BlockReader::Begin::kCapture);
  const auto block = blocks.next();
  REQUIRE(block);
  RowsBlock read;
  REQUIRE(decode_rows(block->payload, read));
  CHECK(read.thread == 77);
  REQUIRE(read.rows.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(read.rows[i].time == rows[i].time);
    CHECK(read.rows[i].span == rows[i].span);
    CHECK(read.rows[i].payload == rows[i].payload);
    CHECK(read.rows[i].text == rows[i].text);
    CHECK(read.rows[i].category == rows[i].category);
    CHECK(read.rows[i].kind == rows[i].kind);
    CHECK(read.rows[i].payload_kind == PayloadKind::kDouble);
    CHECK(read.rows[i].domain == UINT32_MAX);
  }
}

TEST_CASE("a block of rows with values out of range is refused") {
  const auto decodes = [](const Row& row) {
    CaptureBuilder builder;
    builder.rows(1, {row});
    BlockReader blocks = reader_of(builder.bytes());
    blocks.begin();
    RowsBlock read;
    return decode_rows(blocks.next()->payload, read);
  };
  CHECK(decodes({.kind = RowKind::kCommunicator}));
  CHECK_FALSE(decodes({.kind = static_cast<RowKind>(kRowKinds)}));
  CHECK_FALSE(decodes({.kind = static_cast<RowKind>(0)}));
  CHECK_FALSE(decodes({.payload_kind = static_cast<PayloadKind>(kPayloadKinds)}));
}

TEST_CASE("damaged blocks are left out, and the blocks after them are read") {
  CaptureBuilder builder;
  builder.loss(1).loss(2).loss(3);
  std::string bytes = builder.bytes();
  const std::size_t second = sizeof(FileHeader) + sizeof(BlockHeader) + 1;
  bytes[second + sizeof(BlockHeader)] ^= 0x40;  // the payload of the second
  BlockReader blocks = reader_of(bytes);
  REQUIRE(blocks.begin() == BlockReader::Begin::kCapture);
  CHECK(decode_loss(blocks.next()->payload) == 1);
  CHECK(decode_loss(blocks.next()->payload) == 3);
  CHECK_FALSE(blocks.next());
  CHECK(blocks.damaged() == 1);
  CHECK_FALSE(blocks.cut());
}

TEST_CASE("an impossible length ends the walk") {
  CaptureBuilder builder;
  builder.loss(1).loss(2);
  std::string bytes = builder.bytes();
  bytes[sizeof(FileHeader) + offsetof(BlockHeader, bytes) + 3] = '\x7f';
  BlockReader blocks = reader_of(bytes);
  REQUIRE(blocks.begin() == BlockReader::Begin::kCapture);
  CHECK_FALSE(blocks.next());
  CHECK(blocks.damaged() == 1);
}

TEST_CASE("a file that is not a capture is recognised") {
  CHECK(reader_of("").begin() == BlockReader::Begin::kTooShort);
  CHECK(reader_of("{\"traceEvents\": [").begin() == BlockReader::Begin::kOther);
  std::string newer = CaptureBuilder().bytes();
  newer[offsetof(FileHeader, version)] = 2;
  CHECK(reader_of(newer).begin() == BlockReader::Begin::kUnknownVersion);
}

}  // namespace
}  // namespace rehearse::capture
