// The files of models/sharing/pairs as compiled into the program (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace rehearse::sharing::pair_files {

extern const std::string_view k80_yaml;
extern const std::string_view v100_sxm2_16_yaml;

}  // namespace rehearse::sharing::pair_files
