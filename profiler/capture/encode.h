// Encoding: consecutive blocks in memory, and their columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "profiler/capture/format.h"

namespace rehearse::capture {

/// Consecutive blocks in memory that the caller owns. REQUIRES: the added data fits.
class BlockBuffer {
 public:
  explicit BlockBuffer(void* memory) : begin_(static_cast<unsigned char*>(memory)) {}

  /// `fill(Encoder&)` writes the payload.
  template <class Fill>
  void add(BlockType type, Fill fill) {
    unsigned char* payload = begin_ + size_ + sizeof(BlockHeader);
    Encoder out(payload);
    fill(out);
    const auto bytes = static_cast<std::uint32_t>(out.size());
    const BlockHeader header = {.type = static_cast<std::uint32_t>(type),
                                .bytes = bytes,
                                .crc = block_crc(type, payload, bytes)};
    std::memcpy(begin_ + size_, &header, sizeof header);
    size_ += sizeof header + bytes;
  }

  const unsigned char* data() const { return begin_; }
  std::size_t size() const { return size_; }
  void clear() { size_ = 0; }
  /// Drops all but the first `size` bytes.
  void cut(std::size_t size) { size_ = size; }

 private:
  unsigned char* begin_;
  std::size_t size_ = 0;
};

inline std::uint64_t value_of(const Row& row, Column column) {
  switch (column) {
    case Column::kKind: return static_cast<std::uint64_t>(row.kind);
    case Column::kTime: return row.time;
    case Column::kSpan: return row.span;
    case Column::kText: return row.text;
    case Column::kDomain: return row.domain;
    case Column::kCategory: return row.category;
    case Column::kPayloadKind: return static_cast<std::uint64_t>(row.payload_kind);
    case Column::kPayload: return row.payload;
    case Column::kGroup: return row.group;
    case Column::kPeer: return row.peer;
    case Column::kReduction: return row.reduction;
  }
  return 0;
}

/// Writes a column in the shortest of the three encodings.
inline void encode_column(Encoder& out, const std::uint64_t* values, std::size_t n) {
  std::size_t same = 1;  // most columns are constant, and then cost only this check
  while (same < n && values[same] == values[0]) ++same;
  if (same == n) {
    out.byte(static_cast<unsigned>(Encoding::kConstant));
    out.varint(values[0]);
    return;
  }
  std::size_t plain = 0, delta = 0;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < n; ++i) {
    plain += varint_bytes(values[i]);
    delta += varint_bytes(zigzag(static_cast<std::int64_t>(values[i] - before)));
    before = values[i];
  }
  if (plain <= delta) {
    out.byte(static_cast<unsigned>(Encoding::kPlain));
    for (std::size_t i = 0; i < n; ++i) out.varint(values[i]);
  } else {
    out.byte(static_cast<unsigned>(Encoding::kDelta));
    before = 0;
    for (std::size_t i = 0; i < n; ++i) {
      out.varint(zigzag(static_cast<std::int64_t>(values[i] - before)));
      before = values[i];
    }
  }
}

template <unsigned column>
void encode_column_of(Encoder& out, const Row* const* rows, std::size_t n) {
  std::uint64_t values[kMaxBlockRows];
  for (std::size_t i = 0; i < n; ++i) values[i] = value_of(*rows[i], static_cast<Column>(column));
  encode_column(out, values, n);
}

/// Writes a kRows payload. REQUIRES: n <= kMaxBlockRows.
inline void encode_rows(Encoder& out, std::uint32_t thread, const Row* const* rows, std::size_t n) {
  out.varint(thread);
  out.varint(n);
  [&]<unsigned... column>(std::integer_sequence<unsigned, column...>) {
    (encode_column_of<column>(out, rows, n), ...);
  }
  (std::make_integer_sequence<unsigned, kColumns>());
}

}  // namespace rehearse::capture
