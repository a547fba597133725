// A model's dimensions from the config.json of Hugging Face Transformers.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/transformer.h"
#include "sim/base/yaml.h"

namespace rehearse::workload {

/// The supported values of `model_type`.
std::vector<std::string_view> hugging_face_types();

/// Keys that do not affect the computation are ignored. The sequence is the longest that the model
/// was made for, where the config states it. Fails on an unknown `model_type`, with the nearest,
/// and on missing dimensions.
Result<Transformer> load_hugging_face(const std::filesystem::path& path);
/// The same for text; `name` is the file name in messages.
Result<Transformer> parse_hugging_face(const std::string& text, std::string name);

}  // namespace rehearse::workload
