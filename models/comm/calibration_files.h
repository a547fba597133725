// The files of models/comm/calibrations as compiled into the program (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace rehearse::comm::calibration_files {

extern const std::string_view a100_pcie_80_yaml;
extern const std::string_view a100_sxm4_80_yaml;
extern const std::string_view b200_sxm_180_yaml;
extern const std::string_view b300_yaml;
extern const std::string_view framework_timing_yaml;
extern const std::string_view h100_pcie_80_yaml;
extern const std::string_view h100_sxm5_80_yaml;
extern const std::string_view l40s_yaml;
extern const std::string_view v100_sxm2_16_yaml;

}  // namespace rehearse::comm::calibration_files
