#include "cli/commands/inspect_energy.h"

#include <cmath>

#include <fmt/core.h>

#include "cli/output/table.h"

namespace rehearse::cli {
namespace {

using replay::BoardEnergy;

// Beyond, the counter and the readings of power do not tell of the same thing.
constexpr double kCounterAgrees = 0.05;

double seconds(const BoardEnergy& board) { return (board.last - board.first).seconds().s(); }

/// By how much the readings of power give more than the counter, as a share.
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

std::string joules(Joules energy) {
  const double j = energy.j();
  if (j != 0 && std::abs(j) < 0.1) return fmt::format("{:.3g}", j);
  return fmt::format("{:.{}f}", j, std::abs(j) < 10 ? 3 : std::abs(j) < 1000 ? 1 : 0);
}

std::string energy_text(const replay::Energy& energy) {
  Table table({{"board", Align::kLeft},
               {"read for (s)"},
               {"mean (W)"},
               {"energy (J)"},
               {"of it ops (J)"},
               {"idle (J)"},
               {"not recorded (J)"},
               {"note", Align::kLeft}});
  for (const BoardEnergy& board : energy.boards)
    table.add({board.host.empty() ? board.uuid : fmt::format("{} {}", board.host, board.uuid),
               fmt::format("{:.3f}", seconds(board)),
               fmt::format("{:.1f}", board.total.j() / seconds(board)), joules(board.total),
               joules(board.ops), joules(board.idle),
               board.other.j() > 0 ? joules(board.other) : "", note(board)});
  return table.text();
}

Json json_energy(const replay::Energy& energy) {
  Json boards = Json::array();
  for (const BoardEnergy& board : energy.boards) {
    Json json = {
        {"host", board.host},        {"uuid", board.uuid},          {"name", board.name},
        {"seconds", seconds(board)}, {"energy_j", board.total.j()}, {"ops_j", board.ops.j()},
        {"idle_j", board.idle.j()},  {"other_j", board.other.j()},  {"shared", board.shared}};
    if (board.counted) {
      json["counter_j"] = board.counted->j();
      json["counter_by_power_j"] = board.counted_by_power->j();
    }
    boards.push_back(std::move(json));
  }
  return {{"boards", std::move(boards)}};
}

}  // namespace rehearse::cli
