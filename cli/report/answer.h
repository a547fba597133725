// The answer of a command in one sentence: how long, how sure, what it costs, whether it fits.
#pragma once

#include <string>

#include "cli/output/json_value.h"

namespace rehearse::cli {

/// "gpt 174.6B on 64 × h100_sxm5_80: 1.94 s a step (1.86 – 2.03); fits with 11.2 GiB to spare; 61 %
/// of the step is compute". From what the command prints as JSON (docs/formats/json.md): of
/// simulate, replay, whatif, plan, recommend, check and input; empty of others. Control characters
/// of names are spaces.
std::string answer_of(const Json& document);

}  // namespace rehearse::cli
