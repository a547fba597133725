// The files of sim/cluster/catalog as compiled into the program (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace rehearse::cluster::catalog_files {

extern const std::string_view gpus_csv;
extern const std::string_view instances_csv;
extern const std::string_view links_csv;
extern const std::string_view mig_profiles_csv;
extern const std::string_view sources_csv;
extern const std::string_view storage_csv;

}  // namespace rehearse::cluster::catalog_files
