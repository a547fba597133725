// The text form of a graph, in which tests write and compare graphs (docs/formats/graph.md).
#pragma once

#include <string>
#include <string_view>

#include "sim/base/result.h"
#include "sim/graph/graph.h"

namespace rehearse::graph {

/// Lossless: parse_graph(to_text(g)) has the same text.
std::string to_text(const Graph& graph);

/// Parses and verifies a graph. `file` names the text in messages.
Result<Graph> parse_graph(std::string_view text, std::string_view file);

}  // namespace rehearse::graph
