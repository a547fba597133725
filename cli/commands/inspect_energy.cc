#include "cli/commands/inspect_energy.h"

#include <cmath>

#include <fmt/core.h>

namespace rehearse::cli {
namespace {

using replay::BoardEnergy;

// With a larger error, the counter and the power readings do not describe the same energy.
constexpr double kCounterAgrees = 0.05;

double seconds(const BoardEnergy& board) { return (board.last - board.first).seconds().s(); }

/// The excess of the energy from power readings over the counter, as a share.
std::optional<double> counter_error(const BoardEnergy& board) {
  if (!board.counted || board.counted->j() <= 0) return std::nullopt;
  return *board.counted_by_power / *board.counted - 1;
}

std::string note(const BoardEnergy& board) {
  std::string text;
  if (board.shared) text = "shared: an estimate";
  if (const auto error = counter_error(board); error && std::abs(*error) > kCounterAgrees)
    text += fmt::format("{}its energy counter differs by {:+.0f} %", text.empty() ? "" : "; ",
                        *error * 100);
  return text;
}

}  // namespace

Value energy_fields(const replay::Energy& energy) {
  Value boards = Value::array();
  for (const BoardEnergy& board : energy.boards) {
    const auto joules = [](Joules j) { return bare(j); };
    Value row = {
        {"", "board", board.host.empty() ? board.uuid : board.host + " " + board.uuid},
        {"host", board.host},
        {"uuid", board.uuid},
        {"name", board.name},
        {"seconds", "read for", bare(Seconds::s(seconds(board))), in::kSeconds},
        {"", "mean", board.total.j() / seconds(board), in::kWatts},
        {"energy_j", "energy", joules(board.total), in::kJoules},
        {"ops_j", "of it ops", joules(board.ops), in::kJoules},
        {"idle_j", "idle", joules(board.idle), in::kJoules},
        {"other_j", board.other.j() > 0 ? "not recorded" : "", joules(board.other), in::kJoules},
        {"shared", board.shared},
        {"", "note", note(board), {}, kProse}};
    if (board.counted) {
      row["counter_j"] = board.counted->j();
      row["counter_by_power_j"] = board.counted_by_power->j();
    }
    boards.push_back(std::move(row));
  }
  return {{"boards", "Energy of the boards", std::move(boards)}};
}

}  // namespace rehearse::cli
