// Shapes of published models by name: their own configuration files, as far as the tables of
// measured jobs name them.
#pragma once

#include <optional>
#include <string_view>

#include "cli/validation/job_tables/job_row.h"

namespace rehearse::cli {

/// GPT as Megatron builds it: feed-forward 4 · hidden, learned positions, tied embedding, biases.
ModelShape gpt_shape(std::uint32_t hidden, std::uint32_t layers, std::uint32_t heads,
                     std::uint32_t sequence, std::uint32_t vocabulary = 51200);

/// MPT of so many parameters by its name in llm-foundry ("7b"); without a sequence.
std::optional<ModelShape> mpt_shape(std::string_view size);

/// Llama 3, Qwen3 and GPT-OSS by the names that tables use, in any spelling of case, dots, dashes
/// and underscores ("LLAMA3.1_405B", "llama3.1-405B"); without a sequence. Nothing for models with
/// layers that no workload expresses (latent attention, state spaces).
std::optional<ModelShape> named_shape(std::string_view name);

}  // namespace rehearse::cli
