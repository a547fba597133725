// The files of models/compute/calibrations as compiled into the program (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace rehearse::compute::calibration_files {

extern const std::string_view typical_yaml;

}  // namespace rehearse::compute::calibration_files
