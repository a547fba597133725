// The files of models/workload/zoo as compiled into the program (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace rehearse::workload::zoo_files {

extern const std::string_view convolutional_yaml;
extern const std::string_view decoders_yaml;
extern const std::string_view encoders_yaml;
extern const std::string_view mixtures_yaml;
extern const std::string_view recommendation_yaml;

}  // namespace rehearse::workload::zoo_files
