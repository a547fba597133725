// A model's dimensions from the config.json of Hugging Face Transformers.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/transformer.h"
#include "sim/base/yaml.h"

namespace rehearse::workload {

/// Values of `model_type` that are known.
std::vector<std::string_view> hugging_face_types();

/// Keys that say nothing of the computation are passed over. The sequence is the longest that the
/// model was made for, where the config says it. Fails on an unknown `model_type`, with the
/// nearest, and on dimensions that are missing.
Result<Transformer> load_hugging_face(const std::filesystem::path& path);
/// The same for text; `name` is the file name in messages.
Result<Transformer> parse_hugging_face(const std::string& text, std::string name);

}  // namespace rehearse::workload
