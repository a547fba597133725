#include "profiler/ingest/capture_power.h"

namespace rehearse::ingest {
namespace {

using namespace trace;
using capture::RecordsBlock;
using capture::TableId;

// Beyond, a number is damage.
constexpr std::uint64_t kMostPower = 100'000'000;  // mW: a hundred times what a board draws
constexpr std::uint64_t kMostEnergy = std::uint64_t{1} << 52;  // mJ
constexpr std::uint64_t kMostClock = 100'000'000'000;          // Hz

std::optional<std::uint32_t> known(std::uint64_t number, std::uint64_t most) {
  if (number == 0 || number > most) return std::nullopt;
  return static_cast<std::uint32_t>(number);
}
std::optional<std::uint32_t> mhz(std::uint64_t hz) {
  return hz > kMostClock ? std::nullopt : known(hz / 1'000'000, UINT32_MAX);
}

}  // namespace

std::string CapturePower::text(std::uint64_t number) {
  const auto name = number == 0 ? std::nullopt : lookup_.name(number);
  return name ? std::string(recorder_.names()[*name]) : std::string();
}

bool CapturePower::read(const RecordsBlock& block) {
  switch (block.table) {
    case TableId::kBoard:
      for (std::size_t i = 0; i < block.count; ++i) read(block.at<capture::BoardRecord>(i));
      return true;
    case TableId::kPower:
      for (std::size_t i = 0; i < block.count; ++i) read(block.at<capture::PowerRecord>(i));
      return true;
    case TableId::kDevice:
      for (std::size_t i = 0; i < block.count; ++i) note(block.at<capture::DeviceRecord>(i));
      return false;
    default: return false;
  }
}

void CapturePower::read(const capture::BoardRecord& record) {
  Board board{.uuid = text(record.uuid),
              .name = text(record.name),
              .instance = text(record.instance),
              .multiprocessors = known(record.multiprocessors, UINT32_MAX),
              .all_multiprocessors = known(record.all_multiprocessors, UINT32_MAX)};
  if (board.uuid.empty()) return recorder_.problem(ProblemKind::kMissingField);
  const std::string uuid = board.uuid;
  boards_.try_emplace(uuid, recorder_.board(std::move(board)));
}

void CapturePower::read(const capture::PowerRecord& record) {
  const std::string uuid = text(record.uuid);
  if (uuid.empty()) return recorder_.problem(ProblemKind::kMissingField);
  const auto time = lookup_.time(record.time);
  if (!time || record.power > kMostPower || record.energy > kMostEnergy)
    return recorder_.problem(ProblemKind::kAbsurdNumber);
  auto board = boards_.find(uuid);
  if (board == boards_.end())  // its record was lost
    board = boards_.emplace(uuid, recorder_.board({.uuid = uuid})).first;
  PowerReading reading{.board = board->second,
                       .time = *time,
                       .core_mhz = mhz(record.core_clock),
                       .memory_mhz = mhz(record.memory_clock),
                       .celsius = known(record.temperature, 1000)};
  if (record.power != 0) reading.power = Watts::w(static_cast<double>(record.power) * 1e-3);
  if (record.energy != 0) reading.energy = Joules::j(static_cast<double>(record.energy) * 1e-3);
  if (record.clock_reasons != 0) reading.clock_reasons = record.clock_reasons;
  recorder_.add(reading);
}

void CapturePower::note(const capture::DeviceRecord& record) {
  const std::string uuid = text(record.uuid);
  if (uuid.empty() || record.device > UINT16_MAX) return;
  devices_.try_emplace(uuid, Device{static_cast<std::uint32_t>(record.device),
                                    known(record.multiprocessors, UINT32_MAX)});
}

void CapturePower::finish() {
  for (Board& board : recorder_.boards()) {
    const auto at = devices_.find(board.instance.empty() ? board.uuid : board.instance);
    if (at == devices_.end()) continue;
    board.device = at->second.ordinal;
    if (!board.multiprocessors) board.multiprocessors = at->second.multiprocessors;
  }
}

}  // namespace rehearse::ingest
