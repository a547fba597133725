// OriginWriter: sets the origins of a stage program's ops. A program joins the computation between
// two communications to one op; its origin lists the layer ops that it consists of.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/program/program.h"
#include "strategies/layer_run.h"
#include "strategies/stage_groups.h"

namespace rehearse::strategies {

class OriginWriter {
 public:
  /// Origins and their names go to `whole`. REQUIRES: all arguments outlive this object.
  OriginWriter(const workload::Stage& stage, const KindPrice& price, program::Program& whole)
      : stage_(stage), price_(price), whole_(whole) {}

  /// The price of the op, computed once for equal ops.
  OpTime timed(const workload::Op& op);

  /// Adds a piece to the op that the computing is joined to.
  void add(std::uint32_t chunk, std::uint32_t layer, const PieceOps& ops);
  /// The origin of the op with this name and duration, which consists of the added pieces.
  std::uint32_t end(NameId name, Picoseconds duration);

  std::uint32_t of_collective(GroupKind group, CollectiveKind kind);
  std::uint32_t of_copies();
  /// The origin of the fixed time of a step.
  std::uint32_t of_fixed();

 private:
  /// A piece of computing of a layer, with its count.
  struct Piece {
    std::uint32_t chunk, layer;
    PieceOps ops;
    std::uint32_t times;
    friend auto operator<=>(const Piece&, const Piece&) = default;
  };
  NameId name(std::string_view text) { return whole_.names.intern(text); }
  void add_shares(const Piece& piece, program::Origin& origin);
  std::uint32_t add_origin(program::Share share);

  const workload::Stage& stage_;
  const KindPrice& price_;
  program::Program& whole_;
  std::unordered_map<workload::Op, OpTime, workload::OpHash> times_;
  std::vector<Piece> open_;
  std::map<std::pair<std::vector<Piece>, Picoseconds>, std::uint32_t> known_;  // with the duration
  std::map<std::pair<GroupKind, CollectiveKind>, std::uint32_t> collectives_;
  std::optional<std::uint32_t> copies_, fixed_;
};

}  // namespace rehearse::strategies
