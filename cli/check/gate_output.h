// A gate and a history, shown.
#pragma once

#include <optional>
#include <string>

#include "cli/check/gate.h"
#include "cli/check/history.h"
#include "cli/output/json_value.h"
#include "cli/output/table.h"

namespace rehearse::cli {

std::string gate_text(const Gate& gate);
/// For a comment on a pull request.
std::string gate_markdown(const Gate& gate);
/// Every quantity and every op, a row each.
Table gate_table(const Gate& gate);
/// Into the document of the command.
void add_gate(const Gate& gate, Json& json);

/// Text of others (names, paths) as text, not as markup: no tag, link, image or mention of it is
/// made.
std::string markdown_text(std::string_view text);

std::string history_text(const History& history);
std::string history_markdown(const History& history);
/// A row per run.
Table history_table(const History& history);
Json history_json(const History& history);

/// The findings as lines: "fail  step_time  …".
std::string findings_text(const CheckFindings& findings);
Json findings_json(const CheckFindings& findings);

}  // namespace rehearse::cli
