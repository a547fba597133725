#include "profiler/capture/blocks.h"

#include <array>
#include <cstring>

namespace rehearse::capture {
namespace {

std::optional<std::uint32_t> read_u32(Decoder& in) {
  const std::uint64_t value = in.varint();
  if (!in.ok() || value > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(value);
}

/// Reads a value that may be absent, which the file stores plus one (0: none).
std::optional<std::uint32_t> read_optional(Decoder& in) {
  const std::uint64_t value = in.varint();
  if (value == 0 || value > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(value - 1);
}

/// Decodes one column into `values`. False if it is invalid.
bool decode_column(Decoder& in, std::span<std::uint64_t> values) {
  switch (static_cast<Encoding>(in.byte())) {
    case Encoding::kConstant: {
      const std::uint64_t value = in.varint();
      for (std::uint64_t& each : values) each = value;
      break;
    }
    case Encoding::kPlain:
      for (std::uint64_t& value : values) value = in.varint();
      break;
    case Encoding::kDelta: {
      std::uint64_t last = 0;
      for (std::uint64_t& value : values)
        value = last += static_cast<std::uint64_t>(unzigzag(in.varint()));
      break;
    }
    default: return false;
  }
  return in.ok();
}

/// Stores the value in its field. False if it does not fit.
bool set_column(Row& row, Column column, std::uint64_t value) {
  const auto narrow = [&](std::uint32_t& field) {
    field = static_cast<std::uint32_t>(value);
    return value <= UINT32_MAX;
  };
  switch (column) {
    case Column::kKind:
      row.kind = static_cast<RowKind>(value);
      return value >= 1 && value < kRowKinds;
    case Column::kTime: row.time = value; return true;
    case Column::kSpan: row.span = value; return true;
    case Column::kText: return narrow(row.text);
    case Column::kDomain: return narrow(row.domain);
    case Column::kCategory: return narrow(row.category);
    case Column::kPayloadKind:
      row.payload_kind = static_cast<PayloadKind>(value);
      return value < kPayloadKinds;
    case Column::kPayload: row.payload = value; return true;
    case Column::kGroup: row.group = value; return true;
    case Column::kPeer: return narrow(row.peer);
    case Column::kReduction: return narrow(row.reduction);
  }
  return false;
}

}  // namespace

bool BlockReader::fill(void* into, std::size_t n) {
  const std::size_t got = read_({static_cast<char*>(into), n});
  next_offset_ += got;
  if (got == n) return true;
  ended_ = true;
  cut_ = cut_ || got > 0;
  return false;
}

BlockReader::Begin BlockReader::begin() {
  FileHeader header;
  if (!fill(&header, sizeof header)) return Begin::kTooShort;
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return Begin::kOther;
  if (header.version != kFormatVersion) return Begin::kUnknownVersion;
  return Begin::kCapture;
}

std::optional<Block> BlockReader::next() {
  while (!ended_) {
    offset_ = next_offset_;
    BlockHeader header;
    if (!fill(&header, sizeof header)) break;
    if (header.bytes > kMaxBlockBytes) {
      ++damaged_;
      ended_ = true;
      break;
    }
    payload_.resize(header.bytes);
    if (!fill(payload_.data(), payload_.size())) {
      cut_ = true;
      break;
    }
    const auto type = static_cast<BlockType>(header.type);
    if (block_crc(type, payload_.data(), header.bytes) == header.crc) return Block{type, payload_};
    ++damaged_;
  }
  return std::nullopt;
}

std::optional<ProcessFacts> decode_process(std::span<const unsigned char> payload) {
  Decoder in(payload);
  ProcessFacts facts;
  facts.host = in.text();
  for (std::uint32_t* number : {&facts.process, &facts.parent, &facts.forked_from}) {
    const auto value = read_u32(in);
    if (!value) return std::nullopt;
    *number = *value;
  }
  facts.rank = read_optional(in);
  facts.world_size = read_optional(in);
  facts.local_rank = read_optional(in);
  facts.realtime_ns = in.varint();
  facts.monotonic_ns = in.varint();
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left)
    facts.command.emplace_back(in.text());
  if (in.ok() && !in.done()) {
    const auto cpus = read_u32(in);
    if (!cpus) return std::nullopt;
    facts.cpus = *cpus;
  }
  if (!in.done()) return std::nullopt;
  return facts;
}

std::optional<std::vector<NumberedText>> decode_texts(std::span<const unsigned char> payload) {
  Decoder in(payload);
  std::vector<NumberedText> texts;
  while (in.ok() && !in.done()) {
    const auto number = read_u32(in);
    if (!number) return std::nullopt;
    texts.push_back({*number, in.text()});
  }
  if (!in.ok()) return std::nullopt;
  return texts;
}

std::optional<std::vector<ThreadName>> decode_threads(std::span<const unsigned char> payload) {
  Decoder in(payload);
  std::vector<ThreadName> names;
  while (in.ok() && !in.done()) {
    const auto thread = read_u32(in);
    const auto text = read_u32(in);
    if (!thread || !text) return std::nullopt;
    names.push_back({*thread, *text});
  }
  if (!in.ok()) return std::nullopt;
  return names;
}

std::optional<ClockPair> decode_clock(std::span<const unsigned char> payload) {
  Decoder in(payload);
  const ClockPair clock{.realtime_ns = in.varint(), .monotonic_ns = in.varint()};
  if (!in.done()) return std::nullopt;
  return clock;
}

std::optional<std::uint64_t> decode_loss(std::span<const unsigned char> payload) {
  Decoder in(payload);
  const std::uint64_t rows = in.varint();
  if (!in.done()) return std::nullopt;
  return rows;
}

std::optional<StepCounts> decode_steps(std::span<const unsigned char> payload) {
  Decoder in(payload);
  const StepCounts counts{.seen = in.varint(),
                          .kept = in.varint(),
                          .in_part = in.varint(),
                          .gone = in.varint(),
                          .rows = in.varint()};
  if (!in.done()) return std::nullopt;
  return counts;
}

std::optional<Trailer> decode_trailer(std::span<const unsigned char> payload) {
  Decoder in(payload);
  const Trailer trailer{.rows = in.varint(),
                        .lost = in.varint(),
                        .clock = {.realtime_ns = in.varint(), .monotonic_ns = in.varint()}};
  if (!in.done()) return std::nullopt;
  return trailer;
}

bool decode_rows(std::span<const unsigned char> payload, RowsBlock& into) {
  Decoder in(payload);
  const auto thread = read_u32(in);
  const std::uint64_t n = in.varint();
  if (!thread || n > kMaxBlockRows) return false;
  into.thread = *thread;
  into.rows.assign(static_cast<std::size_t>(n), Row{});
  std::array<std::uint64_t, kMaxBlockRows> values;
  for (unsigned column = 0; column < kColumns; ++column) {
    if (!decode_column(in, std::span(values).first(into.rows.size()))) return false;
    for (std::size_t i = 0; i < into.rows.size(); ++i)
      if (!set_column(into.rows[i], static_cast<Column>(column), values[i])) return false;
  }
  return in.done();
}

bool decode_records(std::span<const unsigned char> payload, RecordsBlock& into) {
  Decoder in(payload);
  const std::uint64_t table = in.varint();
  const auto thread = read_u32(in);
  const std::uint64_t n = in.varint(), fields = in.varint();
  if (!thread || table == 0 || table > UINT8_MAX || n > kMaxBlockRows || fields > kMaxFields)
    return false;
  into.table = static_cast<TableId>(table);
  into.thread = *thread;
  into.count = static_cast<std::size_t>(n);
  into.fields = static_cast<std::size_t>(fields);
  into.values.resize(into.count * into.fields);
  const std::span<std::uint64_t> values(into.values);
  for (std::size_t field = 0; field < into.fields; ++field)
    if (!decode_column(in, values.subspan(field * into.count, into.count))) return false;
  return in.done();
}

}  // namespace rehearse::capture
