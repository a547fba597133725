// The files of models/compute/calibrations as compiled into the program (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace rehearse::compute::calibration_files {

extern const std::string_view a100_pcie_40_yaml;
extern const std::string_view a100_sxm4_40_yaml;
extern const std::string_view a100_sxm4_80_yaml;
extern const std::string_view b300_yaml;
extern const std::string_view gb200_186_yaml;
extern const std::string_view gh200_96_yaml;
extern const std::string_view gtx1080ti_yaml;
extern const std::string_view h100_sxm5_80_yaml;
extern const std::string_view h200_sxm_141_yaml;
extern const std::string_view l40s_yaml;
extern const std::string_view m40_yaml;
extern const std::string_view mi25_yaml;
extern const std::string_view mi300x_yaml;
extern const std::string_view p100_pcie_16_yaml;
extern const std::string_view p100_sxm2_16_yaml;
extern const std::string_view t4_yaml;
extern const std::string_view titanx_pascal_yaml;
extern const std::string_view typical_yaml;
extern const std::string_view v100_pcie_32_yaml;

}  // namespace rehearse::compute::calibration_files
