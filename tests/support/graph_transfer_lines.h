// The lines of a graph's text form that describe its transfers: flows, ways and transfers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/graph/graph.h"
#include "tests/support/graph_text_line.h"

namespace rehearse::graph {

/// The tables that transfers share, as they are read. Rows of a table follow its first line.
class TransferTables {
 public:
  Status parse_flows(LineReader& line);
  Status parse_flow(LineReader& line);
  Status parse_routes(LineReader& line);
  Status parse_route(LineReader& line);
  Status parse_transfer(LineReader& line, GraphBuilder& builder);

 private:
  struct LaneRows {
    std::uint32_t members;
    std::vector<MessageFlow> flows = {};
    std::vector<Wait> waits = {};
    std::shared_ptr<const MessageFlows> made = {};  ///< for the first transfer that uses them
  };

  std::vector<LaneRows> flows_;
  std::vector<std::shared_ptr<std::vector<FlowRoute>>> routes_;
};

/// All such lines of a graph, in the order in which transfers use the tables.
std::string transfer_lines(const Graph& graph);

}  // namespace rehearse::graph
